//! Any text as a command: it is read, made fit for revisions of every year, and turned into a workload, without a panic and
//! without losing an option.

#![no_main]

use isobench_plan::command::{Asked, fit, words, workload};
use isobench_plan::knowledge::Knowledge;
use isobench_schema::assessment::{FactSource, RevisionFacts};
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::{CommitId, Moment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let Ok(script) = words::read(&text) else { return };
    for command in &script.commands {
        let line = words::join(command.words.iter().map(|word| word.text.as_str()));
        let again = words::read(&line).expect("a quoted command can be read");
        let found: Vec<&str> =
            again.commands.iter().flat_map(|command| &command.words).map(|word| word.text.as_str()).collect();
        let given: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(found, given, "{line:?} is read back otherwise");
    }
    let month = data.len() % 12 + 1;
    let year = 2023 + data.len() / 12 % 4;
    let baseline = revision(year, month);
    let human = revision(year, 12);
    for engine in [EngineKind::Vllm, EngineKind::Sglang] {
        let asked = Asked {
            command: &text,
            server_command: None,
            engine,
            model: Some("organisation/model"),
            baseline: &baseline,
            human: Some(&human),
        };
        if let Ok(fitted) = fit::fit(&asked, Knowledge::embedded()) {
            let derived = workload::derive(&fitted, &Knowledge::embedded().clients, Some(32_000));
            let lists = [&fitted.client, &fitted.server, &fitted.superseded, &fitted.refused];
            let given = lists.into_iter().flatten().filter(|option| !option.written.is_empty()).count();
            assert_eq!(derived.fates.len(), given, "an option of {text:?} has no fate");
        }
    }
});

fn revision(year: usize, month: usize) -> RevisionFacts {
    RevisionFacts {
        commit: CommitId::new("0".repeat(40)).expect("40 digits"),
        parent: None,
        committed: Moment::new(format!("{year}-{month:02}-15T00:00:00Z")).expect("a moment"),
        subject: String::new(),
        after_release: None,
        first_release: None,
        native_key: None,
        files_changed: None,
        scripts: None,
        source: FactSource::Knowledge,
    }
}
