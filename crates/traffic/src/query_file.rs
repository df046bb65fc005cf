//! dnsperf's query files, line by line.

use std::io::{self, BufRead, Read as _};

use dnslab_wire::{Query, QueryOptions, rtype::is_transfer};
use domain::base::Name;
use domain::base::iana::Rtype;

/// How many wrong lines are named: enough to see what is wrong with the file.
const MAX_PROBLEMS: usize = 20;

/// Characters of a word that stand in an error.
const MAX_CULPRIT: usize = 64;

/// Octets of a line, at most: a name with every octet escaped has a thousand, and what follows the type is not read.
const MAX_LINE: u64 = 65_536;

/// First words of the lines of a dynamic update (dnsperf(1), "Constructing a dynamic update input file").
const UPDATE_WORDS: [&str; 5] = ["require", "prohibit", "add", "delete", "send"];

/// Why a query file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum QueryFileError {
    /// The operating system refused.
    #[error("cannot read query file {file} after line {line}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The last line that was read; 0 if none was.
        line: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing but comments and empty lines.
    #[error("query file {file} holds no query: write one on each line, such as `www.example A`")]
    Empty {
        /// The file.
        file: String,
    },
    /// Dynamic updates, which dnsperf sends with `-u`.
    #[error(
        "query file {file} holds dynamic updates (dnsperf -u): `{word}` in line {line} is an order of one, and \
         dnslab sends queries only; give a file with a name and a type on each line"
    )]
    Updates {
        /// The file.
        file: String,
        /// The first line that can be nothing else, from 1.
        line: u64,
        /// Its first word.
        word: String,
    },
    /// Two or four octets for each character.
    #[error(
        "query file {file} is {}: write it again as UTF-8, `iconv -f {encoding} -t UTF-8 {file} > queries.txt`",
        &encoding[..6]
    )]
    Wide {
        /// The file.
        file: String,
        /// `UTF-16LE`, `UTF-16BE`, `UTF-32LE` or `UTF-32BE`.
        encoding: &'static str,
    },
    /// A line without an end: the file is no text.
    #[error("query file {file} is no text: line {line} has more than {MAX_LINE} octets")]
    LongLine {
        /// The file.
        file: String,
        /// The first such line, from 1.
        line: u64,
    },
    /// More queries than an index can count.
    #[error("query file {file} holds more than {} queries: split it", u32::MAX)]
    TooLong {
        /// The file.
        file: String,
    },
    /// Lines that are no queries.
    #[error("query file {file} has {total} wrong line{}:{}", plural(*total), listed(shown, *total))]
    Lines {
        /// The file.
        file: String,
        /// The first of them, at most 20.
        shown: Vec<LineProblem>,
        /// How many there are.
        total: u64,
    },
}

/// A line that is no query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct LineProblem {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub fault: LineFault,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// A name without a type.
    #[error("`{name}` has no type: write one behind it, such as `{name} A`")]
    NoType {
        /// The name.
        name: String,
    },
    /// The second word is no type.
    #[error("`{word}` is no query type: write a mnemonic such as A or AAAA, or TYPE65280")]
    UnknownType {
        /// The word.
        word: String,
    },
    /// The first word is no domain name.
    #[error(
        "`{word}` is no domain name: {reason}; labels have 1 to 63 octets, a name 255 at most, \
         other characters are written \\DDD"
    )]
    BadName {
        /// The word.
        word: String,
        /// Why not.
        reason: String,
    },
    /// A carriage return that does not belong to the end of the line.
    #[error(
        "a carriage return (CR) stands in it: lines end with LF or CRLF; if they end with CR alone, \
         `tr '\\r' '\\n'` mends the file"
    )]
    CarriageReturn,
    /// A zone transfer, whose answer is many messages.
    #[error(
        "`{name} {rtype}` asks for a zone transfer, whose answer is a stream of messages (RFC 5936): dnslab measures \
         queries with one answer, so leave it out"
    )]
    Transfer {
        /// The name.
        name: String,
        /// AXFR or IXFR.
        rtype: Rtype,
    },
    /// A line of a dynamic update.
    #[error("`{word}` belongs to a dynamic update")]
    Update {
        /// Its first word.
        word: String,
    },
}

