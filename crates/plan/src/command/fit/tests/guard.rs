//! What a server isn't given, or not unremarked, and what counts of several.

use isobench_schema::environment::EngineKind;

use super::super::fit_by;
use crate::command::tables::{programs, revision};
use crate::command::{Asked, Fitted};
use crate::knowledge::Knowledge;

fn fitted(command: &str, server: Option<&str>, then: impl FnOnce(&Fitted<'_>)) {
    let baseline = revision("2025-06");
    let (engine, model) = (EngineKind::Vllm, None);
    let asked = Asked { command, server_command: server, engine, model, baseline: &baseline, human: None };
    let programs = programs();
    then(&fit_by(&asked, &programs, &Knowledge::embedded().translations).unwrap());
}

/// What isn't repaired, as `severity rule subject`.
fn unrepaired(fitted: &Fitted<'_>) -> Vec<String> {
    let open = fitted.findings.iter().filter(|found| !found.repaired);
    open.map(|found| format!("{} {} {}", found.severity, found.rule, found.subject)).collect()
}

/// Checks the variables that the server gets, and what is found.
#[track_caller]
fn check_variables(command: &str, variables: &[&str], findings: &[&str]) {
    fitted(command, None, |fitted| {
        let kept: Vec<String> = fitted.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(kept, variables, "{command}");
        assert_eq!(unrepaired(fitted), findings, "{command}");
    });
}

const RUN: &str = "python benchmarks/benchmark_latency.py --model m/x";

#[test]
fn only_variables_that_are_known_to_be_harmless_reach_the_server() {
    for name in [
        "VLLM_USE_V1",
        "VLLM_DISABLE_COMPILE_CACHE",
        "VLLM_CPU_KVCACHE_SPACE",
        "VLLM_PP_LAYER_PARTITION",
        "SGLANG_ENABLE_TORCH_COMPILE",
        "SGL_ENABLE_JIT_DEEPGEMM",
        "NCCL_P2P_DISABLE",
        "TORCH_CUDA_ARCH_LIST",
        "TORCHINDUCTOR_MAX_AUTOTUNE",
        "TRITON_PRINT_AUTOTUNING",
        "FLASHINFER_DISABLE_VERSION_CHECK",
        "OMP_NUM_THREADS",
        "TOKENIZERS_PARALLELISM",
        "CUDA_LAUNCH_BLOCKING",
        "PYTORCH_CUDA_ALLOC_CONF",
    ] {
        check_variables(&format!("{name}=1 {RUN}"), &[&format!("{name}=1")], &[]);
    }
    for name in [
        "LD_PRELOAD",
        "LD_AUDIT",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "PATH",
        "HOME",
        "HF_ENDPOINT",
        "HF_TOKEN",
        "http_proxy",
        "VLLM_PLUGINS",
        "VLLM_HOST_IP",
        "VLLM_PORT",
        "VLLM_CACHE_ROOT",
        "VLLM_CONFIG_ROOT",
        "VLLM_API_KEY",
        "VLLM_NCCL_SO_PATH",
        "VLLM_USE_MODELSCOPE",
        "SGLANG_EXTERNAL_MODEL_PACKAGE",
        "NCCL_NET_PLUGIN",
        "NCCL_CONF_FILE",
        "TORCH_EXTENSIONS_DIR",
        "TORCH_HOME",
        "TORCHINDUCTOR_CACHE_DIR",
        "TRITON_CACHE_DIR",
        "TRITON_CACHE_MANAGER",
        "FLASHINFER_WORKSPACE_BASE",
    ] {
        check_variables(&format!("{name}=secret {RUN}"), &[], &[&format!("error feature-conflict {name}")]);
        fitted(&format!("{name}=secret {RUN}"), None, |fitted| {
            assert!(!format!("{:?}", fitted.findings).contains("secret"), "{name}");
        });
    }
}

#[test]
fn what_no_shell_takes_for_a_name_is_an_error() {
    check_variables(&format!("env =x {RUN}"), &[], &["error command-unreadable command"]);
    check_variables(&format!("env 'A B=x' {RUN}"), &[], &["error command-unreadable A B"]);
    check_variables(&format!("export 'A B=x'; {RUN}"), &[], &["error command-unreadable A B"]);
}

#[test]
fn variables_reach_the_server_as_a_shell_would_export_them() {
    for (text, variables, findings) in [
        ("export VLLM_USE_V1=1\nRUN", &["VLLM_USE_V1=1"][..], &[][..]),
        ("VLLM_USE_V1=1; export VLLM_USE_V1; RUN", &["VLLM_USE_V1=1"], &[]),
        ("export VLLM_USE_V1; VLLM_USE_V1=0; RUN", &["VLLM_USE_V1=0"], &[]),
        ("export \"VLLM_USE_V1=1\" && VLLM_USE_V1=0 RUN", &["VLLM_USE_V1=0"], &[]),
        ("VLLM_USE_V1=1\nRUN", &[], &["warning command-unreadable VLLM_USE_V1"]),
        ("RUN\nexport VLLM_USE_V1=1", &[], &["warning command-unreadable VLLM_USE_V1"]),
        ("export LD_PRELOAD=x; unset LD_PRELOAD; RUN", &[], &["warning command-unreadable LD_PRELOAD"]),
        ("export VLLM_USE_V1=1; export -n VLLM_USE_V1; RUN", &[], &["warning command-unreadable VLLM_USE_V1"]),
        ("export LD_PRELOAD=x; env -u LD_PRELOAD RUN", &[], &[]),
        ("export LD_PRELOAD=x; env -i VLLM_USE_V1=1 RUN", &["VLLM_USE_V1=1"], &[]),
        ("M=16; RUN --input-len $M", &[], &[]),
    ] {
        check_variables(&text.replace("RUN", RUN), variables, findings);
    }
}

#[test]
fn devices_are_chosen_by_isobench() {
    for name in ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"] {
        let command = format!("{name}=0 {RUN}");
        check_variables(&command, &[], &[]);
        fitted(&command, None, |fitted| {
            let changed = fitted.repairs.iter().map(|repair| format!("{} {}", repair.kind, repair.subject));
            let expected = format!("option-superseded server.environment.{name}");
            assert_eq!(changed.filter(|changed| *changed == expected).count(), 1, "{name}");
        });
    }
}

