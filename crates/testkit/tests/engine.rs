//! The fake engine as its clients and its supervisor see it.
#![expect(clippy::unwrap_used, reason = "a test that can't go on must fail")]

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use isobench_testkit::{FakeRepository, Fault, Speed, TaskText, fake_engine_path, words};
use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// An engine that is killed when the test is over.
struct Running {
    process: Child,
    port: u16,
    dir: tempfile::TempDir,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let mut command = Command::new(fake_engine_path());
        command.args(["--port", &port.to_string(), "--folder"]).arg(dir.path()).args(arguments);
        command.envs(environment.iter().copied()).stdin(Stdio::null());
        let process = command.stderr(File::create(dir.path().join("stderr")).unwrap()).spawn().unwrap();
        Self { process, port, dir }
    }

    fn ready(arguments: &[&str]) -> Self {
        let engine = Self::start(arguments);
        engine.wait_until_ready();
        engine
    }

    fn wait_until_ready(&self) {
        wait(|| self.get("/health").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")));
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.dir.path().join("stderr")).unwrap()
    }

    fn send(&self, request: &str) -> io::Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request.as_bytes())?;
        Ok(BufReader::new(stream))
    }

    fn get(&self, path: &str) -> io::Result<String> {
        let mut answer = String::new();
        self.send(&format!("GET {path} HTTP/1.1\r\nconnection: close\r\n\r\n"))?.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn post(&self, path: &str, body: &str) -> io::Result<BufReader<TcpStream>> {
        let length = body.len();
        self.send(&format!("POST {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"))
    }

    /// Asks for a streamed completion and returns what came until the connection was closed.
    fn complete(&self, tokens: u32) -> String {
        let body = format!(
            r#"{{"prompt":"one two","max_tokens":{tokens},"stream":true,"return_token_ids":true,"stream_options":{{"include_usage":true}}}}"#
        );
        let mut answer = String::new();
        self.post("/v1/completions", &body).unwrap().read_to_string(&mut answer).unwrap();
        answer
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    fn wait_for_end(&mut self) -> ExitStatus {
        let mut status = None;
        wait(|| {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn wait(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited too long");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the data of the events in an answer.
fn events(answer: &str) -> Vec<String> {
    answer.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
}

/// Returns the text and the finish reason of an answer's events, and the tokens that it claims.
fn content(answer: &str) -> (String, Option<String>, Option<u64>) {
    let (mut text, mut reason, mut claimed) = (String::new(), None, None);
    for event in events(answer) {
        let Ok(event) = serde_json::from_str::<serde_json::Value>(&event) else { continue };
        for place in ["/choices/0/text", "/choices/0/delta/content"] {
            text += event.pointer(place).and_then(|text| text.as_str()).unwrap_or_default();
        }
        reason =
            event.pointer("/choices/0/finish_reason").and_then(|reason| reason.as_str()).map(str::to_owned).or(reason);
        claimed = event.pointer("/usage/completion_tokens").and_then(serde_json::Value::as_u64).or(claimed);
    }
    (text, reason, claimed)
}

fn expected(prompt: &str, tokens: usize) -> String {
    words::answer(prompt).take(tokens).map(words::text).collect()
}

#[test]
fn a_stream_holds_the_words_that_the_prompt_decides() {
    let engine = Running::ready(&[]);
    let answer = engine.complete(5);
    assert_eq!(content(&answer), (expected("one two", 5), Some("length".to_owned()), Some(5)));
    let events = events(&answer);
    assert_eq!(events.len(), 7, "five tokens, the usage and the end");
    assert_eq!(events.last().unwrap(), "[DONE]");
    let first: serde_json::Value = serde_json::from_str(&events[0]).unwrap();
    let id = words::answer("one two").next().unwrap();
    assert_eq!(first.pointer("/choices/0/token_ids").unwrap(), &serde_json::json!([id]));
    assert!(answer.ends_with("\r\n0\r\n\r\n"));
}

#[test]
fn chat_token_ids_and_whole_answers_work() {
    let engine = Running::ready(&["--coalesce", "3"]);
    let read = |path: &str, body: &str| {
        let mut answer = String::new();
        engine.post(path, body).unwrap().read_to_string(&mut answer).unwrap();
        answer
    };
    let chat =
        read("/v1/chat/completions", r#"{"messages":[{"role":"user","content":"x"}],"max_tokens":7,"stream":true}"#);
    assert_eq!(content(&chat), (expected("x", 7), Some("length".to_owned()), None));
    assert_eq!(events(&chat).len(), 5, "the role, three groups and the end");
    let ids = read("/v1/completions", r#"{"prompt":[5,6],"max_tokens":2}"#);
    assert!(ids.contains(&format!("\"text\":\"{}\"", expected("[5,6]", 2))), "{ids}");
    assert!(ids.contains("\"prompt_tokens\":2"), "{ids}");
    assert!(read("/v1/completions", "{").starts_with("HTTP/1.1 400"));
    assert!(engine.get("/v1/models").unwrap().contains("\"id\":\"fake\""));
    assert!(engine.get("/version").unwrap().contains("version"));
    assert!(engine.get("/other").unwrap().starts_with("HTTP/1.1 404"));
}

#[test]
fn answers_can_be_short_lying_or_wrong() {
    let check = |fault: &str, text: &str, reason: &str, claimed| {
        let answer = Running::ready(&["--fault", fault]).complete(6);
        assert_eq!(content(&answer), (text.to_owned(), Some(reason.to_owned()), Some(claimed)), "{fault}");
    };
    check("short", &expected("one two", 3), "stop", 3);
    check("liar", &expected("one two", 3), "length", 6);
    check("garbage", &expected("one two garbage", 6), "length", 6);
    check("drift=10", &expected("one two", 6), "length", 6);
}

#[test]
fn one_request_goes_wrong_and_the_next_is_whole() {
    let check = |fault: &str, seen: &dyn Fn(&str) -> bool| {
        let engine = Running::ready(&["--fault", &format!("{fault}=2")]);
        let whole = engine.complete(4);
        assert!(whole.contains("[DONE]"));
        let bad = engine.complete(4);
        assert!(seen(&bad), "{fault}: {bad}");
        assert_eq!(engine.complete(4), whole);
    };
    check("http-500", &|answer| answer.starts_with("HTTP/1.1 500"));
    check("malformed", &|answer| events(answer).iter().filter(|event| !event.ends_with(['}', ']'])).count() == 1);
    check("error-event", &|answer| events(answer).len() == 4 && answer.contains("\"error\":"));
    check("close-early", &|answer| events(answer).len() == 2 && !answer.ends_with("0\r\n\r\n"));
}

#[test]
fn a_stalled_stream_stays_open_without_an_end() {
    let engine = Running::ready(&["--fault", "stall=1"]);
    let mut stream = engine.post("/v1/completions", r#"{"prompt":"a","max_tokens":4,"stream":true}"#).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        seen.extend(line.starts_with("data: ").then_some(line));
    }
    stream.get_ref().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut rest = Vec::new();
    assert_eq!(stream.read_to_end(&mut rest).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(!String::from_utf8_lossy(&rest).contains("data:"));
}

#[test]
fn it_dies_when_told() {
    let mut engine = Running::start(&["--fault", "die-at-start"]);
    assert_eq!(engine.wait_for_end().code(), Some(1));
    let log = engine.stderr();
    assert!(log.contains("Traceback (most recent call last):") && log.contains("\nValueError: "), "{log}");

    let mut engine = Running::ready(&["--fault", "die-after=1"]);
    engine.complete(2);
    let mut answer = Vec::new();
    let last = engine.post("/v1/completions", r#"{"prompt":"a","stream":true}"#).unwrap().read_to_end(&mut answer);
    assert!(last.is_err() || answer.is_empty());
    assert_eq!(engine.wait_for_end().code(), Some(1));
}

#[test]
fn it_ends_at_sigterm_unless_told_otherwise() {
    let mut engine = Running::ready(&[]);
    engine.signal(Signal::TERM);
    assert_eq!(engine.wait_for_end().code(), Some(0));

    let mut engine = Running::ready(&["--fault", "ignore-sigterm"]);
    engine.signal(Signal::TERM);
    wait(|| engine.stderr().contains("signal 15 is ignored"));
    engine.wait_until_ready();
    engine.signal(Signal::KILL);
    assert!(!engine.wait_for_end().success());
}

#[test]
fn it_is_never_ready_when_told() {
    let engine = Running::start(&["--fault", "never-ready"]);
    wait(|| engine.get("/health").is_ok_and(|answer| answer.starts_with("HTTP/1.1 503")));
    assert!(engine.complete(1).starts_with("HTTP/1.1 503"));
    let engine = Running::ready(&["--fault", "slow-start=50"]);
    assert!(engine.get("/ping").unwrap().starts_with("HTTP/1.1 200"));
}

#[test]
fn its_port_can_be_dead_or_stolen() {
    let mut engine = Running::start(&["--fault", "wrong-port"]);
    wait(|| engine.stderr().contains("loading"));
    assert!(engine.get("/health").is_err());
    engine.signal(Signal::TERM);
    assert_eq!(engine.wait_for_end().code(), Some(0));

    let mut engine = Running::ready(&["--fault", "steal-port"]);
    engine.signal(Signal::TERM);
    assert_eq!(engine.wait_for_end().code(), Some(0));
    wait(|| engine.get("/health").is_err());
}

/// Returns the processes that have the text in their environment.
fn processes_with(text: &str) -> Vec<Pid> {
    let holds =
        |path: &Path| fs::read(path.join("environ")).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text));
    let folders = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let number = |path: PathBuf| Pid::from_raw(path.file_name()?.to_str()?.parse().ok()?);
    folders.filter(|path| holds(path)).filter_map(number).collect()
}

#[test]
fn a_survivor_outlives_it() {
    let mark = format!("isobench-test-{}", std::process::id());
    let mut engine = Running::start_with(&["--fault", "survivor"], &[("MARK", &mark)]);
    engine.wait_until_ready();
    engine.signal(Signal::TERM);
    engine.wait_for_end();
    // On a busy machine what ended is seen for a moment more.
    wait(|| processes_with(&mark).len() == 1);
    for process in processes_with(&mark) {
        kill_process(process, Signal::KILL).unwrap();
    }
}

#[test]
fn a_flood_has_the_length_asked() {
    let engine = Running::ready(&["--fault", "flood=3000001"]);
    wait(|| engine.stderr().len() > 3_000_000);
    let marks = ["INFO loading the model\n".len(), format!("INFO listening on 127.0.0.1:{}\n", engine.port).len()];
    wait(|| engine.stderr().len() == 3_000_001 + marks.iter().sum::<usize>());
}

#[test]
fn it_writes_where_it_should_not() {
    let shared = tempfile::tempdir().unwrap();
    let shared_path = shared.path().to_str().unwrap();
    let arguments = ["--fault", "write-own-tree", "--fault", "leave-file=$SHARED/left.txt"];
    let engine = Running::start_with(&arguments, &[("SHARED", shared_path)]);
    engine.wait_until_ready();
    assert!(engine.dir.path().join("written-by-engine.txt").is_file());
    assert!(shared.path().join("left.txt").is_file());
}

#[test]
fn it_asks_only_a_proxy_of_this_machine() {
    let proxy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let asked = thread::spawn(move || {
        [(); 2].map(|()| {
            let (mut stream, _) = proxy.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").unwrap();
            line.trim_end().to_owned()
        })
    });
    let environment = [("HTTP_PROXY", address.as_str()), ("HTTPS_PROXY", address.as_str())];
    let engine = Running::start_with(&["--fault", "ask-network"], &environment);
    let asked = asked.join().unwrap();
    assert_eq!(asked, ["GET http://example.invalid/ HTTP/1.1", "CONNECT example.invalid:443 HTTP/1.1"]);
    engine.wait_until_ready();
    let elsewhere = [("HTTP_PROXY", "http://192.0.2.1:3128"), ("HTTPS_PROXY", "")];
    let engine = Running::start_with(&["--fault", "ask-network"], &elsewhere);
    engine.wait_until_ready();
    assert!(engine.stderr().contains("WARNING no proxy of this machine in HTTP_PROXY"));
}

#[test]
fn a_patch_of_its_files_changes_it() {
    let dir = tempfile::tempdir().unwrap();
    let speed = Speed { ttft_us: 10, itl_us: 10 };
    let repository = FakeRepository::create(&dir.path().join("repository"), speed, speed).unwrap();
    let patch = dir.path().join("short.patch");
    repository.write_patch(&patch, &[Fault::Short]).unwrap();
    let apply = Command::new("git").arg("-C").arg(&repository.dir).arg("apply").arg(&patch).status().unwrap();
    assert!(apply.success());
    let engine = Running::ready(&["--folder", repository.dir.to_str().unwrap()]);
    assert_eq!(content(&engine.complete(8)).0, expected("one two", 4));

    let mut wrong = Running::start(&["--folder", repository.dir.to_str().unwrap(), "--fault", "nonsense"]);
    assert_eq!(wrong.wait_for_end().code(), Some(2));
    assert!(wrong.stderr().contains("`nonsense` is not a fault"));
    fs::write(repository.dir.join("faults.txt"), "nonsense\n").unwrap();
    let mut wrong = Running::start(&["--folder", repository.dir.to_str().unwrap()]);
    assert_eq!(wrong.wait_for_end().code(), Some(2));
}

#[test]
fn few_places_make_requests_wait_but_all_are_answered() {
    let engine = Running::ready(&["--max-num-seqs", "1"]);
    let answers: Vec<String> = thread::scope(|scope| {
        let requests: Vec<_> = (0..8).map(|_| scope.spawn(|| engine.complete(4))).collect();
        requests.into_iter().map(|request| request.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| content(answer).0 == expected("one two", 4)));
}

#[test]
fn a_task_file_names_the_program_and_the_agents() {
    let text = TaskText::new("t", Path::new("/repository")).with_agent("short", "short.patch").toml();
    assert!(text.contains(&format!("command = [\"{}\", \"--host\", \"{{host}}\"", fake_engine_path().display())));
    assert!(text.contains("[[agent]]\nname = \"short\"\npatch = \"short.patch\"\n"), "{text}");
}
