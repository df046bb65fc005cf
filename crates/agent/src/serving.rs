//! What a variant's server is started with, on whatever host.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dnslab_lab::{
    LogDestination, LogFile, LogPrefix, Logging, Needs, Ports, QueryLog, Rotation, ServerSpec,
};
use dnslab_protocol::PortChoice;
use dnslab_settings::{
    CacheSize, ChainRole, ChainServer, Log, LogTarget, ServerKind, UpstreamChoice, Variant,
};
use dnslab_wire::Transport;
use dnslab_wire::units::duration;

/// Where a server is started, and with what of its host.
#[derive(Clone, Debug)]
pub struct ServerPlace<'a> {
    /// Folder for its whole state.
    pub directory: PathBuf,
    /// Where it listens.
    pub listen: (IpAddr, Ports),
    /// The CPUs that it gets.
    pub cpus: &'a [usize],
    /// Decides every draw of the embedded server.
    pub seed: u64,
}

/// Ports of a server beside one that has those of the standards.
const BESIDE: Ports =
    Ports { plain: 5_353, dot: 8_853, doh2: 8_443, doq: 8_853, doh3: 8_443, control: 8_054 };

/// The ports of a server at this address of this host.
///
/// # Errors
/// When none are free there.
pub(crate) fn ports(address: IpAddr, choice: PortChoice) -> io::Result<Ports> {
    match choice {
        PortChoice::Free => dnslab_lab::ports::free(address),
        PortChoice::Standard => Ok(Ports::STANDARD),
        PortChoice::Beside => Ok(BESIDE),
    }
}

/// A server of a variant as it is to be started, without what it answers from.
#[must_use]
pub fn server_spec(
    variant: &Variant,
    server: &ChainServer<'_>,
    place: ServerPlace<'_>,
) -> ServerSpec {
    match server.role {
        ChainRole::Server => front_spec(variant, place),
        ChainRole::Relay | ChainRole::Upstream => behind_spec(variant, server, place),
    }
}

/// What a server behind another serves: its own transport, and TCP for what UDP truncates.
fn transports(server: &ChainServer<'_>) -> Vec<Transport> {
    match server.transport {
        Transport::Udp => vec![Transport::Udp, Transport::Tcp],
        other => vec![other],
    }
}

fn behind_spec(variant: &Variant, server: &ChainServer<'_>, place: ServerPlace<'_>) -> ServerSpec {
    let ServerPlace { directory, listen, cpus, seed } = place;
    let kind = server.kind.unwrap_or(ServerKind::Embedded);
    let mut spec = ServerSpec::new(kind, directory, listen, &transports(server));
    spec.counts = variant.server.watch;
    give(&mut spec, server, cpus, seed);
    let upstream = &variant.upstream;
    if kind == ServerKind::Embedded && upstream.kind != Some(UpstreamChoice::Internet) {
        spec.embedded.signed = upstream.signed;
        spec.embedded.queries_per_connection = upstream.queries_per_connection;
        spec.embedded.idle_timeout = Some(duration::write(upstream.idle));
        spec.embedded.no_tickets = !upstream.tickets;
    }
    spec
}

fn front_spec(variant: &Variant, place: ServerPlace<'_>) -> ServerSpec {
    let (server, front) = (&variant.server, variant.front());
    let kind = front.kind.unwrap_or(ServerKind::Embedded);
    let transports: Vec<Transport> = variant.load.transports().collect();
    let ServerPlace { directory, listen, cpus, seed } = place;
    let mut spec = ServerSpec::new(kind, directory, listen, &transports);
    spec.cache = server.cache;
    spec.certificate = server.certificate;
    spec.logging = logging(variant);
    spec.http_path = variant.load.http_path.clone();
    spec.embedded.early_data = variant.load.early_data;
    spec.root = server.root.clone();
    spec.counts = server.watch;
    give(&mut spec, &front, cpus, seed);
    spec
}

/// What one of a variant's servers must be able to do, before an upstream over this transport.
#[must_use]
pub fn needs(variant: &Variant, server: &ChainServer<'_>, upstream: Option<Transport>) -> Needs {
    let is_front = server.role == ChainRole::Server;
    Needs {
        transport: server.transport,
        upstream: upstream.filter(|_| !variant.resolves()),
        resolves: is_front && variant.resolves(),
        validates: is_front && variant.server.dnssec,
        cache: if is_front { variant.server.cache } else { CacheSize::Default },
        logging: if is_front { logging(variant) } else { Logging::default() },
        is_in_root: server.root.is_some(),
    }
}

/// What a variant's server writes of each query.
#[must_use]
fn logging(variant: &Variant) -> Logging {
    let Log { to, folder, size_mib, versions, suffix, buffered, .. } = &variant.log;
    let to = match to {
        LogTarget::None => None,
        LogTarget::File => Some(LogDestination::File(LogFile {
            folder: folder.clone(),
            is_buffered: *buffered,
            rotation: size_mib.map(|size_mib| Rotation {
                size_mib,
                versions: *versions,
                suffix: *suffix,
            }),
        })),
        LogTarget::Syslog => Some(LogDestination::Syslog),
        LogTarget::StandardError => Some(LogDestination::StandardError),
        LogTarget::Null => Some(LogDestination::Null),
    };
    let print = LogPrefix {
        time: variant.log.print_time,
        category: variant.log.print_category,
        severity: variant.log.print_severity,
    };
    Logging { query_log: to.map(|to| QueryLog { to, print }), dnstap: variant.server.dnstap }
}

/// Gives a server what it has in every role: CPUs, program and text, and the programs of the embedded server.
fn give(spec: &mut ServerSpec, server: &ChainServer<'_>, cpus: &[usize], seed: u64) {
    spec.cpus = cpus.to_vec();
    let threads = || u32::try_from(cpus.len()).unwrap_or(1);
    spec.threads = server.threads.unwrap_or_else(threads).max(1);
    spec.binary = server.binary.map(Path::to_owned);
    spec.extra = server.extra.map(str::to_owned);
    if spec.kind == ServerKind::Embedded {
        spec.embedded.delay = server.delay.map(|delay| delay.to_string());
        spec.embedded.loss = server.loss.map(|loss| loss.to_string());
        spec.embedded.stall = server.stall.map(|stall| stall.to_string());
        let time = |time: Duration| (!time.is_zero()).then(|| duration::write(time));
        spec.embedded.busy = time(server.busy);
        spec.embedded.hold = time(server.hold);
        spec.embedded.serial = time(server.serial);
        spec.embedded.seed = Some(seed);
    }
}
