//! Signed queries, and answers that are or are not signed as they must be.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use dnslab_load::{Job, LoadResult};
use dnslab_wire::{Transport, TsigKey};
use domain::base::{Message, MessageBuilder};
use domain::rdata::tsig::Time48;
use domain::tsig::{Algorithm, Key, ServerTransaction};

use crate::answers::bind::Bind;
use crate::answers::load::{go, go_well, job};
use crate::answers::path::{lock, relay};

/// The key that BIND has, as it reads it.
pub(crate) const OF_BIND: &str =
    "key \"a.key\" { algorithm hmac-sha256; secret \"c2VjcmV0LW9mLXRlc3Q=\"; };";

/// That key, as a load reads it.
pub(crate) const OF_LOAD: &str = "a.key:c2VjcmV0LW9mLXRlc3Q=";

/// Octets of the TSIG record that a signed answer ends with (RFC 8945, section 4.2): the key's name, the
/// fixed part, the algorithm's name, the rest of the fixed data, the signature.
const RECORD: usize = 7 + 10 + 13 + 16 + 32;

pub(crate) fn key(text: &str) -> Option<TsigKey> {
    Some(text.parse().unwrap())
}

pub(crate) fn unsigned(answer: &[u8]) -> Vec<u8> {
    let mut answer = answer[..answer.len() - RECORD].to_vec();
    assert_eq!(answer[10], 0, "more additional records than fit an octet");
    answer[11] -= 1;
    answer
}

fn signed(target: SocketAddr, transport: Transport, text: &str) -> Job {
    job(target, transport).with(|load| load.tsig = key(text))
}

/// Turns the right answer into a forged one.
type Forger = fn(&[u8]) -> Vec<u8>;

/// Its TTL, or its address.
fn changed(answer: &[u8]) -> Vec<u8> {
    let mut answer = answer.to_vec();
    let place = answer.len() - RECORD - 20;
    answer[place] ^= 1;
    answer
}

/// An answer that is not signed well does not count, and the right one after it does (RFC 8945, section 5.4).
#[test]
fn the_wait_goes_on_after_an_answer_that_is_not_signed_well() {
    let server = Bind::start(OF_BIND, "");
    // It has the query's id, and cannot be read as a response.
    let cut = |answer: &[u8]| answer[..5].to_vec();
    let forgers: [Forger; 3] = [unsigned, changed, cut];
    for (forge, expected) in
        forgers.into_iter().zip(["is not signed", "wrong signature", "malformed"])
    {
        let (address, seen) =
            relay(server.address, move |answer| vec![forge(answer), answer.to_vec()]);
        let result = go_well(&signed(address, Transport::Udp, OF_LOAD));
        let answers = &result.measured.counters.answers;
        // The last may be on its way at the end.
        let forged = lock(&seen).forged;
        assert!(answers.bad_signature > 0, "{answers:?}");
        assert_eq!(answers.bad_signature, forged, "{answers:?}");
        assert_eq!((answers.duplicate, answers.unexpected), (0, 0), "{answers:?}");
        assert!(answers.refused_signatures.is_empty(), "{answers:?}");
        let example = result.signature_example.unwrap();
        assert!(example.contains(expected) && example.contains("`a.key`"), "{example}");
    }
}

/// A server that does not sign, and does not say why, has not answered.
#[test]
fn without_a_signature_queries_time_out() {
    let server = Bind::start(OF_BIND, "");
    let (address, _) = relay(server.address, |answer| vec![unsigned(answer)]);
    let job = signed(address, Transport::Udp, OF_LOAD);
    let result = go(&job.with(|load| load.timeout = Duration::from_millis(150)));
    let (outcomes, answers) =
        (&result.measured.counters.outcomes, &result.measured.counters.answers);
    assert_eq!((outcomes.timed_out, outcomes.answered), (outcomes.due, 0), "{outcomes:?}");
    assert!(answers.bad_signature > 0 && answers.late == 0, "{answers:?}");
    assert!(result.signature_example.unwrap().contains("is not signed"));
    assert!(!result.cut_short, "the server refused no signature");
}

