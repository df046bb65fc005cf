use std::net::IpAddr;
use std::str::FromStr;

use domain::base::Message;
use domain::base::iana::OptionCode;
use domain::base::opt::{self, UnknownOptData};
use proptest::prelude::*;

use super::*;
use crate::{CookieFinding, EdnsOption, ResponseOptions};

fn name(text: &str) -> Name<Vec<u8>> {
    Name::from_str(text).unwrap()
}

#[test]
fn what_cannot_be_sent_again_says_why() {
    let query = |rtype| Query::new(&name("a.example"), rtype, &QueryOptions::default()).unwrap();
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut message = query(Rtype::A).octets().to_vec();
        change(&mut message);
        Query::from_message(&message).unwrap_err()
    };
    assert_eq!(refused(&|message| message[2] |= 0x80), NotAQuery::OtherKind);
    assert_eq!(refused(&|message| message[2] |= 4 << 3), NotAQuery::OtherKind);
    assert_eq!(refused(&|message| message[5] = 0), NotAQuery::Questions);
    assert_eq!(refused(&|message| message[7] = 1), NotAQuery::Records);
    assert_eq!(refused(&|message| message[11] = 2), NotAQuery::Records);
    assert_eq!(refused(&|message| message[11] = 1), NotAQuery::Malformed);
    assert_eq!(refused(&|message| message[12] = 0xc0), NotAQuery::Malformed);
    let transfer = Query::from_message(query(Rtype::AXFR).octets());
    assert_eq!(transfer.unwrap_err(), NotAQuery::Transfer);
}

#[test]
fn edns_and_flags_are_encoded() {
    let edns = Some(Edns { dnssec_ok: true, ..Edns::default() });
    let options = QueryOptions { recursion_desired: true, edns };
    let query = Query::new(&name("a.example"), Rtype::AAAA, &options).unwrap();
    let message = Message::from_octets(query.octets()).unwrap();
    assert!(message.header().rd());
    let opt = message.opt().unwrap();
    assert_eq!((opt.udp_payload_size(), opt.dnssec_ok()), (1232, true));
    assert_eq!(query.to_string(), "a.example. AAAA");
    assert!(query.asks_the_same(b"\x01A\x07exAMPle\x00\x00\x1c\x00\x01"));
    assert!(!query.asks_the_same(b"\x01b\x07example\x00\x00\x1c\x00\x01"));
}

#[test]
fn names_are_printed_with_one_final_dot() {
    for (text, expected) in
        [(".", ". NS"), ("example", "example. NS"), ("a.example.", "a.example. NS")]
    {
        let query = Query::new(&name(text), Rtype::NS, &QueryOptions::default()).unwrap();
        assert_eq!(query.to_string(), expected);
    }
}

/// A list of a million queries is kept in memory.
#[test]
fn a_query_is_small() {
    assert!(size_of::<Query>() <= 24);
}

fn check_room(data: usize, padding: Option<u16>, fits: bool) {
    let option = EdnsOption { code: 65_001, data: vec![1; data] };
    let edns = Edns { options: vec![option], padding, ..Edns::default() };
    let options = QueryOptions { recursion_desired: false, edns: Some(edns) };
    let query = Query::new(&name("a.example"), Rtype::A, &options);
    assert_eq!(query.is_ok(), fits, "{data} octets, padding {padding:?}");
    if let Err(error) = query {
        assert!(error.to_string().contains("a.example: the message would be longer"));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    check_room(64_900, None, true);
    check_room(65_500, None, false);
    check_room(65_536, None, false);
    check_room(1 << 20, None, false);
    check_room(64_900, Some(128), true);
    check_room(40_000, Some(40_000), false);
    check_room(30_000, Some(40_000), true);
    check_room(0, Some(u16::MAX), true);
}

#[test]
fn transports_take_what_they_may() {
    let asked = Edns { padding: Some(128), keepalive: true, ..Edns::default() };
    let options = QueryOptions { recursion_desired: true, edns: Some(asked) };
    let taken = Transport::ALL.map(|transport| {
        let edns = options.for_transport(transport).edns.unwrap();
        (transport.name(), edns.padding.is_some(), edns.keepalive)
    });
    assert_eq!(
        taken,
        [
            ("udp", false, false),
            ("tcp", false, true),
            ("dot", true, true),
            ("doh2", true, false),
            ("doq", true, false),
            ("doh3", true, false),
        ]
    );
}

#[derive(Clone, Debug)]
struct Client {
    cookie: Option<Cookie>,
    subnet: Option<ClientSubnet>,
}

impl Client {
    fn additions(&self) -> Additions<'_> {
        Additions { cookie: self.cookie.as_ref(), subnet: self.subnet.as_ref(), padding: 0 }
    }
}

