//! Facts about engines, models, devices and packages, as data: the tables of the folder `knowledge/`, built into the program.
//!
//! Every row names its source. What varies over time carries moments on the engine's main branch: a row holds from `since`
//! (inclusive) until `until` (exclusive; absent: still).

pub mod architectures;
pub mod bugs;
pub mod clients;
pub mod commits;
pub mod conflicts;
pub mod coverage;
pub mod dataset_files;
pub mod devices;
pub mod engines;
pub mod hardware;
pub mod load_flags;
pub mod models;
pub mod options;
pub mod packages;
pub mod presets;
pub mod recipes;
pub mod releases;
pub mod reverts;
pub mod toolkits;
pub mod translations;

use std::sync::OnceLock;

use isobench_schema::ids::Moment;
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use architectures::Architectures;
pub use bugs::Bugs;
pub use clients::Clients;
pub use commits::Commits;
pub use conflicts::Conflicts;
pub use coverage::Coverage;
pub use dataset_files::DatasetFiles;
pub use devices::Devices;
pub use engines::Engines;
pub use hardware::HardwareTable;
pub use load_flags::LoadFlags;
pub use models::Models;
pub use options::Options;
pub use presets::Presets;
pub use recipes::Recipes;
pub use releases::Releases;
pub use reverts::Reverts;
pub use toolkits::Toolkits;
pub use translations::Translations;

/// All tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Knowledge {
    /// Releases of each engine, oldest first.
    pub releases: Releases,
    /// Options of each program over time.
    pub options: Options,
    /// Models.
    pub models: Models,
    /// Which models each engine can load, and when.
    pub architectures: Architectures,
    /// Devices.
    pub devices: Devices,
    /// What belongs to each engine: its repository, its native tree, its packages over time, wheels and images.
    pub engines: Engines,
    /// What makes an environment run that otherwise wouldn't.
    pub recipes: Recipes,
    /// Commits whose facts are known without a clone.
    pub commits: Commits,
    /// Options that don't go together.
    pub conflicts: Conflicts,
    /// What a workload must have to run the code in a file.
    pub coverage: Coverage,
    /// Where the well-known files of benchmark datasets are published.
    pub dataset_files: DatasetFiles,
    /// Which files run on one kind of hardware only.
    pub hardware: HardwareTable,
    /// What the flags of other serving clients mean.
    pub load_flags: LoadFlags,
    /// Known bugs of revisions.
    pub bugs: Bugs,
    /// Which commit a revert takes back.
    pub reverts: Reverts,
    /// What benchmark programs send by themselves.
    pub clients: Clients,
    /// How an option is said to another program, or at another moment.
    pub translations: Translations,
    /// Workloads with names.
    pub presets: Presets,
    /// Images with compilers of CUDA.
    pub toolkits: Toolkits,
}

impl Knowledge {
    /// Returns the tables that are built into the program.
    pub fn embedded() -> &'static Self {
        static EMBEDDED: OnceLock<Knowledge> = OnceLock::new();
        EMBEDDED.get_or_init(|| Self {
            releases: Releases::embedded(),
            options: Options::embedded(),
            models: Models::embedded(),
            architectures: Architectures::embedded(),
            devices: Devices::embedded(),
            engines: Engines::embedded(),
            recipes: Recipes::embedded(),
            commits: Commits::embedded(),
            conflicts: Conflicts::embedded(),
            coverage: Coverage::embedded(),
            dataset_files: DatasetFiles::embedded(),
            hardware: HardwareTable::embedded(),
            load_flags: LoadFlags::embedded(),
            bugs: Bugs::embedded(),
            reverts: Reverts::embedded(),
            clients: Clients::embedded(),
            translations: Translations::embedded(),
            presets: Presets::embedded(),
            toolkits: Toolkits::embedded(),
        })
    }
}

/// When a row holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Window {
    /// The first moment at which it holds; absent: from the beginning.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which it no longer holds; absent: it still does.
    #[serde(default)]
    pub until: Option<Moment>,
}

impl Window {
    /// Returns whether it holds at a moment.
    pub fn holds(&self, moment: &Moment) -> bool {
        within(self.since.as_ref(), self.until.as_ref(), moment)
    }
}

/// Returns whether a moment lies in a span that includes its beginning and not its end.
pub(crate) fn within(since: Option<&Moment>, until: Option<&Moment>, moment: &Moment) -> bool {
    since.is_none_or(|since| since <= moment) && until.is_none_or(|until| moment < until)
}

/// Reads one table that is built into the program.
pub(crate) fn table<T: DeserializeOwned>(name: &str, text: &str) -> T {
    match toml::from_str(text) {
        Ok(table) => table,
        // A test reads every table, so that a program with a broken one is never built.
        Err(error) => unreachable!("knowledge/{name}: {error}"),
    }
}
