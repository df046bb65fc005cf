//! Every way in which a query can end, and loads that do not begin or are interrupted.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dnslab_figures::{Answers, Outcomes};
use dnslab_load::{Expected, Job, LoadResult, Progress, run};
use dnslab_settings::{Load, Mode, RightCodes};
use dnslab_test_support::free_address;
use dnslab_traffic::{Pace, Rate};
use dnslab_wire::Transport;

use crate::failures::applied::{apply, both, closed_and_open, job, open};
use crate::failures::server::{answer, read_query, send, tcp_server, udp_server};

#[test]
fn wrong_answers_are_counted_with_an_example() {
    let result = apply(&job(udp_server(|_, query| vec![answer(query, 2)]), Transport::Udp));
    let answers = &result.measured.counters.answers;
    assert_eq!(answers.wrong, answers.rcodes["SERVFAIL"]);
    assert!(result.wrong_example.unwrap().ends_with("A was answered with SERVFAIL, 0 records"));
}

/// The query sent back with a header that promises a record that is not there.
fn lie(query: &[u8]) -> Vec<u8> {
    let mut lie = answer(query, 0);
    lie[7] = 1;
    lie
}

/// The answer to a query of type A of the load, with its record before the OPT record of the query.
fn whole(query: &[u8]) -> Vec<u8> {
    let mut whole = lie(query);
    let question_end = 12 + whole[12..].iter().position(|octet| *octet == 0).unwrap() + 5;
    let record = b"\xc0\x0c\0\x01\0\x01\0\0\0\x09\0\x04\xc0\0\x02\x01";
    whole.splice(question_end..question_end, *record);
    whole
}

#[test]
fn a_header_that_promises_a_record_is_not_believed() {
    let over_tcp = tcp_server(|mut stream| {
        while read_query(&mut stream).is_some_and(|query| send(&mut stream, &lie(&query))) {}
    });
    let over_udp = udp_server(|_, query| vec![lie(query)]);
    for (target, transport) in [(over_udp, Transport::Udp), (over_tcp, Transport::Tcp)] {
        let result = apply(&job(target, transport));
        let Answers { wrong, checked, malformed, .. } = result.measured.counters.answers;
        assert!(checked > 0 && malformed == checked, "{malformed} of {checked} over {transport}");
        assert_eq!(wrong, 0, "the header is as it should be");
        let example = result.malformed_example.unwrap();
        let said = "A: the answer section has 0 whole records, and its header counts 1";
        assert!(
            example.starts_with("malformed answer to ") && example.ends_with(said),
            "{example}"
        );
    }
}

/// The query sent back with an alias of its name that leads elsewhere.
fn alias(query: &[u8]) -> Vec<u8> {
    let mut alias = lie(query);
    alias.extend_from_slice(b"\xc0\x0c\0\x05\0\x01\0\0\0\x09\0\x03\x01x\0");
    alias
}

#[test]
fn where_a_record_is_expected_an_alias_or_a_truncated_answer_is_none() {
    let load = |target, answers| {
        let expected = Some(Expected { codes: RightCodes::One(0), answers });
        apply(&Job { expected, ..job(target, Transport::Udp) })
    };
    let aliases = udp_server(|_, query| vec![alias(query)]);
    let Answers { checked, malformed, wrong, .. } = load(aliases, 0).measured.counters.answers;
    assert!(checked > 0 && (malformed, wrong) == (0, 0));
    let result = load(aliases, 1);
    let Answers { checked, malformed, .. } = result.measured.counters.answers;
    assert!(checked > 0 && malformed == checked, "{malformed} of {checked}");
    assert!(result.malformed_example.unwrap().ends_with("was answered with aliases alone"));

    let truncated = udp_server(|_, query| {
        let mut truncated = answer(query, 0);
        truncated[2] |= 0x02;
        vec![truncated]
    });
    assert_eq!(load(truncated, 0).measured.counters.answers.wrong, 0);
    let result = load(truncated, 1);
    let counters = result.measured.counters;
    assert_eq!(counters.answers.wrong, counters.outcomes.answered);
    assert!(result.wrong_example.unwrap().ends_with(", truncated"));
}

