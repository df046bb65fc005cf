//! Which process owns an address: the socket tables of `/proc/net` (proc_net(5)).

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dnslab_wire::Transport;

use crate::descendants;

/// State of a listening TCP socket in `/proc/net/tcp` (TCP_LISTEN, include/net/tcp_states.h).
const TCP_LISTEN: u8 = 0x0A;

/// The owner of a socket, as far as this user may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Process id and name; `None` when the process belongs to another user.
    pub process: Option<(u32, String)>,
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Some((pid, name)) => write!(formatter, "{pid} {name}"),
            None => formatter.write_str("a process that this user may not see"),
        }
    }
}

/// Who receives what is sent to `address` over `transport` on this machine; `None` if nobody does.
///
/// A socket bound to the wildcard address of the port counts too. A port can have several owners
/// (SO_REUSEPORT); the first one found is named.
#[must_use]
pub fn owner(transport: Transport, address: SocketAddr) -> Option<Owner> {
    let receivers = receivers("thread-self", transport, address);
    (!receivers.is_empty()).then(|| owner_of(&receivers.iter().collect::<Vec<_>>()))
}

/// The first process found that has one of `entries` open.
pub(crate) fn owner_of(entries: &[&Entry]) -> Owner {
    let inodes: HashSet<u64> = entries.iter().map(|entry| entry.inode).collect();
    let process = descendants::all()
        .into_iter()
        .find(|pid| !inodes_of(*pid).is_disjoint(&inodes))
        .map(|pid| (pid, descendants::name(pid).unwrap_or_default()));
    Owner { process }
}

/// All processes that have one of `entries` open, as far as this user may see, ascending. The first process
/// of the system is among them only if it is alone: it hands sockets on to the services that it starts
/// (systemd.socket(5)).
pub(crate) fn owners(entries: &[Entry]) -> Vec<u32> {
    let inodes: HashSet<u64> = entries.iter().map(|entry| entry.inode).collect();
    let mut owners = descendants::all();
    owners.retain(|pid| !inodes_of(*pid).is_disjoint(&inodes));
    if owners.len() > 1 {
        owners.retain(|pid| *pid != 1);
    }
    owners.sort_unstable();
    owners
}

/// Those of the [`receivers`] to which the kernel gives what is sent to `address`.
pub(crate) fn nearest(network: &str, transport: Transport, address: SocketAddr) -> Vec<Entry> {
    preferred(receivers(network, transport, address), address)
}

/// Those that the kernel prefers: a socket bound to the address itself, then one bound to the wildcard of its
/// family, then an IPv6 wildcard that takes IPv4 too (`compute_score`, net/ipv4/udp.c and inet_hashtables.c).
fn preferred(mut entries: Vec<Entry>, address: SocketAddr) -> Vec<Entry> {
    let asked = address.ip().to_canonical();
    let nearness = |entry: &Entry| {
        let local = entry.local.ip();
        let is_of_family = local.is_ipv4() == asked.is_ipv4();
        if local.to_canonical() == asked { 2 } else { u8::from(is_of_family) }
    };
    let best = entries.iter().map(nearness).max();
    entries.retain(|entry| Some(nearness(entry)) == best);
    entries
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) local: SocketAddr,
    /// Its peer; port 0 if it has none.
    pub(crate) remote: SocketAddr,
    /// State (include/net/tcp_states.h).
    pub(crate) state: u8,
    /// The inode that `/proc/PID/fd` names too.
    pub(crate) inode: u64,
    /// Datagrams dropped because the buffer was full; 0 for TCP, which has no such column.
    pub(crate) drops: u64,
}

/// Those that wait at a port, whatever their address.
pub(crate) fn at_port(network: &str, transport: Transport, port: u16) -> Vec<Entry> {
    let mut entries = table(network, transport);
    entries.retain(|entry| waits(entry, transport) && entry.local.port() == port);
    entries
}

fn waits(entry: &Entry, transport: Transport) -> bool {
    match transport.runs_over_tcp() {
        true => entry.state == TCP_LISTEN,
        false => entry.remote.port() == 0,
    }
}

