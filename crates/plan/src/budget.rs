//! What a run may use up: time and money of the device, and blocks of each task.

use isobench_schema::plan::PlannedTask;

/// Bounds of a run. Absent is unbounded.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// The most blocks of a task.
    pub max_blocks: Option<u32>,
    /// Seconds of launches, of all attempts.
    pub seconds: Option<f64>,
    /// US dollars, with the price of one device (or of a machine without one) for an hour.
    pub money: Option<Money>,
}

/// A bound in money.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Money {
    /// US dollars.
    pub usd: f64,
    /// US dollars for an hour of one device.
    pub usd_per_hour: f64,
}

/// What was used up so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Seconds of launches.
    pub seconds: f64,
    /// Seconds of launches times the devices that they held, one at least.
    pub device_seconds: f64,
}

impl Spent {
    /// Returns what a task uses in so many seconds, on top of this.
    #[must_use]
    pub fn and(self, task: &PlannedTask, seconds: f64) -> Self {
        let devices = f64::from(task.requirements.devices.max(1));
        Self { seconds: self.seconds + seconds, device_seconds: self.device_seconds + seconds * devices }
    }
}

impl Budget {
    /// Returns whether time or money is bounded: then the run brings every task to its first look before any is taken
    /// further, so that what early decisions save goes to the tasks that are still undecided.
    pub fn is_shared(&self) -> bool {
        self.seconds.is_some() || self.money.is_some()
    }

    /// Returns whether so much may be used.
    pub fn allows(&self, spent: Spent) -> bool {
        self.exceeded(spent).is_none()
    }

    /// Returns which bound is exceeded by so much, if one is.
    pub fn exceeded(&self, spent: Spent) -> Option<String> {
        if let Some(seconds) = self.seconds.filter(|seconds| spent.seconds > *seconds) {
            return Some(format!("the budget of {:.1} minutes", seconds / 60.0));
        }
        let money = self.money.filter(|money| spent.device_seconds / 3600.0 * money.usd_per_hour > money.usd)?;
        Some(format!("the budget of {:.2} US dollars, at {:.2} an hour of one device", money.usd, money.usd_per_hour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_named_when_they_are_exceeded() {
        let spent = Spent { seconds: 600.0, device_seconds: 4800.0 };
        let minutes = Budget { seconds: Some(599.0), ..Budget::default() };
        assert_eq!(minutes.exceeded(spent).as_deref(), Some("the budget of 10.0 minutes"));
        let money = |usd| Budget { money: Some(Money { usd, usd_per_hour: 3.0 }), ..Budget::default() };
        // 4,800 device-seconds are 4/3 hours: 4 dollars.
        assert!(money(4.0).allows(spent) && !money(3.99).allows(spent));
        assert!(Budget::default().allows(spent) && !Budget::default().is_shared() && minutes.is_shared());
    }
}
