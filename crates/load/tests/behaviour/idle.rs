//! Connections that are closed because they are idle, with limits that differ.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dnslab_load::LoadSpec;
use dnslab_traffic::{ClientBehaviour, Connect};
use dnslab_wire::{Edns, Transport};

use crate::witness::{echo, server};
use crate::{go, open, queries, spec};

#[test]
fn each_connection_has_the_limit_that_its_server_named() {
    // RFC 7828: the server names a time for every other connection only. That with the client's own,
    // longer one is idle before.
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
    let result = go(&LoadSpec {
        clients: 2,
        workers: 1,
        // One query of each client, at 0 and 500 ms.
        mode: open(2.0),
        keepalive: true,
        queries: queries(Some(edns)),
        duration: Duration::from_millis(1_000),
        behaviour: ClientBehaviour {
            idle: Some(Duration::from_secs(10)),
            connect: Connect::OnDemand,
            ..ClientBehaviour::default()
        },
        ..spec(target, Transport::Tcp)
    });
    let connections = result.measured.counters.connections;
    assert_eq!((connections.opened, connections.closed), (2, 1), "{connections:?}");
}
