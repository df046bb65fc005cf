//! Notes on the figures: each doubt once, with its variants.

use std::fmt::Write as _;

use dnslab_measure::self_check::Verdict;
use dnslab_measure::{Session, Summary, VariantSummary};

use super::html::{escape, prose};
use super::self_check::verdict_html;
use crate::number;
use crate::table::{in_runs, note_texts};
use crate::variants::listed;
use crate::words::{Remark, caveat, self_check};

#[derive(Debug, PartialEq, Eq)]
struct Note {
    /// What is to be said, a sentence without its full stop.
    what: String,
    /// How much of it, for each variant in the order of [`Note::variants`]; empty where there is no
    /// figure.
    figures: Vec<String>,
    /// What can be done, a sentence without its full stop; empty if nothing.
    remedy: String,
    variants: Vec<String>,
}

/// The notes of all variants, and what was not measured; nothing if there is nothing to say.
pub(crate) fn section(session: &Session, summary: &Summary) -> String {
    let notes = merged(summary.variants.iter().map(|of| (of.name.as_str(), doubts(of))));
    let checked: Vec<&VariantSummary> =
        summary.variants.iter().filter(|of| of.self_check.runs() > 0).collect();
    if notes.is_empty() && checked.is_empty() && session.skipped.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section id=\"self-check\">\n<h2>Notes</h2>\n");
    if !checked.is_empty() {
        html.push_str(&verdicts(&checked));
    }
    html.push_str("<ul class=\"notes\">\n");
    let measured = summary.variants.iter().filter(|of| of.skipped.is_none()).count();
    for note in &notes {
        let _ = writeln!(html, "<li>{}</li>", note_html(note, measured));
    }
    html.push_str("</ul>\n");
    html.push_str(&skipped(session));
    html.push_str("</section>\n");
    html
}

/// What the load generator, its machine and the way to the server did, in one line.
fn verdicts(variants: &[&VariantSummary]) -> String {
    let of = |verdict: Verdict| -> Vec<&str> {
        let own = variants.iter().filter(|of| of.self_check.verdict() == Some(verdict));
        own.map(|of| of.name.as_str()).collect()
    };
    let mut parts = Vec::new();
    for verdict in [Verdict::Clean, Verdict::Doubtful, Verdict::GeneratorLimited] {
        let names = of(verdict);
        if names.is_empty() {
            continue;
        }
        let who = match names.len() == variants.len() {
            true => "all variants".to_owned(),
            false => listed(&names),
        };
        parts.push(format!("{} ({})", verdict_html(verdict), escape(&who)));
    }
    format!(
        "<p class=\"hint\">Self-check of load generator, machine and path: {}. Clean: it did what it \
         was asked to. Doubtful: something there may have moved the figures. Generator-limited: the \
         rates are the generator&#39;s, and the server may do more.</p>\n",
        parts.join("; ")
    )
}

/// The doubts about one variant: what the self-check found, then the others.
fn doubts(variant: &VariantSummary) -> Vec<Remark> {
    let runs = variant.self_check.runs();
    let doubt = |remark: Remark, runs: String| {
        let asides = [remark.figure, runs.trim().to_owned()];
        let asides: Vec<String> = asides.into_iter().filter(|aside| !aside.is_empty()).collect();
        Remark { figure: asides.join("; "), ..remark }
    };
    let findings = variant.self_check.findings.iter();
    let found =
        findings.map(|found| doubt(self_check::remark(&found.finding), in_runs(found.runs, runs)));
    let caveats = variant.caveats.iter().filter(|caveat| !caveat.worst.is_of_measuring_side());
    let caveats = caveats.map(|caveat| {
        doubt(caveat::remark(&caveat.worst), in_runs(caveat.runs, variant.valid_runs))
    });
    let texts =
        note_texts(variant).into_iter().map(|text| Remark::new(text.trim_end_matches('.'), "", ""));
    texts.chain(found).chain(caveats).collect()
}

