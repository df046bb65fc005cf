//! A zone file, entry by entry (RFC 1035, section 5.1).
//!
//! The parser of `domain` reads most of a zone file. It does not read TTLs with units, `$GENERATE`, and the data of some
//! types, which BIND, Knot DNS and NSD read. [`Reader`] writes such entries in a form that it reads, and leaves the
//! others as they are.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::str::FromStr as _;

use bytes::Bytes;
use domain::base::Name;
use domain::base::iana::{Class, Rtype};
use domain::zonefile::inplace::{Entry as Parsed, ScannedRecord, Zonefile};

use super::error::ZoneFileError;
use super::further_types::FurtherType;

/// A word of an entry: where it stands in the text, without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    from: usize,
    to: usize,
    is_quoted: bool,
}

/// A record or a control entry, with the comments in it and the line feed that ends it.
#[derive(Clone, Debug)]
struct Entry<'t> {
    text: &'t [u8],
    words: Vec<Place>,
    /// White space stands before the first word.
    is_indented: bool,
    /// The lines on which it begins and ends, from 1.
    lines: (usize, usize),
}

impl<'t> Entry<'t> {
    fn word(&self, place: usize) -> Option<&'t [u8]> {
        self.words.get(place).map(|word| &self.text[word.from..word.to])
    }

    fn words_from(&self, place: usize) -> Vec<&'t [u8]> {
        let words = self.words.get(place..).unwrap_or_default();
        words.iter().map(|word| &self.text[word.from..word.to]).collect()
    }

    /// A word as it stands in the file, with its quotes.
    fn written(&self, place: usize) -> &'t [u8] {
        let Some(word) = self.words.get(place) else { return b"" };
        let quote = usize::from(word.is_quoted);
        &self.text[word.from.saturating_sub(quote)..(word.to + quote).min(self.text.len())]
    }

    /// The entry with these numbers at their places, which are in order.
    fn with(&self, numbers: &[(usize, u32)]) -> Cow<'t, [u8]> {
        let (mut text, mut at) = (Cow::Borrowed(self.text), 0);
        for (place, number) in numbers {
            let (Place { from, to, .. }, number) = (self.words[*place], number.to_string());
            if &self.text[from..to] != number.as_bytes() {
                if at == 0 {
                    text = Vec::with_capacity(self.text.len() + 16).into();
                }
                text.to_mut().extend_from_slice(&self.text[at..from]);
                text.to_mut().extend_from_slice(number.as_bytes());
                at = to;
            }
        }
        if at > 0 {
            text.to_mut().extend_from_slice(&self.text[at..]);
        }
        text
    }
}

/// The entries of a text, in order. Words are separated as `domain` does it.
struct Entries<'t> {
    text: &'t [u8],
    line: usize,
}

impl<'t> Iterator for Entries<'t> {
    type Item = Entry<'t>;

    fn next(&mut self) -> Option<Entry<'t>> {
        if self.text.is_empty() {
            return None;
        }
        let (text, mut at, mut depth) = (self.text, 0, 0_usize);
        let (mut words, mut is_indented) = (Vec::new(), false);
        while let Some(octet) = text.get(at) {
            match octet {
                b'\n' if depth == 0 => {
                    at += 1;
                    break;
                }
                b'\n' => at += 1,
                b' ' | b'\t' | b'\r' => {
                    is_indented |= words.is_empty();
                    at += 1;
                }
                b'(' => {
                    depth += 1;
                    at += 1;
                }
                b')' => {
                    depth = depth.saturating_sub(1);
                    at += 1;
                }
                b';' => at += length_until(&text[at..], |octet| octet == b'\n'),
                b'"' => {
                    let from = at + 1;
                    let to = from + length_until(&text[from..], |octet| octet == b'"');
                    words.push(Place { from, to, is_quoted: true });
                    at = (to + 1).min(text.len());
                }
                _ => {
                    let to = at + length_until(&text[at..], ends_word);
                    words.push(Place { from: at, to, is_quoted: false });
                    at = to;
                }
            }
        }
        let (own, rest) = text.split_at(at);
        self.text = rest;
        let feeds = own.iter().filter(|octet| **octet == b'\n').count();
        let last = self.line + feeds - usize::from(own.ends_with(b"\n"));
        let lines = (self.line, last);
        self.line += feeds;
        Some(Entry { text: own, words, is_indented, lines })
    }
}

