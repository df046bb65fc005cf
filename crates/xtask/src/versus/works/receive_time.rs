//! What the kernel's receive time costs and changes. Either the clock is read once for each batch, or each
//! datagram carries the kernel's time stamp.

use anyhow::Result;
use dnslab_wire::Transport;

use super::batch_delay::row;
use crate::arguments::Work;
use crate::versus::Outcome;
use crate::versus::bench::Bench;
use crate::versus::reflector::{Counting, Reflector};
use crate::versus::sample::{Load, Mode};
use crate::versus::server;

const CLOCKS: [&str; 2] = ["user", "kernel"];
const CLIENTS: u32 = 4;
/// Over all sockets, against the reflector.
const WINDOW: u32 = 1000;
/// Rate of the open loop against BIND: a third of what it can answer, so that the latency is that of the
/// server and not of a queue.
const RATE_QPS: u32 = 50_000;

/// Measures the cost against the reflector, and the latencies of an open loop against BIND with and without a
/// batch delay.
pub(crate) fn receive_time(bench: &Bench<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let reflector = Reflector::start(&bench.folder, Counting::No)?;
    let load = reflector.load(Work::ReceiveTime, CLIENTS, Mode::Window(WINDOW));
    let cost = |clock| Load { receive_time: Some(clock), ..load };
    measure(bench, &CLOCKS.map(cost), &mut outcome)?;
    let mut server = server::bind(&bench.folder, &bench.zone, bench.server_cpu)?;
    bench.await_ready(&mut server, &[Transport::Udp])?;
    let batch_delays = if bench.options.smoke { &["50us"][..] } else { &["0us", "50us"][..] };
    let mut loads = Vec::new();
    for batch_delay in batch_delays {
        for clock in CLOCKS {
            let mode = Mode::Rate(RATE_QPS);
            let mut load = server.load(Work::ReceiveTime, Transport::Udp, CLIENTS, mode);
            (load.batch_delay, load.receive_time) = (Some(*batch_delay), Some(clock));
            loads.push(load);
        }
    }
    measure(bench, &loads, &mut outcome)?;
    Ok(outcome)
}

fn measure(bench: &Bench<'_>, loads: &[Load<'_>], outcome: &mut Outcome) -> Result<()> {
    let samples = bench.alternate(loads, &bench.own(), None)?;
    for load in loads {
        outcome.batch_delays.push(row(&samples, load.case())?);
    }
    outcome.samples.extend(samples);
    Ok(())
}
