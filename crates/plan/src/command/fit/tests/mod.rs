//! What becomes of commands, against small tables made by hand and the real table of translations.

mod guard;
mod properties;

use crate::command::tables::shown;

#[track_caller]
fn check(command: &str, month: &str, expected: &[&str]) {
    let found = shown(command, None, month);
    assert_eq!(found, expected.join("\n"), "{command} at {month}\n{found}");
}

#[test]
fn an_engine_option_on_a_client_moves_to_the_server() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x --dtype float16 --num-prompts 300 --seed 0",
        "2025-04",
        &[
            "python benchmarks/benchmark_serving.py --model m/x --num-prompts 300 --seed 0 --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json",
            "python -m vllm.entrypoints.openai.api_server --model m/x --dtype float16",
            "option-translated server.dtype: `--dtype float16` -> `vllm serve --dtype float16`",
            "option-added client.dataset-path: nothing -> `--dataset-path ShareGPT_V3_unfiltered_cleaned_split.json`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--dtype`",
            "repaired dataset-file-missing: the data set `sharegpt` is the program's default, and no file is named for it with `--dataset-path`",
        ],
    );
}

#[test]
fn lengths_go_to_the_dataset_that_has_them() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x --dtype float8 --input-len 1000 --output-len 50",
        "2024-05",
        &[
            "python benchmarks/benchmark_serving.py --model m/x --sonnet-input-len 1000 --dataset-name sonnet --dataset-path benchmarks/sonnet.txt --sonnet-output-len 50",
            "python -m vllm.entrypoints.openai.api_server --model m/x --quantization fp8",
            "option-translated server.quantization: `--dtype float8` -> `vllm serve --quantization fp8`",
            "option-added client.dataset-name: nothing -> `--dataset-name sonnet`",
            "option-added client.dataset-path: nothing -> `--dataset-path benchmarks/sonnet.txt`",
            "option-translated client.sonnet-input-len: `--input-len 1000` -> `benchmark_serving.py --sonnet-input-len 1000`",
            "option-translated client.sonnet-output-len: `--output-len 50` -> `benchmark_serving.py --sonnet-output-len 50`",
            "repaired value-refused: `--dtype` of `vllm serve` at bbbbbbbbbbbb doesn't know `float8`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--dtype`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--input-len`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--output-len`",
            "repaired dataset-file-missing: the data set `sharegpt` is the program's default, and no file is named for it with `--dataset-path`",
        ],
    );
    check(
        "python benchmarks/benchmark_serving.py --model m/x --input-len 1024",
        "2024-08",
        &[
            "python benchmarks/benchmark_serving.py --model m/x --random-input-len 1024 --dataset-name random",
            "python -m vllm.entrypoints.openai.api_server --model m/x",
            "option-added client.dataset-name: nothing -> `--dataset-name random`",
            "option-translated client.random-input-len: `--input-len 1024` -> `benchmark_serving.py --random-input-len 1024`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--input-len`",
            "repaired dataset-file-missing: the data set `sharegpt` is the program's default, and no file is named for it with `--dataset-path`",
        ],
    );
}

#[test]
fn what_an_old_client_requires_is_added() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x --num-prompts 100",
        "2023-10",
        &[
            "python benchmarks/benchmark_serving.py --num-prompts 100 --dataset ShareGPT_V3_unfiltered_cleaned_split.json --tokenizer m/x",
            "python -m vllm.entrypoints.openai.api_server --model m/x",
            "option-translated server.model: `--model m/x` -> `vllm serve --model m/x`",
            "option-added client.dataset: nothing -> `--dataset ShareGPT_V3_unfiltered_cleaned_split.json`",
            "option-added client.tokenizer: nothing -> `--tokenizer m/x`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--model`",
            "repaired option-missing: `benchmark_serving.py` at bbbbbbbbbbbb needs `--dataset`, which isn't given",
            "repaired option-missing: `benchmark_serving.py` at bbbbbbbbbbbb needs `--tokenizer`, which isn't given",
        ],
    );
    check(
        "python benchmarks/benchmark_serving.py --model m/x --backend vllm",
        "2024-02",
        &[
            "python benchmarks/benchmark_serving.py --model m/x --backend vllm --dataset ShareGPT_V3_unfiltered_cleaned_split.json",
            "python -m vllm.entrypoints.openai.api_server --model m/x",
            "option-added client.dataset: nothing -> `--dataset ShareGPT_V3_unfiltered_cleaned_split.json`",
            "repaired option-missing: `benchmark_serving.py` at bbbbbbbbbbbb needs `--dataset`, which isn't given",
        ],
    );
}

