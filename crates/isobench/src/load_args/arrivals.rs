//! From what was typed about arrivals to when requests are sent.

use isobench_schema::workload::Arrival;

use super::ArrivalArgs;
use super::values::ArrivalArg;

/// Why what was typed about arrivals makes no sense together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArrivalError {
    /// A rate is needed.
    #[error("`--arrival {kind}` needs a rate: give `--rate PER_SECOND`")]
    RateMissing {
        /// The kind of arrival.
        kind: &'static str,
    },
    /// A flag says something that the arrival says otherwise.
    #[error("`{flag}` doesn't go with `--arrival {kind}`: leave one of the two out")]
    Unneeded {
        /// The flag.
        flag: &'static str,
        /// The kind of arrival.
        kind: &'static str,
    },
    /// Both loops are asked for.
    #[error(
        "`--rate` and `--concurrency` don't go together: the most requests under way at a rate are `--max-in-flight {concurrency}`"
    )]
    BothLoops {
        /// The concurrency.
        concurrency: u32,
    },
    /// A flag is of the closed loop.
    #[error(
        "`--ramp` counts for the closed loop only: give `--concurrency`, or rates that grow: `--arrival stages:10s@1..20`"
    )]
    ClosedOnly,
    /// A flag is of the open loop.
    #[error("`{flag}` counts for open loops only: give `--rate` or another `--arrival`")]
    OpenOnly {
        /// The flag.
        flag: &'static str,
    },
}

/// Returns when requests are sent. `concurrency` counts where none is given.
///
/// # Errors
/// Returns which flags contradict each other.
pub(crate) fn arrival(args: &ArrivalArgs, concurrency: u32) -> Result<Arrival, ArrivalError> {
    if let (Some(concurrency), Some(_)) = (args.concurrency, args.rate) {
        return Err(ArrivalError::BothLoops { concurrency });
    }
    let arrival = match (&args.arrival, args.rate) {
        (None | Some(ArrivalArg::Closed), None) => {
            if args.burstiness.is_some() {
                return Err(ArrivalError::OpenOnly { flag: "--burstiness" });
            }
            Arrival::Closed { concurrency: args.concurrency.unwrap_or(concurrency), ramp_s: args.ramp }
        }
        (Some(ArrivalArg::Closed), Some(_)) => return Err(ArrivalError::Unneeded { flag: "--rate", kind: "closed" }),
        (None | Some(ArrivalArg::Gamma), Some(rate_per_s)) => {
            Arrival::Open { rate_per_s, burstiness: args.burstiness.unwrap_or(1.0) }
        }
        (Some(ArrivalArg::Poisson), Some(rate_per_s)) => {
            if args.burstiness.is_some() {
                return Err(ArrivalError::Unneeded { flag: "--burstiness", kind: "poisson" });
            }
            Arrival::Open { rate_per_s, burstiness: 1.0 }
        }
        (Some(ArrivalArg::Constant), Some(rate_per_s)) => {
            if args.burstiness.is_some() {
                return Err(ArrivalError::Unneeded { flag: "--burstiness", kind: "constant" });
            }
            Arrival::Constant { rate_per_s }
        }
        (Some(ArrivalArg::Poisson), None) => return Err(ArrivalError::RateMissing { kind: "poisson" }),
        (Some(ArrivalArg::Constant), None) => return Err(ArrivalError::RateMissing { kind: "constant" }),
        (Some(ArrivalArg::Gamma), None) => return Err(ArrivalError::RateMissing { kind: "gamma" }),
        (Some(ArrivalArg::Whole(whole)), rate) => complete(whole, rate, args)?,
    };
    if args.ramp.is_some() && arrival.is_open() {
        return Err(ArrivalError::ClosedOnly);
    }
    if args.max_in_flight.is_some() && !arrival.is_open() {
        return Err(ArrivalError::OpenOnly { flag: "--max-in-flight" });
    }
    Ok(arrival)
}

/// Returns an arrival that says its own rates, with the shape of gaps that is asked for.
fn complete(whole: &Arrival, rate: Option<f64>, args: &ArrivalArgs) -> Result<Arrival, ArrivalError> {
    let kind = match whole {
        Arrival::Stages { .. } => "stages",
        Arrival::Bursts { .. } => "bursts",
        Arrival::Trace { .. } => "trace",
        Arrival::AllAtOnce => "all-at-once",
        Arrival::Closed { .. } => "closed",
        Arrival::Open { .. } => "gamma",
        Arrival::Constant { .. } => "constant",
    };
    if rate.is_some() {
        return Err(ArrivalError::Unneeded { flag: "--rate", kind });
    }
    if args.concurrency.is_some() {
        return Err(ArrivalError::Unneeded { flag: "--concurrency", kind });
    }
    match (whole, args.burstiness) {
        (Arrival::Stages { stages, .. }, burstiness) => Ok(Arrival::Stages { stages: stages.clone(), burstiness }),
        (_, Some(_)) => Err(ArrivalError::Unneeded { flag: "--burstiness", kind }),
        (whole, None) => Ok(whole.clone()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Arguments, Command};

    fn check(flags: &str, expected: Result<Arrival, &str>) {
        let words = ["isobench", "load", "http://a"].into_iter().chain(flags.split_whitespace());
        let Command::Load(args) = Arguments::try_parse_from(words).unwrap().command else { panic!("not load") };
        let found = arrival(&args.arrival, 8).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(ToOwned::to_owned), "{flags}");
    }

    #[test]
    fn what_is_typed_is_one_arrival_or_a_contradiction() {
        check("", Ok(Arrival::closed(8)));
        check("--concurrency 4 --ramp 2s", Ok(Arrival::Closed { concurrency: 4, ramp_s: Some(2.0) }));
        check("--rate 5", Ok(Arrival::Open { rate_per_s: 5.0, burstiness: 1.0 }));
        check("--rate 5 --burstiness 0.5", Ok(Arrival::Open { rate_per_s: 5.0, burstiness: 0.5 }));
        check("--rate 5 --arrival constant", Ok(Arrival::Constant { rate_per_s: 5.0 }));
        check("--arrival bursts:5/2", Ok(Arrival::Bursts { size: 5, period_s: 2.0 }));
        check(
            "--rate 5 --concurrency 3",
            Err(
                "`--rate` and `--concurrency` don't go together: the most requests under way at a rate are `--max-in-flight 3`",
            ),
        );
        check(
            "--rate 5 --ramp 2s",
            Err(
                "`--ramp` counts for the closed loop only: give `--concurrency`, or rates that grow: `--arrival stages:10s@1..20`",
            ),
        );
        check("--ramp 2s", Ok(Arrival::Closed { concurrency: 8, ramp_s: Some(2.0) }));
        check("--arrival poisson", Err("`--arrival poisson` needs a rate: give `--rate PER_SECOND`"));
        check("--arrival trace --rate 2", Err("`--rate` doesn't go with `--arrival trace`: leave one of the two out"));
        check("--burstiness 2", Err("`--burstiness` counts for open loops only: give `--rate` or another `--arrival`"));
        check(
            "--max-in-flight 9",
            Err("`--max-in-flight` counts for open loops only: give `--rate` or another `--arrival`"),
        );
    }
}
