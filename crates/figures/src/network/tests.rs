//! Texts as kernels write them.

use proptest::prelude::*;

use super::*;

/// The lines that matter, among others, of a Linux 6.1 host.
const SNMP: &str = "\
Ip: Forwarding DefaultTTL InReceives
Ip: 1 64 8400
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens InSegs OutSegs RetransSegs InErrs
Tcp: 1 200 120000 -1 12 900 901 17 0
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors
Udp: 5000 3 40 5001 37 2 0
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors
UdpLite: 0 900 0 0 901 902 0
";
const NETSTAT: &str = "\
TcpExt: SyncookiesSent ListenOverflows ListenDrops
TcpExt: 0 5 6
IpExt: InNoRoutes
IpExt: 0
";
const SNMP6: &str = "\
Ip6InReceives                   \t70
Udp6InDatagrams                 \t12
Udp6NoPorts                     \t100
Udp6RcvbufErrors                \t200
Udp6SndbufErrors                \t300
UdpLite6RcvbufErrors            \t9
";

#[test]
fn counters_are_found_by_name() {
    let zero = NetworkCounters::default();
    let read = NetworkCounters::parse(SNMP, NETSTAT).unwrap();
    let drops = NetworkDrops {
        udp_receive_buffer: 37,
        udp_send_buffer: 2,
        udp_no_port: 3,
        tcp_listen_overflows: 5,
        tcp_retransmitted: 17,
    };
    assert_eq!(read.since(&zero), drops);
    // Another kernel has others before them.
    let longer = SNMP.replace("Udp: InD", "Udp: New InD").replace("Udp: 5000", "Udp: 77 5000");
    assert_eq!(NetworkCounters::parse(&longer, NETSTAT).unwrap(), read);
    let both = read.with_ipv6(SNMP6).unwrap();
    let drops =
        NetworkDrops { udp_receive_buffer: 237, udp_send_buffer: 302, udp_no_port: 103, ..drops };
    assert_eq!(both.since(&zero), drops);
}

#[test]
fn what_was_before_does_not_count() {
    let before = NetworkCounters::parse(SNMP, NETSTAT).unwrap();
    assert_eq!(before.since(&before), NetworkDrops::default());
    let later = SNMP.replace(" 5001 37 ", " 6001 47 ").replace(" 901 17 ", " 901 18 ");
    let after = NetworkCounters::parse(&later, NETSTAT).unwrap();
    let drops =
        NetworkDrops { udp_receive_buffer: 10, tcp_retransmitted: 1, ..NetworkDrops::default() };
    assert_eq!(after.since(&before), drops);
    // Counters do not fall, unless they are those of another namespace.
    assert_eq!(before.since(&after), NetworkDrops::default());
}

#[track_caller]
fn check_error(snmp: &str, netstat: &str, expected: &str) {
    let error = NetworkCounters::parse(snmp, netstat).unwrap_err();
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn what_is_missing_is_named() {
    check_error("", NETSTAT, "/proc/net/snmp has no counter `Udp: RcvbufErrors`");
    check_error(SNMP, "", "/proc/net/netstat has no counter `TcpExt: ListenOverflows`");
    let renamed = SNMP.replace(" RetransSegs", " Retransmitted");
    check_error(&renamed, NETSTAT, "/proc/net/snmp has no counter `Tcp: RetransSegs`");
    // The names of the counters without their values, and a line that was cut off.
    check_error(&SNMP.replace("Udp: 5000", "Cut: 5000"), NETSTAT, "/proc/net/snmp has no counter");
    check_error(&SNMP.replace(" 5001 37 2 0", ""), NETSTAT, "/proc/net/snmp has no counter");
    let text = SNMP.replace(" 37 2 0", " many 2 0");
    check_error(&text, NETSTAT, "/proc/net/snmp: `Udp: RcvbufErrors` is `many`");
    let read = NetworkCounters::parse(SNMP, NETSTAT).unwrap();
    let error = read.with_ipv6("Udp6NoPorts 1\n").unwrap_err();
    assert!(error.to_string().starts_with("/proc/net/snmp6 has no counter `Udp6RcvbufErrors`"));
}

#[test]
fn the_files_of_this_machine_are_read() {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/net/{name}"));
    let (snmp, netstat) = (read("snmp").unwrap(), read("netstat").unwrap());
    let counters = NetworkCounters::parse(&snmp, &netstat).unwrap();
    if let Ok(snmp6) = read("snmp6") {
        counters.with_ipv6(&snmp6).unwrap();
    }
}

proptest! {
    /// Whatever is there, it is read or refused.
    #[test]
    fn no_text_makes_it_panic(snmp in "(Udp|Tcp|TcpExt|[a-z]|:| |\n|[0-9-]|RcvbufErrors){0,60}") {
        NetworkCounters::parse(&snmp, &snmp).ok();
        NetworkCounters::default().with_ipv6(&snmp).ok();
    }
}
