//! Secrets on the command line: what is typed as a key, a secret header or a password in a URL stands in no message about that
//! line.

use std::ffi::OsString;

use serde_json::Value;

use crate::load_args::DEFAULT_KEY_ENV;
use crate::load_args::values::{Header, header};

/// What stands in the place of a secret.
const MASK: &str = "(secret)";
/// What is shorter is no secret, and would be found in many words.
const SHORTEST: usize = 4;
/// How the names of flags and fields end whose values are secret.
const SECRET_ENDS: [&str; 6] = ["key", "token", "password", "secret", "authorization", "credential"];
/// The flag that names the variable with the key.
const KEY_ENV: &str = "api-key-env";
/// Flags whose values are headers.
const HEADERS: [&str; 4] = ["header", "headers", "extra-header", "extra-headers"];

/// The secrets of a command line.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Finds them; `variable` tells the value of an environment variable.
    pub(crate) fn of(words: &[OsString], variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut found = Self::default();
        let mut named: Vec<String> = Vec::new();
        // The flag whose value comes; headers may have several.
        let mut flag: Option<String> = None;
        for word in words {
            let word = word.to_string_lossy();
            if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let name = name.to_ascii_lowercase().replace('_', "-");
                match value {
                    Some(value) => {
                        found.take(&name, value);
                        named.extend((name == KEY_ENV).then(|| value.to_owned()));
                    }
                    None => flag = Some(name),
                }
            } else if word.starts_with('-') {
                flag = None;
            } else {
                found.take(flag.as_deref().unwrap_or_default(), &word);
                named.extend(flag.iter().filter(|flag| *flag == KEY_ENV).map(|_flag| word.clone().into_owned()));
                flag = flag.filter(|name| HEADERS.contains(&name.as_str()));
            }
        }
        // A server may say the key again.
        for name in named.iter().map(String::as_str).chain([DEFAULT_KEY_ENV]) {
            if let Some(key) = variable(name) {
                found.add(&key);
            }
        }
        // A long secret may hold a short one.
        found.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        found
    }

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a text without them.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK))
    }

    fn take(&mut self, flag: &str, value: &str) {
        if let Some((_, rest)) = value.split_once("://")
            && let Some((user, _)) = rest.rsplit_once('@')
        {
            self.add(user);
        }
        if let Ok(Value::Object(fields)) = serde_json::from_str(value) {
            let texts = fields.iter().filter(|(key, _)| is_secret(key)).filter_map(|(_, value)| value.as_str());
            texts.for_each(|text| self.add(text));
        }
        if HEADERS.contains(&flag) {
            match header(value) {
                Ok(found) => self.header(&found),
                // Without a name nothing says that it is none.
                Err(_) => self.add(value),
            }
        } else if is_secret(flag) {
            self.add(value);
        } else if let Some((_, secret)) = value.split_once('=').filter(|(key, _)| is_secret(key)) {
            self.add(secret);
        }
    }

    fn header(&mut self, header: &Header) {
        if header.is_secret() {
            self.add(header.value.strip_prefix("Bearer ").unwrap_or(&header.value));
        }
    }

    fn add(&mut self, secret: &str) {
        if secret.len() >= SHORTEST {
            self.0.push(secret.to_owned());
        }
    }
}

/// Returns whether what has this name is secret: its last word says so.
fn is_secret(name: &str) -> bool {
    let last = name.rsplit(['-', '_', '.']).next().unwrap_or_default();
    SECRET_ENDS.iter().any(|end| last.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &[&str], hidden: &[&str]) {
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        let text = line.join(" ");
        let variable = |name: &str| (name == "MY_KEY").then(|| "abcdef".to_owned());
        let shown = Secrets::of(&words, variable).hide(&text);
        let expected = hidden.iter().fold(text, |text, secret| text.replace(secret, MASK));
        assert_eq!(shown, expected);
        assert_eq!(Secrets::of(&words, variable).is_empty(), hidden.is_empty());
    }

    #[test]
    fn what_is_secret_is_hidden_and_nothing_else() {
        check(&["load", "http://a", "--header", "Authorization: Bearer abcdef"], &["abcdef"]);
        check(&["load", "--header=Authorization=Bearer abcdef", "http://a"], &["abcdef"]);
        check(&["load", "--header", "Bearer-abcdef"], &["Bearer-abcdef"]);
        check(&["load", "--header", "X-Api-Key=abcdef", "Cookie=ghijkl", "X-Tenant=mnopqr"], &["abcdef", "ghijkl"]);
        check(&["load", "http://user:pass@host:80/v1"], &["user:pass"]);
        check(&["load", "--api-key", "abcdef", "--hf_token=ghijkl"], &["abcdef", "ghijkl"]);
        check(&["load", "--extra-body", "api_key=abcdef"], &["abcdef"]);
        check(
            &["load", "--api-key-env", "MY_VARIABLE", "--tokenizer", "folder", "--extra-body", "max_tokens=5000"],
            &[],
        );
        check(&["load", "http://a", "--header", "X-Tenant: blue"], &[]);
        check(&["load", "--api-key", "abcdef", "http://host:1"], &["abcdef"]);
        check(&["load", "--api-key-env", "MY_KEY", "and what a server says: abcdef"], &["abcdef"]);
        check(&["load", "--header", "X-Tenant: blue", "-o", "out.json", "http://host:1"], &[]);
        check(&["load", "http://user:pa/ss@host"], &["user:pa/ss"]);
        check(&["load", "--extra-request-body", "{\"api_key\":\"abcdef\",\"top_p\":1}"], &["abcdef"]);
    }
}
