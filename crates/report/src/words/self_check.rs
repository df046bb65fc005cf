//! What the self-check finds, in words.

use dnslab_record::Finding;
use dnslab_settings::{Remedy, ServerKind};

use super::bottleneck::evidence_text;
use super::caveat::words;
use super::{MORE_CPUS, Remark};
use crate::number;

/// The most that `load.outstanding` takes: a client has so many message ids for each connection.
const MAX_OUTSTANDING: u32 = 65_535;

/// A finding of a self-check, or what a generator lacked in a search for the capacity.
pub(crate) fn remark(finding: &Finding) -> Remark {
    match finding {
        Finding::Caveat { caveat, .. } => words(caveat).full,
        Finding::Generator { evidence, .. } => Remark::new(
            "The load generator was the bottleneck: the server may do more",
            evidence_text(evidence),
            MORE_CPUS,
        ),
        Finding::SmallWindow { evidence, outstanding } => Remark::new(
            "The window was too small to fill the server: the rate is that of the window",
            evidence_text(evidence),
            match outstanding.saturating_mul(2) {
                twice @ ..=MAX_OUTSTANDING => {
                    format!("Enlarge the window ({})", Remedy::set("load.outstanding", twice))
                }
                _ => "Ask from more clients (`load.clients`)".to_owned(),
            },
        ),
        Finding::SharedCpu { evidence } => Remark::new(
            "A CPU that servers and load generator share was full: both may do more",
            evidence_text(evidence),
            "Give each CPUs of its own: `server.cpus`, `upstream.cpus`, `load.cpus`",
        ),
        Finding::ServerThread { evidence } => Remark::new(
            "One thread of a server was full while it had CPUs left: with the load spread over its \
             threads it may do more",
            evidence_text(evidence),
            "Ask from more source ports (`load.clients`), let the server's threads share its port \
             (`reuseport`), or give it more threads",
        ),
        Finding::Network { evidence } => Remark::new(
            "Datagrams were lost on the way, while neither side was busy",
            evidence_text(evidence),
            "Find where: the counters of the interfaces and of the server",
        ),
        Finding::ServerSocket { evidence, program } => {
            let kind = program.parse::<ServerKind>().ok();
            let option = kind.and_then(|kind| kind.profile().socket_buffer);
            let option = option.map(|option| format!(" or its option `{option}`"));
            Remark::new(
                "The server's socket buffer was full while the server had CPU time left: the kernel \
                 dropped queries that it could have answered",
                evidence_text(evidence),
                format!(
                    "Ask with fewer outstanding (`load.outstanding`) or less in one burst, or raise \
                     `net.core.rmem_default` on the server's host{}",
                    option.unwrap_or_default()
                ),
            )
        }
        Finding::ServerFull { busy_share } => {
            let left = number::percent((1.0 - busy_share).max(0.0), 0);
            Remark::new(
                "The server was at its end: more load shows no more of it",
                format!("the server had {left} of its CPU left"),
                "",
            )
        }
        Finding::LeftLate { demand, from_sending_ns, lag_p99_ns } => Remark::new(
            format!("Queries left late: counted from when they were sent, `{demand}` is met"),
            format!(
                "{} {} from then on, send lag p99 {}",
                demand.indicator,
                number::duration(*from_sending_ns),
                number::duration(*lag_p99_ns as f64)
            ),
            "Give the load CPUs that nobody else uses (`load.cpus`), or another machine",
        ),
    }
}
