//! The live view as lines of text.

use isobench_schema::event::{LaunchStage, RunEnd};

use super::{Current, Launch, LiveState, Progress};
use crate::number::{self, counted};
use crate::text;

/// The widest that the bar becomes, in columns.
const WIDEST_BAR: usize = 40;

impl LiveState {
    /// Returns the view at `now_ms` (the clock of the events) as at most `height` lines of at most `width` columns,
    /// without colours, cursor movements or a last line end.
    pub fn render(&self, now_ms: f64, width: usize, height: usize) -> String {
        let mut lines = vec![self.head(now_ms), self.bar(width)];
        if let Some((end, message)) = &self.end {
            lines.push(ended(*end, message.as_deref()));
        }
        if let Some(current) = &self.current {
            lines.push(self.place(current, now_ms));
            lines.extend(current.launches.iter().map(|launch| launch_line(launch, now_ms)));
        }
        lines.extend(self.measurement.as_ref().map(|text| format!("last      {text}")));
        lines.extend(self.estimate.as_ref().map(|text| format!("so far    {text}")));
        lines.extend(self.look.as_ref().map(|text| format!("last look {text}")));
        lines.extend(self.failure_line());
        fit(lines, width, height)
    }

    fn head(&self, now_ms: f64) -> String {
        let (done, all) = self.blocks();
        let mut parts = vec![format!("run {}", self.run.as_deref().unwrap_or("not started"))];
        parts.push(format!("{done} of {}", counted(all, "block")));
        if let Some(started) = self.started_ms {
            parts.push(format!("elapsed {}", number::duration(((now_ms - started) / 1000.0).max(0.0).round())));
        }
        if self.end.is_none() {
            let left = self.left_s(now_ms).map(|seconds| format!("about {} left", number::duration(seconds.round())));
            parts.extend(left);
        }
        parts.join(" · ")
    }

    fn bar(&self, width: usize) -> String {
        let (done, all) = self.blocks();
        let room = width.saturating_sub(8).min(WIDEST_BAR);
        let share = (done.min(all) * 100).checked_div(all).unwrap_or(0);
        let full = usize::try_from(share).unwrap_or(0) * room / 100;
        format!("[{}{}] {share:>3} %", "█".repeat(full), "░".repeat(room.saturating_sub(full)))
    }

    fn place(&self, current: &Current, now_ms: f64) -> String {
        let id = &current.id;
        let all = self.expected.get(&id.task).map(|expected| expected.blocks);
        let of = all.map(|blocks| format!(" of {blocks}")).unwrap_or_default();
        let attempt = if id.attempt > 1 { format!(" · attempt {}", id.attempt) } else { String::new() };
        let since = number::duration(((now_ms - current.started_ms) / 1000.0).max(0.0).round());
        format!("task {} · block {}{of}{attempt} · {since}", id.task, u64::from(id.block) + 1)
    }

    fn failure_line(&self) -> Option<String> {
        let classes: Vec<String> = self.failures.iter().map(|(class, times)| format!("{class} {times}")).collect();
        let counts = format!("{} of {} measured", self.measured, self.launches);
        match (self.launches, classes.is_empty()) {
            (0, _) => None,
            (_, true) => Some(format!("launches  {counts}")),
            (_, false) => Some(format!("launches  {counts}; failed: {}", classes.join(", "))),
        }
    }
}

fn ended(end: RunEnd, message: Option<&str>) -> String {
    let what = match end {
        RunEnd::Finished => "finished",
        RunEnd::Interrupted => "interrupted; the same command resumes",
        RunEnd::BudgetUsed => "the budget is used up; the same command with more goes on",
        RunEnd::Stopped => "stopped; the same command resumes once the cause is mended",
    };
    message.map_or_else(|| what.to_owned(), |message| format!("{what}: {message}"))
}

fn launch_line(launch: &Launch, now_ms: f64) -> String {
    let (symbol, stage) = match launch.progress {
        Progress::Waiting => (" ", "waiting"),
        Progress::At(LaunchStage::Finished) => ("•", LaunchStage::Finished.as_str()),
        Progress::At(stage) => ("▶", stage.as_str()),
    };
    let since = match launch.progress {
        Progress::Waiting | Progress::At(LaunchStage::Finished) => String::new(),
        Progress::At(_) => format!(" {}", number::duration(((now_ms - launch.since_ms) / 1000.0).max(0.0).round())),
    };
    format!("  {symbol} {} {stage}{since}", text::pad(&launch.arm.to_string(), 22))
}

/// Cuts the lines to the screen. Where there are too many, launches go first: those that wait, then the finished ones.
fn fit(mut lines: Vec<String>, width: usize, height: usize) -> String {
    let mut excess = lines.len().saturating_sub(height);
    for kind in ["    ", "  •", "  ▶"] {
        lines.retain(|line| {
            let drop = excess > 0 && line.starts_with(kind);
            excess -= usize::from(drop);
            !drop
        });
    }
    lines.truncate(height);
    lines.iter().map(|line| text::truncate(line, width).into_owned()).collect::<Vec<_>>().join("\n")
}
