//! Hosts and links that end by themselves.

use super::host::HOSTS_LOG;
use super::line::{Hosts, link_log};
use crate::ending::ExitReport;
use crate::running::log_tail;

/// A part of a laboratory that has ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedPart {
    /// Which one, to follow "the": `upstream`, `link between client and server`.
    pub what: String,
    /// How it ended.
    pub report: ExitReport,
    /// The last lines of its log; often there are none.
    pub log_tail: Vec<String>,
}

impl Hosts {
    /// The first host or link whose process has ended by itself, with the last `lines` lines of its log. Does
    /// not wait.
    ///
    /// A link without its process carries nothing. A host without its process lives on while a server runs in
    /// it, but nobody can enter it.
    #[must_use]
    pub fn ended(&self, lines: usize) -> Option<EndedPart> {
        let log_tail = |name: &str| log_tail(&self.folder.join(name), lines).unwrap_or_default();
        let host = self.hosts.iter().find_map(|host| {
            let report = host.holder.exited()?;
            let what = format!("host {}", host.name);
            Some(EndedPart { what, report, log_tail: log_tail(HOSTS_LOG) })
        });
        host.or_else(|| {
            self.links.iter().enumerate().find_map(|(number, link)| {
                let report = link.process.as_ref()?.exited()?;
                let [from, to] = [number, number + 1].map(|place| self.hosts[place].name);
                let what = format!("link between {from} and {to}");
                Some(EndedPart { what, report, log_tail: log_tail(&link_log(number)) })
            })
        })
    }
}
