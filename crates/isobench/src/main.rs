//! The `isobench` command.

fn main() {}
