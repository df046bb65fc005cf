use std::str::FromStr as _;
use std::sync::Arc;

use super::*;
use crate::{Additions, Edns, Query, QueryOptions};
use domain::base::iana::{Class, Rcode, Rtype};
use domain::base::{Message, MessageBuilder, Name, Ttl};
use domain::rdata::A;
use domain::rdata::tsig::Time48;
use domain::tsig::{Key, ServerTransaction};

/// The key that BIND had for the exchanges below.
const KEY: &str = "hmac-sha256:loadgen.example:bGFib3JhdG9yeSBzZWNyZXQgb2YgMzIgb2N0ZXRzISE=";

/// When they took place, seconds since 1970.
const NOW: u64 = 1_795_221_891;

/// Signed queries for `www.example. A` and the answers of BIND 9.18.49. A separate script made and signed the
/// queries, from the text of RFC 8945, section 4.3.
const GOOD_QUERY: &str = "12340000000100000000000203777777076578616d706c65000001000100002904d0000000000000076c6f616467656e076578616d706c650000fa00ff00000000003d0b686d61632d7368613235360000006b00e983012c00203874f48957f9e7114f41a9ab20c4da98f813cf9aaa2e47aee70582f05f4f8e30123400000000";
const GOOD_RESPONSE: &str = "12348400000100010001000303777777076578616d706c650000010001c00c00010001000000050004c0000201c01000020001000000050005026e73c010c03900010001000000050004c000023500002904d0000000000000076c6f616467656e076578616d706c650000fa00ff00000000003d0b686d61632d7368613235360000006b00e983012c0020a42590f052b1d0f2220acd8a4c0b59709477945acd5a6d02190129ed7f1335c8123400000000";
/// To a query with another secret.
const BAD_SIGNATURE_RESPONSE: &str = "12358009000100000000000203777777076578616d706c65000001000100002904d0000000000000076c6f616467656e076578616d706c650000fa00ff00000000001d0b686d61632d7368613235360000006b00e983012c0000123500100000";
/// To a query with a key of the name `other.example`.
const BAD_KEY_RESPONSE: &str = "12368009000100000000000203777777076578616d706c65000001000100002904d0000000000000056f74686572076578616d706c650000fa00ff00000000001d0b686d61632d7368613235360000006b00e983012c0000123600110000";
/// To a query that was signed 1,000 seconds earlier.
const BAD_TIME_RESPONSE: &str = "12378009000100000000000203777777076578616d706c65000001000100002904d0000000000000076c6f616467656e076578616d706c650000fa00ff0000000000430b686d61632d7368613235360000006b00e59b012c0020ad5b15c4f339b5d895af64469a54c81c9c508b1c0dfc7cb387857f3f13f848de12370012000600006b00e983";

fn octets(hex: &str) -> Vec<u8> {
    let octet = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(octet).collect()
}

fn key(text: &str) -> TsigKey {
    text.parse().unwrap()
}

fn signed(key: &TsigKey, id: u16, now: u64) -> (Vec<u8>, Signed) {
    let name = Name::<Vec<u8>>::from_str("www.example").unwrap();
    let options = QueryOptions { recursion_desired: false, edns: Some(Edns::default()) };
    let query = Query::new(&name, Rtype::A, &options).unwrap();
    let mut message = Vec::new();
    query.append_to(id, &Additions::default(), &mut message);
    let length = message.len();
    let signed = key.sign(&mut message, now);
    assert!(message.len() - length <= MAX_LENGTH);
    (message, signed)
}

#[test]
fn bind_and_this_sign_alike() {
    let (query, signed) = signed(&key(KEY), 0x1234, NOW);
    assert_eq!(query, octets(GOOD_QUERY));
    let response = octets(GOOD_RESPONSE);
    assert_eq!(signed.verify(&response, NOW), Ok(()));
    assert_eq!(signed.verify(&response, NOW + 299), Ok(()));
    assert_eq!(signed.verify(&response, NOW + 301), Err(TsigFault::BadTime));
    // A server may give the query another id; the original one is in the record.
    let mut forwarded = response.clone();
    forwarded[..2].copy_from_slice(&[9, 9]);
    assert_eq!(signed.verify(&forwarded, NOW), Ok(()));
}

