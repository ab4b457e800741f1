//! A text that is never shown.

use std::fmt;

use super::address::encode;

/// A password or a token. It stands in no message, log or record: its `Debug` doesn't show it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns the secret of a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text, to be sent and nothing else.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(secret)")
    }
}

/// Returns a text of others without the secrets that it may repeat, as they are and as they are sent in forms and addresses.
pub(super) fn hide(text: &str, secrets: &[Secret]) -> String {
    let mut hidden = text.to_owned();
    for secret in secrets {
        // The scheme stands before what is secret in a header.
        let word = secret.reveal().rsplit(' ').next().unwrap_or_default();
        for form in [word.to_owned(), encode(word)] {
            if !form.is_empty() {
                hidden = hidden.replace(&form, "(secret)");
            }
        }
    }
    hidden
}

/// What a registry is told, so that it lets one in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A name and a password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A token that is exchanged for others.
    IdentityToken(Secret),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_however_they_are_repeated() {
        let secrets = [Secret::new("Bearer abc.def"), Secret::new("hunter+2")];
        for (text, expected) in [
            ("token abc.def isn't valid", "token (secret) isn't valid"),
            ("`Bearer abc.def`, hunter+2", "`Bearer (secret)`, (secret)"),
            ("https://a.example/?p=hunter%2B2&t=abc.def", "https://a.example/?p=(secret)&t=(secret)"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(hide(text, &secrets), expected);
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        let credentials = Credentials::Password { user: "ann".to_owned(), password: Secret::new("hunter2") };
        let shown = format!("{credentials:?} {:?}", Credentials::IdentityToken(Secret::new("hunter2")));
        assert!(shown.contains("ann") && !shown.contains("hunter2"), "{shown}");
    }
}
