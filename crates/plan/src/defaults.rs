//! Every value that a task gets when it says nothing. [`crate::keys::task_keys`] prints the same constants.

use isobench_schema::environment::EngineKind;
use isobench_schema::task::Limits;
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Api, Probes, TokenCounter};

/// The engine of a task that names none.
pub const ENGINE: EngineKind = EngineKind::Generic;

/// The interface that requests are sent to.
pub const API: Api = Api::Completions;

/// Answers go on past the end-of-sequence token, so that every arm does the same work.
pub const IGNORE_EOS: bool = true;

/// Greedy decoding, so that the answers of all arms can be compared.
pub const TEMPERATURE: f64 = 0.0;

/// Gaps between requests of an open loop as in a Poisson process.
pub const BURSTINESS: f64 = 1.0;

/// The lowest token id that is drawn for prompts: above the special tokens that most tokenizers keep at the start.
pub const FIRST_TOKEN_ID: u32 = 100;

/// Unmeasured requests before the window.
pub const WARM_UP_REQUESTS: u32 = 8;

/// The output check.
pub const PROBES: Probes = Probes { count: 4, output_tokens: 32 };

/// Benchmark scripts write their result as JSON, as vLLM's do from v0.4.3.
pub const SCRIPT_OUTPUT_JSON: bool = true;

/// Requests under way in a latency workload that names no arrival.
pub const LATENCY_CONCURRENCY: u32 = 1;

/// Folders of the tree that come first on Python's search path.
pub const PYTHON_PATH: &str = ".";

/// The interpreter of an image.
pub const IMAGE_PYTHON: &str = "python3";

/// The path that answers 200 when the engine is ready.
pub const HEALTH: &str = "/health";

/// The smallest relative difference that matters: 2 % (methodology, section 6).
pub const MARGIN: f64 = 0.02;

/// How much less than with itself the baseline's answers may agree with an arm's.
pub const OUTPUT_MARGIN: f64 = 0.02;

/// How many times as fast as the baseline an arm may be and still be believed.
pub const BELIEVABLE_RATIO: f64 = isobench_schema::task::BELIEVABLE_RATIO;

/// The fewest blocks of a look: enough for Student's t and for an exact sign-flip p below 0.05 (methodology, section 5).
pub const FEWEST_BLOCKS: u32 = 6;

/// The fewest blocks that an interval is given for.
pub const INTERVAL_BLOCKS: u32 = 5;

/// The most blocks of a design with several looks (methodology, section 4).
pub const MAX_BLOCKS: u32 = 24;

/// A contrast isn't waited for if its chance to be decided at a look to come is below this.
pub const FUTILITY: f64 = 0.1;

/// The shortest measured window in seconds (methodology, section 3).
pub const MIN_WINDOW_S: f64 = 30.0;

/// How often infrastructure may spoil a block of a task before the task stops (methodology, section 4).
pub const REPLACEMENTS: u32 = 2;

/// The two-sided level of the difference test.
pub const LEVEL: f64 = 0.05;

/// The one-sided level of each of the two equivalence tests.
pub const EQUIVALENCE_LEVEL: f64 = 0.05;

/// Seconds for each build or install command: a source build of a large engine fits.
pub const BUILD_S: f64 = 3600.0;
/// Main memory that one job of a native build is held to need, in MiB: what a compiler of CUDA takes for a large file.
pub const MEMORY_PER_JOB_MIB: u32 = 4096;

/// Seconds from the start of the engine until it is ready.
pub const READY_S: f64 = 600.0;

/// Seconds for one request.
pub const REQUEST_S: f64 = 600.0;

/// Seconds between two chunks of a stream.
pub const STALL_S: f64 = 120.0;

/// Seconds for warm-up, probes and window together.
pub const WORKLOAD_S: f64 = 3600.0;

/// Seconds from SIGTERM until the engine is killed.
pub const STOP_S: f64 = 30.0;

/// Log bytes above which an incident is recorded: 100 MiB.
pub const LOG_BYTES: u32 = 100 * 1024 * 1024;

/// Failed requests of the window that don't invalidate the launch.
pub const FAILED_REQUESTS: u32 = 0;

/// Accelerators that a launch needs: none, a CPU run.
pub const DEVICES: u32 = 0;

/// Returns the deadlines of a task that says nothing of them.
pub fn limits() -> Limits {
    let seconds = |value| Seconds::new(value).expect("every default is a finite number of seconds");
    Limits {
        build_s: seconds(BUILD_S),
        ready_s: seconds(READY_S),
        request_s: seconds(REQUEST_S),
        stall_s: seconds(STALL_S),
        workload_s: seconds(WORKLOAD_S),
        stop_s: seconds(STOP_S),
        log_bytes: u64::from(LOG_BYTES),
        failed_requests: FAILED_REQUESTS,
    }
}

/// Returns how tokens are counted for an engine: vLLM sends token ids on request, of another engine only its text is known.
pub fn counter(engine: EngineKind) -> TokenCounter {
    match engine {
        EngineKind::Vllm => TokenCounter::TokenIds,
        // SGLang sends no token ids over its OpenAI-compatible interface, and what its `usage` says is only a claim.
        EngineKind::Generic | EngineKind::Sglang => TokenCounter::Whitespace,
    }
}
