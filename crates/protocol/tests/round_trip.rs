//! What is read back equals what was sent.

use std::collections::BTreeMap;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dnslab_client::{
    Endpoint, Expected, IntervalRecord, Job, Millisecond, PlayedClients, Share, TlsSettings,
    Verification,
};
use dnslab_figures::{ByPhase, Counters, Histogram, HttpRefusals};
use dnslab_protocol::{
    Answer, Counted, Failure, FoundServer, FromAgent, Order, PortChoice, SentFile, SentFill,
    SentJob, SentPolicy, SentQueries, SentRootHints, SentShare, SentSignatures, SentSource,
    SentUpstream, SentZone, ServerOrder, Sought, ToAgent, Unreadable, body_of, message_of,
};
use dnslab_record::{LiveInterval, LiveServer, MeasuredShare, RunRecord};
use dnslab_settings::{ChainRole, Identity, Load, Mode, RightCodes};
use dnslab_traffic::{Pace, QueryList, Rate, SlicePlan, Timeline};
use dnslab_wire::{Edns, Query, QueryOptions, Transport};
use domain::base::Name;
use domain::base::iana::Rtype;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde::{Deserialize, Serialize};

#[track_caller]
fn read_back<M: Serialize + for<'a> Deserialize<'a>>(message: &M) -> M {
    let body = body_of(message).unwrap();
    let read = message_of(&body).unwrap();
    assert_eq!(body_of(&read).unwrap(), body);
    read
}

/// Nobody sends flow labels of IPv6.
fn addresses() -> impl Strategy<Value = SocketAddr> {
    any::<(IpAddr, u16)>().prop_map(SocketAddr::from)
}

fn durations() -> impl Strategy<Value = Duration> {
    (1_000_000u64..100_000_000_000).prop_map(Duration::from_nanos)
}

fn modes() -> impl Strategy<Value = Mode> {
    let rates = || (1e-3..1e9).prop_map(Rate::Constant);
    let paces = select(&[Pace::Constant, Pace::Poisson][..]);
    prop_oneof![
        (1u32..=65_535).prop_map(|outstanding| Mode::Closed { outstanding }),
        (rates(), paces).prop_map(|(rate, pace)| Mode::Open { rate, pace }),
        "[a-z]{1,9}".prop_map(|path| Mode::Capture(path.into())),
        rates().prop_map(|rate| Mode::Population { source: "typical".parse().unwrap(), rate }),
    ]
}

fn loads() -> impl Strategy<Value = Load> {
    let transports = select(&Transport::ALL[..]);
    let times = (durations(), durations(), option::of(durations()));
    let subnets = option::of(Just("10.0.0.0/8 by /24".parse().unwrap()));
    let key = option::of(Just("hmac-sha512:key.test:c2VjcmV0".parse().unwrap()));
    let more = (option::of(1u32..1_024), btree_set(0usize..64, 0..4), any::<bool>());
    (modes(), transports, 1u32..=1_000_000, times, subnets, key, more).prop_map(
        |(mode, transport, clients, (duration, warm_up, idle), client_subnets, tsig, more)| Load {
            mode,
            transport,
            clients,
            duration,
            warm_up,
            idle,
            client_subnets,
            tsig,
            workers: more.0,
            cpus: more.1.into_iter().collect(),
            cookies: more.2,
            windows: more.2.then(|| "cold:0s..60s,warm:60s..120s".parse().unwrap()),
            ..Load::default()
        },
    )
}

/// Queries with and without EDNS, options and padding, and one that a client sent, with octets behind it.
fn queries() -> impl Strategy<Value = Vec<Query>> {
    let names = "[a-z]{1,20}(\\.[a-z0-9]{1,10}){0,3}\\.";
    let edns = (any::<bool>(), any::<bool>(), option::of(1u16..600), 512u16..).prop_map(
        |(dnssec_ok, keepalive, padding, payload_size)| Edns {
            dnssec_ok,
            keepalive,
            padding,
            payload_size,
            ..Edns::default()
        },
    );
    let query = (names, option::of(edns), any::<bool>()).prop_map(|(name, edns, rd)| {
        let name: Name<Vec<u8>> = name.parse().unwrap();
        let options = QueryOptions { recursion_desired: rd, edns };
        Query::new(&name, Rtype::AAAA, &options).unwrap()
    });
    let captured = vec(any::<u8>(), 0..9).prop_map(|behind| {
        let name: Name<Vec<u8>> = "captured.example.".parse().unwrap();
        let query = Query::new(&name, Rtype::A, &QueryOptions::default()).unwrap();
        Query::from_message(&[query.octets(), &behind].concat()).unwrap()
    });
    vec(prop_oneof![4 => query, 1 => captured], 1..30)
}

