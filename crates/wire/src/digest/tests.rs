use domain::base::Name;
use proptest::prelude::*;

use super::*;
use crate::{Edns, EdnsOption, QueryOptions};

/// A record of a made answer.
#[derive(Clone, Debug)]
struct Made {
    owner: &'static [&'static str],
    rtype: u16,
    ttl: u32,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    Octets(Vec<u8>),
    /// Octets, and then a name that may be compressed (RFC 3597, section 4).
    Name(Vec<u8>, &'static [&'static str]),
}

const WWW: &[&str] = &["www", "example"];
const MAIL: &[&str] = &["mail", "example"];

/// How a server writes what it says.
#[derive(Clone, Copy, Debug, Default)]
struct Hand {
    compresses: bool,
    shouts: bool,
}

struct Writer {
    hand: Hand,
    message: Vec<u8>,
    /// Where names begin that were written.
    known: Vec<(Vec<&'static str>, usize)>,
}

impl Writer {
    fn name(&mut self, labels: &'static [&'static str]) {
        for (at, label) in labels.iter().enumerate() {
            let rest = labels[at..].to_vec();
            let known = self.known.iter().find(|(name, _)| *name == rest).map(|(_, place)| *place);
            if let Some(place) = known.filter(|_| self.hand.compresses) {
                self.message.extend((0xc000 | place as u16).to_be_bytes());
                return;
            }
            self.known.push((rest, self.message.len()));
            let text = if self.hand.shouts { label.to_uppercase() } else { (*label).to_owned() };
            self.message.push(label.len() as u8);
            self.message.extend(text.as_bytes());
        }
        self.message.push(0);
    }

    fn record(&mut self, record: &Made, ttl_added: u32) {
        self.name(record.owner);
        self.message.extend(record.rtype.to_be_bytes());
        self.message.extend([0, 1]);
        self.message.extend((record.ttl + ttl_added).to_be_bytes());
        let length_at = self.message.len();
        self.message.extend([0, 0]);
        match &record.data {
            Data::Octets(octets) => self.message.extend(octets),
            Data::Name(octets, name) => {
                self.message.extend(octets);
                self.name(name);
            }
        }
        let length = (self.message.len() - length_at - 2) as u16;
        self.message[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    }
}

/// An answer about `www.example. ANY` with these sections and, perhaps, an OPT record.
fn written(sections: [&[Made]; 3], opt: Option<&[u8]>, hand: Hand, ttl_added: u32) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 0x84, 0, 0, 1];
    for (place, section) in sections.iter().enumerate() {
        let opt = usize::from(place == 2 && opt.is_some());
        message.extend(((section.len() + opt) as u16).to_be_bytes());
    }
    let mut writer = Writer { hand, message, known: Vec::new() };
    writer.name(WWW);
    writer.message.extend([0, 255, 0, 1]);
    sections.into_iter().flatten().for_each(|record| writer.record(record, ttl_added));
    if let Some(options) = opt {
        writer.message.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0]);
        writer.message.extend((options.len() as u16).to_be_bytes());
        writer.message.extend(options);
    }
    writer.message
}

fn digest(message: &[u8]) -> AnswerDigest {
    AnswerDigest::of(message, &mut vec![7; 3]).unwrap_or_else(|fault| panic!("{fault}"))
}

fn plain(sections: [&[Made]; 3]) -> AnswerDigest {
    digest(&written(sections, None, Hand::default(), 0))
}

fn address(last: u8) -> Made {
    Made { owner: WWW, rtype: 1, ttl: 300, data: Data::Octets(vec![192, 0, 2, last]) }
}

fn mx(preference: u8, name: &'static [&'static str]) -> Made {
    Made { owner: WWW, rtype: 15, ttl: 60, data: Data::Name(vec![0, preference], name) }
}

fn soa() -> Made {
    // Two names, and a serial among the numbers.
    let data = [&b"\x02ns\x07example\0\x04mail\x07example\0"[..], &[9; 20]].concat();
    Made { owner: &["example"], rtype: 6, ttl: 60, data: Data::Octets(data) }
}

