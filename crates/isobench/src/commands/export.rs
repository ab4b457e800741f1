//! `isobench export`: writes the rows of a dataset in the published form, or the results of a run in an earlier system's.

use isobench_plan::intake::export::{published, to_lines};

use super::{Context, export_legacy, import};
use crate::args::{ExportArgs, RowsArg};
use crate::dataset_files;
use crate::exit::{CommandError, Exit, WithExit as _};

/// Runs the command.
pub(crate) fn run(args: &ExportArgs, context: Context) -> Result<Exit, CommandError> {
    match args.format {
        RowsArg::Published => rows(args, context),
        RowsArg::Legacy => export_legacy::run(args, context),
    }
}

fn rows(args: &ExportArgs, context: Context) -> Result<Exit, CommandError> {
    import::may_write(&args.out, args.force)?;
    let kind = args.out.extension().and_then(|extension| extension.to_str());
    let dataset = import::read(&args.source)?;
    import::has_tasks(&dataset, &args.source)?;
    let rows = published(&dataset.header, &dataset.commit_tasks);
    let bytes = match kind {
        Some("jsonl") => to_lines(&rows).exit(Exit::Error)?.into_bytes(),
        Some("parquet") => {
            let written = dataset_files::write_parquet(&rows, dataset.header.parquet.as_ref());
            written.map_err(|error| {
                CommandError::from_error(Exit::Usage, error).hint("JSON Lines hold any row: `--out FILE.jsonl`")
            })?
        }
        Some(_) | None => {
            let message = format!("`{}` ends neither with `.jsonl` nor with `.parquet`", args.out.display());
            return Err(CommandError::new(Exit::Usage, message));
        }
    };
    import::write(&args.out, &bytes, args.force)?;
    import::finish(&dataset, &args.out, rows.rows.len(), context)
}