#[test]
fn nothing_can_follow_the_signature() {
    let (_, signed) = signed(&key(KEY), 0x1234, NOW);
    for behind in [&b"\0"[..], b":", &octets(GOOD_RESPONSE)] {
        let longer = [octets(GOOD_RESPONSE).as_slice(), behind].concat();
        assert_eq!(signed.verify(&longer, NOW), Err(TsigFault::Malformed));
    }
}

#[test]
fn no_bit_can_be_changed() {
    let (_, signed) = signed(&key(KEY), 0x1234, NOW);
    let response = octets(GOOD_RESPONSE);
    // The record is the last, of 88 octets. The letters of its names are signed in lower case (RFC 8945,
    // section 4.3.3), its class and TTL as what they must be.
    let record = response.len() - 88;
    let (name, class_and_ttl) = (record..record + 17, record + 19..record + 25);
    let algorithm = record + 27..record + 40;
    for at in 2..response.len() {
        for bit in 0..8 {
            let mut changed = response.clone();
            changed[at] ^= 1 << bit;
            let is_other_case = changed[at].eq_ignore_ascii_case(&response[at])
                && (name.contains(&at) || algorithm.contains(&at));
            let is_right = is_other_case || class_and_ttl.contains(&at);
            assert_eq!(signed.verify(&changed, NOW).is_ok(), is_right, "octet {at}, bit {bit}");
        }
    }
}

#[test]
fn refusals_of_the_server_are_told_apart() {
    let check = |key_text: &str, id: u16, now: u64, response: &str, fault: TsigFault| {
        let (_, signed) = signed(&key(key_text), id, now);
        assert_eq!(signed.verify(&octets(response), NOW), Err(fault));
    };
    check(KEY, 0x1235, NOW, BAD_SIGNATURE_RESPONSE, TsigFault::ServerBadSignature);
    let other = KEY.replace("loadgen", "other");
    check(&other, 0x1236, NOW, BAD_KEY_RESPONSE, TsigFault::ServerBadKey);
    // The server's time is the time of this check.
    check(KEY, 0x1237, NOW - 1_000, BAD_TIME_RESPONSE, TsigFault::ServerBadTime { ahead: 0 });
    // The response to another query.
    check(KEY, 0x1237, NOW, GOOD_RESPONSE, TsigFault::BadSignature);
    // Without its record, which is the last, of 88 octets.
    let mut unsigned = octets(GOOD_RESPONSE);
    unsigned.truncate(unsigned.len() - 88);
    unsigned[11] -= 1;
    let (_, signed) = signed(&key(KEY), 0x1234, NOW);
    assert_eq!(signed.verify(&unsigned, NOW), Err(TsigFault::Unsigned));
    assert_eq!(signed.verify(&unsigned[..11], NOW), Err(TsigFault::Malformed));
}

