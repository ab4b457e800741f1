//! Where the programs for tests are.

use std::path::{Path, PathBuf};

/// Returns the path of the program `isobench-fake-engine`, which cargo puts beside the test that calls this.
///
/// # Panics
/// Panics with the command that builds it if it isn't there.
pub fn fake_engine_path() -> PathBuf {
    program_path("isobench-fake-engine")
}

/// Returns the path of the program `isobench-truth-server`, which cargo puts beside the test that calls this.
///
/// # Panics
/// Panics with the command that builds it if it isn't there.
pub fn truth_server_path() -> PathBuf {
    program_path("isobench-truth-server")
}

#[expect(clippy::panic, reason = "only tests call this, and the message is what they need")]
fn program_path(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    // A test is `target/debug/deps/NAME-HASH`, an example `target/debug/examples/NAME`, a program `target/debug/NAME`.
    let folders = test.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    let profile = if test.components().any(|part| part.as_os_str() == "release") { " --release" } else { "" };
    found.unwrap_or_else(|| {
        let folder = test.ancestors().nth(2).unwrap_or(Path::new("target/debug")).display();
        panic!("there is no `{name}` in `{folder}`; build it with `cargo build -p isobench-testkit{profile}`")
    })
}