/// Each doubt once, in the order in which they are met.
fn merged<'a>(variants: impl Iterator<Item = (&'a str, Vec<Remark>)>) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for (name, doubts) in variants {
        for Remark { what, figure, remedy } in doubts {
            match notes.iter_mut().find(|note| note.what == what && note.remedy == remedy) {
                Some(note) if note.variants.last().map(String::as_str) == Some(name) => {}
                Some(note) => {
                    note.variants.push(name.to_owned());
                    note.figures.push(figure);
                }
                None => notes.push(Note {
                    what,
                    figures: vec![figure],
                    remedy,
                    variants: vec![name.to_owned()],
                }),
            }
        }
    }
    notes
}

/// A note: who, what, how much, then the remedy set apart. Up to this many figures are written out; of
/// more the first and how many others.
fn note_html(note: &Note, measured: usize) -> String {
    const MAX_FIGURES: usize = 3;
    let names: Vec<&str> = note.variants.iter().map(String::as_str).collect();
    let who = match names.len() == measured && measured > 1 {
        true => "all variants".to_owned(),
        false => listed(&names),
    };
    let mut figures: Vec<&str> = Vec::new();
    for figure in note.figures.iter().map(String::as_str).filter(|figure| !figure.is_empty()) {
        if !figures.contains(&figure) {
            figures.push(figure);
        }
    }
    let figures = match figures.as_slice() {
        [] => String::new(),
        several if several.len() > MAX_FIGURES => format!(
            " ({}; alike for the {} others)",
            prose(several[0]),
            number::count(note.variants.len() as u64 - 1)
        ),
        few => format!(" ({})", few.iter().map(|of| prose(of)).collect::<Vec<_>>().join(" / ")),
    };
    let remedy = match note.remedy.as_str() {
        "" => String::new(),
        remedy => format!(" <em>{}.</em>", prose(remedy)),
    };
    format!("<b>{}:</b> {}{figures}.{remedy}", escape(&who), prose(&note.what))
}

fn skipped(session: &Session) -> String {
    if session.skipped.is_empty() {
        return String::new();
    }
    let mut html = String::from("<h3>Not measured</h3>\n<ul class=\"notes\" id=\"skipped\">\n");
    for skipped in &session.skipped {
        let _ = writeln!(
            html,
            "<li><b>{}:</b> {}</li>",
            escape(&skipped.variant),
            prose(&skipped.reason)
        );
    }
    html.push_str("</ul>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubt(what: &str, figure: &str) -> Remark {
        Remark::new(what, figure, "Wait")
    }

    #[test]
    fn a_note_stands_once_with_all_its_variants() {
        let all = [
            ("udp", vec![doubt("Time was stolen", "3 %"), doubt("Slow", "")]),
            ("tcp", vec![doubt("Time was stolen", "5 %")]),
            ("dot", vec![doubt("Slow", "")]),
        ];
        let notes = merged(all.into_iter());
        assert_eq!(notes.len(), 2);
        assert_eq!(
            note_html(&notes[0], 3),
            "<b>udp and tcp:</b> Time was stolen (3\u{a0}% / 5\u{a0}%). <em>Wait.</em>"
        );
        assert_eq!(note_html(&notes[1], 3), "<b>udp and dot:</b> Slow. <em>Wait.</em>");
        assert_eq!(note_html(&notes[1], 2), "<b>all variants:</b> Slow. <em>Wait.</em>");
    }

    #[test]
    fn many_figures_of_one_note_are_not_listed() {
        let names = ["a", "b", "c", "d", "e"];
        let figures = ["1 %", "2 %", "3 %", "4 %", "4 %"];
        let all = names.iter().zip(figures).map(|(name, of)| (*name, vec![doubt("Stolen", of)]));
        let [note] = merged(all).try_into().unwrap();
        let html = note_html(&note, 9);
        assert!(html.contains("(1\u{a0}%; alike for the 4 others)"), "{html}");
    }
}
