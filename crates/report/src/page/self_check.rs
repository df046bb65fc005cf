//! What the measuring side says of itself.

use std::fmt::Write as _;

use dnslab_measure::Summary;
use dnslab_measure::self_check::{Finding, VariantSelfCheck, Verdict};

use super::figures::colour_class;
use super::html::{escape, prose};
use crate::number::NONE;
use crate::table::in_runs;

/// The verdict and the findings of each variant.
pub(crate) fn section(summary: &Summary) -> String {
    if summary.variants.iter().all(|variant| variant.self_check.runs() == 0) {
        return String::new();
    }
    let mut html = String::from(
        "<section id=\"self-check\">\n<h2>Self-check</h2>\n\
         <p class=\"hint\">What the measuring side says of itself: the load generator, its machine, \
         and the way to the server. Clean: it did what it was asked to. Doubtful: something there \
         may have moved the figures. Generator-limited: the rates are the generator&#39;s, and the \
         server may do more.</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Self-check\">\n\
         <table class=\"checks\">\n<thead><tr><th scope=\"col\">variant</th>\
         <th scope=\"col\">verdict</th><th scope=\"col\">found</th></tr></thead>\n<tbody>\n",
    );
    for (place, variant) in summary.variants.iter().enumerate() {
        let check = &variant.self_check;
        let verdict = check.verdict().map_or_else(
            || NONE.to_owned(),
            |verdict| {
                let runs = in_runs(check.runs_with(verdict), check.runs());
                format!("{}<small>{}</small>", verdict_html(verdict), escape(runs.trim()))
            },
        );
        let found = check.findings.iter().map(|found| {
            let runs = in_runs(found.runs, check.runs());
            format!("<li>{}</li>", finding_html(&found.finding, runs.trim()))
        });
        let found: String = found.collect();
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\"><i class=\"key {}\"></i>{}</th><td>{verdict}</td>\
             <td><ul>{found}</ul></td></tr>",
            colour_class(place),
            escape(&variant.name)
        );
    }
    html.push_str("</tbody>\n</table>\n</div>\n</section>\n");
    html
}

/// A verdict in its colour.
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
pub(crate) fn finding_html(finding: &Finding, runs: &str) -> String {
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
