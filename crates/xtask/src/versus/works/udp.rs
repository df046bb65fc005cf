//! Answered UDP queries per second of one core, against the reflector.

use anyhow::{Context as _, Result};

use crate::arguments::Work;
use crate::versus::Outcome;
use crate::versus::bench::{self, Bench, answered, median_of};
use crate::versus::figures::Aim;
use crate::versus::reflector::{Counting, Reflector};
use crate::versus::sample::{Load, Mode, Sample};
use crate::versus::table::Comparison;

const CLIENTS: u32 = 4;
/// Over all sockets. Each program is asked at each of them.
const WINDOWS: [u32; 4] = [100, 500, 1000, 2000];
/// See `evidence/BENCHMARKS.md`.
const AIM: Aim = Aim::AtLeast(5.5);

/// Measures at every window. The aim is for the best window of each program.
pub(crate) fn udp(bench: &Bench<'_>) -> Result<Outcome> {
    let reflector = Reflector::start(&bench.folder, Counting::No)?;
    let windows = if bench.options.smoke { &WINDOWS[..1] } else { &WINDOWS[..] };
    let load = |window: &u32| reflector.load(Work::Udp, CLIENTS, Mode::Window(*window));
    let loads: Vec<Load<'_>> = windows.iter().map(load).collect();
    let samples = bench.alternate(&loads, &bench.programs()?, None)?;
    let cases: Vec<String> = loads.iter().map(Load::case).collect();
    let mut outcome = Outcome::default();
    for peer in &bench.peers {
        for case in &cases {
            outcome.comparisons.push(compare(&samples, (case, case), &peer.name, None)?);
        }
        let ours = best(&samples, &cases, "dnslab")?;
        let theirs = best(&samples, &cases, &peer.name)?;
        let aimed = compare(&samples, (&ours, &theirs), &peer.name, Some(AIM))?;
        outcome.comparisons.push(aimed);
    }
    outcome.notes.push(format!(
        "udp: all programs at the windows {windows:?}, over {CLIENTS} sockets; the row with the aim \
         compares the best window of each"
    ));
    outcome.samples = samples;
    Ok(outcome)
}

/// The case in which a program answers most.
fn best(samples: &[Sample], cases: &[String], program: &str) -> Result<String> {
    let mut rates = Vec::new();
    for case in cases {
        rates.push((median_of(samples, case, program, answered)?, case));
    }
    let best = rates.into_iter().max_by(|one, other| one.0.total_cmp(&other.0));
    best.map(|(_, case)| case.clone()).context("there is no window")
}

/// dnslab in the first case against a peer in the second.
fn compare(
    samples: &[Sample],
    cases: (&str, &str),
    peer: &str,
    aim: Option<Aim>,
) -> Result<Comparison> {
    let mut row = bench::compare(Work::Udp, samples, cases, peer, ("answered qps", answered))?
        .context("no ratio of the answered rates")?;
    if aim.is_some() {
        row.case = format!("best: {} and {}", cases.0, cases.1);
    }
    let p50 = median_of(samples, cases.0, "dnslab", |sample| sample.finding.p50_us)?;
    Ok(Comparison { aim, beside: Some(format!("p50 {p50:.0} us")), ..row })
}
