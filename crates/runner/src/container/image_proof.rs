//! The proof that an image holds a commit: from a new container of it, by the daemon's copy of its files and by an import.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use isobench_schema::container::ContainerLimits;
use serde::Deserialize;

use super::image_build::{BuildImageError, ImageBuild, start};
use super::init::Start;
use super::tree_archive::{Packed, read};
use super::watched::{self, Ended, Watched};
use super::{ContainerOptions, Daemon};
use crate::environment::{Entry, PrepareContext};

/// Says where a module is found before anything of it runs, and imports it then.
const IMPORT: &str = "import importlib, importlib.util, json, sys
spec = importlib.util.find_spec(sys.argv[1])
places = list(spec.submodule_search_locations or []) if spec else []
print(sys.argv[2] + json.dumps({'place': places[0] if places else (spec.origin if spec else None)}), flush=True)
importlib.import_module(sys.argv[1])
";
/// How many differences are named.
const NAMED: usize = 3;

/// What an image is proven against.
pub(super) struct Proof<'a> {
    pub(super) build: &'a ImageBuild<'a>,
    pub(super) entries: &'a BTreeMap<String, Entry>,
    pub(super) marker: &'a str,
    pub(super) context: &'a PrepareContext<'a>,
}

/// What was proven.
pub(super) struct Proven {
    pub(super) files: u64,
    pub(super) module: String,
}

/// Where the module was found.
#[derive(Deserialize)]
struct Found {
    place: Option<String>,
}

/// Proves an image. The inner error says what is wrong with it.
pub(super) async fn prove(
    daemon: &Daemon,
    image: &str,
    proof: &Proof<'_>,
) -> Result<Result<Proven, String>, BuildImageError> {
    let build = proof.build;
    let nonce = format!("isobench-{}-{}:", proof.marker, std::process::id());
    let command = [build.python, "-B", "-c", IMPORT, build.module, &nonce];
    let options = ContainerOptions {
        image: image.to_owned(),
        limits: ContainerLimits { memory_bytes: build.memory_bytes, ..ContainerLimits::default() },
        in_memory: vec!["/tmp".into()],
        ..ContainerOptions::default()
    };
    let name = format!("isobench-{}-proof", proof.marker);
    let container = watched::make(daemon, (proof.marker, &name), options, proof.context.timeout).await?;
    let start = start(&command, daemon.image(image).await?.1);
    let found = look(daemon, (&container, &start), proof, &nonce).await;
    daemon.remove(&container).await?;
    found
}

async fn look(
    daemon: &Daemon,
    (container, start): (&str, &Start),
    proof: &Proof<'_>,
    nonce: &str,
) -> Result<Result<Proven, String>, BuildImageError> {
    let build = proof.build;
    // The files come first, before anything of the image has run.
    let Some(held) = copy(daemon, container, build.folder, proof.context).await? else {
        return Ok(Err(format!("it has no folder `{}`", build.folder)));
    };
    let whole = compare(proof.entries, &held, "", |_| true);
    let files = match whole {
        Ok(files) => files,
        Err(why) => return Ok(Err(format!("in `{}` {why}", build.folder))),
    };
    let Watched { ended, since } = watched::finish(daemon, container, start, proof.context, &|_| {}).await?;
    if ended == Ended::Cancelled {
        return Err(BuildImageError::Cancelled);
    }
    let log = proof.context.log;
    let said = read_from(log, since).map_err(BuildImageError::file(log))?;
    let said = String::from_utf8_lossy(&said);
    // The first line is from before the module ran.
    let place = said.lines().find_map(|line| line.strip_prefix(nonce));
    let place = place.and_then(|line| serde_json::from_str::<Found>(line).ok()).and_then(|found| found.place);
    let module = build.module;
    let Some(place) = place else {
        return Ok(Err(format!("`{}` finds no module `{module}`", build.python)));
    };
    if ended != Ended::Exited(0) {
        let last = said.lines().last().unwrap_or_default();
        return Ok(Err(format!("the module `{module}` at `{place}` can't be imported: {last}")));
    }
    if !Path::new(&place).starts_with(build.folder) {
        // It was installed elsewhere, and is what is proven then.
        let Some(held) = copy(daemon, container, &place, proof.context).await? else {
            return Ok(Err(format!("`{place}`, where the module `{module}` is imported from, isn't there")));
        };
        let is_python = |path: &str| Path::new(path).extension().is_some_and(|extension| extension == "py");
        let installed = compare(proof.entries, &held, build.module_folder, is_python);
        match installed {
            Ok(0) => {
                let why = format!("the commit has no Python files in `{}`", build.module_folder);
                return Ok(Err(why));
            }
            Ok(_) => {}
            Err(why) => return Ok(Err(format!("in `{place}`, where `{module}` is imported from, {why}"))),
        }
    } else if !Path::new(&place).starts_with(Path::new(build.folder).join(build.module_folder)) {
        let why = format!("the module `{module}` is imported from `{place}`, not from `{}`", build.module_folder);
        return Ok(Err(why));
    }
    Ok(Ok(Proven { files, module: place }))
}

