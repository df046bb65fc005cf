//! A server that refuses requests with a status of HTTP: those in early data, which it does not want to look
//! at (RFC 8470, section 5.2), or all after a while.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use dnslab_load::{AskError, Asker, Job, Refusal, ask};
use dnslab_settings::Load;
use dnslab_transport::http2::Server;
use dnslab_wire::{Method, Transport};
use rustls::ServerConnection;

use crate::encrypted::{Identity, go, go_well, job, with_method, with_quota};

/// How often requests were answered, and refused.
#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
}

/// Answers so many requests over HTTP/2, and then refuses them with this status. Requests that came as early data
/// are refused with 425.
fn server(identity: &Identity, most: u64, status: u16) -> (SocketAddr, Arc<Counts>) {
    let mut config = identity.server_config("h2");
    config.max_early_data_size = 16_384;
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, counts) = (listener.local_addr().unwrap(), Arc::<Counts>::default());
    let counted = Arc::clone(&counts);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let counts = Arc::clone(&counted);
            // A client that has gone is none of the test's business.
            thread::spawn(move || drop(serve(session, stream.unwrap(), (most, status), &counts)));
        }
    });
    (address, counts)
}

fn serve(
    mut tls: ServerConnection,
    mut socket: TcpStream,
    (most, status): (u64, u16),
    counts: &Counts,
) -> io::Result<()> {
    let (mut http, mut out) = (Server::new("/dns-query"), Vec::new());
    while tls.read_tls(&mut socket)? > 0 {
        let state = tls.process_new_packets().map_err(io::Error::other)?;
        let mut early = Vec::new();
        if let Some(mut reader) = tls.early_data() {
            reader.read_to_end(&mut early)?;
        }
        http.receive(&early);
        http.poll(&mut out).map_err(io::Error::other)?;
        while let Some(request) = http.next_request() {
            counts.refused.fetch_add(1, Ordering::Relaxed);
            http.refuse(request.id, 425);
        }
        let mut plain = vec![0; state.plaintext_bytes_to_read()];
        tls.reader().read_exact(&mut plain)?;
        http.receive(&plain);
        http.poll(&mut out).map_err(io::Error::other)?;
        while let Some(request) = http.next_request() {
            if counts.answered.load(Ordering::Relaxed) >= most {
                counts.refused.fetch_add(1, Ordering::Relaxed);
                http.refuse(request.id, status);
                continue;
            }
            counts.answered.fetch_add(1, Ordering::Relaxed);
            let mut answer = request.message.to_vec();
            answer[2] |= 0x80;
            http.answer(request.id, &answer);
        }
        http.poll(&mut out).map_err(io::Error::other)?;
        tls.writer().write_all(&std::mem::take(&mut out))?;
        while tls.wants_write() {
            tls.write_tls(&mut socket)?;
        }
    }
    Ok(())
}

/// What is refused with 425 is asked again after the handshake, and not refused.
#[test]
fn requests_that_were_too_early() {
    let identity = Identity::new();
    let (target, counts) = server(&identity, u64::MAX, 503);
    let tls = identity.settings().of_load(&Load { early_data: true, ..Load::default() });
    let job = with_quota(job(target, Transport::Doh2, tls), 40);
    let result = go_well(&with_method(Job { expected: None, ..job }, Method::Get));
    let counters = &result.measured.counters;
    let refused = counts.refused.load(Ordering::Relaxed);
    assert!(refused > 0 && counters.connections.early_data > 0, "{counters:?}");
    assert_eq!(counters.outcomes.refused, 0, "{counters:?}");
    assert_eq!(counters.asked_again, refused, "{counters:?}");
    assert_eq!(counters.connections.not_processed, 0, "{counters:?}");
}

/// The result has their name and their time.
#[test]
fn errors_that_begin_in_the_middle() {
    let identity = Identity::new();
    let (target, counts) = server(&identity, 500, 503);
    let job = job(target, Transport::Doh2, identity.settings());
    let result = go(&Job { expected: None, ..job });
    let counters = &result.measured.counters;
    let (outcomes, refusals) = (&counters.outcomes, &counters.http_refusals);
    assert_eq!(outcomes.answered, counts.answered.load(Ordering::Relaxed), "{counters:?}");
    assert_eq!(outcomes.refused, counts.refused.load(Ordering::Relaxed), "{counters:?}");
    assert_eq!(outcomes.answered + outcomes.refused, outcomes.due, "{counters:?}");
    assert_eq!(refusals.keys().collect::<Vec<_>>(), [&503], "{counters:?}");
    assert_eq!(refusals[&503].count, outcomes.refused, "{counters:?}");
    // The first of them came when the server had answered others.
    let fastest = result.measured.service_time.min_ns().unwrap();
    assert!(refusals[&503].first_ns > fastest && outcomes.answered >= 500, "{counters:?}");
    assert_eq!(counters.connections.lost, 0, "{counters:?}");
}

/// Whoever asks before a load is told the status, so that the hint can fit it.
#[test]
fn a_first_query_that_is_refused_has_its_status() {
    let identity = Identity::new();
    for status in [301, 403, 404, 405, 415, 429, 503] {
        let (target, _) = server(&identity, 0, status);
        let job = job(target, Transport::Doh2, identity.settings());
        let asker = Asker { client: 0, transport: Transport::Doh2, server: 0 };
        let error = ask(&job, asker, job.queries.get(0), Duration::from_secs(5)).unwrap_err();
        let AskError::Refused { refusal, .. } = error else { panic!("{error}") };
        assert_eq!(refusal, Refusal::Status(status));
    }
}