/// Reads a whole file. See [`crate::QueryList::from_text`] for the format.
pub(crate) fn read(
    mut reader: impl BufRead,
    file: &str,
    options: &QueryOptions,
) -> Result<Vec<Query>, QueryFileError> {
    let file = || file.to_owned();
    let (mut queries, mut shown, mut total) = (Vec::new(), Vec::new(), 0);
    let mut octets = Vec::new();
    for line in 1.. {
        octets.clear();
        let count = reader
            .by_ref()
            .take(MAX_LINE + 1)
            .read_until(b'\n', &mut octets)
            .map_err(|source| QueryFileError::Read { file: file(), line: line - 1, source })?;
        if count == 0 {
            break;
        }
        if line == 1
            && let Some(encoding) = wide(&octets)
        {
            return Err(QueryFileError::Wide { file: file(), encoding });
        }
        if octets.len() as u64 > MAX_LINE {
            return Err(QueryFileError::LongLine { file: file(), line });
        }
        let octets = match line {
            1 => octets.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&octets),
            _ => &octets,
        };
        match query(octets, options) {
            Ok(None) => {}
            Ok(Some(_)) if queries.len() == u32::MAX as usize => {
                return Err(QueryFileError::TooLong { file: file() });
            }
            Ok(Some(query)) => queries.push(query),
            Err(LineFault::Update { word }) => {
                return Err(QueryFileError::Updates { file: file(), line, word });
            }
            Err(fault) => {
                total += 1;
                if shown.len() < MAX_PROBLEMS {
                    shown.push(LineProblem { line, fault });
                }
            }
        }
    }
    if total > 0 {
        Err(QueryFileError::Lines { file: file(), shown, total })
    } else if queries.is_empty() {
        Err(QueryFileError::Empty { file: file() })
    } else {
        Ok(queries)
    }
}

/// At the beginning of UTF-8, where some editors write it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The encoding of the first line of a file that has more than one octet for each character; `None` if it has one.
/// Without a mark, it is known by its zeros.
fn wide(line: &[u8]) -> Option<&'static str> {
    match line {
        [0xff, 0xfe, 0, 0, ..] => return Some("UTF-32LE"),
        [0, 0, 0xfe, 0xff, ..] => return Some("UTF-32BE"),
        [0xff, 0xfe, ..] => return Some("UTF-16LE"),
        [0xfe, 0xff, ..] => return Some("UTF-16BE"),
        _ => {}
    }
    // The line ends in the middle of the line feed.
    let encodings =
        [("UTF-16LE", 2, 0), ("UTF-16BE", 2, 1), ("UTF-32LE", 4, 0), ("UTF-32BE", 4, 3)];
    encodings
        .into_iter()
        .find(|(_, width, letter)| is_wide_ascii(line, *width, *letter))
        .map(|encoding| encoding.0)
}

/// True if a line is of characters of so many octets, all of which are zeros but the one at this place.
fn is_wide_ascii(line: &[u8], width: usize, letter: usize) -> bool {
    let mut characters = line.chunks_exact(width).take(16).peekable();
    let is_letter = |octets: &[u8]| {
        octets.iter().enumerate().all(|(place, octet)| (*octet != 0) == (place == letter))
    };
    characters.peek().is_some() && characters.all(is_letter)
}

/// The query on one line; `None` if it is empty or a comment.
fn query(line: &[u8], options: &QueryOptions) -> Result<Option<Query>, LineFault> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // In a comment too: otherwise a whole file could be one comment.
    if line.contains(&b'\r') {
        return Err(LineFault::CarriageReturn);
    }
    if line.trim_ascii_start().starts_with(b";") {
        return Ok(None);
    }
    let line = escaped(line);
    let mut words = line.split_ascii_whitespace();
    let Some(name) = words.next() else { return Ok(None) };
    let rtype = words.next().ok_or(name).and_then(|word| rtype(word).ok_or(word));
    let rtype = match rtype {
        Ok(rtype) => rtype,
        // Such a line can also be the query of a host `add`, if a type follows.
        Err(_) if UPDATE_WORDS.iter().any(|update| update.eq_ignore_ascii_case(name)) => {
            return Err(LineFault::Update { word: name.to_owned() });
        }
        Err(word) if std::ptr::eq(word, name) => {
            return Err(LineFault::NoType { name: shortened(name) });
        }
        Err(word) => return Err(LineFault::UnknownType { word: shortened(word) }),
    };
    if is_transfer(rtype.to_int()) {
        return Err(LineFault::Transfer { name: shortened(name), rtype });
    }
    let bad_name = |reason: String| LineFault::BadName { word: shortened(name), reason };
    let owner = name.parse::<Name<Vec<u8>>>().map_err(|error| bad_name(error.to_string()))?;
    Query::new(&owner, rtype, options).map(Some).map_err(|error| bad_name(error.to_string()))
}

