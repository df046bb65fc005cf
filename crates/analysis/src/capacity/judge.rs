//! What is said of one run in a search for the capacity.

use dnslab_record::{
    Breach, Caveat, Finding, InvalidReason, Judged, Measured, Objective, Observation, RunRecord,
    RunStatus, Threshold,
};

use crate::bottleneck::{BottleneckFigures, GENERATOR_BUSY, RATE_MET};

/// Share of the answers that may come after the window before the server counts as one that does
/// not keep up. At a rate that it does keep up, as many come after the window as came in it to
/// queries of the warm-up. A stall of 40 ms at the end of a window of 2 s is within this.
const BACKLOG: f64 = 0.02;

/// So many answers may be missing however short the window: at low rates single queries decide.
const FEW: f64 = 10.0;

/// Judges a run against an objective, if there is one. An open loop has to send what was due
/// and the server to keep up besides: else a short window hides that the latency grows.
#[must_use]
pub fn judge(record: &RunRecord, objective: Option<&Objective>) -> Judged {
    let run = match (&record.status, record.observation()) {
        (RunStatus::Failed { reason, .. }, _) => {
            return Judged::Failed { reason: reason.clone() };
        }
        (_, None) => return Judged::Failed { reason: "nothing was measured".to_owned() },
        (_, Some(run)) => run,
    };
    let mut breaches = breaches(&run, objective);
    // What the generator did not send as asked is no fault of the server. Whether it explains what is not met is
    // found out below.
    if let RunStatus::Invalid { reason } = &record.status
        && !matches!(reason, InvalidReason::NotSentAsAsked { .. })
    {
        // First, for it may explain all others.
        breaches.insert(0, Breach::Invalid { reason: reason.clone() });
    }
    if breaches.is_empty() {
        return Judged::Met;
    }
    match generator(&run, &breaches) {
        Some(generator) => Judged::GeneratorLimited { breaches, generator },
        None => Judged::Violated { breaches },
    }
}

fn breaches(run: &Observation<'_>, objective: Option<&Objective>) -> Vec<Breach> {
    let measured = run.measured;
    let mut breaches = Vec::new();
    for demand in objective.map_or(&[][..], Objective::demands) {
        let found = demand.figure(run);
        if !found.is_some_and(|figure| demand.is_met_by(figure)) {
            breaches.push(Breach::Threshold { demand: *demand, found });
        }
    }
    if run.load.window().is_some() {
        return breaches;
    }
    let (due, sent) = (measured.counters.outcomes.due, measured.sent_in_window);
    if is_missed(due, sent) {
        breaches.push(Breach::NotOffered { due, sent });
    }
    let (answered, in_window) = (measured.counters.outcomes.answered, measured.answered_in_window);
    if (in_window as f64) < (1.0 - BACKLOG) * answered as f64 - FEW {
        breaches.push(Breach::Backlog { answered, in_window });
    }
    breaches
}

/// What the generator lacked, if that explains everything that is not met.
///
/// A worker without CPU time left explains all of it: what it sends late it sends in bursts, which a
/// server's socket buffer may not take. A server without CPU time left is the bottleneck all the same,
/// unless the worker was busier: as in [`dnslab_record::Bottleneck::decide`], the more saturated of the two holds
/// the other up. The question is another one than there, though: an open loop of which nearly
/// everything is answered has its rate as its bottleneck, and may violate a latency all the same.
fn generator(run: &Observation<'_>, breaches: &[Breach]) -> Option<Finding> {
    let measured = run.measured;
    let figures = BottleneckFigures::of(run);
    let busy_share = figures.generator_busy_share;
    let server = figures.busiest_server();
    if breaches.iter().any(|breach| matches!(breach, Breach::Invalid { .. })) {
        return None;
    }
    let of_caveat = |caveat| Finding::Caveat { caveat, workers: run.load.workers };
    if busy_share >= GENERATOR_BUSY && server.is_none_or(|server| busy_share >= server) {
        return Some(of_caveat(Caveat::GeneratorLimited { busy_share }));
    }
    let reasons = breaches.iter().map(|breach| match breach {
        Breach::Threshold { demand, .. } if demand.indicator.is_latency() => {
            late(*demand, &figures, run)
        }
        Breach::Threshold { demand, .. } => dropped(*demand, &figures, run).map(of_caveat),
        Breach::NotOffered { .. } | Breach::Backlog { .. } => {
            not_offered(&figures, measured).map(of_caveat)
        }
        Breach::Invalid { .. } => None,
    });
    // One that is not explained is the server's.
    reasons.collect::<Option<Vec<Finding>>>()?.into_iter().next()
}

/// Drops at the generator's own sockets, if the demand would be met had those answers been read.
fn dropped(
    demand: Threshold,
    figures: &BottleneckFigures,
    run: &Observation<'_>,
) -> Option<Caveat> {
    let measured = run.measured;
    let datagrams = figures.generator_drops;
    let mut without = measured.clone();
    let outcomes = &mut without.counters.outcomes;
    let read = datagrams.min(outcomes.timed_out);
    outcomes.timed_out -= read;
    outcomes.answered += read;
    let would_be = demand.figure(&Observation { measured: &without, ..*run });
    let explains = datagrams > 0 && would_be.is_some_and(|figure| demand.is_met_by(figure));
    explains.then_some(Caveat::GeneratorDrops { datagrams })
}

/// Too little sent, if that was not for want of a server that reads.
fn not_offered(figures: &BottleneckFigures, measured: &Measured) -> Option<Caveat> {
    let due = measured.counters.outcomes.due;
    let missed = is_missed(due, measured.sent_in_window);
    if !missed || figures.waits_for_connections() {
        return None;
    }
    Some(if figures.holds_connections() {
        Caveat::ConnectionsHeld { share: figures.connections_held_share }
    } else {
        Caveat::RateMissed { intended_qps: measured.due_qps(), offered_qps: measured.offered_qps() }
    })
}

/// The send lag, if the demand on latency would be met by the service time: by a latency that begins
/// when a query is sent. Lost queries count in it as they do in the latency. Not for streams: their
/// queries lag behind when the server does not read.
fn late(demand: Threshold, figures: &BottleneckFigures, run: &Observation<'_>) -> Option<Finding> {
    let measured = run.measured;
    if figures.is_stream {
        return None;
    }
    let mut without = measured.clone();
    without.latency = measured.service_time.clone();
    without.latency.record_many_ns(run.load.timeout_ns, measured.counters.outcomes.lost());
    let from_sending_ns = demand.figure(&Observation { measured: &without, ..*run })?;
    let lag_p99_ns = measured.send_lag.quantile_ns(0.99).unwrap_or(0);
    demand.is_met_by(from_sending_ns).then_some(Finding::LeftLate {
        demand,
        from_sending_ns,
        lag_p99_ns,
    })
}

fn is_missed(due: u64, sent: u64) -> bool {
    (sent as f64) < RATE_MET * due as f64 - FEW
}