#[test]
fn what_a_client_never_had_is_said_to_whom_it_concerns() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x --dataset-name sharegpt --multi-step",
        "2024-09",
        &[
            "python benchmarks/benchmark_serving.py --model m/x --dataset-name sharegpt --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json",
            "python -m vllm.entrypoints.openai.api_server --model m/x --num-scheduler-steps 8",
            "option-translated server.num-scheduler-steps: `--multi-step` -> `vllm serve --num-scheduler-steps 8`",
            "option-added client.dataset-path: nothing -> `--dataset-path ShareGPT_V3_unfiltered_cleaned_split.json`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--multi-step`",
            "repaired dataset-file-missing: the data set `sharegpt` is asked for, and no file is named for it with `--dataset-path`",
        ],
    );
    check(
        "python benchmarks/benchmark_serving.py --model m/x --batch-size 2",
        "2024-11",
        &[
            "python benchmarks/benchmark_serving.py --model m/x --max-concurrency 2 --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json",
            "python -m vllm.entrypoints.openai.api_server --model m/x",
            "option-translated client.max-concurrency: `--batch-size 2` -> `benchmark_serving.py --max-concurrency 2`",
            "option-added client.dataset-path: nothing -> `--dataset-path ShareGPT_V3_unfiltered_cleaned_split.json`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--batch-size`",
            "repaired dataset-file-missing: the data set `sharegpt` is the program's default, and no file is named for it with `--dataset-path`",
        ],
    );
}

