//! Hand-made assessments: one and more of every standing, and hostile ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use isobench_schema::assessment::{
    AssessedCommand, Assessment, Cost, DeviceNeed, FactSource, Finding, NeededRecipe, RevisionFacts, RungAnswer,
    RungVerdict, Severity, Standing,
};
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::environment::Rung;
use isobench_schema::ids::{CommitId, Moment, TaskId};
use isobench_schema::plan::Plan;
use isobench_schema::tool::Tool;

use crate::sample::{self, HOSTILE, arm};

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn revision(start: &str, date: &str, key: &str) -> RevisionFacts {
    RevisionFacts {
        commit: CommitId::new(format!("{start:0<40}")).unwrap(),
        parent: None,
        committed: Moment::new(format!("{date}T12:00:00Z")).unwrap(),
        subject: "[Perf] Use persistent buffers for input preparation".to_owned(),
        after_release: Some("v0.6.4.post1".to_owned()),
        first_release: Some("v0.6.5".to_owned()),
        native_key: Some(key.to_owned()),
        files_changed: Some(texts(["vllm/v1/worker/gpu_model_runner.py", "vllm/v1/sample/metadata.py"])),
        scripts: Some(texts(["benchmarks/benchmark_serving.py"])),
        source: FactSource::Knowledge,
    }
}

pub(crate) fn finding(rule: &str, severity: Severity, message: &str, repaired: bool) -> Finding {
    Finding {
        rule: rule.to_owned(),
        severity,
        message: message.to_owned(),
        subject: "command".to_owned(),
        evidence: texts(["benchmarks/benchmark_serving.py"]),
        fix: "edit the command in the dataset".to_owned(),
        repaired,
    }
}

fn answer(rung: Rung, answer: RungVerdict, artifact: Option<&str>, reason: &str) -> RungAnswer {
    RungAnswer { rung, answer, artifact: artifact.map(str::to_owned), reason: reason.to_owned() }
}

fn wheels(task: &mut Assessment) {
    let ladder = vec![
        answer(Rung::Image, RungVerdict::Refused, None, "no image of this revision is published"),
        answer(
            Rung::Wheel,
            RungVerdict::Taken,
            Some("vllm-0.6.4.post2.dev218"),
            "a wheel is kept for each commit since 2024-11",
        ),
        answer(Rung::NativeTree, RungVerdict::NotNeeded, None, "the wheel is taken"),
        answer(Rung::Overlay, RungVerdict::NotNeeded, None, "the wheel is taken"),
        answer(Rung::Source, RungVerdict::NotNeeded, None, "the wheel is taken"),
    ];
    task.ladder = BTreeMap::from(["baseline", "human"].map(|name| (arm(name), ladder.clone()))).into();
}

fn builds(task: &mut Assessment) {
    let ladder = |reason: &str| {
        vec![
            answer(Rung::Image, RungVerdict::Refused, None, "no image of this revision is published"),
            answer(Rung::Wheel, RungVerdict::Refused, None, reason),
            answer(Rung::NativeTree, RungVerdict::Refused, None, "no release has an equal native tree"),
            answer(
                Rung::Overlay,
                RungVerdict::Refused,
                Some("vllm 0.3.3"),
                "native files differ from the release's: csrc/ops.h",
            ),
            answer(Rung::Source, RungVerdict::Taken, None, "CUDA 12.1, torch 2.1.2, Python 3.10"),
        ]
    };
    let no_wheel = "no wheel is kept of commits before 2024-11";
    task.ladder =
        BTreeMap::from([(arm("baseline"), ladder(no_wheel)), (arm("human"), ladder("the wheel answers 404"))]).into();
}

fn need(devices: Option<u32>, model: &str, weights_gb: f64) -> DeviceNeed {
    DeviceNeed {
        model: model.to_owned(),
        devices,
        asked_tensor_parallel: None,
        weights_gb,
        kv_bytes_per_token: 131_072,
        context_tokens: 8192,
        workload_tokens: 81_920,
        device_gb: 80.0,
        because: texts([
            "8.03 billion parameters of 2 bytes are 16.1 GB",
            "90 % of a device is used, less 4 GB for activations and graphs",
        ]),
    }
}

fn cost(devices: u32, device_s: f64, prepare_s: f64) -> Cost {
    Cost {
        prepare_s,
        device_s,
        devices,
        device_usd: Some(device_s * f64::from(devices) / 3600.0 * 3.0),
        prepare_usd: Some(prepare_s / 3600.0 * 0.4),
        assumptions: texts(["a device costs $3.00 an hour", "6 blocks of 2 launches"]),
    }
}

