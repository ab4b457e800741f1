//! The ids of all rules. Each has its explanation in `knowledge/rules.toml`.

/// The row has no benchmark command.
pub const NO_COMMAND: &str = "no-command";
/// The command can't be read as a shell would read one simple command.
pub const COMMAND_UNREADABLE: &str = "command-unreadable";
/// The command names no benchmark program that is known.
pub const TOOL_UNKNOWN: &str = "tool-unknown";
/// A word such as `MODEL`, `BS` or `INPUT_LEN` was never replaced.
pub const PLACEHOLDER: &str = "placeholder";
/// An optional part was copied with its brackets.
pub const BRACKETED_OPTION: &str = "bracketed-option";
/// A path is one of somebody's own machine.
pub const PRIVATE_PATH: &str = "private-path";
/// The program doesn't exist at the baseline.
pub const SCRIPT_MISSING: &str = "script-missing";
/// The program's parser refuses an option at the baseline.
pub const OPTION_REFUSED: &str = "option-refused";
/// An option that the parser demands is not given.
pub const OPTION_MISSING: &str = "option-missing";
/// An option's value is none that the parser takes.
pub const VALUE_REFUSED: &str = "value-refused";
/// Neither a dataset nor lengths are given.
pub const LENGTHS_MISSING: &str = "lengths-missing";
/// A dataset that needs a file is named, or is the default, and no file is.
pub const DATASET_FILE_MISSING: &str = "dataset-file-missing";
/// The program doesn't know the dataset at the baseline.
pub const DATASET_UNKNOWN: &str = "dataset-unknown";
/// No such model is published.
pub const MODEL_MISSING: &str = "model-missing";
/// Nothing is known of the model's size.
pub const MODEL_UNKNOWN: &str = "model-unknown";
/// The model contradicts the command or the commit.
pub const MODEL_CONTRADICTION: &str = "model-contradiction";
/// The engine can't load the model's architecture at the baseline.
pub const ARCHITECTURE_UNSUPPORTED: &str = "architecture-unsupported";
/// Options contradict each other, the model or the engine.
pub const FEATURE_CONFLICT: &str = "feature-conflict";
/// The change is for hardware that isn't planned for.
pub const HARDWARE_WRONG: &str = "hardware-wrong";
/// The command asks for more devices than there are.
pub const DEVICES_TOO_FEW: &str = "devices-too-few";
/// The model doesn't fit the devices.
pub const MODEL_TOO_LARGE: &str = "model-too-large";
/// The request rate fixes the throughput, which is the primary metric.
pub const THROUGHPUT_AT_FIXED_RATE: &str = "throughput-at-fixed-rate";
/// Requests arrive far faster than they can be served.
pub const RATE_BEYOND_SERVICE: &str = "rate-beyond-service";
/// The commit takes back another one.
pub const REVERT: &str = "revert";
/// The workload doesn't run the code that the commit changes.
pub const CHANGE_NOT_EXERCISED: &str = "change-not-exercised";
/// There are too few requests for the percentile that is asked for.
pub const TOO_FEW_REQUESTS: &str = "too-few-requests";
/// Nothing is known of the revision.
pub const REVISION_UNKNOWN: &str = "revision-unknown";

/// Every id, in the order in which findings are shown.
pub const ALL: &[&str] = &[
    NO_COMMAND,
    COMMAND_UNREADABLE,
    TOOL_UNKNOWN,
    PLACEHOLDER,
    BRACKETED_OPTION,
    PRIVATE_PATH,
    SCRIPT_MISSING,
    OPTION_REFUSED,
    OPTION_MISSING,
    VALUE_REFUSED,
    LENGTHS_MISSING,
    DATASET_FILE_MISSING,
    DATASET_UNKNOWN,
    MODEL_MISSING,
    MODEL_UNKNOWN,
    MODEL_CONTRADICTION,
    ARCHITECTURE_UNSUPPORTED,
    FEATURE_CONFLICT,
    HARDWARE_WRONG,
    DEVICES_TOO_FEW,
    MODEL_TOO_LARGE,
    THROUGHPUT_AT_FIXED_RATE,
    RATE_BEYOND_SERVICE,
    REVERT,
    CHANGE_NOT_EXERCISED,
    TOO_FEW_REQUESTS,
    REVISION_UNKNOWN,
];
