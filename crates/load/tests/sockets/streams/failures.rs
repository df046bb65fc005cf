//! Servers that break HTTP/2 in the middle. Every query keeps its one outcome, the load goes on, and
//! the last fault is named.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_load::{Job, LoadResult};
use dnslab_transport::http2::Server;
use dnslab_wire::Transport;
use rustls::{ServerConnection, StreamOwned};

use crate::encrypted::{Identity, go, job};

type Tls = StreamOwned<ServerConnection, TcpStream>;

/// A TLS server that does `serve` on each connection, in a thread of its own. `serve` is told the number of
/// the connection.
fn server(
    identity: &Identity,
    alpn: &str,
    serve: impl Fn(&mut Tls, usize) -> io::Result<()> + Send + Sync + 'static,
) -> SocketAddr {
    let config = identity.server_config(alpn);
    let (config, serve) = (Arc::new(config), Arc::new(serve));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (config, serve) = (Arc::clone(&config), Arc::clone(&serve));
            thread::spawn(move || {
                let session = ServerConnection::new(config).unwrap();
                // A client that has gone is none of the test's business.
                let _ = serve(&mut StreamOwned::new(session, stream.unwrap()), number);
            });
        }
    });
    address
}

/// The answer to a query: no records.
fn answer(query: &[u8]) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[2] |= 0x80;
    answer
}

/// Answers so many requests over HTTP/2; false if the client closed before.
fn answer_requests(stream: &mut Tls, mut count: usize) -> io::Result<bool> {
    let (mut http, mut buffer, mut out) = (Server::new("/dns-query"), [0; 16_384], Vec::new());
    while count > 0 {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(false);
        }
        http.receive(&buffer[..read]);
        http.poll(&mut out).map_err(io::Error::other)?;
        while count > 0
            && let Some(request) = http.next_request()
        {
            http.answer(request.id, &answer(&request.message));
            count -= 1;
        }
        http.poll(&mut out).map_err(io::Error::other)?;
        stream.write_all(&std::mem::take(&mut out))?;
    }
    Ok(true)
}

/// What a server does after some answers.
type Fault = fn(&mut Tls) -> io::Result<()>;

/// Applies a load to a server that answers some queries on each connection and then fails like this. More
/// than the first connections must be opened, some queries answered, and those in flight lost with the
/// connection. In the end the fault is named.
fn check(fault: Fault, expected: &[&str]) {
    let identity = Identity::new();
    let target = server(&identity, "h2", move |stream, number| {
        let goes_on = answer_requests(stream, 1 + number * 7 % 40)?;
        if goes_on { fault(stream) } else { Ok(()) }
    });
    let job = Job { expected: None, ..job(target, Transport::Doh2, identity.settings()) };
    let result = go(&job.with(|load| load.timeout = Duration::from_millis(300)));
    check_outcomes(&result);
    let end = result.last_connection_end.unwrap();
    assert!(expected.iter().any(|part| end.contains(part)), "{end}");
}

fn with_one_client(job: Job) -> Job {
    job.with(|load| (load.clients, load.workers) = (1, Some(1)))
}

fn check_outcomes(result: &LoadResult) {
    let counters = &result.measured.counters;
    assert!(counters.outcomes.answered > 0, "{counters:?}");
    assert!(counters.outcomes.connection_lost > 0, "{counters:?}");
    assert!(counters.connections.lost > 3, "{counters:?}");
    // Answers have no records, but they are answers to what was asked.
    assert_eq!((counters.answers.unexpected, counters.answers.duplicate), (0, 0));
}

/// A server that closes with unread queries in its buffer resets the connection. The reset may overtake what
/// it said before.
const CLOSED: &str = "the server closed the connection";

/// A frame of HTTP/2 (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

#[test]
fn octets_that_are_no_http() {
    let garbage: Fault = |stream| stream.write_all(&[0xff; 100]);
    // `:status 200` on a stream that nobody opened, DATA on one, and GOAWAY with an error.
    let answers_nobody: Fault = |stream| stream.write_all(&frame(1, 5, 0x7ff_ffff, &[0x88]));
    let data_for_nobody: Fault = |stream| stream.write_all(&frame(0, 1, 0x7ff_ffff, b"\0\0"));
    check(garbage, &["HTTP/2", CLOSED]);
    check(answers_nobody, &["HTTP/2", CLOSED]);
    check(data_for_nobody, &["HTTP/2", CLOSED]);
}

/// A server that announces its end leaves what it did not look at to be asked again. Nothing is lost,
/// although every connection ends early.
#[test]
fn an_announced_end_loses_nothing() {
    let identity = Identity::new();
    let target = server(&identity, "h2", |stream, _| {
        let (mut http, mut buffer, mut out) = (Server::new("/dns-query"), [0; 16_384], Vec::new());
        for answered in 0.. {
            let read = stream.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            http.receive(&buffer[..read]);
            let ended = http.poll(&mut out).is_err();
            while let Some(request) = http.next_request() {
                http.answer(request.id, &answer(&request.message));
            }
            if answered == 5 {
                http.close();
            }
            let ended = http.poll(&mut out).is_err() || ended;
            stream.write_all(&std::mem::take(&mut out))?;
            if ended {
                return Ok(());
            }
        }
        Ok(())
    });
    let job = job(target, Transport::Doh2, identity.settings());
    let result = go(&Job { expected: None, ..job });
    let counters = &result.measured.counters;
    assert!(counters.connections.lost > 3, "{counters:?}");
    assert_eq!(counters.outcomes.answered, counters.outcomes.due, "{counters:?}");
}

