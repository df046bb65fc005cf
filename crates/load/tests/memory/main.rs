//! What a simulated client costs in memory, counted by the allocator. The server is a process of its
//! own, so that what is counted is the generator's alone; the only test here, because what another
//! test allocates meanwhile would count, too.

#[path = "../streams/servers.rs"]
#[expect(dead_code, reason = "only BIND is needed here")]
mod servers;

use std::alloc::System;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cap::Cap;
use dnslab_load::{LoadSpec, Mode, Progress, TlsSettings, Verification, run};
use dnslab_traffic::{ClientBehaviour, Connect, Pace, QueryList, Rate};
use dnslab_wire::{QueryOptions, Transport};

use crate::servers::Bind;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Octets in use at the ends of intervals of a load, the most of them. Not in the warm-up, in which
/// handshakes are under way.
fn most_octets(spec: &LoadSpec) -> usize {
    let before = ALLOCATOR.allocated();
    let (mut most, mut intervals) = (0, 0);
    let result = run(spec, &AtomicBool::new(false), &mut |progress| {
        if let Progress::Interval(interval) = progress {
            intervals += 1;
            if interval.at_ns >= u64::try_from(spec.warm_up.as_nanos()).unwrap() {
                most = most.max(ALLOCATOR.allocated().saturating_sub(before));
            }
        }
    });
    let result = result.unwrap();
    let counters = &result.measured.counters;
    assert!(counters.outcomes.answered > 0, "{counters:?} {:?}", result.last_connection_end);
    let open: u32 = result.measured.workers.iter().map(|worker| worker.open_clients).sum();
    if matches!(spec.mode, Mode::Closed { .. }) {
        assert_eq!(open, spec.clients, "{:?}", result.last_connection_end);
    }
    assert!(intervals > 5);
    most
}

#[test]
fn a_client_takes_no_more_than_stated() {
    let server = Bind::start("", 100);
    let queries = QueryList::from_text(&b"host1.example A\n"[..], "test", &QueryOptions::default());
    let queries = Arc::new(queries.unwrap());
    let spec = |target: SocketAddr, transport, clients, mode| LoadSpec {
        clients,
        mode,
        duration: Duration::from_millis(500),
        warm_up: Duration::from_secs(3),
        timeout: Duration::from_secs(10),
        tls: Some(
            TlsSettings::new("localhost", &Verification::Authority(server.identity.chain.clone()))
                .unwrap(),
        ),
        ..LoadSpec::new(target, transport, Arc::clone(&queries))
    };
    let closed = || Mode::Closed { outstanding: 1 };
    let open = Mode::Open { rate: Rate::Constant(20.0), pace: Pace::Constant };
    let behaviour = ClientBehaviour {
        connect: Connect::OnDemand,
        idle: Some(Duration::from_millis(100)),
        ..ClientBehaviour::default()
    };
    // Histograms and buffers are the worker's, however many clients there are.
    let workers = most_octets(&LoadSpec {
        warm_up: Duration::from_millis(500),
        ..spec(server.dot, Transport::Dot, 1, closed())
    });
    let not_connected = LoadSpec { behaviour, ..spec(server.dot, Transport::Dot, 100_000, open) };
    let mut figures = vec![format!("a worker with one client: {workers}")];
    for (name, spec, most) in [
        ("not connected", not_connected, 1 << 10),
        ("DoT", spec(server.dot, Transport::Dot, 500, closed()), 24 << 10),
        ("DoH over HTTP/2", spec(server.doh2, Transport::Doh2, 200, closed()), 96 << 10),
    ] {
        let octets = most_octets(&spec).saturating_sub(workers) / spec.clients as usize;
        figures.push(format!("{name}: {octets} of {most} octets for each client"));
        assert!(octets < most, "{figures:#?}");
    }
    println!("{figures:#?}");
}
