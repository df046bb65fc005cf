//! Keys that mean something on some transports only.
//!
//! Variants mostly differ in their transport, and what they share stands above them: a key that some
//! of them use and others do not is right. One that none uses is a slip.

use dnslab_wire::Transport;

use super::Check;
use super::settings::Settings;
use crate::error::{Place, Problem};

/// One key that only some transports use.
struct Fit {
    /// The key.
    path: &'static str,
    /// Tells whether a transport uses it.
    fits: fn(Transport) -> bool,
    /// Why the others do not.
    why: &'static str,
}

/// The keys.
const FITS: [Fit; 12] = [
    Fit { path: "load.http_method", fits: Transport::is_http, why: HTTP },
    Fit { path: "load.http_path", fits: Transport::is_http, why: HTTP },
    Fit { path: "load.tls_versions", fits: Transport::is_encrypted, why: TLS },
    Fit { path: "load.tls_groups", fits: Transport::is_encrypted, why: TLS },
    Fit {
        path: "load.tls_records",
        fits: |transport| transport == Transport::Dot,
        why: "HTTP/2 has frames of its own, and QUIC no TLS records",
    },
    Fit { path: "server.certificate", fits: Transport::is_encrypted, why: TLS },
    Fit { path: "load.resumption", fits: Transport::is_encrypted, why: TLS },
    Fit { path: "load.early_data", fits: Transport::is_encrypted, why: TLS },
    Fit {
        path: "load.padding",
        fits: Transport::is_encrypted,
        why: "in the clear it hides nothing, and must not be sent (RFC 7830, section 6)",
    },
    Fit {
        path: "load.keepalive",
        fits: |transport| matches!(transport, Transport::Tcp | Transport::Dot),
        why: "it is for TCP and DoT: UDP and DoQ must not have it (RFC 7828, section 3.2.1; RFC \
              9250, section 5.5.2), and HTTP keeps connections in its own way",
    },
    Fit { path: "load.truncated", fits: is_udp, why: "only answers over UDP are truncated" },
    Fit { path: "load.receive_time", fits: is_udp, why: "the kernel stamps datagrams only" },
];

/// Why only HTTP uses a key.
const HTTP: &str = "only DNS over HTTPS has requests";
/// Why only encrypted transports use a key.
const TLS: &str = "only encrypted transports have TLS";

/// True for UDP.
fn is_udp(transport: Transport) -> bool {
    transport == Transport::Udp
}

/// A place where a key was written, and whether one of the variants under it uses it.
#[derive(Debug)]
pub(super) struct Use {
    /// The place.
    place: Place,
    /// True if this variant uses it.
    is_used: bool,
    /// What is wrong if none does.
    message: String,
    /// The label of the place then.
    label: &'static str,
    /// What to do about it.
    help: String,
}

impl Check<'_> {
    /// Notes which keys of a variant its transport uses. What is written as it is preset is no slip.
    pub(super) fn note_fits(&mut self, settings: &Settings, transport: Transport) {
        for Fit { path, fits, why } in FITS {
            let says_nothing = settings.is_preset(path) || settings.is_broken(path);
            let Some(place) = settings.place(path).filter(|_| !says_nothing) else { continue };
            let with: Vec<&str> =
                Transport::ALL.into_iter().filter(|it| fits(*it)).map(Transport::name).collect();
            let with = match with.as_slice() {
                [only] => format!("the transport {only}"),
                _ => format!("one of the transports {}", with.join(", ")),
            };
            self.uses.push(Use {
                place: place.clone(),
                is_used: fits(transport),
                message: format!("`{path}` has no effect: {why}"),
                label: "no load here uses it",
                help: format!("remove it, or choose {with}"),
            });
        }
    }

    /// Notes a port for UDP and TCP. Where every load is encrypted, most likely the port for that was
    /// meant, and silence would measure another server.
    pub(super) fn note_plain_port(&mut self, place: &Place, transport: Transport) {
        let port_key = super::server::port_key(transport);
        self.uses.push(Use {
            place: place.clone(),
            is_used: !transport.is_encrypted(),
            message: format!(
                "the port is for UDP and TCP, but all load on it is {}",
                super::server::words(transport)
            ),
            label: "not used",
            help: format!("write the port for it as `{port_key}`"),
        });
    }

    /// Notes whether a variant uses what was written at a place.
    pub(super) fn note_use(&mut self, place: &Place, is_used: bool, message: String, help: &str) {
        let label = "no variant here uses it";
        let help = help.to_owned();
        self.uses.push(Use { place: place.clone(), is_used, message, label, help });
    }

    /// Problems of the keys that no variant uses.
    pub(super) fn unused(&mut self) {
        let uses = std::mem::take(&mut self.uses);
        let is_used = |one: &Use| uses.iter().any(|it| it.place == one.place && it.is_used);
        for (at, one) in uses.iter().enumerate() {
            let is_first = !uses[..at].iter().any(|earlier| earlier.place == one.place);
            if is_first && !is_used(one) {
                let problem = Problem::new(one.message.as_str(), one.place.mark(one.label));
                self.problems.push(problem.help(one.help.as_str()));
            }
        }
    }
}
