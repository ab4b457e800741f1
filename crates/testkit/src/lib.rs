//! Parts for tests only: a fake engine with fault modes.
