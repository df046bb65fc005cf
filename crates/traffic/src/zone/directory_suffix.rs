//! The suffix of a directory.

use std::fmt;
use std::str::FromStr;

/// The distinguished name that all entries of a directory end in (RFC 4514): `dc=example,dc=test`.
/// FreeIPA makes it from the realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectorySuffix(String);

/// Why a text is no suffix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no directory suffix: `{part}` {fault}; write dc=example,dc=test")]
pub struct DirectorySuffixError {
    text: String,
    part: String,
    fault: &'static str,
}

impl FromStr for DirectorySuffix {
    type Err = DirectorySuffixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        for part in parts(text) {
            check(part).map_err(|fault| DirectorySuffixError {
                text: text.to_owned(),
                part: part.to_owned(),
                fault,
            })?;
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for DirectorySuffix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The text divided at its commas, but not at those after a backslash.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    text.split(move |letter| {
        let divides = letter == ',' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        divides
    })
}

/// Checks one `type=value`. Some directories write a space before it.
fn check(part: &str) -> Result<(), &'static str> {
    let Some((kind, value)) = part.split_once('=') else {
        return Err("has no `=`");
    };
    let kind = kind.trim_start_matches(' ');
    let is_kind = kind.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-.".contains(&octet));
    if kind.is_empty() || !is_kind {
        return Err("does not begin with the name of an attribute");
    }
    if value.trim().is_empty() || value.starts_with([' ', '#']) || value.ends_with(' ') {
        return Err("has no value, or one that needs a backslash at its ends");
    }
    if value.chars().any(char::is_control) {
        return Err("has a control character");
    }
    // RFC 4514, section 2.4: these need a backslash, which needs something after it.
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' | '+' | ';' | '<' | '>' => return Err("has a character that needs a backslash"),
            '\\' if letters.next().is_none() => return Err("ends in a backslash"),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes() {
        let check = |text: &str, fault: Option<&str>| match (text.parse::<DirectorySuffix>(), fault)
        {
            (Ok(suffix), None) => assert_eq!(suffix.to_string(), text),
            (Err(error), Some(fault)) => {
                let error = error.to_string();
                assert!(error.contains(fault) && error.contains("dc=example,dc=test"), "{error}");
            }
            (read, _) => panic!("{text}: {read:?}"),
        };
        check("dc=example,dc=test", None);
        check("dc=example, dc=test", None);
        check("2.5.4.10=Größe", None);
        check(r"o=Sales\, Ltd\\,c=DE", None);
        check("", Some("`` has no `=`"));
        check("example.test", Some("`example.test` has no `=`"));
        check("dc=example,", Some("`` has no `=`"));
        check("dc=example,dc=", Some("`dc=` has no value"));
        check("=x", Some("the name of an attribute"));
        check("d c=x", Some("the name of an attribute"));
        check("o=a\n\ndn: cn=config", Some("control character"));
        check("o=a;b", Some("needs a backslash"));
        check("o=a\\", Some("ends in a backslash"));
    }
}
