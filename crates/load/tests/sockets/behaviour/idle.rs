//! Connections that are closed because they are idle, with limits that differ.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dnslab_load::Job;
use dnslab_traffic::Connect;
use dnslab_wire::{Edns, Transport};

use crate::behaviour::witness::{echo, server};
use crate::behaviour::{go, job, open, queries};

#[test]
fn each_connection_has_the_limit_that_its_server_named() {
    // The server names a time (RFC 7828) for every other connection only. The one with the client's own,
    // longer time is idle first.
    let count = AtomicU64::new(0);
    let (target, _) = server("127.0.0.1", move |_, query| {
        let mut answer = echo(query, 0, 0);
        if count.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            let end = answer.len();
            answer[end - 1] = 2;
            answer[end - 5] += 2;
            answer.extend_from_slice(&[0, 2]);
        }
        answer
    });
    let edns = Edns { keepalive: true, ..Edns::default() };
    let job = job(target, Transport::Tcp).with(|load| {
        load.clients = 2;
        load.workers = Some(1);
        // One query of each client, at 0 and 500 ms.
        open(load, 2.0);
        load.keepalive = true;
        load.duration = Duration::from_millis(1_000);
        load.idle = Some(Duration::from_secs(10));
        load.connect = Connect::OnDemand;
    });
    let result = go(&Job { queries: queries(Some(edns)), ..job });
    let connections = result.measured.counters.connections;
    assert_eq!((connections.opened, connections.closed), (2, 1), "{connections:?}");
}
