//! The arguments of `dnslab serve`.

use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use dnslab_experiment::find_link;
use dnslab_settings::HostAddress;
use dnslab_traffic::{Delay, Loss, Stall};
use dnslab_wire::units;

/// `dnslab serve`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("content").required(true).args(["zone", "names", "hierarchy"])))]
pub(crate) struct Serve {
    /// Zone file (RFC 1035, section 5): be its authoritative server
    #[arg(long, value_name = "FILE")]
    pub(crate) zone: Option<PathBuf>,
    /// Name of the zone [default: the owner of its SOA record]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["names", "hierarchy"])]
    pub(crate) origin: Option<String>,
    /// Names, one a line as in dnsperf's query files: be a recursive resolver that has them, and
    /// all zones above them, in its cache
    #[arg(long, value_name = "FILE")]
    pub(crate) names: Option<PathBuf>,
    /// Sign these zones, with the key whose trust anchor docs/SERVERS.md has
    #[arg(long, conflicts_with_all = ["zone", "hierarchy"])]
    pub(crate) sign: bool,
    /// Description of an internet (docs/LABORATORY.md): be all its servers, each at its own address
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "listen", "dot_listen", "doq_listen", "doh3_listen", "doh2_listen",
    ])]
    pub(crate) hierarchy: Option<PathBuf>,
    /// Port of these servers
    #[arg(long, value_name = "N", default_value_t = 53, conflicts_with_all = ["zone", "names"])]
    pub(crate) port: u16,
    /// Address and port for UDP and TCP; can be given more than once
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    pub(crate) listen: Vec<SocketAddr>,
    /// Address and port for DNS over TLS; can be given more than once
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address, requires = "certificate")]
    pub(crate) dot_listen: Vec<SocketAddr>,
    /// Address and port for DNS over QUIC; can be given more than once
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address, requires = "certificate")]
    pub(crate) doq_listen: Vec<SocketAddr>,
    /// Address and port for DNS over HTTPS with HTTP/3; can be given more than once
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address, requires = "certificate")]
    pub(crate) doh3_listen: Vec<SocketAddr>,
    /// Address and port for DNS over HTTPS with HTTP/2; can be given more than once
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address, requires = "certificate")]
    pub(crate) doh2_listen: Vec<SocketAddr>,
    /// Path at which DNS over HTTPS is served
    #[arg(long, value_name = "PATH", default_value = "/dns-query")]
    pub(crate) http_path: String,
    /// Put several answers into one TLS record, over DNS over TLS and HTTP/2, instead of one
    #[arg(long)]
    pub(crate) pack_answers: bool,
    /// Give clients no tickets to resume TLS sessions with
    #[arg(long)]
    pub(crate) no_tickets: bool,
    /// Answer queries in the first packet of a resumed connection
    #[arg(long, conflicts_with = "no_tickets")]
    pub(crate) early_data: bool,
    /// Certificate chain in PEM form
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// The certificate's key in PEM form
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// Threads that answer
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) threads: NonZeroUsize,
    /// Delay of each answer: 5ms, uniform:1ms..9ms, normal:5ms,1ms, exponential:5ms,
    /// lognormal:median=5ms,sigma=0.5
    #[arg(long)]
    pub(crate) delay: Option<Delay>,
    /// Add this to every delay, as a path of so long there and back would
    #[arg(long, value_name = "DURATION", value_parser = path_delay)]
    pub(crate) path_delay: Option<Duration>,
    /// Close a connection in order once so many queries of it are answered [default: never]
    #[arg(long, value_name = "N")]
    pub(crate) queries_per_connection: Option<NonZeroU64>,
    /// Close a connection on which nothing moves for so long
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) idle_timeout: Duration,
    /// Connections at once; further ones wait, and over QUIC are refused
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(crate) max_connections: NonZeroUsize,
    /// Replace this file every 100 ms, and at the end, by one JSON object of what was counted
    #[arg(long, value_name = "FILE")]
    pub(crate) counters: Option<PathBuf>,
    /// Share of queries that are not answered: 0.02 or 2%
    #[arg(long)]
    pub(crate) loss: Option<Loss>,
    /// Stall of the whole server: every=10s,length=200ms or at=3s,length=200ms
    #[arg(long)]
    pub(crate) stall: Option<Stall>,
    /// CPU time that each answer costs beside what it needs, e.g. 200ns
    #[arg(long, value_name = "DURATION", value_parser = busy)]
    pub(crate) busy: Option<Duration>,
    /// Time for which each answer keeps its thread, without CPU time, e.g. 2ms
    #[arg(long, value_name = "DURATION", value_parser = busy)]
    pub(crate) hold: Option<Duration>,
    /// Time for which each answer then keeps all threads, one after the other
    #[arg(long, value_name = "DURATION", value_parser = busy)]
    pub(crate) serial: Option<Duration>,
    /// Seed of everything drawn at random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// An address of this host with a port, and with the link of one that is link-local.
fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let reason =
        || "write an address and a port, as in 127.0.0.1:5300 or [fe80::1%eth0]:5300".to_owned();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let mut address = HostAddress::of_ip(text).ok_or_else(reason)?;
    let port = address.port.ok_or_else(reason)?;
    if let (IpAddr::V6(ip), Some(link)) = (address.ip(), &mut address.link) {
        link.index = find_link(ip, &link.name).map_err(|error| error.to_string())?;
    }
    Ok(address.at(port))
}

fn path_delay(text: &str) -> Result<Duration, String> {
    let possible = Duration::ZERO..=Duration::from_secs(120);
    within(text, possible, "write a duration of at most 120s, as in `6ms`")
}

fn busy(text: &str) -> Result<Duration, String> {
    let possible = Duration::ZERO..=Duration::from_secs(1);
    within(text, possible, "write a duration of at most 1s, as in `200ns`")
}

/// Bounds for the lifetime of a connection.
fn duration(text: &str) -> Result<Duration, String> {
    let possible = Duration::from_millis(10)..=Duration::from_secs(24 * 60 * 60);
    within(text, possible, "write a duration between 10ms and 24h, as in `10s`")
}

fn within(
    text: &str,
    possible: RangeInclusive<Duration>,
    reason: &str,
) -> Result<Duration, String> {
    let read = units::duration::read(text).ok().filter(|duration| possible.contains(duration));
    read.ok_or_else(|| reason.to_owned())
}
