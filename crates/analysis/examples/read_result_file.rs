//! Shows what result files say, and at what cost: `read_result_file FILE…` prints a reading for each, `read_result_file
//! --generate MEGABYTES` reads a detailed result of that size and prints the speed and the most memory that was used.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::time::Instant;

use isobench_analysis::parse::binding::Binding;
use isobench_analysis::parse::read;

/// Gives a result whose lists of texts and times have a given length, without holding it.
struct Detailed {
    left: u64,
    pending: Vec<u8>,
    given: usize,
    ended: bool,
}

impl Detailed {
    fn new(bytes: u64) -> Self {
        let pending =
            br#"{"date": "20250720-101500", "model_id": "m", "tokenizer_id": "m", "num_prompts": 200, "itls": ["#;
        Self { left: bytes, pending: pending.to_vec(), given: 0, ended: false }
    }

    fn refill(&mut self) {
        self.given = 0;
        self.pending.clear();
        if self.left > 0 {
            while self.pending.len() < 1 << 16 {
                self.pending.extend(br#"[0.03125, 0.0298765432, NaN, 1e-05], "a text, \"quoted\" and long, \u00e9 [] {} of an answer", "#);
            }
            self.left = self.left.saturating_sub(self.pending.len() as u64);
        } else if !self.ended {
            self.ended = true;
            self.pending.extend(br#"0], "duration": 58.9, "completed": 200, "request_throughput": 3.3956}"#);
        }
    }
}

impl Read for Detailed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.given == self.pending.len() {
            self.refill();
        }
        let count = self.pending.get(self.given..).unwrap_or_default().read(into)?;
        self.given += count;
        Ok(count)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, megabytes] = arguments.as_slice()
        && flag == "--generate"
    {
        let megabytes: u64 = megabytes.parse()?;
        let start = Instant::now();
        let reading = read(Detailed::new(megabytes << 20), &Binding::default())?;
        let took_s = start.elapsed().as_secs_f64();
        println!("{}", serde_json::to_string(&reading)?);
        println!("{megabytes} MiB in {took_s:.2} s");
        let status = std::fs::read_to_string("/proc/self/status")?;
        println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("no VmHWM"));
        return Ok(());
    }
    for path in arguments {
        println!("{path}\n  {}", serde_json::to_string(&read(File::open(&path)?, &Binding::default())?)?);
    }
    Ok(())
}
