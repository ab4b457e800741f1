//! When another client sends its requests: rates, bounds, ramps and traces.

use super::meaning::Draft;

/// Every flag of other clients that says when requests are sent.
const NAMES: [&str; 9] = [
    "--request-rate",
    "--max-concurrency",
    "--burstiness",
    "--use-trace-timestamps",
    "--mooncake-slowdown-factor",
    "--ramp-up-strategy",
    "--ramp-up-start-rps",
    "--ramp-up-end-rps",
    "--self-timed",
];

/// Straight stretches of rate over time that stand for a ramp over requests. In each the number of requests is exact.
const STRETCHES: u8 = 20;

impl Draft<'_> {
    /// Takes in when requests are sent.
    pub(super) fn arrival(&mut self) {
        let own = ["--rate", "--concurrency", "--arrival", "--sweep"].into_iter().find(|flag| self.is_said(flag));
        if let Some(own) = own {
            self.needless(&NAMES, &format!("`{own}` is said already"));
            return;
        }
        if self.has("--use-trace-timestamps") || self.has("--self-timed") {
            self.trace();
            return;
        }
        if self.has("--ramp-up-strategy") {
            self.ramp();
            return;
        }
        let number = |name: &str| self.value(name).and_then(|text| text.parse::<f64>().ok());
        let (rate, bound) = (number("--request-rate"), number("--max-concurrency").filter(|bound| *bound > 0.0));
        let rate = rate.filter(|rate| rate.is_finite());
        let bound = bound.map(|bound| format!("{bound:.0}"));
        match (rate, bound) {
            (Some(rate), _) if rate <= 0.0 => {
                if let Some(option) = self.option("--request-rate") {
                    self.refuse(&option, "give a rate above 0, or `inf`");
                }
            }
            (Some(rate), bound) => self.rate(rate, bound.as_deref()),
            (None, Some(bound)) => {
                self.together(&["--request-rate", "--max-concurrency"], &["--concurrency", &bound], None);
            }
            (None, None) => self.together(&["--request-rate"], &["--arrival", "all-at-once"], None),
        }
    }

    fn rate(&mut self, rate: f64, bound: Option<&str>) {
        let rate = rate.to_string();
        self.together(&["--request-rate"], &["--rate", &rate], None);
        if let Some(shape) = self.value("--burstiness").map(ToOwned::to_owned) {
            match shape.parse::<f64>() {
                Ok(number) if number.is_infinite() => {
                    self.together(&["--burstiness"], &["--arrival", "constant"], None);
                }
                Ok(_) | Err(_) => self.together(&["--burstiness"], &["--burstiness", &shape], None),
            }
        }
        if let Some(bound) = bound {
            let note = "a request that waits for its turn is late, and its latency counts the wait";
            self.together(&["--max-concurrency"], &["--max-in-flight", bound], Some(note));
        }
    }

    fn trace(&mut self) {
        let slower = self.value("--mooncake-slowdown-factor").and_then(|text| text.parse::<f64>().ok());
        let arrival = match slower.filter(|slower| *slower > 0.0 && (*slower - 1.0).abs() > f64::EPSILON) {
            Some(slower) => format!("trace:{}", 1.0 / slower),
            None => "trace".to_owned(),
        };
        self.together(
            &["--use-trace-timestamps", "--self-timed", "--mooncake-slowdown-factor"],
            &["--arrival", &arrival],
            None,
        );
    }

    /// A ramp of vLLM's client goes from rate to rate over the requests, not over time: the stretches have the same rates at
    /// the same requests.
    fn ramp(&mut self) {
        const RAMP: [&str; 3] = ["--ramp-up-strategy", "--ramp-up-start-rps", "--ramp-up-end-rps"];
        let number = |name: &str| self.value(name).and_then(|text| text.parse::<f64>().ok());
        let (from, to) = (number("--ramp-up-start-rps"), number("--ramp-up-end-rps"));
        let requests = number("--num-prompts").filter(|requests| *requests >= 1.0);
        let exponential = self.value("--ramp-up-strategy") == Some("exponential");
        let (Some(from), Some(to), Some(requests)) = (from, to, requests) else {
            if let Some(option) = self.option("--ramp-up-strategy") {
                self.refuse(&option, "it needs `--ramp-up-start-rps`, `--ramp-up-end-rps` and `--num-prompts`");
            }
            return;
        };
        if from <= 0.0 || to <= 0.0 {
            if let Some(option) = self.option("--ramp-up-start-rps") {
                self.refuse(&option, "the rates of a ramp must be above 0 here");
            }
            return;
        }
        let rate = |part: f64| if exponential { from * (to / from).powf(part) } else { from + (to - from) * part };
        let stretches = (0..STRETCHES).map(|place| {
            let part = |place: u8| f64::from(place) / f64::from(STRETCHES);
            let (first, last) = (rate(part(place)), rate(part(place + 1)));
            let seconds = requests / f64::from(STRETCHES) / f64::midpoint(first, last);
            format!("{seconds:.6}s@{first:.6}..{last:.6}")
        });
        let stages = format!("stages:{}", stretches.collect::<Vec<_>>().join(","));
        self.together(&RAMP, &["--arrival", &stages], Some("the same rates at the same requests"));
        if let Some(shape) = self.value("--burstiness").map(ToOwned::to_owned) {
            self.together(&["--burstiness"], &["--burstiness", &shape], None);
        }
        self.needless(&["--request-rate"], "the ramp says the rates");
        if let Some(bound) = self.value("--max-concurrency").map(ToOwned::to_owned) {
            self.together(&["--max-concurrency"], &["--max-in-flight", &bound], None);
        }
    }
}
