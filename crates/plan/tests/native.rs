//! What a task says of its native build: read, checked, given to every arm alike.

mod example;

use example::{SAMPLE, changed, read_task};
use isobench_plan::defaults;
use isobench_schema::environment::NativeBuild;

const NATIVE: &str = r#"[environment.native]
paths = ["csrc", "setup.py"]
commands = [["{python}", "setup.py", "build_ext", "--inplace"]]
outputs = ["engine/_C*.so"]
[server]"#;

#[test]
fn a_native_build_is_read_with_its_defaults() {
    let dataset = read_task(&changed("[server]", NATIVE), &[]);
    let task = dataset.tasks.first().unwrap_or_else(|| panic!("{:?}", dataset.problems));
    let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let expected = NativeBuild {
        paths: text(&["csrc", "setup.py"]),
        commands: vec![text(&["{python}", "setup.py", "build_ext", "--inplace"])],
        environment: std::collections::BTreeMap::new(),
        outputs: text(&["engine/_C*.so"]),
        memory_per_job_mib: defaults::MEMORY_PER_JOB_MIB,
        timeout_s: None,
    };
    assert_eq!(task.environment.native, Some(expected.clone()));
    let more = NATIVE
        .replace("[server]", "environment = {FLAG = \"1\"}\nmemory-per-job-mib = 512\ntimeout-s = 7200\n[server]");
    let dataset = read_task(&changed("[server]", &more), &[]);
    let found = dataset.tasks.first().unwrap_or_else(|| panic!("{:?}", dataset.problems));
    let environment = [("FLAG".to_owned(), "1".to_owned())].into();
    let expected = NativeBuild { environment, memory_per_job_mib: 512, timeout_s: Some(7200), ..expected };
    assert_eq!(found.environment.native, Some(expected));
    assert_eq!(read_task(SAMPLE, &[]).tasks[0].environment.native, None);
}

#[test]
fn what_a_native_build_lacks_or_cannot_have_is_said() {
    for (from, to, expected) in [
        ("outputs = [\"engine/_C*.so\"]\n", "", "required key `environment.native.outputs` is missing"),
        ("paths = [\"csrc\", \"setup.py\"]", "paths = []", "`environment.native.paths` is empty"),
        ("\"csrc\"", "\"../csrc\"", "`../csrc` in `environment.native.paths` leads out of the tree"),
        ("engine/_C*.so", "/lib/_C.so", "`/lib/_C.so` in `environment.native.outputs` leads out of the tree"),
        (
            "[server]",
            "environment = {\"A=B\" = \"1\"}\n[server]",
            "`A=B` in `environment.native.environment` is no variable's name",
        ),
        (
            "[server]",
            "output = []\n[server]",
            "unknown key `environment.native.output`; did you mean `environment.native.outputs`?",
        ),
    ] {
        let dataset = read_task(&changed("[server]", &NATIVE.replace(from, to)), &[]);
        let said: Vec<&str> = dataset.problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(said, [expected]);
    }
    let both = NATIVE.replace(
        "[environment.native]",
        "[environment]\npython = \"venv\"\noverlay = \"engine\"\n[environment.native]",
    );
    let dataset = read_task(&changed("[server]", &both), &[]);
    let said: Vec<&str> = dataset.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(said, ["`environment.overlay` and `environment.native` both give the native files; leave one out"]);
}