/// The result says what the server said of a signature, and the load ended at once.
#[track_caller]
fn check_refused(result: &LoadResult, began: Instant, error: &str, remedy: &str) {
    let (outcomes, answers) =
        (&result.measured.counters.outcomes, &result.measured.counters.answers);
    assert!(outcomes.refused > 0, "{outcomes:?}");
    assert_eq!(outcomes.refused, outcomes.due, "{outcomes:?}");
    assert_eq!(answers.refused_signatures.get(error), Some(&outcomes.refused), "{answers:?}");
    assert_eq!(answers.bad_signature, outcomes.refused, "{answers:?}");
    assert!(answers.rcodes.is_empty(), "{answers:?}");
    let example = result.signature_example.as_ref().unwrap();
    assert!(example.contains(&format!("refused the signature: {error}, ")), "{example}");
    assert!(example.contains(remedy) && example.contains("(key `"), "{example}");
    assert!(result.cut_short, "the load went on");
    assert!(began.elapsed() < LONG / 2, "the load went on");
}

/// Duration of a load that must end long before it.
const LONG: Duration = Duration::from_secs(120);

#[test]
fn bind_refuses_signatures() {
    let server = Bind::start(OF_BIND, "");
    for transport in [Transport::Udp, Transport::Tcp] {
        for (text, error, remedy) in [
            ("another.key:c2VjcmV0LW9mLXRlc3Q=", "BADKEY", "give it one"),
            ("hmac-sha512:a.key:c2VjcmV0LW9mLXRlc3Q=", "BADKEY", "give it one"),
            ("a.key:YW5vdGhlciBzZWNyZXQ=", "BADSIG", "compare the secrets"),
        ] {
            let job = signed(server.address, transport, text);
            let began = Instant::now();
            let result = go(&job.with(|load| load.duration = LONG));
            check_refused(&result, began, error, remedy);
        }
    }
    // The key itself is right.
    for transport in [Transport::Udp, Transport::Tcp] {
        let result = go_well(&signed(server.address, transport, OF_LOAD));
        assert_eq!(result.measured.counters.answers.bad_signature, 0);
        assert_eq!(result.signature_example, None);
    }
}

/// A server whose clock is behind by some minutes refuses with BADTIME.
#[test]
fn a_clock_that_is_off_is_named() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let name = "a.key".parse().unwrap();
    let key_of_server = Key::new(Algorithm::Sha256, b"secret-of-test", name, None, None).unwrap();
    let key_of_server = Arc::new(key_of_server);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            let clock = Time48::from_u64(now - 1_000);
            let mut query = Message::from_octets(buffer[..length].to_vec()).unwrap();
            let refused = ServerTransaction::request(&key_of_server, &mut query, clock);
            let error = refused.expect_err("its clock is too far off");
            let answer = error.build_message(&query, MessageBuilder::new_vec()).unwrap();
            socket.send_to(&answer.finish(), peer).unwrap();
        }
    });
    let began = Instant::now();
    let job = signed(address, Transport::Udp, OF_LOAD);
    let result = go(&job.with(|load| load.duration = LONG));
    check_refused(&result, began, "BADTIME", "compare the clocks");
    let example = result.signature_example.unwrap();
    assert!(example.contains("-1000 s") || example.contains("-1001 s"), "{example}");
}

/// Forged refusals do not end a load that has good answers.
#[test]
fn a_few_refusals_end_no_load() {
    let server = Bind::start(OF_BIND, "");
    let (address, seen) = relay(server.address, |answer| {
        if answer[1] % 16 != 3 {
            return vec![answer.to_vec()];
        }
        // NOTAUTH and BADKEY, without a signature.
        let mut refusal = unsigned(answer);
        refusal[3] = refusal[3] & 0xf0 | 9;
        refusal[11] += 1;
        refusal.extend_from_slice(b"\x01a\x03key\0\0\xfa\0\xff\0\0\0\0\0\x1d\x0bhmac-sha256\0");
        refusal.extend_from_slice(&[0, 0, 0x6b, 0, 0xe9, 0x83, 1, 0x2c, 0, 0]);
        refusal.extend_from_slice(&[answer[0], answer[1], 0, 17, 0, 0]);
        vec![refusal]
    });
    let result = go(&signed(address, Transport::Udp, OF_LOAD));
    let outcomes = &result.measured.counters.outcomes;
    assert!(!result.cut_short && outcomes.answered > outcomes.refused, "{outcomes:?}");
    assert!(outcomes.refused > 0 && lock(&seen).forged == outcomes.refused, "{outcomes:?}");
    assert_eq!(outcomes.answered + outcomes.refused, outcomes.due, "{outcomes:?}");
}