#[test]
fn a_value_that_the_commit_itself_adds_and_makes_the_default_is_left_to_the_default() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x --guided-decoding-backend xgrammar",
        "2024-11",
        &[
            "python benchmarks/benchmark_serving.py --model m/x --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json",
            "python -m vllm.entrypoints.openai.api_server --model m/x",
            "option-superseded server.guided-decoding-backend: `--guided-decoding-backend xgrammar` -> no option",
            "option-added client.dataset-path: nothing -> `--dataset-path ShareGPT_V3_unfiltered_cleaned_split.json`",
            "repaired value-refused: `--guided-decoding-backend` of `vllm serve` at bbbbbbbbbbbb doesn't know `xgrammar`; the commit itself adds it",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--guided-decoding-backend`",
            "repaired dataset-file-missing: the data set `sharegpt` is the program's default, and no file is named for it with `--dataset-path`",
        ],
    );
}

#[test]
fn options_that_became_json_are_put_together() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x --guided-decoding-backend xgrammar",
        "2025-10",
        &[
            "vllm bench serve --model m/x",
            r#"python -m vllm.entrypoints.openai.api_server --model m/x --structured-outputs-config {"backend":"xgrammar"}"#,
            "command-mended client.program: `benchmarks/benchmark_serving.py` -> `vllm bench serve`",
            r#"option-translated server.structured-outputs-config: `--guided-decoding-backend xgrammar` -> `vllm serve --structured-outputs-config {"backend":"xgrammar"}`"#,
            "repaired script-missing: there is no `benchmark_serving.py` at bbbbbbbbbbbb, or only a stub that tells its new name",
            "repaired option-refused: `vllm bench serve` at bbbbbbbbbbbb has no option `--guided-decoding-backend`",
            "error option-missing: `benchmark_serving.py` takes the data set `sharegpt` where none is named, and `vllm bench serve` takes another one",
        ],
    );
    check(
        "python benchmarks/benchmark_serving.py --model m/x --speculative-model '[ngram]' --num-speculative-tokens 3",
        "2025-05",
        &[
            "python benchmarks/benchmark_serving.py --model m/x --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json",
            r#"python -m vllm.entrypoints.openai.api_server --model m/x --speculative-config {"method":"ngram","num_speculative_tokens":3}"#,
            r#"option-translated server.speculative-config: `--speculative-model [ngram]` -> `vllm serve --speculative-config {"method":"ngram"}`"#,
            r#"option-translated server.speculative-config: `--speculative-model [ngram] --num-speculative-tokens 3` -> `vllm serve --speculative-config {"method":"ngram","num_speculative_tokens":3}`"#,
            "option-added client.dataset-path: nothing -> `--dataset-path ShareGPT_V3_unfiltered_cleaned_split.json`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--speculative-model`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--num-speculative-tokens`",
            "repaired dataset-file-missing: the data set `sharegpt` is the program's default, and no file is named for it with `--dataset-path`",
        ],
    );
}

#[test]
fn options_that_are_needed_no_more_are_listed_with_the_reason() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x --use-v2-block-manager --device cuda",
        "2025-08",
        &[
            "python benchmarks/benchmark_serving.py --model m/x --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json",
            "python -m vllm.entrypoints.openai.api_server --model m/x",
            "option-superseded client.use-v2-block-manager: `--use-v2-block-manager` -> no option",
            "option-superseded client.device: `--device cuda` -> no option",
            "option-added client.dataset-path: nothing -> `--dataset-path ShareGPT_V3_unfiltered_cleaned_split.json`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--use-v2-block-manager`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--device`",
            "repaired dataset-file-missing: the data set `sharegpt` is the program's default, and no file is named for it with `--dataset-path`",
        ],
    );
}

#[test]
fn guessing_from_the_prompt_gets_the_length_that_it_needs() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x --speculative-model '[ngram]' --num-speculative-tokens 3",
        "2025-01",
        &[
            "python benchmarks/benchmark_serving.py --model m/x --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json",
            "python -m vllm.entrypoints.openai.api_server --model m/x --speculative-model [ngram] --num-speculative-tokens 3 --ngram-prompt-lookup-max 4",
            "option-translated server.speculative-model: `--speculative-model [ngram]` -> `vllm serve --speculative-model [ngram]`",
            "option-translated server.num-speculative-tokens: `--num-speculative-tokens 3` -> `vllm serve --num-speculative-tokens 3`",
            "option-added client.dataset-path: nothing -> `--dataset-path ShareGPT_V3_unfiltered_cleaned_split.json`",
            "option-added server.ngram-prompt-lookup-max: nothing -> `vllm serve --ngram-prompt-lookup-max 4`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--speculative-model`",
            "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--num-speculative-tokens`",
            "repaired dataset-file-missing: the data set `sharegpt` is the program's default, and no file is named for it with `--dataset-path`",
            "repaired feature-conflict: `--speculative-model [ngram]` needs `--ngram-prompt-lookup-max`, without which the engine fails at its start",
        ],
    );
    check(
        "VLLM_USE_V1=1 python benchmarks/benchmark_latency.py --speculative-model [ngram] --num-speculative-tokens 5 > log",
        "2024-07",
        &[
            "python benchmarks/benchmark_latency.py --speculative-model [ngram] --num-speculative-tokens 5 --ngram-prompt-lookup-max 4",
            "python -m vllm.entrypoints.openai.api_server --model facebook/opt-125m --speculative-model [ngram] --num-speculative-tokens 5 --ngram-prompt-lookup-max 4",
            "VLLM_USE_V1=1",
            "option-added client.ngram-prompt-lookup-max: nothing -> `benchmark_latency.py --ngram-prompt-lookup-max 4`",
            "option-added server.ngram-prompt-lookup-max: nothing -> `vllm serve --ngram-prompt-lookup-max 4`",
            "repaired command-unreadable: `> log` at byte 108 of the command isn't done: isobench keeps the whole output itself",
            "repaired feature-conflict: `--speculative-model [ngram]` needs `--ngram-prompt-lookup-max`, without which the engine fails at its start",
        ],
    );
}

