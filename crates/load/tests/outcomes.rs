//! Servers that misbehave on purpose: whatever they do, every due query has exactly one outcome,
//! and the strays are counted for what they are.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_load::{Expected, LoadResult, LoadSpec, Mode, Progress, run};
use dnslab_traffic::{Pace, QueryList, Selection, SyntheticZone};
use dnslab_wire::{QueryOptions, Transport};
use domain::base::Name;

fn queries() -> Arc<QueryList> {
    let origin = Name::from_str("test.example").unwrap();
    let zone = SyntheticZone::new(origin, 7, Duration::from_secs(1)).unwrap();
    Arc::new(QueryList::from_zone(&zone, &QueryOptions::default()))
}

fn spec(target: SocketAddr, transport: Transport) -> LoadSpec {
    LoadSpec {
        target,
        transport,
        clients: 3,
        mode: Mode::Closed { outstanding: 5 },
        duration: Duration::from_millis(400),
        warm_up: Duration::from_millis(100),
        timeout: Duration::from_millis(150),
        workers: 2,
        cpus: Vec::new(),
        queries: queries(),
        selection: Selection::InOrder,
        seed: 1,
        expected: Some(Expected { rcode: 0, answers: 0 }),
        tls: None,
        horizon: Duration::from_micros(50),
    }
}

fn go(spec: &LoadSpec) -> LoadResult {
    let mut told = 0;
    let result = run(spec, &AtomicBool::new(false), &mut |progress| {
        told += u32::from(matches!(progress, Progress::Interval(_)))
    })
    .unwrap();
    assert!(told > 0, "no interval was reported");
    // `run` has asserted the sums; here, that the series tells the same story.
    let due: u64 = result.measured.intervals.iter().map(|interval| interval.due).sum();
    let counted = result.measured.counters.outcomes.due + result.measured.warm_up.outcomes.due;
    assert_eq!(due, counted);
    result
}

/// A UDP server that answers each query with what `answers` makes of it, datagram by datagram.
fn udp_server(answers: impl Fn(u64, &[u8]) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        for number in 0.. {
            let (length, client) = socket.recv_from(&mut buffer).unwrap();
            for answer in answers(number, &buffer[..length]) {
                socket.send_to(&answer, client).ok();
            }
        }
    });
    address
}

fn answer(query: &[u8], rcode: u8) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[2] |= 0x80;
    answer[3] = rcode;
    answer
}

#[test]
fn right_answers_are_answered() {
    let result = go(&spec(udp_server(|_, query| vec![answer(query, 0)]), Transport::Udp));
    let counters = &result.measured.counters;
    assert!(counters.outcomes.answered > 0);
    assert_eq!(counters.outcomes.lost(), 0);
    assert_eq!(counters.answers.rcodes["NOERROR"], counters.outcomes.answered);
    assert_eq!(result.measured.latency.len(), counters.outcomes.answered);
    assert_eq!(result.measured.service_time.len(), counters.outcomes.answered);
    assert_eq!(result.measured.workers.len(), 2);
    assert_eq!(result.wrong_example, None);
}

#[test]
fn wrong_answers_are_counted_with_an_example() {
    let result = go(&spec(udp_server(|_, query| vec![answer(query, 2)]), Transport::Udp));
    let answers = &result.measured.counters.answers;
    assert_eq!(answers.wrong, answers.rcodes["SERVFAIL"]);
    assert!(result.wrong_example.unwrap().ends_with("A was answered with SERVFAIL, 0 records"));
}

#[test]
fn silence_times_out_and_counts_in_the_latency() {
    let result = go(&spec(udp_server(|_, _| Vec::new()), Transport::Udp));
    let outcomes = result.measured.counters.outcomes;
    assert_eq!((outcomes.answered, outcomes.timed_out), (0, outcomes.due));
    assert!(outcomes.due > 0);
    assert_eq!(result.measured.latency.len(), outcomes.due);
    assert!(result.measured.latency.min_ns().unwrap() >= 149_000_000);
}

