//! `isobench wheels`: what indexes have, whether a wheel is what it says, and which revisions of a dataset have one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use isobench_plan::knowledge::Knowledge;
use isobench_plan::knowledge::engines::Engine;
use isobench_runner::wheels::archive::{self, CheckWheelError, Expected};
use isobench_runner::wheels::fetch::{FetchError, Fetcher};
use isobench_runner::wheels::index::{self, IndexFile, Listing};
use isobench_runner::wheels::name::{Target, normalised};
use isobench_schema::environment::{EngineKind, Rung};
use isobench_schema::ids::{CommitId, Digest};
use serde::Serialize;

use super::Context;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::wheels_args::{WheelsArgs, WheelsAuditArgs, WheelsCheckArgs, WheelsCommand, WheelsListArgs};

/// Runs the command.
pub(crate) fn run(args: &WheelsArgs, context: Context) -> Result<Exit, CommandError> {
    match &args.command {
        WheelsCommand::List(args) => list(args, context),
        WheelsCommand::Check(args) => check(args, context),
        WheelsCommand::Audit(args) => audit(args, context),
    }
}

fn is_address(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

/// A wheel of a list.
#[derive(Serialize)]
struct ListedWheel<'a> {
    file: &'a str,
    distribution: &'a str,
    version: String,
    tags: String,
    place: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<&'a Digest>,
    #[serde(skip_serializing_if = "is_false")]
    yanked: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

fn list(args: &WheelsListArgs, context: Context) -> Result<Exit, CommandError> {
    let target = args.python.as_deref().map(|python| target(python, &args.glibc)).transpose()?;
    let listing = if is_address(&args.place) {
        Fetcher::new().page(&args.place).map_err(fetch_error)?
    } else {
        index::read_folder(Path::new(&args.place)).exit(Exit::Usage)?
    };
    let package = args.package.as_deref().map(normalised);
    let is_wanted = |file: &&IndexFile| {
        package.as_ref().is_none_or(|package| file.name.distribution == *package)
            && target.as_ref().is_none_or(|target| file.name.fits(target))
    };
    let mut wheels: Vec<&IndexFile> = listing.wheels.iter().filter(is_wanted).collect();
    wheels.sort_by(|one, other| {
        (&one.name.distribution, &one.name.version).cmp(&(&other.name.distribution, &other.name.version))
    });
    if context.json {
        let row = |file: &&IndexFile| -> serde_json::Value { serde_json::json!(listed(file)) };
        context.print_json(&wheels.iter().map(row).collect::<Vec<_>>())?;
    } else {
        for file in &wheels {
            let hash = file.sha256.as_ref().map_or("no hash", Digest::short);
            let yanked = if file.yanked { ", withdrawn" } else { "" };
            context.terminal.data(&format!("{}  {hash}{yanked}\n", file.file));
        }
    }
    for line in &listing.skipped {
        context.terminal.status(&format!("left out: {line}"));
    }
    if wheels.is_empty() {
        context.terminal.status(&nothing(&listing, args));
        return Ok(Exit::NothingToRun);
    }
    Ok(Exit::Success)
}

fn nothing(listing: &Listing, args: &WheelsListArgs) -> String {
    match listing.wheels.len() {
        0 => format!("there is no wheel at `{}`", args.place),
        1 => format!("the one wheel at `{}` isn't such a one", args.place),
        more => format!("none of the {more} wheels at `{}` is such a one", args.place),
    }
}

fn listed(file: &IndexFile) -> ListedWheel<'_> {
    ListedWheel {
        file: &file.file,
        distribution: &file.name.distribution,
        version: file.name.version.to_string(),
        tags: file.name.tag_text(),
        place: &file.place,
        sha256: file.sha256.as_ref(),
        yanked: file.yanked,
    }
}

