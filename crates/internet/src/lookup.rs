//! Which zones lead to a name, and what is there.

use std::net::IpAddr;

use dnslab_wire::{Labels, labels};

use crate::model::{Internet, REGIONS, Server, Zone};
use crate::name::number;
use crate::service::SERVICES;

/// What is at a name that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Apex,
    /// An empty non-terminal (RFC 8020).
    Empty,
    /// The addresses of a server.
    Server(Server),
    /// A host of a domain, from 1 on; perhaps an alias.
    Host {
        domain: u64,
        host: u64,
    },
    /// A step of the chain that a host leads through.
    Step {
        domain: u64,
        host: u64,
        step: u64,
    },
    /// The mail server of an operator.
    Mail(u32),
    /// Where a domain says what to do with mail that is forged in its name (RFC 7489, section 6.1).
    Dmarc(u64),
    /// Where a domain has a service (RFC 6186, RFC 6764).
    Service {
        domain: u64,
        service: u8,
    },
    /// The name of an address.
    Pointer(IpAddr),
}

/// A zone on the way from the root to a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedZone {
    pub(crate) zone: Zone,
    /// Labels of its apex.
    pub(crate) labels: usize,
}

/// The zones on the way from the root to a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    zones: [PlacedZone; MAX_ZONES],
    count: usize,
    /// What is there; otherwise the labels of the longest ancestor that exists.
    pub(crate) node: Result<Node, usize>,
}

/// The root, a top-level domain, a registry below it, a domain, a region.
const MAX_ZONES: usize = 5;

impl Located {
    fn root() -> Self {
        let root = PlacedZone { zone: Zone::Root, labels: 0 };
        Self { zones: [root; MAX_ZONES], count: 1, node: Err(0) }
    }

    /// From the root down.
    pub(crate) fn zones(&self) -> &[PlacedZone] {
        &self.zones[..self.count]
    }

    /// The zone that the name is in, seen from below a cut.
    pub(crate) fn zone(&self) -> Zone {
        self.zones[self.count - 1].zone
    }

    pub(crate) fn enter(&mut self, zone: Zone, labels: usize) {
        self.zones[self.count] = PlacedZone { zone, labels };
        self.count += 1;
    }

    /// The name has `labels` labels, `place` of which lead to this node.
    pub(crate) fn end(mut self, node: Node, place: usize, labels: &Labels<'_>) -> Self {
        self.node = if labels.count() == place { Ok(node) } else { Err(place) };
        self
    }

    /// The ancestor of so many labels exists, and the name does not.
    pub(crate) fn stop(mut self, encloser: usize) -> Self {
        self.node = Err(encloser);
        self
    }
}

impl Internet {
    /// Finds a lower-cased wire name.
    pub(crate) fn locate(&self, name: &[u8]) -> Located {
        let labels = labels(name);
        let mut located = Located::root();
        if labels.count() == 0 {
            return located.end(Node::Apex, 0, &labels);
        }
        let top = labels.under_root(0);
        if top == b"root-servers" {
            let count = self.description.root.servers.0;
            return self.below_servers(located, &labels, 1, |slot| {
                (u64::from(slot) < count).then_some(Server::Root(slot))
            });
        }
        let Some(mut registry) = self.top_level(top) else { return located.stop(0) };
        located.enter(Zone::Registry(registry), 1);
        if labels.count() == 1 {
            return located.end(Node::Apex, 1, &labels);
        }
        let (mut label, mut depth) = (labels.under_root(1), 1);
        if label == b"nic" {
            let count = self.registries[registry as usize].servers;
            return self.below_servers(located, &labels, 2, |slot| {
                (slot < count.into()).then_some(Server::TopLevel { registry, slot })
            });
        }
        let mut below = self.registries[registry as usize].below.iter();
        if let Some(second) = below.find(|child| *self.registries[**child as usize].label == *label)
        {
            registry = *second;
            depth = 2;
            located.enter(Zone::Registry(registry), depth);
            if labels.count() == depth {
                return located.end(Node::Apex, depth, &labels);
            }
            match self.reverse {
                [ipv4, _] if registry == ipv4 => return self.below_ipv4(located, &labels, depth),
                [_, ipv6] if registry == ipv6 => return self.below_ipv6(located, &labels, depth),
                _ => {}
            }
            label = labels.under_root(depth);
        }
        let Some(domain) = self.labels.read(label).filter(|domain| {
            *domain < self.domain_count() && self.registry_of(*domain) == registry
        }) else {
            return located.stop(depth);
        };
        depth += 1;
        located.enter(Zone::Hosted { domain, region: None }, depth);
        if labels.count() == depth {
            return located.end(Node::Apex, depth, &labels);
        }
        match self.operator_of(domain) {
            Some(operator) => self.below_operator(located, &labels, depth, operator),
            None => self.below_domain(located, &labels, depth, domain),
        }
    }

