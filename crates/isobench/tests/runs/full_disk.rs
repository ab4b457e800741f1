//! A full disk stops a run with a clear error and an intact record, and with more room it goes on.

use isobench_schema::outcome::Outcome;
use isobench_testkit::Fault;

use crate::support::small_disk::SmallDisk;
use crate::support::{Place, complete_launches};

/// Runs into a full disk again and again, with a little more room each time, and checks the record each time.
fn check(place: &Place, disk: &SmallDisk, sizes_kib: impl Iterator<Item = u32>, code: i32) {
    let command = ["run", "task", "--out", "disk/run", "--allow-unisolated"];
    let mut stopped = 0;
    for size in sizes_kib {
        disk.grow(&format!("{size}k"));
        let finished = place.finish(command);
        if finished.code == Some(code) {
            break;
        }
        assert_eq!(finished.code, Some(3), "{size} KiB: {finished:?}");
        finished.says(&["the disk is full: free some room, then give the same command again to resume"]);
        stopped += 1;
        if place.path("disk/run/events.jsonl").is_file() {
            let found = place.expect(0, &["verify", "disk/run"]);
            assert!(found.stdout.contains("is sound"), "{found:?}");
        }
    }
    assert!(stopped > 0, "it was never full");
    disk.grow("256m");
    place.expect(code, &command);
    place.check_sound("disk/run");
}

#[test]
fn a_disk_that_is_full_anywhere_stops_the_run_which_goes_on_with_more_room() {
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(&place.path("disk"), "32k") else { return };
    let mut text = place.task_text();
    text.blocks = 1;
    place.write_task(&text);
    check(&place, &disk, [32, 48, 64, 96, 128, 160, 200, 260, 400, 4000].into_iter(), 0);
    let launches = complete_launches(&place.path("disk/run"));
    assert_eq!(launches.len(), 2);
    assert!(launches.iter().all(|record| record.outcome == Outcome::Measured), "{launches:?}");
}

#[test]
fn an_engine_that_fills_the_disk_with_its_log_is_not_said_to_have_crashed() {
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(&place.path("disk"), "4m") else { return };
    let mut text = place.with_faults(place.task_text(), "flood", &[Fault::Flood(20_000_000)]);
    text.blocks = 1;
    place.write_task(&text);
    check(&place, &disk, [4000, 6000].into_iter(), 0);
    let launches = complete_launches(&place.path("disk/run"));
    assert!(launches.iter().all(|record| record.outcome == Outcome::Measured), "{launches:?}");
}
