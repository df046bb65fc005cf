//! The statements of a `named.conf`: BIND takes only one block `options`, so what the user writes in another
//! one has to go into that of dnslab. Syntax: BIND 9 Administrator Reference Manual, chapter 8,
//! "Configuration File".

use std::ops::Range;

/// The text of all blocks `options` at the top of some statements, and the statements without them. A block
/// that does not end stays where it is: BIND says where it begins.
pub(super) fn without_options(text: &str) -> (String, String) {
    let (mut options, mut others, mut rest) = (String::new(), String::new(), text);
    while let Some((statement, body)) = options_block(rest) {
        others.push_str(&rest[..statement.start]);
        options.push_str(rest[body].trim_matches('\n'));
        options.push('\n');
        rest = &rest[statement.end..];
    }
    others.push_str(rest);
    (options, others)
}

/// The first block `options` at the top: the whole statement with its semicolon, and what is inside.
fn options_block(text: &str) -> Option<(Range<usize>, Range<usize>)> {
    let (mut depth, mut statement, mut inside, mut begins) = (0_usize, None, None, true);
    for (token, at) in tokens(text) {
        let is_first = std::mem::replace(&mut begins, token == ";");
        match (token, depth) {
            ("{", _) => {
                if depth == 0 && statement.is_some() {
                    inside = Some(at.end);
                }
                depth += 1;
            }
            ("}", 1) if inside.is_some() => {
                let (start, body) = (statement?, inside?..at.start);
                let after = text[at.end..].trim_start();
                let end = text.len() - after.strip_prefix(';').unwrap_or(after).len();
                return Some((start..end, body));
            }
            ("}", _) => depth = depth.saturating_sub(1),
            ("options", 0) if is_first => statement = Some(at.start),
            (_, 0) => statement = None,
            _ => {}
        }
    }
    None
}

/// Octets of a string with its quotes. A quote behind a backslash is part of it.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|octet| {
        let ends = octet == b'"' && !is_escaped;
        is_escaped = octet == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// Words, strings with their quotes, braces and semicolons, each with its place, without comments.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += text[at..].len() - text[at..].trim_start().len();
            let rest = &text[at..];
            let until = |end: &str| rest.find(end).map(|found| found + end.len());
            let comment = match rest {
                _ if rest.starts_with('#') || rest.starts_with("//") => until("\n"),
                _ if rest.starts_with("/*") => until("*/"),
                _ => break,
            };
            at += comment.unwrap_or(rest.len());
        }
        let rest = &text[at..];
        let length = match rest.chars().next()? {
            '{' | '}' | ';' => 1,
            '"' => string_length(rest),
            _ => {
                let ends = |letter: char| letter.is_whitespace() || "{};\"#".contains(letter);
                rest.find(ends).unwrap_or(rest.len()).max(1)
            }
        };
        let place = at..at + length;
        at = place.end;
        Some((&text[place.clone()], place))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, options: &str, others: &str) {
        assert_eq!(without_options(text), (options.to_owned(), others.to_owned()), "{text}");
    }

    #[test]
    fn options_go_into_the_one_block() {
        check("", "", "");
        check("zone \"a\" { type primary; };\n", "", "zone \"a\" { type primary; };\n");
        check(
            "options {\n    rate-limit { responses-per-second 5; };\n};\nkey k { };\n",
            "    rate-limit { responses-per-second 5; };\n",
            "\nkey k { };\n",
        );
        let two = "options{recursion no;} ; options { querylog no; };";
        check(two, "recursion no;\n querylog no; \n", " ");
    }

    #[test]
    fn what_only_looks_like_options_stays() {
        // In a comment, in a string, in another block, as another statement's name, without an end.
        for text in [
            "# options { a; };\n",
            "// options { a; };\n/* options { b; }; */",
            "include \"options { a; };\";",
            "view v { options { a; }; };",
            "server options { bogus yes; };",
            "options { recursion no;",
            "options",
            "\"",
            "/*",
            "}",
        ] {
            check(text, "", text);
        }
    }

    #[test]
    fn braces_in_strings_and_comments_do_not_count() {
        check(
            "options { version \"}\"; # }\n /* } */ querylog no; };\nacl a { any; };",
            " version \"}\"; # }\n /* } */ querylog no; \n",
            "\nacl a { any; };",
        );
    }
}
