//! Data of the record types that the parser of `domain` knows by name alone, from the words of a zone file to the wire.
//!
//! Each type is a row of [`TYPES`]: its fields, in order.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr as _;

use bytes::Bytes;
use dnslab_wire::push_type_bitmap;
use domain::base::Name;
use domain::base::iana::{Rtype, SecurityAlgorithm};
use domain::utils::{base16, base64};

/// The data of a record are not as its type has them.
#[derive(Debug, thiserror::Error)]
pub(super) enum DataError {
    #[error("`{0}` is one word too many")]
    Excess(String),
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A word is something else.
    #[error("`{word}` is not {what}")]
    Other { word: String, what: &'static str },
    #[error("a text is longer than 255 octets")]
    LongText,
    #[error("`{0}` is no base 64")]
    Base64(String),
    #[error("`{0}` is not hexadecimal")]
    Hex(String),
    #[error("`{0}` is no text of ASCII")]
    Ascii(String),
    #[error("`{0}` is no domain name")]
    Name(String),
    #[error("`{0}` has no final dot, and no origin is known")]
    Origin(String),
    /// Degrees at most.
    #[error("an angle is beyond {0} degrees")]
    Angle(u32),
    #[error("the tag or the key is too long")]
    LongKey,
}

/// Octets of a zone file as text.
fn shown(octets: &[u8]) -> String {
    octets.escape_ascii().to_string()
}

/// A record type with the form of its data.
#[derive(Debug)]
pub(super) struct FurtherType {
    name: &'static str,
    /// Its number (RFC 3597).
    pub(super) number: u16,
    fields: &'static [Field],
}

/// A part of the data.
#[derive(Clone, Copy, Debug)]
enum Field {
    U8,
    U16,
    U32,
    Name,
    /// All names that are left.
    Names,
    /// A `<character-string>` (RFC 1035, section 3.3).
    String,
    /// All that are left, at least one.
    Strings,
    /// The octets of one word, without a length.
    Octets,
    /// All words that are left.
    Hex,
    /// All words that are left.
    Base64,
    Ipv4,
    /// Four groups of hexadecimal digits (RFC 6742).
    Groups,
    /// So many pairs of hexadecimal digits with hyphens between them (RFC 7043).
    Pairs(usize),
    /// Hexadecimal digits behind `0x`, with dots anywhere (RFC 1706).
    Nsap,
    /// A record type by its name.
    Type,
    /// The record types that are left, as a bitmap (RFC 4034, section 4.1.2).
    Types,
    /// By its name or number.
    Algorithm,
    /// One of these words with its number, or another number.
    OneOf(&'static [(&'static str, u16)], Width),
    /// RFC 1876.
    Location,
    /// RFC 3123.
    Prefixes,
    /// RFC 8005.
    HostIdentity,
    /// RFC 8777.
    Relay,
}

#[derive(Clone, Copy, Debug)]
enum Width {
    Octet,
    Word,
}

/// RFC 4398, section 2.1.
const CERTIFICATES: Field = Field::OneOf(
    &[
        ("PKIX", 1),
        ("SPKI", 2),
        ("PGP", 3),
        ("IPKIX", 4),
        ("ISPKI", 5),
        ("IPGP", 6),
        ("ACPKIX", 7),
        ("IACPKIX", 8),
        ("URI", 253),
        ("OID", 254),
    ],
    Width::Word,
);

/// RFC 9859.
const SCHEMES: Field = Field::OneOf(&[("NOTIFY", 1)], Width::Octet);

