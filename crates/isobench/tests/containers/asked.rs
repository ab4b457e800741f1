//! What a daemon is asked for beside engines: limits that hold, files in and out, logs, images, networks, devices.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isobench_runner::container::{self, ContainerOptions, Daemon, Devices, Executed, Network, RootFiles, Ulimit};
use isobench_schema::container::ContainerLimits;
use isobench_schema::failure::FailureClass;
use serde_json::Value;

use crate::support::daemons::{IMAGE, TestDaemon};

/// The label that every container of isobench has.
const LABEL: &str = "io.isobench.run";

/// Whether the daemon is Docker's own.
pub(crate) enum RealDocker {
    Yes,
    No,
}

/// Everything that a daemon is asked for but engines: limits that hold, files in and out, logs, images, networks.
pub(crate) fn containers_do_what_they_are_asked(test: &TestDaemon, python: &str, real: &RealDocker) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let daemon = Daemon::connect_to(&test.socket).await.unwrap();
        let facts = daemon.facts().await.unwrap();
        let engine = match real {
            RealDocker::Yes => "docker",
            RealDocker::No => "podman",
        };
        assert_eq!(facts.engine, engine, "{facts:?}");
        assert!(!facts.version.is_empty() && facts.storage_driver.is_some() && facts.root.is_some(), "{facts:?}");
        println!("daemon: {facts:?}");
        let (image, _) = daemon.image(IMAGE).await.unwrap();
        assert!(image.id.starts_with("sha256:") && image.id.len() == 71, "{image:?}");
        let missing = daemon.image("isobench-test:none").await.unwrap_err();
        assert!(missing.to_string().contains("show the image `isobench-test:none`"), "{missing}");
        what_it_writes_is_kept_whole(&daemon, python).await;
        bounds_and_rights_hold(&daemon, python).await;
        files_go_in_and_out_and_become_an_image(&daemon, python).await;
        too_much_memory_is_told(&daemon, python, real).await;
        only_what_is_nobodys_is_swept(&daemon, python).await;
    });
    if matches!(real, RealDocker::Yes) {
        an_internal_network_has_no_way_out(test, python);
    }
}

/// Returns what a container is made with that runs a script.
fn options(python: &str, script: &str) -> ContainerOptions {
    ContainerOptions {
        image: IMAGE.to_owned(),
        command: [python, "-c", script].map(str::to_owned).to_vec(),
        labels: BTreeMap::from([(LABEL.to_owned(), "test".to_owned())]),
        ..ContainerOptions::default()
    }
}

/// A script that waits to be ended.
const SLEEP: &str = "import time; time.sleep(600)";

fn ulimit(name: &str, most: i64) -> Ulimit {
    Ulimit { name: name.to_owned(), soft: most, hard: most }
}

async fn started(daemon: &Daemon, name: &str, options: &ContainerOptions) -> String {
    let id = daemon.create(name, options).await.unwrap();
    daemon.start(&id).await.unwrap();
    id
}

async fn what_it_writes_is_kept_whole(daemon: &Daemon, python: &str) {
    let folder = tempfile::tempdir().unwrap();
    let [stdout, stderr] = ["stdout", "stderr"].map(|name| folder.path().join(name));
    let loud = "import sys\nfor line in range(20000): print(line)\nprint('odd', file=sys.stderr)\nsys.exit(3)";
    let id = started(daemon, "isobench-test-loud", &options(python, loud)).await;
    daemon.follow_logs(&id, &stdout, &stderr).await.unwrap();
    assert_eq!(daemon.wait(&id).await.unwrap(), 3);
    let state = daemon.look(&id).await.unwrap();
    assert_eq!((state.running, state.exit_code, state.labels[LABEL].as_str()), (false, Some(3), "test"));
    daemon.remove(&id).await.unwrap();
    daemon.remove(&id).await.unwrap();
    let lines = (0..20000).map(|line: u32| line.to_string()).collect::<Vec<_>>().join("\n") + "\n";
    let found = std::fs::read_to_string(&stdout).unwrap();
    let differs = found.lines().zip(lines.lines()).position(|(found, line)| found != line);
    assert_eq!((found.len(), differs), (lines.len(), None));
    assert_eq!(std::fs::read_to_string(&stderr).unwrap(), "odd\n");
}