#[test]
fn strays_are_told_apart() {
    let misbehave = |number: u64, query: &[u8]| {
        let right = answer(query, 0);
        let mut other_question = right.clone();
        other_question[13] ^= 0x01;
        let mut other_id = right.clone();
        other_id[0] ^= 0xff;
        match number % 4 {
            0 => vec![right.clone(), right],
            1 => vec![other_question, right],
            2 => vec![other_id, right],
            _ => vec![vec![1, 2, 3], right],
        }
    };
    let result = go(&spec(udp_server(misbehave), Transport::Udp));
    let (counters, warm_up) = (&result.measured.counters, &result.measured.warm_up);
    assert_eq!(counters.outcomes.lost(), 0);
    let answered = counters.outcomes.answered + warm_up.outcomes.answered;
    let duplicate = counters.answers.duplicate + warm_up.answers.duplicate;
    let unexpected = counters.answers.unexpected + warm_up.answers.unexpected;
    // What comes after the last query has ended is not waited for.
    assert!(duplicate.abs_diff(answered / 4) <= 20, "{duplicate} of {answered}");
    assert!(unexpected.abs_diff(answered * 3 / 4) <= 40, "{unexpected} of {answered}");
}

#[test]
fn garbage_with_the_right_id_is_malformed() {
    let garble = |_, query: &[u8]| vec![vec![query[0], query[1], 0x80, 0, 0, 9, 0, 0, 0, 0, 0, 0]];
    let result = go(&spec(udp_server(garble), Transport::Udp));
    let outcomes = result.measured.counters.outcomes;
    assert!(outcomes.malformed > 0);
    assert_eq!(outcomes.malformed, outcomes.due);
}

#[test]
fn late_answers_are_late() {
    let (sender, receiver) = std::sync::mpsc::channel::<(Instant, Vec<u8>, SocketAddr)>();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = socket.local_addr().unwrap();
    let answering = socket.try_clone().unwrap();
    thread::spawn(move || {
        for (at, answer, client) in receiver {
            thread::sleep(
                (at + Duration::from_millis(220)).saturating_duration_since(Instant::now()),
            );
            answering.send_to(&answer, client).ok();
        }
    });
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            let (length, client) = socket.recv_from(&mut buffer).unwrap();
            sender.send((Instant::now(), answer(&buffer[..length], 0), client)).unwrap();
        }
    });
    let result = go(&spec(target, Transport::Udp));
    let (counters, warm_up) = (&result.measured.counters, &result.measured.warm_up);
    assert_eq!(counters.outcomes.answered + warm_up.outcomes.answered, 0);
    assert!(counters.answers.late + warm_up.answers.late > 0);
    assert_eq!(counters.answers.unexpected, 0);
}

#[test]
fn nobody_at_the_port_is_a_time_out() {
    // The address was free a moment ago; the kernel answers with ICMP, which is no DNS answer.
    let target = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let result = go(&spec(target, Transport::Udp));
    let outcomes = result.measured.counters.outcomes;
    assert!(outcomes.due > 0);
    assert_eq!(outcomes.timed_out, outcomes.due);
}

/// A TCP server that does `serve` for each connection, in a thread of its own.
fn tcp_server(serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("[::1]:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream.unwrap()));
        }
    });
    address
}

fn read_query(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut query).ok()?;
    Some(query)
}

fn frame(message: &[u8]) -> Vec<u8> {
    let mut frame = (message.len() as u16).to_be_bytes().to_vec();
    frame.extend_from_slice(message);
    frame
}

#[test]
fn closed_connections_lose_what_was_in_flight_and_are_opened_again() {
    let target = tcp_server(|mut stream| {
        for _ in 0..10 {
            let Some(query) = read_query(&mut stream) else { return };
            stream.write_all(&frame(&answer(&query, 0))).ok();
        }
    });
    let result = go(&spec(target, Transport::Tcp));
    let counters = &result.measured.counters;
    assert!(counters.outcomes.answered > 0);
    assert!(counters.outcomes.connection_lost > 0);
    assert!(counters.connections.lost > 0);
    assert!(counters.connections.opened > 3);
    assert_eq!(result.last_connection_end.unwrap(), "the server closed the connection");
}

