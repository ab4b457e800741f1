//! The arguments that a dataset of commits is planned with.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::images_args::{NamingArgs, RegistryArgs};

/// The most devices that are planned for.
const MOST_DEVICES: i64 = 4096;

/// The highest price of a device, in US dollars an hour.
const HIGHEST_PRICE: f64 = 10_000.0;

fn price(text: &str) -> Result<f64, String> {
    let price = text.parse().ok().filter(|price| (0.0..=HIGHEST_PRICE).contains(price));
    price.ok_or_else(|| format!("give US dollars an hour, from 0 to {HIGHEST_PRICE}"))
}

/// What a dataset of commits is planned with.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Datasets of commits")]
pub(crate) struct CommitArgs {
    /// Plan for this device, such as `h100-sxm`; by default for this machine's own.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Plan for so many devices, 4096 at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_DEVICES))]
    pub(crate) devices: Option<u32>,
    /// Read the commits of an engine from this clone, such as `vllm=DIR` (repeatable).
    #[arg(long = "clone", value_name = "ENGINE=DIR")]
    pub(crate) clones: Vec<String>,
    /// Take models from this folder, which holds them as `OWNER/NAME`, before the hub's cache and the hub (repeatable); of a
    /// commit's model its `config.json` is enough to plan with.
    #[arg(long = "models", value_name = "DIR")]
    pub(crate) models: Vec<PathBuf>,
    /// Let the hub be asked for the models, tokenizers and dataset files that commits name; those of a `task.toml` are asked
    /// for anyway.
    #[arg(long)]
    pub(crate) hub: bool,
    /// Set deadlines by how long the launches of the same tasks took in this run (repeatable).
    #[arg(long = "history", value_name = "RUN")]
    pub(crate) history: Vec<PathBuf>,
    /// Load tasks that have no command with this workload, such as `seed-local`; a deviation.
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// Put a smaller model of the same family in the place of one that does not fit; a deviation.
    #[arg(long)]
    pub(crate) proxy: bool,
    /// Ask this repository of a registry for the images of the commits, such as `team/engine`; with `--isolation container`
    /// arms run from them.
    #[arg(long, value_name = "REPOSITORY")]
    pub(crate) images: Option<String>,
    #[command(flatten)]
    pub(crate) naming: NamingArgs,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
    /// How benchmarks run that hold the engine in their own process.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) offline: OfflineArg,
    /// Reckon with this price of one device, in US dollars an hour.
    #[arg(long, value_name = "USD", value_parser = price, allow_negative_numbers = true)]
    pub(crate) price: Option<f64>,
}

/// How benchmarks run that hold the engine in their own process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OfflineArg {
    /// Through the server, loaded by isobench's own client; where that can't be, by their own script.
    #[default]
    Auto,
    /// By their own script wherever it can run; its numbers are self-reported, a deviation.
    Script,
    /// Through the server, or not at all.
    Server,
}
