//! Bindings that are named by a word of every sentence.

/// A search for one of these finds every comment, and a reader does not learn what is bound.
const NAMES: [&str; 3] = ["it", "of", "told"];

/// Tokens behind which a `|` begins the parameters of a closure.
const BEFORE_CLOSURES: [&str; 12] =
    ["(", "[", "{", ",", ";", ":", "=", "=>", "&", "move", "mut", "return"];

/// Marks of several characters, of which one may begin another.
const MARKS: [&str; 11] = ["..=", "..", "::", "||", "&&", "=>", "->", "==", "!=", "<=", ">="];

/// The bindings of a Rust file that have one of [`NAMES`], each with its line, from 1. Fields, functions and modules
/// may have one, and the pattern of a struct may bind a field by its own name. Of the pattern of an arm only the end
/// is read.
pub(crate) fn vague(text: &str) -> Vec<(usize, &str)> {
    let tokens = tokens(text);
    let token = |at: usize| tokens.get(at).map_or("", |(_, token)| *token);
    let before = |at: usize| token(at.wrapping_sub(1));
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut next = at + 1;
        let pattern = match token(at) {
            "let" => next..end(&tokens, next, &["=", ";"]),
            "for" => next..end(&tokens, next, &["in", "{", ";"]),
            // The name of the function comes first.
            "fn" => next + 1..end(&tokens, next + 1, &["{", ";"]),
            "|" if BEFORE_CLOSURES.contains(&before(at)) => {
                let closing = end(&tokens, next, &["|"]);
                let parameters = next..closing;
                next = closing + 1;
                parameters
            }
            "=>" => {
                let closing = |(_, token): &&(usize, &str)| matches!(*token, ")" | "]");
                let closed = tokens[..at].iter().rev().take_while(closing).count();
                at.saturating_sub(closed + 1)..at
            }
            _ => next..next,
        };
        let mut braces = 0;
        for place in pattern {
            match token(place) {
                "{" => braces += 1,
                "}" => braces -= 1,
                _ => {}
            }
            let is_field = braces > 0 && matches!(before(place), "{" | "," | "mut" | "ref");
            let is_path = matches!(before(place), "." | "::") || token(place + 1) == "::";
            if NAMES.contains(&token(place)) && !is_field && !is_path {
                found.push(tokens[place]);
            }
        }
        at = next;
    }
    found
}

/// Where a pattern or a signature that begins at `from` ends: before one of `ends`, or where what is around it ends.
pub(crate) fn end(tokens: &[(usize, &str)], from: usize, ends: &[&str]) -> usize {
    let mut depth = 0;
    for (at, (_, token)) in tokens.iter().enumerate().skip(from) {
        match *token {
            token if depth == 0 && ends.contains(&token) => return at,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => return at,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Words, quotes and marks, each with its line, from 1. Comments are none.
pub(crate) fn tokens(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut rest, mut line) = (Vec::new(), text, 1);
    while !rest.is_empty() {
        let (token, after) = rest.split_at(length(rest));
        let is_comment = token.starts_with("//") || token.starts_with("/*");
        if !is_comment && !token.starts_with(char::is_whitespace) {
            found.push((line, token));
        }
        line += token.matches('\n').count();
        rest = after;
    }
    found
}

/// How long the token, comment or space is with which the text begins.
fn length(text: &str) -> usize {
    let until = |from: usize, end: &str| {
        let rest = text.get(from..).unwrap_or_default();
        rest.find(end).map_or(text.len(), |at| from + at + end.len())
    };
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return until(2, "*/");
    }
    if let Some(length) = length_of_raw_quote(text) {
        return length;
    }
    let mut letters = text.chars();
    match (letters.next(), letters.next(), letters.next()) {
        (Some('"'), _, _) => length_of_quote(text),
        (Some('\''), Some('\\'), Some(_)) => until(3, "'"),
        (Some('\''), Some(letter), Some('\'')) => letter.len_utf8() + 2,
        (Some(first), _, _) if is_word(first) => {
            text.find(|letter| !is_word(letter)).unwrap_or(text.len())
        }
        (first, _, _) => {
            let mark = MARKS.iter().find(|mark| text.starts_with(**mark));
            mark.map_or(first.map_or(0, char::len_utf8), |mark| mark.len())
        }
    }
}

fn length_of_quote(text: &str) -> usize {
    let mut is_escaped = false;
    let closing = text.char_indices().skip(1).find(|(_, letter)| {
        let is_closing = *letter == '"' && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        is_closing
    });
    closing.map_or(text.len(), |(at, _)| at + 1)
}

/// `None` if no raw quote is there, as `r"a"` or `br#"a"#`.
fn length_of_raw_quote(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(['b', 'c']).unwrap_or(text).strip_prefix('r')?;
    let marks = rest.len() - rest.trim_start_matches('#').len();
    let inner = rest[marks..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(marks));
    let before = text.len() - inner.len();
    Some(inner.find(&closing).map_or(text.len(), |at| before + at + closing.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let names: Vec<&str> = vague(text).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, expected, "{text}");
    }

    #[test]
    fn vague_bindings_are_found() {
        check("a.map(|it| it.x)", &["it"]);
        check("a.map(move |(of, its), told: &Told| of + told)", &["of", "told"]);
        check("a.fold(0, &mut |sum, &&it| sum + it)", &["it"]);
        check("let it = 1; let (mut of, _): (u8, u8) = a;", &["it", "of"]);
        check("let Some(told) = a else { return };", &["told"]);
        check("if let Some(A { a: it, .. }) = a {}", &["it"]);
        check("for (of, _) in a {}", &["of"]);
        check("fn a<T>(\n    it: &T,\n    (told, _): (u8, u8),\n) -> u8 {}", &["it", "told"]);
        check("match a { Some(it) => 1, of => 2 }", &["it", "of"]);
        check("fn a<'a>(b: &'a str) { c('|', '\\'', |it| it) }", &["it"]);
        assert_eq!(vague("/* it\n */\n\"\n|it|\"\nlet of = 1;"), [(5, "of")]);
    }

    #[test]
    fn fields_functions_and_words_of_a_text_are_no_bindings() {
        check("let Member { told, of: workers, .. } = a.told;", &[]);
        check("struct A { pub of: u32 }\nlet a = A { of: told(it::b()), told };", &[]);
        check("fn of(a: told::Told) {}\nmatch a.told { A | B => self.of, C => told }", &[]);
        check("// |it| it\nlet a = \"\\\"|it|\"; let b = r#\"let \"it\"\"#;", &[]);
    }
}