pub(crate) fn task(commit: &str, standing: Standing, reasons: &[&str]) -> Assessment {
    Assessment {
        task: TaskId::new(format!("vllm-{commit}")).unwrap(),
        subject: Some("[Perf] Use persistent buffers for input preparation".to_owned()),
        asked: None,
        standing,
        reasons: reasons.iter().map(|&reason| reason.to_owned()).collect::<Vec<_>>().into(),
        baseline: Some(revision(&format!("ba5e{commit}"), "2024-11-20", "3f54dae859").into()),
        human: Some(revision(commit, "2024-11-21", "3f54dae859").into()),
        command: None,
        findings: Vec::new().into(),
        repairs: Vec::new().into(),
        need: None,
        ladder: BTreeMap::new().into(),
        recipes: Vec::new().into(),
        cost: None,
    }
}

const SERVING: &str = "benchmark_serving.py --backend vllm --model meta-llama/Llama-3.1-8B-Instruct --dataset-name random \
--random-input-len 550 --random-output-len 150 --num-prompts 300";

fn as_is(commit: &str) -> Assessment {
    let mut task =
        task(commit, Standing::AsIs, &["the baseline's own parser takes the command", "both arms have a wheel"]);
    task.asked = Some(SERVING.to_owned());
    task.command = Some(
        AssessedCommand {
            tool: Tool::BenchmarkServing,
            variables: BTreeMap::new(),
            client: words(SERVING),
            server: words("vllm serve meta-llama/Llama-3.1-8B-Instruct"),
        }
        .into(),
    );
    task.need = Some(need(Some(1), "meta-llama/Llama-3.1-8B-Instruct", 16.1).into());
    task.cost = Some(cost(1, 5400.0, 600.0).into());
    wheels(&mut task);
    task
}

fn repaired(commit: &str) -> Assessment {
    let reasons = [
        "`benchmark_serving.py` of the baseline refuses `--dtype` (repaired)",
        "`sharegpt`, the default, needs a file and none is named (repaired)",
        "recipe transformers-window: the revision registers `aimv2` itself",
    ];
    let mut task = task(commit, Standing::Repaired, &reasons);
    let asked = "VLLM_USE_V1=1 python benchmarks/benchmark_serving.py --model ibm-ai-platform/Bamba-9B --dtype float16 \
--num-prompts 300 --seed 0";
    task.asked = Some(asked.to_owned());
    task.command = Some(AssessedCommand {
        tool: Tool::BenchmarkServing,
        variables: BTreeMap::from([("VLLM_USE_V1".to_owned(), "1".to_owned())]),
        client: words(
            "benchmark_serving.py --model ibm-ai-platform/Bamba-9B --num-prompts 300 --seed 0 --dataset-name sharegpt \
--dataset-path ShareGPT_V3_unfiltered_cleaned_split.json",
        ),
        server: words("vllm serve ibm-ai-platform/Bamba-9B --dtype float16"),
    }.into());
    task.findings = vec![
        finding("too-few-requests", Severity::Note, "300 requests are few for the 99th percentile", false),
        finding("option-refused", Severity::Error, "`benchmark_serving.py` of the baseline refuses `--dtype`", true),
        finding(
            "dataset-file-missing",
            Severity::Error,
            "`sharegpt`, the default, needs a file and none is named",
            true,
        ),
    ]
    .into();
    let repair = |kind, subject: &str, asked: &str, run: &str, reason: &str| Deviation {
        kind,
        subject: subject.to_owned(),
        asked: asked.to_owned(),
        run: run.to_owned(),
        reason: reason.to_owned(),
    };
    task.repairs = vec![
        repair(DeviationKind::OptionTranslated, "--dtype", "client", "server", "it is an option of the engine"),
        repair(
            DeviationKind::OptionAdded,
            "--dataset-path",
            "nothing",
            "ShareGPT_V3_unfiltered_cleaned_split.json",
            "the dataset needs its file",
        ),
    ]
    .into();
    task.recipes = vec![NeededRecipe {
        id: "transformers-window".to_owned(),
        action: "transformers<4.54".to_owned(),
        reason: "the revision registers `aimv2` itself".to_owned(),
        effect: "none on what is measured".to_owned(),
    }]
    .into();
    task.need = Some(need(Some(1), "ibm-ai-platform/Bamba-9B", 19.6).into());
    task.cost = Some(cost(1, 7200.0, 600.0).into());
    wheels(&mut task);
    task
}

fn more_devices(commit: &str, devices: Option<u32>, model: &str) -> Assessment {
    let reason = match devices {
        Some(devices) => format!("it needs {devices} devices, and 1 is planned for"),
        None => format!("`{model}` fits no number of these devices"),
    };
    let mut task = task(commit, Standing::MoreDevices, &[&reason]);
    task.need = Some(need(devices, model, 1342.0).into());
    task.cost = devices.map(|devices| cost(devices, 9000.0, 1200.0).into());
    task.findings =
        vec![finding("model-too-large", Severity::Error, &format!("`{model}` doesn't fit one device"), false)].into();
    wheels(&mut task);
    task
}

