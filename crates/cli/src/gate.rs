//! The verdicts on `--limit`, and the exit code that follows.

use dnslab_measure::{AnswerComparison, Ruling, Summary};
use dnslab_report::{gate_text, ruling_text};

use crate::arguments::Output;
use crate::exit::Exit;

/// Prints a line for each limit and a last one for all. Returns the ruling over all limits, `None` without
/// one.
pub(crate) fn judge(summary: &Summary, output: Output) -> Option<Ruling> {
    if output.json.is_none() {
        lines(summary).iter().for_each(|line| say!("{line}"));
    }
    summary.ruling()
}

pub(crate) fn lines(summary: &Summary) -> Vec<String> {
    let rulings = summary.rulings.iter();
    let mut lines: Vec<String> =
        rulings.map(|ruling| ruling_text(ruling, &summary.baseline)).collect();
    // It is the same line if there is one limit and all runs count.
    lines.extend(gate_text(summary).filter(|all| !lines.contains(all)));
    lines
}

/// The exit code of compared answers. What did not differ each time that it was asked is no fault of anybody.
pub(crate) fn exit_of_answers(summary: &Summary) -> Exit {
    let answers = &summary.answers;
    let is_open = |it: &AnswerComparison| it.compared == 0 || it.not_asked() > 0;
    match answers.iter().any(|it| it.again() > 0) {
        true => Exit::AnswersDiffer,
        false if answers.iter().any(is_open) => Exit::Invalid,
        false => Exit::Fine,
    }
}

/// The exit code if every run counts.
pub(crate) fn exit(ruling: Option<Ruling>) -> Exit {
    match ruling {
        None | Some(Ruling::Pass) => Exit::Fine,
        Some(Ruling::Unclear) => Exit::Invalid,
        Some(Ruling::Fail) => Exit::OverLimit,
    }
}
