//! What an experiment says of its hosts.

use super::{Check, HostDefaults, VariantDraft};
use crate::document::{Document, WrittenHost};
use crate::entry::Entry;
use crate::hosts::labels;
use crate::problem::shown;
use crate::services::is_label;
use crate::{HostAt, HostPlace, HostPlaces, Pod, Problem};

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
        let pod = match at {
            HostAt::Kubernetes => Some(Box::new(self.pod(written, defaults)?)),
            _ => {
                self.no_pod(written)?;
                None
            }
        };
        Some(HostPlace {
            name: named.name,
            at,
            program: text("program").map(Into::into).or_else(|| defaults.program.clone()),
            install: install.unwrap_or(defaults.install),
            pod,
        })
    }

    /// A pod as it is to be made.
    fn pod(&mut self, written: &WrittenHost, defaults: &HostDefaults) -> Option<Pod> {
        let WrittenHost { name, place, entries } = written;
        let text = |path: &str| entries.get(path).and_then(|entry| entry.text()).map(str::to_owned);
        if !is_part_of_name(name) {
            let message = format!("`{}` cannot be the name of a pod", shown(name));
            let problem = Problem::new(message, place.mark("this host"));
            let help =
                "take at most 40 of `a-z`, `0-9` and `-`, with a letter or digit at both ends";
            self.problems.push(problem.help(help));
            return None;
        }
        let mut nodes = Vec::new();
        if let Some(entry) = entries.get("nodes") {
            let Some(read) = entry.text().and_then(labels) else {
                let problem = Problem::new("these are no labels", entry.place.mark("nodes"));
                self.problems.push(problem.help("write `key=value`, with commas between them"));
                return None;
            };
            nodes = read;
        }
        let usual = of_all(defaults);
        Some(Pod {
            context: text("context").or(usual.context),
            namespace: text("namespace").or(usual.namespace),
            image: text("image").unwrap_or(usual.image),
            server_image: text("server_image"),
            nodes,
            cpus: entries.get("cpus").and_then(Entry::number).unwrap_or(usual.cpus),
            memory: text("memory").unwrap_or(usual.memory),
            runtime_class: text("runtime_class"),
            has_host_network: entries.get("host_network").and_then(Entry::boolean).unwrap_or(false),
        })
    }

    /// A host that is no pod has nothing that only a pod has.
    fn no_pod(&mut self, written: &WrittenHost) -> Option<()> {
        const OF_ALL: [&str; 3] = ["at", "program", "install"];
        let others = written.entries.iter().find(|(path, _)| !OF_ALL.contains(path));
        let Some((path, entry)) = others else { return Some(()) };
        let message = format!("`{path}` is for a pod, and host `{}` is none", written.name);
        let problem = Problem::new(message, entry.place.mark("for pods only"));
        self.problems.push(problem.help("add `at = \"kubernetes\"`, or remove it"));
        None
    }

    /// Gives the hosts of a variant what is said of them.
    pub(super) fn place_hosts(&mut self, draft: &mut VariantDraft, known: &KnownHosts) {
        let services = [&mut draft.server.service.value, &mut draft.upstream.service.value];
        for service in services.into_iter().flatten() {
            let HostDefaults { context, namespace, .. } = &known.defaults;
            service.context.clone_from(context);
            service.namespace = service.namespace.take().or_else(|| namespace.clone());
        }
        let of_servers = [&mut draft.server.host.value, &mut draft.upstream.host.value];
        of_servers.into_iter().flatten().for_each(|host| known.complete(host));
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
                host.pod.iter_mut().for_each(|pod| **pod = of_all(&self.defaults));
            }
        }
    }
}

/// A pod of which nothing is said alone.
fn of_all(defaults: &HostDefaults) -> Pod {
    let usual = Pod::default();
    let HostDefaults { context, namespace, image, .. } = defaults.clone();
    Pod { context, namespace, image: image.unwrap_or(usual.image.clone()), ..usual }
}

/// Whether it can be part of the name of an object, with room for what is added.
fn is_part_of_name(name: &str) -> bool {
    name.len() <= 40 && is_label(name)
}