/// The sockets that receive what is sent to `address` in the network of a process: its id, or
/// `thread-self` for that of the calling thread.
pub(crate) fn receivers(network: &str, transport: Transport, address: SocketAddr) -> Vec<Entry> {
    let mut entries = table(network, transport);
    entries.retain(|entry| {
        let waits = waits(entry, transport);
        waits && covers(entry.local, address)
    });
    entries
}

/// The UDP or TCP table that belongs to the transport, both IP versions, of the network namespace of process
/// `pid` (or `self`).
pub(crate) fn table(pid: &str, transport: Transport) -> Vec<Entry> {
    let name = if transport.runs_over_tcp() { "tcp" } else { "udp" };
    let read = |ending: &str| {
        // A kernel without IPv6 has no table for it.
        fs::read_to_string(format!("/proc/{pid}/net/{name}{ending}")).unwrap_or_default()
    };
    let mut entries = parse(&read(""));
    entries.extend(parse(&read("6")));
    entries
}

/// How long a table that one reader has taken serves other readers of the same network.
pub(crate) const SHARED_FOR: Duration = Duration::from_millis(50);

/// The UDP table of the network of process `pid`, at most [`SHARED_FOR`] old. The servers of a round are
/// watched at the same time, and with hundreds of clients the table costs the kernel a millisecond.
pub(crate) fn recent_udp_table(pid: &str) -> Arc<Vec<Entry>> {
    /// When a table was taken, and the table.
    type Taken = (Instant, Arc<Vec<Entry>>);
    /// The last table of each network namespace, by its name in `/proc`.
    static LAST: Mutex<BTreeMap<PathBuf, Taken>> = Mutex::new(BTreeMap::new());
    let Ok(network) = fs::read_link(format!("/proc/{pid}/ns/net")) else {
        return Arc::new(table(pid, Transport::Udp));
    };
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    last.retain(|_, (taken, _)| taken.elapsed() < SHARED_FOR);
    let (_, table) = last
        .entry(network)
        .or_insert_with(|| (Instant::now(), Arc::new(table(pid, Transport::Udp))));
    Arc::clone(table)
}

/// The inodes of the sockets that a process has open; empty if this user may not see them.
pub(crate) fn inodes_of(pid: u32) -> HashSet<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return HashSet::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let link = fs::read_link(entry.path()).ok()?;
            link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        })
        .collect()
}

/// True if a socket bound to `local` receives what is sent to `address`.
pub(crate) fn covers(local: SocketAddr, address: SocketAddr) -> bool {
    let (bound, asked) = (local.ip().to_canonical(), address.ip().to_canonical());
    let wildcard = match bound {
        // The IPv6 wildcard takes IPv4 too, unless IPV6_V6ONLY: then this names one owner too many, which an
        // error message survives better than one too few.
        IpAddr::V6(ip) => ip.is_unspecified(),
        IpAddr::V4(ip) => ip.is_unspecified() && asked.is_ipv4(),
    };
    local.port() == address.port() && (wildcard || bound == asked)
}

fn parse(text: &str) -> Vec<Entry> {
    text.lines().filter_map(parse_line).collect()
}

/// Fields: `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...`. The drops are the
/// 13th column of the UDP tables.
fn parse_line(line: &str) -> Option<Entry> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    Some(Entry {
        local: parse_address(fields.get(1)?)?,
        remote: parse_address(fields.get(2)?)?,
        state: u8::from_str_radix(fields.get(3)?, 16).ok()?,
        inode: fields.get(9)?.parse().ok()?,
        drops: if fields.len() == 13 { fields[12].parse().ok()? } else { 0 },
    })
}

