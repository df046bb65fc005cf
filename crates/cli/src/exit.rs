//! The exit codes, in one place.

use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, and every run counts.
    Fine,
    /// It could not be done: a server, the disk, a permission.
    Impossible,
    /// The arguments, the experiment file or the query file are wrong.
    BadInput,
    /// Measured, but a run is invalid or failed, a limit given with `--limit` cannot be judged, answers
    /// that differ could not be asked again, no rate or window met the objective, or the calibration
    /// failed.
    Invalid,
    /// A limit given with `--limit` is exceeded for certain.
    OverLimit,
    /// Answers were compared, and some questions are answered differently whenever they are asked.
    AnswersDiffer,
    /// Interrupted; what was measured is on disk and reported.
    Interrupted,
    /// A gate (`compare`, `run --against`): certainly worse than a limit.
    Worse,
    /// A gate: neither within the limits nor worse for certain.
    CannotTell,
    /// A gate: there is no verdict, whatever the reason.
    NoVerdict,
}

/// For `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
    0  done, and every run counts
    1  it could not be done: a server, the disk, a permission
    2  bad input: arguments, experiment file, query file
    3  measured, but a run is invalid or failed, a limit cannot be judged, differing answers
       could not be asked again, nothing met the objective, or the calibration failed
    4  a limit given with --limit is exceeded for certain
    5  answers were compared, and some differ again whenever they are asked
  130  interrupted; what was measured is on disk and reported
Exit codes of a gate, which are `compare` and `run --against`:
    0  within all limits
    1  certainly worse than a limit
    2  it cannot be told: more runs are needed, or a run does not count
    3  there is no verdict: bad input, other machines, or it could not be done";

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Impossible => 1,
            Self::BadInput => 2,
            Self::Invalid => 3,
            Self::OverLimit => 4,
            Self::AnswersDiffer => 5,
            // 128 + SIGINT, as in shells.
            Self::Interrupted => 130,
            Self::Worse => 1,
            Self::CannotTell => 2,
            Self::NoVerdict => 3,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
}

impl Failure {
    pub(crate) fn bad_input(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::BadInput, error: error.into() }
    }

    /// The error of a command whose other codes are verdicts.
    pub(crate) fn without_verdict(self) -> Self {
        Self { exit: Exit::NoVerdict, ..self }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    /// Any other error means that it could not be done.
    fn from(error: E) -> Self {
        Self { exit: Exit::Impossible, error: error.into() }
    }
}