const CLIENT: &str = "python benchmarks/benchmark_serving.py --model m/x --dataset-path a.json";

/// Checks the server's arguments after the model, what is superseded, and what is found.
#[track_caller]
fn check_server(server: &str, argv: &str, superseded: &[&str], findings: &[&str]) {
    fitted(CLIENT, Some(&format!("vllm serve m/x {server}")), |fitted| {
        let found = fitted.server_argv();
        assert_eq!(found[5..].join(" "), argv, "{server}");
        let needless: Vec<&str> = fitted.superseded.iter().map(|option| option.written.as_str()).collect();
        assert_eq!(needless, superseded, "{server}");
        assert_eq!(unrepaired(fitted), findings, "{server}");
    });
}

#[test]
fn the_last_of_several_counts() {
    for (server, argv, superseded) in [
        (
            "--no-enable-prefix-caching --enable-prefix-caching",
            "--enable-prefix-caching",
            &["--no-enable-prefix-caching"][..],
        ),
        (
            "--enable-prefix-caching --no-enable-prefix-caching",
            "--no-enable-prefix-caching",
            &["--enable-prefix-caching"],
        ),
        ("--dtype half --dtype auto -tp 2", "--dtype auto --tensor-parallel-size 2", &["--dtype half"]),
        ("-tp 2 --tensor-parallel-size 4", "--tensor-parallel-size 4", &["-tp 2"]),
    ] {
        check_server(server, argv, superseded, &[]);
    }
}

#[test]
fn the_last_of_several_counts_on_the_benchmarks_command_too() {
    for (command, server) in [
        (format!("{CLIENT} --no-enable-prefix-caching --enable-prefix-caching"), "--enable-prefix-caching"),
        (format!("{CLIENT} -tp 2 --tensor-parallel-size 4"), "--tensor-parallel-size 4"),
        (format!("{RUN} -tp 2 --tensor-parallel-size 4 --no-enable-prefix-caching"), {
            "--no-enable-prefix-caching --tensor-parallel-size 4"
        }),
        (
            format!("{RUN} --enable-prefix-caching --no-enable-prefix-caching --enable-prefix-caching"),
            "--enable-prefix-caching",
        ),
    ] {
        fitted(&command, None, |fitted| {
            assert_eq!(fitted.server_argv()[5..].join(" "), server, "{command}");
            assert_eq!(unrepaired(fitted), [""; 0], "{command}");
        });
    }
}

#[test]
fn options_that_open_files_load_code_or_break_serving_are_refused() {
    for name in ["--middleware", "--config", "--ssl-keyfile", "--api-key", "--node-rank"] {
        let finding = format!("error feature-conflict {name}");
        check_server(&format!("{name} 7"), "", &[], &[&finding]);
        fitted(&format!("{CLIENT} {name} 7"), None, |fitted| {
            assert_eq!(fitted.server_argv().len(), 5, "{name}");
            assert_eq!(unrepaired(fitted), [finding], "{name}");
            assert_eq!(fitted.refused.len(), 1, "{name}");
        });
    }
    check_server("--node-rank 0", "--node-rank 0", &[], &[]);
    let warning = |name: &str| format!("warning feature-conflict {name}");
    check_server("--trust-remote-code", "--trust-remote-code", &[], &[&warning("--trust-remote-code")]);
    check_server("--chat-template /x.jinja", "--chat-template /x.jinja", &[], &[&warning("--chat-template")]);
    check_server("--chat-template x.jinja", "--chat-template x.jinja", &[], &[]);
}

#[test]
fn an_address_and_a_served_name_are_isobenchs_own() {
    check_server(
        "--host 0.0.0.0 --port 9000 --served-model-name x",
        "",
        &["--host 0.0.0.0", "--port 9000", "--served-model-name x"],
        &[],
    );
}

#[test]
fn the_benchmark_asks_for_the_model_that_is_served() {
    const CONTRADICTION: &str = "error model-contradiction --model";
    for (client, server, model, findings) in [
        ("--model m/x", "vllm serve m/x", "m/x", &[][..]),
        ("--model a/a --model m/x", "vllm serve m/x", "m/x", &[]),
        ("--model m/x", "vllm serve --model a/a --model m/x", "m/x", &[]),
        ("--model m/x", "vllm serve --model m/x --model a/a", "a/a", &[CONTRADICTION]),
        ("--model m/x", "vllm serve a/a", "a/a", &[CONTRADICTION]),
        ("--model m/x", "vllm serve a/a --served-model-name m/x", "a/a", &[]),
        ("--model m/x", "vllm serve a/a --served-model-name other", "a/a", &[CONTRADICTION]),
    ] {
        let client = format!("python benchmarks/benchmark_serving.py {client} --dataset-path a.json");
        fitted(&client, Some(server), |fitted| {
            assert_eq!(fitted.model(), Some(model), "{client} / {server}");
            assert_eq!(unrepaired(fitted), findings, "{client} / {server}");
        });
    }
}
