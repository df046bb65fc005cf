//! Answered rate of many clients with one query each, against BIND on the other core: what transports cost by
//! the figures of each program, and which program was itself the bottleneck.

use anyhow::{Context as _, Result};
use dnslab_wire::Transport;

use crate::arguments::Work;
use crate::versus::Outcome;
use crate::versus::bench::{self, Bench, answered, limits, median_of};
use crate::versus::sample::{Load, Mode, Sample};
use crate::versus::server;
use crate::versus::table::Comparison;

/// The first is the reference of the others.
const TRANSPORTS: [Transport; 3] = [Transport::Udp, Transport::Tcp, Transport::Dot];
/// Each has one query outstanding.
const CLIENTS: u32 = 100;

pub(crate) fn clients(bench: &Bench<'_>) -> Result<Outcome> {
    let mut server = server::bind(&bench.folder, &bench.zone, bench.server_cpu)?;
    let transports = if bench.options.smoke { &TRANSPORTS[..1] } else { &TRANSPORTS[..] };
    bench.await_ready(&mut server, transports)?;
    let load = |transport: &Transport| {
        server.load(Work::Clients, *transport, CLIENTS, Mode::Window(CLIENTS))
    };
    let loads: Vec<Load<'_>> = transports.iter().map(load).collect();
    let samples = bench.alternate(&loads, &bench.programs()?, None)?;
    let mut outcome = Outcome::default();
    for peer in &bench.peers {
        for load in &loads {
            outcome.comparisons.push(compare(&samples, &load.case(), &peer.name)?);
        }
    }
    let peers = bench.peers.iter().map(|peer| peer.name.as_str());
    for program in std::iter::once("dnslab").chain(peers) {
        outcome.notes.push(costs(&samples, &loads, program)?);
    }
    outcome.samples = samples;
    Ok(outcome)
}

/// Share of its CPU that a program used, in percent, if an answer took it as long in the window as in the
/// whole run.
fn busy(sample: &Sample) -> Option<f64> {
    Some(sample.finding.answered_qps * sample.cpu_us_per_answer / 1e4)
}

fn compare(samples: &[Sample], case: &str, peer: &str) -> Result<Comparison> {
    let cases = (case, case);
    let row = bench::compare(Work::Clients, samples, cases, peer, ("answered qps", answered))?
        .context("no ratio of the answered rates")?;
    let own = median_of(samples, case, "dnslab", busy)?;
    let other = median_of(samples, case, peer, busy)?;
    let limits = limits(samples, case, "dnslab");
    let beside = Some(format!("CPU {own:.0} and {other:.0} %; bottleneck: {limits}"));
    Ok(Comparison { beside, ..row })
}

/// What each transport costs by the medians of one program.
fn costs(samples: &[Sample], loads: &[Load<'_>], program: &str) -> Result<String> {
    let mut rates = Vec::new();
    for load in loads {
        rates.push((load.transport.name(), median_of(samples, &load.case(), program, answered)?));
    }
    let (reference, first) = rates.first().copied().context("there is no transport")?;
    let others: Vec<String> = rates[1..]
        .iter()
        .map(|(name, rate)| format!("{name} {:+.0} %", (rate / first - 1.0) * 100.0))
        .collect();
    Ok(format!("clients: against {reference}, {program} says {}", others.join(", ")))
}
