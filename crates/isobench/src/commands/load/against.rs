//! `isobench load --against URL_A URL_B`: the same requests to two running servers at the same times.

use std::path::{Path, PathBuf};

use isobench_schema::load_result::Validity;
use tokio::runtime::Runtime;

use super::super::Context;
use super::asked::Asked;
use super::carry::{Carrier, Limits};
use super::server::Server;
use super::{exit, outputs};
use crate::exit::{CommandError, Exit};
use crate::load_args::LoadArgs;

/// Loads both servers, and writes what they differ by.
///
/// # Errors
/// As for a load of one server.
pub(super) fn run(
    args: &LoadArgs,
    urls: &[String],
    limits: &Limits,
    runtime: &Runtime,
    context: Context,
) -> Result<Exit, CommandError> {
    let [first_url, second_url] = urls else {
        return Err(CommandError::new(Exit::Usage, "`--against` needs two URLs"));
    };
    let first = Server::find(args, first_url, limits, runtime)?;
    let second = Server::find(args, second_url, limits, runtime)?;
    // What the first one is asked for is what both are sent.
    let asked = Asked::of(args, &first, limits, runtime)?;
    if args.dry_run {
        return asked.show(&first, context);
    }
    let records = args.output.records.as_deref();
    let others = records.map(beside);
    let mut one = Carrier::new(args, &first, &asked, limits, context, records)?;
    one.say_left_out();
    let mut other = Carrier::new(args, &second, &asked, limits, context, others.as_deref())?;
    runtime.block_on(async {
        let (a, b) = tokio::join!(one.prepare(), other.prepare());
        a.and(b)?;
        let (a, b) = tokio::join!(one.measure(), other.measure());
        a.and(b)
    })?;
    let (mut report, against) = (one.finish()?, other.finish()?);
    report.result.urls = urls.to_vec();
    report.result.paired = Some(report.against(&against));
    // A comparison is worth no more than the worse of the two loads.
    report.result.findings.extend(against.result.findings.into_iter().map(|mut finding| {
        finding.message = format!("{second_url}: {}", finding.message);
        finding
    }));
    report.result.validity = Validity::of(&report.result.findings);
    outputs::write(args, &report, context)?;
    Ok(exit(&report.result, limits.cause()))
}

/// Returns where the records of the second server go: beside those of the first, with `.b` in the name.
pub(super) fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("records");
    let (stem, end) = name.split_once('.').map_or((name, ""), |(stem, _)| (stem, name.get(stem.len()..).unwrap_or("")));
    path.with_file_name(format!("{stem}.b{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_servers_records_lie_beside_the_first_ones() {
        assert_eq!(beside(Path::new("a/r.jsonl.zst")), Path::new("a/r.b.jsonl.zst"));
        assert_eq!(beside(Path::new("records")), Path::new("records.b"));
    }
}