const TYPES: &[FurtherType] = {
    use Field::{
        Algorithm, Base64, Groups, Hex, HostIdentity, Ipv4, Location, Name, Nsap, Octets, Pairs,
        Prefixes, Relay, String, Strings, Type, Types, U8, U16, U32,
    };
    const fn row(name: &'static str, number: u16, fields: &'static [Field]) -> FurtherType {
        FurtherType { name, number, fields }
    }
    &[
        row("AFSDB", 18, &[U16, Name]),
        row("X25", 19, &[String]),
        row("ISDN", 20, &[Strings]),
        row("RT", 21, &[U16, Name]),
        row("NSAP", 22, &[Nsap]),
        row("NSAP-PTR", 23, &[Name]),
        row("KEY", 25, &[U16, U8, Algorithm, Base64]),
        row("PX", 26, &[U16, Name, Name]),
        row("GPOS", 27, &[String, String, String]),
        row("LOC", 29, &[Location]),
        row("KX", 36, &[U16, Name]),
        row("CERT", 37, &[CERTIFICATES, U16, Algorithm, Base64]),
        row("SINK", 40, &[U8, U8, U8, Base64]),
        row("APL", 42, &[Prefixes]),
        row("DHCID", 49, &[Base64]),
        row("SMIMEA", 53, &[U8, U8, U8, Hex]),
        row("HIP", 55, &[HostIdentity, Field::Names]),
        row("NINFO", 56, &[Strings]),
        row("RKEY", 57, &[U16, U8, Algorithm, Base64]),
        row("TALINK", 58, &[Name, Name]),
        row("CSYNC", 62, &[U32, U16, Types]),
        row("DSYNC", 66, &[Type, SCHEMES, U16, Name]),
        row("SPF", 99, &[Strings]),
        row("NID", 104, &[U16, Groups]),
        row("L32", 105, &[U16, Ipv4]),
        row("L64", 106, &[U16, Groups]),
        row("LP", 107, &[U16, Name]),
        row("EUI48", 108, &[Pairs(6)]),
        row("EUI64", 109, &[Pairs(8)]),
        row("URI", 256, &[U16, U16, Octets]),
        row("AVC", 258, &[Strings]),
        row("AMTRELAY", 260, &[U8, Relay]),
        row("RESINFO", 261, &[Strings]),
        row("WALLET", 262, &[Strings]),
        row("CLA", 263, &[Strings]),
        row("TA", 32_768, &[U16, Algorithm, U8, Hex]),
        row("DLV", 32_769, &[U16, Algorithm, U8, Hex]),
    ]
};

impl FurtherType {
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        TYPES.iter().find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// The data in the form of the wire. Relative names are below `origin`.
    ///
    /// # Errors
    /// What is wrong with a word, or what is missing.
    pub(super) fn encode(
        &self,
        words: &[&[u8]],
        origin: Option<&Name<Bytes>>,
    ) -> Result<Vec<u8>, DataError> {
        let mut data = Data { words, origin, octets: Vec::new() };
        for field in self.fields {
            data.push(*field)?;
        }
        match data.words.first() {
            Some(word) => Err(DataError::Excess(shown(word))),
            None => Ok(data.octets),
        }
    }
}

/// Data that are being made.
struct Data<'w> {
    /// Those that are left.
    words: &'w [&'w [u8]],
    origin: Option<&'w Name<Bytes>>,
    octets: Vec<u8>,
}