fn signature(last: u8) -> Made {
    let fixed = [0, 1, 13, 2, 0, 0, 1, 44, 1, 1, 1, 1, 2, 2, 2, 2, 0x12, 0x34];
    let data = [&fixed[..], b"\x07example\0", &[5, 5, last]].concat();
    Made { owner: WWW, rtype: 46, ttl: 300, data: Data::Octets(data) }
}

#[test]
fn each_part_has_its_own_hash() {
    let one = plain([&[address(1)], &[soa()], &[address(9)]]);
    let check = |changed: AnswerDigest, same: fn(AnswerDigest, AnswerDigest) -> AnswerDigest| {
        assert_ne!(one, changed);
        assert_eq!(one, same(changed, one));
    };
    check(plain([&[address(2)], &[soa()], &[address(9)]]), |changed, one| AnswerDigest {
        answer: one.answer,
        ..changed
    });
    check(plain([&[address(1)], &[], &[address(9)]]), |changed, one| AnswerDigest {
        authority: one.authority,
        ..changed
    });
    check(plain([&[address(1)], &[soa()], &[address(8)]]), |changed, one| AnswerDigest {
        additional: one.additional,
        ..changed
    });
    check(plain([&[address(1), signature(1)], &[soa()], &[address(9)]]), |changed, one| {
        AnswerDigest { signatures: one.signatures, ..changed }
    });
    let mut message = written([&[address(1)], &[soa()], &[address(9)]], None, Hand::default(), 0);
    message[3] |= 0x20;
    check(digest(&message), |changed, one| AnswerDigest { flags: one.flags, ..changed });
    message[3] = 2;
    check(digest(&message), |changed, one| AnswerDigest { rcode: one.rcode, ..changed });
}

#[test]
fn signatures_are_known_by_their_section_and_their_octets() {
    let signatures = |sections| plain(sections).signatures;
    let (one, other) = ([signature(1)], [signature(2)]);
    assert_eq!(signatures([&[], &one, &[]]), signatures([&[], &one, &[]]));
    assert_ne!(signatures([&[], &one, &[]]), signatures([&[], &other, &[]]));
    assert_ne!(signatures([&[address(1)], &one, &[]]), signatures([&[address(1)], &[], &one]));
}

#[test]
fn the_same_record_twice_is_not_one_record() {
    let twice = plain([&[address(1), address(1)], &[], &[]]);
    assert_ne!(twice.answer, plain([&[address(1)], &[], &[]]).answer);
    // A sum of equal terms must not vanish.
    assert_ne!(twice.answer, plain([&[address(2), address(2)], &[], &[]]).answer);
}

#[test]
fn what_a_server_says_of_itself_in_edns_does_not_count() {
    let with = |opt: Option<&[u8]>| digest(&written([&[], &[], &[]], opt, Hand::default(), 0)).edns;
    let bare = with(Some(&[]));
    assert_ne!(bare, with(None));
    // A cookie, keep-alive, padding, NSID.
    for own in [&[0, 10, 0, 1, 7][..], &[0, 11, 0, 2, 0, 9], &[0, 12, 0, 0], &[0, 3, 0, 1, 65]] {
        assert_eq!(with(Some(own)), bare, "{own:?}");
    }
    let blocked = with(Some(&[0, 15, 0, 2, 0, 15]));
    assert_ne!(blocked, bare);
    assert_eq!(blocked, with(Some(b"\0\x0f\0\x05\0\x0fwhy")), "its text is for people");
    assert_ne!(blocked, with(Some(&[0, 15, 0, 2, 0, 16])));
    assert_ne!(bare, with(Some(&[0xff, 0, 0, 0])));
    let (one, other) = ([0xff, 0, 0, 1, 1], [0xff, 1, 0, 1, 2]);
    let in_order = [one, other].concat();
    assert_eq!(with(Some(&in_order)), with(Some(&[other, one].concat())));

    let mut message = written([&[], &[], &[]], Some(&[]), Hand::default(), 0);
    let opt = message.len() - 11;
    message[opt + 3] = 0x10;
    assert_eq!(digest(&message).edns, bare, "the payload size is the server's own");
    message[opt + 5] = 1;
    assert_eq!(digest(&message).rcode, 16, "BADVERS has bits in the OPT record");
    assert_eq!(digest(&message).edns, bare);
    message[opt + 7] = 0x80;
    assert_ne!(digest(&message).edns, bare, "DO");
}