async fn bounds_and_rights_hold(daemon: &Daemon, python: &str) {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    std::fs::write(&seen, "of this machine").unwrap();
    let limits = ContainerLimits {
        memory_bytes: Some(64 << 20),
        processors: Some("0".to_owned()),
        processes: Some(50),
        shared_memory_bytes: Some(32 << 20),
    };
    let strict = ContainerOptions {
        limits,
        // Podman raises a bound of processes that isn't named, which not every root may.
        ulimits: [("nofile", 100), ("nproc", 4096)].map(|(name, most)| ulimit(name, most)).into(),
        reads: vec![(seen.clone(), PathBuf::from("/seen"))],
        in_memory: vec![PathBuf::from("/tmp")],
        ..options(python, SLEEP)
    };
    let id = started(daemon, "isobench-test-strict", &strict).await;
    let look = "import json, os, resource, socket, shutil\n\
        def refused(what):\n\
        \x20   try: what()\n\
        \x20   except OSError as error: return error.strerror\n\
        status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n\
        print(json.dumps({\n\
        \x20   'root': refused(lambda: open('/x', 'w')), 'read': refused(lambda: open('/seen', 'w')),\n\
        \x20   'seen': open('/seen').read(), 'tmp': refused(lambda: open('/tmp/x', 'w')),\n\
        \x20   'rights': int(status['CapEff'], 16), 'filter': status['Seccomp'].strip(),\n\
        \x20   'gain': status['NoNewPrivs'].strip(), 'processors': status['Cpus_allowed_list'].strip(),\n\
        \x20   'files': resource.getrlimit(resource.RLIMIT_NOFILE)[1], 'shm': shutil.disk_usage('/dev/shm').total,\n\
        \x20   'out': refused(lambda: socket.create_connection(('192.0.2.1', 80), 2)),\n\
        \x20   'interfaces': [name for _, name in socket.if_nameindex() if not name.startswith(('tunl', 'sit', 'gre', 'erspan', 'ip'))],\n\
        }))";
    let Executed { code, stdout: said, stderr: complaint } = daemon.exec(&id, &[python, "-c", look]).await.unwrap();
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&complaint));
    let found: Value = serde_json::from_slice(&said).unwrap();
    let expected = serde_json::json!({
        "root": "Read-only file system", "read": "Read-only file system", "seen": "of this machine", "tmp": null,
        "rights": 0, "filter": "2", "gain": "1", "processors": "0", "files": 100, "shm": 32 << 20,
        "out": "Network is unreachable", "interfaces": ["lo"],
    });
    assert_eq!(found, expected);
    let begun = Instant::now();
    daemon.stop(&id, Duration::from_secs(1)).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60));
    daemon.remove(&id).await.unwrap();
}

async fn files_go_in_and_out_and_become_an_image(daemon: &Daemon, python: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seen"), "of this machine").unwrap();
    let writable = ContainerOptions { root: RootFiles::Writable, ..options(python, SLEEP) };
    let id = started(daemon, "isobench-test-files", &writable).await;
    daemon.copy_in(&id, "/", archive(folder.path(), "seen")).await.unwrap();
    let read = daemon.exec(&id, &[python, "-c", "print(open('/seen').read(), end='')"]).await.unwrap();
    assert_eq!((read.code, read.stdout.as_slice()), (0, b"of this machine".as_slice()));
    let mut out = Vec::new();
    daemon.copy_out(&id, "/seen", &mut out).await.unwrap();
    assert!(out.windows(15).any(|bytes| bytes == b"of this machine"));
    let committed = daemon.commit(&id, "isobench-test", "committed").await.unwrap();
    let (image, _) = daemon.image("isobench-test:committed").await.unwrap();
    assert!(image.id.ends_with(committed.trim_start_matches("sha256:")), "{image:?} {committed}");
    daemon.kill(&id).await.unwrap();
    daemon.remove(&id).await.unwrap();
}