impl<'w> Data<'w> {
    fn push(&mut self, field: Field) -> Result<(), DataError> {
        match field {
            Field::U8 => self.number(Width::Octet)?,
            Field::U16 => self.number(Width::Word)?,
            Field::U32 => {
                let number: u32 = self.read("a number of 32 bits", |word| word.parse().ok())?;
                self.octets.extend_from_slice(&number.to_be_bytes());
            }
            Field::Name => {
                let name = self.name()?;
                self.octets.extend_from_slice(&name);
            }
            Field::Names => {
                while !self.words.is_empty() {
                    self.push(Field::Name)?;
                }
            }
            Field::String => {
                let octets = unescaped(self.word("a text")?);
                let length = u8::try_from(octets.len()).map_err(|_| DataError::LongText)?;
                self.octets.push(length);
                self.octets.extend_from_slice(&octets);
            }
            Field::Strings => {
                self.push(Field::String)?;
                while !self.words.is_empty() {
                    self.push(Field::String)?;
                }
            }
            Field::Octets => {
                let octets = unescaped(self.word("a text")?);
                self.octets.extend_from_slice(&octets);
            }
            Field::Hex => {
                let text = self.rest()?;
                self.hex(&text)?;
            }
            Field::Base64 => {
                let text = self.rest()?;
                let octets: Vec<u8> = base64::decode(&text).map_err(|_| DataError::Base64(text))?;
                self.octets.extend_from_slice(&octets);
            }
            Field::Ipv4 => {
                let address: Ipv4Addr = self.read("an IPv4 address", |word| word.parse().ok())?;
                self.octets.extend_from_slice(&address.octets());
            }
            Field::Groups => {
                let groups = self.read("four groups of hexadecimal digits", |word| {
                    let group = |text| u16::from_str_radix(text, 16).ok();
                    let groups: Option<Vec<u16>> = word.split(':').map(group).collect();
                    groups.filter(|groups| groups.len() == 4)
                })?;
                self.octets.extend(groups.iter().flat_map(|group| group.to_be_bytes()));
            }
            Field::Pairs(count) => {
                let pairs = self.read("pairs of hexadecimal digits", |word| {
                    let pair =
                        |text: &str| u8::from_str_radix(text, 16).ok().filter(|_| text.len() == 2);
                    let pairs: Option<Vec<u8>> = word.split('-').map(pair).collect();
                    pairs.filter(|pairs| pairs.len() == count)
                })?;
                self.octets.extend_from_slice(&pairs);
            }
            Field::Nsap => {
                let digits = self.read("an address that begins with 0x", |word| {
                    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"))?;
                    Some(digits.replace('.', ""))
                })?;
                self.hex(&digits)?;
            }
            Field::Type => {
                let rtype = self.read("a record type", |word| Rtype::from_str(word).ok())?;
                self.octets.extend_from_slice(&rtype.to_int().to_be_bytes());
            }
            Field::Types => self.types()?,
            Field::Algorithm => {
                let algorithm = self.read("an algorithm", |word| {
                    let number = || SecurityAlgorithm::from_mnemonic(word.as_bytes());
                    word.parse().ok().or_else(|| number().map(SecurityAlgorithm::to_int))
                })?;
                self.octets.push(algorithm);
            }
            Field::OneOf(known, width) => {
                let named = self.words.first().and_then(|word| {
                    known.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word))
                });
                match named {
                    Some((_, number)) => {
                        self.words = &self.words[1..];
                        self.put(*number, width);
                    }
                    None => self.number(width)?,
                }
            }
            Field::Location => self.location()?,
            Field::Prefixes => {
                while !self.words.is_empty() {
                    self.prefix()?;
                }
            }
            Field::HostIdentity => self.host_identity()?,
            Field::Relay => self.relay()?,
        }
        Ok(())
    }

    /// The next word.
    fn word(&mut self, what: &'static str) -> Result<&'w [u8], DataError> {
        let (first, rest) = self.words.split_first().ok_or(DataError::Missing(what))?;
        self.words = rest;
        Ok(first)
    }

    fn read<T>(
        &mut self,
        what: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, DataError> {
        let word = self.word(what)?;
        let found = str::from_utf8(word).ok().and_then(read);
        found.ok_or_else(|| DataError::Other { word: shown(word), what })
    }

    /// The words that are left, together.
    fn rest(&mut self) -> Result<String, DataError> {
        let words = std::mem::take(&mut self.words).concat();
        String::from_utf8(words).map_err(|error| DataError::Ascii(shown(error.as_bytes())))
    }

    fn number(&mut self, width: Width) -> Result<(), DataError> {
        let number = match width {
            Width::Octet => self.read::<u8>("a number of 8 bits", |word| word.parse().ok())?.into(),
            Width::Word => self.read("a number of 16 bits", |word| word.parse().ok())?,
        };
        self.put(number, width);
        Ok(())
    }

    fn put(&mut self, number: u16, width: Width) {
        let octets = number.to_be_bytes();
        self.octets.extend_from_slice(match width {
            Width::Octet => &octets[1..],
            Width::Word => &octets,
        });
    }

    fn hex(&mut self, text: &str) -> Result<(), DataError> {
        let octets = base16::decode_vec(text);
        let octets = octets.map_err(|_| DataError::Hex(text.to_owned()))?;
        self.octets.extend_from_slice(&octets);
        Ok(())
    }

    fn name(&mut self) -> Result<Vec<u8>, DataError> {
        let origin = self.origin;
        let word = self.word("a domain name")?;
        let wrong = || DataError::Name(shown(word));
        let text = str::from_utf8(word).map_err(|_| wrong())?;
        let is_absolute = text.ends_with('.') && !text.ends_with("\\.");
        let below = || {
            let missing = || DataError::Origin(text.to_owned());
            origin.map(|origin| origin.as_slice()).ok_or_else(missing)
        };
        if text == "@" {
            return Ok(below()?.to_vec());
        }
        let name: Name<Vec<u8>> = Name::from_chars(text.chars()).map_err(|_| wrong())?;
        let mut octets = name.into_octets();
        if !is_absolute {
            octets.pop();
            octets.extend_from_slice(below()?);
        }
        if octets.len() > 255 { Err(wrong()) } else { Ok(octets) }
    }

    fn types(&mut self) -> Result<(), DataError> {
        let mut types = BTreeSet::new();
        while !self.words.is_empty() {
            let rtype = self.read("a record type", |word| Rtype::from_str(word).ok())?;
            types.insert(rtype.to_int());
        }
        push_type_bitmap(types, &mut self.octets);
        Ok(())
    }

    /// Latitude, longitude, altitude, and perhaps size and precisions.
    fn location(&mut self) -> Result<(), DataError> {
        let latitude = self.angle(["N", "S"], 90)?;
        let longitude = self.angle(["E", "W"], 180)?;
        let metres = |word: &str| scaled(word.strip_suffix(['m', 'M']).unwrap_or(word), 2);
        // Centimetres above 100 km below the sea.
        let altitude = self.read("an altitude in metres", |word| {
            u32::try_from(metres(word)?.checked_add(10_000_000)?).ok()
        })?;
        // 1 m, 10 km and 10 m.
        let mut sizes = [0x12, 0x16, 0x13];
        for size in &mut sizes {
            if !self.words.is_empty() {
                *size = self.read("a size in metres", |word| {
                    let (mut digit, mut exponent) = (u64::try_from(metres(word)?).ok()?, 0_u8);
                    while digit > 9 {
                        digit /= 10;
                        exponent += 1;
                    }
                    (exponent <= 9).then_some((digit as u8) << 4 | exponent)
                })?;
            }
        }
        self.octets.push(0);
        self.octets.extend_from_slice(&sizes);
        for number in [latitude, longitude, altitude] {
            self.octets.extend_from_slice(&number.to_be_bytes());
        }
        Ok(())
    }

    /// Degrees, perhaps minutes and seconds, and a direction; thousandths of a second from the middle of 32 bits.
    fn angle(&mut self, [positive, negative]: [&str; 2], most: u32) -> Result<u32, DataError> {
        const MIDDLE: i64 = 1 << 31;
        let mut parts = [0; 3];
        for (place, part) in parts.iter_mut().enumerate() {
            let is_direction = |word: &&[u8]| {
                [positive, negative].iter().any(|name| name.as_bytes().eq_ignore_ascii_case(word))
            };
            if place > 0 && self.words.first().is_some_and(is_direction) {
                break;
            }
            let (bound, digits) = [(most, 0), (59, 0), (59, 3)][place];
            *part = self.read("degrees, minutes or seconds", |word| {
                let bound = i64::from(bound + u32::from(digits > 0)) * 10_i64.pow(digits);
                scaled(word, digits)
                    .filter(|part| (0..=bound - i64::from(digits > 0)).contains(part))
            })?;
        }
        let [degrees, minutes, thousandths] = parts;
        let angle = (degrees * 60 + minutes) * 60_000 + thousandths;
        if angle > i64::from(most) * 3_600_000 {
            return Err(DataError::Angle(most));
        }
        let is_positive = self.read("a direction", |word| {
            let is = |name: &str| word.eq_ignore_ascii_case(name);
            (is(positive) || is(negative)).then(|| is(positive))
        })?;
        let number = if is_positive { MIDDLE + angle } else { MIDDLE - angle };
        Ok(u32::try_from(number).expect("180 degrees are less than 2^31 thousandths of a second"))
    }

    /// `[!]family:address/length`.
    fn prefix(&mut self) -> Result<(), DataError> {
        let octets = self.read("a prefix such as 1:192.0.2.0/24 or !2:2001:db8::/32", |word| {
            let (bare, negated) = match word.strip_prefix('!') {
                Some(bare) => (bare, 0x80),
                None => (word, 0),
            };
            let (family, rest) = bare.split_once(':')?;
            let (address, length) = rest.split_once('/')?;
            let (address, length): (IpAddr, u8) = (address.parse().ok()?, length.parse().ok()?);
            let (number, octets) = match address {
                IpAddr::V4(address) => (1_u16, address.octets().to_vec()),
                IpAddr::V6(address) => (2, address.octets().to_vec()),
            };
            let fits = usize::from(length) <= octets.len() * 8;
            if family.parse() != Ok(number) || !fits {
                return None;
            }
            let kept = octets.len() - octets.iter().rev().take_while(|octet| **octet == 0).count();
            let head = [number.to_be_bytes()[0], number.to_be_bytes()[1], length];
            Some([&head[..], &[negated | kept as u8], &octets[..kept]].concat())
        })?;
        self.octets.extend_from_slice(&octets);
        Ok(())
    }

    fn host_identity(&mut self) -> Result<(), DataError> {
        let algorithm: u8 = self.read("a number of 8 bits", |word| word.parse().ok())?;
        let tag = self.read("a tag in hexadecimal digits", |word| base16::decode_vec(word).ok())?;
        let key: Vec<u8> = self.read("a key in base 64", |word| base64::decode(word).ok())?;
        let lengths = (u8::try_from(tag.len()), u16::try_from(key.len()));
        let (Ok(tag_length), Ok(key_length)) = lengths else {
            return Err(DataError::LongKey);
        };
        self.octets.extend_from_slice(&[tag_length, algorithm]);
        self.octets.extend_from_slice(&key_length.to_be_bytes());
        self.octets.extend_from_slice(&tag);
        self.octets.extend_from_slice(&key);
        Ok(())
    }

    fn relay(&mut self) -> Result<(), DataError> {
        let is_optional = self.read("0 or 1", |word| match word {
            "0" => Some(0),
            "1" => Some(0x80),
            _ => None,
        })?;
        let kind = self.read("a type of relay from 0 to 3", |word| {
            word.parse::<u8>().ok().filter(|kind| *kind <= 3)
        })?;
        self.octets.push(is_optional | kind);
        match kind {
            0 => self.read("a dot", |word| (word == ".").then_some(())),
            1 => self.push(Field::Ipv4),
            2 => {
                let address: std::net::Ipv6Addr =
                    self.read("an IPv6 address", |word| word.parse().ok())?;
                self.octets.extend_from_slice(&address.octets());
                Ok(())
            }
            _ => self.push(Field::Name),
        }
    }
}

/// A decimal number times ten to the power of `digits`; `None` for more digits than these.
fn scaled(text: &str, digits: u32) -> Option<i64> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) || part.len() > digits as usize {
        return None;
    }
    let part: i64 = format!("{part:0<width$}0", width = digits as usize).parse().ok()?;
    let whole = whole.parse::<i64>().ok()?.checked_mul(10_i64.pow(digits))?;
    let number = whole.checked_add(part / 10)?;
    Some(if is_negative { -number } else { number })
}

