//! What tasks cost, added up by devices and rung, and what would open more of them.

use std::collections::BTreeMap;

use isobench_schema::assessment::{Assessment, PlannedFor, RungVerdict, Standing};
use isobench_schema::environment::Rung;

use super::can_run;
use crate::number::{counted, duration, group_decimal};

/// A sum of prices, of which some may be unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Money {
    /// The sum of the known ones in US dollars.
    pub usd: f64,
    /// How many are known.
    pub known: u32,
    /// How many aren't.
    pub unknown: u32,
}

impl Money {
    fn add(&mut self, price: Option<f64>) {
        match price {
            Some(price) => {
                self.usd += price;
                self.known += 1;
            }
            None => self.unknown += 1,
        }
    }

    /// Returns the sum such as `$12.30`, `at least $12.30` where prices are unknown, or a dash where all are.
    pub fn text(self) -> String {
        match (self.known, self.unknown) {
            (0, _) => "–".to_owned(),
            (_, 0) => format!("${}", group_decimal(self.usd)),
            (_, _) => format!("at least ${}", group_decimal(self.usd)),
        }
    }
}

/// What some tasks cost together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sum {
    /// How many tasks.
    pub tasks: usize,
    /// Time without a device, in seconds.
    pub prepare_s: f64,
    /// Time that devices are held, in seconds, however many at once.
    pub device_s: f64,
    /// Time of each device, added up, in hours.
    pub device_hours: f64,
    /// The price of the devices.
    pub devices: Money,
    /// The price of the machines that prepare.
    pub builds: Money,
}

impl Sum {
    fn add(&mut self, task: &Assessment) {
        let Some(cost) = &task.cost else { return };
        self.tasks += 1;
        self.prepare_s += cost.prepare_s;
        self.device_s += cost.device_s;
        self.device_hours += cost.device_s * f64::from(cost.devices) / 3600.0;
        self.devices.add(cost.device_usd);
        self.builds.add(cost.prepare_usd);
    }

    /// Returns device-hours and their price, such as `12.5 device-hours ($37.50)`.
    pub fn devices_text(&self) -> String {
        let hours = crate::number::hours(self.device_hours);
        match self.devices.known {
            0 => format!("{hours} device-hours"),
            _ => format!("{hours} device-hours ({})", self.devices.text()),
        }
    }
}

/// The cost of the tasks that hold so many devices and whose arms come from this rung.
#[derive(Debug, Clone, PartialEq)]
pub struct CostLine {
    /// Devices held at once.
    pub devices: u32,
    /// The rung of the arm whose environment costs most; absent if no rung is taken.
    pub rung: Option<Rung>,
    /// What they cost.
    pub sum: Sum,
}

/// What the tasks that can run cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Costs {
    /// By devices and rung.
    pub lines: Vec<CostLine>,
    /// All together.
    pub total: Sum,
    /// Tasks that can run and have no cost, since something isn't known.
    pub without: usize,
    /// What is assumed of prices, each sentence once, the commonest first.
    pub assumptions: Vec<String>,
}

/// How many assumptions are shown for all tasks; each task's own page has the rest.
const SHOWN_ASSUMPTIONS: usize = 6;

/// Where the assumptions are that differ from task to task; `each` stands before it.
pub(crate) const EACH_TASK: &str = "task's own page (`--explain`) has its launches, start and window; hours are those of the \
     last look, and a task that is decided at its first takes about a quarter of them";

/// Returns what some tasks cost.
pub(super) fn costs<'a>(tasks: impl Iterator<Item = &'a Assessment>) -> Costs {
    let mut lines: BTreeMap<(u32, Option<Rung>), Sum> = BTreeMap::new();
    let (mut total, mut without) = (Sum::default(), 0);
    let mut assumptions: BTreeMap<String, usize> = BTreeMap::new();
    for task in tasks {
        let Some(cost) = &task.cost else {
            without += 1;
            continue;
        };
        lines.entry((cost.devices, lowest_rung(task))).or_default().add(task);
        total.add(task);
        for assumption in cost.assumptions.iter().filter(|assumption| is_about_price(assumption)) {
            *assumptions.entry(crate::text::clean(assumption)).or_default() += 1;
        }
    }
    let mut assumptions: Vec<(String, usize)> = assumptions.into_iter().collect();
    assumptions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Costs {
        lines: lines.into_iter().map(|((devices, rung), sum)| CostLine { devices, rung, sum }).collect(),
        total,
        without,
        assumptions: assumptions.into_iter().map(|(text, _)| text).take(SHOWN_ASSUMPTIONS).collect(),
    }
}