#[track_caller]
fn check_refusal(fault: TsigFault, name: &str, parts: [&str; 2]) {
    assert_eq!(fault.refusal(), Some(name));
    let text = fault.to_string();
    assert!(text.starts_with(&format!("the server refused the signature: {name}, ")), "{text}");
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn a_refusal_says_why_and_what_to_do() {
    check_refusal(TsigFault::ServerBadKey, "BADKEY", ["no key", "give it one"]);
    check_refusal(
        TsigFault::ServerBadSignature,
        "BADSIG",
        ["another secret", "compare the secrets"],
    );
    let (_, signed) = signed(&key(KEY), 0x1237, NOW - 1_000);
    let fault = signed.verify(&octets(BAD_TIME_RESPONSE), NOW - 1_000).unwrap_err();
    check_refusal(fault, "BADTIME", ["+1000 s from", "compare the clocks"]);
    let fault = signed.verify(&octets(BAD_TIME_RESPONSE), NOW + 7).unwrap_err();
    check_refusal(fault, "BADTIME", ["-7 s from", "compare the clocks"]);
    assert_eq!(signed.key_name(), "loadgen.example");
    for fault in [TsigFault::Unsigned, TsigFault::BadSignature, TsigFault::BadTime] {
        assert_eq!(fault.refusal(), None);
    }
}

#[test]
fn a_server_of_other_make_agrees_for_all_algorithms() {
    for algorithm in ["hmac-sha1", "HMAC-SHA256", "hmac-sha384", "hmac-sha512"] {
        let key = key(&format!("{algorithm}:k.example.:AAECAwQFBgc="));
        let (query, signed) = signed(&key, 77, NOW);
        let mut request = Message::from_octets(query).unwrap();
        let now = Time48::from_u64(NOW);
        let store: &Arc<Key> = &key.key;
        let transaction = ServerTransaction::request(store, &mut request, now).unwrap().unwrap();
        let answer = MessageBuilder::new_vec().start_answer(&request, Rcode::NOERROR).unwrap();
        let mut answer = answer;
        let name = Name::<Vec<u8>>::from_str("www.example").unwrap();
        answer.push((name, Class::IN, Ttl::ZERO, A::from_octets(192, 0, 2, 1))).unwrap();
        let mut answer = answer.additional();
        transaction.answer(&mut answer, now).unwrap();
        let mut response = answer.finish();
        assert_eq!(signed.verify(&response, NOW), Ok(()), "{algorithm}");
        response[3] ^= 3;
        assert_eq!(signed.verify(&response, NOW), Err(TsigFault::BadSignature), "{algorithm}");
    }
}

#[test]
fn keys_are_read_as_dnsperf_reads_them() {
    for (text, printed) in [
        ("loadgen:c2VjcmV0", "hmac-sha256:loadgen"),
        ("hmac-sha512:a.b.:c2VjcmV0", "hmac-sha512:a.b"),
        ("Hmac-SHA1:K:c2VjcmV0", "hmac-sha1:K"),
    ] {
        assert_eq!(key(text).to_string(), printed);
        assert_eq!(key(text), key(text));
    }
    assert_ne!(key("a:c2VjcmV0"), key("a:c2VjcmV1"));
    assert_ne!(key("a:c2VjcmV0"), key("b:c2VjcmV0"));
    for (text, part) in [
        ("c2VjcmV0", "has 2 or 3 fields between colons, not 1: write [algorithm:]name:secret"),
        ("a:b:c:c2VjcmV0", "has 2 or 3 fields between colons, not 4"),
        ("hmac-md5:k:c2VjcmV0", "`hmac-md5` is not supported: it is one of hmac-sha1"),
        ("k..k:c2VjcmV0", "`k..k` is no domain name"),
        ("k:c2VjcmV0!", "secret of TSIG key `k` is not base64"),
        ("k:", "secret of TSIG key `k` is not base64"),
    ] {
        let error = text.parse::<TsigKey>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn the_secret_is_not_printed() {
    let secret = "c2VjcmV0";
    let key = key(&format!("k:{secret}"));
    let (_, signed) = signed(&key, 1, NOW);
    for printed in
        [format!("{key:?}"), format!("{key:#?}"), format!("{key}"), format!("{signed:?}")]
    {
        assert!(printed.contains('k') && !printed.contains(secret), "{printed}");
        // The octets of "secret", as lists of numbers have them.
        assert!(!printed.contains("115"), "{printed}");
    }
    for text in [format!("a:b:c:{secret}"), secret.to_owned(), format!("hmac-md5:k:{secret}")] {
        let error = text.parse::<TsigKey>().unwrap_err();
        assert!(!error.to_string().contains(secret), "{error}");
        assert!(!format!("{error:?}").contains(secret), "{error:?}");
    }
}
