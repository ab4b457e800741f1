//! Builds that are killed while the daemon commits, and two at once.

use std::fs;
use std::thread;

use rustix::process::Signal;

use crate::bench::{Bench, GENERATE, commits, make_base, start};
use crate::support::daemons::TestDaemon;
use crate::support::{Place, Running, wait_until};

/// Makes a layer that takes the daemon a while to commit.
const LARGE: &str = "python3 -c \"f = open('engine/large', 'wb'); [f.write(bytes(1 << 20)) for _ in range(400)]\"";

#[test]
fn a_kill_in_the_middle_of_a_commit_leaves_no_image_that_is_believed() {
    let Some(daemon) = start(TestDaemon::docker) else { return };
    let place = Place::new();
    make_base(&daemon, &place);
    let [first, _] = commits(&place);
    let bench = Bench { place, daemon: &daemon, images: "127.0.0.1:9/team/engine".to_owned() };
    let large = format!("{GENERATE}; {LARGE}");
    let arguments = bench.build(&[&first], &["--run", &large]);
    let mut killed = Running::start(&mut bench.command(&arguments));
    wait_until("the build runs", || !daemon.docker_says(&["ps", "--quiet"]).is_empty());
    // Layers stand there while they are written.
    let unfinished = daemon.data().join("image/overlay2/layerdb/tmp");
    wait_until("the daemon commits", || fs::read_dir(&unfinished).is_ok_and(|mut entries| entries.next().is_some()));
    killed.signal(Signal::KILL);
    assert_eq!(killed.finish().code, None);
    assert!(!bench.names().contains(&first), "nothing that isn't proven has a name: {}", bench.names());
    assert!(!bench.place.path("cache/images/proven").exists());

    // The daemon may go on with the commit, and end it before or after the next build.
    let built = bench.built(0, &[&first], &["--run", &large]);
    assert_eq!(built[0]["is_new"], true, "what nobody has proven isn't believed: {built:#?}");
    let is_idle = || fs::read_dir(&unfinished).is_ok_and(|mut entries| entries.next().is_none());
    wait_until("the daemon has nothing to commit", is_idle);
    let again = bench.built(0, &[&first], &["--run", &large]);
    assert_eq!((&again[0]["is_new"], &again[0]["id"]), (&false.into(), &built[0]["id"]), "{again:#?}");
    assert_eq!(bench.names(), format!("{}:{first}", bench.images), "one image, and nothing in part");
    assert_eq!(daemon.docker_says(&["ps", "--all", "--quiet"]), "");
}

#[test]
fn two_builds_of_the_same_inputs_make_one_image() {
    let Some(daemon) = start(TestDaemon::docker) else { return };
    let place = Place::new();
    make_base(&daemon, &place);
    let [first, _] = commits(&place);
    let bench = Bench { place, daemon: &daemon, images: "127.0.0.1:9/team/engine".to_owned() };
    let slow = format!("{GENERATE}; python3 -c 'import time; time.sleep(3)'");
    let built = thread::scope(|scope| {
        let build = || bench.built(0, &[&first], &["--run", &slow]).remove(0);
        [scope.spawn(build), scope.spawn(build)].map(|running| running.join().unwrap())
    });
    assert_eq!(built[0]["id"], built[1]["id"]);
    let new = built.iter().filter(|built| built["is_new"] == true).count();
    assert_eq!(new, 1, "one built it, and the other waited and proved it: {built:#?}");
}
