//! The inputs of a task: where a model, a tokenizer and a dataset's file are taken from, and what is planned of them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of it is test code")]

mod example;

use example::{EvenLevels, SAMPLE, facts, options, read_task};
use isobench_plan::choose::Choice;
use isobench_plan::dataset::Dataset;
use isobench_plan::inputs::hub_needed;
use isobench_plan::planner;
use isobench_schema::assessment::{FactSource, RevisionFacts};
use isobench_schema::facts::{Device, Facts};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::{CommitId, Digest, Moment};
use isobench_schema::input::{FileHash, FoundInput, InputFile, InputOrigin, InputRole, InputSource};
use isobench_schema::plan::{ExclusionReason, Plan};
use isobench_schema::task::OptionValue;
use isobench_schema::workload::{Prompts, TokenCounter};

/// Returns the sample with other lines for its model, its workload and its prompts.
fn sample(engine: &str, server: &str, workload: &str, prompts: &str) -> Dataset {
    let text = SAMPLE
        .replace("[server]\n", &format!("[engine]\nkind = \"{engine}\"\n[server]\n"))
        .replace("model = \"tiny\"\n", &format!("{server}\n"))
        .replace(
            "prompts = {kind = \"words\", input-tokens = 32}\n",
            &format!("prompts = {{{prompts}}}\n{workload}\n"),
        );
    read_task(&text, &[])
}

const WORDS: &str = "kind = \"words\", input-tokens = 32";

