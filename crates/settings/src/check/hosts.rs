//! What an experiment says of its hosts.

use super::{Check, HostDefaults, VariantDraft};
use crate::document::{Document, WrittenHost};
use crate::problem::shown;
use crate::{HostPlace, HostPlaces, Problem};

impl Check<'_> {
    /// What the experiment says of hosts.
    pub(super) fn hosts(&mut self, document: &Document, defaults: HostDefaults) -> KnownHosts {
        let tables = document.hosts.iter().filter_map(|written| self.host(written, &defaults));
        KnownHosts { tables: tables.collect(), defaults }
    }

    fn host(&mut self, written: &WrittenHost, defaults: &HostDefaults) -> Option<HostPlace> {
        let WrittenHost { name, place, entries } = written;
        let named: Option<HostPlace> = name.parse().ok();
        let Some(named) = named.filter(|host| host.name == *name) else {
            let message = format!("`{}` cannot be the name of a host", shown(name));
            let problem = Problem::new(message, place.mark("this host"));
            self.problems.push(problem.help("a name has letters, digits and `@._-:%[]`"));
            return None;
        };
        let text = |path: &str| entries.get(path).and_then(|entry| entry.text());
        let at = match text("at").map(str::parse) {
            None => named.at,
            Some(Ok(at)) => at,
            Some(Err(_)) => {
                let place = entries.get("at").map_or(place, |entry| &entry.place);
                let message = format!("host `{name}` is at no place that can be reached");
                let problem = Problem::new(message, place.mark("no such place"));
                let help = "write for example `at = \"ssh:ns1.example.net\"`, `\"netns:lab1\"` or `\"here\"`";
                self.problems.push(problem.help(help));
                return None;
            }
        };
        let install = text("install").and_then(|word| word.parse().ok());
        Some(HostPlace {
            name: named.name,
            at,
            program: text("program").map(Into::into).or_else(|| defaults.program.clone()),
            install: install.unwrap_or(defaults.install),
        })
    }

    /// Gives the hosts of a variant what is said of them.
    pub(super) fn place_hosts(&mut self, draft: &mut VariantDraft, known: &KnownHosts) {
        draft.server.host.value.iter_mut().for_each(|host| known.complete(host));
        let Some(hosts) = &mut draft.load.hosts.value else { return };
        hosts.0.iter_mut().for_each(|host| known.complete(host));
        if let Some((one, other)) = hosts.twice() {
            let message =
                format!("`{one}` and `{other}` are one host, and each host has one share");
            let mark = draft.load.hosts.mark("the same host");
            self.problem(message, [mark], "remove one of them");
            draft.load.hosts.value = None::<HostPlaces>;
        }
    }
}

/// What an experiment says of hosts.
pub(super) struct KnownHosts {
    /// Those that have tables.
    tables: Vec<HostPlace>,
    /// What holds for the others.
    defaults: HostDefaults,
}

impl KnownHosts {
    fn complete(&self, host: &mut HostPlace) {
        match self.tables.iter().find(|known| known.name == host.name) {
            Some(known) => host.clone_from(known),
            None => {
                host.install = self.defaults.install;
                host.program.clone_from(&self.defaults.program);
            }
        }
    }
}