/// Octets before the first that ends a word. One behind a backslash ends none, unless it is in a comment.
fn length_until(text: &[u8], is_end: impl Fn(u8) -> bool) -> usize {
    let is_comment = text.first() == Some(&b';');
    let mut at = 0;
    while let Some(octet) = text.get(at) {
        match octet {
            b'\\' if !is_comment => at += 2,
            octet if is_end(*octet) => return at,
            _ => at += 1,
        }
    }
    text.len()
}

fn ends_word(octet: u8) -> bool {
    matches!(octet, b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'(' | b')' | b';')
}

/// Hands each record of a zone file to `take`, with the line on which it ends, until that breaks off. `origin` is the name for
/// relative names before the first `$ORIGIN`; without it, the owner of the SOA record is.
///
/// # Errors
/// When an entry cannot be read, or `take` has one. The error has its line.
pub fn read_zone_file<E: From<ZoneFileError>>(
    text: &[u8],
    origin: Option<&str>,
    mut take: impl FnMut(&ScannedRecord, usize) -> Result<ControlFlow<()>, E>,
) -> Result<(), E> {
    let mut parser = Zonefile::new();
    parser.set_default_class(Class::IN);
    let mut reader =
        Reader { parser, records: Vec::new(), origin: None, has_ttl: false, lines_fed: 0 };
    if let Some(origin) = origin {
        let no_name = |_| ZoneFileError::Origin(origin.to_owned());
        reader.set_origin(Name::from_chars(origin.chars()).map_err(no_name)?);
    }
    for entry in (Entries { text, line: 1 }) {
        reader.take(&entry)?;
        for record in reader.records.drain(..) {
            if take(&record, entry.lines.1)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

struct Reader {
    parser: Zonefile,
    /// Those of the entry that was read last.
    records: Vec<ScannedRecord>,
    origin: Option<Name<Bytes>>,
    /// A TTL was written, or follows from the SOA record.
    has_ttl: bool,
    lines_fed: usize,
}

impl Reader {
    fn set_origin(&mut self, origin: Name<Bytes>) {
        self.parser.set_origin(origin.clone());
        self.origin = Some(origin);
    }

    fn take(&mut self, entry: &Entry<'_>) -> Result<(), ZoneFileError> {
        match entry.word(0) {
            None => Ok(()),
            Some(word) if !entry.is_indented && word.starts_with(b"$") => self.control(entry, word),
            Some(_) => self.record(entry),
        }
    }

    fn control(&mut self, entry: &Entry<'_>, word: &[u8]) -> Result<(), ZoneFileError> {
        if word.eq_ignore_ascii_case(b"$TTL") {
            let Some(word) = entry.word(1) else { return self.feed(entry, entry.text) };
            let seconds = ttl(word).ok_or_else(|| fault(entry, no_ttl(word)))?;
            self.has_ttl = true;
            return self.feed(entry, &entry.with(&[(1, seconds)]));
        }
        if word.eq_ignore_ascii_case(b"$GENERATE") {
            return self.generate(entry);
        }
        if word.eq_ignore_ascii_case(b"$INCLUDE") {
            let path = String::from_utf8_lossy(entry.word(1).unwrap_or_default());
            return Err(fault(entry, format!("$INCLUDE {path} is not supported: write one file")));
        }
        self.feed(entry, entry.text)?;
        if word.eq_ignore_ascii_case(b"$ORIGIN") {
            self.origin = self.parser.origin().ok();
        }
        Ok(())
    }

    fn record(&mut self, entry: &Entry<'_>) -> Result<(), ZoneFileError> {
        let head = Head::of(entry, usize::from(!entry.is_indented));
        let mut numbers: Vec<(usize, u32)> = head.ttl.into_iter().collect();
        self.has_ttl |= head.ttl.is_some();
        let Some(word) = entry.word(head.rtype) else { return self.feed(entry, entry.text) };
        let name = String::from_utf8_lossy(word);
        let data = entry.words_from(head.rtype + 1);
        // RFC 3597, section 5.
        let is_generic = data.first() == Some(&&br"\#"[..]);
        if name.eq_ignore_ascii_case("SOA") && !is_generic {
            let times: Vec<(usize, u32)> = (head.rtype + 4..head.rtype + 8)
                .filter_map(|place| Some((place, ttl(entry.word(place)?)?)))
                .collect();
            if let (false, [.., (_, minimum)]) = (self.has_ttl, &times[..]) {
                // As BIND does it.
                self.has_ttl = true;
                self.feed(entry, format!("$TTL {minimum}\n").as_bytes())?;
            }
            self.origin_of(entry);
            numbers.extend(times);
        }
        match FurtherType::find(&name).filter(|_| !is_generic) {
            Some(further) => {
                let octets = further.encode(&data, self.origin.as_ref());
                let octets = octets.map_err(|reason| fault(entry, format!("{name}: {reason}")))?;
                self.feed(entry, &head.generic(entry, further.number, &octets))
            }
            None if Rtype::from_str(&name).is_err() => Err(fault(entry, no_type(word))),
            None => {
                self.feed(entry, &entry.with(&numbers)).map_err(|error| name_type(error, &name))
            }
        }
    }

    /// A file that names its zone only in the SOA record has its owner as the origin.
    fn origin_of(&mut self, soa: &Entry<'_>) {
        let owner = soa.word(0).filter(|_| !soa.is_indented).unwrap_or_default();
        let is_absolute = owner.ends_with(b".") && !owner.ends_with(br"\.");
        if let (None, true, Ok(owner)) = (&self.origin, is_absolute, str::from_utf8(owner))
            && let Ok(origin) = Name::from_chars(owner.chars())
        {
            self.set_origin(origin);
        }
    }

    /// `$GENERATE range owner [ttl] [class] type data`, as BIND has it: entries that differ by a number.
    fn generate(&mut self, entry: &Entry<'_>) -> Result<(), ZoneFileError> {
        const FORM: &str = "$GENERATE is followed by a range such as 1-10 or 0-100/2, an owner, perhaps a TTL and a \
                            class, a type, and the data";
        let wrong = || fault(entry, FORM.to_owned());
        let range = entry.word(1).and_then(|word| str::from_utf8(word).ok());
        let range = range.and_then(Range::read).ok_or_else(wrong)?;
        let head = Head::of(entry, 3);
        let (Some(owner), Some(first)) = (entry.word(2), entry.words.get(head.rtype + 1)) else {
            return Err(wrong());
        };
        let last = entry.words[entry.words.len() - 1];
        let data = match entry.words.len() == head.rtype + 2 {
            // BIND wants data of several words in quotes.
            true => &entry.text[first.from..first.to],
            false => {
                &entry.text[first.from - usize::from(first.is_quoted)
                    ..(last.to + usize::from(last.is_quoted)).min(entry.text.len())]
            }
        };
        let between: Vec<u8> = entry.words_from(3)[..=head.rtype - 3]
            .iter()
            .flat_map(|word| [b" ", *word].concat())
            .collect();
        let mut number = range.from;
        while number <= range.to {
            let parts = substituted(owner, number).zip(substituted(data, number));
            let (owner, data) = parts.ok_or_else(|| {
                let form = "write `$` or `${OFFSET,WIDTH,BASE}` where the number is to stand; BASE is d, o, x, X, n or N";
                fault(entry, form.to_owned())
            })?;
            // It is a name and no control entry.
            let escape: &[u8] = if owner.starts_with(b"$") { br"\" } else { b"" };
            let text = [escape, &owner, &between, b" ", &data, b"\n"].concat();
            for made in (Entries { text: &text, line: entry.lines.0 }) {
                self.record(&Entry { lines: entry.lines, ..made })?;
            }
            number += range.step;
        }
        Ok(())
    }

    /// Lets the parser read a text that stands for this entry.
    fn feed(&mut self, entry: &Entry<'_>, text: &[u8]) -> Result<(), ZoneFileError> {
        self.parser.extend_from_slice(text);
        if !text.ends_with(b"\n") {
            // Editors do not always write one after the last line.
            self.parser.extend_from_slice(b"\n");
        }
        while let Some(parsed) =
            self.parser.next_entry().map_err(|error| self.worded(entry, &error.to_string()))?
        {
            if let Parsed::Record(record) = parsed {
                self.records.push(record);
            }
        }
        self.lines_fed += text.iter().filter(|octet| **octet == b'\n').count();
        self.lines_fed += usize::from(!text.ends_with(b"\n"));
        Ok(())
    }

    /// The error that `domain` words as `line:column: reason`, with the line of the file. If the last item of a line is
    /// at fault, the parser is already in column 1 of the next line.
    fn worded(&self, entry: &Entry<'_>, worded: &str) -> ZoneFileError {
        let mut parts = worded.splitn(3, ':');
        let mut number = || parts.next()?.parse::<usize>().ok();
        let (line, column) = (number().unwrap_or(1), number().unwrap_or(0));
        let reason = parts.next().unwrap_or(worded).trim();
        let within = line.saturating_sub(self.lines_fed + 1 + usize::from(column == 1));
        let line = (entry.lines.0 + within).min(entry.lines.1);
        let reason = match reason {
            "missing origin" => {
                "a name without a final dot needs an origin: write $ORIGIN, or name the zone"
                    .to_owned()
            }
            reason => reason.to_owned(),
        };
        ZoneFileError::Syntax { line, reason }
    }
}

/// What stands before the data of a record: at which places of the entry.
struct Head {
    /// With the seconds that are meant.
    ttl: Option<(usize, u32)>,
    class: Option<usize>,
    rtype: usize,
}

impl Head {
    /// Of a record whose owner ends before this word.
    fn of(entry: &Entry<'_>, first: usize) -> Self {
        let mut head = Self { ttl: None, class: None, rtype: first };
        while let Some(word) = entry.word(head.rtype) {
            match ttl(word) {
                Some(seconds) if head.ttl.is_none() => head.ttl = Some((head.rtype, seconds)),
                None if head.class.is_none() && is_class(word) => head.class = Some(head.rtype),
                _ => break,
            }
            head.rtype += 1;
        }
        head
    }

    /// The record in the form that every type has (RFC 3597, section 5).
    fn generic(&self, entry: &Entry<'_>, rtype: u16, data: &[u8]) -> Vec<u8> {
        let owner = if entry.is_indented { b"" } else { entry.written(0) };
        let ttl = self.ttl.map(|(_, seconds)| seconds.to_string()).unwrap_or_default();
        let class = self.class.and_then(|place| entry.word(place)).unwrap_or_default();
        let class = String::from_utf8_lossy(class);
        let hex: String = data.iter().map(|octet| format!("{octet:02x}")).collect();
        let rest = format!(" {ttl} {class} TYPE{rtype} \\# {} {hex}\n", data.len());
        [owner, rest.as_bytes()].concat()
    }
}

fn is_class(word: &[u8]) -> bool {
    str::from_utf8(word).is_ok_and(|word| Class::from_str(word).is_ok())
}

/// The seconds of a TTL, which may have units: `1h30m`. One that is too large counts as 0 (RFC 2181, section 8).
fn ttl(word: &[u8]) -> Option<u32> {
    let text = str::from_utf8(word)
        .ok()
        .filter(|text| text.starts_with(|letter: char| letter.is_ascii_digit()))?;
    let seconds = match text.parse::<u32>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let (mut rest, mut sum) = (text, 0_u32);
            while !rest.is_empty() {
                let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
                let unit = match rest.as_bytes()[digits].to_ascii_lowercase() {
                    b's' => 1,
                    b'm' => 60,
                    b'h' => 3_600,
                    b'd' => 86_400,
                    b'w' => 604_800,
                    _ => return None,
                };
                let part = rest[..digits].parse::<u32>().ok()?.checked_mul(unit)?;
                sum = sum.checked_add(part)?;
                rest = &rest[digits + 1..];
            }
            sum
        }
    };
    Some(if seconds > i32::MAX as u32 { 0 } else { seconds })
}

/// The numbers of a `$GENERATE`.
struct Range {
    from: u32,
    to: u32,
    step: u32,
}

impl Range {
    fn read(text: &str) -> Option<Self> {
        let (bounds, step) = text.split_once('/').unwrap_or((text, "1"));
        let (from, to) = bounds.split_once('-')?;
        let number = |text: &str| text.parse().ok().filter(|number| *number <= i32::MAX as u32);
        let range = Self { from: number(from)?, to: number(to)?, step: number(step)? };
        (range.from <= range.to && range.step > 0).then_some(range)
    }
}

/// The text with the number in each place of `$`; `None` if a form is wrong. What stands behind a backslash stays.
fn substituted(text: &[u8], number: u32) -> Option<Vec<u8>> {
    let (mut made, mut rest) = (Vec::new(), text);
    while let [octet, after @ ..] = rest {
        rest = after;
        match (octet, after) {
            (b'\\', [escaped, after @ ..]) => {
                made.extend_from_slice(&[b'\\', *escaped]);
                rest = after;
            }
            (b'$', [b'$', after @ ..]) => {
                made.push(b'$');
                rest = after;
            }
            (b'$', [b'{', after @ ..]) => {
                let end = after.iter().position(|octet| *octet == b'}')?;
                let form = str::from_utf8(&after[..end]).ok()?;
                made.extend_from_slice(formatted(form, number)?.as_bytes());
                rest = &after[end + 1..];
            }
            (b'$', _) => made.extend_from_slice(number.to_string().as_bytes()),
            (other, _) => made.push(*other),
        }
    }
    Some(made)
}

/// The number in the form `offset[,width[,base]]`.
fn formatted(form: &str, number: u32) -> Option<String> {
    /// A name is no longer.
    const MAX_WIDTH: usize = 255;
    let mut parts = form.splitn(3, ',');
    let offset: i64 = parts.next()?.parse().ok()?;
    let width: usize = parts.next().map_or(Some(0), |width| width.parse().ok())?;
    let value = u32::try_from(i64::from(number) + offset).ok()?;
    (width <= MAX_WIDTH).then_some(())?;
    Some(match parts.next().unwrap_or("d") {
        "d" => format!("{value:0width$}"),
        "o" => format!("{value:0width$o}"),
        "x" => format!("{value:0width$x}"),
        "X" => format!("{value:0width$X}"),
        "n" => nibbles(value, width),
        "N" => nibbles(value, width).to_ascii_uppercase(),
        _ => return None,
    })
}

/// The digits of a number in base 16, the last one first, each a label. The width counts the dots, too.
fn nibbles(mut value: u32, mut width: usize) -> String {
    let mut text = String::new();
    loop {
        text.push_str(&format!("{:x}", value & 0xf));
        value >>= 4;
        width = width.saturating_sub(1);
        if width > 0 || value > 0 {
            text.push('.');
            width = width.saturating_sub(1);
        }
        if width == 0 && value == 0 {
            return text;
        }
    }
}

fn fault(entry: &Entry<'_>, reason: String) -> ZoneFileError {
    ZoneFileError::Syntax { line: entry.lines.0, reason }
}

fn no_ttl(word: &[u8]) -> String {
    let word = word.escape_ascii();
    format!(
        "`{word}` is no TTL: write seconds, or numbers with the units s, m, h, d and w, such as 1h30m"
    )
}

fn no_type(word: &[u8]) -> String {
    if word.first().is_some_and(u8::is_ascii_digit) {
        return no_ttl(word);
    }
    let word = word.escape_ascii();
    format!(
        "`{word}` is no record type that is known: write TYPE and its number, with the data as {GENERIC}"
    )
}

/// RFC 3597, section 5.
const GENERIC: &str = r"`\# LENGTH HEX`";

/// Names the type that `domain` knows by name alone.
fn name_type(error: ZoneFileError, name: &str) -> ZoneFileError {
    match error {
        ZoneFileError::Syntax { line, reason } if reason.starts_with("unknown record type") => {
            let reason = format!("the data of `{name}` are read as {GENERIC} only: write them so");
            ZoneFileError::Syntax { line, reason }
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttls_have_units_as_in_bind() {
        for (text, seconds) in [
            ("0", Some(0)),
            ("3600", Some(3_600)),
            ("1h", Some(3_600)),
            ("30M", Some(1_800)),
            ("2w", Some(1_209_600)),
            ("1D", Some(86_400)),
            ("1h30m5S", Some(5_405)),
            ("4294967295", Some(0)),
            ("4294967296", None),
            ("9999999w", None),
            ("1h30", None),
            ("1y", None),
            ("h", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(ttl(text.as_bytes()), seconds, "{text}");
        }
    }

    #[test]
    fn words_end_where_the_parser_ends_them() {
        let entry = |text: &'static str| Entries { text: text.as_bytes(), line: 1 }.next().unwrap();
        let check = |text, expected: &[&str]| {
            let expected: Vec<&[u8]> = expected.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(entry(text).words_from(0), expected, "{text:?}");
        };
        check("a TXT \"b ; c\"d;e\n", &["a", "TXT", "b ; c", "d"]);
        check("a TXT \"b \\\" c\" \\;\n", &["a", "TXT", "b \\\" c", "\\;"]);
        check("a (b\n; c ) \\\n d)e\nf", &["a", "b", "d", "e"]);
        check("; only \\\nb A", &[]);
        assert_eq!(entry("a (\n b\n)\nc").lines, (1, 3));
        assert!(entry(" a\n").is_indented && !entry("a\n").is_indented);
    }

    #[test]
    fn numbers_stand_where_dollars_stood() {
        for (text, expected) in [
            ("host$", Some("host7")),
            ("$$a\\$b", Some("$a\\$b")),
            ("${1}", Some("8")),
            ("x${0,4,x}y", Some("x0007y")),
            ("${-7,2,d}", Some("00")),
            ("${0,3,o}", Some("007")),
            ("${0,4,n}", Some("7.0.")),
            ("${300,0,N}", Some("3.3.1")),
            ("${-8}", None),
            ("${1,2,z}", None),
            ("${1", None),
        ] {
            let made = substituted(text.as_bytes(), 7).map(|made| String::from_utf8(made).unwrap());
            assert_eq!(made.as_deref(), expected, "{text}");
        }
    }
}
