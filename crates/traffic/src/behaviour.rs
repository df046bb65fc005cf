//! How simulated clients use their connections.

use std::fmt;
use std::time::Duration;

use dnslab_wire::units::duration;

use crate::Quota;

/// How a client uses its connections. The default is the simplest client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientBehaviour {
    /// Connections, or UDP sockets, that each client keeps at the same time; at least 1.
    pub connections: u32,
    /// After so many queries the connection is closed, and the next query opens another. Without a quota it
    /// is used as long as it lasts.
    pub queries_per_connection: Option<Quota>,
    /// A connection without a query in flight is closed after this time (RFC 7766, section 6.2.3).
    /// Without a time the client does not close it.
    pub idle: Option<Duration>,
    /// When connections are opened.
    pub connect: Connect,
    /// What is done with a truncated answer over UDP.
    pub truncated: Truncated,
    /// Times that a client asks each of its servers for a name before it gives up; at least 1.
    pub attempts: u32,
}

impl Default for ClientBehaviour {
    /// One connection from the start to the end; truncated answers are answers.
    fn default() -> Self {
        Self {
            connections: 1,
            queries_per_connection: None,
            idle: None,
            connect: Connect::AtStart,
            truncated: Truncated::Count,
            attempts: 1,
        }
    }
}

impl fmt::Display for ClientBehaviour {
    /// A sentence without its full stop, for records and pages.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u32, noun: &str| match count {
            1 => format!("1 {noun}"),
            _ => format!("{count} {noun}s"),
        };
        let when = match self.connect {
            Connect::AtStart => "opened at the start",
            Connect::OnDemand => "opened when a query is due",
        };
        write!(formatter, "{} per client, {when}", plural(self.connections, "connection"))?;
        match (self.queries_per_connection, self.idle) {
            (None, None) => write!(formatter, " and never closed by the client")?,
            (Some(quota), None) => write!(formatter, " and closed after {quota}")?,
            (None, Some(idle)) => {
                write!(formatter, " and closed when idle for {}", duration::write(idle))?;
            }
            (Some(quota), Some(idle)) => write!(
                formatter,
                " and closed after {quota} or when idle for {}",
                duration::write(idle)
            )?,
        }
        if self.truncated == Truncated::AskOverTcp {
            formatter.write_str("; truncated answers are asked again over TCP")?;
        }
        match self.attempts {
            1 => Ok(()),
            times => write!(formatter, "; what is not answered is asked up to {times} times"),
        }
    }
}

dnslab_wire::words! {
    /// When a client opens its connections.
    #[derive(Default)]
    pub enum Connect as "moment to connect" {
        /// Before the load begins, and again as soon as one is closed.
        #[default]
        AtStart = "at-start",
        /// When a query is due and none is open.
        OnDemand = "on-demand",
    }
}

dnslab_wire::words! {
    /// What a client does with a truncated answer over UDP.
    #[derive(Default)]
    pub enum Truncated as "way with truncated answers" {
        /// It is an answer, and counted as truncated.
        #[default]
        Count = "count",
        /// The query is asked again over TCP, as resolvers do (RFC 2181, section 9).
        AskOverTcp = "ask-over-tcp",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_behaviour_is_a_sentence() {
        let check = |behaviour: ClientBehaviour, expected: &str| {
            assert_eq!(behaviour.to_string(), expected);
        };
        let default = ClientBehaviour::default();
        check(
            default.clone(),
            "1 connection per client, opened at the start and never closed by the client",
        );
        check(
            ClientBehaviour { queries_per_connection: Some(Quota::Exact(1)), ..default.clone() },
            "1 connection per client, opened at the start and closed after 1 query",
        );
        check(
            ClientBehaviour {
                connections: 2,
                queries_per_connection: Some(Quota::Random(200)),
                idle: Some(Duration::from_secs(10)),
                connect: Connect::OnDemand,
                truncated: Truncated::AskOverTcp,
                attempts: 3,
            },
            "2 connections per client, opened when a query is due and closed after 200 queries on \
             average (drawn at random) or when idle for 10s; truncated answers are asked again over TCP; \
             what is not answered is asked up to 3 times",
        );
        check(
            ClientBehaviour { idle: Some(Duration::from_millis(1_500)), ..default },
            "1 connection per client, opened at the start and closed when idle for 1500ms",
        );
    }
}
