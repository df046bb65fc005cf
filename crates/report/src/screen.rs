//! The first screen: what a person at a terminal reads after an experiment.
//!
//! The answer comes first, in one sentence. Then the conditions, once; one row for each variant, the
//! reference with its figures and the others with their differences; what to make of them; and at most
//! three notes. Everything else is on the page.

mod capacity;
pub(crate) mod cell;
pub(crate) mod conditions;
mod history;
mod line;
pub(crate) mod notes;
mod pooled;
mod rows;
mod session_comparison;
mod trust;

use dnslab_analysis::Summary;
use dnslab_record::{RunRecord, Session};

use crate::answer::controls;
use crate::gate::{overall_text, ruling_texts};
use crate::needs::headline;
use crate::pods;
use crate::words::cpu::cpu_texts;
pub use capacity::capacity_screen;
pub use history::history_screen;
pub use line::{Line, Look, Piece, Terminal};
use line::{MAX_LINES, Room, WIDEST, push_notes, wrapped};
pub(crate) use notes::Note;
pub use pooled::pooled_screen;
pub use session_comparison::session_comparison_screen;

/// So many variants fit.
const FEW: usize = 6;
/// Pairs of variants of which it is told where their CPU time goes.
const MAX_PAIRS: usize = 2;

/// The first screen of an experiment, for a terminal, Markdown or the page.
pub(crate) struct Parts {
    /// What all limits say together; `None` without a limit.
    pub(crate) overall: Option<String>,
    /// What each limit says.
    pub(crate) rulings: Vec<String>,
    pub(crate) answer: String,
    pub(crate) conditions: String,
    /// Where the CPU time goes that variants cost more or less, a sentence for each; none unless servers were to be
    /// sampled.
    pub(crate) cpu: Vec<String>,
    /// How queries were spread over the pods of a Service; `None` without one.
    pub(crate) pods: Option<String>,
    /// A heading and a row for each variant, as many columns as have room.
    pub(crate) table: Vec<Vec<Piece>>,
    /// Which variants do the same as what they are compared with.
    controls: String,
    pub(crate) trust: String,
    /// What to know besides, the gravest first.
    pub(crate) notes: Vec<Note>,
}

impl Parts {
    /// Of an experiment, with a table of at most `width` columns of text.
    pub(crate) fn of(
        session: &Session,
        records: &[RunRecord],
        summary: &Summary,
        width: usize,
    ) -> Self {
        let table = rows::table(summary, width);
        Self {
            overall: overall_text(summary),
            rulings: ruling_texts(summary),
            answer: headline(summary, records),
            conditions: conditions::conditions(session, records),
            cpu: summary.cpu.as_ref().map(cpu_texts).unwrap_or_default(),
            pods: pods::sentence(summary),
            table,
            controls: controls(summary),
            trust: trust::trust(records, summary),
            notes: notes::notes(session, summary, records),
        }
    }
}

/// The screen of an experiment, at most `width` columns wide where its names allow that, and 100 in
/// any case.
#[must_use]
pub fn screen(
    session: &Session,
    records: &[RunRecord],
    summary: &Summary,
    terminal: Terminal,
) -> Vec<Line> {
    let width = terminal.width.clamp(40, WIDEST);
    let parts = Parts::of(session, records, summary, width);
    let most = MAX_LINES + summary.variants.len().saturating_sub(FEW);
    let room = Room { width, lines: most.saturating_sub(terminal.following) };
    let lines = |density| parts.lines(density, room);
    let fitting = Density::ALL.into_iter().map(lines).find(|lines| lines.len() <= room.lines);
    fitting.unwrap_or_else(|| lines(Density::Barest))
}

/// How much is left away where a screen has too many lines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Density {
    /// Nothing.
    Airy,
    /// The blank lines.
    Close,
    /// Also what the first note adds to what it says.
    Short,
    /// Also words of the legend.
    Dense,
    /// Also the last sentence of an answer that has several: the first ones are the certain ones.
    Bare,
    /// Also the sentence before it.
    Barest,
}

impl Density {
    /// All of them, from that which leaves nothing away on.
    const ALL: [Self; 6] =
        [Self::Airy, Self::Close, Self::Short, Self::Dense, Self::Bare, Self::Barest];
}

impl Parts {
    /// What the signs in the table mean; `is_short` in few words.
    pub(crate) fn legend(&self, is_short: bool) -> Option<String> {
        rows::legend(&self.table, &self.controls, is_short)
    }

    /// The parts in lines, with as many notes as there is room for.
    fn lines(&self, density: Density, room: Room) -> Vec<Line> {
        let width = room.width;
        let blank = || (density == Density::Airy).then(Line::new);
        let mut answer = self.answer.clone();
        for _ in Density::Dense as u8..density as u8 {
            answer = without_last_sentence(answer);
        }
        let mut lines = Vec::new();
        if let Some(overall) = &self.overall {
            lines.extend(wrapped(overall, Look::Strong, 0, width));
            let rulings = self.rulings.iter();
            lines.extend(rulings.flat_map(|text| wrapped(text, Look::Plain, 2, width)));
            lines.extend(blank());
        }
        lines.extend(wrapped(&answer, Look::Strong, 0, width));
        lines.extend(wrapped(&self.conditions, Look::Dim, 0, width));
        for cpu in self.cpu.iter().take(MAX_PAIRS) {
            lines.extend(wrapped(cpu, Look::Strong, 0, width));
        }
        if let Some(more) = self.cpu.len().checked_sub(MAX_PAIRS).filter(|more| *more > 0) {
            let text = format!("Where the CPU time of {more} more goes is in the report.");
            lines.extend(wrapped(&text, Look::Dim, 0, width));
        }
        if let Some(pods) = &self.pods {
            lines.extend(wrapped(pods, Look::Plain, 0, width));
        }
        lines.extend(blank());
        lines.extend(rows::laid_out(&self.table));
        if let Some(legend) = self.legend(density >= Density::Dense) {
            let legend = wrapped(&legend, Look::Dim, 0, width.saturating_sub(2));
            let indent = || vec![Piece::new(Look::Plain, "  ")];
            lines.extend(legend.into_iter().map(|line| [indent(), line].concat()));
        }
        lines.extend(blank());
        lines.extend(wrapped(&self.trust, Look::Plain, 0, width));
        push_notes(&mut lines, &self.notes, density >= Density::Short, room);
        lines
    }
}

/// An answer of several sentences without the last one.
fn without_last_sentence(answer: String) -> String {
    match answer.trim_end_matches('.').rsplit_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => answer,
    }
}