fn built(commit: &str) -> Assessment {
    let mut task = task(commit, Standing::Build, &[&format!("no wheel is kept of ba5e{commit}")]);
    task.human = Some(revision(commit, "2024-03-02", "aa00aa00aa").into());
    task.baseline = Some(revision(&format!("ba5e{commit}"), "2024-03-01", "bb00bb00bb").into());
    task.need = Some(need(Some(1), "facebook/opt-125m", 0.3).into());
    task.cost = Some(Cost { device_usd: None, ..cost(1, 3600.0, 5400.0) }.into());
    builds(&mut task);
    task
}

fn without_command(commit: &str) -> Assessment {
    let message = "the dataset gives no command";
    let mut task = task(commit, Standing::Cannot, &[message]);
    task.findings = vec![finding("no-command", Severity::Error, message, false)].into();
    task
}

/// Assessments of every standing.
pub(crate) fn every_standing() -> Vec<Assessment> {
    let mut placeholder = without_command("526de822");
    placeholder.asked = Some("python benchmarks/benchmark_latency.py --batch-size BS --model MODEL".to_owned());
    placeholder.reasons = texts(["`BS` and `MODEL` in the command were never replaced"]).into();
    placeholder.findings = vec![
        finding("placeholder", Severity::Error, "`BS` was never replaced", false),
        finding("placeholder", Severity::Error, "`MODEL` was never replaced", false),
    ]
    .into();
    placeholder.baseline = None;
    placeholder.human = None;
    vec![
        as_is("f26c4aee"),
        repaired("296f927f"),
        repaired("fe66b347"),
        as_is("98f47f2a"),
        more_devices("baeded25", Some(8), "deepseek-ai/DeepSeek-V3"),
        more_devices("7661e92e", None, "nvidia/Nemotron-4-340B-Instruct"),
        built("d4bc1a4d"),
        built("c45f3c3a"),
        without_command("3127e975"),
        without_command("b55ed6ef"),
        without_command("25ebed2f"),
        without_command("88693683"),
        without_command("f092153f"),
        without_command("3b61cb45"),
        without_command("8c1e77fb"),
        placeholder,
    ]
}

/// An assessment in which every text is hostile.
pub(crate) fn hostile() -> Assessment {
    let mut task = repaired("bad0bad0");
    let all = |text: &mut String| HOSTILE.clone_into(text);
    task.subject = Some(HOSTILE.to_owned());
    task.asked = Some(HOSTILE.to_owned());
    Arc::make_mut(&mut task.reasons).iter_mut().for_each(all);
    for finding in Arc::make_mut(&mut task.findings) {
        for text in [&mut finding.rule, &mut finding.message, &mut finding.subject, &mut finding.fix] {
            all(text);
        }
        finding.evidence.iter_mut().for_each(all);
    }
    for repair in Arc::make_mut(&mut task.repairs) {
        for text in [&mut repair.subject, &mut repair.asked, &mut repair.run, &mut repair.reason] {
            all(text);
        }
    }
    for answer in Arc::make_mut(&mut task.ladder).values_mut().flatten() {
        answer.artifact = Some(HOSTILE.to_owned());
        all(&mut answer.reason);
    }
    for recipe in Arc::make_mut(&mut task.recipes) {
        for text in [&mut recipe.id, &mut recipe.action, &mut recipe.reason, &mut recipe.effect] {
            all(text);
        }
    }
    for facts in [task.baseline.as_mut(), task.human.as_mut()].into_iter().flatten() {
        let facts = Arc::make_mut(facts);
        all(&mut facts.subject);
        facts.after_release = Some(HOSTILE.to_owned());
        facts.first_release = Some(HOSTILE.to_owned());
        facts.native_key = Some(HOSTILE.to_owned());
        facts.files_changed = Some(vec![HOSTILE.to_owned()]);
    }
    if let Some(command) = task.command.as_mut().map(Arc::make_mut) {
        command.client.push(HOSTILE.to_owned());
        command.server.push(HOSTILE.to_owned());
        command.variables.insert(HOSTILE.to_owned(), HOSTILE.to_owned());
    }
    if let Some(need) = task.need.as_mut().map(Arc::make_mut) {
        all(&mut need.model);
        need.because.iter_mut().for_each(all);
    }
    if let Some(cost) = task.cost.as_mut().map(Arc::make_mut) {
        cost.assumptions.iter_mut().for_each(all);
    }
    task
}

/// A plan that holds assessments, and nothing of it is run.
pub(crate) fn plan(assessments: Vec<Assessment>) -> Plan {
    Plan { assessments, tasks: Vec::new(), exclusions: Vec::new(), problems: Vec::new(), ..sample::plan() }
}