#[test]
fn what_truncation_has_left_does_not_count() {
    let truncated = |sections: [&[Made]; 3]| {
        let mut message = written(sections, Some(&[]), Hand::default(), 0);
        message[2] |= 2;
        digest(&message)
    };
    let some = truncated([&[address(1)], &[], &[]]);
    assert_eq!(some, truncated([&[], &[soa()], &[]]));
    assert_ne!(some.flags, plain([&[address(1)], &[], &[]]).flags);
    // The message may end in the middle of a record.
    let mut message = written([&[address(1)], &[], &[]], None, Hand::default(), 0);
    message[2] |= 2;
    message.truncate(message.len() - 2);
    assert_eq!(digest(&message).answer, 0);
}

#[test]
fn faults_are_not_digested() {
    let mut message = written([&[address(1)], &[], &[]], None, Hand::default(), 0);
    message.truncate(message.len() - 2);
    assert!(AnswerDigest::of(&message, &mut Vec::new()).is_err());
    assert!(AnswerDigest::of(b"\0", &mut Vec::new()).is_err());
}

/// Digests are kept on disk, so they must stay what they are.
#[test]
fn a_digest_is_the_same_for_ever() {
    let message =
        written([&[mx(10, MAIL)], &[soa()], &[address(1)]], Some(&[]), Hand::default(), 0);
    let found = digest(&message);
    let expected = AnswerDigest {
        rcode: 0,
        flags: 0x40,
        answer: 439_812_373,
        authority: 3_714_264_138,
        additional: 1_179_514_222,
        signatures: 0,
        edns: 1_781_173_680,
    };
    assert_eq!(found, expected);
    let query = Query::from_message(b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01").unwrap();
    assert_eq!(query.digest(), 1_216_995_928);
}

fn digest_with(padding: Option<u16>) -> u32 {
    let edns =
        Edns { padding, options: vec![EdnsOption { code: 9, data: vec![1] }], ..Edns::default() };
    let options = QueryOptions { edns: Some(edns), ..QueryOptions::default() };
    let name: Name<Vec<u8>> = "a.example".parse().unwrap();
    Query::new(&name, Rtype::A, &options).unwrap().digest()
}

#[test]
fn queries_are_told_apart_by_all_but_case_and_id() {
    let query = |octets: &[u8]| Query::from_message(octets).unwrap().digest();
    let plain = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x02bc\0\0\x01\0\x01";
    let changed = |at: usize, octet: u8| {
        let mut message = plain.to_vec();
        message[at] = octet;
        query(&message)
    };
    assert_eq!(changed(0, 0x99), query(plain));
    assert_eq!(changed(16, b'C'), changed(16, b'c'));
    assert_ne!(changed(2, 0), query(plain), "RD");
    assert_ne!(changed(19, 28), query(plain), "the type");
    assert_ne!(changed(16, b'd'), query(plain), "the name");
    let mut with_do = plain.to_vec();
    with_do[11] = 1;
    with_do.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0]);
    let without = query(&with_do);
    with_do[28] = 0x80;
    assert_ne!(query(&with_do), without, "DO");
    assert_ne!(without, query(plain));
    // The payload size and padding are of the transport.
    with_do[25] = 0x10;
    with_do[28] = 0;
    assert_eq!(query(&with_do), without);
    assert_eq!(digest_with(None), digest_with(Some(128)));
}

