//! What the measuring side says of itself.

use std::fmt::Write as _;

use dnslab_analysis::self_check::{VariantSelfCheck, Verdict};

use super::html::prose;
use crate::words::Remark;

pub(crate) fn verdict_html(verdict: Verdict) -> String {
    format!("<span class=\"verdict {0}\">{0}</span>", verdict.word())
}

/// For the figure that a self-check qualifies: its verdict as a link to the findings, unless it is
/// clean.
pub(crate) fn verdict_link(check: &VariantSelfCheck) -> String {
    match check.verdict() {
        None | Some(Verdict::Clean) => String::new(),
        Some(verdict) => {
            format!("<small><a href=\"#self-check\">{}</a></small>", verdict_html(verdict))
        }
    }
}

/// A finding: what and how much, then the remedy set apart. `runs` says in which runs, if not in
/// all.
pub(crate) fn finding_html(finding: &Remark, runs: &str) -> String {
    let mut html = format!("<b>{}</b>", prose(&finding.what));
    let asides = [finding.figure.as_str(), runs];
    let asides: Vec<_> = asides.iter().filter(|aside| !aside.is_empty()).collect();
    if !asides.is_empty() {
        let asides: Vec<_> = asides.iter().map(|aside| prose(aside)).collect();
        let _ = write!(html, " ({})", asides.join("; "));
    }
    html.push('.');
    if !finding.remedy.is_empty() {
        let _ = write!(html, " <em>{}.</em>", prose(&finding.remedy));
    }
    html
}
