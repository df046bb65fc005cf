use std::time::Duration;

use super::*;

#[test]
fn constant_is_exact_after_any_number_of_queries() {
    let cases: [(f64, u64, u64); 9] = [
        (1_000.0, 1, 1_000_000),
        (3.0, 1, 333_333_333),
        (3.0, 2, 666_666_667),
        (3.0, 3_000_000_000, 1_000_000_000_000_000_000),
        // 150,000 qps has no whole number of microseconds, and must still be 150,000.
        (150_000.0, 150_000, 1_000_000_000),
        (150_000.0, 1_000_000_001, 6_666_666_673_333),
        (70_001.0, 1_000_000_000, 14_285_510_206_997),
        (0.5, 1, 2_000_000_000),
        (1e9, 1_000_000_000, 1_000_000_000),
    ];
    for (rate_qps, n, due_ns) in cases {
        let mut schedule = Schedule::new(&Rate::Constant(rate_qps), Pace::Constant, 1, 0, 1);
        let State::Constant { next, .. } = &mut schedule.0 else { panic!() };
        *next = n;
        assert_eq!(schedule.next(), Some(due_ns), "query {n} of {rate_qps} qps");
    }
}

#[test]
fn constant_is_the_same_for_any_number_of_workers() {
    let one: Vec<u64> =
        Schedule::new(&Rate::Constant(70_001.0), Pace::Constant, 1, 0, 1).take(840).collect();
    for shards in 2..=7 {
        let workers = (0..shards).flat_map(|shard| {
            Schedule::new(&Rate::Constant(70_001.0), Pace::Constant, 1, shard, shards)
                .take(840 / shards as usize)
        });
        let mut all: Vec<u64> = workers.collect();
        all.sort_unstable();
        assert_eq!(all, one, "{shards} workers");
    }
}

#[test]
fn a_schedule_ends_with_time() {
    let mut schedule = Schedule::new(&Rate::Constant(1e-9), Pace::Constant, 1, 0, 1);
    // The slowest rate is one query in 10^6 s.
    assert_eq!(schedule.by_ref().nth(1), Some(1_000_000_000_000_000));
    assert_eq!(schedule.count(), 18_445);
    let mut slow = Schedule::new(&Rate::Constant(1e-15), Pace::Poisson, 1, 0, 1);
    assert!((0..1_000).any(|_| slow.next().is_none()));
}

fn counts(rate: &Rate, pace: Pace, seed: u64, shards: u32, windows: usize) -> Vec<f64> {
    const WINDOW_NS: u64 = 10_000_000;
    let mut counts = vec![0.0; windows];
    for shard in 0..shards {
        let mut last = 0;
        for due_ns in Schedule::new(rate, pace, seed, shard, shards) {
            assert!(due_ns >= last, "arrivals are in order");
            last = due_ns;
            match counts.get_mut((due_ns / WINDOW_NS) as usize) {
                Some(count) => *count += 1.0,
                None => break,
            }
        }
    }
    counts
}

/// Mean, and variance over mean (1 for a Poisson process, 0 for equal counts).
fn mean_and_dispersion(counts: &[f64]) -> (f64, f64) {
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let squares: f64 = counts.iter().map(|count| (count - mean).powi(2)).sum();
    (mean, squares / (counts.len() - 1) as f64 / mean)
}

#[test]
fn poisson_has_the_mean_and_the_variance_of_one() {
    const WINDOWS: usize = 2_000;
    for (rate_qps, shards, seed) in
        [(2_000.0, 1, 1), (2_000.0, 3, 2), (10_000.0, 1, 3), (10_000.0, 8, 4)]
    {
        let counts = counts(&Rate::Constant(rate_qps), Pace::Poisson, seed, shards, WINDOWS);
        let (mean, dispersion) = mean_and_dispersion(&counts);
        let expected = rate_qps / 100.0;
        let error = (expected / WINDOWS as f64).sqrt();
        let case = format!("{rate_qps} qps, {shards} workers: {mean}, {dispersion}");
        assert!((mean - expected).abs() < 5.0 * error, "{case}");
        // The standard error of the dispersion is sqrt(2 / windows), 0.032.
        assert!((dispersion - 1.0).abs() < 0.16, "{case}");
        // Neighbouring windows must not know of each other (standard error 0.022).
        let product = |pair: &[f64]| (pair[0] - mean) * (pair[1] - mean);
        let covariance = counts.windows(2).map(product).sum::<f64>() / (WINDOWS - 1) as f64;
        assert!((covariance / mean).abs() < 0.11, "{case}: {covariance}");
    }
}

#[test]
fn constant_has_no_variance() {
    for shards in [1, 3] {
        let counts = counts(&Rate::Constant(10_000.0), Pace::Constant, 1, shards, 500);
        assert!(counts.iter().all(|count| *count == 100.0), "{shards} workers");
    }
}

