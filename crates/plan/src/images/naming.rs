//! How the images of commits are named: templates of tags.

use isobench_schema::ids::{CommitId, ImageTag, InvalidIdError};

/// How the image of a human commit is named unless another template is given: by the whole id.
pub const HUMAN_TEMPLATE: &str = "{commit}";

/// How the image of a baseline is named unless another template is given: by the first 12 digits of its id.
pub const BASELINE_TEMPLATE: &str = "baseline-{commit12}";

/// The fewest digits of a commit that a template may take: fewer name several commits of a large repository.
const FEWEST_DIGITS: usize = 7;

/// Why a text is no template of tags.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamingError {
    /// It names all commits alike.
    #[error("the template `{template}` has no `{{commit}}`, so that every commit would have the same tag")]
    NoCommit {
        /// The template.
        template: String,
    },
    /// It has a placeholder that isn't known.
    #[error(
        "the template `{template}` has `{{{placeholder}}}`, which isn't `{{commit}}` or `{{commitN}}` with N from {FEWEST_DIGITS} to 40"
    )]
    Placeholder {
        /// The template.
        template: String,
        /// What stands between the braces.
        placeholder: String,
    },
    /// What it makes is no tag.
    #[error("the template `{template}` makes no tag of `{commit}`")]
    NoTag {
        /// The template.
        template: String,
        /// The commit.
        commit: CommitId,
        /// The rule that is broken.
        #[source]
        source: InvalidIdError,
    },
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The commit's first digits; all of them if absent.
    Commit(Option<usize>),
}

/// A template of tags, such as `baseline-{commit12}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagTemplate {
    text: String,
    pieces: Vec<Piece>,
}

impl TagTemplate {
    /// Reads a template: text in which `{commit}` stands for the whole id and `{commitN}` for its first N digits.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, NamingError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let ended = after.split_once('}');
            let (placeholder, after) = ended.unwrap_or((after, ""));
            let unknown =
                || NamingError::Placeholder { template: text.to_owned(), placeholder: placeholder.to_owned() };
            let digits = ended.and_then(|_| placeholder.strip_prefix("commit")).ok_or_else(unknown)?;
            let digits = match digits {
                "" => None,
                digits => {
                    let digits = digits.parse().ok().filter(|digits| (FEWEST_DIGITS..=40).contains(digits));
                    Some(digits.ok_or_else(unknown)?)
                }
            };
            pieces.extend([Piece::Text(before.to_owned()), Piece::Commit(digits)]);
            rest = after;
        }
        if pieces.is_empty() {
            return Err(NamingError::NoCommit { template: text.to_owned() });
        }
        pieces.push(Piece::Text(rest.to_owned()));
        let template = Self { text: text.to_owned(), pieces };
        // What is wrong with the text between placeholders shows with any commit.
        let any = CommitId::new("0".repeat(40)).expect("40 digits are a commit id");
        template.tag(&any)?;
        Ok(template)
    }

    /// Returns the tag of a commit's image.
    ///
    /// # Errors
    /// Returns an error if the tag would be too long.
    pub fn tag(&self, commit: &CommitId) -> Result<ImageTag, NamingError> {
        let id = commit.as_str();
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Commit(digits) => digits.and_then(|digits| id.get(..digits)).unwrap_or(id).to_owned(),
        };
        let tag: String = self.pieces.iter().map(piece).collect();
        ImageTag::new(tag).map_err(|source| NamingError::NoTag {
            template: self.text.clone(),
            commit: commit.clone(),
            source,
        })
    }

    /// Returns the template as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// How images are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    /// Those of human commits.
    pub human: TagTemplate,
    /// Those of baselines.
    pub baseline: TagTemplate,
}