#[test]
fn whole_answers_are_checked_and_nothing_is_found() {
    let result = apply(&job(udp_server(|_, query| vec![whole(query)]), Transport::Udp));
    let Answers { wrong, checked, malformed, .. } = result.measured.counters.answers;
    assert!(checked > 0, "none was checked");
    assert_eq!((wrong, malformed), (0, 0), "{:?}", result.malformed_example);
}

/// As with a server one of whose threads hangs: the kernel always gives it the same clients.
#[test]
fn a_client_that_is_answered_no_more_is_counted() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        let (mut first, mut answers) = (None, 0);
        loop {
            let (length, client) = socket.recv_from(&mut buffer).unwrap();
            let hangs = *first.get_or_insert(client) == client && answers >= 100;
            if !hangs {
                answers += 1;
                socket.send_to(&answer(&buffer[..length], 0), client).ok();
            }
        }
    });
    let job = job(target, Transport::Udp).with(|load| {
        load.mode = Mode::Closed { outstanding: 1 };
        load.duration = Duration::from_millis(1_500);
    });
    let measured = apply(&job).measured;
    let forsaken: u32 = measured.workers.iter().map(|worker| worker.forsaken_clients).sum();
    assert_eq!(forsaken, 1, "{:?}", measured.counters.outcomes);
    // Few are lost, for they wait.
    assert!(measured.counters.outcomes.lost() < 20, "{:?}", measured.counters.outcomes);
}

#[test]
fn nobody_at_the_port_is_a_time_out() {
    // The address was free a moment ago; the kernel answers with ICMP, which is no DNS answer.
    let target = free_address([127, 0, 0, 1].into());
    let result = apply(&job(target, Transport::Udp));
    let outcomes = result.measured.counters.outcomes;
    assert!(outcomes.due > 0);
    assert_eq!(outcomes.timed_out, outcomes.due);
}

#[test]
fn nobody_listening_is_not_sent() {
    let target = free_address([127, 0, 0, 1].into());
    let result = apply(&job(target, Transport::Tcp).with(|load| {
        load.mode = Mode::Open { rate: Rate::Constant(1_000.0), pace: Pace::Poisson };
    }));
    let counters = &result.measured.counters;
    assert!(counters.outcomes.due > 0);
    assert_eq!(counters.outcomes.not_sent, counters.outcomes.due);
    assert!(counters.connections.failed > 0);
    assert!(result.last_connection_end.unwrap().starts_with("cannot connect"));
}

/// Who closes a connection after its first answer has served it. Who accepts connections to close them, and who
/// refuses them, has turned them away.
#[test]
fn connections_that_are_turned_away_are_counted() {
    let serving = tcp_server(|mut stream| {
        if let Some(query) = read_query(&mut stream) {
            send(&mut stream, &answer(&query, 0));
        }
    });
    let closing = tcp_server(|mut stream| drop(read_query(&mut stream)));
    let closed_port = free_address([127, 0, 0, 1].into());
    let connections = |target| both(&apply(&job(target, Transport::Tcp))).connections;
    let served = connections(serving);
    assert!(served.lost > 0 && served.refused == 0, "{served:?}");
    let turned_away = connections(closing);
    assert!(turned_away.lost > 0 && turned_away.refused == turned_away.lost, "{turned_away:?}");
    let refused = connections(closed_port);
    assert!(refused.failed > 0 && refused.refused == refused.failed, "{refused:?}");
}

#[test]
fn an_interrupt_ends_the_window_and_keeps_the_sums() {
    let target = udp_server(|_, query| vec![answer(query, 0)]);
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let job = job(target, Transport::Udp).with(|load| load.duration = Duration::from_secs(600));
    let mut intervals = 0;
    let result = run(&job, &stop, &mut |progress| {
        intervals += u32::from(matches!(progress, Progress::Interval(_)));
        asked.store(intervals >= 2, Ordering::Relaxed);
    })
    .unwrap();
    assert!(result.cut_short);
    assert!(result.measured.window_ns < 60_000_000_000);
    assert!(result.measured.counters.outcomes.answered > 0);
}