/// A word without its escapes (RFC 1035, section 5.1).
fn unescaped(word: &[u8]) -> Vec<u8> {
    let (mut octets, mut rest) = (Vec::with_capacity(word.len()), word);
    while let [octet, after @ ..] = rest {
        rest = after;
        match (octet, after) {
            (b'\\', [a @ b'0'..=b'2', b @ b'0'..=b'9', c @ b'0'..=b'9', after @ ..]) => {
                let number =
                    [a, b, c].iter().fold(0_u16, |sum, digit| sum * 10 + u16::from(**digit - b'0'));
                octets.push(number as u8);
                rest = after;
            }
            (b'\\', [escaped, after @ ..]) => {
                octets.push(*escaped);
                rest = after;
            }
            (other, _) => octets.push(*other),
        }
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_data_name_the_word() {
        let origin: Name<Bytes> = Name::from_chars("example".chars()).unwrap();
        for (text, expected) in [
            ("KX x ns", "`x` is not a number of 16 bits"),
            ("KX 1", "a domain name is missing"),
            ("KX 1 ns more", "`more` is one word too many"),
            ("LOC 91 N 1 E 0", "`91` is not degrees, minutes or seconds"),
            ("LOC 90 0 1 N 1 E 0", "an angle is beyond 90 degrees"),
            ("LOC 1 Q 1 E 0", "`Q` is not degrees, minutes or seconds"),
            ("APL 1:192.0.2.0/33", "`1:192.0.2.0/33` is not a prefix"),
            ("APL 2:192.0.2.0/24", "is not a prefix"),
            ("EUI48 00-00-5e-00-53", "is not pairs"),
            ("SMIMEA 3 0 0 abc", "`abc` is not hexadecimal"),
            ("DHCID *", "`*` is no base 64"),
            ("SPF", "a text is missing"),
            ("AMTRELAY 1 0 4 .", "`4` is not a type of relay"),
        ] {
            let (name, data) = text.split_once(' ').unwrap_or((text, ""));
            let words: Vec<&[u8]> = data.split_whitespace().map(str::as_bytes).collect();
            let error = FurtherType::find(name)
                .unwrap()
                .encode(&words, Some(&origin))
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let kx = FurtherType::find("kx").unwrap();
        assert!(
            kx.encode(&[b"1", b"ns"], None).unwrap_err().to_string().contains("no origin is known")
        );
    }

    #[test]
    fn texts_are_unescaped() {
        assert_eq!(unescaped(br#"a\"\\\233\0x"#), b"a\"\\\xe90x");
    }
}