    /// Below an empty non-terminal of `depth` labels whose children are servers named by a letter.
    fn below_servers(
        &self,
        located: Located,
        labels: &Labels<'_>,
        depth: usize,
        server: impl Fn(u32) -> Option<Server>,
    ) -> Located {
        if labels.count() == depth {
            return located.end(Node::Empty, depth, labels);
        }
        match labels.under_root(depth) {
            [letter @ b'a'..=b'z'] => match server(u32::from(letter - b'a')) {
                Some(server) => located.end(Node::Server(server), depth + 1, labels),
                None => located.stop(depth),
            },
            _ => located.stop(depth),
        }
    }

    fn below_operator(
        &self,
        located: Located,
        labels: &Labels<'_>,
        depth: usize,
        operator: u32,
    ) -> Located {
        let label = labels.under_root(depth);
        let node = if label == b"mx" {
            Some(Node::Mail(operator))
        } else if let Some(server) = server_number(label) {
            self.numbered_server(operator, server).map(Node::Server)
        } else {
            self.step_at_operator(label, operator)
        };
        match node {
            Some(node) => located.end(node, depth + 1, labels),
            None => located.stop(depth),
        }
    }

    fn below_domain(
        &self,
        mut located: Located,
        labels: &Labels<'_>,
        mut depth: usize,
        domain: u64,
    ) -> Located {
        let mut label = labels.under_root(depth);
        if label[0] == b'_' {
            return self.below_underscore(located, labels, depth, domain);
        }
        let place = REGIONS.iter().position(|region| region.as_bytes() == label);
        let region = place.map(|place| place as u8);
        let (mut is_zone, mut found) = (true, region.is_none());
        if let Some(region) = region
            && self.has_region(domain, region)
        {
            found = true;
            depth += 1;
            is_zone = self.is_cut(domain, region);
            if is_zone {
                located.enter(Zone::Hosted { domain, region: Some(region) }, depth);
            }
            if labels.count() == depth {
                let node = if is_zone { Node::Apex } else { Node::Empty };
                return located.end(node, depth, labels);
            }
            label = labels.under_root(depth);
        }
        if !found {
            return located.stop(depth);
        }
        let node = if let Some(number) = server_number(label).filter(|_| is_zone) {
            let hosting = self.hosting(domain, region);
            let has_it = hosting.own_names && number < hosting.count.into();
            has_it.then(|| Node::Server(self.slot(&hosting, number as u32)))
        } else if let Some(step) = label.strip_prefix(b"e").filter(|_| region.is_none()) {
            self.step_inside(step, domain).or_else(|| self.host_at(label, domain, region))
        } else {
            self.host_at(label, domain, region)
        };
        match node {
            Some(node) => located.end(node, depth + 1, labels),
            None => located.stop(depth),
        }
    }

    /// Names that are not of hosts (RFC 8552).
    fn below_underscore(
        &self,
        located: Located,
        labels: &Labels<'_>,
        depth: usize,
        domain: u64,
    ) -> Located {
        match labels.under_root(depth) {
            b"_dmarc" if self.has_dmarc(domain) => {
                located.end(Node::Dmarc(domain), depth + 1, labels)
            }
            b"_tcp" if self.has_services(domain) => {
                if labels.count() == depth + 1 {
                    return located.end(Node::Empty, depth + 1, labels);
                }
                let label = labels.under_root(depth + 1);
                let place = SERVICES.iter().position(|(service, _)| service.as_bytes() == label);
                match place {
                    Some(place) => {
                        let node = Node::Service { domain, service: place as u8 };
                        located.end(node, depth + 2, labels)
                    }
                    None => located.stop(depth + 1),
                }
            }
            _ => located.stop(depth),
        }
    }

    fn host_at(&self, label: &[u8], domain: u64, region: Option<u8>) -> Option<Node> {
        let host = self.host_with_label(domain, label)?;
        (self.region_of(domain, host) == region).then_some(Node::Host { domain, host })
    }

    /// The step that `HOST-STEP` names, in the domain itself.
    fn step_inside(&self, label: &[u8], domain: u64) -> Option<Node> {
        let dash = label.iter().position(|octet| *octet == b'-')?;
        let (host, step) = (number(&label[..dash])?, number(&label[dash + 1..])?);
        self.step(domain, host, step, domain)
    }

    /// The step that `DOMAIN-HOST-STEP` names, at an operator.
    fn step_at_operator(&self, label: &[u8], operator: u32) -> Option<Node> {
        let mut parts = label.split(|octet| *octet == b'-');
        let domain = self.labels.read(parts.next()?)?;
        let (host, step) = (number(parts.next()?)?, number(parts.next()?)?);
        if parts.next().is_some() || domain >= self.description.domains.0 {
            return None;
        }
        self.step(domain, host, step, self.domain_of(operator))
    }

    fn step(&self, domain: u64, host: u64, step: u64, place: u64) -> Option<Node> {
        let is_there = (1..=self.host_count()).contains(&host)
            && (1..=self.alias_length(domain, host)).contains(&step)
            && self.domain_of_step(domain, host, step) == place;
        is_there.then_some(Node::Step { domain, host, step })
    }
}

/// The number in `ns1`, from 0 on.
fn server_number(label: &[u8]) -> Option<u64> {
    number(label.strip_prefix(b"ns")?)?.checked_sub(1)
}
