//! What to do where a registry doesn't let a daemon have an image: its words say only that it doesn't.

use crate::images::{Repository, parse_reference};

/// What daemons hand on when it is credentials that a registry wants, in lower case.
const SIGNS: [&str; 5] =
    ["no basic auth credentials", "unauthorized", "authentication required", "access denied", "incorrect username"];

/// Returns why an image can't be had, with the next step if it is credentials that are missing or wrong.
pub fn with_login(image: &str, reason: String) -> String {
    let lower = reason.to_lowercase();
    if !SIGNS.iter().any(|sign| lower.contains(sign)) {
        return reason;
    }
    let registry = parse_reference(image).map(|(repository, _): (Repository, _)| repository.registry().to_owned());
    match registry {
        Ok(registry) => format!("{reason}; check the name, and log in by `docker login {registry}`"),
        Err(_) => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_lacks_credentials_is_told_to_log_in() {
        for (reason, is_told) in [
            ("Get \"https://r/v2/\": no basic auth credentials", true),
            ("unauthorized: authentication required", true),
            ("pull access denied for team/engine, repository does not exist or may require 'docker login'", true),
            ("manifest unknown", false),
            ("dial tcp 127.0.0.1:9: connect: connection refused", false),
        ] {
            let told = with_login("127.0.0.1:5000/team/engine:a", reason.to_owned());
            assert_eq!(told.ends_with("log in by `docker login 127.0.0.1:5000`"), is_told, "{told}");
        }
        assert_eq!(with_login("Not a name", "unauthorized".to_owned()), "unauthorized");
    }
}
