//! What the limits of `--limit` say, and which exit code follows.

use dnslab_measure::{Ruling, Summary};
use dnslab_report::ruling_text;

use crate::arguments::Output;
use crate::exit::Exit;

/// Says in one line for each limit whether it is kept; the ruling over all, `None` without a limit.
pub(crate) fn judge(summary: &Summary, output: Output) -> Option<Ruling> {
    let told = if output.json { &[] } else { summary.rulings.as_slice() };
    for ruling in told {
        say!("{}", ruling_text(ruling, &summary.baseline));
    }
    summary.ruling()
}

/// The exit code where every run counts.
pub(crate) fn exit(ruling: Option<Ruling>) -> Exit {
    match ruling {
        None | Some(Ruling::Pass) => Exit::Fine,
        Some(Ruling::Unclear) => Exit::Invalid,
        Some(Ruling::Fail) => Exit::OverLimit,
    }
}
