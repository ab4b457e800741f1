//! Who is let in: tokens for names and passwords, for identity tokens, or for nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::request::{AskedRequest, form_value};
use super::{Entry, Shared};

/// The service that tokens are for.
const SERVICE: &str = "registry.test";

/// What the place of tokens answers: a status and a body.
pub(super) fn token(asked: &AskedRequest, shared: &Shared) -> (u16, String) {
    let refused = || (401, json!({ "details": "incorrect username or password" }).to_string());
    let form = String::from_utf8_lossy(&asked.body).into_owned();
    let value = |name: &str| asked.query(name).or_else(|| form_value(&form, name));
    let scope = format!("repository:{}:", shared.settings.repository);
    if value("service").as_deref() != Some(SERVICE) || !value("scope").is_some_and(|asked| asked.starts_with(&scope)) {
        return (400, json!({ "details": "no such service or scope" }).to_string());
    }
    let may = match &shared.settings.entry {
        Entry::Open | Entry::Basic { .. } => false,
        Entry::AnonymousToken => asked.authorization.is_none(),
        Entry::PasswordToken { user, password } => asked.authorization == Some(basic(user, password)),
        Entry::IdentityToken(token) => {
            asked.method == "POST" && form_value(&form, "refresh_token").as_ref() == Some(token)
        }
    };
    if !may {
        return refused();
    }
    let mut held = shared.held();
    let token = format!("token-{}", held.tokens.len() + 1);
    held.tokens.insert(token.clone());
    (200, json!({ "token": token, "expires_in": 300 }).to_string())
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Returns the challenge of a request that isn't let in.
pub(super) fn challenge(asked: &AskedRequest, shared: &Shared) -> Option<String> {
    let is_let_in = match &shared.settings.entry {
        Entry::Open => true,
        Entry::Basic { user, password } => asked.authorization == Some(basic(user, password)),
        Entry::AnonymousToken | Entry::PasswordToken { .. } | Entry::IdentityToken(_) => {
            let token = asked.authorization.as_deref().and_then(|text| text.strip_prefix("Bearer "));
            token.is_some_and(|token| shared.held().tokens.contains(token))
        }
    };
    if is_let_in {
        return None;
    }
    Some(match &shared.settings.entry {
        Entry::Open | Entry::Basic { .. } => r#"Basic realm="test""#.to_owned(),
        Entry::AnonymousToken | Entry::PasswordToken { .. } | Entry::IdentityToken(_) => format!(
            r#"Bearer realm="{}/token",service="{SERVICE}",scope="repository:{}:pull,push""#,
            shared.origin(),
            shared.settings.repository
        ),
    })
}
