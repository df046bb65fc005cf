//! Whether this host has room for a load: files, source addresses, ports.

use std::fs;
use std::net::{IpAddr, SocketAddr};

use dnslab_lab::ports;
use dnslab_load::sockets;
use dnslab_settings::{Load, Variant};
use dnslab_wire::Transport;

use super::testbed::has_hosts;

/// Clients that are played over UDP ask over TCP only what was truncated. A server that is prepared for each of them
/// to do so at once would need more files than a process may have.
const MAX_OVER_UDP: u64 = 4_096;

/// Connections of a load that its server must bear at the same time.
pub(super) fn connections(load: &Load) -> u32 {
    let is_over_udp = load.transports().all(|transport| transport == Transport::Udp);
    let max = if load.mode.is_played() && is_over_udp { MAX_OVER_UDP } else { u64::MAX };
    u32::try_from(sockets(load).min(max)).unwrap_or(u32::MAX)
}

/// What keeps a variant's load from its sockets, with the remedy.
pub(super) fn lacking(variant: &Variant) -> Option<String> {
    let load = &variant.load;
    // Its hosts have limits of their own, and say so.
    if load.hosts.is_some() {
        return None;
    }
    let wanted = sockets(load);
    if let Err(error) = dnslab_load::check_sockets(wanted) {
        return Some(error.to_string());
    }
    // Own hosts get the addresses when they are made.
    if let Some(sources) = load.sources.as_ref().filter(|_| !has_hosts(variant)) {
        // The last address too: a range may go beyond what the host has.
        let last = u32::try_from(sources.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let clients = if load.mode.is_played() { u32::MAX } else { load.clients };
        for place in [0, last.min(clients.saturating_sub(1))] {
            if let Some(problem) = foreign(sources.get(place), variant.target()) {
                return Some(problem);
            }
        }
    }
    let sources = load.sources.as_ref().map_or(1, |sources| sources.len());
    let sources = sources.min(load.clients.into());
    too_few_ports(wanted, sources, ephemeral_ports()?)
}

fn foreign(source: IpAddr, target: Option<SocketAddr>) -> Option<String> {
    let mut address = SocketAddr::new(source, 0);
    // As the sockets of the load have it.
    if let (SocketAddr::V6(source), Some(SocketAddr::V6(target))) = (&mut address, target)
        && source.ip().is_unicast_link_local()
    {
        source.set_scope_id(target.scope_id());
    }
    let error = ports::check(Transport::Udp, address).err()?;
    Some(format!(
        "this host cannot send from {source}, one of `load.sources`: {error}; name addresses that it \
         has (`ip address`), or add it to an interface (`ip address add {source} dev ...`)"
    ))
}

/// Every socket to the one server needs its own port of a source address.
fn too_few_ports(wanted: u64, sources: u64, ports: u64) -> Option<String> {
    let most = ports.saturating_mul(sources);
    if wanted <= most {
        return None;
    }
    let needed = wanted.div_ceil(ports.max(1));
    let have = match sources {
        1 => "one source address has".to_owned(),
        _ => format!("{sources} source addresses have"),
    };
    Some(format!(
        "{wanted} sockets to one server need more than the {most} ports that {have} \
         (net.ipv4.ip_local_port_range): give at least {needed} addresses with `load.sources`, for \
         example \"127.0.1.0/24\" where the server is on this machine, or widen the range"
    ))
}

/// Ports that the kernel gives to sockets that ask for none (ip(7)); `None` if it does not say.
fn ephemeral_ports() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some((last + 1).saturating_sub(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_ports(wanted: u64, sources: u64, expected: Option<&str>) {
        let found = too_few_ports(wanted, sources, 28_232);
        match (expected, &found) {
            (None, None) => {}
            (Some(text), Some(found)) => assert!(found.contains(text), "{found}"),
            _ => panic!("{wanted} {sources}: {found:?}"),
        }
    }

    #[test]
    fn ports_are_counted_by_source() {
        check_ports(28_232, 1, None);
        check_ports(28_233, 1, Some("the 28232 ports that one source address has"));
        check_ports(28_233, 1, Some("at least 2 addresses with `load.sources`"));
        check_ports(100_000, 3, Some("the 84696 ports that 3 source addresses have"));
        check_ports(100_000, 4, None);
        assert!(ephemeral_ports().is_some_and(|ports| ports > 1_000));
    }

    #[test]
    fn foreign_sources_are_told() {
        // 192.0.2.0/24 is for documentation only (RFC 5737): no machine has it.
        let problem = foreign([192, 0, 2, 1].into(), None).unwrap();
        assert!(problem.starts_with("this host cannot send from 192.0.2.1"), "{problem}");
        assert_eq!(foreign([127, 0, 1, 9].into(), None), None);
    }

    #[test]
    fn sockets_are_those_of_the_engine() {
        let check = |lines: &str, expected: u64| {
            let text = format!("name = \"x\"\n{lines}\n[[variant]]\nname = \"a\"\n");
            let experiment = dnslab_settings::check_text(&text, &[]).unwrap();
            assert_eq!(sockets(&experiment.variants[0].load), expected, "for {lines}");
        };
        check("load.clients = 30", 30);
        check("load = { clients = 30, connections = 3, outstanding = 3, transport = \"tcp\" }", 90);
        check("load = { clients = 30, truncated = \"ask-over-tcp\" }", 60);
    }
}