#[test]
fn a_throughput_benchmark_without_prompts_reads_the_public_file() {
    check(
        "python benchmarks/benchmark_throughput.py --model m/x -tp 8",
        "2024-05",
        &[
            "python benchmarks/benchmark_throughput.py --model m/x --tensor-parallel-size 8 --dataset ShareGPT_V3_unfiltered_cleaned_split.json",
            "python -m vllm.entrypoints.openai.api_server --model m/x --tensor-parallel-size 8",
            "option-added client.dataset: nothing -> `--dataset ShareGPT_V3_unfiltered_cleaned_split.json`",
            "repaired lengths-missing: `benchmark_throughput.py` at bbbbbbbbbbbb needs a data set or the lengths of prompts and answers, and has neither",
        ],
    );
    check(
        "python benchmarks/benchmark_throughput.py --model m/x --dataset-name sharegpt --num-prompts 2000",
        "2024-05",
        &[
            "python benchmarks/benchmark_throughput.py --model m/x --num-prompts 2000 --dataset ShareGPT_V3_unfiltered_cleaned_split.json",
            "python -m vllm.entrypoints.openai.api_server --model m/x",
            "option-translated client.dataset: `--dataset-name sharegpt` -> `benchmark_throughput.py --dataset ShareGPT_V3_unfiltered_cleaned_split.json`",
            "repaired option-refused: `benchmark_throughput.py` at bbbbbbbbbbbb has no option `--dataset-name`",
            "repaired lengths-missing: `benchmark_throughput.py` at bbbbbbbbbbbb needs a data set or the lengths of prompts and answers, and has neither",
        ],
    );
}

#[test]
fn a_path_is_mended_where_the_script_is_known() {
    check(
        "python benchmark/benchmark_latency.py --model m/x",
        "2024-05",
        &[
            "python benchmarks/benchmark_latency.py --model m/x",
            "python -m vllm.entrypoints.openai.api_server --model m/x",
            "command-mended client.program: `benchmark/benchmark_latency.py` -> `benchmarks/benchmark_latency.py`",
            "repaired script-missing: there is no `benchmark/benchmark_latency.py` at bbbbbbbbbbbb; the script is `benchmarks/benchmark_latency.py`",
        ],
    );
}

#[test]
fn what_was_never_filled_in_is_no_ones_to_repair() {
    check(
        "python /home/u/benchmarks/benchmark_latency.py --model m/x --batch-size BS",
        "2024-05",
        &[
            "python benchmarks/benchmark_latency.py --model m/x",
            "python -m vllm.entrypoints.openai.api_server --model m/x",
            "command-mended client.program: `/home/u/benchmarks/benchmark_latency.py` -> `benchmarks/benchmark_latency.py`",
            "repaired private-path: `/home/u/benchmarks/benchmark_latency.py` is a path of somebody's own machine",
            "error placeholder: `BS` of `--batch-size` was never replaced by a value",
        ],
    );
}

#[test]
fn brackets_and_truth_values_are_taken_off() {
    check(
        "python3 benchmarks/benchmark_latency.py --model m/x [-tp 2] --enable-chunked-prefill False",
        "2024-05",
        &[
            "python benchmarks/benchmark_latency.py --model m/x --tensor-parallel-size 2",
            "python -m vllm.entrypoints.openai.api_server --model m/x --tensor-parallel-size 2",
            "command-mended command: `[-tp 2]` -> `-tp 2`",
            "option-superseded client.enable-chunked-prefill: `--enable-chunked-prefill False` -> no option",
            "repaired bracketed-option: `[-tp 2]` was copied with the brackets that mark it as optional",
            "repaired value-refused: `--enable-chunked-prefill` takes no such value by `benchmark_latency.py` at bbbbbbbbbbbb, and has `False`",
        ],
    );
}

#[test]
fn names_are_those_of_the_moment() {
    check(
        "vllm bench serve --model m/x --backend vllm --num-prompts 5",
        "2025-04",
        &[
            "vllm bench serve --model m/x --endpoint-type openai-comp",
            "python -m vllm.entrypoints.openai.api_server --model m/x",
            "option-translated client.endpoint-type: `--backend vllm` -> `vllm bench serve --endpoint-type openai-comp`",
            "repaired option-refused: `vllm bench serve` at bbbbbbbbbbbb has no option `--backend`",
            "error option-refused: `vllm bench serve` at bbbbbbbbbbbb has no option `--num-prompts`",
        ],
    );
    check(
        "python -m sglang.bench_serving --model m/x --gsp-num-groups 4",
        "2024-09",
        &[
            "python -m sglang.bench_serving --model m/x --gen-num-groups 4",
            "python -m sglang.launch_server --model-path m/x",
            "option-translated client.gen-num-groups: `--gsp-num-groups 4` -> `sglang.bench_serving --gen-num-groups 4`",
            "repaired option-refused: `sglang.bench_serving` at bbbbbbbbbbbb has no option `--gsp-num-groups`",
        ],
    );
}

