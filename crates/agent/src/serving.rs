//! What a variant's server is started with, on whatever host.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dnslab_lab::{
    LogDestination, LogFile, LogPrefix, Logging, Needs, Ports, QueryLog, Rotation, ServerSpec,
};
use dnslab_settings::{CacheSize, ChainRole, ChainServer, Log, LogTarget, ServerKind, Variant};
use dnslab_wire::Transport;
use dnslab_wire::units::duration;

/// Where a server is started, and with what of its host.
#[derive(Clone, Debug)]
pub struct ServerPlace<'a> {
    /// Folder for its whole state.
    pub directory: PathBuf,
    /// Where it listens.
    pub listen: (IpAddr, Ports),
    /// The network namespace that it runs in; `None` for that of the caller.
    pub network: Option<PathBuf>,
    /// The CPUs that it gets.
    pub cpus: &'a [usize],
    /// Connections that will be open to it at one time.
    pub connections: u32,
    /// Decides every draw of the embedded server.
    pub seed: u64,
}

/// The server under test as it is to be started, without what it answers from.
#[must_use]
pub fn server_spec(variant: &Variant, place: ServerPlace<'_>) -> ServerSpec {
    let (server, front) = (&variant.server, variant.front());
    let kind = front.kind.unwrap_or(ServerKind::Embedded);
    let transports: Vec<Transport> = variant.load.transports().collect();
    let ServerPlace { directory, listen, network, cpus, connections, seed } = place;
    let mut spec = ServerSpec::new(kind, directory, listen, &transports);
    spec.cache = server.cache;
    spec.certificate = server.certificate;
    spec.logging = logging(variant);
    spec.network = network;
    spec.connections = connections;
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
pub fn give(spec: &mut ServerSpec, server: &ChainServer<'_>, cpus: &[usize], seed: u64) {
    spec.cpus = cpus.to_vec();
    let threads = || u32::try_from(cpus.len()).unwrap_or(1);
    spec.threads = server.threads.unwrap_or_else(threads).max(1);
    spec.binary = server.binary.map(Path::to_owned);
    spec.extra = server.extra.map(str::to_owned);
    if spec.kind == ServerKind::Embedded {
        spec.embedded.delay = server.delay.map(|delay| delay.to_string());
        spec.embedded.loss = server.loss.map(|loss| loss.to_string());
        let time = |time: Duration| (!time.is_zero()).then(|| duration::write(time));
        spec.embedded.busy = time(server.busy);
        spec.embedded.hold = time(server.hold);
        spec.embedded.serial = time(server.serial);
        spec.embedded.seed = Some(seed);
    }
}
