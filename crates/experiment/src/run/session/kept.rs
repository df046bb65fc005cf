//! The laboratory of a variant, left up for a user who wants to look around.

use std::sync::atomic::AtomicBool;

use dnslab_lab::hosts::NamedHosts;
use dnslab_record::CaseId;

use super::{Session, SessionError, seed_of};
use crate::run::case::{Case, Up};
use crate::run::split::Cpus;

/// Hosts and servers that are up until this is dropped.
pub struct KeptTestbed {
    // The names of the hosts go first.
    named: Option<NamedHosts>,
    up: Up,
    is_external: bool,
}

impl Session {
    /// Starts the hosts and servers of a variant as for a run, and leaves them up. Their state replaces what
    /// was in the folder `kept` of the results directory. `stop` gives up.
    ///
    /// # Errors
    /// When there is no such variant, or its servers cannot be started.
    pub fn keep(&self, variant: &str, stop: &AtomicBool) -> Result<KeptTestbed, SessionError> {
        let wrong = |reason: String| SessionError::Variant { variant: variant.to_owned(), reason };
        let names = || self.facts.variants.join(", ");
        let found = self.experiment.variant(variant);
        let found = found.ok_or_else(|| wrong(format!("there is none; there are {}", names())))?;
        let seed = seed_of(self.experiment.repeat.seed, 1);
        let queries = self.lists.borrow_mut().of(found, seed)?;
        let folder = self.results.begin_scratch("kept")?;
        let id = CaseId { variant: found.name.clone(), repetition: 1 };
        let case = Case {
            variant: found,
            id: &id,
            position: 0,
            seed,
            queries: &queries,
            folder: &folder,
            guard: &self.guard,
            agents: &self.agents,
            told: None,
            max_stacks: None,
        };
        let cpus = Cpus::of(found).map_err(|error| wrong(error.to_string()))?;
        let up = case.start(&cpus, stop).map_err(|error| wrong(error.to_string()))?;
        let named = up.testbed.hosts().map(dnslab_lab::hosts::Hosts::name).transpose();
        let named = named.map_err(|error| wrong(error.to_string()))?;
        let is_external = found.target().is_some();
        Ok(KeptTestbed { named, up, is_external })
    }
}

impl KeptTestbed {
    /// How to enter the hosts and where the servers answer, a line each.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (host, name) in self.named.iter().flat_map(|named| &named.names) {
            lines.push(format!("host {host}: ip netns exec {name} bash"));
        }
        let kind = &self.up.target.facts.kind;
        let there = self.up.target.facts.host.as_str();
        let where_it_is = match (self.is_external, there) {
            (true, _) => ", which runs elsewhere".to_owned(),
            (false, "") => String::new(),
            (false, host) => format!(" on {host}"),
        };
        lines.push(format!(
            "server: {kind} answers at {}{where_it_is}",
            self.up.target.ways.address
        ));
        lines.extend(self.up.testbed.describe());
        lines
    }

    /// True once a server has ended by itself: then nothing is left to look at.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let ended =
            self.up.target.server.as_ref().is_some_and(|server| {
                server.exited(0).is_some() || server.watched().lost().is_some()
            });
        ended || self.up.testbed.ended().is_some() || self.up.testbed.lost().is_some()
    }
}
