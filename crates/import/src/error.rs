//! Why the output of another tool cannot be imported.

use dnslab_record::visible;

/// Why a file is not imported. All but the first name a line, from 1.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ImportError {
    /// It is the output of something else.
    #[error("no run of dnsperf is in it")]
    NoRun,
    /// Another tool of the same authors printed it.
    #[error(
        "line {line}: this is the output of {tool}, which is not read: dnslab imports that of dnsperf"
    )]
    OtherTool {
        /// Where it says so.
        line: usize,
        /// Its name.
        tool: &'static str,
    },
    /// The last line has no line break, so it may be cut.
    #[error("line {line} has no line break at its end, so the file may be cut there")]
    NoLineBreak {
        /// The last one.
        line: usize,
    },
    /// A run has no statistics.
    #[error(
        "the run that begins in line {line} has no statistics: it was killed, or the file is cut"
    )]
    NoStatistics {
        /// Where the run begins.
        line: usize,
    },
    /// Statistics lack a figure.
    #[error("the statistics that begin in line {line} are cut: `{missing}` is missing")]
    Cut {
        /// Where the statistics begin.
        line: usize,
        /// What they lack.
        missing: &'static str,
    },
    /// A figure cannot be read.
    #[error("line {line}: `{}` cannot be read as `{key}`", visible(found))]
    Value {
        /// Where it stands.
        line: usize,
        /// Its name.
        key: &'static str,
        /// What stands there.
        found: String,
    },
    /// Statistics contradict themselves.
    #[error(
        "the statistics that begin in line {line} do not add up: {what} are {parts}, not {whole}"
    )]
    Unbalanced {
        /// Where the statistics begin.
        line: usize,
        /// Which parts.
        what: &'static str,
        /// Their sum.
        parts: u64,
        /// What it must be.
        whole: u64,
    },
    /// The rate is not that of the answers and the time.
    #[error(
        "the statistics that begin in line {line} do not add up: {answers} answers in {seconds} s are {rate:.0} a second, \
         not {printed:.0}"
    )]
    Rate {
        /// Where the statistics begin.
        line: usize,
        /// How many there are.
        answers: u64,
        /// The run time.
        seconds: f64,
        /// What follows, a second.
        rate: f64,
        /// What stands there, a second.
        printed: f64,
    },
    /// It is no JSON, or cut.
    #[error("line {line}: {what}")]
    Json {
        /// Where it is damaged.
        line: usize,
        /// What is wrong, in the words of the parser.
        what: String,
    },
    /// A run is longer, or has more answers, than any.
    #[error(
        "the run that begins in line {line} is longer than 100 days, or has more answers than can be"
    )]
    TooMuch {
        /// Where the run begins.
        line: usize,
    },
    /// There are more runs or intervals than are read.
    #[error("{found} {what} are in it; dnslab reads up to {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// The bound.
        most: usize,
    },
}