#[test]
fn an_unknown_program_is_named() {
    check(
        "python moe_mem.py",
        "2024-05",
        &["error tool-unknown: the script `moe_mem.py` is no benchmark that is known"],
    );
}

#[test]
fn a_model_on_somebodys_own_machine_is_found() {
    check(
        "python benchmarks/benchmark_latency.py --model /data/users/ktong/llama/llm_8b_oss",
        "2025-01",
        &[
            "python benchmarks/benchmark_latency.py --model /data/users/ktong/llama/llm_8b_oss",
            "python -m vllm.entrypoints.openai.api_server --model /data/users/ktong/llama/llm_8b_oss",
            "error private-path: `--model` names `/data/users/ktong/llama/llm_8b_oss`, a path of somebody's own machine",
        ],
    );
}

#[test]
fn a_subcommand_that_came_later_is_the_script_with_the_subcommands_data() {
    check(
        "vllm bench serve --model m/x",
        "2024-09",
        &[
            "python benchmarks/benchmark_serving.py --model m/x --dataset-name random",
            "python -m vllm.entrypoints.openai.api_server --model m/x",
            "command-mended client.program: `vllm bench serve` -> `benchmark_serving.py`",
            "option-added client.dataset-name: nothing -> `--dataset-name random`",
            "repaired script-missing: there is no `vllm bench serve` at bbbbbbbbbbbb, or only a stub that tells its new name",
            "repaired option-missing: `vllm bench serve` takes the data set `random` where none is named, and `benchmark_serving.py` takes another one",
        ],
    );
}

#[test]
fn a_program_that_is_nowhere_leaves_every_option_refused() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x",
        "2023-01",
        &[
            "",
            "",
            "error script-missing: there is no `benchmarks/benchmark_serving.py` at bbbbbbbbbbbb, nor at the commit itself",
            "error script-missing: there is no `vllm serve` at bbbbbbbbbbbb, and isobench loads an engine through its server",
        ],
    );
}

#[test]
fn a_servers_own_command_keeps_its_options_and_is_told_the_model_once() {
    let found = shown(
        "python benchmarks/benchmark_serving.py --model m/x --dataset-path a.json --dtype half --max-model-len 8",
        Some("vllm serve m/x --dtype half -tp 2 --max-model-len 9"),
        "2025-01",
    );
    let expected = [
        "python benchmarks/benchmark_serving.py --model m/x --dataset-path a.json",
        "python -m vllm.entrypoints.openai.api_server --model m/x --dtype half --tensor-parallel-size 2 --max-model-len 9",
        "option-superseded client.dtype: `--dtype half` -> no option",
        "repaired option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--dtype`",
        "error option-refused: `benchmark_serving.py` at bbbbbbbbbbbb has no option `--max-model-len`",
    ];
    assert_eq!(found, expected.join("\n"), "{found}");
}

#[test]
fn json_that_was_options_of_its_own_is_taken_apart() {
    check(
        r#"python benchmarks/benchmark_latency.py --model m/x --speculative-config '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2}'"#,
        "2024-09",
        &[
            "python benchmarks/benchmark_latency.py --model m/x",
            "python -m vllm.entrypoints.openai.api_server --model m/x --speculative-model [ngram] --num-speculative-tokens 3 --ngram-prompt-lookup-max 2",
            r#"option-translated server.speculative-config: `--speculative-config {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2}` -> `vllm serve --speculative-model [ngram] --num-speculative-tokens 3 --ngram-prompt-lookup-max 2`"#,
            "repaired option-refused: `benchmark_latency.py` at bbbbbbbbbbbb has no option `--speculative-config`",
        ],
    );
}
