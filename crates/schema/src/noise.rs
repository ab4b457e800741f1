//! Noise: how far block differences spread, kept by machine, model and class of workload, and what is known from it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::facts::Host;
use crate::failure::spelt_enum;
use crate::format::{self, Stored};
use crate::ids::{ArmId, Digest, RunId, TaskId};
use crate::measurement::MetricName;
use crate::plan::PlannedTask;
use crate::tool::Tool;
use crate::units::Millis;
use crate::verdict::Verdict;
use crate::workload::{Arrival, Workload, WorkloadKind};

spelt_enum!(
    /// When a class of workloads sends its requests.
    ArrivalClass {
        /// So many under way at any time.
        Closed = "closed",
        /// At a rate of their own: Poisson, gamma, constant, or in stages.
        Open = "open",
        /// Many at the same moment, again and again.
        Bursts = "bursts",
        /// At the times of a trace.
        Trace = "trace",
        /// Every request at once.
        AllAtOnce = "all-at-once",
    }
);

/// Workloads that are alike enough for the noise of one to say something about another. Numbers are upper bounds of
/// buckets, powers of 4: a prompt of 1,000 tokens lies in the bucket up to 1,024, one of 1,025 in that up to 4,096.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadClass {
    /// The kind of benchmark.
    pub kind: WorkloadKind,
    /// When requests are sent.
    pub arrival: ArrivalClass,
    /// The bucket of requests under way (closed), of the highest rate in requests per second (open), of a burst's size, or
    /// of all requests (all at once). A trace has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<u32>,
    /// The bucket of a prompt's tokens, if all prompts have one length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u32>,
    /// The bucket of an answer's tokens.
    pub output_tokens: u32,
    /// The engine's own benchmark script, if one measures instead of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Tool>,
}

impl WorkloadClass {
    /// Returns the class of a workload.
    pub fn of(workload: &Workload) -> Self {
        let (arrival, load) = match &workload.arrival {
            Arrival::Closed { concurrency, .. } => (ArrivalClass::Closed, Some(bucket(f64::from(*concurrency)))),
            Arrival::Open { rate_per_s, .. } | Arrival::Constant { rate_per_s } => {
                (ArrivalClass::Open, Some(bucket(*rate_per_s)))
            }
            Arrival::Stages { stages, .. } => {
                let highest = stages.iter().map(|stage| stage.from_per_s.max(stage.to_per_s)).fold(0.0, f64::max);
                (ArrivalClass::Open, Some(bucket(highest)))
            }
            Arrival::Bursts { size, .. } => (ArrivalClass::Bursts, Some(bucket(f64::from(*size)))),
            Arrival::Trace { .. } => (ArrivalClass::Trace, None),
            Arrival::AllAtOnce => (ArrivalClass::AllAtOnce, Some(bucket(f64::from(workload.requests)))),
        };
        Self {
            kind: workload.kind,
            arrival,
            load,
            input_tokens: workload.prompts.input_tokens().map(|tokens| bucket(f64::from(tokens))),
            output_tokens: bucket(f64::from(workload.output_tokens)),
            script: workload.script.as_ref().map(|script| script.tool),
        }
    }
}

impl fmt::Display for WorkloadClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.arrival)?;
        if let Some(load) = self.load {
            write!(formatter, " ≤{load}")?;
        }
        match self.input_tokens {
            Some(tokens) => write!(formatter, ", in ≤{tokens}")?,
            None => formatter.write_str(", in varies")?,
        }
        write!(formatter, ", out ≤{}", self.output_tokens)?;
        self.script.map_or(Ok(()), |script| write!(formatter, ", by {script}"))
    }
}

/// Returns the least power of 4 that isn't below `value`, 2^32 − 1 at most.
fn bucket(value: f64) -> u32 {
    let mut bound = 1_u32;
    while f64::from(bound) < value && bound < u32::MAX {
        bound = bound.saturating_mul(4);
    }
    bound
}

