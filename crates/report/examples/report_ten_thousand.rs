//! Times the reports of a judgement of ten thousand launches: 417 tasks of 24 launches. Run it with `--release`.

#[path = "../tests/report/sample.rs"]
#[expect(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "it is test code, of which this uses a part"
)]
mod sample;

use std::io::{self, Write as _};
use std::time::Instant;

use isobench_report::terminal::{self, Style};
use isobench_report::{csv, html, json, markdown, view};
use isobench_schema::verdict::{BlockValue, Judgement, Verdict};

/// Returns a judgement of 417 tasks with three arms and eight blocks each.
fn judgement() -> Judgement {
    let task = |place: u32| {
        let contrasts = vec![
            sample::contrast("human", "baseline", Verdict::Better, 1.2),
            sample::contrast("agent:half", "baseline", Verdict::Better, 1.1),
            sample::contrast("agent:half", "human", Verdict::Worse, 1.1 / 1.2),
        ];
        let mut arms = vec![
            sample::measured("baseline", 100.0 + f64::from(place)),
            sample::measured("human", 1.2 * (100.0 + f64::from(place))),
            sample::measured("agent:half", 1.1 * (100.0 + f64::from(place))),
        ];
        for arm in &mut arms {
            let more = [6, 7].map(|block| BlockValue { block, position: 0, value: 100.0 + f64::from(place) });
            arm.values.extend(more);
            (arm.launches, arm.valid) = (8, 8);
        }
        let mut task = sample::task(&format!("task-{place}"), contrasts, arms);
        (task.blocks.planned, task.blocks.complete) = (8, 8);
        task
    };
    sample::judgement_of((0..417).map(task).collect())
}

/// Returns the largest resident size of this process so far, where the system tells it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |size| size.trim().to_owned())
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let judgement = judgement();
    let launches: u32 = judgement.tasks.iter().flat_map(|task| &task.arms).map(|arm| arm.launches).sum();
    writeln!(out, "{} tasks, {launches} launches, {} before", judgement.tasks.len(), peak_memory())?;
    let whole = Instant::now();
    let view = view::view(&judgement, None);
    writeln!(out, "view      {:.3} s", whole.elapsed().as_secs_f64())?;
    let formats: [(&str, &dyn Fn() -> String); 5] = [
        ("html", &|| html::page(&view, &html::Options::default())),
        ("markdown", &|| markdown::judgement(&view)),
        ("terminal", &|| terminal::judgement(&view, Style::default())),
        ("json", &|| json::contract(&judgement).to_string()),
        ("csv", &|| csv::contrasts(&judgement)),
    ];
    for (name, format) in formats {
        let start = Instant::now();
        let bytes = format().len();
        writeln!(out, "{name:<9} {:.3} s, {bytes} bytes", start.elapsed().as_secs_f64())?;
    }
    writeln!(out, "all       {:.3} s, peak {}", whole.elapsed().as_secs_f64(), peak_memory())
}