/// Returns what a log holds from a place on.
fn read_from(log: &Path, since: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    file.seek(SeekFrom::Start(since))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Copies a folder out of a container; none if it isn't there.
async fn copy(
    daemon: &Daemon,
    container: &str,
    folder: &str,
    context: &PrepareContext<'_>,
) -> Result<Option<BTreeMap<String, Packed>>, BuildImageError> {
    let path = context.scratch.join("image.tar");
    let file = File::create(&path).map_err(BuildImageError::file(&path))?;
    match daemon.copy_out(container, folder, file).await {
        Ok(()) => {}
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let file = File::open(&path).map_err(BuildImageError::file(&path))?;
    let held = read(std::io::BufReader::new(file)).map_err(BuildImageError::file(&path))?;
    std::fs::remove_file(&path).map_err(BuildImageError::file(&path))?;
    Ok(Some(held))
}

/// Compares what a commit has below a folder with what is held: what is wanted must be there, and what is there must be equal.
/// More may be there, as builds leave it.
fn compare(
    entries: &BTreeMap<String, Entry>,
    held: &BTreeMap<String, Packed>,
    below: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<u64, String> {
    let mut equal = 0;
    let mut faults = Vec::new();
    for (path, entry) in entries {
        let Some(inner) = Path::new(path).strip_prefix(below).ok().and_then(Path::to_str) else { continue };
        let expected = match entry {
            Entry::File { sha256, .. } => Packed::File(sha256.clone()),
            Entry::Link { target } => Packed::Link(target.clone()),
            Entry::Folder | Entry::Other => continue,
        };
        match held.get(inner) {
            None if is_wanted(path) => faults.push(format!("`{path}` is missing")),
            None => {}
            Some(found) if *found == expected => equal += 1,
            Some(_) => faults.push(format!("`{path}` isn't the commit's")),
        }
    }
    if faults.is_empty() {
        return Ok(equal);
    }
    let count = faults.len();
    faults.truncate(NAMED);
    Err(format!("{count} files are others: {}", faults.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_schema::ids::Digest;

    #[test]
    fn what_differs_or_is_missing_is_named() {
        let file = |bytes: &[u8]| Entry::File { mode: 0o644, size: 1, sha256: Digest::of(bytes), native: false };
        let entries: BTreeMap<String, Entry> = [("m/a.py", file(b"a")), ("m/b.txt", file(b"b")), ("c.py", file(b"c"))]
            .map(|(path, entry)| (path.to_owned(), entry))
            .into();
        let held = |pairs: &[(&str, &[u8])]| -> BTreeMap<String, Packed> {
            pairs.iter().map(|(path, bytes)| ((*path).to_owned(), Packed::File(Digest::of(bytes)))).collect()
        };
        let python = |path: &str| std::path::Path::new(path).extension().is_some_and(|found| found == "py");
        assert_eq!(compare(&entries, &held(&[("a.py", b"a"), ("x.so", b"x")]), "m", python), Ok(1));
        assert!(compare(&entries, &held(&[("a.py", b"A")]), "m", python).unwrap_err().contains("isn't the commit's"));
        assert!(compare(&entries, &held(&[("b.txt", b"b")]), "m", python).unwrap_err().contains("`m/a.py` is missing"));
    }
}
