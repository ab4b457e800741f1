//! How far a long list of questions has come, on standard error.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use crate::terminal::Terminal;

/// The shortest from one line to the next where lines stay.
const BETWEEN_LINES: Duration = Duration::from_secs(5);
/// The shortest from one drawing to the next where they are drawn over.
const BETWEEN_DRAWINGS: Duration = Duration::from_millis(100);

/// Says how far something has come, and no more often than is of use.
pub(super) struct Progress {
    terminal: Terminal,
    said: RefCell<Instant>,
    drawn: RefCell<bool>,
}

impl Progress {
    /// Returns one that has said nothing yet. What is over at once is never said.
    pub(super) fn new(terminal: Terminal) -> Self {
        Self { terminal, said: RefCell::new(Instant::now()), drawn: RefCell::new(false) }
    }

    /// Says how far it has come, if it is time.
    pub(super) fn say(&self, line: impl FnOnce() -> String) {
        let is_live = self.terminal.is_live();
        let between = if is_live { BETWEEN_DRAWINGS } else { BETWEEN_LINES };
        if self.said.borrow().elapsed() < between {
            return;
        }
        *self.said.borrow_mut() = Instant::now();
        if is_live {
            let columns = self.terminal.size().0.saturating_sub(1);
            let line: String = line().chars().take(columns).collect();
            self.terminal.draw(&format!("\r\u{1b}[K{line}"));
            *self.drawn.borrow_mut() = true;
        } else {
            self.terminal.status(&line());
        }
    }

    /// Takes away what was drawn, so that something else can be printed.
    pub(super) fn clear(&self) {
        if self.drawn.replace(false) {
            self.terminal.draw("\r\u{1b}[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