/// Of what a spread is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseKey {
    /// The host's fingerprint.
    pub host: String,
    /// The devices that a launch uses, such as `2 x NVIDIA H100 80GB HBM3`, or `cpu` with the processor's name.
    pub device: String,
    /// The model: its name, or of a folder the folder's name.
    pub model: String,
    /// The class of the workload.
    pub class: WorkloadClass,
}

impl NoiseKey {
    /// Returns the key of a task on a machine.
    pub fn of(host: &Host, task: &PlannedTask) -> Self {
        let unknown = || "unknown".to_owned();
        let device = match task.requirements.devices {
            0 => format!("cpu: {}", host.processor.clone().unwrap_or_else(unknown)),
            count => {
                let name = host.devices.first().map_or_else(unknown, |device| device.name.clone());
                if count == 1 { name } else { format!("{count} x {name}") }
            }
        };
        // A name such as `org/model` is a name as a whole; a folder may lie elsewhere on another machine.
        let model = task.server.model.trim_end_matches('/');
        let model = if model.starts_with('/') { model.rsplit('/').next().unwrap_or(model) } else { model };
        let class = WorkloadClass::of(&task.workload);
        Self { host: host.fingerprint.clone(), device, model: model.to_owned(), class }
    }
}

spelt_enum!(
    /// What kind of differences a spread is of.
    SpreadOrigin {
        /// The baseline against itself.
        AgainstItself = "against-itself",
        /// A change against the baseline.
        Contrast = "contrast",
        /// The baseline under a hidden name against the baseline.
        Sentinel = "sentinel",
    }
);

/// The spread that a run showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseEntry {
    /// Of what.
    pub key: NoiseKey,
    /// Of which metric. Spreads of different metrics say nothing of each other.
    pub metric: MetricName,
    /// The standard deviation of block differences about their mean, as log ratios.
    pub deviation: f64,
    /// Its degrees of freedom: differences less one.
    pub degrees: u32,
    /// What the differences are of.
    pub origin: SpreadOrigin,
    /// The run.
    pub run: RunId,
    /// The digest of its plan.
    pub plan: Digest,
    /// When it began: milliseconds since 1970 by its first event.
    pub began_ms: Millis,
    /// The task.
    pub task: TaskId,
    /// The arm that is asked about.
    pub of: ArmId,
    /// The arm that it is compared with.
    pub against: ArmId,
    /// When the entry was made (RFC 3339).
    pub date: String,
    /// The version of isobench that made it.
    pub isobench: String,
}

impl NoiseEntry {
    /// Returns whether two entries are of the same differences, the later one of more of them, perhaps.
    pub fn is_of_same(&self, other: &Self) -> bool {
        (&self.run, &self.plan, self.began_ms, &self.task) == (&other.run, &other.plan, other.began_ms, &other.task)
            && (self.metric, &self.of, &self.against) == (other.metric, &other.of, &other.against)
    }

    /// Returns the entry's name: the first 12 digits of the digest of its line.
    ///
    /// # Errors
    /// Never for an entry whose numbers are finite; the signature follows the serialiser's.
    pub fn id(&self) -> Result<String, serde_json::Error> {
        let line = format::to_line(&NoiseRecord::Spread(Box::new(self.clone())))?;
        Ok(Digest::of(line.as_bytes()).short().to_owned())
    }
}

/// One line of the library of spreads. Lines are only ever added: a later entry of the same differences takes the place of an
/// earlier one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum NoiseRecord {
    /// A spread.
    Spread(Box<NoiseEntry>),
    /// An entry that doesn't count any more.
    Removed(NoiseRemoval),
}

impl Stored for NoiseRecord {
    const NAME: &'static str = "noise";
    const VERSION: u32 = 1;
}

/// An entry that a person took out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseRemoval {
    /// The entry's name.
    pub entry: String,
    /// When it was taken out (RFC 3339).
    pub date: String,
    /// The version of isobench that did.
    pub isobench: String,
}

spelt_enum!(
    /// Whose spreads a forecast borrows from.
    NoiseGroup {
        /// Other classes of workload of the same model on the same devices of the same host.
        SameModel = "same-model",
        /// Other models too, on the same devices of the same host.
        SameDevice = "same-device",
        /// Every entry of the metric.
        All = "all",
    }
);

