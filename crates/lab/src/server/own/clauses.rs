//! The language of nsd.conf(5) and unbound.conf(5): clauses with attributes.

use std::path::{Path, PathBuf};

use super::{OwnConfigurationError, included, read_file, unquoted};

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
    /// The file that it stands in.
    pub(super) path: PathBuf,
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

/// The clauses of a file and of those that it includes. `is_clause` knows their names.
pub(super) fn read(
    path: &Path,
    is_clause: fn(&str) -> bool,
) -> Result<Vec<Clause>, OwnConfigurationError> {
    let mut clauses = Vec::new();
    read_into(path, is_clause, 0, &mut clauses)?;
    Ok(clauses)
}

fn read_into(
    path: &Path,
    is_clause: fn(&str) -> bool,
    depth: u32,
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
            let folder = path.parent().unwrap_or(Path::new("/"));
            for pattern in &values {
                for file in included(unquoted(pattern), folder, path, depth)? {
                    read_into(&file, is_clause, depth + 1, clauses)?;
                }
            }
        } else if is_clause(&name) {
            clauses.push(Clause { name, attributes: Vec::new() });
        } else if let Some(clause) = clauses.last_mut() {
            clause.attributes.push(Attribute { name, values, path: path.to_owned() });
        }
    }
    Ok(())
}

/// True for the name of a clause or an attribute. A quoted word is none, and neither is an IPv6 address.
fn is_name(word: &str) -> bool {
    let name = word.strip_suffix(':').unwrap_or("");
    name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
}

/// The words of a line, without its comment. A name may stand before its value without a space.
fn words(line: &str) -> Vec<&str> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '#' => break,
            '"' | '\'' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                let named = rest[..end].find(':').map(|colon| colon + 1);
                named
                    .filter(|length| is_name(&rest[..*length]) && ends_name(&rest[*length..]))
                    .unwrap_or(end)
            }
        };
        words.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    words
}

/// Whether what follows a colon is not the rest of an IPv6 address, such as `fd00::1`.
fn ends_name(rest: &str) -> bool {
    !rest.starts_with(':') && (rest.is_empty() || rest.starts_with([' ', '\t', '"', '\'']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart() {
        let cases: [(&str, &[&str]); 7] = [
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
