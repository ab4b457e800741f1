//! What isobench writes down: tasks, plans, events, outcomes, measurements and verdicts.