fn timelines() -> impl Strategy<Value = Timeline> {
    let turns = (1usize..5, 1u64..50, any::<u64>()).prop_map(|(loads, slice, seed)| {
        let slice = Duration::from_millis(slice);
        let plan = SlicePlan { slice, lead: slice / 4, tail: slice / 9, mirrored: true };
        let length = plan.length(loads, Duration::from_secs(1));
        Timeline::in_turns(
            Duration::from_millis(200),
            length,
            plan.turns(loads, length, seed).remove(0),
        )
    });
    let alone = (durations(), durations()).prop_map(|(warm_up, own)| Timeline::alone(warm_up, own));
    prop_oneof![alone, turns]
}

/// TLS that trusts one certificate, or any.
fn tls(is_verified: bool) -> TlsSettings {
    let verification = match is_verified {
        true => {
            let made = rcgen::generate_simple_self_signed(["ns.example".to_owned()]).unwrap();
            Verification::Certificates(vec![made.cert.der().clone()])
        }
        false => Verification::Off,
    };
    TlsSettings::new("ns.example", &verification).unwrap()
}

fn endpoints() -> impl Strategy<Value = Vec<Endpoint>> {
    let endpoint = (select(&Transport::ALL[..]), addresses(), 0.0..0.3, any::<bool>());
    let endpoint = endpoint.prop_map(|(transport, target, share, is_verified)| {
        let tls = transport.is_encrypted().then(|| tls(is_verified));
        Endpoint { transport, target, tls, share }
    });
    vec(endpoint, 0..3)
}

fn jobs() -> impl Strategy<Value = Job> {
    let codes = prop_oneof![
        Just(RightCodes::Any),
        Just(RightCodes::Answers),
        any::<u16>().prop_map(RightCodes::One),
    ];
    let expected = option::of((codes, any::<u16>()))
        .prop_map(|expected| expected.map(|(codes, answers)| Expected { codes, answers }));
    let played = (".*", 0.0..1e9)
        .prop_map(|(description, rate_qps)| PlayedClients { description, rate_qps });
    let basics = (loads(), timelines(), addresses(), queries(), any::<u64>());
    let more = (expected, played, option::of(any::<bool>()), endpoints(), vec(endpoints(), 0..2));
    (basics, more, 1u32..64, any::<bool>()).prop_map(
        |((load, timeline, target, queries, seed), more, workers, tells)| {
            let (expected, played, is_verified, others, further) = more;
            let played = load.mode.is_played().then_some(played);
            let workers = if played.is_some() { workers } else { workers.min(load.clients) };
            let of_load = |tls: TlsSettings| tls.of_load(&load);
            let tls = is_verified.map(tls).map(of_load);
            let queries = Arc::new(QueryList::from_queries(queries, "a list".to_owned()));
            let cpus = load.cpus.clone();
            Job {
                timeline,
                workers,
                cpus,
                seed,
                expected,
                tls,
                played,
                others,
                further,
                tells,
                ..Job::new(load, target, queries)
            }
        },
    )
}