#[test]
fn answers_in_any_order_and_in_small_pieces_are_matched() {
    let target = tcp_server(|mut stream| {
        loop {
            let queries: Vec<_> = (0..5).map_while(|_| read_query(&mut stream)).collect();
            for query in queries.iter().rev() {
                for piece in frame(&answer(query, 0)).chunks(7) {
                    if stream.write_all(piece).is_err() {
                        return;
                    }
                }
            }
            if queries.len() < 5 {
                return;
            }
        }
    });
    let result = go(&spec(target, Transport::Tcp));
    let counters = &result.measured.counters;
    assert!(counters.outcomes.answered > 0);
    assert_eq!(counters.answers.unexpected, 0);
    // The last, incomplete five of each client wait for queries that never come.
    assert!(counters.outcomes.lost() <= 15, "{:?}", counters.outcomes);
}

#[test]
fn a_server_that_stops_reading_leaves_queries_unsent_and_memory_bounded() {
    let target = tcp_server(|stream| {
        thread::sleep(Duration::from_secs(5));
        drop(stream);
    });
    let mode = Mode::Open { rate_qps: 2_000_000.0, pace: Pace::Constant };
    let result = go(&LoadSpec { mode, ..spec(target, Transport::Tcp) });
    let outcomes = result.measured.counters.outcomes;
    assert_eq!(outcomes.answered, 0);
    assert!(outcomes.not_sent > 0 && outcomes.timed_out > 0, "{outcomes:?}");
}

#[test]
fn nobody_listening_is_not_sent() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mode = Mode::Open { rate_qps: 1_000.0, pace: Pace::Poisson };
    let result = go(&LoadSpec { mode, ..spec(target, Transport::Tcp) });
    let counters = &result.measured.counters;
    assert!(counters.outcomes.due > 0);
    assert_eq!(counters.outcomes.not_sent, counters.outcomes.due);
    assert!(counters.connections.failed > 0);
    assert!(result.last_connection_end.unwrap().starts_with("cannot connect"));
}

#[test]
fn an_interrupt_ends_the_window_and_keeps_the_sums() {
    let target = udp_server(|_, query| vec![answer(query, 0)]);
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let spec = LoadSpec { duration: Duration::from_secs(600), ..spec(target, Transport::Udp) };
    let mut intervals = 0;
    let result = run(&spec, &stop, &mut |progress| {
        intervals += u32::from(matches!(progress, Progress::Interval(_)));
        asked.store(intervals >= 2, Ordering::Relaxed);
    })
    .unwrap();
    assert!(result.cut_short);
    assert!(result.measured.window_ns < 60_000_000_000);
    assert!(result.measured.counters.outcomes.answered > 0);
}

#[test]
fn impossible_loads_are_refused_before_the_start() {
    let target: SocketAddr = "127.0.0.1:53".parse().unwrap();
    let refuse = |spec: LoadSpec, expected: &str| {
        let error = run(&spec, &AtomicBool::new(false), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let good = || spec(target, Transport::Udp);
    refuse(LoadSpec { clients: 0, ..good() }, "clients must be at least 1");
    refuse(LoadSpec { workers: 4, ..good() }, "workers must be between 1");
    refuse(LoadSpec { clients: 4_000_000, ..good() }, "ulimit -n");
    refuse(LoadSpec { transport: Transport::Dot, ..good() }, "needs TLS settings");
    refuse(LoadSpec { cpus: vec![1_000], ..good() }, "CPU 1000");
    refuse(LoadSpec { duration: Duration::ZERO, ..good() }, "duration");
    let rate = |rate_qps| Mode::Open { rate_qps, pace: Pace::Constant };
    refuse(LoadSpec { mode: rate(f64::NAN), ..good() }, "rate must be above 0");
}
