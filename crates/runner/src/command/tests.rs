//! Tests of running programs.

use isobench_schema::failure::EvidenceLine;

use super::*;
use std::os::unix::fs::PermissionsExt as _;

const LONG: Duration = Duration::from_secs(60);

struct Case {
    folder: tempfile::TempDir,
    cancel: AtomicBool,
}

impl Case {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), cancel: AtomicBool::new(false) }
    }

    fn script(&self, text: &str) -> Invocation {
        let path = self.folder.path();
        Invocation::new("/bin/sh", path, clean_environment(path, path)).with(["-c", text])
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn run(&self, text: &str, within: Duration) -> Finished {
        let log = self.log();
        run(&self.script(text), &Watch { log: &log, deadline: Instant::now() + within, cancel: &self.cancel }).unwrap()
    }
}

#[test]
fn both_streams_are_in_the_log_after_the_command_line() {
    let case = Case::new();
    let finished = case.run("echo out; echo err >&2; exit 3", LONG);
    assert_eq!(finished.ending, Ending::Exited(3));
    let log = std::fs::read_to_string(case.log()).unwrap();
    assert_eq!(log, "$ /bin/sh -c \"echo out; echo err >&2; exit 3\"\nout\nerr\n");
    assert_eq!(finished.tail.lines(), [(2, "out".to_owned()), (3, "err".to_owned())]);
}

#[test]
fn line_numbers_go_on_where_the_last_command_stopped() {
    let case = Case::new();
    case.run("printf 'a\\nb\\n'", LONG);
    let finished = case.run("echo c", LONG);
    assert_eq!(finished.tail.evidence("build.log", 5), [EvidenceLine::new("build.log", Some(5), "c")]);
}

#[test]
fn a_long_output_is_whole_in_the_log_and_its_end_is_kept_with_true_line_numbers() {
    let case = Case::new();
    let finished = case.run("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done", LONG);
    assert_eq!(std::fs::read_to_string(case.log()).unwrap().lines().count(), 20_001);
    assert_eq!(finished.tail.evidence("log", 1), [EvidenceLine::new("log", Some(20_001), "line 19999")]);
    let (number, line) = finished.tail.lines().swap_remove(5);
    assert_eq!(line, format!("line {}", number - 2));
}

#[test]
fn nothing_is_inherited_and_nothing_can_be_read() {
    let case = Case::new();
    case.run("env; cat", LONG);
    let log = std::fs::read_to_string(case.log()).unwrap();
    for line in log.lines().skip(1) {
        let name = line.split('=').next().unwrap();
        let known = clean_environment(Path::new("/"), Path::new("/")).contains_key(name);
        assert!(known || ["PWD", "SHLVL", "_", "OLDPWD"].contains(&name), "{line}");
    }
}

#[test]
fn a_program_is_ended_at_its_deadline_even_if_it_ignores_sigterm() {
    for script in ["sleep 600", "trap '' TERM; sleep 600 & while :; do sleep 1; done"] {
        assert_eq!(Case::new().run(script, Duration::from_millis(200)).ending, Ending::DeadlinePassed, "{script}");
    }
}

#[test]
fn a_program_is_ended_when_it_is_cancelled() {
    let case = Case::new();
    case.cancel.store(true, Ordering::Relaxed);
    assert_eq!(case.run("sleep 600", LONG).ending, Ending::Cancelled);
}

#[test]
fn a_program_ended_by_a_foreign_signal_is_told_apart() {
    assert_eq!(Case::new().run("kill -SEGV $$", LONG).ending, Ending::Signalled(11));
}

#[test]
fn a_process_left_behind_in_the_group_is_ended() {
    let case = Case::new();
    case.run("sleep 600 & echo $!", LONG);
    let log = std::fs::read_to_string(case.log()).unwrap();
    let pid: i32 = log.lines().last().unwrap().parse().unwrap();
    let gone = || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.contains(") Z "),
        Err(_) => true,
    };
    let until = Instant::now() + LONG;
    while !gone() && Instant::now() < until {
        std::thread::yield_now();
    }
    assert!(gone());
}

#[test]
fn stdout_goes_to_the_sink_and_stderr_to_the_log() {
    let case = Case::new();
    let log = case.log();
    let mut sink = Vec::new();
    let watch = Watch { log: &log, deadline: Instant::now() + LONG, cancel: &case.cancel };
    let mut invocation = case.script("cat; echo note >&2");
    std::fs::write(case.folder.path().join("in"), "from a file").unwrap();
    invocation.stdin = Some(File::open(case.folder.path().join("in")).unwrap());
    let finished = run_into(&invocation, &watch, &mut sink).unwrap();
    assert!(finished.ending.is_success());
    assert_eq!(sink, b"from a file");
    assert!(std::fs::read_to_string(&log).unwrap().ends_with("\nnote\n"));
}

#[test]
fn a_program_that_cannot_be_started_is_an_error_that_names_it() {
    let case = Case::new();
    let log = case.log();
    let watch = Watch { log: &log, deadline: Instant::now() + LONG, cancel: &case.cancel };
    let plain = case.folder.path().join("plain");
    std::fs::write(&plain, "text").unwrap();
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o644)).unwrap();
    for program in [Path::new("no-such-program"), &plain] {
        let invocation = Invocation::new(program, case.folder.path(), clean_environment(&log, &log));
        let error = run(&invocation, &watch).unwrap_err();
        assert_eq!(error.to_string(), format!("failed to start `{}`", program.display()));
    }
}