/// What of TLS decides how clients behave.
fn facts(tls: &TlsSettings) -> impl PartialEq + std::fmt::Debug + use<> {
    let offered = (tls.versions(), tls.groups().to_vec(), tls.records());
    let used = (tls.resumption(), tls.early_data());
    (tls.server_name(), tls.trusted().map(<[_]>::to_vec), offered, used)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_job_is_the_one_that_was_sent(job in jobs()) {
        let (mut queries, description) = (Vec::new(), job.queries.description().to_owned());
        for part in SentQueries::parts_of(&job.queries) {
            let part = read_back(&part);
            prop_assert_eq!(&part.description, &description);
            queries.extend(part.queries(queries.len() + 1).unwrap());
        }
        let queries = Arc::new(QueryList::from_queries(queries, description));
        let read = read_back(&SentJob::from(&job)).with_queries(queries).unwrap();
        prop_assert_eq!(&read.settings, &job.settings);
        prop_assert_eq!(&read.timeline, &job.timeline);
        prop_assert_eq!(&read.queries, &job.queries);
        prop_assert_eq!((read.target, read.seed, read.workers), (job.target, job.seed, job.workers));
        prop_assert_eq!((&read.cpus, &read.played, read.tells), (&job.cpus, &job.played, job.tells));
        prop_assert_eq!(read.expected, job.expected);
        prop_assert_eq!(read.tls.as_ref().map(facts), job.tls.as_ref().map(facts));
        let ways = |endpoints: &[Endpoint]| -> Vec<_> {
            let way = |at: &Endpoint| (at.transport, at.target, at.share, at.tls.as_ref().map(|tls| tls.trusted().map(<[_]>::to_vec)));
            endpoints.iter().map(way).collect()
        };
        prop_assert_eq!(ways(&read.others), ways(&job.others));
        prop_assert_eq!(read.further.len(), job.further.len());
        for (read, sent) in read.further.iter().zip(&job.further) {
            prop_assert_eq!(ways(read), ways(sent));
        }
    }

    #[test]
    fn progress_is_what_was_counted(
        latencies in vec(0u64..100_000_000_000, 0..50),
        counts in btree_map("[A-Z]{1,9}", any::<u64>(), 0..4),
        numbers: [u64; 4],
    ) {
        let mut latency = Histogram::default();
        latencies.iter().for_each(|ns| latency.record_ns(*ns));
        let mut counters = Counters { sent: numbers[0], ..Counters::default() };
        counters.answers.rcodes = counts.into_iter().collect::<BTreeMap<_, _>>();
        counters.http_refusals.insert(503, HttpRefusals { count: 7, first_ns: numbers[1] });
        let interval = LiveInterval {
            latency,
            counters: ByPhase { warm_up: Counters::default(), measured: counters },
            busiest_worker_ns: numbers[1],
            window_ns: numbers[2]..numbers[3],
            ..LiveInterval::default()
        };
        prop_assert_eq!(read_back(&interval), interval);
    }

    #[test]
    fn what_a_host_counted_is_what_comes(
        latencies in vec(0u64..100_000_000_000, 0..50),
        milliseconds in vec(any::<(u32, u32)>(), 0..9),
        numbers: [u32; 4],
    ) {
        let mut latency = Histogram::default();
        latencies.iter().for_each(|ns| latency.record_ns(*ns));
        let millisecond = |(due, sent)| Millisecond { due, sent };
        let record = IntervalRecord {
            number: numbers[0].into(),
            busiest: numbers[1].into(),
            milliseconds: milliseconds.into_iter().map(millisecond).collect(),
            first_millisecond: numbers[2].into(),
            latency,
            ..IntervalRecord::default()
        };
        let interval =
            FromAgent::Interval { load: numbers[3], member: 1, record: Counted(record).into() };
        prop_assert_eq!(read_back(&interval), interval);
    }
}

/// The records of real runs, over four transports, with faults and without.
#[test]
fn results_are_what_was_measured_and_watched() {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/samples/v1/runs");
    let mut read = 0;
    for run in std::fs::read_dir(runs).unwrap() {
        let text = std::fs::read_to_string(run.unwrap().path().join("record.json")).unwrap();
        let record: RunRecord = serde_json::from_str(&text).unwrap();
        let Some(measured) = record.measured else { continue };
        assert_eq!(read_back(&measured), measured);
        let share = MeasuredShare { late_ns: 7, counted: measured, ..MeasuredShare::default() };
        let ended = FromAgent::Ended { load: 1, member: 0, share: Ok(Box::new(Counted(share))) };
        assert_eq!(read_back(&ended), ended);
        assert_eq!(read_back(&record.watched), record.watched);
        let resources = Box::new(record.watched.resources);
        let series = FromAgent::Done { id: 7, answer: Answer::Resources(resources) };
        assert_eq!(read_back(&series), series);
        let plain = Some("192.0.2.1:53".parse().unwrap());
        let found = FoundServer { facts: record.server, file_limit: Some(1_024), plain };
        let found = FromAgent::Done { id: u32::MAX, answer: Answer::Found(Box::new(found)) };
        assert_eq!(read_back(&found), found);
        read += 1;
    }
    assert!(read > 5, "{read} records");
}

