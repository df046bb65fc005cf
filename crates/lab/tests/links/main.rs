//! Whether links between hosts keep their settings. Apart from all other tests: whatever else takes the CPUs
//! makes packets late.

#[path = "../lab/chain.rs"]
mod chain;
#[path = "../lab/program.rs"]
mod program;

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_lab::hosts::{Hosts, LinkSettings};
use dnslab_lab::network::Visit;

use crate::chain::{chain, link_cpu, socket};
use crate::program::guard;

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns how many datagrams it received until it was told to stop.
fn echo(socket: UdpSocket, stop: Arc<AtomicBool>) -> thread::JoinHandle<u64> {
    thread::spawn(move || {
        let (mut buffer, mut received) = ([0; 2_000], 0);
        while !stop.load(Ordering::Relaxed) {
            if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                received += 1;
                socket.send_to(&buffer[..length], from).unwrap();
            }
        }
        received
    })
}

/// Round-trip times, ascending, of `count` datagrams sent `apart`, and how many arrived at the far end.
fn round_trips(hosts: &Hosts, count: u32, apart: Duration) -> (Vec<Duration>, u64) {
    let server = socket(hosts, "server");
    let address: SocketAddr = server.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let echoing = echo(server, Arc::clone(&stop));
    let client = socket(hosts, "client");
    client.connect(address).unwrap();
    let sender = client.try_clone().unwrap();
    let sent_at = thread::spawn(move || {
        let mut sent_at = Vec::new();
        for number in 0..count {
            sent_at.push(Instant::now());
            sender.send(&number.to_be_bytes()).unwrap();
            thread::sleep(apart);
        }
        sent_at
    });
    let (mut buffer, mut came) = ([0; 4], Vec::new());
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_secs(1) || !sent_at.is_finished() {
        if client.recv(&mut buffer).is_ok() {
            last = Instant::now();
            came.push((u32::from_be_bytes(buffer), last));
        }
    }
    stop.store(true, Ordering::Relaxed);
    let sent_at = sent_at.join().unwrap();
    let trip = |(number, at): (u32, Instant)| at - sent_at[number as usize];
    let mut trips: Vec<Duration> = came.into_iter().map(trip).collect();
    trips.sort();
    (trips, echoing.join().unwrap())
}

fn two_hundred_trips(folder: &Path, link: LinkSettings, ipv6: bool) -> Vec<Duration> {
    let hosts = chain(folder, link, ipv6);
    let (trips, _) = round_trips(&hosts, 200, Duration::from_millis(3));
    assert_eq!(trips.len(), 200);
    trips
}

#[test]
fn a_link_has_the_delay_that_it_promises() {
    let _alone = alone();
    for (delay_ms, ipv6) in [(2, false), (10, true), (25, false)] {
        let folder = tempfile::tempdir().unwrap();
        let link = LinkSettings { delay_ns: delay_ms * 1_000_000, ..LinkSettings::default() };
        let trips = |link| two_hundred_trips(folder.path(), link, ipv6);
        // What the hosts take for themselves is no delay of the link: the minimum and the first quartile.
        let hosts = trips(LinkSettings::default());
        let promised = Duration::from_millis(2 * delay_ms);
        // Both ways: twice 5 % and 100 us. A busy machine makes some packets later and none earlier, so the
        // first quartile is tested, and one of three attempts is enough. A link that is late by itself is
        // late each time.
        let most = promised.mul_f64(1.05) + Duration::from_micros(200) + hosts[50];
        let is_kept = (0..3).any(|_| {
            let trips = trips(link.clone());
            let (first, quarter) = (trips[0], trips[50]);
            println!("{delay_ms} ms: {first:?} to {quarter:?} of at most {most:?} both ways");
            assert!(first >= promised + hosts[0], "{first:?} is earlier than {promised:?}");
            quarter <= most
        });
        assert!(is_kept, "a quarter of the packets is later than {most:?}");
    }
}

#[test]
fn a_link_loses_the_share_that_it_promises() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let link = LinkSettings { loss: 0.1, ..LinkSettings::default() };
    let hosts = chain(folder.path(), link, false);
    assert_eq!(hosts.links()[0].carrier, if has_netem() { "netem" } else { "user space" });
    let (trips, arrived) = round_trips(&hosts, 4_000, Duration::from_micros(100));
    // Five standard deviations of a binomial distribution, each way.
    for (all, lost) in [(4_000.0, 4_000 - arrived), (arrived as f64, arrived - trips.len() as u64)]
    {
        let bound = 5.0 * f64::sqrt(all * 0.1 * 0.9);
        assert!((lost as f64 - all * 0.1).abs() < bound, "{lost} of {all} are lost, not 10 %");
    }
}

#[test]
fn a_link_in_user_space_stays_on_its_cpus() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let link = LinkSettings { delay_ns: 1_000_000, ..LinkSettings::default() };
    let hosts = chain(folder.path(), link, false);
    let [emulated, plain] = hosts.links().try_into().unwrap();
    assert!(plain.cpus.is_empty(), "{plain:?}");
    if has_netem() {
        assert!(emulated.cpus.is_empty(), "{emulated:?}");
        return;
    }
    assert_eq!(emulated.cpus, [link_cpu()]);
    let network = hosts.network("client").unwrap().display().to_string();
    assert_eq!(cpus_of_the_process_with(&network), link_cpu().to_string());
}

/// The CPUs (proc_pid_status(5)) of the process that carries packets and has `word` in its command line.
fn cpus_of_the_process_with(word: &str) -> String {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<_> = command.split(|octet| *octet == 0).collect();
        // Its last words: the task and its specification. (Those of its guard are escaped.)
        let is_it = matches!(words.as_slice(), [.., b"link", spec, _]
            if String::from_utf8_lossy(spec).contains(word));
        if is_it {
            found.push(fs::read_to_string(entry.path().join("status")).unwrap());
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
    let line = found[0].lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

/// Tried on the loopback of a host of our own.
fn has_netem() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let hosts = Hosts::make(&["client"], &[], false, 1, &[], folder.path(), &guard()).unwrap();
    let _visit = Visit::to(hosts.network("client").unwrap()).unwrap();
    let mut tc = std::process::Command::new("tc");
    tc.args(["qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]);
    tc.output().unwrap().status.success()
}

#[test]
fn a_link_has_the_rate_that_it_promises() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    // 8 Mbit/s: 1,228 octets (28 of headers) take 1.228 ms.
    let link = LinkSettings { rate_bps: Some(8_000_000), ..LinkSettings::default() };
    let hosts = chain(folder.path(), link, false);
    let (client, server) = (socket(&hosts, "client"), socket(&hosts, "server"));
    client.connect(server.local_addr().unwrap()).unwrap();
    // All that is sent, at 2,304 octets a datagram: on a busy machine this thread reads when it can.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&server, 500 * 2_304).unwrap();
    for _ in 0..500 {
        client.send(&[0; 1_200]).unwrap();
    }
    let mut buffer = [0; 2_000];
    server.recv(&mut buffer).unwrap();
    let began = Instant::now();
    let mut count = 0;
    let mut last = began;
    while server.recv(&mut buffer).is_ok() {
        count += 1;
        last = Instant::now();
    }
    assert_eq!(count, 499);
    let took = last - began;
    let promised = Duration::from_micros(1_228) * 499;
    println!("{took:?} for {promised:?}");
    // The sender may have begun a moment before the first datagram was received here.
    assert!(took > promised.mul_f64(0.9), "{took:?} is less than {promised:?}");
}
