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
    /// Measured, but a run is invalid or failed, a limit cannot be judged, answers that differ could not be
    /// asked again, no rate or window met the objective, or the calibration failed.
    Invalid,
    /// A limit is exceeded for certain.
    OverLimit,
    /// Answers were compared, and some questions are answered differently whenever they are asked.
    AnswersDiffer,
    /// Interrupted; what was measured is on disk and reported.
    Interrupted,
}

/// For `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
    0  done, and every run counts
    1  it could not be done: a server, the disk, a permission
    2  bad input: arguments, experiment file, query file
    3  measured, but a run is invalid or failed, a limit cannot be judged, differing answers
       could not be asked again, nothing met the objective, or the calibration failed
    4  a limit is exceeded for certain
    5  answers were compared, and some differ again whenever they are asked
  130  interrupted; what was measured is on disk and reported";

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
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    /// Any other error means that it could not be done.
    fn from(error: E) -> Self {
        Self { exit: Exit::Impossible, error: error.into() }
    }
}