#[test]
fn an_error_keeps_its_causes() {
    let error: Box<dyn Error + 'static> =
        Box::new(Unreadable::from(serde_json::from_str::<u8>("x").unwrap_err()));
    let failure = Failure::from(&*error);
    assert!(failure.reason.starts_with("this is no message"), "{failure:?}");
    assert_eq!(failure.causes.len(), 1);
    let failed = FromAgent::Failed { id: 1, failure: failure.clone() };
    assert_eq!(read_back(&failed), failed);
    let failed = FromAgent::Ended { load: 1, member: 0, share: Err(failure) };
    assert_eq!(read_back(&failed), failed);
}

#[test]
fn orders_and_answers_are_those_that_were_sent() {
    let sought = Sought {
        identity: Identity::Unit("named.service".to_owned()),
        transport: "dot".to_owned(),
        address: "[2001:db8::1]:853".parse().unwrap(),
    };
    let queries = Arc::new(QueryList::from_queries(Vec::new(), "none".to_owned()));
    let job = Job::new(Load::default(), sought.address, Arc::clone(&queries));
    let (job, asked) = (SentJob::from(&job), SentJob::from(&job));
    let share = Share { first: 3, count: 2 };
    for order in [
        Order::Find { server: 1, sought },
        Order::Forget { server: 1 },
        Order::Watch {
            server: 1,
            watch: 2,
            load_cpus: vec![0, 7],
            has_no_interrupts: true,
            own: vec![1],
        },
        Order::Told { load: 5, member: 1, from: u64::MAX },
        Order::Serve { server: 1, order: Box::new(server_order(&queries, &asked)) },
        Order::Leave { number: 2 },
        Order::WatchLoad { watch: 3, cpus: vec![1] },
        Order::Queries { list: 4, part: SentQueries::parts_of(&queries).remove(0) },
        Order::Load { load: 5, members: vec![SentShare { job, list: 4, share }] },
        Order::Begin { load: 5, at_ns: -7 },
        Order::StopLoad { load: 5, member: 1 },
        Order::Examine { of_load: true },
        Order::Path { to: "2001:db8::1".parse().unwrap() },
        Order::CanServe { variant: "name = \"x\"".to_owned(), role: ChainRole::Upstream },
        Order::Count { server: 1, count: 2, statistics: Some("127.0.0.1:8053".parse().unwrap()) },
        Order::Feed { load: 5, member: 0, worker: 1, fill: SentFill::End { queries: u64::MAX } },
        Order::Ask {
            job: Box::new(asked),
            query: SentQueries::parts_of(&queries).remove(0),
            client: 7,
            transport: "dot".to_owned(),
            server: 1,
            timeout_ns: 5,
        },
        Order::Sample {
            server: 1,
            sampling: 3,
            length_ns: u64::MAX,
            load_cpus: vec![1],
            folder: Some("/x".into()),
        },
        Order::EndSample { sampling: 3, origin_ns: -1, from_ns: 0, to_ns: 5, max_stacks: 9 },
        Order::EndWatch { watch: 2, origin_ns: i64::MAX, from_ns: -1, to_ns: 5 },
    ] {
        let order = ToAgent::Order { id: 3, order };
        assert_eq!(read_back(&order), order);
    }
    let server = LiveServer { cpu_share: Some(0.1 + 0.2), ..LiveServer::default() };
    let latest = FromAgent::Latest { watch: 2, server, cpus: Vec::new() };
    assert_eq!(read_back(&latest), latest);
    assert!(message_of::<ToAgent>(br#"{"order":{"id":1,"order":{"reboot":{}}}}"#).is_err());
}

fn server_order(queries: &QueryList, asked: &SentJob) -> ServerOrder {
    let question = SentQueries::parts_of(queries).remove(0);
    let file = SentFile::There("/x/authority.pem".into());
    ServerOrder {
        variant: "name = \"x\"".to_owned(),
        role: ChainRole::Relay,
        folder: Some("/x".into()),
        address: "2001:db8::1".parse().unwrap(),
        ports: PortChoice::Beside,
        cpus: vec![1],
        connections: 7,
        seed: u64::MAX,
        question: question.clone(),
        has_record: false,
        denied: Some(question),
        source: SentSource {
            zone: Some(SentZone {
                file: SentFile::Sent(3),
                signatures: Some(SentSignatures { nsec3: Some("1 0 0 -".to_owned()) }),
            }),
            upstream: Some(SentUpstream {
                addresses: vec!["192.0.2.1:853".parse().unwrap()],
                transport: "dot".to_owned(),
                tls: Some((file.clone(), "dns.example".to_owned())),
            }),
            root_hints: Some(SentRootHints::Zone(". NS a.".to_owned())),
            trust_anchors: vec![". IN DS 1 8 2 AB".to_owned()],
            policy: Some(SentPolicy { name: "rpz.".to_owned(), file: file.clone() }),
            names: Some(file),
            hierarchy: Some("seed = 1".to_owned()),
            path_delay: Some("5ms".to_owned()),
        },
        client: Box::new(asked.clone()),
        start_limit_ns: 5,
    }
}

/// A job with one change of its text.
fn refused(from: &str, to: &str) -> String {
    let name: Name<Vec<u8>> = "a.example.".parse().unwrap();
    let query = Query::new(&name, Rtype::A, &QueryOptions::default()).unwrap();
    let queries = Arc::new(QueryList::from_queries(vec![query], "a list".to_owned()));
    let job = Job::new(Load::default(), "192.0.2.53:53".parse().unwrap(), queries);
    let text = serde_json::to_string(&SentJob::from(&job)).unwrap();
    assert!(text.contains(from), "{text}");
    let changed = message_of::<SentJob>(text.replacen(from, to, 1).as_bytes());
    match changed {
        Ok(sent) => sent.with_queries(Arc::clone(&job.queries)).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

const TURNS_OF_NOBODY: &str =
    "\"turns\":{\"order\":[0,7],\"own\":0,\"loads\":2,\"slice_ns\":50,\"lead_ns\":1,\"tail_ns\":0}";

#[test]
fn what_nobody_can_apply_is_refused() {
    let error = refused("load.clients = 100", "load.clients = 0");
    assert!(error.contains("load.clients"), "{error}");
    let error = refused("\"workers\":1", "\"workers\":0");
    assert!(error.contains("0 workers"), "{error}");
    let part = r#"{"description":"","messages":[["AAAA",0]]}"#;
    let error = message_of::<SentQueries>(part.as_bytes()).unwrap().queries(8).unwrap_err();
    assert!(error.to_string().contains("query 8"), "{error}");
    let error = refused("\"workers\":1", "\"workers\":101");
    assert!(error.contains("101 workers"), "{error}");
    let error = refused("\"until_ns\":12000000000", "\"until_ns\":1");
    assert!(error.contains("a timeline ends"), "{error}");
    let error = refused("\"turns\":null", TURNS_OF_NOBODY);
    assert!(error.contains("one of the loads"), "{error}");
    let error = refused("\"played\":null", "\"played\":{\"description\":\"\",\"rate_qps\":1.0}");
    assert!(error.contains("plays clients"), "{error}");
    let tls = "\"tls\":{\"server_name\":\"a\",\"trusted\":[]}";
    let error = refused("\"tls\":null", tls);
    assert!(error.contains("no authority"), "{error}");
    let error = refused("load.clients = 100", "server.kind = \\\"bind\\\"");
    assert!(error.contains("no key of a load"), "{error}");
}
