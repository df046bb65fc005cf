//! Delay, loss and stalls as clients see them.

use std::io::Write;
use std::time::{Duration, Instant};

use dnslab_wire::{Response, Transport, push_frame};
use domain::base::iana::Rtype;

use crate::running::{ASKED, PATIENCE, Running, exchange, query, read_message};

/// Five standard deviations of a binomial share: a right server fails once in 1.7 million runs, and the seed
/// is fixed.
fn check_share(seen: u64, all: u64, share: f64) {
    let (seen, all) = (seen as f64, all as f64);
    let bound = 5.0 * (all * share * (1.0 - share)).sqrt();
    assert!((seen - all * share).abs() < bound, "{seen} of {all} lost, not {share}");
}

#[test]
fn the_programmed_share_is_lost() {
    const QUERIES: u64 = 4000;
    let server = Running::start(|config| config.program.loss = "25%".parse().unwrap());
    let (client, mut stream) = (server.udp(), server.tcp());
    client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut frames = Vec::new();
    let mut answered = 0;
    for id in 0..QUERIES {
        let query = query(id as u16, "www.example.", Rtype::A);
        client.send(&query).unwrap();
        push_frame(&mut frames, &query);
        if id % 50 == 49 {
            stream.write_all(&frames).unwrap();
            frames.clear();
        }
        // Read now and then, so that the client's receive buffer runs over less.
        if id % 20 == 19 {
            client.set_nonblocking(true).unwrap();
            while client.recv(&mut [0; 512]).is_ok() {
                answered += 1;
            }
            client.set_nonblocking(false).unwrap();
        }
    }
    while client.recv(&mut [0; 512]).is_ok() {
        answered += 1;
    }
    let (mut last, mut tcp_answered) = (None, 0);
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    while stream.peek(&mut [0]).is_ok_and(|count| count > 0) {
        last = Some(Response::parse(&read_message(&mut stream)).unwrap().id);
        tcp_answered += 1;
    }
    assert!(last.is_some());
    let counters = server.stop();
    assert_eq!(counters.tcp.answered, tcp_answered);
    // On a busy machine the client's receive buffer loses some more.
    assert!(answered > 0 && answered <= counters.udp.answered);
    for messages in [counters.udp, counters.tcp] {
        assert_eq!(messages.answered + messages.lost_by_program, messages.received);
        assert_eq!(messages.received, QUERIES);
        check_share(messages.lost_by_program, messages.received, 0.25);
    }
}

#[test]
fn answers_take_as_long_as_programmed() {
    for delay in ["5ms", "uniform:1ms..9ms", "normal:5ms,1ms"] {
        let server = Running::start(|config| config.program.delay = delay.parse().unwrap());
        let (client, mut stream) = (server.udp(), server.tcp());
        let mut times = Vec::new();
        for id in 0..100 {
            let query = query(id, "www.example.", Rtype::A);
            let start = Instant::now();
            client.send(&query).unwrap();
            client.recv(&mut [0; 512]).unwrap();
            times.push(start.elapsed());
            let start = Instant::now();
            exchange(&mut stream, &query);
            times.push(start.elapsed());
        }
        times.sort();
        let median = times[100];
        let lateness = server.stop().lateness;
        println!(
            "{delay}: median {median:?}, handed over {} ns late in the mean, {} ns at worst",
            lateness.mean_ns().unwrap(),
            lateness.longest_ns
        );
        assert_eq!(lateness.answers, 200);
        // Never early; how late is the machine's business, and is printed.
        let earliest = if delay == "5ms" { times[0] } else { median };
        let bound = Duration::from_millis(if delay == "5ms" { 5 } else { 3 });
        assert!(earliest >= bound && median < Duration::from_millis(100), "{delay}: {median:?}");
    }
}

