//! A worker with a seeded network and a clock of its own, over every transport.
//!
//! Whatever the network, the server and the machine do, each query that became due has one outcome, and no
//! answer counts for another query. A seed decides everything but the octets of TLS, whose keys are the
//! system's. So a failure names its seed, and `DNSLAB_SEED=n cargo test -p dnslab-client simulation` plays it
//! again. `DNSLAB_SEEDS=10000` plays so many over each transport.

mod addresses;
mod attempts;
mod broken;
mod clients;
mod clock;
mod digests;
mod idle;
mod network;
mod scenario;
mod server;
mod turns;
mod window;

use std::collections::BTreeSet;

use digests::Digests;
use dnslab_figures::{
    AnswerRecord, ByPhase, Connections, Counters, HowEnded, Outcomes, WindowCounts,
};
use dnslab_wire::Transport;

use crate::WorkerEnd;
use crate::time::{Nanos, nanos};
pub(crate) use network::Simulated;
use scenario::{MS, Played, Scenario};

/// What must hold whatever happened.
fn check(scenario: &Scenario, played: Played) {
    let Scenario { job, faults, .. } = scenario;
    let Played { end, right, asked, now, transcript, .. } = played;
    let timeout = nanos(job.attempts().waits().max().unwrap_or_default());
    let patience = nanos(job.attempts().patience());
    let rest = job.timeline.until_ns() + 6 * patience + 30_000 * MS;
    assert!(now < rest, "it ended at {now} ns only");
    check_windows(&end, nanos(job.settings.timeout));
    let (mut latency, mut service, mut lag) = Default::default();
    end.recorder.add_times(&mut latency, &mut service, &mut lag);
    let all = sums(end);
    let (least, most) = (service.min_ns(), service.max_ns());
    // Histograms have three digits.
    assert!(most.is_none_or(|most| most <= timeout + timeout / 500), "{most:?} ns: too late");
    let round_trip = 2 * faults.delay.start;
    assert!(
        least.is_none_or(|least| least >= round_trip - round_trip / 500),
        "{least:?} ns: too soon"
    );
    let rcodes = &all.answers.rcodes;
    let fails = scenario.manners.failing > 0.0;
    let is_right = |code: &String| code == "NOERROR" || fails && code == "SERVFAIL";
    assert!(rcodes.keys().all(is_right), "an answer to another query: {rcodes:?}");
    let all = all.outcomes;
    if job.tells && !job.settings.mode.is_closed() {
        check_transcript(&transcript, &all);
    } else {
        assert!(transcript.is_empty());
    }
    assert!(all.answered <= right, "{} answered, the server gave {right}: {all:?}", all.answered);
    assert!(asked > 0 || all.answered == 0);
}

/// The halves of the measured window make the whole, and the whole is what is counted of the measured window.
fn check_windows(end: &WorkerEnd, timeout: Nanos) {
    let mut windows = [(); 3].map(|()| WindowCounts::default());
    end.recorder.add_windows(&mut windows);
    for window in &windows {
        let WindowCounts { outcomes, rcodes, latency, service_time, .. } = window;
        outcomes.check().unwrap_or_else(|error| panic!("{error}: {window:?}"));
        assert_eq!(rcodes.values().sum::<u64>(), outcomes.answered);
        assert_eq!(latency.len(), outcomes.due, "each due query counts");
        assert_eq!(service_time.len(), outcomes.answered);
        // Histograms have three digits.
        let longest = latency.max_ns().unwrap_or(0);
        assert!(outcomes.lost() == 0 || longest >= timeout - timeout / 500, "{longest} ns");
    }
    let [first, second, all] = windows;
    let mut both = first.outcomes;
    both.merge(&second.outcomes);
    let measured = end.recorder.clone().into_counters().measured;
    assert_eq!(both, all.outcomes);
    assert_eq!(all.outcomes, measured.outcomes);
    assert_eq!(all.rcodes, measured.answers.rcodes);
}

