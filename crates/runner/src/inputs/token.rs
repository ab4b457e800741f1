//! The token of a hub, known by where it is and never by what it says.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

/// The longest token that is read.
const LONGEST: u64 = 4096;

/// Where a token is. Its text is read when it is sent, and stands in no record, message or log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenReference {
    /// In this environment variable.
    Variable(String),
    /// In this file.
    File(PathBuf),
}

impl TokenReference {
    /// Returns where the hub's own library would look: the variables `HF_TOKEN` and `HUGGING_FACE_HUB_TOKEN`, the file that
    /// `HF_TOKEN_PATH` names, and the file `token` in the hub's home. The first that is there.
    pub fn usual(variable: &impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if let Some(name) = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"].into_iter().find(|name| set(name).is_some()) {
            return Some(Self::Variable(name.to_owned()));
        }
        let home = set("HF_HOME")
            .map(PathBuf::from)
            .or_else(|| set("XDG_CACHE_HOME").map(|cache| PathBuf::from(cache).join("huggingface")))
            .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache/huggingface")));
        let file = set("HF_TOKEN_PATH").map(PathBuf::from).or_else(|| Some(home?.join("token")))?;
        file.is_file().then_some(Self::File(file))
    }

    /// Returns the token, if it is there and can be sent.
    pub(super) fn read(&self) -> Option<String> {
        let text = match self {
            Self::Variable(name) => std::env::var(name).ok()?,
            Self::File(path) => {
                let mut text = String::new();
                File::open(path).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
                text
            }
        };
        let token = text.trim();
        (!token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())).then(|| token.to_owned())
    }

    /// Returns where it is, for people.
    pub fn place(&self) -> String {
        match self {
            Self::Variable(name) => format!("the variable `{name}`"),
            Self::File(path) => format!("the file `{}`", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_holds_a_token_is_named() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".cache/huggingface")).unwrap();
        let text = home.path().to_str().unwrap().to_owned();
        let usual = |set: &[(&str, &str)]| {
            let set: Vec<(String, String)> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            TokenReference::usual(&|name: &str| set.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()))
        };
        assert_eq!(usual(&[("HOME", &text)]), None);
        let file = home.path().join(".cache/huggingface/token");
        std::fs::write(&file, "hf_secret\n").unwrap();
        assert_eq!(usual(&[("HOME", &text)]), Some(TokenReference::File(file.clone())));
        assert_eq!(
            usual(&[("HOME", &text), ("HF_TOKEN", "hf_x")]),
            Some(TokenReference::Variable("HF_TOKEN".to_owned()))
        );
        let token = TokenReference::File(file);
        assert_eq!(token.read().as_deref(), Some("hf_secret"));
        assert!(!format!("{token:?} {}", token.place()).contains("hf_secret"));
    }
}
