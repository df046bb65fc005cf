//! What dnslab's batch delay changes: its own cost, and the server's behaviour.

use anyhow::Result;
use dnslab_wire::Transport;

use crate::arguments::Work;
use crate::versus::Outcome;
use crate::versus::bench::{Bench, answered, median_of};
use crate::versus::sample::{Mode, Sample};
use crate::versus::server;
use crate::versus::table::BatchDelayRow;

const TRANSPORTS: [Transport; 3] = [Transport::Udp, Transport::Tcp, Transport::Dot];
/// The preset is among them.
const BATCH_DELAYS: [&str; 4] = ["0us", "20us", "50us", "200us"];
const CLIENTS: u32 = 4;
/// Over all clients. No more than the socket buffer of an untuned server holds; otherwise UDP is measured by
/// its losses.
const WINDOW: u32 = 200;

pub(crate) fn batch_delay(bench: &Bench<'_>) -> Result<Outcome> {
    let mut server = server::bind(&bench.folder, &bench.zone, bench.server_cpu)?;
    let smoke = bench.options.smoke;
    let transports = if smoke { &TRANSPORTS[..1] } else { &TRANSPORTS[..] };
    let batch_delays = if smoke { &BATCH_DELAYS[..2] } else { &BATCH_DELAYS[..] };
    bench.await_ready(&mut server, transports)?;
    let mut loads = Vec::new();
    for transport in transports {
        for batch_delay in batch_delays {
            let mut load = server.load(Work::BatchDelay, *transport, CLIENTS, Mode::Window(WINDOW));
            load.batch_delay = Some(batch_delay);
            loads.push(load);
        }
    }
    let samples = bench.alternate(&loads, &bench.own(), None)?;
    let mut outcome = Outcome::default();
    for load in &loads {
        outcome.batch_delays.push(row(&samples, load.case())?);
    }
    outcome.samples = samples;
    Ok(outcome)
}

/// All rounds of one load.
pub(super) fn row(samples: &[Sample], case: String) -> Result<BatchDelayRow> {
    let median = |figure: fn(&Sample) -> Option<f64>| median_of(samples, &case, "dnslab", figure);
    Ok(BatchDelayRow {
        answered_qps: median(answered)?,
        p50_us: median(|sample| sample.finding.p50_us)?,
        p99_us: median(|sample| sample.finding.p99_us)?,
        cpu_us_per_answer: median(|sample| Some(sample.cpu_us_per_answer))?,
        case,
    })
}
