//! The frame of each page.

use super::html::escape;

pub(super) const STYLE: &str = include_str!("../../page/dist/page.css");
const STYLE_HASH: &str = include_str!("../../page/dist/page.css.sha256");

pub(super) fn shell(title: &str, script_source: &str, body: &str) -> String {
    let (title, style_hash) = (escape(title), STYLE_HASH.trim());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src {script_source}; style-src '{style_hash}'; img-src data:; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         {body}</body>\n</html>\n"
    )
}
