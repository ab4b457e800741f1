//! What is shown while a run is under way: a live view on a terminal, plain lines elsewhere, or events as JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use isobench_analysis::measure::LaunchDigest;
use isobench_analysis::stats::OneSample;
use isobench_report::live::{self, LiveState};
use isobench_schema::event::Event;
use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::measurement::Direction;
use isobench_schema::outcome::LaunchRecord;
use isobench_schema::plan::Plan;
use isobench_store::now_ms;

use crate::commands::Context;
use crate::terminal::Terminal;

/// How often the live view is drawn.
const FRAME: Duration = Duration::from_millis(200);

/// Watches a run.
pub(crate) trait Watch: Send {
    /// Is shown an event of the past, when a run is resumed.
    fn seen(&mut self, event: &Event);
    /// Is shown an event as it happens.
    fn event(&mut self, event: &Event);
    /// Is shown what a launch gave.
    fn measured(&mut self, record: &LaunchRecord, digest: Option<&LaunchDigest>);
    /// Is told something that isn't stored.
    fn note(&mut self, text: &str);
}

/// Returns the watcher that suits the terminal and what was asked for.
pub(crate) fn watch(context: Context, plan: &Plan, folder: PathBuf) -> Box<dyn Watch> {
    let terminal = context.terminal;
    if context.json {
        Box::new(Json(terminal))
    } else if terminal.is_live() {
        Box::new(Live::start(terminal, plan, folder))
    } else {
        Box::new(Plain { terminal, measured: Measured::new(plan) })
    }
}

/// What the launches so far have given: the primary metric by task, arm and block.
struct Measured {
    plan: Plan,
    values: BTreeMap<(TaskId, ArmId), BTreeMap<u32, f64>>,
}

impl Measured {
    fn new(plan: &Plan) -> Self {
        Self { plan: plan.clone(), values: BTreeMap::new() }
    }

    /// Takes in a launch, and returns its measurement and the running estimate as text.
    fn add(&mut self, record: &LaunchRecord, digest: Option<&LaunchDigest>) -> Option<(String, Option<String>)> {
        let id = &record.launch.block;
        let task = self.plan.task(&id.task)?;
        let value = digest.and_then(|digest| digest.measurement.values.get(&task.metric.primary).copied())?;
        let text = format!("{value:.1} {} ({})", task.metric.primary.unit(), task.metric.primary);
        let place = (id.task.clone(), record.launch.arm.clone());
        self.values.entry(place).or_default().insert(id.block, value);
        let direction = task.metric.direction;
        let of =
            task.contrasts.iter().find(|contrast| contrast.against == ArmId::Baseline).map(|contrast| &contrast.of);
        let running = of.and_then(|of| self.running(&id.task, of, direction));
        Some((text, running))
    }
}

impl Measured {
    /// Returns the estimate so far of one arm against the baseline, in words.
    fn running(&self, task: &TaskId, of: &ArmId, direction: Direction) -> Option<String> {
        let values = self.values.get(&(task.clone(), of.clone()))?;
        let baseline = self.values.get(&(task.clone(), ArmId::Baseline))?;
        let sign = match direction {
            Direction::Higher => 1.0,
            Direction::Lower => -1.0,
        };
        let pair = |(block, value): (&u32, &f64)| Some(sign * (value / baseline.get(block)?).ln());
        let differences: Vec<f64> = values.iter().filter_map(pair).collect();
        let sample = OneSample::of(&differences)?;
        let interval = sample.interval(0.05)?;
        let (mean, low, high) = (sample.mean.exp(), interval.low.exp(), interval.high.exp());
        let blocks = differences.len();
        Some(format!("{of} vs baseline: {mean:.2}x (95 % interval {low:.2} to {high:.2}), {blocks} blocks"))
    }
}

struct Json(Terminal);

impl Watch for Json {
    fn seen(&mut self, _event: &Event) {}

    fn event(&mut self, event: &Event) {
        if let Ok(line) = serde_json::to_string(event) {
            self.0.data(&(line + "\n"));
        }
    }