fn problem(dataset: &Dataset) -> String {
    dataset.problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_model_is_the_hubs_where_a_revision_or_the_engine_says_so() {
    for (engine, server, expected) in [
        ("vllm", "model = \"org/model\"", Some("model org/model@main")),
        ("vllm", "model = \"org/model\"\nmodel-revision = \"v1\"", Some("model org/model@v1")),
        ("vllm", "model = \"org/model\"\nallow-network = true", None),
        ("vllm", "model = \"tiny\"", None),
        ("generic", "model = \"org/model\"", None),
        ("generic", "model = \"org/model\"\nmodel-revision = \"main\"", Some("model org/model@main")),
        ("vllm", "model = \"weights\"", None),
    ] {
        let dataset = sample(engine, server, "", WORDS);
        assert_eq!(problem(&dataset), "", "{server}");
        let found = dataset.tasks[0].inputs.model.as_ref().map(ToString::to_string);
        assert_eq!(found.as_deref(), expected, "{engine} {server}");
    }
}

#[test]
fn prompts_and_their_tokenizer_come_from_here_or_the_hub() {
    let own =
        "kind = \"dataset\", name = \"sharegpt\", file = \"data/x.json\", options = {\"sharegpt-output-len\" = 7}";
    let dataset = sample("vllm", "model = \"org/model\"", "", own);
    assert_eq!(problem(&dataset), "");
    let task = &dataset.tasks[0];
    let Prompts::Dataset { name, options } = &task.workload.prompts else { unreachable!("a dataset was asked for") };
    assert_eq!((name.as_str(), options["sharegpt-output-len"].clone()), ("sharegpt", OptionValue::Whole(7)));
    // Which folder it is in is the machine's, and no part of the workload.
    assert_eq!(options["dataset-path"], OptionValue::Text("x.json".to_owned()));
    assert_eq!(task.inputs.dataset, Some(InputSource::Path { path: "/data/set/t/data/x.json".to_owned() }));
    assert_eq!(task.inputs.tokenizer, task.inputs.model.clone().map(InputSource::Hub));

    let hub =
        "kind = \"dataset\", name = \"custom\", repository = \"org/rows\", revision = \"v2\", file = \"a/b.jsonl\"";
    let workload = "tokenizer = \"org/tokens\"\ntokenizer-revision = \"v3\"\ncounter = \"tokenizer\"";
    let dataset = sample("generic", "model = \"tiny\"", workload, hub);
    assert_eq!(problem(&dataset), "");
    let wanted = hub_needed(&dataset, &Choice::default());
    let names: Vec<String> = wanted.iter().map(|wanted| wanted.reference.to_string()).collect();
    assert_eq!(names, ["model org/tokens@v3", "dataset org/rows@v2"]);
    assert!(wanted[1].files.contains("a/b.jsonl"));
}

#[test]
fn what_is_wrong_with_an_input_is_said() {
    for (server, workload, prompts, expected) in [
        ("model = \"tiny\"", "counter = \"tokenizer\"", WORDS, "required key `workload.tokenizer` is missing"),
        ("model = \"weights\"\nmodel-revision = \"main\"", "", WORDS, "means nothing for a model that is a folder"),
        ("model = \"a/b/c\"\nmodel-revision = \"main\"", "", WORDS, "is no model of a hub"),
        ("model = \"tiny\"", "tokenizer-revision = \"v1\"", WORDS, "needs `workload.tokenizer`"),
        ("model = \"tiny\"", "", "kind = \"dataset\"", "required key `workload.prompts.name` is missing"),
        ("model = \"tiny\"", "", "kind = \"dataset\", name = \"hf\"", "the client reads no dataset `hf`"),
        ("model = \"tiny\"", "", "kind = \"dataset\", name = \"sharegpt\"", "needs `workload.prompts.file`"),
        (
            "model = \"weights\"",
            "",
            "kind = \"dataset\", name = \"custom\", repository = \"org/x\", file = \"../x\"",
            "must name a file in `workload.prompts.repository`",
        ),
        ("model = \"tiny\"", "", "kind = \"words\", input-tokens = 1, file = \"x\"", "means nothing for kind `words`"),
    ] {
        let found = problem(&sample("generic", server, workload, prompts));
        assert!(found.contains(expected), "`{expected}` isn't in `{found}`");
    }
}

/// Plans a task whose model is the hub's, with what is known of the hub.
fn planned(found: Option<FoundInput>) -> Plan {
    let dataset = sample("vllm", "model = \"org/model\"", "", WORDS);
    let mut facts = facts(&dataset);
    facts.hub.extend(found.map(|found| ("model org/model@main".to_owned(), found)));
    planner::plan(&dataset, &facts, &options(), &EvenLevels).unwrap()
}

#[test]
fn an_input_is_planned_with_its_files_size_and_digest_or_left_out_with_the_class() {
    let file = |path: &str, bytes| InputFile {
        path: path.to_owned(),
        bytes,
        hash: FileHash::Sha256(Digest::of(path.as_bytes())),
    };
    let files = vec![file("README.md", 10), file("config.json", 20), file("model.safetensors", 3 << 30)];
    let commit = Some(CommitId::new("c".repeat(40)).unwrap());
    let plan = planned(Some(FoundInput::Found { commit, origin: InputOrigin::Hub, folder: None, files }));
    let task = &plan.tasks[0];
    let input = &task.fetched[0];
    assert_eq!((input.role, input.files.len(), input.bytes), (InputRole::Model, 2, (3 << 30) + 20));
    assert_eq!(task.inputs[&format!("model org/model@{}", "c".repeat(12))], input.digest.to_string());
    let disk = task.requirements.disk_gib.unwrap();
    assert!((3.0..3.1).contains(&disk), "{disk}");

    let gated = Failure::new(FailureStage::Acquire, FailureClass::ModelGated, "access must be granted");
    for (found, expected) in [
        (None, "was not looked up"),
        (Some(FoundInput::Missing { failure: gated }), "(model-gated): access must be granted"),
        (
            Some(FoundInput::Found { commit: None, origin: InputOrigin::Hub, folder: None, files: Vec::new() }),
            "neither a `config.json` nor weights",
        ),
    ] {
        let plan = planned(found);
        let left = &plan.exclusions[0];
        assert_eq!((plan.tasks.len(), left.reason), (0, ExclusionReason::InputMissing));
        assert!(left.message.contains(expected), "{}", left.message);
    }
}

/// Plans one commit whose command draws prompts from `ShareGPT`, at a moment when servers sent no token ids.
fn commit_planned(hub: &[(&str, &[&str])]) -> Plan {
    let revision = |digit: &str, parent: Option<&str>| RevisionFacts {
        commit: CommitId::new(digit.repeat(40)).unwrap(),
        parent: parent.map(|digit| CommitId::new(digit.repeat(40)).unwrap()),
        committed: Moment::new("2025-04-01T00:00:00Z").unwrap(),
        subject: "Speed up".to_owned(),
        after_release: None,
        first_release: None,
        native_key: Some("key".to_owned()),
        files_changed: Some(vec!["vllm/v1/core/scheduler.py".to_owned()]),
        scripts: None,
        source: FactSource::Git,
    };
    let command = "python benchmarks/benchmark_serving.py --model facebook/opt-125m --dataset-name sharegpt --dataset-path \
                   ShareGPT_V3_unfiltered_cleaned_split.json --num-prompts 700 --sharegpt-output-len 64";
    let row = serde_json::json!({ "project": "vllm", "commit": "a".repeat(40), "perf_command": command });
    let files = example::Memory::new(&[("rows.jsonl", &format!("{row}\n"))]);
    let rows = isobench_plan::dataset::read(&files, "/data", "rows.jsonl", &[]).unwrap();
    assert_eq!(rows.problems, []);
    let known = [("a".repeat(40), revision("a", Some("b"))), ("b".repeat(40), revision("b", None))];
    let mut facts = Facts::default();
    facts.details.insert(rows.commit_tasks[0].repository.clone(), known.into_iter().collect());
    facts.host.devices = vec![Device { name: "NVIDIA H100".to_owned(), memory_mib: 81_559, driver: "1".to_owned() }];
    for (name, files) in hub {
        let file = |path: &&str| InputFile {
            path: (*path).to_owned(),
            bytes: 1000,
            hash: FileHash::Sha256(Digest::of(path.as_bytes())),
        };
        let files = files.iter().map(file).collect();
        let commit = Some(CommitId::new("c".repeat(40)).unwrap());
        let found = FoundInput::Found { commit, origin: InputOrigin::Hub, folder: None, files };
        facts.hub.insert((*name).to_owned(), found);
    }
    planner::plan(&rows, &facts, &options(), &EvenLevels).unwrap()
}

#[test]
fn a_commit_that_needs_a_tokenizer_and_a_dataset_runs_where_both_are_found() {
    let model: (&str, &[&str]) =
        ("model facebook/opt-125m@main", &["config.json", "model.safetensors", "tokenizer.json"]);
    let tokenizer: (&str, &[&str]) = ("model facebook/opt-125m@main", &["config.json", "tokenizer.json"]);
    let name = "dataset anon8231489123/ShareGPT_Vicuna_unfiltered@main";
    let dataset: (&str, &[&str]) = (name, &["ShareGPT_V3_unfiltered_cleaned_split.json"]);
    for (hub, expected) in [
        (&[][..], "only with the model's tokenizer, and none was found"),
        (&[model], "whose file was not found"),
        (&[dataset], "only with the model's tokenizer, and none was found"),
    ] {
        let plan = commit_planned(hub);
        let left = plan.exclusions.iter().find(|left| left.reason == ExclusionReason::ClientLacks);
        let message = &left.unwrap_or_else(|| unreachable!("{:?}", plan.exclusions)).message;
        assert!(message.contains(expected) && message.contains("--hub"), "{message}");
    }
    let plan = commit_planned(&[model, dataset]);
    let task = &plan.tasks[0];
    assert_eq!(task.workload.counter, TokenCounter::Tokenizer);
    let roles: Vec<_> = task.fetched.iter().map(|input| input.role).collect();
    assert_eq!(roles, [InputRole::Model, InputRole::Tokenizer, InputRole::Dataset]);
    assert!(!task.server.allow_network && task.server.pass_environment.is_empty());
    let Prompts::Dataset { options, .. } = &task.workload.prompts else { unreachable!("it draws from ShareGPT") };
    let file = OptionValue::Text("ShareGPT_V3_unfiltered_cleaned_split.json".to_owned());
    assert_eq!(options["dataset-path"], file);
    // The tokenizer alone is enough for the client; the engine then fetches its weights itself.
    let plan = commit_planned(&[tokenizer, dataset]);
    assert!(plan.tasks[0].server.allow_network && plan.tasks[0].fetched.len() == 2);
}
