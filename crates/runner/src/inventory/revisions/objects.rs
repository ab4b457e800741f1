//! The objects that paths of many commits name, read from trees alone, so that a clone without files' contents will do.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isobench_schema::ids::CommitId;

use crate::environment::{PrepareContext, Stop};
use crate::git::Repository;

/// A larger file says more than where it has gone.
const LARGEST_STUB: u64 = 4096;

/// The entries of a tree: name to object.
type Tree = HashMap<Vec<u8>, String>;

/// The objects of some paths at some commits.
pub(super) struct Objects {
    /// The tree of each commit's folder, by commit and folder.
    folders: HashMap<(CommitId, String), String>,
    trees: HashMap<String, Tree>,
}

impl Objects {
    pub(super) fn read(
        repository: &Repository,
        commits: &[CommitId],
        paths: &[&str],
        context: &PrepareContext<'_>,
    ) -> Result<Self, Stop> {
        let mut wanted: BTreeSet<&str> = paths.iter().map(|path| folder_and_name(path).0).collect();
        wanted.insert("");
        let asked: Vec<(&CommitId, &str)> =
            commits.iter().flat_map(|commit| wanted.iter().map(move |folder| (commit, *folder))).collect();
        let questions = asked.iter().map(|(commit, folder)| format!("{commit}:{folder}"));
        let arguments = ["cat-file", "--batch-check=%(objectname) %(objecttype)"];
        let output = repository.ask(&arguments, questions, context)?;
        let mut folders = HashMap::new();
        for ((commit, folder), answer) in asked.into_iter().zip(String::from_utf8_lossy(&output).lines()) {
            if let Some(tree) = answer.strip_suffix(" tree") {
                folders.insert((commit.clone(), folder.to_owned()), tree.to_owned());
            }
        }
        let unique: BTreeSet<&str> = folders.values().map(String::as_str).collect();
        let trees = read_all(repository, &unique, context)?;
        let trees = trees.into_iter().map(|(tree, content)| (tree.clone(), parse_tree(&content, tree.len() / 2)));
        let trees = trees.collect();
        Ok(Self { folders, trees })
    }

    /// Returns the object that a path names at a commit.
    pub(super) fn get(&self, commit: &CommitId, path: &str) -> Option<&String> {
        let (folder, name) = folder_and_name(path);
        let tree = self.folders.get(&(commit.clone(), folder.to_owned()))?;
        self.trees.get(tree)?.get(name.as_bytes())
    }

    /// Returns whether the tree of a commit is there at all.
    pub(super) fn has_tree(&self, commit: &CommitId) -> bool {
        self.folders.get(&(commit.clone(), String::new())).is_some_and(|tree| self.trees.contains_key(tree))
    }

    /// Returns which of the files at these paths hold a text; one whose content isn't there is held not to.
    pub(super) fn files_with(
        &self,
        repository: &Repository,
        paths: &[String],
        text: &str,
        context: &PrepareContext<'_>,
    ) -> Result<BTreeSet<String>, Stop> {
        let commits: BTreeSet<&CommitId> = self.folders.keys().map(|(commit, _)| commit).collect();
        let files: BTreeSet<&String> =
            commits.iter().flat_map(|commit| paths.iter().filter_map(|path| self.get(commit, path))).collect();
        let arguments = ["cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)"];
        let output = repository.ask(&arguments, files.iter(), context)?;
        let output = String::from_utf8_lossy(&output);
        let small = |line: &'_ str| {
            let mut fields = line.split(' ');
            let object = fields.next()?.to_owned();
            let is_small = fields.next()? == "blob" && fields.next()?.parse::<u64>().ok()? <= LARGEST_STUB;
            is_small.then_some(object)
        };
        let small: Vec<String> = output.lines().filter_map(small).collect();
        let contents = read_all(repository, &small.iter().map(String::as_str).collect(), context)?;
        let holds = |content: &[u8]| String::from_utf8_lossy(content).contains(text);
        Ok(contents.into_iter().filter(|(_, content)| holds(content)).map(|(file, _)| file).collect())
    }
}

/// Returns the contents of objects.
fn read_all(
    repository: &Repository,
    objects: &BTreeSet<&str>,
    context: &PrepareContext<'_>,
) -> Result<BTreeMap<String, Vec<u8>>, Stop> {
    let output = repository.ask(&["cat-file", "--batch"], objects.iter(), context)?;
    let mut contents = BTreeMap::new();
    let mut rest = output.as_slice();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (head, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        let head = String::from_utf8_lossy(head);
        let mut fields = head.split(' ');
        let (Some(object), Some(_), Some(size)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let Some(content) = size.parse().ok().and_then(|size: usize| rest.get(..size)) else { continue };
        contents.insert(object.to_owned(), content.to_vec());
        rest = rest.get(content.len() + 1..).unwrap_or_default();
    }
    Ok(contents)
}

/// Reads a tree as git stores it: `MODE NAME\0`, then the object in binary.
fn parse_tree(mut content: &[u8], id_bytes: usize) -> Tree {
    let mut tree = Tree::new();
    while let Some(end) = content.iter().position(|byte| *byte == 0) {
        let Some(head) = content.get(..end) else { break };
        let Some(object) = content.get(end + 1..end + 1 + id_bytes) else { break };
        if let Some(blank) = head.iter().position(|byte| *byte == b' ') {
            let name = head.get(blank + 1..).unwrap_or_default().to_vec();
            let digits = object.iter().flat_map(|byte| [byte >> 4, byte & 15]);
            tree.insert(name, digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect());
        }
        content = content.get(end + 1 + id_bytes..).unwrap_or_default();
    }
    tree
}

fn folder_and_name(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
