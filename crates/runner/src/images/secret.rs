//! A text that is never shown.

use std::fmt;

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
    fn a_secret_is_not_shown() {
        let credentials = Credentials::Password { user: "ann".to_owned(), password: Secret::new("hunter2") };
        let shown = format!("{credentials:?} {:?}", Credentials::IdentityToken(Secret::new("hunter2")));
        assert!(shown.contains("ann") && !shown.contains("hunter2"), "{shown}");
    }
}
