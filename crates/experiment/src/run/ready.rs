//! When a server that is started is ready: it answers a question rightly.

use std::net::SocketAddr;
use std::sync::Arc;

use dnslab_agent::{LoadHosts, PROBE_TIMEOUT, Ready, answered};
use dnslab_lab::PolicyZone;
use dnslab_load::{Asker, Job, TlsSettings};
use dnslab_settings::{Load, Queries, Variant};
use dnslab_traffic::QueryList;
use dnslab_wire::{Query, QueryOptions, Transport};
use domain::base::Name;
use domain::base::iana::Rtype;

use super::error::QueriesError;
use super::queries::Asked;

/// A name that an upstream knows and no load asks for, to probe whether a forwarder is ready. It is not below
/// `test`, which forwarders deny themselves (RFC 6761, section 6.2).
pub(super) const READY_NAME: &str = "ready.dnslab-laboratory.net";

/// What shows whether a server answers rightly.
pub(super) struct Question {
    /// It has an answer: with records, or of a configuration of the user's own any that is no failure.
    known: Query,
    ready: Ready,
    /// A policy denies it (NXDOMAIN). `None` without one.
    denied: Option<Query>,
}

impl Question {
    /// The SOA record of the zone. Of a configuration of the user's own, whose zones nobody named, what the load asks
    /// first. If the load would fill a cache, a name that an upstream knows and no load
    /// asks for; for a resolver, or where the upstream runs already, the SOA record of the root, which leaves no
    /// other name in its cache.
    pub(super) fn of(variant: &Variant, asked: &Asked) -> Result<Self, QueriesError> {
        if variant.own_configuration().is_some() && variant.zone.file.is_none() {
            let known = asked.list.get(0).clone();
            return Ok(Self { known, ready: Ready::NameOrNone, denied: None });
        }
        if variant.resolves() {
            return Self::soa(".");
        }
        let has_names = !matches!(variant.asked(), Queries::Zone(_) | Queries::ZoneFile { .. });
        if has_names && variant.upstream.service.is_some() {
            // A cluster may know no names but its own.
            let known = asked.list.get(0).clone();
            return Ok(Self { known, ready: Ready::NameOrNone, denied: None });
        }
        if has_names && variant.external_upstream().is_some() {
            return Self::soa(".");
        }
        match has_names && variant.forwards() {
            true => Self::new(READY_NAME, Rtype::A),
            false => Self::soa(&variant.zone.name),
        }
    }

    /// A server that applies a policy is ready once it denies a name, too: BIND answers while it still reads the policy.
    pub(super) fn with_policy(self, policy: Option<&PolicyZone>) -> Result<Self, QueriesError> {
        let denied = policy.and_then(|policy| policy.denied.as_deref());
        let denied = denied.map(|name| Self::new(name, Rtype::A)).transpose()?;
        Ok(Self { denied: denied.map(|question| question.known), ..self })
    }

    /// What has an answer, and what that is like.
    pub(super) fn known(&self) -> (&Query, Ready) {
        (&self.known, self.ready)
    }

    /// What a policy denies.
    pub(super) fn denied(&self) -> Option<&Query> {
        self.denied.as_ref()
    }

    pub(super) fn soa(origin: &str) -> Result<Self, QueriesError> {
        Self::new(origin, Rtype::SOA)
    }

    fn new(name: &str, rtype: Rtype) -> Result<Self, QueriesError> {
        let wrong = |reason: String| QueriesError::Zone { name: name.to_owned(), reason };
        let parsed: Name<Vec<u8>> = name
            .parse()
            .map_err(|error: domain::base::name::FromStrError| wrong(error.to_string()))?;
        // A forwarder may refuse a query without RD.
        let options = QueryOptions { recursion_desired: true, ..QueryOptions::default() };
        let query = Query::new(&parsed, rtype, &options);
        let known = query.map_err(|error| wrong(error.to_string()))?;
        Ok(Self { known, ready: Ready::Record, denied: None })
    }

    /// A client of a load that asks this on the host of the server, over each of its transports and with its certificate. Only
    /// where the clients are has that host their addresses.
    pub(super) fn client(&self, load: &Load, has_clients: bool) -> Job {
        let load = Load {
            // Its own queries are nothing to a server that starts, and the subnets of all clients are many.
            mode: Load::default().mode,
            client_subnets: None,
            sources: load.sources.clone().filter(|_| has_clients),
            ..load.clone()
        };
        self.job(&load, Transport::Udp, SocketAddr::from(([0, 0, 0, 0], 0)), None)
    }

    /// A load of which each client asks this over a transport.
    fn job(
        &self,
        load: &Load,
        transport: Transport,
        address: SocketAddr,
        tls: Option<&TlsSettings>,
    ) -> Job {
        let load = Load { transport, mix: None, ..load.clone() };
        let list = QueryList::from_queries(vec![self.known.clone()], "readiness".to_owned());
        Job { tls: tls.cloned(), ..Job::new(load, address, Arc::new(list)) }
    }

    /// Asks as the first client of this load does, over this transport, from each of the hosts of the load.
    pub(super) fn ask_from(
        &self,
        hosts: &LoadHosts,
        load: &Load,
        (transport, address): (Transport, SocketAddr),
        tls: Option<&TlsSettings>,
    ) -> Result<(), String> {
        let job = self.job(load, transport, address, tls);
        let asker = Asker { client: 0, transport, server: 0 };
        hosts.links().iter().try_for_each(|link| {
            let answer = link.ask(&job, asker, &self.known, PROBE_TIMEOUT);
            self.ready.check(&self.known, answer)
        })
    }

    /// Asks from here as a client with default settings does, over this transport.
    pub(super) fn ask(
        &self,
        transport: Transport,
        address: SocketAddr,
        tls: Option<&TlsSettings>,
    ) -> Result<(), String> {
        let job = self.job(&Load::default(), transport, address, tls);
        answered(&job, &self.known, self.ready)
    }
}