/// Each query that became due is told something once, under its own name, and that is its outcome.
#[track_caller]
fn check_transcript(transcript: &[AnswerRecord], outcomes: &Outcomes) {
    assert_eq!(transcript.len() as u64, outcomes.due, "{outcomes:?}");
    // Whether an answer is whole is found out later.
    let answered = count(transcript, HowEnded::Answered) + count(transcript, HowEnded::Malformed);
    assert_eq!(answered, outcomes.answered + outcomes.malformed, "{outcomes:?}");
    assert!(count(transcript, HowEnded::Malformed) >= outcomes.malformed, "{outcomes:?}");
    for (ended, counted) in [
        (HowEnded::TimedOut, outcomes.timed_out),
        (HowEnded::NotSent, outcomes.not_sent),
        (HowEnded::ConnectionLost, outcomes.connection_lost),
        (HowEnded::Refused, outcomes.refused),
    ] {
        assert_eq!(count(transcript, ended), counted, "{ended:?} of {outcomes:?}");
    }
    // The names of each client's queries are the first numbers, each once.
    let names: BTreeSet<(u32, u32)> =
        transcript.iter().map(|record| (record.client, record.number)).collect();
    assert_eq!(names.len(), transcript.len(), "a query was told twice");
    let mut before = None;
    for (client, number) in names {
        let expected = match before {
            Some((its, last)) if its == client => last + 1,
            _ => 0,
        };
        assert_eq!(number, expected, "client {client}");
        before = Some((client, number));
    }
}

/// How many queries ended in this way.
fn count(transcript: &[AnswerRecord], ended: HowEnded) -> u64 {
    transcript.iter().filter(|record| record.ended == ended).count() as u64
}

/// The counts of warm-up and measured window together, which must add up whatever happened.
#[track_caller]
fn sums(end: WorkerEnd) -> Counters {
    let (mut latency, mut service, mut lag) = Default::default();
    end.recorder.add_times(&mut latency, &mut service, &mut lag);
    let ByPhase { warm_up: mut all, measured } = end.recorder.into_counters();
    assert_eq!(latency.len(), measured.outcomes.due, "each due query counts");
    assert_eq!(service.len(), measured.outcomes.answered);
    for counters in [&all, &measured] {
        let Counters { outcomes, answers, .. } = counters;
        outcomes.check().unwrap_or_else(|error| panic!("{error}: {outcomes:?}"));
        let most = outcomes.due + counters.asked_again;
        assert!(counters.sent <= most, "more was sent than was due: {counters:?}");
        let least = outcomes.due - outcomes.not_sent;
        assert!(counters.sent >= least, "what was not sent has another outcome: {counters:?}");
        let answered: u64 = answers.rcodes.values().sum();
        assert_eq!(answered, outcomes.answered, "each answer has a response code");
    }
    all.merge(&measured);
    let Connections { attempted, opened, failed, refused, lost, closed, .. } = all.connections;
    assert!(refused <= failed + lost, "{:?}", all.connections);
    assert!(opened + failed <= attempted && lost + closed <= opened, "{:?}", all.connections);
    let handshakes = all.connections.full_handshakes + all.connections.resumed_handshakes;
    let early = all.connections.early_data;
    assert!(handshakes <= opened && early <= handshakes, "{:?}", all.connections);
    all
}

/// Plays `seeds` seeds, unless the environment asks for a number of seeds or for one seed.
fn play_all(transport: Transport, seeds: u64) {
    let digests = Digests::of(transport);
    play_each(transport, seeds, Scenario::drawn, |scenario, played| {
        digests.add(scenario.job.seed, &played);
        check(scenario, played);
    });
    digests.compare();
}

/// Plays each scenario that is drawn from so many seeds, and checks it.
fn play_each(
    transport: Transport,
    seeds: u64,
    drawn: impl Fn(u64, Transport) -> Scenario,
    check: impl Fn(&Scenario, Played),
) {
    let seeds = in_environment("DNSLAB_SEEDS").unwrap_or(seeds);
    let seeds = in_environment("DNSLAB_SEED").map_or(0..seeds, |seed| seed..seed + 1);
    for seed in seeds {
        let scenario = drawn(seed, transport);
        let play = || check(&scenario, scenario.play());
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(play));
        if played.is_err() {
            panic!("DNSLAB_SEED={seed} over {transport}: {scenario:#?}");
        }
    }
}

fn in_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn udp() {
    play_all(Transport::Udp, 100);
}

#[test]
fn tcp() {
    play_all(Transport::Tcp, 150);
}

#[test]
fn dot() {
    play_all(Transport::Dot, 100);
}

#[test]
fn doh2() {
    play_all(Transport::Doh2, 80);
}

#[test]
fn doq() {
    play_all(Transport::Doq, 25);
}

#[test]
fn doh3() {
    play_all(Transport::Doh3, 25);
}
