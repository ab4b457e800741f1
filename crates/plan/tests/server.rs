//! The server's command in tasks.

mod example;

use example::{changed, read_task};

#[test]
fn a_command_that_is_not_told_its_port_is_a_problem() {
    let problems = |from: &str, to: &str| {
        let dataset = read_task(&changed(from, to), &[]);
        dataset.problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>()
    };
    let expected = "`server.command` has no `{port}`: each launch listens on a free port that it is given; add for example \
                    `\"--port\", \"{port}\"`";
    assert_eq!(problems("\"{port}\"]", "\"--port\", \"8000\"]"), [expected]);
    let [plain, joined] = ["\"--port\", \"{port}\"]", "\"--listen=:{port}\"]"].map(|to| problems("\"{port}\"]", to));
    assert!(plain.is_empty() && joined.is_empty(), "{plain:?} {joined:?}");
}
