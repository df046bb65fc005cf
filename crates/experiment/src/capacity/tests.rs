//! The search on simulated servers.

use dnslab_analysis::Answer;
use dnslab_record::{
    Breach, CAPACITY_FORMAT, Capacity, CaseId, Finding, InvalidReason, Sought, Step,
};
use proptest::prelude::*;
use rand::Rng as _;

use super::*;
use dnslab_analysis::answer;

/// A server that meets the objective up to a rate that differs from run to run.
struct Server {
    /// Median of that rate, queries per second.
    capacity: f64,
    /// Standard deviation of its logarithm: nearly its coefficient of variation.
    spread: f64,
    /// Share of the runs that something else spoils.
    disturbed: f64,
    /// Above this rate the generator cannot send.
    generator: f64,
    random: Xoshiro256PlusPlus,
}

impl Server {
    fn new(capacity: f64, spread: f64, disturbed: f64, seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { capacity, spread, disturbed, generator: f64::INFINITY, random }
    }

    fn run(&mut self, qps: f64) -> Judged {
        // Box and Muller (1958): two uniform numbers make a normal one.
        let (one, other): (f64, f64) = (self.random.random(), self.random.random());
        let normal = (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * other).cos();
        let today = self.capacity * (self.spread * normal).exp();
        let is_spoilt = self.random.random::<f64>() < self.disturbed;
        let breaches =
            || vec![Breach::Invalid { reason: InvalidReason::Late { p99_ns: 2, limit_ns: 1 } }];
        if qps > self.generator {
            Judged::GeneratorLimited { breaches: breaches(), generator: busy() }
        } else if qps > today || is_spoilt {
            Judged::Violated { breaches: breaches() }
        } else {
            Judged::Met
        }
    }
}

/// What the generator of a simulated server lacks.
fn busy() -> Finding {
    Finding::Generator { evidence: Vec::new(), workers: 1 }
}

fn settings(seed: u64) -> RateSearch {
    RateSearch {
        objective: "lost<0.1%".parse().unwrap(),
        from_qps: 1_000.0,
        max_qps: 1e7,
        tolerance: 0.05,
        repeats: 5,
        seed,
    }
}

/// Steps that a search can take at most: three at each rate of ramp and bisection, the repeats with all rates
/// that can be added, and the confirmation of rates down to the lowest. Failures only delay and are not
/// counted.
fn max_steps(settings: &RateSearch) -> usize {
    let ramp = (settings.max_qps / settings.from_qps).log2().ceil() + 2.0;
    let bracket = (RAMP.ln() / (1.0 + settings.tolerance).ln()).log2().ceil() + 1.0;
    let down = (ramp * RAMP.ln() / (1.0 + settings.tolerance).ln()).log2().ceil() + 2.0;
    let repeats = f64::from(settings.repeats) * (f64::from(LEVELS) + f64::from(MAX_ADDED) + down);
    (3.0 * (ramp + bracket) + repeats) as usize * MAX_STAGES
}

/// A search that goes back to the ramp does all stages again.
const MAX_STAGES: usize = 1 + MAX_RESTARTS as usize;

fn search(settings: RateSearch, mut run: impl FnMut(f64) -> Judged) -> Capacity {
    let mut search = Search::new(settings.clone());
    let mut steps = Vec::new();
    let end = loop {
        match search.next() {
            Next::Done(end) => break end,
            Next::Step { phase, at } => {
                let judged = run(at);
                search.push(&judged);
                let case = CaseId { variant: String::new(), repetition: 1 };
                steps.push(Step { case, phase, at, judged, figures: None });
            }
        }
        assert!(steps.len() <= 2 * max_steps(&settings), "it does not end");
    };
    let (target, format) = (String::new(), CAPACITY_FORMAT);
    Capacity { format, target, sought: Sought::Rate(settings), steps, end: Some(end) }
}

/// Share of searches whose interval holds the truth, and the mean of its width relative to the truth.
fn coverage(spread: f64, disturbed: f64, searches: u64) -> (f64, f64) {
    let (mut held, mut width) = (0, 0.0);
    for seed in 0..searches {
        // Anywhere between two rates of the ramp.
        let truth = 20_000.0 * 2_f64.powf(seed as f64 / searches as f64);
        let mut server = Server::new(truth, spread, disturbed, seed);
        let found = search(settings(seed), |qps| server.run(qps));
        let Answer::Found { qps } = answer(&found) else { panic!("seed {seed}: {found:#?}") };
        held += u32::from(qps.low <= truth && truth <= qps.high);
        width += (qps.high - qps.low) / truth / searches as f64;
    }
    (f64::from(held) / searches as f64, width)
}

