//! How a registry says that it wants to know who asks: the header `WWW-Authenticate`.

/// What a registry wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A name and a password with each request.
    Basic,
    /// A token that is had at `realm`.
    Bearer {
        /// Where.
        realm: String,
        /// For which service.
        service: Option<String>,
        /// For what.
        scope: Option<String>,
    },
}

impl Challenge {
    /// Reads the first challenge of a header that is understood, `Bearer` before `Basic`.
    pub(super) fn read(headers: &[String]) -> Option<Self> {
        let all: Vec<Self> = headers.iter().flat_map(|header| challenges(header)).collect();
        let bearer = all.iter().find(|challenge| matches!(challenge, Self::Bearer { .. }));
        bearer.or_else(|| all.first()).cloned()
    }
}

/// A name and value of a challenge, or the name of the next scheme.
enum Word {
    Scheme(String),
    Parameter(String, String),
}

fn challenges(header: &str) -> Vec<Challenge> {
    let mut found: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for word in words(header) {
        match word {
            Word::Scheme(scheme) => found.push((scheme, Vec::new())),
            Word::Parameter(name, value) => {
                if let Some((_, parameters)) = found.last_mut() {
                    parameters.push((name, value));
                }
            }
        }
    }
    found.into_iter().filter_map(|(scheme, parameters)| challenge(&scheme, &parameters)).collect()
}

fn challenge(scheme: &str, parameters: &[(String, String)]) -> Option<Challenge> {
    let value = |wanted: &str| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    match scheme {
        "basic" => Some(Challenge::Basic),
        "bearer" => Some(Challenge::Bearer {
            realm: value("realm")?,
            service: value("service").filter(|service| !service.is_empty()),
            scope: value("scope").filter(|scope| !scope.is_empty()),
        }),
        _ => None,
    }
}

/// Splits a header into schemes and parameters; quoted values may hold commas and escaped signs.
fn words(header: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = header.trim_start_matches([' ', ',', '\t']);
    while !rest.is_empty() {
        let end = rest.find([' ', ',', '=', '\t']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let name = name.to_ascii_lowercase();
        rest = if let Some(value) = after.strip_prefix('=') {
            let (value, after) = value_of(value);
            words.push(Word::Parameter(name, value));
            after
        } else {
            if !name.is_empty() {
                words.push(Word::Scheme(name));
            }
            after
        };
        rest = rest.trim_start_matches([' ', ',', '\t']);
    }
    words
}

/// Returns a value, quoted or not, and what follows it.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut escaped = false;
    for (place, sign) in quoted.char_indices() {
        match sign {
            _ if escaped => {
                value.push(sign);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return (value, quoted.get(place + 1..).unwrap_or_default()),
            _ => value.push(sign),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[&str], expected: Option<&Challenge>) {
        let headers: Vec<String> = headers.iter().map(|&header| header.to_owned()).collect();
        assert_eq!(Challenge::read(&headers).as_ref(), expected);
    }

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let hub = Challenge::Bearer {
            realm: "https://auth.docker.io/token".to_owned(),
            service: Some("registry.docker.io".to_owned()),
            scope: Some("repository:a/b:pull,push".to_owned()),
        };
        let written = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push""#;
        check(&[written], Some(&hub));
        check(&[r#"Basic realm="x""#, written], Some(&hub));
        check(&[&format!(r#"Basic realm="a, b \" c", {written}"#)], Some(&hub));
        check(&["basic"], Some(&Challenge::Basic));
        let plain = Challenge::Bearer { realm: "https://a/t".to_owned(), service: None, scope: None };
        check(&["BEARER realm=https://a/t, error=x"], Some(&plain));
        check(&["Bearer service=\"s\""], None);
        check(&["Negotiate", ""], None);
        check(
            &["Bearer realm=\"unended"],
            Some(&Challenge::Bearer { realm: "unended".to_owned(), service: None, scope: None }),
        );
    }
}
