//! Cookies (RFC 7873): which ones are kept, and what becomes of queries whose cookie is refused.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use dnslab_test_support::bind_both;
use dnslab_traffic::Truncated;
use dnslab_wire::Transport;

use crate::answers::bind::Bind;
use crate::answers::load::{go_well, job};
use crate::answers::path::{lock, relay};
use crate::answers::signatures::{OF_BIND, OF_LOAD, key, unsigned};

/// Where the COOKIE option of a message with a server cookie of 16 octets is.
fn place_of_cookie(message: &[u8]) -> Option<usize> {
    message.windows(4).position(|window| window == [0, 10, 0, 24])
}

/// The server's half in a message.
fn server_cookie(message: &[u8]) -> Option<&[u8]> {
    place_of_cookie(message).map(|place| &message[place + 12..place + 28])
}

const FORGED: [u8; 16] = *b"a forged cookie!";

fn forge(answer: &[u8]) -> Vec<u8> {
    let mut forged = unsigned(answer);
    let place = place_of_cookie(&forged).expect("BIND gives a cookie to who shows one");
    forged[place + 12..place + 28].copy_from_slice(&FORGED);
    forged
}

/// The cookie in an answer that is not signed well is somebody else's.
#[test]
fn a_forged_cookie_is_not_kept() {
    let server = Bind::start(OF_BIND, "");
    // Before the right answer, and after it.
    let (before, seen_before) =
        relay(server.address, move |answer| vec![forge(answer), answer.to_vec()]);
    let (after, seen_after) =
        relay(server.address, move |answer| vec![answer.to_vec(), forge(answer)]);
    let signed = |address| {
        let job = job(address, Transport::Udp);
        let job = job.with(|load| (load.cookies, load.tsig) = (true, key(OF_LOAD)));
        go_well(&job).measured.counters.answers
    };
    assert!(signed(before).bad_signature > 0);
    assert!(signed(after).duplicate > 0);
    for seen in [seen_before, seen_after] {
        let seen = lock(&seen);
        let cookies: Vec<_> =
            seen.queries.iter().filter_map(|query| server_cookie(query)).collect();
        assert!(cookies.len() > seen.queries.len() / 2, "BIND's cookies are kept");
        assert!(!cookies.contains(&FORGED.as_slice()));
    }
}

/// A server that wants cookies gets one after its first refusal. That ends the query.
#[test]
fn bind_wants_cookies() {
    let server = Bind::start("", "require-server-cookie yes;");
    let result = go_well(&job(server.address, Transport::Udp).with(|load| load.cookies = true));
    let counters = &result.measured.counters;
    assert_eq!(counters.answers.rcodes.get("NOERROR"), Some(&counters.outcomes.answered));
    // The first of each client, as many as are outstanding.
    assert!((2..=8).contains(&counters.asked_again), "{counters:?}");
}

/// Queries as they came, each with its transport.
type Asked = Arc<Mutex<Vec<(Transport, Vec<u8>)>>>;

/// A server that refuses every cookie over UDP, with a new one each time or with none. Over TCP it answers.
fn refuses_cookies(gives_one: bool) -> (SocketAddr, Asked) {
    let (listener, socket) = bind_both([127, 0, 0, 1].into());
    let address = listener.local_addr().unwrap();
    let asked = Asked::default();
    let note = |asked: &Asked, transport, query: &[u8]| {
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push((transport, query.to_vec()));
        asked.len() as u64
    };
    let kept = Arc::clone(&asked);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            let number = note(&kept, Transport::Udp, &buffer[..length]);
            let refusal = refuse(&buffer[..length], gives_one.then_some(number));
            socket.send_to(&refusal, peer).unwrap();
        }
    });
    let kept = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, kept) = (stream.unwrap(), Arc::clone(&kept));
            thread::spawn(move || {
                let mut length = [0; 2];
                while stream.read_exact(&mut length).is_ok() {
                    let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
                    stream.read_exact(&mut query).unwrap();
                    note(&kept, Transport::Tcp, &query);
                    query[2] |= 0x80;
                    stream.write_all(&[length.as_slice(), &query].concat()).ok();
                }
            });
        }
    });
    (address, asked)
}

/// The query sent back with BADCOOKIE and another cookie, or with none.
fn refuse(query: &[u8], cookie: Option<u64>) -> Vec<u8> {
    let question = 12 + query[12..].iter().position(|octet| *octet == 0).unwrap() + 5;
    // After the question and the fixed part of the OPT record.
    let option = question + 11;
    assert_eq!(query[option..option + 2], [0, 10], "the only option is the cookie");
    let mut answer = query[..question].to_vec();
    // Code 23: 7 in the header, 1 in the OPT record.
    (answer[2], answer[3]) = (answer[2] | 0x80, 7);
    answer.extend_from_slice(&[0, 0, 41, 4, 0xd0, 1, 0, 0, 0]);
    let mut options = Vec::new();
    if let Some(cookie) = cookie {
        options.extend_from_slice(&[0, 10, 0, 16]);
        options.extend_from_slice(&query[option + 4..option + 12]);
        options.extend_from_slice(&cookie.to_be_bytes());
    }
    answer.extend_from_slice(&(options.len() as u16).to_be_bytes());
    answer.extend_from_slice(&options);
    answer
}

/// Applies a load to such a server. Each query must be sent `udp` and `tcp` times on average, and every
/// answer must have the code `rcode`.
#[track_caller]
fn check_refused(gives_one: bool, truncated: Truncated, rcode: &str, udp: u64, tcp: u64) {
    let (address, asked) = refuses_cookies(gives_one);
    let job = job(address, Transport::Udp).with(|load| {
        load.cookies = true;
        load.truncated = truncated;
    });
    let counters = go_well(&job).measured.counters;
    let answered = counters.outcomes.answered;
    assert_eq!(counters.answers.rcodes.get(rcode), Some(&answered), "{counters:?}");
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let over = |transport| asked.iter().filter(|(its, _)| *its == transport).count() as u64;
    let seen = (over(Transport::Udp), over(Transport::Tcp));
    assert_eq!(seen, (udp * answered, tcp * answered), "{counters:?}");
    assert_eq!(counters.asked_again, (udp + tcp - 1) * answered, "{counters:?}");
    assert_eq!(counters.answers.truncated, 0, "{counters:?}");
}

/// The second refusal in a row ends it over UDP. TCP is next, if the client asks over TCP (RFC 7873, section
/// 5.3).
#[test]
fn a_cookie_that_is_refused_twice() {
    check_refused(true, Truncated::AskOverTcp, "NOERROR", 2, 1);
    check_refused(true, Truncated::Count, "BADCOOKIE", 2, 0);
}

/// Without another cookie there is nothing to try again with.
#[test]
fn a_refusal_without_a_cookie_is_the_answer() {
    check_refused(false, Truncated::AskOverTcp, "BADCOOKIE", 1, 0);
    check_refused(false, Truncated::Count, "BADCOOKIE", 1, 0);
}
