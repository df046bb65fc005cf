//! What the limits of `--limit` say, and which exit code follows.

use dnslab_measure::{Ruling, Summary};
use dnslab_report::{gate_text, ruling_text};

use crate::arguments::Output;
use crate::exit::Exit;

/// Says in one line for each limit whether it is kept, and last what follows for all of them; the ruling
/// over all, `None` without a limit.
pub(crate) fn judge(summary: &Summary, output: Output) -> Option<Ruling> {
    if !output.json {
        lines(summary).iter().for_each(|line| say!("{line}"));
    }
    summary.ruling()
}

/// These lines.
pub(crate) fn lines(summary: &Summary) -> Vec<String> {
    let rulings = summary.rulings.iter();
    let mut lines: Vec<String> =
        rulings.map(|ruling| ruling_text(ruling, &summary.baseline)).collect();
    // Of one limit, and where all runs count, it is the same.
    lines.extend(gate_text(summary).filter(|all| !lines.contains(all)));
    lines
}

/// The exit code where every run counts.
pub(crate) fn exit(ruling: Option<Ruling>) -> Exit {
    match ruling {
        None | Some(Ruling::Pass) => Exit::Fine,
        Some(Ruling::Unclear) => Exit::Invalid,
        Some(Ruling::Fail) => Exit::OverLimit,
    }
}
