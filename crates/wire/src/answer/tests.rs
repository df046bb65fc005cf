use domain::base::wire::ParseError;
use proptest::prelude::*;

use super::*;

/// A message about `www.example. A` with these counts and these octets after the question. `www.example.` is
/// at 12, `example.` at 16, and the question ends at 29.
fn message(counts: [u8; 3], behind: &[u8]) -> Vec<u8> {
    let [answers, authorities, additional] = counts;
    let mut message = vec![0x12, 0x34, 0x84, 0, 0, 1];
    message.extend([0, answers, 0, authorities, 0, additional]);
    message.extend(b"\x03www\x07example\0\0\x01\0\x01");
    message.extend(behind);
    message
}

fn record(owner: &[u8], rtype: u8, data: &[u8]) -> Vec<u8> {
    [owner, &[0, rtype, 0, 1, 0, 0, 0, 9, 0, data.len() as u8], data].concat()
}

const WWW: &[u8] = b"\xc0\x0c";
const EXAMPLE: &[u8] = b"\xc0\x10";
const ADDRESS: &[u8] = &[192, 0, 2, 1];
const OPT: &[u8] = &[0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0];
const A: u8 = 1;
const NS: u8 = 2;
const CNAME: u8 = 5;
const AAAA: u8 = 28;
const DNAME: u8 = 39;
const RRSIG: u8 = 46;
const ANY: u8 = 255;
const UNRELATED: &str = "no record of the answer section answers the question";

fn signature_of(covered: u8) -> Vec<u8> {
    [&[0, covered, 13, 2, 0, 0, 0, 9][..], &[0; 8], &[0x12, 0x34, 0], b"a signature"].concat()
}

fn asking(mut message: Vec<u8>, asked: u8) -> Vec<u8> {
    message[26] = asked;
    message
}

#[track_caller]
fn whole(message: &[u8]) {
    assert_eq!(check_answer(message), Ok(()));
}

#[track_caller]
fn faulty(message: &[u8], said: &str) {
    assert_eq!(check_answer(message).unwrap_err().to_string(), said);
}

#[test]
fn whole_answers() {
    let address = record(WWW, A, ADDRESS);
    whole(&message([1, 0, 0], &address));
    whole(&message([2, 0, 1], &[&address, &address, OPT].concat()));
    whole(&message([1, 1, 1], &[&address, &record(EXAMPLE, NS, WWW), OPT].concat()));
    // Letters of any case are equal (RFC 4343).
    whole(&message([1, 0, 0], &record(b"\x03WwW\x07exAmple\0", A, ADDRESS)));
    // NODATA, and a referral.
    whole(&message([0, 0, 1], OPT));
    whole(&message([0, 1, 0], &record(EXAMPLE, NS, WWW)));
}

#[test]
fn aliases_lead_to_the_record_or_elsewhere() {
    let to_other = record(WWW, CNAME, b"\x05other\xc0\x10");
    // The target is `other.example.` in the data of the first record.
    let address = record(b"\xc0\x29", A, ADDRESS);
    whole(&message([1, 0, 0], &to_other));
    whole(&message([2, 0, 0], &[to_other.as_slice(), &address].concat()));
    whole(&message([1, 0, 0], &record(WWW, CNAME, WWW)));
    let away = record(EXAMPLE, DNAME, b"\x03net\0");
    whole(&message([1, 0, 0], &away));
    let made = record(WWW, CNAME, b"\x03www\x03net\0");
    whole(&message([2, 0, 0], &[away.as_slice(), &made].concat()));

    // Without the record that follows from it, and with what it leads to.
    let there = record(b"\x03www\x03net\0", A, ADDRESS);
    whole(&message([2, 0, 0], &[away.as_slice(), &there].concat()));
    whole(&message([3, 0, 0], &[away.as_slice(), &made, &there].concat()));
    // Such records may be what was asked for.
    for asked in [CNAME, DNAME, ANY] {
        whole(&asking(message([1, 0, 0], &away), asked));
    }
    // A name that grows from step to step ends when it is too long.
    whole(&message([1, 0, 0], &record(EXAMPLE, DNAME, b"\x01a\xc0\x10")));

    let elsewhere = record(b"\x03ftp\x03net\0", A, ADDRESS);
    faulty(&message([2, 0, 0], &[away.as_slice(), &elsewhere].concat()), UNRELATED);
    let stranger = record(EXAMPLE, A, ADDRESS);
    faulty(&message([2, 0, 0], &[to_other.as_slice(), &stranger].concat()), UNRELATED);
    // A DNAME record stands for the names below its own (RFC 6672, section 2.3).
    faulty(&message([1, 0, 0], &record(WWW, DNAME, b"\x03net\0")), UNRELATED);
}

