//! Notes on the figures: each doubt once, with its variants.

use std::fmt::Write as _;

use dnslab_analysis::self_check::Verdict;
use dnslab_analysis::{Summary, VariantSummary};
use dnslab_record::{Finding, Session};

use super::html::{escape, prose};
use super::self_check::verdict_html;
use crate::table::{in_runs, note_texts};
use crate::variants::listed;
use crate::words::caveat::words;
use crate::words::{Amount, Remark, amounts, self_check};

#[derive(Debug, PartialEq)]
struct Note {
    /// What is to be said, a sentence without its full stop.
    what: String,
    /// What can be done, a sentence without its full stop; empty if nothing.
    remedy: String,
    /// How much of it, for each variant that has it.
    amounts: Vec<Amount>,
}

/// A doubt about one variant.
struct Doubt {
    remark: Remark,
    /// As [`Amount::size`].
    size: f64,
}

/// The notes of all variants, and what was not measured; nothing if there is nothing to say.
pub(crate) fn section(session: &Session, summary: &Summary) -> String {
    let notes =
        merged(summary.variants.iter().map(|variant| (variant.name.as_str(), doubts(variant))));
    let checked: Vec<&VariantSummary> =
        summary.variants.iter().filter(|variant| variant.self_check.runs() > 0).collect();
    if notes.is_empty() && checked.is_empty() && session.skipped.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section id=\"self-check\">\n<h2>Notes</h2>\n");
    if !checked.is_empty() {
        html.push_str(&verdicts(&checked));
    }
    html.push_str("<ul class=\"notes\">\n");
    let measured = summary.variants.iter().filter(|variant| variant.skipped.is_none()).count();
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
    let with_verdict = |verdict: Verdict| -> Vec<&str> {
        let own = variants.iter().filter(|variant| variant.self_check.verdict() == Some(verdict));
        own.map(|variant| variant.name.as_str()).collect()
    };
    let mut parts = Vec::new();
    for verdict in [Verdict::Clean, Verdict::Doubtful, Verdict::GeneratorLimited] {
        let names = with_verdict(verdict);
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
fn doubts(variant: &VariantSummary) -> Vec<Doubt> {
    let runs = variant.self_check.runs();
    let doubt = |remark: Remark, runs: String, size: f64| {
        let asides = [remark.figure, runs.trim().to_owned()];
        let asides: Vec<String> = asides.into_iter().filter(|aside| !aside.is_empty()).collect();
        Doubt { remark: Remark { figure: asides.join("; "), ..remark }, size }
    };
    let size = |finding: &Finding| match finding {
        Finding::Caveat { caveat, .. } => caveat.severity(),
        _ => 0.0,
    };
    let findings = variant.self_check.findings.iter();
    let found = findings.map(|found| {
        let remark = self_check::remark(&found.finding);
        doubt(remark, in_runs(found.runs, runs), size(&found.finding))
    });
    let caveats = variant.caveats.iter().filter(|caveat| !caveat.worst.is_of_measuring_side());
    let caveats = caveats.map(|caveat| {
        let runs = in_runs(caveat.runs, variant.valid_runs);
        doubt(words(&caveat.worst).full, runs, caveat.worst.severity())
    });
    let texts = note_texts(variant)
        .into_iter()
        .map(|text| Doubt { remark: Remark::new(text.trim_end_matches('.'), "", ""), size: 0.0 });
    texts.chain(found).chain(caveats).collect()
}

/// Each doubt once, in the order in which they are met.
fn merged<'a>(variants: impl Iterator<Item = (&'a str, Vec<Doubt>)>) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for (name, doubts) in variants {
        for Doubt { remark: Remark { what, figure, remedy }, size } in doubts {
            let amount = Amount { variant: name.to_owned(), figure, size };
            match notes.iter_mut().find(|note| note.what == what && note.remedy == remedy) {
                Some(note) if note.amounts.last().is_some_and(|last| last.variant == name) => {}
                Some(note) => note.amounts.push(amount),
                None => notes.push(Note { what, remedy, amounts: vec![amount] }),
            }
        }
    }
    notes
}

/// A note: who, what, how much, then the remedy set apart.
fn note_html(note: &Note, measured: usize) -> String {
    let names: Vec<&str> = note.amounts.iter().map(|amount| amount.variant.as_str()).collect();
    let who = match names.len() == measured && measured > 1 {
        true => "all variants".to_owned(),
        false => listed(&names),
    };
    let figures = match amounts(&note.amounts).as_str() {
        "" => String::new(),
        figures => format!(" ({})", prose(figures)),
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

    /// A doubt whose figure is in percent.
    fn doubt(what: &str, figure: &str) -> Doubt {
        let size = figure.split(' ').next().and_then(|number| number.parse().ok());
        Doubt { remark: Remark::new(what, figure, "Wait"), size: size.unwrap_or(0.0) }
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
            "<b>udp and tcp:</b> Time was stolen (udp: 3\u{a0}% / tcp: 5\u{a0}%). <em>Wait.</em>"
        );
        assert_eq!(note_html(&notes[1], 3), "<b>udp and dot:</b> Slow. <em>Wait.</em>");
        assert_eq!(note_html(&notes[1], 2), "<b>all variants:</b> Slow. <em>Wait.</em>");
    }

    /// The note of variants a to e with these figures.
    fn html(figures: [&str; 5]) -> String {
        let names = ["a", "b", "c", "d", "e"];
        let all = names.iter().zip(figures);
        let [note] = merged(all.map(|(name, figure)| (*name, vec![doubt("Stolen", figure)])))
            .try_into()
            .unwrap();
        note_html(&note, 9)
    }

    #[test]
    fn many_figures_of_one_note_are_not_listed() {
        let range = html(["14 %", "60 %", "3 %", "4 %", "4 %"]);
        assert!(range.contains("(least in c: 3\u{a0}%; most in b: 60\u{a0}%)"), "{range}");
        let few = html(["3 %", "5 %", "3 %", "5 %", "3 %"]);
        assert!(few.contains("(a, c and e: 3\u{a0}% / b and d: 5\u{a0}%)"), "{few}");
        let alike = html(["3 %"; 5]);
        assert!(alike.contains("Stolen (3\u{a0}%)."), "{alike}");
        // Some have no figure: the figure is not theirs.
        let some = html(["", "3 %", "", "", ""]);
        assert!(some.contains("(b: 3\u{a0}%)"), "{some}");
    }
}