/// A server announces its end while answers are still to come. The client goes on with the next connection at
/// once, and the answers still count.
#[test]
fn an_announced_end_does_not_wait_for_answers() {
    let identity = Identity::new();
    let (accepted, in_vain) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, waited) = (Arc::clone(&accepted), Arc::clone(&in_vain));
    let target = server(&identity, "h2", move |stream, number| {
        counted.fetch_max(number + 1, Ordering::Relaxed);
        let (mut http, mut buffer, mut out) = (Server::new("/dns-query"), [0; 16_384], Vec::new());
        let mut is_announced = false;
        loop {
            let read = stream.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            http.receive(&buffer[..read]);
            http.poll(&mut out).map_err(io::Error::other)?;
            let mut requests = Vec::new();
            while let Some(request) = http.next_request() {
                requests.push((request.id, answer(&request.message)));
            }
            if !requests.is_empty() && !is_announced {
                is_announced = true;
                // All streams until it comes are still answered (RFC 9113, section 6.8).
                let last = u32::MAX >> 1;
                out.extend(frame(7, 0, 0, &[last.to_be_bytes(), [0; 4]].concat()));
                stream.write_all(&std::mem::take(&mut out))?;
                let patience = Instant::now() + Duration::from_millis(500);
                while counted.load(Ordering::Relaxed) <= number + 1 && Instant::now() < patience {
                    thread::sleep(Duration::from_millis(1));
                }
                waited.fetch_add(usize::from(Instant::now() >= patience), Ordering::Relaxed);
            }
            for (request, answer) in requests {
                http.answer(request, &answer);
            }
            http.poll(&mut out).map_err(io::Error::other)?;
            stream.write_all(&std::mem::take(&mut out))?;
        }
    });
    let job = with_one_client(job(target, Transport::Doh2, identity.settings()));
    let result = go(&Job { expected: None, ..job });
    let counters = &result.measured.counters;
    assert_eq!(counters.outcomes.answered, counters.outcomes.due, "{counters:?}");
    assert!(counters.connections.lost > 3, "{counters:?}");
    // The last connection of the load has no successor.
    assert!(in_vain.load(Ordering::Relaxed) <= 1, "{in_vain:?} {counters:?}");
}

/// A server announces its end on every connection before it looks at a query. Clients connect again after 10,
/// 20, 40, 80 and 160 ms, and not at once.
#[test]
fn a_server_that_looks_at_nothing_has_rest() {
    let identity = Identity::new();
    let target = server(&identity, "h2", |stream, _| {
        stream.write_all(&frame(4, 0, 0, &[]))?;
        let mut seen = 0;
        // The preface and a query are longer than this.
        while seen < 100 {
            match stream.read(&mut [0; 16_384])? {
                0 => return Ok(()),
                read => seen += read,
            }
        }
        stream.write_all(&frame(7, 0, 0, &[0; 8]))?;
        while stream.read(&mut [0; 16_384])? > 0 {}
        Ok(())
    });
    let result = go(&with_one_client(job(target, Transport::Doh2, identity.settings())));
    let counters = &result.measured.counters;
    assert_eq!(counters.outcomes.answered, 0, "{counters:?}");
    assert!((2..=12).contains(&counters.connections.attempted), "{counters:?}");
}

/// Requests that the server refuses are outcomes of their own.
#[test]
fn requests_that_are_refused() {
    let identity = Identity::new();
    let target = server(&identity, "h2", |stream, _| {
        // Another path is served, so all is refused with 404.
        let (mut http, mut buffer, mut out) = (Server::new("/other"), [0; 16_384], Vec::new());
        loop {
            let read = stream.read(&mut buffer)?;
            http.receive(&buffer[..read]);
            let ended = http.poll(&mut out).is_err() || read == 0;
            stream.write_all(&std::mem::take(&mut out))?;
            if ended {
                return Ok(());
            }
        }
    });
    let result = go(&job(target, Transport::Doh2, identity.settings()));
    let outcomes = &result.measured.counters.outcomes;
    assert!(outcomes.due > 0);
    assert_eq!(outcomes.refused, outcomes.due, "{outcomes:?}");
}

/// A server that speaks TLS but not HTTP/2 is told apart from one that is broken.
#[test]
fn a_server_without_http() {
    let identity = Identity::new();
    let target = server(&identity, "http/1.1", |stream, _| stream.read(&mut [0; 100]).map(drop));
    let result = go(&job(target, Transport::Doh2, identity.settings()));
    assert_eq!(result.measured.counters.outcomes.answered, 0);
    let end = result.last_connection_end.unwrap();
    assert!(end.contains("NoApplicationProtocol") || end.contains(CLOSED), "{end}");
}