/// The signature of a DNAME record has the type asked for, but is not what the alias leads to.
#[test]
fn signatures_of_aliases_where_signatures_are_asked_for() {
    let away = [record(EXAMPLE, DNAME, b"\x03net\0"), record(EXAMPLE, RRSIG, &signature_of(DNAME))];
    let made = record(WWW, CNAME, b"\x03www\x03net\0");
    for asked in [A, RRSIG, ANY] {
        whole(&asking(message([2, 0, 0], &away.concat()), asked));
        whole(&asking(message([3, 0, 0], &[away.concat(), made.clone()].concat()), asked));
    }
    let there = record(b"\x03www\x03net\0", RRSIG, &signature_of(A));
    whole(&asking(message([3, 0, 0], &[away.concat(), there].concat()), RRSIG));

    let elsewhere = record(b"\x03ftp\x03net\0", RRSIG, &signature_of(A));
    faulty(&asking(message([3, 0, 0], &[away.concat(), elsewhere].concat()), RRSIG), UNRELATED);
    // No alias comes with it.
    let alone = record(EXAMPLE, RRSIG, &signature_of(DNAME));
    faulty(&asking(message([1, 0, 0], &alone), RRSIG), UNRELATED);
}

/// Aliases from `www.example.` over `\x01.` and so on.
fn chain(aliases: u8) -> Vec<u8> {
    let name = |number: u8| if number == 0 { WWW.to_vec() } else { vec![1, number, 0] };
    (0..aliases).flat_map(|number| record(&name(number), CNAME, &name(number + 1))).collect()
}

#[test]
fn chains_that_are_too_long_to_follow_are_believed() {
    for aliases in [1, 2, 63, 64, 65, 100, 200] {
        let address = record(&[1, aliases, 0], A, ADDRESS);
        whole(&message([aliases, 0, 0], &chain(aliases)));
        whole(&message([aliases + 1, 0, 0], &[chain(aliases), address].concat()));
    }
    // A shorter one is followed to its end.
    let stranger = record(b"\x01\xff\0", A, ADDRESS);
    for aliases in [1, 2, 63] {
        let octets = message([aliases + 1, 0, 0], &[chain(aliases), stranger.clone()].concat());
        faulty(&octets, UNRELATED);
    }
}

#[test]
fn aliases_in_a_circle_lead_nowhere() {
    let stranger = record(b"\x01\xff\0", A, ADDRESS);
    for aliases in [0, 1, 2, 10] {
        let back = record(&[1, aliases, 0], CNAME, WWW);
        let back = if aliases == 0 { record(WWW, CNAME, WWW) } else { back };
        let circle = [chain(aliases), back].concat();
        whole(&message([aliases + 1, 0, 0], &circle));
        let octets = message([aliases + 2, 0, 0], &[circle, stranger.clone()].concat());
        faulty(&octets, UNRELATED);
    }
}

#[test]
fn answers_to_another_question() {
    faulty(&message([1, 0, 0], &record(EXAMPLE, A, ADDRESS)), UNRELATED);
    faulty(&message([1, 0, 0], &record(WWW, AAAA, &[0; 16])), UNRELATED);
    let mut chaos = record(WWW, A, ADDRESS);
    chaos[5] = 3;
    faulty(&message([1, 0, 0], &chaos), UNRELATED);
    // Any record of the name answers a question for all types.
    whole(&asking(message([1, 0, 0], &record(WWW, AAAA, &[0; 16])), ANY));
    // A negative answer need not have the record.
    let mut absent = message([1, 0, 0], &record(EXAMPLE, A, ADDRESS));
    absent[3] = 3;
    whole(&absent);
}

#[test]
fn sections_that_are_not_there() {
    let address = record(WWW, A, ADDRESS);
    let first = "the answer section has 0 whole records, and its header counts 1";
    faulty(&message([1, 0, 0], b""), first);
    for length in 1..address.len() {
        faulty(&message([1, 0, 0], &address[..length]), first);
    }
    let second = "the answer section has 1 whole records, and its header counts 2";
    faulty(&message([2, 0, 0], &address), second);
    let authority = "the authority section has 0 whole records, and its header counts 1";
    faulty(&message([1, 1, 0], &address), authority);
    let additional = "the additional section has 0 whole records, and its header counts 1";
    faulty(&message([1, 0, 1], &address), additional);
    // A truncated message may end anywhere (RFC 1035, section 4.1.1).
    let mut truncated = message([2, 1, 1], &address[..9]);
    truncated[2] |= 2;
    whole(&truncated);
}

