//! Tests of prepared requests.

use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use isobench_schema::record::Phase;
use isobench_schema::task::OptionValue;
use isobench_schema::workload::{Api, Arrival, Probes, WorkloadKind};

use super::*;
use crate::schedule::Schedule;
use crate::tokenizer::Tokenizer;
use crate::tokenizer::tests::Sample;

struct Scene {
    folder: tempfile::TempDir,
    workload: Workload,
    resources: Resources,
}

impl Scene {
    fn new(dataset: &str, options: &[(&str, OptionValue)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let workload = Workload {
            kind: WorkloadKind::Serving,
            api: Api::Chat,
            requests: 50,
            prompts: Prompts::Dataset { name: dataset.to_owned(), options },
            output_tokens: 6,
            ignore_eos: true,
            temperature: 0.0,
            arrival: Arrival::Open { rate_per_s: 5.0, burstiness: 1.0 },
            max_in_flight: Some(9),
            warm_up_requests: 4,
            probes: Probes { count: 2, output_tokens: 5 },
            counter: TokenCounter::Tokenizer,
            extra_body: [].into(),
            script: None,
        };
        Sample::Bytes.save(folder.path());
        let tokenizer = Some(Arc::new(Tokenizer::at(folder.path()).unwrap()));
        Self { resources: Resources { tokenizer, folder: folder.path().to_owned() }, folder, workload }
    }

    fn prepared(&self) -> Prepared {
        let cache = Cache::open(&self.folder.path().join("cache")).unwrap();
        cache.schedules(&self.workload, 5, &self.resources).unwrap()
    }

    fn file(&self) -> PathBuf {
        let mut files = fs::read_dir(self.folder.path().join("cache")).unwrap().map(|entry| entry.unwrap().path());
        files.find(|path| path.extension().is_some_and(|ending| ending == ENDING)).unwrap()
    }
}

fn whole(schedule: &Schedule) -> Vec<String> {
    let one = |entry| {
        let mut bytes = Vec::new();
        schedule.write_body(entry, "m", b"{},", &mut bytes).unwrap();
        format!("{entry:?} {:?} {}", schedule.model(entry), String::from_utf8(bytes).unwrap())
    };
    schedule.entries().iter().map(one).collect()
}

fn check_same(a: &Schedules, b: &Schedules) {
    assert_eq!(a.digest(), b.digest());
    for phase in [Phase::First, Phase::ProbeBefore, Phase::WarmUp, Phase::Measure, Phase::ProbeAfter] {
        let (a, b) = (a.phase(phase), b.phase(phase));
        assert_eq!(whole(a), whole(b));
        assert_eq!((a.phase(), a.api(), a.counter(), a.pace()), (b.phase(), b.api(), b.counter(), b.pace()));
        assert_eq!((a.input(), a.left_out()), (b.input(), b.left_out()));
    }
}

fn adapters() -> Vec<(&'static str, OptionValue)> {
    vec![("lora-modules", OptionValue::Text("a,b".into())), ("input-len", OptionValue::Whole(9))]
}

#[test]
fn what_was_prepared_is_the_same_when_it_is_loaded_and_needs_no_tokenizer() {
    for (dataset, options) in [("random", adapters()), ("sessions", adapters())] {
        let mut scene = Scene::new(dataset, &options);
        let made = scene.prepared();
        assert!(matches!(made.origin, Origin::Made), "{:?}", made.origin);
        // A fresh tokenizer, which must not be read.
        let fresh = Arc::new(Tokenizer::at(scene.folder.path()).unwrap());
        scene.resources.tokenizer = Some(Arc::clone(&fresh));
        let loaded = scene.prepared();
        assert!(matches!(loaded.origin, Origin::Loaded), "{:?}", loaded.origin);
        assert!(!fresh.is_loaded());
        check_same(&made.schedules, &loaded.schedules);
        check_same(&made.schedules, &Schedules::new(&scene.workload, 5, &scene.resources).unwrap());
    }
}

#[test]
fn another_workload_tokenizer_or_file_is_prepared_anew() {
    let mut scene = Scene::new("custom", &[("dataset-path", OptionValue::Text("data".into()))]);
    let data = scene.folder.path().join("data");
    fs::write(&data, "{\"prompt\": \"about the house\"}\n{\"prompt\": \"\"}\n").unwrap();
    let Prompts::Dataset { options, .. } = &mut scene.workload.prompts else { unreachable!() };
    options.insert("skip-bad-rows".into(), OptionValue::Switch(true));
    let origin = |scene: &Scene| scene.prepared().origin;
    assert!(matches!(origin(&scene), Origin::Made));
    assert!(matches!(origin(&scene), Origin::Loaded));
    check_same(&scene.prepared().schedules, &Schedules::new(&scene.workload, 5, &scene.resources).unwrap());
    scene.workload.temperature = 0.5;
    assert!(matches!(origin(&scene), Origin::Made));
    fs::write(&data, "{\"prompt\": \"about the horse\"}\n").unwrap();
    assert!(matches!(origin(&scene), Origin::Made));
    assert!(matches!(origin(&scene), Origin::Loaded));
    Sample::Plain.save(scene.folder.path());
    scene.resources.tokenizer = Some(Arc::new(Tokenizer::at(scene.folder.path()).unwrap()));
    assert!(matches!(origin(&scene), Origin::Made));
    // What can't be made is an error as without a cache.
    fs::remove_file(&data).unwrap();
    let cache = Cache::open(&scene.folder.path().join("cache")).unwrap();
    assert!(matches!(cache.schedules(&scene.workload, 5, &scene.resources), Err(ScheduleError::Dataset(_))));
}

type Damage = fn(&mut Vec<u8>);

#[test]
fn a_damaged_file_is_made_anew() {
    let scene = Scene::new("random", &adapters());
    let made = scene.prepared();
    let path = scene.file();
    let whole = fs::read(&path).unwrap();
    let damage: [Damage; 6] = [
        Vec::clear,
        |bytes| bytes.truncate(bytes.len() - 1),
        |bytes| bytes.push(0),
        // The mark, the index's length, and the index.
        |bytes| bytes[0] ^= 1,
        |bytes| bytes[27] ^= 0x40,
        |bytes| bytes[200] ^= 1,
    ];
    for change in damage {
        let mut bytes = whole.clone();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let again = scene.prepared();
        assert!(matches!(again.origin, Origin::Made));
        check_same(&made.schedules, &again.schedules);
        assert!(matches!(scene.prepared().origin, Origin::Loaded));
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_used_is_an_error_and_no_wrong_request() {
    let scene = Scene::new("random", &adapters());
    scene.prepared();
    let loaded = scene.prepared();
    let file = File::options().write(true).open(scene.file()).unwrap();
    file.set_len(100).unwrap();
    file.write_all_at(b"x", 99).unwrap();
    let schedule = loaded.schedules.phase(Phase::Measure);
    assert!(schedule.write_body(&schedule.entries()[0], "m", &[], &mut Vec::new()).is_err());
}

#[test]
fn requests_that_cannot_be_kept_are_sent_all_the_same() {
    let scene = Scene::new("random", &adapters());
    let cache = Cache::open(&scene.folder.path().join("cache")).unwrap();
    fs::remove_dir(scene.folder.path().join("cache")).unwrap();
    let prepared = cache.schedules(&scene.workload, 5, &scene.resources).unwrap();
    assert!(matches!(prepared.origin, Origin::NotKept(_)));
    fs::write(scene.folder.path().join("cache"), "").unwrap();
    let error = Cache::open(&scene.folder.path().join("cache")).unwrap_err();
    assert!(error.to_string().starts_with("failed to use `"), "{error}");
}

#[test]
fn the_files_that_were_not_used_for_longest_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    for (name, age) in [("a.prepared", 30), ("b.prepared", 10), ("c.prepared", 20), ("other", 40)] {
        let path = folder.path().join(name);
        fs::write(&path, [0; 100]).unwrap();
        let modified = SystemTime::now() - std::time::Duration::from_secs(age);
        File::options().write(true).open(&path).unwrap().set_times(FileTimes::new().set_modified(modified)).unwrap();
    }
    cache.make_room(200).unwrap();
    let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["b.prepared", "c.prepared", "other"]);
}
