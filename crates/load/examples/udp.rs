//! The engine by itself: a closed loop over UDP on a server that runs already, and what it took.
//!
//! `cargo run --release -p dnslab-load --example udp -- 127.0.0.1:53 4 100 5`: four clients with a hundred
//! queries outstanding each, for five seconds.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_load::{Job, run};
use dnslab_settings::{Load, Mode};
use dnslab_traffic::{QueryList, SyntheticZone, TypeMix};
use dnslab_wire::QueryOptions;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let target = next("127.0.0.1:53").parse()?;
    let (clients, outstanding) = (next("4").parse()?, next("100").parse()?);
    let seconds = next("5").parse()?;
    let batch_delay_us = next("50").parse()?;
    let zone = SyntheticZone::new("example.test.".parse()?, 1_000, Duration::from_secs(1))?;
    let queries = QueryList::from_zone(&zone, &TypeMix::default(), 1, &QueryOptions::default());
    let settings = Load {
        clients,
        mode: Mode::Closed { outstanding },
        duration: Duration::from_secs_f64(seconds),
        warm_up: Duration::from_millis(200),
        batch_delay: Duration::from_micros(batch_delay_us),
        ..Load::default()
    };
    let job = Job::new(settings, target, Arc::new(queries));
    let result = run(&job, &AtomicBool::new(false), &mut |_| {})?;
    let measured = &result.measured;
    println!(
        "{:.0} answered qps, {:.0} ns of CPU for each, {} lost, {}",
        measured.answered_qps(),
        measured.generator_cpu_per_query_ns().unwrap_or(f64::NAN),
        measured.counters.outcomes.lost(),
        result.facts.send_path,
    );
    Ok(())
}