#[test]
fn octets_that_do_not_belong() {
    let address = record(WWW, A, ADDRESS);
    faulty(&message([0, 0, 0], b"\0"), "1 octets follow the last record");
    faulty(
        &message([1, 0, 0], &[address.as_slice(), OPT].concat()),
        "11 octets follow the last record",
    );
}

#[test]
fn opt_records_that_are_out_of_place() {
    let address = record(WWW, A, ADDRESS);
    let opt_of = |owner: &[u8]| [owner, &OPT[1..]].concat();
    // Anywhere among the additional records (RFC 6891, section 6.1.1).
    whole(&message([0, 0, 2], &[OPT, &address].concat()));
    whole(&message([0, 0, 2], &[&address, OPT].concat()));

    let outside = |counts, behind: &[u8], place: &str| {
        let said = format!("{place} is an OPT record, which belongs in the additional section");
        faulty(&message(counts, behind), &said);
    };
    outside([1, 0, 0], OPT, "record 1 of the answer section");
    outside([2, 0, 0], &[&address, OPT].concat(), "record 2 of the answer section");
    outside([1, 1, 1], &[&address, OPT, OPT].concat(), "record 1 of the authority section");
    let second = "record 3 of the additional section is a second OPT record";
    faulty(&message([0, 0, 3], &[OPT, &address, OPT].concat()), second);
    let owner = "record 2 of the additional section is an OPT record whose owner is not the root";
    faulty(&message([0, 0, 2], &[&address, &opt_of(WWW)[..]].concat()), owner);
    // The question does not matter, nor does the response code.
    let mut refused = asking(message([0, 0, 3], &[OPT, &address, OPT].concat()), ANY);
    refused[3] = 5;
    faulty(&refused, second);
}

#[track_caller]
fn early(counts: [u8; 3], behind: &[u8], place: &str) {
    let said = format!(
        "{place} is a TSIG record, which must be the last record of the additional section"
    );
    faulty(&message(counts, behind), &said);
}

#[test]
fn signatures_of_messages_that_are_not_at_their_end() {
    // Without algorithm, time, signature or other data: only the form counts here.
    let tsig = record(b"\x03key\0", 250, &[0; 17]);
    let address = record(WWW, A, ADDRESS);
    let (tsig, address) = (tsig.as_slice(), address.as_slice());
    whole(&message([1, 0, 1], &[address, tsig].concat()));
    whole(&message([1, 0, 2], &[address, OPT, tsig].concat()));

    early([1, 0, 2], &[address, tsig, OPT].concat(), "record 1 of the additional section");
    early([1, 0, 2], &[address, tsig, tsig].concat(), "record 1 of the additional section");
    // The last record, but in another section.
    early([2, 0, 0], &[address, tsig].concat(), "record 2 of the answer section");
    early([1, 1, 0], &[address, tsig].concat(), "record 1 of the authority section");
}

#[track_caller]
fn contradicts(octets: Vec<u8>, number: u8) {
    let said = format!(
        "record {number} of the answer section is a CNAME record that does not follow from the DNAME \
         record above its name"
    );
    faulty(&octets, &said);
}

