//! What a server is told to do to its answers, as text: delay, loss, stalls. `dnslab serve` does it, and an
//! experiment that asks for it is checked by the same readers.

mod delay;
mod duration;
mod loss;
mod stall;

pub use delay::Delay;
pub use loss::Loss;
pub use stall::Stall;

/// Part of a program is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{culprit}: {reason}")]
pub struct ProgramError {
    /// The text at fault, with what it was meant to be.
    pub culprit: String,
    /// What would be right.
    pub reason: &'static str,
}

impl ProgramError {
    /// An error about `text`, which was to be a `what`.
    fn new(what: &str, text: &str, reason: &'static str) -> Self {
        Self { culprit: format!("{what} `{text}`"), reason }
    }
}
