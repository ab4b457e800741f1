//! Run directories: plan, append-only events and content-addressed evidence.
