//! Closures with a name that should be functions.

use crate::bindings::{end, tokens};

/// More lines in a block are a function: a search finds its callers, and its parameters have types.
const MOST: usize = 3;

/// The closures of a Rust file that have a name and a block of more than [`MOST`] lines, each with its line, from 1.
pub(crate) fn long(text: &str) -> Vec<(usize, &str)> {
    let tokens = tokens(text);
    let token = |at: usize| tokens.get(at).map_or("", |(_, token)| *token);
    let is_let = |at: &usize| token(*at) == "let";
    let mut found = Vec::new();
    for at in (0..tokens.len()).filter(is_let) {
        let name = at + 1 + usize::from(token(at + 1) == "mut");
        let value = end(&tokens, name, &["=", ";"]) + 1;
        let is_before = |at: &usize| matches!(token(*at), "&" | "mut" | "move");
        let bar = (value..).find(|at| !is_before(at)).unwrap_or(value);
        let behind = match token(bar) {
            "|" => end(&tokens, bar + 1, &["|"]) + 1,
            "||" => bar + 1,
            _ => continue,
        };
        let block = match token(behind) {
            "->" => end(&tokens, behind + 1, &["{"]),
            _ => behind,
        };
        let closing = tokens.get(end(&tokens, block + 1, &[]));
        let lines = closing.map_or(0, |(line, _)| line - tokens[block].0);
        if token(block) == "{" && lines > MOST + 1 {
            found.push(tokens[name]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let names: Vec<&str> = long(text).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, expected, "{text}");
    }

    #[test]
    fn long_closures_are_found() {
        let block = "{\n1;\n2;\n// 3\n4\n};";
        check(&format!("let a = |b| {block}"), &["a"]);
        check(&format!("let mut a = move || -> Vec<u8> {block}"), &["a"]);
        check(&format!("let a: &dyn Fn(u8) = &|b: A<C>| {block}"), &["a"]);
        check(&format!("let a = |(b, c): (u8, u8)| {block}\nlet d = || {block}"), &["a", "d"]);
        assert_eq!(long(&format!("\"\n\"; let a = |b| {block}")), [(2, "a")]);
    }

    #[test]
    fn short_closures_arguments_and_words_of_a_text_are_none() {
        let block = "{\n1;\n2;\n3\n}";
        check(&format!("let a = |b| {block};\nlet a = |b| b + 1;\n\n\n\n\n"), &[]);
        check("let a = b.map(|c| {\n1;\n2;\n3;\n4\n});", &[]);
        check("let a = |b| A {\n1,\n2,\n3\n};\nlet a = {\n1;\n2;\n3;\n4\n};", &[]);
        check("\"let a = |b| {\n1;\n2;\n3;\n4\n};\" // let a = |b| {", &[]);
    }
}
