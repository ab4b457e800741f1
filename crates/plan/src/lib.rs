//! From a dataset to an immutable plan. Pure.
