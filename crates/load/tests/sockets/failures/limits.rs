//! Limits of the host: ports and file descriptors that run out, before the load and in the middle.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_load::{LoadError, LoadResult, run};
use dnslab_settings::Load;
use dnslab_traffic::Connect;
use dnslab_wire::Transport;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failures::applied::{apply, apply_while, both, exact_quota, job, last_end, open};
use crate::failures::process::{IN_NAMESPACE, Serving, alone, role, until_input_ends};
use crate::failures::responder::Responder;

fn limit_files(count: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(count), maximum }).unwrap();
}

fn serve() {
    let server = Responder::start(|_| {});
    println!("serving: {}", server.address);
    until_input_ends();
}

/// A hundred clients that open a connection for a few queries, when one is due.
fn short_lived(load: &mut Load) {
    load.clients = 100;
    open(load, 1_000.0);
    exact_quota(load, 3);
    load.connect = Connect::OnDemand;
}

#[test]
fn ports_run_out() {
    // A namespace with twenty ports to choose from.
    let shell = "ip link set lo up && echo 40000 40019 >/proc/sys/net/ipv4/ip_local_port_range && \
                 exec \"$0\" \"$@\"";
    alone(
        &[&IN_NAMESPACE[..], &["sh", "-c", shell]].concat(),
        "failures::limits::ports_run_out",
        || {
            // Closed connections keep their ports towards one address.
            let addresses = ["127.0.0.1:5300", "127.0.0.2:5300"].map(|text| text.parse().unwrap());
            let _server = Responder::start(|config| config.listen = addresses.into());
            for transport in [Transport::Udp, Transport::Tcp] {
                for (target, is_open) in addresses.into_iter().zip([false, true]) {
                    let result = apply(&job(target, transport).with(|load| {
                        load.clients = 50;
                        if is_open {
                            open(load, 2_000.0);
                        }
                        load.duration = Duration::from_secs(1);
                    }));
                    let counters = both(&result);
                    let context = format!("{transport}: {counters:?} {}", last_end(&result));
                    assert!(counters.outcomes.answered > 0, "{context}");
                    assert!(last_end(&result).contains("has no port left"), "{context}");
                    if is_open {
                        // Thirty of fifty clients have no port.
                        let share =
                            counters.outcomes.not_sent as f64 / counters.outcomes.due as f64;
                        assert!((0.5..0.8).contains(&share), "{share} {context}");
                    }
                    if transport == Transport::Tcp {
                        assert!(counters.connections.failed >= 30, "{context}");
                        assert!(counters.connections.opened >= 20, "{context}");
                    }
                }
            }
        },
    );
}

#[test]
fn a_source_address_that_is_not_ours() {
    let server = Responder::start(|_| {});
    for transport in [Transport::Udp, Transport::Tcp] {
        let result = apply(&job(server.address, transport).with(|load| {
            load.sources = Some("198.51.100.1-198.51.100.4".parse().unwrap());
            open(load, 400.0);
        }));
        let outcomes = both(&result).outcomes;
        assert_eq!(outcomes.not_sent, outcomes.due, "{transport}");
        assert!(last_end(&result).contains("is not this host's"), "{}", last_end(&result));
    }
}

#[test]
fn too_few_descriptors_are_found_out_before_the_start() {
    alone(&[], "failures::limits::too_few_descriptors_are_found_out_before_the_start", || {
        let server = Responder::start(|_| {});
        limit_files(200);
        for transport in [Transport::Udp, Transport::Tcp] {
            let job = job(server.address, transport);
            let with = |clients| job.clone().with(|load| load.clients = clients);
            let error = run(&with(150), &AtomicBool::new(false), &mut |_| {}).unwrap_err();
            let LoadError::TooManySockets { sockets, needed, limit } = error else {
                panic!("{error}")
            };
            assert_eq!((sockets, needed, limit), (150, 214, 200));
            // The server's connections are in this process too.
            let result = apply(&with(60));
            assert!(both(&result).outcomes.answered > 0);
        }
    });
}

/// Applies a load; in its middle the process has no descriptor left for half a second.
fn without_descriptors_for_a_while(transport: Transport, target: SocketAddr) -> LoadResult {
    let mut taken: Vec<File> = Vec::new();
    let mut calls = 0;
    let job = job(target, transport).with(|load| {
        short_lived(load);
        load.duration = Duration::from_secs(4);
        load.timeout = Duration::from_millis(400);
    });
    apply_while(&job, &mut || {
        calls += 1;
        // The observer is called every 50 ms, and at each interval's end. While connections come and go,
        // descriptors are taken as they become free.
        if (20..40).contains(&calls) {
            while let Ok(file) = File::open("/dev/null") {
                taken.push(file);
            }
        } else {
            taken.clear();
        }
    })
}

#[test]
fn descriptors_run_out_in_the_middle() {
    const NAME: &str = "failures::limits::descriptors_run_out_in_the_middle";
    if role().as_deref() == Some("serve") {
        return serve();
    }
    alone(&[], NAME, || {
        let server = Serving::start(&[], NAME);
        let target = server.words[0].parse().unwrap();
        limit_files(400);
        for transport in [Transport::Udp, Transport::Tcp] {
            let result = without_descriptors_for_a_while(transport, target);
            let counters = both(&result);
            let context = format!("{transport}: {counters:?} {}", last_end(&result));
            assert!(last_end(&result).contains("no file descriptor is left"), "{context}");
            assert!(counters.outcomes.not_sent > 0, "{context}");
            if transport == Transport::Tcp {
                assert!(counters.connections.failed > 0, "{context}");
            }
            let intervals = &result.measured.intervals;
            let answered: Vec<u64> = intervals.iter().map(|interval| interval.answered).collect();
            let last: u64 = answered.iter().rev().take(8).sum();
            assert!(last > 0, "it did not go on: {answered:?} {context}");
        }
    });
}

#[test]
fn the_limit_falls_in_the_middle() {
    const NAME: &str = "failures::limits::the_limit_falls_in_the_middle";
    if role().as_deref() == Some("serve") {
        return serve();
    }
    alone(&[], NAME, || {
        let server = Serving::start(&[], NAME);
        let target = server.words[0].parse().unwrap();
        for transport in [Transport::Udp, Transport::Tcp] {
            limit_files(400);
            let mut calls = 0;
            let job = job(target, transport).with(|load| {
                short_lived(load);
                load.duration = Duration::from_secs(1);
            });
            let result = apply_while(&job, &mut || {
                calls += 1;
                if calls == 5 {
                    limit_files(16);
                }
            });
            let counters = both(&result);
            let context = format!("{transport}: {counters:?} {}", last_end(&result));
            assert!(counters.outcomes.answered > 0, "{context}");
            assert!(counters.outcomes.not_sent > 0, "{context}");
            assert!(last_end(&result).contains("no file descriptor is left"), "{context}");
        }
    });
}
