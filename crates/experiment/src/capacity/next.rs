//! What a search says comes next.

use dnslab_record::{End, Phase};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    Step {
        phase: Phase,
        /// Intended queries per second, or queries outstanding over all clients.
        at: f64,
    },
    Done(End),
}
