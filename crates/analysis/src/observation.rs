//! What a run was, as every rule looks at it.

use dnslab_record::{ChainPart, LoadFacts, Measured, RunRecord, ServerFacts};

/// One load of a run and what was seen of it: the one argument of every rule.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The load as it was applied.
    pub load: &'a LoadFacts,
    /// The server under test.
    pub server: &'a ServerFacts,
    /// The servers behind it, which are most often none.
    pub chain: &'a [ChainPart],
    /// What was measured.
    pub measured: &'a Measured,
}

impl<'a> Observation<'a> {
    /// The main load of a run; `None` if nothing was measured.
    #[must_use]
    pub fn of(record: &'a RunRecord) -> Option<Self> {
        let measured = record.measured.as_ref()?;
        Some(Self { load: &record.load, server: &record.server, chain: &record.chain, measured })
    }
}