/// Over any transport each answer costs the same steps, and lost ones cost none. (DoQ and DoH3 are tested
/// where their client is.)
#[test]
fn every_answer_costs_the_same() {
    let server = Running::start(|config| config.program.busy = Duration::from_micros(3));
    let steps = server.busy_steps;
    assert!(steps > 0);
    for transport in ASKED {
        for id in 0..5 {
            server.ask(transport, &query(id, "www.example.", Rtype::A));
        }
    }
    let counters = server.stop();
    for transport in ASKED {
        assert_eq!(counters.messages(transport).busy_steps, 5 * steps, "{transport}");
    }

    let server = Running::start(|config| {
        config.program.busy = Duration::from_micros(3);
        config.program.loss = "50%".parse().unwrap();
        config.program.delay = "1ms".parse().unwrap();
    });
    let steps = server.busy_steps;
    answered_ids(&server, 100);
    let udp = server.stop().udp;
    assert!(udp.lost_by_program > 0 && udp.answered > 0, "{udp:?}");
    assert_eq!(udp.busy_steps, udp.answered * steps);

    let server = Running::start(|_| {});
    assert_eq!(server.busy_steps, 0);
    server.ask(Transport::Udp, &query(1, "www.example.", Rtype::A));
    assert_eq!(server.stop().udp.busy_steps, 0);
}

/// Asks `count` queries over UDP one after the other; the ids of those that were answered, in order of their
/// answers.
fn answered_ids(server: &Running, count: u16) -> Vec<u16> {
    let client = server.udp();
    for id in 0..count {
        client.send(&query(id, "www.example.", Rtype::A)).unwrap();
    }
    let until = Instant::now() + PATIENCE;
    let done = || {
        let udp = server.counters.read(PATIENCE).udp;
        udp.answered + udp.lost_by_program == u64::from(count)
    };
    while !done() {
        assert!(Instant::now() < until, "{:?}", server.counters.read(PATIENCE));
    }
    client.set_nonblocking(true).unwrap();
    let mut answer = [0; 512];
    let next = || client.recv(&mut answer).ok().map(|_| u16::from_be_bytes([answer[0], answer[1]]));
    std::iter::from_fn(next).collect()
}

fn answered_with(seed: u64) -> Vec<u16> {
    let server = Running::start(|config| {
        config.seed = seed;
        config.program.loss = "50%".parse().unwrap();
    });
    answered_ids(&server, 200)
}

#[test]
fn one_seed_gives_the_same_losses() {
    let first = answered_with(7);
    assert!((50..150).contains(&first.len()), "{first:?}");
    assert_eq!(first, answered_with(7));
    assert_ne!(first, answered_with(8));
}

#[test]
fn a_stall_holds_everything_up() {
    let server = Running::start(|config| {
        config.program.stall = Some("at=200ms,length=400ms".parse().unwrap());
    });
    let (client, mut stream) = (server.udp(), server.tcp());
    let ask = |id| client.send(&query(id, "www.example.", Rtype::A)).unwrap();
    ask(0);
    client.recv(&mut [0; 512]).unwrap();
    let first = Instant::now();
    std::thread::sleep(Duration::from_millis(300));
    // On a slow machine the stall is over already, and there is nothing to see.
    let is_in_time = first.elapsed() < Duration::from_millis(500);
    for id in 1..10 {
        ask(id);
    }
    exchange(&mut stream, &query(0, "www.example.", Rtype::A));
    for _ in 1..10 {
        client.recv(&mut [0; 512]).unwrap();
    }
    let waited = first.elapsed();
    // The first answer is read a little after the first query: so 550 and not 600.
    assert!(!is_in_time || waited >= Duration::from_millis(550), "answered after {waited:?}");
    let counters = server.stop();
    assert_eq!((counters.udp.answered, counters.tcp.answered), (10, 1));
}

/// Answers that are held back when the server stops are counted, and so are those whose client is gone.
#[test]
fn nothing_is_lost_from_the_counts() {
    let server =
        Running::start(|config| config.program.delay = "uniform:0ms..400ms".parse().unwrap());
    let (client, mut stream) = (server.udp(), server.tcp());
    let mut frames = Vec::new();
    for id in 0..50 {
        let query = query(id, "www.example.", Rtype::A);
        client.send(&query).unwrap();
        push_frame(&mut frames, &query);
    }
    stream.write_all(&frames).unwrap();
    read_message(&mut stream);
    drop(stream);
    client.recv(&mut [0; 512]).unwrap();
    let counters = server.stop();
    for messages in [counters.udp, counters.tcp] {
        assert_eq!(messages.received, messages.answered + messages.unsent, "{messages:?}");
        assert!(messages.answered > 0 && messages.received <= 50, "{messages:?}");
    }
}
