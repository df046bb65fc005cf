//! Names in wire form.

use std::fmt;

use dnslab_wire::labels;

/// The longest name, octets (RFC 1035, section 2.3.4).
const MOST: usize = 255;

/// A domain name of an internet, in lower case.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// In wire form, with the root's label.
    octets: Vec<u8>,
}

impl Name {
    pub(crate) fn root() -> Self {
        Self { octets: vec![0] }
    }

    /// Octets of a wire name.
    pub(crate) fn from_wire(octets: &[u8]) -> Self {
        debug_assert!(octets.len() <= MOST && octets.last() == Some(&0));
        Self { octets: octets.to_vec() }
    }

    /// The name in wire form (RFC 1035, section 3.1), with the label of the root.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// A label before this name.
    pub(crate) fn child(&self, label: &[u8]) -> Self {
        let mut octets = Vec::with_capacity(1 + label.len() + self.octets.len());
        push_label(&mut octets, label);
        octets.extend_from_slice(&self.octets);
        Self { octets }
    }
}

/// As in zone files, with its final dot (RFC 1035, section 5.1).
impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_text(&self.octets, formatter)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_text(&self.octets, formatter)
    }
}

fn write_text(octets: &[u8], out: &mut impl fmt::Write) -> fmt::Result {
    let labels = labels(octets);
    if labels.count() == 0 {
        return out.write_char('.');
    }
    for label in labels.iter() {
        for octet in label {
            match octet {
                b'.' | b'\\' => write!(out, "\\{}", *octet as char)?,
                0x21..=0x7e => out.write_char(*octet as char)?,
                _ => write!(out, "\\{octet:03}")?,
            }
        }
        out.write_char('.')?;
    }
    Ok(())
}

/// Appends a label with its length; it has at most 63 octets.
pub(crate) fn push_label(octets: &mut Vec<u8>, label: &[u8]) {
    debug_assert!((1..=63).contains(&label.len()));
    octets.push(label.len() as u8);
    octets.extend_from_slice(label);
}

/// Appends a label that `write` makes, with its length.
pub(crate) fn push_label_with(octets: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = octets.len();
    octets.push(0);
    write(octets);
    octets[at] = (octets.len() - at - 1) as u8;
}

/// Appends a number in decimal.
pub(crate) fn push_number(octets: &mut Vec<u8>, mut number: u64) {
    let at = octets.len();
    loop {
        octets.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    octets[at..].reverse();
}

/// A number in decimal, without leading zeros, of at most nine digits.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 9 || digits[0] == b'0' && digits.len() > 1 {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_counted_from_the_root() {
        let name = Name::root().child(b"com").child(b"example").child(b"www");
        assert_eq!(name.to_string(), "www.example.com.");
        let labels = labels(name.octets());
        assert_eq!(labels.count(), 3);
        assert_eq!([labels.under_root(0), labels.under_root(2)], [&b"com"[..], b"www"]);
        assert_eq!([0, 1, 3].map(|count| labels.start_of(count)), [16, 12, 0]);
        assert_eq!(Name::root().to_string(), ".");
        assert_eq!(Name::root().child(b"a.\x00").to_string(), "a\\.\\000.");
    }

    #[test]
    fn numbers_have_one_form() {
        for (text, value) in
            [("0", Some(0)), ("42", Some(42)), ("07", None), ("", None), ("1a", None)]
        {
            assert_eq!(number(text.as_bytes()), value, "{text}");
        }
        assert_eq!(number(b"1234567890"), None);
        let mut octets = Vec::new();
        push_number(&mut octets, 90_210);
        push_number(&mut octets, 0);
        assert_eq!(octets, b"902100");
    }
}
