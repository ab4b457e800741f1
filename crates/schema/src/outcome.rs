//! What became of each launch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::comparability::ComparabilityKey;
use crate::failure::Failure;
use crate::ids::{Digest, EnvironmentId, LaunchId};
use crate::units::Millis;

/// The names of evidence files. Every launch uses the same ones; one that doesn't exist was never written.
pub mod evidence {
    /// What a benchmark script wrote about itself, as its result file ([`crate::script`]).
    pub const SCRIPT_RESULT: &str = "script.result.json";
    /// What was seen of a benchmark script from outside ([`crate::script::ScriptSeen`]).
    pub const SCRIPT_SEEN: &str = "script.seen.json";
    /// The records of every request, as JSON Lines ([`crate::record`]).
    pub const REQUESTS: &str = "requests.jsonl";
    /// What the engine wrote to its standard output, be it a server or a script that holds it.
    pub const SERVER_STDOUT: &str = "server.stdout";
    /// What the engine wrote to its standard error, be it a server or a script that holds it.
    pub const SERVER_STDERR: &str = "server.stderr";
    /// What making the environment printed.
    pub const ENVIRONMENT_LOG: &str = "environment.log";
    /// The static proof ([`crate::environment::StaticProof`]).
    pub const STATIC_PROOF: &str = "proof.static.json";
    /// The live proof ([`crate::environment::LiveProof`]).
    pub const LIVE_PROOF: &str = "proof.live.json";
    /// The command, the variables' names and the folders of the engine.
    pub const LAUNCH: &str = "launch.json";
}

/// A stored piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// The digest of its bytes, uncompressed: its name in the store.
    pub digest: Digest,
    /// How many bytes it has, uncompressed.
    pub bytes: u64,
}

/// What became of a launch. Exactly one for each launch of each attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// The workload ran to its end; the evidence says what was measured and whether it counts.
    Measured,
    /// It can't be measured, and this is why.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// Its block was cut short.
    Interrupted,
}

/// How long each part of a launch took. A part that wasn't reached is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// Getting, building and proving the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_ms: Option<Millis>,
    /// From the start of the process until the health endpoint answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<Millis>,
    /// From there until the first request was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_request_ms: Option<Millis>,
    /// Warm-up and probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_ms: Option<Millis>,
    /// The measured window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<Millis>,
    /// From SIGTERM until every process was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_ms: Option<Millis>,
    /// The whole launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<Millis>,
}

/// What the load client's thread did over the measured window, as the kernel counts it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientLoad {
    /// The window.
    pub window_ms: Millis,
    /// How long the thread ran on a processor.
    pub busy_ms: Millis,
    /// How long it was ready to run but waited for a processor.
    pub waited_ms: Millis,
    /// Processor time that the engine's processes took in the same time, all threads together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_ms: Option<Millis>,
}

/// What the driver said of the devices over the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceClocks {
    /// Looks at the devices: one for each device and moment.
    pub samples: u32,
    /// Those in which a device was slowed down by its heat or its hardware.
    pub slowed: u32,
    /// Those in which a device's clocks were held at its power cap.
    pub power_capped: u32,
    /// Why devices were slowed down, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The lowest clock of the processors of any device, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest_mhz: Option<u32>,
    /// The highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_mhz: Option<u32>,
    /// The highest temperature of any device, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hottest_celsius: Option<u32>,
}

/// The record of one launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchRecord {
    /// The launch.
    pub launch: LaunchId,
    /// Its position in the block, from 0.
    pub position: u32,
    /// Its environment.
    pub environment: EnvironmentId,
    /// What became of it.
    pub outcome: Outcome,
    /// Failures that do not undo the measurement, such as a process that had to be killed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incidents: Vec<Failure>,
    /// The evidence by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evidence: BTreeMap<String, Artifact>,
    /// How long its parts took.
    pub timeline: Timeline,
    /// What the load client did; absent if the window wasn't finished or the kernel doesn't count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientLoad>,
    /// What the driver said of the devices over the window; absent without devices that are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceClocks>,
    /// What must be equal before its measurement may be compared.
    pub key: ComparabilityKey,
}