#[test]
fn aliases_that_contradict_the_dname_record() {
    let away = record(EXAMPLE, DNAME, b"\x03net\0");
    let away = away.as_slice();
    let made = |target: &[u8]| record(WWW, CNAME, target);
    // Letters of any case are equal.
    whole(&message([2, 0, 0], &[away, &made(b"\x03WWW\x03nEt\0")].concat()));
    contradicts(message([2, 0, 0], &[away, &made(b"\x03ftp\x03net\0")].concat()), 2);
    contradicts(message([2, 0, 0], &[&made(b"\x03net\0"), away].concat()), 1);
    // The target has the record that was asked for; the alias is wrong all the same.
    let there = record(b"\x03ftp\x03net\0", A, ADDRESS);
    let octets = message([3, 0, 0], &[away, &made(b"\x03ftp\x03net\0"), &there].concat());
    contradicts(octets, 2);
    // The target does not exist, which is what the response code says.
    let mut denied = message([2, 0, 0], &[away, &made(b"\x03ftp\x03net\0")].concat());
    denied[3] = 3;
    contradicts(denied, 2);
    // Farther down the chain.
    let onward = record(b"\x03net\0", DNAME, b"\x03org\0");
    let next = |target: &[u8]| record(b"\x03www\x03net\0", CNAME, target);
    let steps = |last: &[u8]| [away, &made(b"\x03www\x03net\0"), &onward, &next(last)].concat();
    whole(&message([4, 0, 0], &steps(b"\x03www\x03org\0")));
    contradicts(message([4, 0, 0], &steps(b"\x03www\x03net\0")), 4);

    // An alias at the name of the DNAME record, or elsewhere, does not follow from it (RFC 6672, section
    // 2.3).
    let at_owner = record(EXAMPLE, CNAME, b"\x03org\0");
    whole(&message([2, 0, 0], &[away, &at_owner].concat()));
    let in_net = record(b"\x03www\x03net\0", CNAME, b"\x03org\0");
    whole(&message([3, 0, 0], &[away, &made(b"\x03www\x03net\0"), &in_net].concat()));
    // Of two DNAME records above it, it may follow from either.
    let other = record(EXAMPLE, DNAME, b"\x03org\0");
    whole(&message([3, 0, 0], &[away, &other, &made(b"\x03www\x03net\0")].concat()));
    whole(&message([3, 0, 0], &[&other, away, &made(b"\x03www\x03net\0")].concat()));
    // Too many for the check.
    let many = [away.repeat(17), made(b"\x03org\0")].concat();
    whole(&message([18, 0, 0], &many));
    contradicts(message([17, 0, 0], &[&away.repeat(16)[..], &made(b"\x03org\0")].concat()), 17);
    // A target that is too long is an error (YXDOMAIN) without an alias (RFC 6672, section 2.2).
    let long = [&[63; 64][..], &[63; 64], &[63; 64], &[59; 60], b"\0"].concat();
    let far = record(EXAMPLE, DNAME, &long);
    contradicts(message([2, 0, 0], &[&far[..], &made(b"\x03net\0")].concat()), 2);
}

fn check_content(octets: Vec<u8>, rcode: u8, expected: Held) {
    for truncated in [false, true] {
        let mut octets = octets.clone();
        octets[2] |= u8::from(truncated) << 1;
        octets[3] |= rcode;
        let content = read_answer(&octets);
        assert_eq!(content, Ok(AnswerContent { held: expected, truncated }), "{octets:?}");
    }
}

#[test]
fn what_an_answer_holds() {
    const NOERROR: u8 = 0;
    const NXDOMAIN: u8 = 3;
    let address = record(WWW, A, ADDRESS);
    let alias = record(WWW, CNAME, b"\x01\x01\0");
    let end = record(b"\x01\x01\0", A, ADDRESS);
    let away = record(EXAMPLE, DNAME, b"\x03net\0");
    check_content(message([1, 0, 0], &address), NOERROR, Held::Record);
    check_content(message([2, 0, 0], &[alias.clone(), end].concat()), NOERROR, Held::Record);
    check_content(message([1, 0, 0], &alias), NOERROR, Held::Aliases);
    check_content(message([1, 0, 0], &alias), NXDOMAIN, Held::Aliases);
    check_content(message([1, 0, 0], &away), NOERROR, Held::Aliases);
    // An alias is a record when it is what was asked for.
    check_content(asking(message([1, 0, 0], &alias), CNAME), NOERROR, Held::Record);
    check_content(message([0, 0, 1], OPT), NOERROR, Held::Nothing);
    check_content(message([0, 1, 0], &record(EXAMPLE, NS, WWW)), NXDOMAIN, Held::Nothing);
    check_content(message([1, 0, 0], &record(EXAMPLE, A, ADDRESS)), NXDOMAIN, Held::Nothing);
    // Too long to follow.
    check_content(message([70, 0, 0], &chain(70)), NOERROR, Held::Aliases);
    let octets = message([71, 0, 0], &[chain(70), record(&[1, 70, 0], A, ADDRESS)].concat());
    check_content(octets, NOERROR, Held::Record);

    // Cut behind the first record, and within it.
    let cut = |kept: &[u8], expected: Held| {
        let mut octets = message([2, 0, 1], kept);
        octets[2] |= 2;
        assert_eq!(read_answer(&octets), Ok(AnswerContent { held: expected, truncated: true }));
    };
    cut(&address, Held::Record);
    cut(&alias, Held::Aliases);
    cut(&address[..9], Held::Nothing);
    cut(b"", Held::Nothing);
    // Nothing can be said without a question.
    let error = b"\x12\x34\x84\x01\0\0\0\0\0\0\0\0";
    assert_eq!(read_answer(error), Ok(AnswerContent { held: Held::Nothing, truncated: false }));
}

