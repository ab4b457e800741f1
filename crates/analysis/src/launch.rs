//! One launch as it comes to the judge: its record, and what was read of its requests.

use isobench_schema::cause::Cause;
use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::outcome::{ClientLoad, DeviceClocks, LaunchRecord, Outcome};
use isobench_schema::units::Millis;

use crate::measure::LaunchDigest;

/// A launch with everything that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchInput {
    /// Its record.
    pub record: LaunchRecord,
    /// What was read of its request records, if it has any that can be read.
    pub digest: Option<LaunchDigest>,
    /// Why it failed, as its logs say it; absent if it didn't fail, or the logs weren't looked at.
    pub cause: Option<Cause>,
}

impl LaunchInput {
    /// Returns why the launch doesn't count, seen for itself: its failure, or else the first check that it breaks.
    ///
    /// What it takes other launches to see, such as wrong answers, is found by [`crate::judge`].
    pub fn failure(&self) -> Option<Failure> {
        self.failures().into_iter().next()
    }

    /// Returns its failure, or else every check that it breaks by itself, the one that counts first.
    pub fn failures(&self) -> Vec<Failure> {
        match (&self.record.outcome, &self.digest) {
            (Outcome::Failed { failure }, _) => vec![failure.clone()],
            (Outcome::Interrupted, _) => {
                vec![Failure::new(FailureStage::Workload, FailureClass::Interrupted, "the launch was cut short")]
            }
            (Outcome::Measured, None) => {
                let message = "the request records are missing or can't be read";
                let failure = Failure::new(FailureStage::Parse, FailureClass::EvidenceUnreadable, message);
                vec![failure.breaking(Check::RecordsReadable)]
            }
            (Outcome::Measured, Some(digest)) => {
                let client = self.record.client.as_ref().and_then(client_bound);
                let device = self.record.device.as_ref().and_then(device_slowed);
                digest.findings.iter().cloned().chain(client).chain(device).collect()
            }
        }
    }
}

/// The client's thread may run for this share of the window.
const BUSY: f64 = 0.7;
/// And wait for a processor for this share of it.
const WAITED: f64 = 0.3;

/// Checks that the client was not the bottleneck: its thread was idle for most of the window, and had its processor when it
/// wanted it.
fn client_bound(client: &ClientLoad) -> Option<Failure> {
    let share = |part: Millis| if client.window_ms.get() > 0.0 { part.get() / client.window_ms.get() } else { 0.0 };
    let (busy, waited) = (share(client.busy_ms), share(client.waited_ms));
    let (check, message) = match (busy > BUSY, waited > WAITED) {
        (false, false) => return None,
        (true, _) => (
            Check::ClientBusy.above(busy, BUSY, CheckUnit::Share),
            format!("the client was busy for {:.0} % of the window, more than {:.0} %", 100.0 * busy, 100.0 * BUSY),
        ),
        (false, true) => (
            Check::ClientWait.above(waited, WAITED, CheckUnit::Share),
            format!(
                "the client waited for a processor for {:.0} % of the window, more than {:.0} %",
                100.0 * waited,
                100.0 * WAITED
            ),
        ),
    };
    Some(Failure::new(FailureStage::Validity, FailureClass::ClientBound, message).breaking(check).transient())
}

/// Checks that no device was slowed down by its heat or its hardware in the window. A power cap is the same in every arm of
/// the block, and no fault.
fn device_slowed(device: &DeviceClocks) -> Option<Failure> {
    if device.slowed == 0 {
        return None;
    }
    let message = format!(
        "a device was slowed down in {} of {} looks at it during the window: {}",
        device.slowed,
        device.samples,
        device.reasons.join(", ")
    );
    let check = Check::DeviceNotSlowed.above(f64::from(device.slowed), 0.0, CheckUnit::Count);
    Some(Failure::new(FailureStage::Validity, FailureClass::DeviceSlowed, message).breaking(check).transient())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(busy_ms: f64, waited_ms: f64, expected: Option<&str>) {
        let ms = |value| Millis::new(value).unwrap();
        let client =
            ClientLoad { window_ms: ms(1000.0), busy_ms: ms(busy_ms), waited_ms: ms(waited_ms), engine_ms: None };
        assert_eq!(client_bound(&client).map(|failure| failure.message).as_deref(), expected);
    }

    #[test]
    fn a_client_that_is_busy_or_starved_is_the_bottleneck() {
        check(700.0, 300.0, None);
        check(710.0, 0.0, Some("the client was busy for 71 % of the window, more than 70 %"));
        check(0.0, 310.0, Some("the client waited for a processor for 31 % of the window, more than 30 %"));
    }

    #[test]
    fn heat_is_a_fault_and_a_power_cap_is_none() {
        let clocks = |slowed| DeviceClocks {
            samples: 30,
            slowed,
            power_capped: 30,
            reasons: vec!["hardware thermal slow-down".to_owned()],
            lowest_mhz: Some(900),
            highest_mhz: Some(1980),
            hottest_celsius: Some(91),
        };
        assert_eq!(device_slowed(&clocks(0)), None);
        let failure = device_slowed(&clocks(3)).unwrap();
        let expected = "a device was slowed down in 3 of 30 looks at it during the window: hardware thermal slow-down";
        assert_eq!((failure.class, failure.message.as_str()), (FailureClass::DeviceSlowed, expected));
        assert!(failure.transient);
    }
}
