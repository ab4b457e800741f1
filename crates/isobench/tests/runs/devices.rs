//! What the driver says of devices, told by a made-up tool of the driver.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use isobench_schema::check::Check;
use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::failure::{Failure, FailureClass};

use crate::support::{Finished, Place, complete_launches, events};

/// Runs a task of one block on a machine whose device reports these reasons all the time.
fn run(place: &Place, reasons: &str) -> Finished {
    let tools = place.path("tools");
    fs::create_dir_all(&tools).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n*--loop-ms*) while :; do echo '{reasons}, 1200, 80'; sleep 0.01; done ;;\n\
         *) echo 'Made Up 3000, 1000 MiB, 1.0' ;;\nesac\n"
    );
    fs::write(tools.join("nvidia-smi"), script).unwrap();
    fs::set_permissions(tools.join("nvidia-smi"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut text = place.task_text();
    text.blocks = 1;
    text.requests = 64;
    place.write_task(&text);
    let own = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(tools).chain(std::env::split_paths(&own))).unwrap();
    Finished::of(place.isobench(["run", "task", "--out", "run", "--quiet"]).env("PATH", path))
}

#[test]
fn a_slow_down_by_heat_spoils_the_block() {
    let place = Place::new();
    run(&place, "0x0000000000000040");
    let mut checks = Vec::new();
    for event in events(&place.path("run")) {
        if let EventKind::BlockEnded { end: BlockEnd::Spoilt { failure: Failure { check, .. } }, .. } = event.kind {
            checks.extend(check.map(|check| check.name));
        }
    }
    assert!(checks.contains(&Check::DeviceNotSlowed), "{checks:?}");
    place.check_nothing_left("run");
}

#[test]
fn a_power_cap_is_told_and_costs_nothing() {
    let place = Place::new();
    let finished = run(&place, "0x0000000000000004");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let launches = complete_launches(&place.path("run"));
    let mut incidents = launches.iter().flat_map(|launch| &launch.incidents);
    assert!(incidents.any(|incident| incident.class == FailureClass::DevicePowerCapped), "{launches:#?}");
    let device = launches.iter().filter_map(|launch| launch.device.as_ref()).find(|device| device.samples > 0).unwrap();
    assert_eq!((device.slowed, device.lowest_mhz, device.hottest_celsius), (0, Some(1200), Some(80)));
    place.check_sound("run");
}
