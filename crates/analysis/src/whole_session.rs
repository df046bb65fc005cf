//! A session with all that it left.

use dnslab_record::{RunRecord, Session};

/// All that a results directory has of a session.
#[derive(Clone, Copy, Debug)]
pub struct WholeSession<'a> {
    /// What was known before the first run.
    pub session: &'a Session,
    /// All runs that have ended.
    pub records: &'a [RunRecord],
    /// The experiment as it ran, TOML; empty if it is not known.
    pub experiment: &'a str,
}

impl<'a> WholeSession<'a> {
    /// The runs of a variant that count.
    pub(crate) fn valid_runs(&self, name: &str) -> impl Iterator<Item = &'a RunRecord> + Clone {
        let records = self.records.iter();
        records.filter(move |record| record.variant == name && record.is_valid())
    }

    /// Kind and version of each server under test whose runs count, each once.
    #[must_use]
    pub fn servers(&self) -> Vec<[String; 2]> {
        let mut servers: Vec<[String; 2]> = Vec::new();
        for record in self.records.iter().filter(|record| record.is_valid()) {
            let server = [record.server.kind.clone(), record.server.version.clone()];
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        servers
    }
}