/// Reads `0100007F:0035`: 32-bit words in the machine's own order of octets, then the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = address.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut octets = [0; 16];
            for at in 0..4 {
                octets[at * 4..at * 4 + 4].copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(octets))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn our_own_sockets_are_found() {
        let name = descendants::name(std::process::id()).unwrap();
        let ours = Some(Owner { process: Some((std::process::id(), name)) });
        for ip in ["127.0.0.1", "::1"] {
            let tcp = TcpListener::bind((ip, 0)).unwrap();
            let udp = UdpSocket::bind((ip, 0)).unwrap();
            assert_eq!(owner(Transport::Tcp, tcp.local_addr().unwrap()), ours);
            assert_eq!(owner(Transport::Udp, udp.local_addr().unwrap()), ours);
        }
        let wildcard = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
        let port = wildcard.local_addr().unwrap().port();
        assert_eq!(owner(Transport::Udp, ([127, 0, 0, 1], port).into()), ours);
    }

    fn entry(local: &&str) -> Entry {
        let remote = "0.0.0.0:0".parse().unwrap();
        Entry { local: local.parse().unwrap(), remote, state: 7, inode: 1, drops: 0 }
    }

    /// E.g. a stub resolver on one address beside a server on all.
    #[test]
    fn the_socket_of_the_address_goes_before_a_wildcard() {
        let cases: [(&[&str], &str, &[&str]); 4] = [
            (&["0.0.0.0:53", "127.0.0.1:53", "[::]:53"], "127.0.0.1:53", &["127.0.0.1:53"]),
            (&["0.0.0.0:53", "[::]:53"], "127.0.0.1:53", &["0.0.0.0:53"]),
            (&["[::]:53", "[::]:53"], "127.0.0.1:53", &["[::]:53", "[::]:53"]),
            (&["[::1]:53", "[::]:53"], "[::1]:53", &["[::1]:53"]),
        ];
        for (bound, address, expected) in cases {
            let entries = bound.iter().map(entry).collect();
            let found = preferred(entries, address.parse().unwrap());
            let found: Vec<String> = found.iter().map(|socket| socket.local.to_string()).collect();
            assert_eq!(found, expected, "{bound:?} for {address}");
        }
    }

    /// As with SO_REUSEPORT: several processes have a socket each.
    #[test]
    fn all_owners_of_sockets_are_found() {
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut entries = table("self", Transport::Udp);
        entries.retain(|entry| {
            sockets.iter().any(|socket| socket.local_addr().unwrap() == entry.local)
        });
        assert_eq!(entries.len(), 2);
        assert_eq!(owners(&entries), [std::process::id()]);
        assert_eq!(owners(&[]), [0; 0]);
    }

    #[test]
    fn nobody_owns_a_released_address() {
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(owner(Transport::Udp, address), None);
    }

    #[test]
    fn lines_of_both_tables_are_read() {
        let udp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                   uid  timeout inode ref pointer drops\n  12: 0100007F:0035 00000000:0000 07 \
                   00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 99";
        let entries = parse(udp);
        assert_eq!(entries.len(), 1);
        assert_eq!((entries[0].inode, entries[0].drops), (4711, 99));
        if cfg!(target_endian = "little") {
            assert_eq!(entries[0].local, "127.0.0.1:53".parse().unwrap());
        }
        let tcp = "   0: 00000000000000000000000001000000:0355 00000000000000000000000000000000:0000 \
                   0A 00000000:00000000 00:00000000 00000000  0 0 815 1 0 100 0 0 10 0";
        let entries = parse(tcp);
        assert_eq!((entries[0].inode, entries[0].state, entries[0].drops), (815, TCP_LISTEN, 0));
        if cfg!(target_endian = "little") {
            assert_eq!(entries[0].local, "[::1]:853".parse().unwrap());
        }
    }

    #[test]
    fn wildcards_cover_their_family() {
        let cases = [
            ("0.0.0.0:53", "127.0.0.1:53", true),
            ("0.0.0.0:53", "[::1]:53", false),
            ("[::]:53", "127.0.0.1:53", true),
            ("[::ffff:127.0.0.1]:53", "127.0.0.1:53", true),
            ("127.0.0.1:53", "127.0.0.2:53", false),
            ("127.0.0.1:53", "127.0.0.1:54", false),
        ];
        for (local, address, expected) in cases {
            let covered = covers(local.parse().unwrap(), address.parse().unwrap());
            assert_eq!(covered, expected, "{local} and {address}");
        }
    }
}
