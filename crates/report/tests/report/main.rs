//! The reports as people see them, from hand-made judgements, plans and events.

mod formats;
mod live;
mod sample;
