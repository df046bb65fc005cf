//! Client CPU per answer over DoQ and DoH (HTTP/3) against that over DoT, all of dnslab, with `dnslab serve`
//! on the other core. No peer measures latency over QUIC.

use anyhow::{Context as _, Result};
use dnslab_wire::Transport;

use crate::arguments::Work;
use crate::versus::bench::{self, Bench, median_of};
use crate::versus::figures::Aim;
use crate::versus::sample::{Load, Mode, Sample};
use crate::versus::table::Comparison;
use crate::versus::{Outcome, server};

const MEASURED: [Transport; 2] = [Transport::Doq, Transport::Doh3];
const AGAINST: Transport = Transport::Dot;
const CONNECTIONS: [u32; 2] = [4, 100];
/// Over all connections.
const WINDOW: u32 = 1000;
/// See `evidence/BENCHMARKS.md`.
const AIM: Aim = Aim::AtMost(3.0);

/// Measures each transport with few and with many connections.
pub(crate) fn quic(bench: &Bench<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut listens = Vec::new();
    for transport in [AGAINST].into_iter().chain(MEASURED) {
        let name = transport.name();
        let refusal = bench.dnslab.refusal(transport, &bench.room())?;
        match (refusal, bench.dnslab.listen_option(transport)) {
            (None, Some(option)) => listens.push((transport, option)),
            (Some(refusal), _) => {
                outcome.notes.push(format!("quic: {name} skipped: {refusal}"));
            }
            (None, None) => {
                let note = format!("quic: {name} skipped: `dnslab serve` has no option for it");
                outcome.notes.push(note);
            }
        }
    }
    let transports: Vec<Transport> = listens.iter().map(|(transport, _)| *transport).collect();
    let path = &bench.dnslab.path;
    let mut server =
        server::responder(&bench.folder, &bench.zone, bench.server_cpu, path, &listens)?;
    bench.await_ready(&mut server, &transports)?;
    let connections = if bench.options.smoke { &CONNECTIONS[..1] } else { &CONNECTIONS[..] };
    let mut loads = Vec::new();
    for clients in connections {
        for transport in &transports {
            loads.push(server.load(Work::Quic, *transport, *clients, Mode::Window(WINDOW)));
        }
    }
    let samples = bench.alternate(&loads, &bench.own(), None)?;
    for clients in connections {
        let load = |transport| server.load(Work::Quic, transport, *clients, Mode::Window(WINDOW));
        for transport in transports.iter().filter(|transport| MEASURED.contains(transport)) {
            outcome.comparisons.push(compare(&samples, &load(*transport), &load(AGAINST))?);
        }
    }
    outcome.samples = samples;
    Ok(outcome)
}

fn compare(samples: &[Sample], ours: &Load<'_>, theirs: &Load<'_>) -> Result<Comparison> {
    let (our_case, their_case) = (ours.case(), theirs.case());
    let cases = (&*our_case, &*their_case);
    let cpu = |sample: &Sample| Some(sample.cpu_us_per_answer);
    let row = bench::compare(Work::Quic, samples, cases, "dnslab", ("CPU us/answer", cpu))?
        .with_context(|| format!("no ratio for {our_case}"))?;
    let workers =
        median_of(samples, &our_case, "dnslab", |sample| sample.finding.worker_us_per_answer)?;
    Ok(Comparison {
        ours: (ours.transport.name().to_owned(), row.ours.1),
        theirs: (theirs.transport.name().to_owned(), row.theirs.1),
        aim: Some(AIM),
        beside: Some(format!("worker {workers:.2} us")),
        ..row
    })
}