fn target(python: &str, glibc: &str) -> Result<Target, CommandError> {
    let minor = |text: &str, major: &str| text.strip_prefix(major)?.split('.').next()?.parse().ok();
    let wrong = |option: &str, text: &str, example: &str| {
        CommandError::new(Exit::Usage, format!("`{option} {text}` is no version such as `{example}`"))
    };
    Ok(Target {
        python_minor: minor(python, "3.").ok_or_else(|| wrong("--python", python, "3.12"))?,
        machine: std::env::consts::ARCH.to_owned(),
        glibc_minor: minor(glibc, "2.").ok_or_else(|| wrong("--glibc", glibc, "2.28"))?,
    })
}

/// What `wheels check` found.
#[derive(Serialize)]
struct CheckedWheel {
    file: String,
    sound: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(flatten)]
    contents: Option<Contents>,
}

/// What a sound wheel holds.
#[derive(Serialize)]
struct Contents {
    sha256: Digest,
    bytes: u64,
    unpacked_bytes: u64,
    files: usize,
    native_files: usize,
    version: String,
    modules: Vec<String>,
    notes: Vec<String>,
}

fn check(args: &WheelsCheckArgs, context: Context) -> Result<Exit, CommandError> {
    let sha256 = args.sha256.as_ref().map(|text| Digest::new(text.to_ascii_lowercase())).transpose();
    let sha256 = sha256.exit(Exit::Usage)?;
    let scratch = tempfile::tempdir().exit(Exit::Machine)?;
    let path = if is_address(&args.wheel) {
        fetch(&args.wheel, sha256.as_ref(), scratch.path(), context)?
    } else {
        PathBuf::from(&args.wheel)
    };
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let checked = match archive::check(&path, &Expected { sha256, modules: args.modules.clone() }) {
        Ok(found) => {
            let native = found.files.keys().filter(|path| path.contains(".so")).count();
            let top = found.modules.iter().filter(|module| !module.contains('.')).cloned().collect();
            let contents = Contents {
                sha256: found.sha256,
                bytes: found.bytes,
                unpacked_bytes: found.unpacked_bytes,
                files: found.files.len(),
                native_files: native,
                version: found.version,
                modules: top,
                notes: found.notes,
            };
            CheckedWheel { file, sound: true, refused: None, contents: Some(contents) }
        }
        Err(error @ CheckWheelError::Read { .. }) => return Err(CommandError::from_error(Exit::Usage, error)),
        Err(error) => CheckedWheel { file, sound: false, refused: Some(error.to_string()), contents: None },
    };
    if context.json {
        context.print_json(&checked)?;
    } else {
        context.terminal.data(&text_of(&checked));
    }
    Ok(if checked.sound { Exit::Success } else { Exit::SomeFailed })
}

fn text_of(checked: &CheckedWheel) -> String {
    let Some(contents) = &checked.contents else {
        return format!("{}\n", checked.refused.as_deref().unwrap_or_default());
    };
    let Contents { sha256, bytes, unpacked_bytes, files, native_files, version, modules, notes } = contents;
    let mut text = format!(
        "{} is sound: version {version}, {files} files ({native_files} native), {bytes} bytes, {unpacked_bytes} unpacked\n\
         sha256 {sha256}\nimports: {}\n",
        checked.file,
        modules.join(", ")
    );
    text.extend(notes.iter().map(|note| format!("note: {note}\n")));
    text
}

fn fetch(address: &str, sha256: Option<&Digest>, into: &Path, context: Context) -> Result<PathBuf, CommandError> {
    let name = isobench_runner::wheels::file_name(address);
    let name = name.ok_or_else(|| CommandError::new(Exit::Usage, format!("`{address}` names no file")))?;
    let path = into.join(name);
    context.terminal.status("fetching the wheel");
    Fetcher::new().file(address, sha256, &path).map_err(fetch_error)?;
    Ok(path)
}