/// Returns whether an assumption is about a price: it holds for the total, and others are about one task.
fn is_about_price(assumption: &str) -> bool {
    ["US dollars", "$", "price"].iter().any(|word| assumption.contains(word))
}

/// Returns the lowest rung that an arm of the task takes: the one that costs most.
pub(crate) fn lowest_rung(task: &Assessment) -> Option<Rung> {
    let answers = task.ladder.values().flatten();
    answers.filter(|answer| answer.answer == RungVerdict::Taken).map(|answer| answer.rung).max()
}

/// What would let a task run that needs more devices.
enum Opening {
    /// So many devices, more than are planned.
    Devices(u32),
    /// No number of these devices.
    Never,
    /// Nobody knows how many.
    Unknown,
}

/// Returns what would let a task run. Devices that are planned already can't be what it lacks.
fn devices_that_open(task: &Assessment, planned: u32) -> Opening {
    let need = task.need.as_deref();
    if need.is_some_and(|need| need.devices.is_none()) {
        return Opening::Never;
    }
    let known = [
        task.cost.as_ref().map(|cost| cost.devices),
        need.and_then(|need| need.devices),
        need.and_then(|need| need.asked_tensor_parallel),
    ];
    let more = known.into_iter().flatten().find(|devices| *devices > planned);
    more.map_or(Opening::Unknown, Opening::Devices)
}

/// Returns what would open more tasks, or running them once more, a sentence each.
pub(super) fn openings(assessments: &[Assessment], planned_for: Option<&PlannedFor>, costs: &Costs) -> Vec<String> {
    let mut out = Vec::new();
    let mut by_devices: BTreeMap<u32, Sum> = BTreeMap::new();
    let (mut never, mut unknown) = (0_u32, 0_u32);
    let planned = planned_for.map_or(0, |planned_for| planned_for.count);
    for task in assessments.iter().filter(|task| task.standing == Standing::MoreDevices) {
        match devices_that_open(task, planned) {
            // A cost that is reckoned with other devices is none of this.
            Opening::Devices(devices) if task.cost.as_ref().is_some_and(|cost| cost.devices == devices) => {
                by_devices.entry(devices).or_default().add(task);
            }
            Opening::Devices(devices) => by_devices.entry(devices).or_default().tasks += 1,
            Opening::Never => never += 1,
            Opening::Unknown => unknown += 1,
        }
    }
    for (devices, sum) in by_devices {
        let opened = counted(u64::try_from(sum.tasks).unwrap_or(u64::MAX), "task");
        let price = if sum.device_s > 0.0 { format!(": {}", sum.devices_text()) } else { String::new() };
        out.push(format!("{} would open {opened} more{price}", counted(devices, "device")));
    }
    if never > 0 {
        out.push(format!("{} would need devices with more memory", counted(never, "task")));
    }
    if unknown > 0 {
        out.push(format!("{} would need more devices, how many isn't known", counted(unknown, "task")));
    }
    let mendable = assessments.iter().filter(|task| !can_run(task.standing) && task.standing == Standing::Cannot);
    let mendable = u64::try_from(mendable.count()).unwrap_or(u64::MAX);
    if mendable > 0 {
        out.push(format!("an edit of the dataset could open {}: `isobench lint` says what", counted(mendable, "task")));
    }
    if costs.total.tasks > 0 {
        let again = costs.total.devices_text();
        let spared = duration(costs.total.prepare_s);
        out.push(format!(
            "running every task again would take at most {again}, and none of the {spared} of preparing, which is kept"
        ));
    }
    out
}
