//! How a server is watched: here, or by the agent of its host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use dnslab_lab::{Latest, Sampler, Watched};
use dnslab_protocol::clock::{Offset, between};
use dnslab_protocol::{Answer, FoundServer, Order, Sought};
use dnslab_record::{ResourceSeries, Span};
use dnslab_settings::Identity;
use dnslab_wire::Transport;

use crate::link::{Link, LinkError};

/// A server that an agent has found on its host.
#[derive(Debug)]
pub struct FoundThere {
    link: Arc<Link>,
    /// Its number there.
    server: u32,
    /// What is known of it.
    pub found: FoundServer,
}

impl FoundThere {
    /// Has an agent find the server that answers at `address`. `Err` in the answer says why it cannot be watched, and
    /// whether what was named is wrong.
    ///
    /// # Errors
    /// When the host is lost, or does not allow it.
    pub fn find(
        link: &Arc<Link>,
        identity: &Identity,
        transport: Transport,
        address: SocketAddr,
    ) -> Result<Result<Self, (String, bool)>, LinkError> {
        let (identity, transport) = (identity.clone(), transport.to_string());
        let server = link.number();
        let sought = Sought { identity, transport, address };
        Ok(match link.order(Order::Find { server, sought })? {
            Answer::Found(found) => {
                let mut found = *found;
                found.facts.host = link.host_name().to_owned();
                Ok(Self { link: Arc::clone(link), server, found })
            }
            Answer::NotFound { reason, is_fault } => Err((reason, is_fault)),
            _ => return Err(link.misunderstood()),
        })
    }
}

impl Drop for FoundThere {
    fn drop(&mut self) {
        if self.link.ended().is_none() {
            self.link.order_only(Order::Forget { server: self.server });
        }
    }
}

/// A server that can be watched.
#[derive(Clone, Debug)]
pub enum WatchedServer {
    /// On this host.
    Here(Box<Watched>),
    /// On another.
    There(Arc<FoundThere>),
}

impl WatchedServer {
    /// The server beside a load on these CPUs of this host.
    #[must_use]
    pub fn beside_load(self, cpus: &[usize]) -> Self {
        match self {
            Self::Here(watched) => Self::Here(Box::new(watched.beside_load(cpus))),
            there @ Self::There(_) => there,
        }
    }

    /// Watches it from here on.
    ///
    /// # Errors
    /// When its host is lost.
    pub fn watch(self) -> Result<ServerWatch, LinkError> {
        let there = match self {
            Self::Here(watched) => {
                return Ok(ServerWatch::Here(Box::new(Sampler::start(*watched))));
            }
            Self::There(there) => there,
        };
        let link = &there.link;
        let before = link.offset()?;
        let watch = link.number();
        link.expect(watch);
        match link.order(Order::Watch { server: there.server, watch })? {
            Answer::Watching => Ok(ServerWatch::There(WatchThere { there, watch, before })),
            _ => Err(link.misunderstood()),
        }
    }

    /// Why its host is lost; `None` while it is there.
    #[must_use]
    pub fn lost(&self) -> Option<LinkError> {
        match self {
            Self::Here(_) => None,
            Self::There(there) => there.link.ended(),
        }
    }

    /// What is watched on this host; `None` for a server on another.
    #[must_use]
    pub fn here(&self) -> Option<&Watched> {
        match self {
            Self::Here(watched) => Some(watched),
            Self::There(_) => None,
        }
    }
}

/// A watch that runs.
#[derive(Debug)]
pub enum ServerWatch {
    /// On this host.
    Here(Box<Sampler>),
    /// On another.
    There(WatchThere),
}

/// A watch on another host.
#[derive(Debug)]
pub struct WatchThere {
    there: Arc<FoundThere>,
    watch: u32,
    /// Its clock when the watch began.
    before: Offset,
}

impl ServerWatch {
    /// What the newest sample says; `None` before the first one.
    #[must_use]
    pub fn latest(&self) -> Option<Latest> {
        match self {
            Self::Here(sampler) => sampler.latest(),
            Self::There(WatchThere { there, watch, .. }) => {
                let (server, load_cpus) = there.link.latest(*watch)?;
                Some(Latest { server, load_cpus })
            }
        }
    }

    /// Ends the watch. The samples are on the timeline of a load that began at `origin`, with what the busiest threads
    /// did over a window of it ([`Sampler::finish_over`]).
    ///
    /// # Errors
    /// When its host is lost.
    pub fn finish_over(self, origin: Instant, window: Span) -> Result<ResourceSeries, LinkError> {
        match self {
            Self::Here(sampler) => Ok(sampler.finish_over(origin, window)),
            Self::There(watch) => watch.finish_over(origin, window),
        }
    }

    /// The server has a host of its own.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        matches!(self, Self::There(_))
    }
}

impl WatchThere {
    fn finish_over(self, origin: Instant, window: Span) -> Result<ResourceSeries, LinkError> {
        let Self { there, watch, before } = &self;
        let link = &there.link;
        let after = link.offset()?;
        let origin_ns = link.ns_of(origin);
        let offset = between(*before, after, origin_ns);
        let Span { from_ns, to_ns } = window;
        let origin_ns = origin_ns + offset.ahead_ns;
        let end = Order::EndWatch { watch: *watch, origin_ns, from_ns, to_ns };
        match link.order(end)? {
            Answer::Resources(series) => {
                let clock_bound_ns = Some(offset.bound_ns);
                Ok(ResourceSeries { clock_bound_ns, ..*series })
            }
            _ => Err(link.misunderstood()),
        }
    }
}

impl Drop for WatchThere {
    fn drop(&mut self) {
        self.there.link.forget(self.watch);
    }
}