prop_compose! {
    fn cookies()(
        client in any::<[u8; 8]>(),
        server in prop::option::of(prop::collection::vec(any::<u8>(), 8..=32)),
    ) -> Cookie {
        let mut cookie = Cookie::new(client);
        if let Some(server) = server {
            let option = [client.as_slice(), &server].concat();
            assert_eq!(cookie.learn(&response(Some(&option))), CookieFinding::Learned);
            assert_eq!(cookie.server(), server);
        }
        cookie
    }
}

fn response(cookie: Option<&[u8]>) -> ResponseOptions<'_> {
    ResponseOptions { payload_size: 1232, cookie, ..ResponseOptions::default() }
}

fn clients() -> impl Strategy<Value = Client> {
    let subnet = (any::<IpAddr>(), 0u8..=128);
    let subnet = subnet.prop_map(|(address, prefix)| ClientSubnet::of(address, prefix));
    (prop::option::of(cookies()), prop::option::of(subnet))
        .prop_map(|(cookie, subnet)| Client { cookie, subnet })
}

fn edns() -> impl Strategy<Value = Edns> {
    // Codes for local use (RFC 6891, section 9), so that no option is mistaken for another.
    let option = (65_001u16..=65_534, prop::collection::vec(any::<u8>(), 0..20))
        .prop_map(|(code, data)| EdnsOption { code, data });
    let padding = prop::option::of(prop_oneof![Just(128u16), 0u16..=1_024]);
    let options = prop::collection::vec(option, 0..4);
    (any::<u16>(), any::<bool>(), options, padding, any::<bool>()).prop_map(
        |(payload_size, dnssec_ok, options, padding, keepalive)| Edns {
            payload_size,
            dnssec_ok,
            options,
            padding,
            keepalive,
        },
    )
}

prop_compose! {
    fn names()(labels in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6))
        -> Name<Vec<u8>>
    {
        let label = |label: &Vec<u8>| [&[label.len() as u8], label.as_slice()].concat();
        let mut octets: Vec<u8> = labels.iter().flat_map(label).collect();
        octets.push(0);
        Name::from_octets(octets).unwrap()
    }
}

fn options_of(message: &Message<&[u8]>) -> Vec<(u16, Vec<u8>)> {
    let Some(opt) = message.opt() else { return Vec::new() };
    opt.opt()
        .iter::<UnknownOptData<_>>()
        .map(|option| option.unwrap())
        .map(|option| (option.code().to_int(), option.as_slice().to_vec()))
        .collect()
}

fn expected_options(edns: &Edns, client: &Client) -> Vec<(u16, Vec<u8>)> {
    let mut expected: Vec<_> =
        edns.options.iter().map(|option| (option.code, option.data.clone())).collect();
    if edns.keepalive {
        expected.push((OptionCode::TCP_KEEPALIVE.to_int(), Vec::new()));
    }
    if let Some(cookie) = &client.cookie {
        let data = [cookie.client().as_slice(), cookie.server()].concat();
        expected.push((OptionCode::COOKIE.to_int(), data));
    }
    if let Some(subnet) = &client.subnet {
        let octets = match subnet.address() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let family = if subnet.address().is_ipv4() { 1 } else { 2 };
        let touched = usize::from(subnet.prefix()).div_ceil(8);
        let data = [&[0, family, subnet.prefix(), 0], &octets[..touched]].concat();
        expected.push((OptionCode::CLIENT_SUBNET.to_int(), data));
    }
    expected
}

