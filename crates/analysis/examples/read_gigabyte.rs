//! Reads a gigabyte of an engine's log, with progress bars and a result at its end, and prints the speed and peak memory.
//!
//! Run it with `cargo run --release -p isobench-analysis --example read_gigabyte`.
#![allow(clippy::print_stdout, reason = "an example's output is what it is for")]

use std::io::{self, Read};
use std::time::Instant;

use isobench_analysis::parse::{self, binding::Binding};

/// How much log there is, in bytes.
const LENGTH: u64 = 1 << 30;

/// What is logged over and over: what a server, a loader and a client write.
const LOGGED: &str = "\
INFO 06-13 11:42:20 [loggers.py:116] Engine 000: Avg prompt throughput: 1204.5 tokens/s, Avg generation throughput: \
51.2 tokens/s, Running: 5 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.4%, Prefix cache hit rate: 12.1%\n\
INFO:     127.0.0.1:43210 - \"POST /v1/completions HTTP/1.1\" 200 OK\n\
(EngineCore_DP0 pid=4242) INFO 08-03 11:42:20 [core.py:632] Finished request cmpl-5d1c0f8e-0 with 128 tokens\n\
\r 43%|████▎     | 86/200 [00:58<00:58,  3.39it/s]\r 44%|████▎     | 87/200 [00:58<00:57,  3.39it/s]\n\
[2025-07-01 10:00:00 TP0] Decode batch. #running-req: 1, #token: 36, token usage: 0.00, gen throughput (token/s): \
22.17, #queue-req: 0\n\
WARNING 06-13 11:42:20 [scheduler.py:1] Sequence group cmpl-7 is preempted by PreemptionMode.RECOMPUTE mode\n";

/// What stands at the end.
const RESULT: &str = "\
============ Serving Benchmark Result ============
Successful requests:                     200       
Benchmark duration (s):                  58.91     
Total input tokens:                      43210     
Total generated tokens:                  39871     
Request throughput (req/s):              3.39      
Output token throughput (tok/s):         676.78    
Total Token throughput (tok/s):          1410.24   
==================================================
";

/// A log that is made while it is read.
struct Log {
    left: u64,
    place: usize,
    end: &'static [u8],
}

impl Read for Log {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return self.end.read(into);
        }
        let mut done = 0;
        while done < into.len() && self.left > 0 {
            let rest = LOGGED.as_bytes().get(self.place..).unwrap_or_default();
            let count = rest.len().min(into.len() - done);
            if let (Some(to), Some(from)) = (into.get_mut(done..done + count), rest.get(..count)) {
                to.copy_from_slice(from);
            }
            done += count;
            self.place += count;
            if self.place == LOGGED.len() {
                self.place = 0;
                self.left = self.left.saturating_sub(LOGGED.len() as u64);
            }
        }
        Ok(done)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let log = Log { left: LENGTH, place: 0, end: RESULT.as_bytes() };
    let reading = parse::read(log, &Binding::default())?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{}", serde_json::to_string(&reading)?);
    #[expect(clippy::cast_precision_loss, reason = "a gigabyte is far below 2^52")]
    let megabytes = LENGTH as f64 / 1e6;
    println!("{megabytes:.0} MB in {seconds:.2} s: {:.0} MB/s", megabytes / seconds);
    if let Some(peak) = std::fs::read_to_string("/proc/self/status")?.lines().find(|line| line.starts_with("VmHWM")) {
        println!("{peak}");
    }
    Ok(())
}
