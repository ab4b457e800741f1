//! What the rules find in the public tasks.

use super::{Held, tasks};

const NINETY_SIX: &str = include_str!("../../../../../examples/iso-bench/vllm-96.jsonl");
const PUBLISHED: &str = include_str!("../../../../../examples/iso-bench/tasks.jsonl");

#[test]
#[ignore]
fn dump() {
    for (name, text) in [("96", NINETY_SIX), ("54", PUBLISHED)] {
        for task in tasks(text) {
            let held = Held::of(task);
            println!("## {name} {} {:?}", held.task.id, held.case().subject());
            println!("   {}", held.task.command.as_deref().unwrap_or("-"));
            for found in held.findings() {
                println!(
                    "   {} {}: {} | {} | {:?}",
                    found.severity, found.rule, found.message, found.fix, found.evidence
                );
            }
        }
    }
}
