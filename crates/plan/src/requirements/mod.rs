//! What a launch needs: devices and memory by the model's config, deadlines by its size and load. Pure.

mod ceiling;
mod deadlines;
mod keys;
mod load;
mod model;
mod need;
mod options;
mod place;
mod proxy;
mod quantization;
mod rate;
mod tally;
mod vision;

pub use ceiling::ceiling;
pub use deadlines::{DeadlineSettings, History, Launch, deadlines, start_s};
pub use keys::ConfigError;
pub use load::{Lengths, at_once};
pub use model::{Attention, Model, ModelError, ModelExperts, Window, WindowKind, model};
pub use need::{OVERHEAD_GB, SIZES, Sizing, need};
pub use options::ServerOptions;
pub use place::Place;
pub use proxy::{Proxy, proxy};
pub use quantization::Quantization;
pub use rate::{ServiceRate, service_rate};

#[cfg(test)]
mod tests;

#[cfg(test)]
mod rate_tests;