async fn too_much_memory_is_told(daemon: &Daemon, python: &str, real: &RealDocker) {
    // Podman's monitor misses an end that comes before it listens for it.
    let script = "import time; time.sleep(2); ballast = bytearray(200 << 20); print(len(ballast))";
    let hungry = ContainerOptions {
        limits: ContainerLimits { memory_bytes: Some(32 << 20), ..ContainerLimits::default() },
        ..options(python, script)
    };
    let id = started(daemon, "isobench-test-hungry", &hungry).await;
    assert_eq!(daemon.wait(&id).await.unwrap(), 137);
    // The daemon may hear of it after it hears of the end.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !daemon.look(&id).await.unwrap().out_of_memory {
        if Instant::now() > deadline {
            assert!(matches!(real, RealDocker::No), "it never hears of it");
            println!("skipped: this Podman's monitor doesn't tell of a kill for want of memory");
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    daemon.remove(&id).await.unwrap();
}

async fn only_what_is_nobodys_is_swept(daemon: &Daemon, python: &str) {
    let labelled = |expires: &str| ContainerOptions {
        labels: [(LABEL, "test"), ("io.isobench.expires", expires)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..options(python, SLEEP)
    };
    let old = daemon.create("isobench-test-old", &labelled("1")).await.unwrap();
    let young = daemon.create("isobench-test-young", &labelled("99999999999")).await.unwrap();
    daemon.start(&old).await.unwrap();
    let swept = container::sweep(daemon, None).await.unwrap();
    assert_eq!(swept.iter().map(|swept| (&swept.id, swept.why)).collect::<Vec<_>>(), [(&old, "past its time")]);
    assert!(daemon.look(&old).await.is_err());
    daemon.look(&young).await.unwrap();
    assert_eq!(container::sweep(daemon, Some("test")).await.unwrap().len(), 1);
    assert!(daemon.labelled(LABEL).await.unwrap().is_empty());
}

fn an_internal_network_has_no_way_out(test: &TestDaemon, python: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let daemon = Daemon::connect_to(&test.socket).await.unwrap();
        let name = "isobench-test-internal";
        daemon.create_internal_network(name).await.unwrap();
        let options = ContainerOptions {
            image: IMAGE.to_owned(),
            command: [python, "-c", "import socket; socket.create_connection(('192.0.2.1', 80), 2)"]
                .map(str::to_owned)
                .into(),
            network: Network::Named(name.to_owned()),
            ..ContainerOptions::default()
        };
        let id = daemon.create("isobench-test-inside", &options).await.unwrap();
        daemon.start(&id).await.unwrap();
        assert_eq!(daemon.wait(&id).await.unwrap(), 1, "it reached something outside");
        daemon.remove(&id).await.unwrap();
        daemon.remove_network(name).await.unwrap();
        daemon.remove_network(name).await.unwrap();
    });
}

/// Returns a tar archive of one file of a folder.
fn archive(folder: &Path, name: &str) -> Vec<u8> {
    let mut tar = Command::new("tar")
        .arg("--create")
        .arg("--directory")
        .arg(folder)
        .arg(name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut bytes = Vec::new();
    tar.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    assert!(tar.wait().unwrap().success());
    bytes
}

/// The real words of a daemon without devices are a class of failures.
pub(crate) fn a_device_that_is_not_there_is_told(test: &TestDaemon, python: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (devices, words) in [
        (Devices::AllGpus, r#"could not select device driver "" with capabilities: [[gpu]]"#),
        (Devices::Named(vec!["nvidia.com/gpu=all".to_owned()]), "could not select device driver"),
    ] {
        let options = ContainerOptions {
            image: IMAGE.to_owned(),
            command: vec![python.to_owned(), "-V".to_owned()],
            devices,
            ..ContainerOptions::default()
        };
        let refused = runtime.block_on(async {
            let daemon = Daemon::connect_to(&test.socket).await.unwrap();
            let id = daemon.create("isobench-test-device", &options).await.unwrap();
            let refused = daemon.start(&id).await.unwrap_err();
            daemon.remove(&id).await.unwrap();
            refused
        });
        let failure = refused.into_failure().unwrap();
        assert_eq!(failure.class, FailureClass::DeviceUnavailable, "{failure:?}");
        assert!(failure.message.contains(words), "{failure:?}");
    }
}
