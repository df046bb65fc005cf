//! The life of connections: quotas of queries, idleness, and what is counted of it while the server runs.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use dnslab_responder::Counters;
use dnslab_transport::http2::Client;
use dnslab_transport::{Exchange, Method, Target};
use dnslab_wire::push_frame;
use domain::base::iana::Rtype;

use crate::running::{PATIENCE, Running, exchange, query, read_message};

fn with_quota(queries: u64, delay: &str, loss: &str) -> Running {
    Running::start(|config| {
        config.queries_per_connection = NonZeroU64::new(queries);
        config.program.delay = delay.parse().unwrap();
        config.program.loss = loss.parse().unwrap();
    })
}

/// Accepted connections are open, or have ended in one of five ways. The queries of each are counted.
#[track_caller]
fn check_sums(counters: &Counters) {
    let life = &counters.connections;
    let ended = life.closed_by_quota + life.closed_by_client + life.timed_out + life.broken;
    assert_eq!(life.accepted, life.open + ended + life.failed_handshakes, "{counters:#?}");
    assert_eq!(life.accepted, life.queries.connections, "{counters:#?}");
    assert_eq!(life.queries.powers.iter().sum::<u64>(), life.queries.connections);
}

#[track_caller]
fn until(server: &Running, is_so: impl Fn(&Counters) -> bool) -> Counters {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let counters = server.counters.read(PATIENCE);
        check_sums(&counters);
        if is_so(&counters) {
            return counters;
        }
        assert!(Instant::now() < give_up, "{counters:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends five queries at once on a stream whose quota is three. Three must be answered, then the stream must
/// end without a loss: a reset would be an error of the reader.
fn five_of_three(stream: &mut (impl Read + Write)) {
    let mut frames = Vec::new();
    for id in 1..=5 {
        push_frame(&mut frames, &query(id, &format!("host{id}.example."), Rtype::A));
    }
    stream.write_all(&frames).unwrap();
    stream.flush().unwrap();
    let mut answered: Vec<_> = (0..3).map(|_| read_message(stream)[1]).collect();
    answered.sort();
    assert_eq!(answered, [1, 2, 3]);
    assert_eq!(stream.read(&mut [0; 16]).unwrap(), 0);
}

#[test]
fn a_quota_ends_a_stream_after_its_answers() {
    for delay in ["none", "uniform:1ms..20ms"] {
        let server = with_quota(3, delay, "0");
        let mut tcp = server.tcp();
        five_of_three(&mut tcp);
        // What is sent now is not read, and does no harm.
        tcp.write_all(&[0; 100]).unwrap();
        drop(tcp);
        five_of_three(&mut server.tls(server.dot_address, b"dot"));
        // A client that asks less often is not touched.
        exchange(&mut server.tcp(), &query(1, "host1.example.", Rtype::A));
        let counters = until(&server, |counters| counters.connections.open == 0);
        let life = &counters.connections;
        assert_eq!((life.closed_by_quota, life.closed_by_client), (2, 1));
        let queries = &life.queries;
        assert_eq!((queries.sum, queries.least, queries.most), (7, 1, 3));
        assert_eq!(queries.powers[..3], [0, 1, 2]);
        assert_eq!(server.stop().connections, counters.connections);
    }
}

#[test]
fn a_client_that_stays_is_cut() {
    let server = with_quota(1, "none", "0");
    let mut tcp = server.tcp();
    exchange(&mut tcp, &query(1, "www.example.", Rtype::A));
    assert_eq!(tcp.read(&mut [0; 16]).unwrap(), 0);
    let counters = until(&server, |counters| counters.connections.closed_by_quota == 1);
    assert_eq!((counters.connections.open, counters.connections.timed_out), (0, 0));
}

#[test]
fn lost_queries_count() {
    let server = with_quota(2, "none", "1");
    let mut tcp = server.tcp();
    for id in [1, 2] {
        let mut frame = Vec::new();
        push_frame(&mut frame, &query(id, "www.example.", Rtype::A));
        tcp.write_all(&frame).unwrap();
    }
    assert_eq!(tcp.read(&mut [0; 16]).unwrap(), 0);
    drop(tcp);
    let counters = until(&server, |counters| counters.connections.closed_by_quota == 1);
    assert_eq!((counters.tcp.lost_by_program, counters.connections.queries.sum), (2, 2));
}

#[test]
fn a_quota_ends_an_http_session() {
    let server = with_quota(3, "uniform:1ms..5ms", "0");
    let mut stream = server.tls(server.doh2_address, b"h2");
    let target = Target {
        authority: "localhost".to_owned(),
        path: "/dns-query".to_owned(),
        method: Method::Post,
    };
    let mut http = Client::new(&target).unwrap();
    for id in 1..=5 {
        assert!(http.send(id, &query(id, &format!("host{id}.example."), Rtype::A)));
    }
    let (mut out, mut answered, mut buffer) = (Vec::new(), Vec::new(), [0; 16_384]);
    loop {
        let polled = http.poll(&mut out, &mut |exchange| match exchange {
            Exchange::Answer { request, .. } => answered.push(request),
            other => panic!("{other:?}"),
        });
        // The server may have closed its side by then.
        let _ = stream.write_all(&out).and_then(|()| stream.flush());
        out.clear();
        let count = stream.read(&mut buffer).unwrap();
        if count == 0 {
            break;
        }
        polled.unwrap();
        http.receive(&buffer[..count]);
    }
    // The client sent all five before it could know.
    answered.sort();
    assert_eq!(answered, [1, 2, 3, 4, 5]);
    assert!(!http.send(6, &query(6, "www.example.", Rtype::A)), "no GOAWAY came");
    drop(stream);
    let counters = until(&server, |counters| counters.connections.open == 0);
    let life = &counters.connections;
    assert_eq!((life.closed_by_quota, life.queries.sum, counters.doh2.answered), (1, 5, 5));
}

#[test]
fn what_runs_can_be_watched() {
    let server = Running::start(|config| {
        config.threads = 2.try_into().unwrap();
        config.idle_timeout = Duration::from_millis(300);
    });
    assert_eq!(server.counters.read(PATIENCE), Counters::default());
    let (mut first, mut second) = (server.tcp(), server.tcp());
    for id in [1, 2, 3] {
        exchange(&mut first, &query(id, "www.example.", Rtype::A));
    }
    exchange(&mut second, &query(1, "www.example.", Rtype::A));
    let counters = server.counters.read(PATIENCE);
    check_sums(&counters);
    let queries = counters.connections.queries;
    assert_eq!((counters.tcp.received, counters.tcp.answered), (4, 4));
    // On a machine that is this slow the connections may be idle already.
    if counters.connections.timed_out == 0 {
        assert_eq!(counters.connections.open, 2);
    }
    assert_eq!((queries.connections, queries.sum, queries.least, queries.most), (2, 4, 1, 3));
    let counters = until(&server, |counters| counters.connections.timed_out == 2);
    assert_eq!(counters.connections.open, 0);
    // A client that closes its side first, one that speaks no DNS, and one that speaks no TLS.
    second = server.tcp();
    second.shutdown(Shutdown::Both).unwrap();
    server.tcp().write_all(&[0, 2, 0, 0]).unwrap();
    let mut third = crate::running::connect(server.dot_address);
    third.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let counters = until(&server, |counters| counters.connections.failed_handshakes == 1);
    let life = counters.connections;
    assert_eq!(life.accepted, 5, "{life:?}");
    let counters = until(&server, |counters| counters.connections.open == 0);
    let life = counters.connections;
    assert_eq!(life.closed_by_client + life.broken + life.timed_out, 4, "{life:?}");
    let (handle, last) = (server.counters.clone(), server.stop());
    assert_eq!(handle.read(Duration::ZERO), last);
}