/// A line as text. Octets that are neither ASCII nor white space become `\DDD`, which is what they are on the
/// wire (RFC 1035, section 5.1). dnsperf sends them as they are, whatever the encoding of the file.
fn escaped(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    let mut follows_backslash = false;
    for &octet in line {
        if octet.is_ascii_graphic() || octet.is_ascii_whitespace() {
            text.push(char::from(octet));
        } else {
            // A backslash before it has begun the escape already.
            text.push_str(if follows_backslash { "" } else { "\\" });
            text.push_str(&format!("{octet:03}"));
        }
        follows_backslash = octet == b'\\' && !follows_backslash;
    }
    text
}

pub(crate) fn rtype(word: &str) -> Option<Rtype> {
    // dnsperf's spelling, which is IANA's; the parser knows it without the hyphen.
    if word.eq_ignore_ascii_case("NSAP-PTR") { Some(Rtype::NSAPPTR) } else { word.parse().ok() }
}

/// A word as it stands in an error: not endless, and without control characters.
fn shortened(word: &str) -> String {
    let mut text: String = word.chars().take(MAX_CULPRIT).flat_map(char::escape_default).collect();
    if word.chars().nth(MAX_CULPRIT).is_some() {
        text.push('…');
    }
    text
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The problems, a line each, and how many more there are.
fn listed(shown: &[LineProblem], total: u64) -> String {
    let mut text: String = shown.iter().map(|problem| format!("\n  {problem}")).collect();
    let hidden = total - shown.len() as u64;
    if hidden > 0 {
        text.push_str(&format!("\n  and {hidden} more"));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_type_is_read_as_it_is_written() {
        for number in 0..=u16::MAX {
            let written = Rtype::from_int(number).to_string();
            assert_eq!(rtype(&written), Some(Rtype::from_int(number)), "{written}");
        }
    }

    #[track_caller]
    fn check(text: impl AsRef<[u8]>, expected: &[&str]) {
        let queries = read(text.as_ref(), "q.txt", &QueryOptions::default()).unwrap();
        let queries: Vec<String> = queries.iter().map(ToString::to_string).collect();
        assert_eq!(queries, expected);
    }

    #[test]
    fn what_dnsperf_sends_is_read() {
        check("a.example A\nb.example\tAAAA\n", &["a.example. A", "b.example. AAAA"]);
        check("a.example. A", &["a.example. A"]);
        check(
            "a TYPE1\nb type65280\nc aaaa\nd ANY",
            &["a. A", "b. TYPE65280", "c. AAAA", "d. ANY"],
        );
        check("; a comment\n\n;another\na A\n;", &["a. A"]);
        check("a A ; what follows is not looked at\nb A A", &["a. A", "b. A"]);
        check("#a A\n@ A\nunder_score A\n*.x A", &["#a. A", "@. A", "under_score. A", "*.x. A"]);
        check("add A\nsend TXT\nrequire ns\n", &["add. A", "send. TXT", "require. NS"]);
        check("a\\.b.x A\na\\032b.x MX", &["a\\.b.x. A", "a\\ b.x. MX"]);
        check("x NSAP-PTR\ny HTTPS\nz DLV", &["x. NSAPPTR", "y. HTTPS", "z. DLV"]);
    }

    #[test]
    fn what_dnsperf_refuses_is_read_where_it_is_clear() {
        check("a A\r\n\r\n; c\r\nb A\r\n", &["a. A", "b. A"]);
        check("   \n\t\n  a A\n", &["a. A"]);
        check("  ; indented\n\t;A A\na A", &["a. A"]);
    }

    #[test]
    fn labels_that_are_not_ascii_are_sent_as_they_are() {
        let check = |line: &[u8], label: &[u8]| {
            let queries = read(line, "q.txt", &QueryOptions::default()).unwrap();
            let name = queries[0].name();
            assert_eq!(name.iter().next().unwrap().as_slice(), label, "{line:?}");
        };
        check("é.x A".as_bytes(), b"\xc3\xa9");
        check(b"\xe9.x A", b"\xe9");
        check(b"a\\\xe9b.x A", b"a\xe9b");
        check(b"a\\\\\xe9b.x A", b"a\\\xe9b");
        check(b"\x01\x7f.x A", b"\x01\x7f");
        check(b"\"q\".x A", b"\"q\"");
        check(b"x\\@\\\".y A", b"x@\"");
    }

    #[test]
    fn the_root_can_be_asked() {
        let queries = read(&b". NS\n"[..], "q.txt", &QueryOptions::default()).unwrap();
        assert_eq!(queries[0].question(), b"\0\0\x02\0\x01");
    }

    #[test]
    fn a_mark_of_utf8_is_skipped() {
        check("\u{feff}a A\nb A\n", &["a. A", "b. A"]);
        check("\u{feff}; a\r\nb A\r\n", &["b. A"]);
    }

    #[track_caller]
    fn check_error(text: impl AsRef<[u8]>, expected: &str) {
        let error = read(text.as_ref(), "q.txt", &QueryOptions::default()).unwrap_err().to_string();
        assert_eq!(error, expected);
    }

    #[test]
    fn files_that_are_no_queries_are_named() {
        let utf16 = |mark: bool, octets: fn(u16) -> [u8; 2]| -> Vec<u8> {
            let text = format!("{}a.example A\r\n", if mark { "\u{feff}" } else { "" });
            text.encode_utf16().flat_map(octets).collect()
        };
        for mark in [true, false] {
            for (octets, name) in
                [(u16::to_le_bytes as fn(u16) -> [u8; 2], "LE"), (u16::to_be_bytes, "BE")]
            {
                let how = format!("`iconv -f UTF-16{name} -t UTF-8 q.txt > queries.txt`");
                check_error(
                    utf16(mark, octets),
                    &format!("query file q.txt is UTF-16: write it again as UTF-8, {how}"),
                );
            }
        }
        let utf32 = |mark: bool, octets: fn(u32) -> [u8; 4]| -> Vec<u8> {
            let text = format!("{}a.example A\r\n", if mark { "\u{feff}" } else { "" });
            text.chars().flat_map(|letter| octets(u32::from(letter))).collect()
        };
        for mark in [true, false] {
            for (octets, name) in
                [(u32::to_le_bytes as fn(u32) -> [u8; 4], "LE"), (u32::to_be_bytes, "BE")]
            {
                let how = format!("`iconv -f UTF-32{name} -t UTF-8 q.txt > queries.txt`");
                check_error(
                    utf32(mark, octets),
                    &format!("query file q.txt is UTF-32: write it again as UTF-8, {how}"),
                );
            }
        }
        check_error(
            [&b"a A\n"[..], &[0; 70_000]].concat(),
            "query file q.txt is no text: line 2 has more than 65536 octets",
        );
        check_error(
            "a A\nbig AXFR\nbig ixfr\n",
            "query file q.txt has 2 wrong lines:\n  line 2: `big AXFR` asks for a zone transfer, whose answer is a \
             stream of messages (RFC 5936): dnslab measures queries with one answer, so leave it out\n  line 3: `big \
             IXFR` asks for a zone transfer, whose answer is a stream of messages (RFC 5936): dnslab measures queries \
             with one answer, so leave it out",
        );
    }

    #[test]
    fn wrong_lines_are_named() {
        let one = |text: &str, problem: &str| {
            check_error(text, &format!("query file q.txt has 1 wrong line:\n  {problem}"));
        };
        one(
            "a A\n\nexample.com\n",
            "line 3: `example.com` has no type: write one behind it, such as `example.com A`",
        );
        let types = "is no query type: write a mnemonic such as A or AAAA, or TYPE65280";
        one("a A\nb AAA\n", &format!("line 2: `AAA` {types}"));
        one("a TYPE65536", &format!("line 1: `TYPE65536` {types}"));
        one("a *", &format!("line 1: `*` {types}"));
        one("a a\u{7}é", &format!("line 1: `a\\\\007\\\\195\\\\169` {types}"));
        // Two equal words are not one word.
        one("x x", &format!("line 1: `x` {types}"));
        let long = "q".repeat(65);
        one(&format!("a {long}"), &format!("line 1: `{}…` {types}", &long[1..]));
        let cr = "a carriage return (CR) stands in it: lines end with LF or CRLF; if they end with CR \
                  alone, `tr '\\r' '\\n'` mends the file";
        // Not the first query alone, and not a comment as long as the file.
        one("a A\rb A\rc A\r", &format!("line 1: {cr}"));
        one("; a comment\ra A\r", &format!("line 1: {cr}"));
        one("a A\r\nb\rA\r\n", &format!("line 2: {cr}"));
    }

    #[test]
    fn bad_names_say_why() {
        for name in [
            "x..y",
            ".x",
            "a\\",
            "a\\256",
            "a\\999",
            "a\\03",
            "a\\0x3",
            &"a".repeat(64),
            &"a.".repeat(128),
        ] {
            let text = format!("{name} A");
            let error = read(text.as_bytes(), "q.txt", &QueryOptions::default()).unwrap_err();
            let QueryFileError::Lines { shown, total: 1, .. } = error else { panic!("{error}") };
            assert_eq!(shown[0].line, 1);
            assert!(matches!(shown[0].fault, LineFault::BadName { .. }), "{name}: {}", shown[0]);
        }
    }

    #[test]
    fn dynamic_updates_are_refused() {
        let update = "example.com\nrequire a A 1.2.3.4\nadd w 3600 A 10.1.2.3\nDelete q\nsend\n";
        let error = read(update.as_bytes(), "u.txt", &QueryOptions::default()).unwrap_err();
        let QueryFileError::Updates { line, word, .. } = &error else { panic!("{error}") };
        assert_eq!((*line, word.as_str()), (3, "add"));
        let text = error.to_string();
        assert!(text.starts_with("query file u.txt holds dynamic updates (dnsperf -u)"), "{text}");
    }

    #[test]
    fn twenty_wrong_lines_are_named_and_the_others_counted() {
        let error = read("x\n".repeat(23).as_bytes(), "q.txt", &QueryOptions::default());
        let error = error.unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1 + 20 + 1);
        assert!(
            error.starts_with("query file q.txt has 23 wrong lines:\n  line 1: `x`"),
            "{error}"
        );
        assert!(error.ends_with("\n  and 3 more"), "{error}");
    }

    #[test]
    fn without_a_query_there_is_no_list() {
        for text in ["", "\n\n", "; nothing\n"] {
            check_error(
                text,
                "query file q.txt holds no query: write one on each line, such as `www.example A`",
            );
        }
    }

    #[test]
    fn a_reader_that_fails_says_where() {
        struct Broken;
        impl io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        let reader = io::BufReader::new(io::Read::chain(&b"a A\nb A\n"[..], Broken));
        let error = read(reader, "q.txt", &QueryOptions::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read query file q.txt after line 2: the disk is gone"
        );
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(text.as_slice(), "q.txt", &QueryOptions::default())
                .map_err(|error| error.to_string());
        }

        #[test]
        fn nearly_right_text_is_read_or_refused(
            text in "([a-z.;\\\\0-9]{0,6}[ \t\r]?(A|AAAA|TYPE|send|[a-zA-Z0-9é*]{0,4})?[\n ]){0,20}",
        ) {
            match read(text.as_bytes(), "q.txt", &QueryOptions::default()) {
                Ok(queries) => prop_assert!(queries.len() <= text.lines().count()),
                Err(error) => prop_assert!(error.to_string().starts_with("query file q.txt")),
            }
        }

        #[test]
        fn names_and_types_come_back(
            labels in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 1..6), 1..20,
            ),
            number in any::<u16>(),
        ) {
            let rtype = Rtype::from_int(number);
            let line = |labels: &Vec<Vec<u8>>| format!("{} {rtype}\n", presented(labels));
            let text: String = labels.iter().map(line).collect();
            let queries = read(text.as_bytes(), "q.txt", &QueryOptions::default());
            if is_transfer(number) {
                prop_assert!(queries.unwrap_err().to_string().contains("asks for a zone transfer"));
                return Ok(());
            }
            let queries = queries.unwrap();
            prop_assert_eq!(queries.len(), labels.len());
            for (query, labels) in queries.iter().zip(&labels) {
                let name = query.name();
                let asked: Vec<&[u8]> = name.iter().map(|label| label.as_slice()).collect();
                prop_assert_eq!(&asked[..labels.len()], labels);
                prop_assert_eq!(asked.len(), labels.len() + 1);
                prop_assert_eq!(query.rtype(), rtype);
            }
        }
    }

    /// A name as it stands in a file, with all but letters and digits as `\DDD`.
    fn presented(labels: &[Vec<u8>]) -> String {
        let octet = |octet: &u8| match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(*octet).to_string(),
            _ => format!("\\{octet:03}"),
        };
        let label = |label: &Vec<u8>| label.iter().map(octet).chain([".".to_owned()]).collect();
        labels.iter().map(label).collect::<Vec<String>>().concat()
    }
}