#[test]
fn answers_to_another_kind_of_query() {
    for (opcode, name) in [(2, "STATUS(2)"), (4, "NOTIFY(4)"), (5, "UPDATE(5)"), (15, "15")] {
        let mut octets = message([1, 0, 0], &record(WWW, A, ADDRESS));
        octets[2] |= opcode << 3;
        faulty(&octets, &format!("the opcode is {name}, and that of the query is QUERY(0)"));
    }
}

#[test]
fn names_that_are_none() {
    let first = |owner: &[u8], said: &str| {
        let said = format!("record 1 of the answer section has no readable name: {said}");
        faulty(&message([1, 0, 0], &record(owner, A, ADDRESS)), &said);
    };
    // To itself, ahead, and around in a circle.
    first(b"\xc0\x1d", "too many compression pointers");
    first(b"\xc0\x20", "too many compression pointers");
    first(b"\x01a\xc0\x1d", "long domain name");
    first(b"\x80", "invalid label type");
    let long = [&b"\x3f"[..], &[b'a'; 63]].concat().repeat(4);
    first(&[&long, &b"\0"[..]].concat(), "long domain name");
}

#[test]
fn data_that_is_not_of_its_type() {
    let first = |rtype: u8, data: &[u8], said: &str| {
        let said = format!("record 1 of the answer section holds no data of its type {said}");
        faulty(&message([1, 0, 0], &record(WWW, rtype, data)), &said);
    };
    first(A, &ADDRESS[..3], "A: unexpected end of input");
    first(A, &[0; 5], "A: trailing data in option");
    first(AAAA, ADDRESS, "AAAA: unexpected end of input");
    // The pointer is at 41, and leads to itself.
    first(CNAME, b"\xc0\x29", "CNAME: too many compression pointers");
}

#[test]
fn what_is_no_answer_at_all() {
    assert_eq!(check_answer(b"\0"), Err(AnswerFault::Malformed(Malformed::Short(1))));
    let mut query = message([0, 0, 0], b"");
    query[2] = 0;
    assert_eq!(check_answer(&query), Err(AnswerFault::Malformed(Malformed::NotAResponse)));
    let fault = ParseError::ShortInput;
    let owner_fault = AnswerFault::Owner { section: Section::Answer, number: 1, fault };
    assert_ne!(check_answer(&message([1, 0, 0], b"")), Err(owner_fault));
}

/// What BIND 9.18 answered to queries of many types, signed and not, with aliases, referrals and refusals.
/// They are the seeds of the fuzz target; two of them are not one whole message.
#[test]
fn answers_of_bind_are_whole() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/response");
    let mut count = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_whole = !["frames", "no-record"].contains(&name);
        let checked = check_answer(&std::fs::read(&path).unwrap());
        assert_eq!(checked.is_ok(), is_whole, "{name}: {checked:?}");
        count += u32::from(is_whole);
    }
    assert!(count >= 20, "only {count}");
}

proptest! {
    #[test]
    fn any_octets_are_checked(behind in prop::collection::vec(any::<u8>(), 0..300), counts: [u8; 3]) {
        let _ = check_answer(&message(counts.map(|count| count % 4), &behind));
    }

    /// What is cut from a whole answer, or added to it, is noticed.
    #[test]
    fn no_part_of_an_answer_can_be_missing(records in 1..5_u8, cut in 1..40_usize) {
        let behind = [record(WWW, A, ADDRESS).repeat(records.into()), OPT.to_vec()].concat();
        let mut octets = message([records, 0, 1], &behind);
        prop_assert_eq!(check_answer(&octets), Ok(()));
        octets.push(0);
        prop_assert_eq!(check_answer(&octets), Err(AnswerFault::Trailing(1)));
        octets.truncate(octets.len() - 1 - cut.min(behind.len()));
        let is_missed = matches!(check_answer(&octets), Err(AnswerFault::Missing { .. }));
        prop_assert!(is_missed, "{octets:?}");
    }
}