proptest! {
    #[test]
    fn additions_are_read_back(
        name in names(),
        rtype in any::<u16>(),
        recursion_desired in any::<bool>(),
        edns in prop::option::of(edns()),
        client in clients(),
        id in any::<u16>(),
        before in prop::collection::vec(any::<u8>(), 0..30),
    ) {
        let options = QueryOptions { recursion_desired, edns };
        let query = Query::new(&name, Rtype::from_int(rtype), &options).unwrap();
        let mut out = before.clone();
        query.append_to(id, &client.additions(), &mut out);
        prop_assert_eq!(&out[..before.len()], &before);
        let octets = &out[before.len()..];
        prop_assert_eq!(octets.len(), query.length_with(&client.additions()));

        let message = Message::from_octets(octets).unwrap();
        prop_assert_eq!(message.header().id(), id);
        prop_assert_eq!(message.header().rd(), recursion_desired);
        prop_assert!(!message.header().qr());
        let question = message.sole_question().unwrap();
        prop_assert_eq!(question.qname(), &name);
        prop_assert_eq!(question.qtype().to_int(), rtype);
        prop_assert!(query.asks_the_same(&octets[HEADER..HEADER + query.question().len()]));

        let has_opt = options.edns.is_some() || !client.additions().is_empty();
        prop_assert_eq!(message.header_counts().arcount(), u16::from(has_opt));
        prop_assert_eq!(message.opt().is_some(), has_opt);
        prop_assert_eq!(ResponseOptions::read(octets).is_some(), has_opt);
        let edns = options.edns.unwrap_or_default();
        if let Some(opt) = message.opt() {
            prop_assert_eq!(opt.udp_payload_size(), edns.payload_size);
            prop_assert_eq!(opt.dnssec_ok(), edns.dnssec_ok);
            let _: Vec<opt::AllOptData<_, _>> = opt.opt().iter().map(Result::unwrap).collect();
        }
        let mut found = options_of(&message);
        if let Some(block) = edns.padding {
            let (code, data) = found.pop().unwrap();
            prop_assert_eq!(code, OptionCode::PADDING.to_int());
            prop_assert!(data.iter().all(|octet| *octet == 0));
            prop_assert!(data.len() < usize::from(block.max(1)));
            prop_assert!(octets.len().is_multiple_of(usize::from(block.max(1))));
        }
        prop_assert_eq!(found, expected_options(&edns, &client));
    }

    #[test]
    fn a_message_is_taken_up_as_it_was_sent(
        name in names(),
        rtype in any::<u16>(),
        recursion_desired in any::<bool>(),
        edns in prop::option::of(edns()),
        client in clients(),
        id in any::<u16>(),
        checking_disabled in any::<bool>(),
        behind in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let options = QueryOptions { recursion_desired, edns };
        let query = Query::new(&name, Rtype::from_int(rtype), &options).unwrap();
        let mut message = Vec::new();
        query.append_to(id, &client.additions(), &mut message);
        message[3] |= u8::from(checking_disabled) << 4;
        let taken = Query::from_message(&message);
        if rtype::is_transfer(rtype) {
            prop_assert_eq!(taken, Err(NotAQuery::Transfer));
            return Ok(());
        }
        let taken = taken.unwrap();
        prop_assert_eq!(&taken.octets()[..2], [0, 0]);
        prop_assert_eq!(&taken.octets()[2..10], &message[2..10]);
        prop_assert_eq!((taken.name(), taken.rtype()), (query.name(), query.rtype()));
        let (sent, kept) = (Message::from_octets(&message[..]).unwrap(), Message::from_octets(taken.octets()).unwrap());
        prop_assert_eq!(sent.opt().is_some(), kept.opt().is_some());
        let left_out = [COOKIE, KEEPALIVE, PADDING];
        let mut expected = options_of(&sent);
        expected.retain(|(code, _)| !left_out.contains(code));
        prop_assert_eq!(options_of(&kept), expected);
        // What is taken up can be taken up again, and gets its client's additions.
        prop_assert_eq!(Query::from_message(taken.octets()).unwrap(), taken.clone());
        let mut again = Vec::new();
        taken.append_to(id, &client.additions(), &mut again);
        prop_assert_eq!(again.len(), taken.length_with(&client.additions()));
        prop_assert!(Message::from_octets(&again[..]).unwrap().opt().is_some() || client.additions().is_empty());
        // A part of it is no query.
        for end in 0..message.len() {
            prop_assert!(Query::from_message(&message[..end]).is_err(), "{} octets", end);
        }
        // What is behind it stays there, unless a client adds something.
        message.extend(&behind);
        let with_more = Query::from_message(&message).unwrap();
        prop_assert_eq!(with_more.octets(), [taken.octets(), &behind].concat());
        prop_assert_eq!(Query::from_message(with_more.octets()).unwrap(), with_more.clone());
        prop_assert_eq!((with_more.question(), with_more.has_opt()), (taken.question(), taken.has_opt()));
        let additions = client.additions();
        let mut sent_again = Vec::new();
        with_more.append_to(id, &additions, &mut sent_again);
        prop_assert_eq!(sent_again.len(), with_more.length_with(&additions));
        if additions.is_empty() {
            prop_assert_eq!(&sent_again[2..], &with_more.octets()[2..]);
        } else {
            prop_assert_eq!(&sent_again, &again);
        }
        sent_again.clear();
        with_more.append_records_to(id, &additions, &mut sent_again);
        prop_assert_eq!(sent_again, again);
    }

    #[test]
    fn any_octets_are_a_query_or_none(octets in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(query) = Query::from_message(&octets) {
            prop_assert!(query.octets().len() <= octets.len());
            prop_assert_eq!(query.question(), &octets[HEADER..HEADER + query.question().len()]);
        }
    }

    #[test]
    fn without_additions_it_is_the_template(edns in prop::option::of(edns()), id in any::<u16>()) {
        let options = QueryOptions { recursion_desired: true, edns };
        let query = Query::new(&name("www.example"), Rtype::A, &options).unwrap();
        let mut out = Vec::new();
        query.append_to(id, &Additions::default(), &mut out);
        prop_assert_eq!(&out[..2], id.to_be_bytes());
        prop_assert_eq!(&out[2..], &query.octets()[2..]);
        prop_assert_eq!(&query.octets()[..2], [0, 0]);
    }
}