#[test]
fn text_shows_what_was_said() {
    let text = message_text(&written([&[mx(10, MAIL)], &[], &[]], None, Hand::default(), 0));
    assert!(text.contains("rcode: NOERROR") && text.contains("10 mail.example"), "{text}");
    let text = message_text(b"\x12\x34\x84\0\0\x01");
    assert!(text.contains("malformed") && text.contains("12348400"), "{text}");
    // Octets of a name that would act on a terminal or a page are escaped.
    let hostile = b"\x12\x34\x84\0\0\x01\0\0\0\0\0\0\x06\x1b[0m<b\0\0\x01\0\x01";
    let text = message_text(hostile);
    assert!(text.contains("\\027[0m<b") && !text.contains('\x1b'), "{text}");
}

fn any_record() -> impl Strategy<Value = Made> {
    let owners: Vec<&'static [&'static str]> = vec![WWW, MAIL, &["example"], &["a", "b", "c"]];
    let names = prop::sample::select(owners.clone());
    let data = prop_oneof![
        prop::collection::vec(any::<u8>(), 4).prop_map(|octets| (1, Data::Octets(octets))),
        prop::collection::vec(any::<u8>(), 16).prop_map(|octets| (28, Data::Octets(octets))),
        names.clone().prop_map(|name| (2, Data::Name(Vec::new(), name))),
        (any::<u16>(), names.clone())
            .prop_map(|(value, name)| (15, Data::Name(value.to_be_bytes().to_vec(), name))),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|octets| (65_400, Data::Octets(octets))),
    ];
    (prop::sample::select(owners), data, 0..100_000u32)
        .prop_map(|(owner, (rtype, data), ttl)| Made { owner, rtype, ttl, data })
}

/// The question is `www.example. ANY`, so one record of that name makes the answer a whole one.
fn any_answer() -> impl Strategy<Value = Vec<Made>> {
    prop::collection::vec(any_record(), 0..8).prop_map(|mut records| {
        records.push(address(77));
        records
    })
}

proptest! {
    #[test]
    fn order_case_ttl_and_compression_do_not_matter(
        (records, shuffled) in any_answer().prop_flat_map(|records| {
            (Just(records.clone()), Just(records).prop_shuffle())
        }),
        authority in prop::collection::vec(any_record(), 0..4),
        compresses: bool,
        shouts: bool,
        ttl_added in 0..1_000u32,
    ) {
        let one = written([&records, &authority, &[]], None, Hand::default(), 0);
        let hand = Hand { compresses, shouts };
        let other = written([&shuffled, &authority, &[]], None, hand, ttl_added);
        prop_assert_eq!(digest(&one), digest(&other));
    }

    #[test]
    fn any_changed_octet_of_data_matters(
        records in any_answer(),
        which: prop::sample::Index,
        at: prop::sample::Index,
        by in 1..=255u8,
    ) {
        let mut changed = records.clone();
        let record = which.get_mut(&mut changed);
        let (Data::Octets(octets) | Data::Name(octets, _)) = &mut record.data;
        prop_assume!(!octets.is_empty());
        let at = at.index(octets.len());
        octets[at] ^= by;
        let [one, other] = [&records, &changed].map(|records| plain([records, &[], &[]]));
        prop_assert_ne!(one.answer, other.answer);
        prop_assert_eq!(AnswerDigest { answer: one.answer, ..other }, one);
    }

    #[test]
    fn a_record_more_or_less_or_in_another_section_matters(
        records in any_answer(),
        which: prop::sample::Index,
    ) {
        let mut fewer = records.clone();
        let taken = fewer.remove(which.index(records.len()));
        prop_assume!(fewer.iter().any(|record| record.owner == WWW));
        let (one, other) = (plain([&records, &[], &[]]), plain([&fewer, &[], &[]]));
        prop_assert_ne!(one.answer, other.answer);
        let moved = plain([&fewer, &[taken], &[]]);
        prop_assert_eq!(moved.answer, other.answer);
        prop_assert_ne!(moved.authority, other.authority);
    }

    #[test]
    fn any_octets_have_a_digest_or_a_fault(message in prop::collection::vec(any::<u8>(), 0..300)) {
        let found = AnswerDigest::of(&message, &mut Vec::new());
        prop_assert_eq!(found.is_ok(), read_answer(&message).is_ok());
        let _ = message_text(&message);
    }
}