#[test]
fn poisson_gaps_are_not_cut_to_nanoseconds() {
    // Mean gap 2.5 ns: cut to whole nanoseconds it would be 2.0.
    let instants = Schedule::new(&Rate::Constant(4e8), Pace::Poisson, 1, 0, 1).take(1_000_000);
    let mean = instants.last().unwrap() as f64 / 1e6;
    assert!((mean - 2.5).abs() < 0.0125, "{mean}");
}

#[test]
fn seeds_and_workers_have_streams_of_their_own() {
    let first = |seed, shard| -> Vec<u64> {
        Schedule::new(&Rate::Constant(1_000.0), Pace::Poisson, seed, shard, 4).take(10).collect()
    };
    assert_eq!(first(1, 2), first(1, 2));
    assert_ne!(first(1, 2), first(1, 3));
    assert_ne!(first(1, 2), first(2, 2));
}

/// Steps and ramps, with the queries that they bring in the first 4 s.
fn changing() -> [(Rate, f64); 6] {
    [
        ("steps:1000,2000,4000/1s", 11_000.0),
        ("steps:3000,0,0.5,7001/700ms", 15_402.25),
        ("steps:500/1ms", 2_000.0),
        ("ramp:1000..5000/4s", 12_000.0),
        ("ramp:5000..0/3s", 7_500.0),
        ("ramp:0..3000/2s", 9_000.0),
    ]
    .map(|(text, queries)| (text.parse().unwrap(), queries))
}

#[test]
fn changing_rates_are_the_same_for_any_number_of_workers() {
    for (rate, queries) in changing() {
        let until = |due_ns: &u64| *due_ns < 4_000_000_000;
        let one: Vec<u64> =
            Schedule::new(&rate, Pace::Constant, 1, 0, 1).take_while(until).collect();
        assert!((one.len() as f64 - queries).abs() <= 1.0, "{rate}: {} queries", one.len());
        assert!(one.is_sorted(), "{rate}");
        for shards in [2, 3, 7] {
            let schedule = |shard| Schedule::new(&rate, Pace::Constant, 1, shard, shards);
            let mut all: Vec<u64> =
                (0..shards).flat_map(|shard| schedule(shard).take_while(until)).collect();
            all.sort_unstable();
            assert_eq!(all, one, "{rate} on {shards} workers");
        }
    }
}

#[test]
fn a_rate_that_does_not_change_is_the_constant_one() {
    for text in ["steps:70001/3ms", "steps:70001,70001,70001/1s", "ramp:70001..70001/10ms"] {
        let rate: Rate = text.parse().unwrap();
        let shaped = Schedule::new(&rate, Pace::Constant, 1, 1, 3).take(10_000);
        let constant = Schedule::new(&Rate::Constant(70_001.0), Pace::Constant, 1, 1, 3);
        assert!(shaped.eq(constant.take(10_000)), "{text}");
    }
}

#[test]
fn a_rate_that_ends_in_a_pause_ends_the_schedule() {
    for (text, queries) in [("steps:10,0/1s", 10), ("steps:0,10,0/1s", 10), ("ramp:10..0/2s", 10)] {
        let rate: Rate = text.parse().unwrap();
        assert_eq!(Schedule::new(&rate, Pace::Constant, 1, 0, 1).count(), queries, "{text}");
        let poisson = Schedule::new(&rate, Pace::Poisson, 1, 0, 1);
        assert!(poisson.count() < 40, "{text}");
    }
}

/// In windows of 10 ms, a changing rate brings Poisson counts: mean and variance are those of the rate there.
#[test]
fn poisson_follows_a_changing_rate() {
    const WINDOWS: usize = 400;
    for (number, (rate, queries)) in changing().into_iter().enumerate() {
        for shards in [1, 3] {
            let seed = number as u64;
            let counts = counts(&rate, Pace::Poisson, seed, shards, WINDOWS);
            let at = |window: usize| Duration::from_millis(10) * window as u32;
            let expected = |window| rate.cumulated(at(window + 1)) - rate.cumulated(at(window));
            let total: f64 = counts.iter().sum();
            let case = format!("{rate}, {shards} workers");
            assert!((total - queries).abs() < 5.0 * queries.sqrt(), "{case}: {total}");
            // Each term is 1 in the mean, with a variance of 2 and a little more where few are
            // expected; windows of a pause must be empty.
            let (mut sum, mut terms) = (0.0, 0.0);
            for (window, count) in counts.iter().enumerate() {
                match expected(window) {
                    none if none < 1e-9 => assert_eq!(*count, 0.0, "{case}: window {window}"),
                    few if few < 2.0 => {}
                    mean => {
                        sum += (count - mean).powi(2) / mean;
                        terms += 1.0;
                    }
                }
            }
            let error = (3.0f64 / terms).sqrt();
            assert!((sum / terms - 1.0).abs() < 5.0 * error, "{case}: {}", sum / terms);
        }
    }
}

#[test]
#[should_panic(expected = "the rate steps:0/1s has no schedule")]
fn an_impossible_rate_has_no_schedule() {
    let rate = Rate::Steps { rates: vec![0.0], every: Duration::from_secs(1) };
    let _ = Schedule::new(&rate, Pace::Constant, 1, 0, 1);
}