/// The interval is one of 95 %. With 150 searches a true coverage of 95 % is seen below 88 % once in two
/// thousand times (binomial distribution); one of 80 % is seen there 99 times in 100.
#[test]
fn the_interval_holds_the_truth_as_often_as_it_says() {
    for (spread, disturbed, widest) in [(0.01, 0.0, 0.05), (0.03, 0.02, 0.07), (0.06, 0.05, 0.13)] {
        let (held, width) = coverage(spread, disturbed, 150);
        println!("spread {spread}, disturbed {disturbed}: held {held}, width {width:.3}");
        assert!(held >= 0.88, "spread {spread}, disturbed {disturbed}: only {held} hold it");
        assert!(width < widest, "spread {spread}, disturbed {disturbed}: {width} wide");
    }
}

#[test]
fn ramp_bracket_and_repeats_follow_each_other() {
    let mut server = Server::new(10_500.0, 1e-6, 0.0, 1);
    let found = search(settings(1), |qps| server.run(qps));
    let of_phase = |phase| -> Vec<f64> {
        found.steps.iter().filter(|step| step.phase == phase).map(|step| step.at).collect()
    };
    assert_eq!(of_phase(Phase::Ramp), [1e3, 2e3, 4e3, 8e3, 16e3, 16e3]);
    assert_eq!(of_phase(Phase::Bracket)[..2], [11_314.0, 11_314.0]);
    let repeats = of_phase(Phase::Repeat);
    assert_eq!(repeats.len(), 25, "{repeats:?}");
    let rounds: Vec<Vec<f64>> = repeats.chunks(5).map(<[f64]>::to_vec).collect();
    let mut sorted = rounds.clone();
    sorted.iter_mut().for_each(|round| round.sort_by(f64::total_cmp));
    assert!(sorted.iter().all(|round| *round == sorted[0]), "{rounds:?}");
    assert!(rounds.iter().any(|round| *round != rounds[0]), "the order is always the same");
    let Answer::Found { qps } = answer(&found) else { panic!("{:?}", answer(&found)) };
    assert!(qps.low < 10_500.0 && 10_500.0 < qps.high && qps.high / qps.low < 1.05, "{qps:?}");
}

#[test]
fn one_disturbed_run_in_the_ramp_is_no_violation() {
    let mut runs = 0;
    let mut server = Server::new(10_500.0, 1e-6, 0.0, 1);
    let found = search(settings(1), |qps| {
        runs += 1;
        if runs == 2 { Judged::Violated { breaches: Vec::new() } } else { server.run(qps) }
    });
    let ramp: Vec<f64> = found.steps.iter().take(4).map(|step| step.at).collect();
    assert_eq!(ramp, [1e3, 2e3, 2e3, 4e3]);
    assert!(matches!(answer(&found), Answer::Found { .. }));
}

#[test]
fn a_bracket_that_two_disturbances_put_too_low_is_left() {
    let mut server = Server::new(30_000.0, 0.03, 0.0, 1);
    let mut at_8000 = 0;
    let found = search(settings(1), |qps| {
        at_8000 += u32::from(qps == 8_000.0);
        match at_8000 {
            1 | 2 if qps == 8_000.0 => Judged::Violated { breaches: Vec::new() },
            _ => server.run(qps),
        }
    });
    let Answer::Found { qps } = answer(&found) else { panic!("{:?}", answer(&found)) };
    assert!(qps.low < 30_000.0 && 30_000.0 < qps.high && qps.high < 33_000.0, "{qps:?}");
}

#[test]
fn a_server_that_never_meets_it_ends_the_search_at_once() {
    let mut server = Server::new(900.0, 1e-6, 0.0, 1);
    let found = search(settings(1), |qps| server.run(qps));
    assert_eq!(found.steps.len(), 3);
    assert_eq!(answer(&found), Answer::Below { qps: 1_000.0, generator: None });
}

#[test]
fn the_highest_rate_allowed_is_confirmed() {
    let allowed = || RateSearch { max_qps: 3_000.0, ..settings(1) };
    let mut server = Server::new(1e6, 0.05, 0.0, 1);
    let found = search(allowed(), |qps| server.run(qps));
    assert_eq!(answer(&found), Answer::AtLeast { qps: 3_000.0, generator: None });
    let rates: Vec<f64> = found.steps.iter().map(|step| step.at).collect();
    assert_eq!(rates, [1e3, 2e3, 3e3, 3e3, 3e3, 3e3, 3e3]);
    // A server whose capacity is that rate is not confirmed at it.
    let mut server = Server::new(3_000.0, 0.05, 0.0, 3);
    let found = search(allowed(), |qps| server.run(qps));
    assert!(matches!(answer(&found), Answer::Found { .. }), "{:?}", answer(&found));
    assert!(found.steps.iter().all(|step| step.at <= 3_000.0));
}