fn fetch_error(error: FetchError) -> CommandError {
    let (exit, hint) = match &error {
        FetchError::NotFound { .. } => (Exit::Usage, "`isobench wheels list` shows what a page has"),
        FetchError::HashMismatch { .. } => (Exit::SomeFailed, "another file was published; nothing of it was kept"),
        FetchError::Redirect { .. } | FetchError::TooLarge { .. } | FetchError::Page(_) => {
            (Exit::Usage, "nothing of it was kept")
        }
        FetchError::Status { .. } | FetchError::Network { .. } | FetchError::CutOff { .. } => {
            (Exit::Machine, "nothing of it was kept; the same command tries again")
        }
        FetchError::Write { .. } => (Exit::Machine, "free some room, or name another folder with `TMPDIR`"),
    };
    CommandError::from_error(exit, error).hint(hint)
}

/// What an archive answered for one wheel.
#[derive(Serialize)]
struct AuditedWheel {
    artifact: String,
    answer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
    commits: BTreeSet<CommitId>,
}

fn audit(args: &WheelsAuditArgs, context: Context) -> Result<Exit, CommandError> {
    let (plan, _) = super::plan::make(&args.dataset, &args.choice, context)?;
    let mut wanted: BTreeMap<String, BTreeSet<CommitId>> = BTreeMap::new();
    for assessment in &plan.assessments {
        for answers in assessment.ladder.values() {
            let own = answers.iter().filter(|answer| answer.rung == Rung::Wheel);
            for artifact in own.filter_map(|answer| answer.artifact.as_ref()).filter(|artifact| is_address(artifact)) {
                let digits = artifact.split('/').filter_map(|part| CommitId::new(part).ok());
                wanted.entry(artifact.clone()).or_default().extend(digits);
            }
        }
    }
    if wanted.is_empty() {
        context.terminal.status("no revision of the dataset has a wheel of its own by what is known of its engine");
        return Ok(Exit::NothingToRun);
    }
    let fetcher = Fetcher::new();
    let mut audited = Vec::new();
    for (artifact, commits) in wanted {
        context.terminal.status(&format!("asking for {artifact}"));
        let answered = ask(&fetcher, &artifact);
        let (answer, because) = match answered {
            Ok(true) => ("present", None),
            Ok(false) => ("absent", None),
            Err(error) => ("unknown", Some(error.to_string())),
        };
        audited.push(AuditedWheel { artifact, answer, because, commits });
    }
    let count = |answer: &str| audited.iter().filter(|wheel| wheel.answer == answer).count();
    if context.json {
        context.print_json(&audited)?;
    } else {
        for wheel in &audited {
            let because = wheel.because.as_ref().map_or_else(String::new, |because| format!(": {because}"));
            context.terminal.data(&format!("{:8} {}{because}\n", wheel.answer, wheel.artifact));
        }
    }
    let (present, absent, unknown) = (count("present"), count("absent"), count("unknown"));
    context.terminal.status(&format!("{present} present, {absent} absent, {unknown} not known"));
    Ok(if unknown == 0 { Exit::Success } else { Exit::SomeFailed })
}

/// Asks for a wheel by its address, or for an index's page of it.
fn ask(fetcher: &Fetcher, artifact: &str) -> Result<bool, FetchError> {
    if Path::new(artifact).extension().is_some_and(|end| end == "whl") {
        return fetcher.is_there(artifact);
    }
    let package = package_of(artifact).unwrap_or_default();
    match fetcher.page(&format!("{}/{package}/", artifact.trim_end_matches('/'))) {
        Ok(listing) => Ok(!listing.wheels.is_empty()),
        Err(FetchError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the package that an index of single commits is about, by the tables of engines.
fn package_of(index: &str) -> Option<String> {
    let engines = &Knowledge::embedded().engines;
    let of_engine = |engine: &&Engine| {
        let templates = engine.wheel.iter().filter_map(|layout| layout.index.as_deref());
        templates.filter_map(|template| template.split("{commit}").next()).any(|start| index.starts_with(start))
    };
    let engine = EngineKind::ALL.iter().filter_map(|kind| engines.of(*kind)).find(of_engine)?;
    Some(engine.package.clone())
}
