//! `dnslab serve`: the embedded responder as a process.

mod counters;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::SystemTime;

use anyhow::Context as _;
use dnslab_lab::{read_given, read_given_text};
use dnslab_responder::{
    CertificateFiles, Config, Content, Counters, NameList, Server, Signing, Zone, Zones,
};
use dnslab_wire::Transport;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::counters::CountersFile;
use crate::arguments::Serve;
use crate::exit::{Exit, Failure};
use crate::make::internet;

/// Serves until SIGINT or SIGTERM, then prints the counters.
pub(crate) fn serve(arguments: Serve) -> Result<Exit, Failure> {
    let counters_file = arguments.counters.clone();
    let config = config(arguments)?;
    let server = Server::bind(config)?;
    let handle = server.stop_handle();
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen to signals")?;
    let wait = move || {
        if signals.forever().next().is_some() {
            handle.stop();
        }
    };
    std::thread::Builder::new().spawn(wait).context("cannot listen to signals")?;
    let listeners = listeners(&server);
    let served = listeners.iter().flat_map(|(_, _, transports)| *transports).copied().collect();
    // The file must exist before the lines that say that the server is ready.
    let writing = counters_file
        .map(|path| CountersFile::begin(path, served, server.counters_handle()))
        .transpose()?;
    for (addresses, what, _) in listeners {
        for address in addresses {
            tell!("serving {what} on {address}");
        }
    }
    if server.busy_steps() > 0 {
        tell!("each answer costs {} steps of a counted loop more", server.busy_steps());
    }
    let counters = server.run()?;
    show(&counters);
    if let Some(writing) = writing {
        writing.end(&counters)?;
    }
    Ok(Exit::Fine)
}

/// Addresses, what is served there in words, and its transports.
type Listener = (Vec<SocketAddr>, &'static str, &'static [Transport]);

fn listeners(server: &Server) -> Vec<Listener> {
    let all: [(&str, &[Transport]); 5] = [
        ("UDP and TCP", &[Transport::Udp, Transport::Tcp]),
        ("DNS over TLS", &[Transport::Dot]),
        ("DNS over QUIC", &[Transport::Doq]),
        ("DNS over HTTPS (HTTP/3)", &[Transport::Doh3]),
        ("DNS over HTTPS with HTTP/2", &[Transport::Doh2]),
    ];
    let of_all = all.map(|(what, transports)| (server.addresses(transports[0]), what, transports));
    of_all.into_iter().filter(|(addresses, ..)| !addresses.is_empty()).collect()
}

fn config(arguments: Serve) -> Result<Config, Failure> {
    let mut config = Config::new(content(&arguments).map_err(Failure::bad_input)?);
    config.listen = arguments.listen;
    if let Content::Internet(internet) = &config.content {
        let all = |is_ipv4: bool| match is_ipv4 {
            true => Ipv4Addr::UNSPECIFIED.into(),
            false => Ipv6Addr::UNSPECIFIED.into(),
        };
        let families = internet.networks().map(|network| all(network.address().is_ipv4()));
        config.listen = families.map(|ip| SocketAddr::new(ip, arguments.port)).collect();
    }
    config.dot_listen = arguments.dot_listen;
    config.doq_listen = arguments.doq_listen;
    config.doh3_listen = arguments.doh3_listen;
    config.doh2_listen = arguments.doh2_listen;
    config.http_path = arguments.http_path;
    config.pack_answers = arguments.pack_answers;
    config.tickets = !arguments.no_tickets;
    config.early_data = arguments.early_data;
    config.certificate = match (arguments.certificate, arguments.key) {
        (Some(chain), Some(key)) => Some(CertificateFiles { chain, key }),
        _ => None,
    };
    config.program.delay = arguments.delay.unwrap_or_default();
    config.program.path = arguments.path_delay.unwrap_or_default();
    config.program.loss = arguments.loss.unwrap_or_default();
    config.program.stall = arguments.stall;
    config.program.busy = arguments.busy.unwrap_or_default();
    config.program.hold = arguments.hold.unwrap_or_default();
    config.program.serial = arguments.serial.unwrap_or_default();
    config.threads = arguments.threads;
    config.seed = arguments.seed;
    config.idle_timeout = arguments.idle_timeout;
    config.max_connections = arguments.max_connections;
    config.queries_per_connection = arguments.queries_per_connection;
    Ok(config)
}

/// Octets of a zone file or a list of names: a zone in memory has at most as many.
const MAX_FILE: u64 = 4 << 30;

/// `clap` makes sure that one of the three is given.
fn content(arguments: &Serve) -> anyhow::Result<Content> {
    let cannot = |path: &Path| format!("cannot serve {}", path.display());
    match (&arguments.zone, &arguments.names, &arguments.hierarchy) {
        (Some(path), ..) => {
            let text = read_given(path, MAX_FILE).with_context(|| cannot(path))?;
            let zone = Zone::parse(&text, arguments.origin.as_deref());
            Ok(zone.with_context(|| cannot(path))?.into())
        }
        (_, Some(path), _) => {
            let text = read_given_text(path, MAX_FILE).with_context(|| cannot(path))?;
            let names = NameList::parse(&text).with_context(|| cannot(path))?;
            let signing = match arguments.sign {
                true => Signing::At(SystemTime::now()),
                false => Signing::Unsigned,
            };
            let zones = Zones::below_root(&names, signing);
            let (records, zones_made) = (zones.record_count(), zones.len());
            tell!("{} names in {zones_made} zones with {records} records", names.len());
            Ok(zones.into())
        }
        (_, _, Some(path)) => {
            let internet = internet::read(path)?;
            let networks: Vec<String> =
                internet.networks().map(|network| network.to_string()).collect();
            tell!("{} servers in {}", internet.server_count(), networks.join(" and "));
            Ok(internet.into())
        }
        (None, None, None) => {
            anyhow::bail!("give a zone (--zone), names (--names) or an internet (--hierarchy)")
        }
    }
}

fn show(counters: &Counters) {
    for transport in Transport::ALL {
        let messages = counters.messages(transport);
        if messages.received > 0 {
            tell!(
                "{transport}: {} received, {} answered, {} lost by program",
                messages.received,
                messages.answered,
                messages.lost_by_program
            );
        }
    }
}
