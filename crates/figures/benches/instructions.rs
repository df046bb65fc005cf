//! Instructions that keeping figures costs, counted by callgrind.
//!
//! Each function does its work [`TIMES`] times, so that a count divided by [`TIMES`] is that of one
//! figure. `checks/instructions` holds the counts against the accepted ones.

#![expect(missing_docs, reason = "the macros make public items, which cannot have docstrings")]

use std::hint::black_box;

use dnslab_figures::Histogram;
use gungraun::{library_benchmark, library_benchmark_group, main};

/// How often each function does its work.
const TIMES: u64 = 1_000;

/// Durations in nanoseconds, from 20 us up to 100 ms in even ratios, as answers take them.
fn durations() -> Vec<u64> {
    let ratio = 5_000_f64.powf(1.0 / TIMES as f64);
    (0..TIMES as i32).map(|number| (20e3 * ratio.powi(number)) as u64).collect()
}

/// A histogram that has its memory, and something in it.
fn histogram() -> Histogram {
    let mut histogram = Histogram::new();
    durations().into_iter().for_each(|ns| histogram.record_ns(ns));
    histogram
}

#[library_benchmark]
#[bench::spread(durations(), histogram())]
fn histogram_record_ns(durations: Vec<u64>, mut histogram: Histogram) -> (Vec<u64>, Histogram) {
    for ns in &durations {
        black_box(&mut histogram).record_ns(*ns);
    }
    (durations, histogram)
}

library_benchmark_group!(name = figures; benchmarks = histogram_record_ns);

main!(library_benchmark_groups = figures);