#[test]
fn a_captured_query_is_padded_by_its_client() {
    let plain = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01";
    let with_edns =
        [&plain[..10], b"\0\x01", &plain[12..], b"\0\0\x29\x10\0\0\0\x80\0\0\0"].concat();
    for (message, payload_size) in [(&plain[..], 1232), (&with_edns, 4096)] {
        let query = Query::from_message(message).unwrap();
        for padding in [1, 128, 468] {
            let additions = Additions { padding, ..Additions::default() };
            let mut octets = Vec::new();
            query.append_to(7, &additions, &mut octets);
            assert_eq!(octets.len() % usize::from(padding), 0);
            assert_eq!(query.length_with(&additions), octets.len());
            // It is a whole message with one OPT record, and what is padding is left out again.
            let again = Query::from_message(&octets).unwrap();
            assert_eq!(again.question(), query.question());
            let opt = again.octets().len() - 11;
            assert_eq!(again.octets()[opt..opt + 3], [0, 0, 41]);
            let read = u16::from_be_bytes([again.octets()[opt + 3], again.octets()[opt + 4]]);
            assert_eq!(read, payload_size);
        }
    }
    // One that fills a message is sent as it is.
    let mut long = with_edns;
    let data = 65_535 - 200 - long.len();
    let opt = long.len() - 2;
    long[opt..].copy_from_slice(&(data as u16 + 4).to_be_bytes());
    long.extend([0xfd, 0xe9]);
    long.extend((data as u16).to_be_bytes());
    long.resize(long.len() + data, 1);
    if let Ok(query) = Query::from_message(&long) {
        let additions = Additions { padding: 16_384, ..Additions::default() };
        let mut octets = Vec::new();
        query.append_to(7, &additions, &mut octets);
        assert_eq!(octets.len(), long.len());
    }
}
