//! Text into HTML.

use std::borrow::Cow;

use dnslab_record::visible_lines;

/// Escapes text for an element's content or a quoted attribute, and keeps numbers and their units
/// on one line. Characters that act on the text around them are shown instead.
pub(crate) fn escape(text: &str) -> String {
    let text = visible_lines(text);
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped.replace(" %", "\u{a0}%")
}

/// A [`table`] that a narrow screen moves sideways.
pub(super) fn wide_table(
    label: &str,
    class: &str,
    header: &[impl AsRef<str>],
    rows: &[impl AsRef<[String]>],
) -> String {
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n{}</div>\n",
        escape(label),
        table(class, header, rows)
    )
}

/// A table of this class. The first cell of a row is its heading.
pub(super) fn table(
    class: &str,
    header: &[impl AsRef<str>],
    rows: &[impl AsRef<[String]>],
) -> String {
    let headings: String = header
        .iter()
        .map(|title| format!("<th scope=\"col\">{}</th>", escape(title.as_ref())))
        .collect();
    let mut html =
        format!("<table class=\"{class}\">\n<thead><tr>{headings}</tr></thead>\n<tbody>\n");
    for row in rows {
        for (place, cell) in row.as_ref().iter().enumerate() {
            let cell = escape(cell);
            html += &match place {
                0 => format!("<tr><th scope=\"row\">{cell}</th>"),
                _ => format!("<td>{cell}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody>\n</table>\n"
}

/// Escapes a sentence and sets `quoted` words in it as code.
pub(crate) fn prose(text: &str) -> String {
    let pieces: Vec<String> = escape(text).split('`').map(str::to_owned).collect();
    if pieces.len().is_multiple_of(2) {
        // A quote that is not closed: leave the text alone.
        return pieces.join("`");
    }
    let pieces = pieces.into_iter().enumerate().map(|(place, piece)| match place % 2 {
        0 => piece,
        _ => format!("<code>{piece}</code>"),
    });
    pieces.collect()
}

/// JSON for the content of a `<script type="application/json">`: no `<` is left that could end the
/// element or open a comment in it. Characters that act on the text around them are shown instead: the
/// script draws what it reads.
pub(crate) fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() + 8);
    let mut characters = json.chars();
    while let Some(character) = characters.next() {
        match (character, characters.as_str().chars().next()) {
            ('<', _) => escaped.push_str("\\u003c"),
            // The writer of the JSON has this form for control characters alone.
            ('\\', Some('u')) => escaped.push_str("\\\\"),
            ('\\', Some(next)) => {
                escaped.extend(['\\', next]);
                characters.next();
            }
            _ => match visible_lines(character.encode_utf8(&mut [0; 4])) {
                Cow::Borrowed(_) => escaped.push(character),
                Cow::Owned(shown) => {
                    escaped.push('\\');
                    escaped.push_str(&shown);
                }
            },
        }
    }
    escaped
}

/// A `<dl>` of name and value; pairs with an empty value are left out.
pub(crate) fn definitions<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut html = String::from("<dl>\n");
    for (name, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()) {
        html.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(&value)));
    }
    html.push_str("</dl>\n");
    html
}

pub(crate) fn collapsed_text(summary: &str, text: &str) -> String {
    // No typographic changes inside: a configuration is shown as it is.
    let text = visible_lines(text).replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<details><summary>{}</summary><pre tabindex=\"0\">{text}</pre></details>\n",
        escape(summary)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_element() {
        assert_eq!(escape("</b> & \"'"), "&lt;/b&gt; &amp; &quot;&#39;");
        assert_eq!(escape_json(r#"{"a":"</script><!--"}"#), r#"{"a":"\u003c/script>\u003c!--"}"#);
        assert_eq!(prose("a `b<` c"), "a <code>b&lt;</code> c");
        assert_eq!(prose("a ` c"), "a ` c");
        assert!(!collapsed_text("<i>", "</pre>").contains("</pre></pre>"));
    }

    #[test]
    fn what_acts_on_text_is_shown() {
        assert_eq!(escape("a\u{202e}b\u{9b}\u{7f}\nc"), "a\\u{202e}b\\u{9b}\\u{7f}\nc");
        assert!(collapsed_text("log", "\u{1b}[2J\n\tx").contains(">\\u{1b}[2J\n\tx<"));
        let text = "\u{1b}\u{9b}\u{202e}\\u\n\"µ<\\";
        let json = escape_json(&serde_json::to_string(text).unwrap());
        let read: String = serde_json::from_str(&json).unwrap();
        assert_eq!(read, "\\u001b\\u{9b}\\u{202e}\\u\n\"µ<\\");
    }
}
