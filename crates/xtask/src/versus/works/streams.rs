//! Client CPU per answer over TCP, DoT and DoH (HTTP/2), against BIND on the other core.

use anyhow::{Context as _, Result};
use dnslab_wire::Transport;

use crate::arguments::Work;
use crate::versus::bench::{self, Bench, answered, median_of};
use crate::versus::figures::Aim;
use crate::versus::sample::{Mode, Sample};
use crate::versus::table::Comparison;
use crate::versus::{Outcome, server};

const TRANSPORTS: [Transport; 3] = [Transport::Tcp, Transport::Dot, Transport::Doh2];
const CONNECTIONS: [u32; 2] = [4, 100];
/// Over all connections.
const WINDOW: u32 = 1000;
/// For the answered rate. The CPU time of an answer below the limit of a generator has no aim: it is the way
/// to sleep and back (`evidence/BENCHMARKS.md`).
const RATE_AIM: Aim = Aim::AtLeast(1.0);

/// Measures each transport with few and with many connections.
pub(crate) fn streams(bench: &Bench<'_>) -> Result<Outcome> {
    let programs = bench.programs()?;
    let mut server = server::bind(&bench.folder, &bench.zone, bench.server_cpu)?;
    let mut outcome = Outcome::default();
    let mut transports = Vec::new();
    for transport in TRANSPORTS {
        match bench.dnslab.refusal(transport, &bench.room())? {
            Some(refusal) => {
                outcome.notes.push(format!("streams: {} skipped: {refusal}", transport.name()))
            }
            None => transports.push(transport),
        }
    }
    bench.await_ready(&mut server, &transports)?;
    let connections = if bench.options.smoke { &CONNECTIONS[..1] } else { &CONNECTIONS[..] };
    let mut loads = Vec::new();
    for transport in transports {
        for clients in connections {
            loads.push(server.load(Work::Streams, transport, *clients, Mode::Window(WINDOW)));
        }
    }
    let samples = bench.alternate(&loads, &programs, None)?;
    for load in &loads {
        for peer in &bench.peers {
            outcome.comparisons.extend(compare(&samples, &load.case(), &peer.name)?);
        }
    }
    outcome.samples = samples;
    Ok(outcome)
}

fn compare(samples: &[Sample], case: &str, peer: &str) -> Result<[Comparison; 2]> {
    let row = |figure, value: fn(&Sample) -> Option<f64>, aim, beside| -> Result<Comparison> {
        let row = bench::compare(Work::Streams, samples, (case, case), peer, (figure, value))?
            .with_context(|| format!("no ratio for {case}"))?;
        Ok(Comparison { aim, beside, ..row })
    };
    let workers = median_of(samples, case, "dnslab", |sample| sample.finding.worker_us_per_answer)?;
    let workers = Some(format!("worker {workers:.2} us"));
    Ok([
        row("CPU us/answer", |sample| Some(sample.cpu_us_per_answer), None, workers)?,
        row("answered qps", answered, Some(RATE_AIM), None)?,
    ])
}