    fn measured(&mut self, _record: &LaunchRecord, _digest: Option<&LaunchDigest>) {}

    fn note(&mut self, text: &str) {
        self.0.status(text);
    }
}

struct Plain {
    terminal: Terminal,
    measured: Measured,
}

impl Watch for Plain {
    fn seen(&mut self, _event: &Event) {}

    fn event(&mut self, event: &Event) {
        if let Some(line) = live::plain_line(event) {
            self.terminal.status(&line);
        }
    }

    fn measured(&mut self, record: &LaunchRecord, digest: Option<&LaunchDigest>) {
        if let Some((text, running)) = self.measured.add(record, digest) {
            self.terminal.status(&format!("{} {text}", record.launch));
            if let Some(running) = running.filter(|_| record.position == 0) {
                self.terminal.status(&format!("so far {running}"));
            }
        }
    }

    fn note(&mut self, text: &str) {
        self.terminal.status(text);
    }
}

/// Draws the live view from a thread of its own, which ends when this is dropped.
struct Live {
    state: Arc<Mutex<LiveState>>,
    /// Lines that are still to be shown above the view.
    notes: Arc<Mutex<Vec<String>>>,
    measured: Measured,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    fn start(terminal: Terminal, plan: &Plan, folder: PathBuf) -> Self {
        let state = Arc::new(Mutex::new(LiveState::new(plan)));
        let notes = Arc::new(Mutex::new(Vec::new()));
        let closing = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (state, notes, closing) = (Arc::clone(&state), Arc::clone(&notes), Arc::clone(&closing));
            move || draw(terminal, (&state, &notes), &closing, &folder.display().to_string())
        });
        Self { state, notes, measured: Measured::new(plan), closing, thread: Some(thread) }
    }

    fn with(&self, change: impl FnOnce(&mut LiveState)) {
        if let Ok(mut state) = self.state.lock() {
            change(&mut state);
        }
    }
}

/// Draws frames until `closing`, each over the one before it, with notes left standing above them.
fn draw(
    terminal: Terminal,
    (state, notes): (&Mutex<LiveState>, &Mutex<Vec<String>>),
    closing: &AtomicBool,
    folder: &str,
) {
    let mut lines = 0;
    loop {
        let last = closing.load(Ordering::Relaxed);
        let (width, height) = terminal.size();
        let text = state.lock().map(|state| state.render(now_ms().get(), width, height.saturating_sub(2)));
        let Ok(text) = text else { return };
        // Up to the first line of the last frame, and erase from there.
        let mut frame = if lines > 0 { format!("\u{1b}[{lines}A\u{1b}[J") } else { String::new() };
        let notes: Vec<String> = notes.lock().map(|mut notes| notes.drain(..).collect()).unwrap_or_default();
        frame.extend(notes.iter().map(|note| format!("{note}\n")));
        frame.push_str(&text);
        if !text.ends_with('\n') {
            frame.push('\n');
        }
        lines = frame.matches('\n').count() - notes.len();
        let hint = format!("Ctrl-C stops cleanly; `isobench run {folder}` goes on\n");
        if !last {
            frame.push_str(&hint);
            lines += 1;
        }
        terminal.draw(&frame);
        if last {
            return;
        }
        thread::park_timeout(FRAME);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Watch for Live {
    fn seen(&mut self, event: &Event) {
        self.with(|state| state.apply(event));
    }

    fn event(&mut self, event: &Event) {
        self.with(|state| state.apply(event));
    }

    fn measured(&mut self, record: &LaunchRecord, digest: Option<&LaunchDigest>) {
        let Some((text, running)) = self.measured.add(record, digest) else { return };
        self.with(|state| {
            state.note_measurement(&record.launch.arm, &text);
            if let Some(running) = running {
                state.note_estimate(&running);
            }
        });
    }

    fn note(&mut self, text: &str) {
        if let Ok(mut notes) = self.notes.lock() {
            notes.push(text.to_owned());
        }
    }
}
