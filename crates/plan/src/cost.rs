//! What tasks cost in time and money, with what is assumed said.
//!
//! A task costs its preparation once (environments, builds, the model's files), which holds no device, and blocks times arms
//! launches, each of which holds all its devices. A launch's time is [`crate::estimate::LaunchShape`]'s. Builds of one native
//! key are shared: a total counts each once.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::assessment::{Cost, Standing};
use isobench_schema::environment::Rung;
use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::task::Limits;
use isobench_schema::workload::Workload;

use crate::estimate::{self, LaunchShape};
use crate::knowledge::devices::DeviceRow;

/// What costs are reckoned with. Everything can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct CostSettings {
    /// Seconds to pull and unpack an image of about 20 GB.
    pub image_s: f64,
    /// Seconds to download a wheel of about 0.4 GB and to install it with its packages.
    pub wheel_s: f64,
    /// Seconds to make an environment whose native files are there already, with its packages.
    pub overlay_s: f64,
    /// Seconds to build the native files of one key: for one architecture of devices, with 8 jobs. All architectures of a
    /// release take 30 to 75 minutes.
    pub build_s: f64,
    /// GB of a model's files downloaded in a second, once for a task.
    pub download_gb_per_s: f64,
    /// US dollars for an hour of one device, instead of the table's.
    pub device_usd_per_hour: Option<f64>,
    /// US dollars for an hour of a machine that builds, if its price is known.
    pub build_usd_per_hour: Option<f64>,
}

impl Default for CostSettings {
    fn default() -> Self {
        Self {
            image_s: 300.0,
            wheel_s: 180.0,
            overlay_s: estimate::VENV_S,
            build_s: 900.0,
            download_gb_per_s: 0.2,
            device_usd_per_hour: None,
            build_usd_per_hour: None,
        }
    }
}

/// Everything that a task's cost follows from.
#[derive(Debug, Clone)]
pub struct CostInput<'a> {
    /// The rung that each arm takes.
    pub rungs: &'a BTreeMap<ArmId, Rung>,
    /// The native keys that are built for it, by itself or shared with other tasks.
    pub builds: &'a BTreeSet<String>,
    /// Blocks.
    pub blocks: u32,
    /// The shortest measured window in seconds.
    pub window_s: f64,
    /// Seconds of a start ([`crate::requirements::start_s`]).
    pub start_s: f64,
    /// The load.
    pub workload: &'a Workload,
    /// Deadlines.
    pub limits: &'a Limits,
    /// Devices that each launch holds.
    pub devices: u32,
    /// Their kind, if one is planned for.
    pub device: Option<&'a DeviceRow>,
    /// GB of the model's files; 0 if they are there.
    pub download_gb: f64,
}

/// Returns what a task costs by itself: as if it shared no build with another.
pub fn cost(input: &CostInput<'_>, settings: &CostSettings) -> Cost {
    let launch = LaunchShape {
        start_s: input.start_s,
        window_s: input.window_s,
        workload: input.workload,
        limits: input.limits,
    };
    let arms = count(input.rungs.len());
    let launches = f64::from(input.blocks) * arms;
    let device_s = launches * launch.seconds();
    let environments: f64 = input.rungs.values().map(|rung| environment_s(*rung, settings)).sum();
    let builds = count(input.builds.len());
    let download_s =
        if settings.download_gb_per_s > 0.0 { input.download_gb / settings.download_gb_per_s } else { 0.0 };
    let prepare_s = environments + builds * settings.build_s + download_s;
    let price = settings.device_usd_per_hour.or_else(|| input.device?.price_usd_per_hour);
    let hours = |seconds: f64| seconds / 3600.0;
    Cost {
        prepare_s,
        device_s,
        devices: input.devices,
        device_usd: price.map(|price| hours(device_s) * f64::from(input.devices) * price),
        prepare_usd: settings.build_usd_per_hour.map(|price| hours(prepare_s) * price),
        assumptions: assumptions(input, settings, &launch),
    }
}

/// Returns the seconds to make one arm's environment, builds aside.
fn environment_s(rung: Rung, settings: &CostSettings) -> f64 {
    estimate::ENVIRONMENT_S
        + match rung {
            Rung::Image => settings.image_s,
            Rung::Wheel => settings.wheel_s,
            Rung::NativeTree | Rung::Overlay | Rung::Source => settings.overlay_s,
        }
}

fn assumptions(input: &CostInput<'_>, settings: &CostSettings, launch: &LaunchShape<'_>) -> Vec<String> {
    let mut said = vec![format!(
        "{} blocks of {} launches, each of {:.0} s: a start of {:.0} s, a window of {:.0} s or a little more, warm-up, probes and stop",
        input.blocks,
        input.rungs.len(),
        launch.seconds(),
        input.start_s,
        input.window_s
    )];
    let mut by_rung: BTreeMap<Rung, u32> = BTreeMap::new();
    for rung in input.rungs.values() {
        *by_rung.entry(*rung).or_default() += 1;
    }
    for (rung, arms) in by_rung {
        said.push(format!("{:.0} s for each of {arms} environments by rung `{rung}`", environment_s(rung, settings)));
    }
    if !input.builds.is_empty() {
        said.push(format!(
            "{:.0} min for each of {} native builds, for one architecture of devices with 8 jobs (all architectures: 30 to 75 min)",
            settings.build_s / 60.0,
            input.builds.len()
        ));
    }
    if input.download_gb > 0.0 {
        said.push(format!(
            "{:.1} GB of the model's files at {} GB/s, once",
            input.download_gb, settings.download_gb_per_s
        ));
    }
    said.push(match (settings.device_usd_per_hour, input.device) {
        (Some(price), _) => format!("{price} US dollars for an hour of one device, as set"),
        (None, Some(device)) => match (device.price_usd_per_hour, &device.price_source, &device.price_date) {
            (Some(price), Some(source), Some(date)) => {
                format!("{price} US dollars for an hour of one {} ({source}, {date})", device.name)
            }
            _ => format!("the price of {} is not known; set one", device.name),
        },
        (None, None) => "no device is planned for, so that its price is not known".to_owned(),
    });
    said
}

