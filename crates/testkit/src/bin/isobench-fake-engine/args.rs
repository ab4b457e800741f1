//! The program's options.

use std::path::PathBuf;

use clap::Parser;
use isobench_testkit::Fault;

/// An OpenAI-compatible server for tests: words on an exact schedule, and misbehaviour as told.
#[derive(Debug, Parser)]
#[command(name = "isobench-fake-engine", version, args_override_self = true)]
pub(crate) struct Args {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The port to listen on.
    #[arg(long, default_value_t = 8000)]
    pub(crate) port: u16,
    /// The model's name, as `/v1/models` tells it. Requests may name any.
    #[arg(long, default_value = "fake")]
    pub(crate) model: String,
    /// Microseconds from the start of a request to its first token.
    #[arg(long, default_value_t = 1000)]
    pub(crate) ttft_us: u64,
    /// Microseconds from one token to the next.
    #[arg(long, default_value_t = 100)]
    pub(crate) itl_us: u64,
    /// Answers under way at once; the others wait.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_num_seqs: u32,
    /// Tokens in each event.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) coalesce: u32,
    /// The folder whose `faults.txt` and `speed.txt` are read, if they are there.
    #[arg(long, default_value = ".")]
    pub(crate) folder: PathBuf,
    /// A way to misbehave; can be given several times.
    #[arg(long = "fault", value_name = "NAME[=VALUE]")]
    pub(crate) faults: Vec<Fault>,
    /// Files that the model's folder must hold; without one the program ends as a real engine would.
    #[arg(long, value_name = "FILE")]
    pub(crate) needs: Vec<String>,
    /// Only listens on the port and says `{}` with status 200 to everything.
    #[arg(long)]
    pub(crate) just_listen: bool,
    /// With `--just-listen`: ends when this process is gone.
    #[arg(long, value_name = "PROCESS")]
    pub(crate) while_alive: Option<i32>,
    /// Becomes a daemon that does what the other options say.
    #[arg(long, hide = true)]
    pub(crate) daemonise: bool,
    /// Only sleeps for so many seconds.
    #[arg(long, hide = true, value_name = "SECONDS")]
    pub(crate) sleep_for_s: Option<u64>,
}
