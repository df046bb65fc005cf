//! The exit codes that follow from limits and from compared answers.

use dnslab_analysis::{Ruling, Summary};
use dnslab_record::AnswerComparison;

use crate::exit::Exit;

/// The exit code of compared answers. What did not differ each time that it was asked is no fault of anybody.
pub(crate) fn exit_of_answers(summary: &Summary) -> Exit {
    let answers = &summary.answers;
    let is_open = |answers: &AnswerComparison| answers.compared == 0 || answers.not_asked() > 0;
    match answers.iter().any(|answer| answer.again() > 0) {
        true => Exit::AnswersDiffer,
        false if answers.iter().any(is_open) => Exit::Invalid,
        false => Exit::Fine,
    }
}

/// The exit code of limits.
pub(crate) fn exit(ruling: Option<Ruling>) -> Exit {
    match ruling {
        None | Some(Ruling::Pass) => Exit::Fine,
        Some(Ruling::Unclear) => Exit::Invalid,
        Some(Ruling::Fail) => Exit::OverLimit,
    }
}
