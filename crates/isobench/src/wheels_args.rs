//! Arguments of `wheels`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::ChoiceArgs;

/// Arguments of `wheels`.
#[derive(Debug, Args)]
pub(crate) struct WheelsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: WheelsCommand,
}

/// What is done with wheels.
#[derive(Debug, Subcommand)]
pub(crate) enum WheelsCommand {
    /// List the wheels on a page of an index or in a folder, and say which can be installed.
    List(WheelsListArgs),
    /// Look through a wheel without unpacking or running any of it, and say whether it is what it says.
    Check(WheelsCheckArgs),
    /// Ask the archives for the wheel of each revision of a dataset of commits.
    Audit(Box<WheelsAuditArgs>),
}

/// Arguments of `wheels list`.
#[derive(Debug, Args)]
pub(crate) struct WheelsListArgs {
    /// The address of a package's page, in HTML (PEP 503) or JSON (PEP 691), or a folder.
    #[arg(value_name = "URL|DIR")]
    pub(crate) place: String,
    /// Only wheels of this distribution.
    #[arg(long, value_name = "NAME")]
    pub(crate) package: Option<String>,
    /// Only wheels that this Python takes on this kind of machine, such as `3.12`.
    #[arg(long, value_name = "VERSION")]
    pub(crate) python: Option<String>,
    /// The C library's version there.
    #[arg(long, value_name = "VERSION", default_value = "2.28")]
    pub(crate) glibc: String,
}

/// Arguments of `wheels check`.
#[derive(Debug, Args)]
pub(crate) struct WheelsCheckArgs {
    /// The wheel: a file, or an address, from which it is fetched into a folder that is removed.
    #[arg(value_name = "FILE|URL")]
    pub(crate) wheel: String,
    /// The digest that it must have, which pins who published it.
    #[arg(long, value_name = "DIGEST")]
    pub(crate) sha256: Option<String>,
    /// A module that must be in it, such as `pyairports.airports` (repeatable).
    #[arg(long = "module", value_name = "MODULE")]
    pub(crate) modules: Vec<String>,
}

/// Arguments of `wheels audit`.
#[derive(Debug, Args)]
pub(crate) struct WheelsAuditArgs {
    /// A dataset of commits.
    pub(crate) dataset: PathBuf,
    /// What of it.
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
}