/// One task in a total.
#[derive(Debug, Clone)]
pub struct Priced<'a> {
    /// The task.
    pub task: &'a TaskId,
    /// How far it comes.
    pub standing: Standing,
    /// Its cost, on as many devices as it needs.
    pub cost: &'a Cost,
    /// The lowest rung that an arm of it takes.
    pub rung: Rung,
    /// The kind of device, such as `h100-sxm`.
    pub device: &'a str,
    /// The native keys that are built for it.
    pub builds: &'a BTreeSet<String>,
}

/// A sum of costs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sum {
    /// Tasks.
    pub tasks: u32,
    /// Seconds of preparation, each shared build once.
    pub prepare_s: f64,
    /// Seconds that launches take.
    pub launch_s: f64,
    /// Seconds of devices: launches times their devices.
    pub device_s: f64,
    /// Different native keys that are built.
    pub builds: u32,
    /// US dollars for devices, of the tasks whose price is known.
    pub device_usd: f64,
    /// US dollars for preparation, of the tasks whose price is known.
    pub prepare_usd: f64,
    /// Tasks whose device's price isn't known.
    pub unpriced: u32,
}

/// What several tasks cost together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Totals {
    /// All together.
    pub all: Sum,
    /// By the lowest rung of each task. A build that is shared by tasks of two rungs counts in both, and in all once.
    pub by_rung: BTreeMap<Rung, Sum>,
    /// By the kind and number of devices: `4 x h100-sxm`.
    pub by_device: BTreeMap<String, Sum>,
}

/// Returns what tasks cost together, with each native build counted once.
pub fn total(tasks: &[Priced<'_>], settings: &CostSettings) -> Totals {
    let mut by_rung: BTreeMap<Rung, Vec<&Priced<'_>>> = BTreeMap::new();
    let mut by_device: BTreeMap<String, Vec<&Priced<'_>>> = BTreeMap::new();
    for task in tasks {
        by_rung.entry(task.rung).or_default().push(task);
        by_device.entry(format!("{} x {}", task.cost.devices, task.device)).or_default().push(task);
    }
    let every: Vec<&Priced<'_>> = tasks.iter().collect();
    Totals {
        all: sum(&every, settings),
        by_rung: by_rung.iter().map(|(rung, tasks)| (*rung, sum(tasks, settings))).collect(),
        by_device: by_device.iter().map(|(device, tasks)| (device.clone(), sum(tasks, settings))).collect(),
    }
}

fn sum(tasks: &[&Priced<'_>], settings: &CostSettings) -> Sum {
    let mut sum = Sum::default();
    let mut keys: BTreeSet<&String> = BTreeSet::new();
    for task in tasks {
        let cost = task.cost;
        sum.tasks += 1;
        sum.prepare_s += cost.prepare_s - count(task.builds.len()) * settings.build_s;
        sum.launch_s += cost.device_s;
        sum.device_s += cost.device_s * f64::from(cost.devices);
        sum.device_usd += cost.device_usd.unwrap_or(0.0);
        sum.unpriced += u32::from(cost.device_usd.is_none());
        keys.extend(task.builds);
    }
    sum.builds = u32::try_from(keys.len()).unwrap_or(u32::MAX);
    sum.prepare_s += f64::from(sum.builds) * settings.build_s;
    sum.prepare_usd = settings.build_usd_per_hour.map_or(0.0, |price| sum.prepare_s / 3600.0 * price);
    sum
}

/// What a retry may use that the plan before it couldn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetryWith {
    /// Whether environments may be built from source.
    pub builds: bool,
    /// The devices that a launch may hold, if more than before.
    pub devices: Option<u32>,
}

/// Returns the tasks that a retry changes: those that need a build, if builds are allowed, and those that need no more devices
/// than there will be.
pub fn changed_by_retry<'t, 'a>(tasks: &'t [Priced<'a>], with: RetryWith) -> Vec<&'t Priced<'a>> {
    let changes = |task: &&Priced<'_>| match task.standing {
        Standing::Build => with.builds,
        Standing::MoreDevices => with.devices.is_some_and(|devices| task.cost.devices <= devices),
        Standing::AsIs | Standing::Repaired | Standing::Cannot => false,
    };
    tasks.iter().filter(changes).collect()
}

/// Returns what a retry would cost: the tasks that it changes, and nothing again of the others.
pub fn retry(tasks: &[Priced<'_>], with: RetryWith, settings: &CostSettings) -> Totals {
    let changed: Vec<Priced<'_>> = changed_by_retry(tasks, with).into_iter().cloned().collect();
    total(&changed, settings)
}

fn count(items: usize) -> f64 {
    f64::from(u32::try_from(items).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