/// A load that is left after some ticks, long before its window and the time-outs of its queries are over.
fn left_early(job: Job) -> LoadResult {
    let job = job.with(|load| {
        load.duration = Duration::from_secs(600);
        load.timeout = Duration::from_secs(100);
    });
    let (stop, mut ticks) = (AtomicBool::new(false), 0);
    run(&job, &stop, &mut |_| {
        ticks += 1;
        stop.store(ticks >= 8, Ordering::Relaxed);
    })
    .unwrap()
}

#[test]
fn a_load_that_is_left_does_not_wait_for_the_time_outs() {
    let jobs = closed_and_open(job(udp_server(|_, _| Vec::new()), Transport::Udp));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let unread = job(nobody.local_addr().unwrap(), Transport::Tcp);
    // More than any server takes, more than any generator makes, and a rate that comes by chance or grows.
    let too_much = [(1e9, Pace::Constant), (50e6, Pace::Poisson)].map(|(rate, pace)| {
        jobs[0].clone().with(|load| load.mode = Mode::Open { rate: Rate::Constant(rate), pace })
    });
    for job in jobs.into_iter().chain([unread]).chain(too_much) {
        let what = format!("{} {:?}", job.settings.transport, job.settings.mode);
        let result = left_early(job);
        let outcomes =
            [&result.measured.warm_up, &result.measured.counters].map(|counters| counters.outcomes);
        let sum = |count: fn(&Outcomes) -> u64| outcomes.iter().map(count).sum::<u64>();
        // What nobody waited for is neither answered nor lost.
        assert!(result.cut_short && sum(|part| part.interrupted) > 0, "{what}: {outcomes:?}");
        assert_eq!(sum(|part| part.timed_out), 0, "{what}: {outcomes:?}");
        assert_eq!(
            sum(|part| part.ended()),
            sum(|part| part.settled() - part.interrupted),
            "{what}"
        );
        let in_intervals: u64 = result.measured.intervals.iter().map(|interval| interval.due).sum();
        assert_eq!(in_intervals, sum(|part| part.due), "{what}");
    }
}

#[test]
fn a_rate_that_nobody_can_send_ends_and_every_query_has_its_outcome() {
    let server = udp_server(|_, query| vec![answer(query, 0)]);
    let job = job(server, Transport::Udp).with(|load| open(load, 1e9));
    for job in [job.clone(), job.with(|load| load.mix = Some("tcp:40%".parse().unwrap()))] {
        let measured = apply(&job).measured;
        let [warm_up, counters] = [&measured.warm_up, &measured.counters];
        // One a nanosecond, over 100 ms and over 400 ms.
        let due = [warm_up.outcomes.due, counters.outcomes.due];
        assert_eq!(due, [100_000_000, 400_000_000]);
        assert!(counters.outcomes.not_sent > counters.outcomes.due / 2, "{counters:?}");
        assert_eq!(measured.latency.len(), counters.outcomes.due);
        let over: u64 = counters.by_transport.values().map(|over| over.due).sum();
        assert!(over == 0 || over == counters.outcomes.due, "{:?}", counters.by_transport);
    }
}

#[test]
fn impossible_loads_are_refused_before_the_start() {
    let target: SocketAddr = "127.0.0.1:53".parse().unwrap();
    let refuse = |change: fn(&mut Load), expected: &str| {
        let job = job(target, Transport::Udp).with(change);
        let error = run(&job, &AtomicBool::new(false), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refuse(|load| load.clients = 4_000_000, "ulimit -n");
    refuse(|load| load.transport = Transport::Dot, "needs TLS settings");
    refuse(|load| load.cpus = vec![1_000], "CPU 1000");
}
