//! The language of nsd.conf(5) and unbound.conf(5): clauses with attributes.

use std::path::{Path, PathBuf};

use super::{Found, OwnConfigurationError, fault, folder_of, read_file, unquoted};

/// A clause and its attributes, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clause {
    pub(super) name: String,
    pub(super) attributes: Vec<Attribute>,
}

/// An attribute with its values as they are written, quotes and all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

impl Clause {
    /// The first value of an attribute, without quotes; of several attributes of this name the last one holds.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().rev().find(|attribute| attribute.name == name);
        Some(unquoted(found?.values.first()?))
    }

    /// The attributes, a line each.
    pub(super) fn lines(&self) -> String {
        self.attributes.iter().map(|attribute| format!("    {}\n", attribute.line())).collect()
    }
}

impl Attribute {
    pub(super) fn line(&self) -> String {
        format!("{}: {}", self.name, self.values.join(" "))
    }
}

/// How a server reads its clauses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Language {
    /// The names of its clauses.
    pub(super) clauses: &'static [&'static str],
    /// The attribute by which it goes to another folder while it reads, from which it looks for further files.
    pub(super) directory: Option<&'static str>,
}

impl Language {
    /// The clauses of a file and of those that it includes, and the folder from which it looks for files at the end.
    pub(super) fn read(
        self,
        path: &Path,
        found: &mut Found,
    ) -> Result<(Vec<Clause>, PathBuf), OwnConfigurationError> {
        let (mut clauses, mut folder) = (Vec::new(), folder_of(path).to_owned());
        self.read_into((path, 0), &mut folder, found, &mut clauses)?;
        Ok((clauses, folder))
    }

    fn read_into(
        self,
        (path, depth): (&Path, u32),
        folder: &mut PathBuf,
        found: &mut Found,
        clauses: &mut Vec<Clause>,
    ) -> Result<(), OwnConfigurationError> {
        let text = read_file(path)?;
        let words: Vec<&str> = text.lines().flat_map(words).collect();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let name = word.trim_end_matches(':').to_owned();
            let values = words[at + 1..].iter().take_while(|word| !is_name(word));
            let values: Vec<String> = values.map(|&word| word.to_owned()).collect();
            at += 1 + values.len();
            if name == "include" || name == "include-toplevel" {
                for pattern in &values {
                    for file in found.included(unquoted(pattern), folder, (path, depth))? {
                        self.read_into((&file, depth + 1), folder, found, clauses)?;
                    }
                }
            } else if self.clauses.contains(&name.as_str()) {
                clauses.push(Clause { name, attributes: Vec::new() });
            } else if let Some(clause) = clauses.last_mut() {
                if self.directory == Some(name.as_str()) {
                    let named = values.first().map_or("", |value| unquoted(value));
                    *folder = folder_of(path).join(named);
                }
                clause.attributes.push(Attribute { name, values });
            } else {
                return Err(fault(
                    path,
                    format!("`{name}` stands in no clause, such as `server:`"),
                ));
            }
        }
        Ok(())
    }
}

/// True for the name of a clause or an attribute. A quoted word is none, and neither is an IPv6 address.
fn is_name(word: &str) -> bool {
    let name = word.strip_suffix(':').unwrap_or("");
    name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
}

/// The words of a line, without its comment. A name may stand before its value without a space.
fn words(line: &str) -> Vec<&str> {
    let (mut words, mut rest) = (Vec::<&str>::new(), line.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '#' => break,
            '"' | '\'' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                let named = rest[..end].find(':').map(|colon| colon + 1);
                // Behind a name comes a value, which may have colons.
                let begins = words.last().is_none_or(|word| is_clause_like(word));
                let named = named.filter(|length| {
                    is_name(&rest[..*length])
                        && (begins || *length == end)
                        && !rest[*length..].starts_with(':')
                });
                named.unwrap_or(end)
            }
        };
        words.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    words
}

/// Whether a name may follow, as in `server: verbosity: 1`.
fn is_clause_like(word: &str) -> bool {
    word == "server:" || !is_name(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart() {
        let cases: [(&str, &[&str]); 10] = [
            ("interface:192.0.2.1", &["interface:", "192.0.2.1"]),
            ("url:https://feed.example/x", &["url:", "https://feed.example/x"]),
            (
                "forward-addr: 192.0.2.8@853#dns.example",
                &["forward-addr:", "192.0.2.8@853#dns.example"],
            ),
            ("server:", &["server:"]),
            ("  port: 53 # usual", &["port:", "53"]),
            ("\tlocal-data: 'a. TXT \"x # y\"'", &["local-data:", "'a. TXT \"x # y\"'"]),
            ("interface: ::0@853", &["interface:", "::0@853"]),
            ("ip-address: fd00::1", &["ip-address:", "fd00::1"]),
            ("name:\"x\"", &["name:", "\"x\""]),
            ("server: verbosity: 1", &["server:", "verbosity:", "1"]),
        ];
        for (line, expected) in cases {
            assert_eq!(words(line), expected);
        }
        assert!(!is_name("fd00::1") && !is_name("a:b:") && is_name("local-zone:"));
    }
}
