//! From a dataset to an immutable plan, and from a plan and its events to what runs next. Pure.
//!
//! Nothing here reads a file, a clock or an environment: the caller gives files ([`dataset::Files`]) and facts
//! ([`isobench_schema::facts::Facts`]), and the same input gives the same plan to the byte.

pub mod assess;
pub mod budget;
pub mod choose;
pub mod command;
pub mod cost;
pub mod dataset;
pub mod defaults;
pub mod estimate;
pub mod image_names;
pub mod images;
pub mod inputs;
pub mod intake;
pub mod keys;
pub mod knowledge;
pub mod lint;
pub mod next;
pub mod planner;
pub mod progress;
pub mod recipe;
pub mod requirements;
pub mod setting;
pub mod source;
pub mod statistics;
pub mod toolkit;

mod age;
mod arms;
mod checks;
mod deviations;
mod exclude;
mod image_order;
// A table reads best with one row a line, however long.
#[rustfmt::skip]
mod key_table;
pub mod nearest;
mod node;
mod paths;
mod plan_options;
mod shape;
mod typed;
mod typed_arrival;
mod typed_inputs;
mod typed_script;
mod typed_workload;