#[test]
fn the_limit_of_the_generator_is_no_answer_about_the_server() {
    let mut server = Server::new(1e6, 0.03, 0.0, 1);
    server.generator = 50_000.0;
    let found = search(settings(1), |qps| server.run(qps));
    let Answer::AtLeast { qps, generator: Some(generator) } = answer(&found) else {
        panic!("{:?}", answer(&found))
    };
    assert!((47_500.0..=50_000.0).contains(&qps), "{qps}");
    assert_eq!(generator, busy());
    assert!(found.steps.iter().filter(|step| step.at == qps).count() >= 5);
    // Nothing is left if even the lowest rate is too much for the generator.
    server.generator = 500.0;
    let found = search(settings(1), |qps| server.run(qps));
    assert!(matches!(answer(&found), Answer::Below { generator: Some(_), .. }));
}

#[test]
fn two_of_three_say_who_was_the_limit() {
    let of_server = || Judged::Violated { breaches: Vec::new() };
    let of_generator = || Judged::GeneratorLimited { breaches: Vec::new(), generator: busy() };
    for (third, is_server) in [(of_server(), true), (of_generator(), false)] {
        let mut at_4000 = 0;
        let mut server = Server::new(3_000.0, 1e-6, 0.0, 1);
        let found = search(RateSearch { tolerance: 0.5, ..settings(1) }, |qps| {
            at_4000 += u32::from(qps == 4_000.0);
            match at_4000 {
                _ if qps != 4_000.0 => server.run(qps),
                1 => of_server(),
                2 => of_generator(),
                _ => third.clone(),
            }
        });
        let ramp = found.steps.iter().filter(|step| step.phase == Phase::Ramp);
        assert_eq!(ramp.map(|step| step.at).collect::<Vec<_>>()[2..], [4e3, 4e3, 4e3]);
        // What is above the bracket says how it goes on.
        let has = |phase| found.steps.iter().any(|step| step.phase == phase);
        assert_eq!((has(Phase::Repeat), has(Phase::Confirm)), (is_server, !is_server));
    }
}

#[test]
fn two_failures_in_a_row_end_the_search() {
    let failed = || Judged::Failed { reason: "gone".to_owned() };
    let mut runs = 0;
    let found = search(settings(1), |_| {
        runs += 1;
        if matches!(runs, 2 | 5 | 6) { failed() } else { Judged::Met }
    });
    let rates: Vec<f64> = found.steps.iter().map(|step| step.at).collect();
    assert_eq!(rates, [1e3, 2e3, 2e3, 4e3, 8e3, 8e3]);
    let Answer::Nothing { outlook, failure } = answer(&found) else { panic!() };
    assert_eq!((outlook.met, failure.as_deref()), (Some(4e3), Some("gone")));
}

proptest! {
    /// Whatever the outcomes, the search ends, and its steps support the answer.
    #[test]
    fn it_ends_whatever_happens(
        outcomes in proptest::collection::vec(0_u8..10, 1..400),
        from_qps in 1.0_f64..1e5,
        factor in 1.0_f64..1e6,
        tolerance in 0.005_f64..0.5,
        repeats in 1_u32..8,
        limit in 0_u8..10,
    ) {
        let settings =
            RateSearch { from_qps, max_qps: from_qps * factor, tolerance, repeats, ..settings(1) };
        let mut place = 0;
        let found = search(settings.clone(), |_| {
            place += 1;
            let reason = InvalidReason::Late { p99_ns: 2, limit_ns: 1 };
            let breaches = vec![Breach::Invalid { reason }];
            match outcomes[place % outcomes.len()] {
                0 => Judged::Failed { reason: String::new() },
                1 => Judged::GeneratorLimited { breaches, generator: busy() },
                outcome if outcome > limit => Judged::Met,
                _ => Judged::Violated { breaches },
            }
        });
        let highest = rounded(settings.max_qps);
        prop_assert!(found.steps.iter().all(|step| step.at <= highest.max(settings.max_qps)));
        match answer(&found) {
            Answer::AtLeast { qps, .. } => {
                prop_assert!(qps <= settings.max_qps * 1.001);
                prop_assert!(found.steps.iter().any(|step| step.judged.is_met()));
            }
            Answer::Found { qps } => {
                prop_assert!(qps.low <= qps.value && qps.value <= qps.high);
                prop_assert!(qps.low > 0.0 && qps.high.is_finite());
            }
            Answer::Below { .. } | Answer::Nothing { .. } => {}
            Answer::Window(_) => prop_assert!(false, "no window was swept"),
        }
    }
}