/// What is known of a spread, from its own entries and those of its neighbours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownSpread {
    /// The standard deviation of block differences, as log ratios.
    pub deviation: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The degrees of freedom that it rests on.
    pub degrees: f64,
    /// Entries of exactly this key and metric.
    pub own_entries: u32,
    /// Their degrees of freedom together.
    pub own_degrees: u32,
    /// What was borrowed from others, if there were enough of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrowed: Option<BorrowedSpread>,
}

/// The prior that neighbours give: a scaled inverse chi-squared distribution of variances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BorrowedSpread {
    /// The group.
    pub group: NoiseGroup,
    /// How many keys of the group have a spread.
    pub keys: u32,
    /// The square root of the prior's variance.
    pub deviation: f64,
    /// The prior's degrees of freedom; absent if they are infinite, because the keys differ no more than chance makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degrees: Option<f64>,
}

/// How far the block differences of a task spread, beside what was forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadFound {
    /// What the differences are of.
    pub origin: SpreadOrigin,
    /// The arm that is asked about.
    pub of: ArmId,
    /// The arm that it is compared with.
    pub against: ArmId,
    /// The standard deviation of block differences about their mean, as log ratios.
    pub deviation: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Its degrees of freedom: differences less one.
    pub degrees: u32,
    /// What the plan expected, if it knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<f64>,
}

/// The smallest difference that looks find.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookEffect {
    /// The blocks of the last of the looks.
    pub blocks: u32,
    /// The smallest log ratio that the looks up to this one find with a power of 80 %.
    pub mde: f64,
}

/// How many blocks a difference needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeededBlocks {
    /// The relative difference: 0.02 is 2 %.
    pub difference: f64,
    /// The most blocks of a design that finds it with a power of 80 %, absent if 10,000 are too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
}

/// What a run says of the noise of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseTask {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// Of what it is the noise.
    pub key: NoiseKey,
    /// The metric.
    pub metric: MetricName,
    /// The smallest relative difference that matters to the task.
    pub margin: f64,
    /// The spread, unless too few blocks could be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<SpreadFound>,
    /// The verdict on the baseline against itself, if the run was one: `better` and `worse` are false alarms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_itself: Option<Verdict>,
    /// The name of the library's entry that was made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// What the library says of such tasks now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownSpread>,
    /// What the looks of a design find, by what is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<LookEffect>,
    /// How many blocks the margin and 2, 5 and 10 % need, by what is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed: Vec<NeededBlocks>,
}

/// What `isobench noise` found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseReport {
    /// The file of the library.
    pub library: String,
    /// Every task of the runs.
    pub tasks: Vec<NoiseTask>,
}

impl Stored for NoiseReport {
    const NAME: &'static str = "noise-report";
    const VERSION: u32 = 1;
}

