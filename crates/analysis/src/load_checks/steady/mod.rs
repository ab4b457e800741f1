//! Whether a server is steady, for how long a closed loop was full, and whether a server keeps up with an open loop.

mod flow;
mod full_loop;
mod halves;
mod warm_up;

pub use flow::{Flight, flow};
pub use full_loop::{LoopRequest, full_loop};
pub use halves::halves;
pub use warm_up::{Steadiness, SteadyRules, warm_up};