/// An entry of the library under its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedEntry {
    /// The name.
    pub id: String,
    /// The entry.
    pub entry: NoiseEntry,
    /// What is known of its key and metric, from all entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownSpread>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Api, Probes, Prompts, Stage, TokenCounter};
    use std::collections::BTreeMap;

    fn workload(arrival: Arrival, input_tokens: u32, output_tokens: u32) -> Workload {
        Workload {
            kind: WorkloadKind::Serving,
            api: Api::Completions,
            requests: 100,
            prompts: Prompts::Words { input_tokens },
            output_tokens,
            ignore_eos: true,
            temperature: 0.0,
            arrival,
            max_in_flight: None,
            warm_up_requests: 8,
            probes: Probes { count: 0, output_tokens: 1 },
            counter: TokenCounter::Whitespace,
            extra_body: BTreeMap::new(),
            script: None,
        }
    }

    #[test]
    fn classes_are_buckets_of_powers_of_four() {
        let stages = vec![
            Stage { seconds: 1.0, from_per_s: 1.0, to_per_s: 3.0 },
            Stage { seconds: 1.0, from_per_s: 20.0, to_per_s: 2.0 },
        ];
        for (arrival, input, output, expected) in [
            (Arrival::closed(8), 1000, 128, "serving closed ≤16, in ≤1024, out ≤256"),
            (Arrival::closed(16), 1024, 256, "serving closed ≤16, in ≤1024, out ≤256"),
            (Arrival::closed(1), 1025, 1, "serving closed ≤1, in ≤4096, out ≤1"),
            (Arrival::Open { rate_per_s: 0.3, burstiness: 1.0 }, 0, 4, "serving open ≤1, in ≤1, out ≤4"),
            (Arrival::Constant { rate_per_s: 4.5 }, 5, 5, "serving open ≤16, in ≤16, out ≤16"),
            (Arrival::Stages { stages, burstiness: None }, 5, 5, "serving open ≤64, in ≤16, out ≤16"),
            (Arrival::Bursts { size: 60, period_s: 2.0 }, 5, 5, "serving bursts ≤64, in ≤16, out ≤16"),
            (Arrival::Trace { speed: 1.0 }, 5, 5, "serving trace, in ≤16, out ≤16"),
            (Arrival::AllAtOnce, 5, 5, "serving all-at-once ≤256, in ≤16, out ≤16"),
        ] {
            let class = WorkloadClass::of(&workload(arrival, input, output));
            assert_eq!(class.to_string(), expected);
        }
        let dataset = Prompts::Dataset { name: "sharegpt".to_owned(), options: BTreeMap::new() };
        let varied = Workload { prompts: dataset, ..workload(Arrival::closed(1), 1, 1) };
        assert_eq!(WorkloadClass::of(&varied).to_string(), "serving closed ≤1, in varies, out ≤1");
    }

    #[test]
    fn buckets_have_an_end() {
        assert_eq!((bucket(f64::MAX), bucket(f64::NAN), bucket(-1.0)), (u32::MAX, 1, 1));
        assert_eq!(bucket(f64::from(u32::MAX)), u32::MAX);
    }

    fn entry() -> NoiseEntry {
        NoiseEntry {
            key: NoiseKey {
                host: "abc".to_owned(),
                device: "cpu: x".to_owned(),
                model: "m".to_owned(),
                class: WorkloadClass::of(&workload(Arrival::closed(4), 32, 48)),
            },
            metric: MetricName::OutputThroughput,
            deviation: 0.012,
            degrees: 11,
            origin: SpreadOrigin::AgainstItself,
            run: RunId::new("r").unwrap(),
            plan: Digest::of(b"plan"),
            began_ms: Millis::new(7.0).unwrap(),
            task: TaskId::new("t").unwrap(),
            of: ArmId::Human,
            against: ArmId::Baseline,
            date: "2026-01-01T00:00:00Z".to_owned(),
            isobench: "0.1.0".to_owned(),
        }
    }

    #[test]
    fn lines_of_the_library_round_trip() {
        let removal = NoiseRemoval { entry: entry().id().unwrap(), date: "d".to_owned(), isobench: "0.1.0".to_owned() };
        for record in [NoiseRecord::Spread(Box::new(entry())), NoiseRecord::Removed(removal)] {
            let line = format::to_line(&record).unwrap();
            assert!(line.starts_with(r#"{"format":"isobench.noise/1","record":""#), "{line}");
            assert_eq!(format::from_slice::<NoiseRecord>(line.as_bytes()).unwrap(), record);
        }
    }

    #[test]
    fn an_entry_of_a_run_that_went_on_is_of_the_same_differences() {
        let later = NoiseEntry { degrees: 23, deviation: 0.013, date: "later".to_owned(), ..entry() };
        assert!(entry().is_of_same(&later));
        assert_ne!(entry().id().unwrap(), later.id().unwrap());
        assert!(!entry().is_of_same(&NoiseEntry { began_ms: Millis::new(8.0).unwrap(), ..entry() }));
        assert!(!entry().is_of_same(&NoiseEntry { metric: MetricName::MeanTtftMs, ..entry() }));
    }
}
