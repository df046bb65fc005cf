//! Variants that differ only in the number of the server's threads: what another thread is worth.

use dnslab_record::{Metric, RunFigure, RunRecord, Session, ThreadSweep};
use serde::{Deserialize, Serialize};

use crate::not_compared::NotCompared;
use crate::statistics::{Estimate, HeldOut, ScalabilityLaw, ThreadRate, mean};

/// One server with several numbers of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ScalingLine {
    /// The server.
    pub name: String,
    /// By the number of threads, the smallest first.
    pub points: Vec<ScalingPoint>,
    /// The law of the points that count ([`ScalingPoint::counts`]); `None` if they have fewer than three numbers of
    /// threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<ScalabilityLaw>,
    /// What the law without the largest number of threads says of it; `None` if fewer than four count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
}

/// A server with one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ScalingPoint {
    /// Name of the variant.
    pub variant: String,
    /// Threads that the server was configured for.
    pub threads: u32,
    /// CPUs that it was pinned to; 0 if to none.
    pub cpus: u32,
    /// Answered queries per second; `None` if no run counts.
    pub answered_qps: Option<Estimate>,
    /// The rate of a thread as a share of that of the first point that counts, round by round; `None` of that point and
    /// of what does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<Estimate>,
    /// Why its rate is not the server's, so that the law leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<NotCompared>,
}

/// The answered rate of a variant, queries per second, as its summary has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariantRate {
    pub(crate) answered_qps: Option<Estimate>,
    pub(crate) not_compared: Option<NotCompared>,
}

impl ScalingPoint {
    /// `None` of a variant without a run.
    fn of(name: &str, rate: VariantRate, records: &[&RunRecord]) -> Option<Self> {
        let record = records.iter().find(|record| record.variant == name)?;
        Some(Self {
            variant: name.to_owned(),
            threads: record.server.threads,
            cpus: u32::try_from(record.server.cpus.len()).unwrap_or(u32::MAX),
            answered_qps: rate.answered_qps,
            efficiency: None,
            left_out: rate.not_compared.filter(|why| why.includes(Metric::AnsweredQps)),
        })
    }

    /// Whether the law is fitted to it.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.threads > 0 && self.answered_qps.is_some() && self.left_out.is_none()
    }
}

impl ScalingLine {
    /// The lines of a session, with the rates of its variants. None of a server that has no run.
    pub(crate) fn all(
        session: &Session,
        records: &[&RunRecord],
        rate: &dyn Fn(&str) -> Option<VariantRate>,
    ) -> Vec<Self> {
        let mut lines = Vec::new();
        for ThreadSweep { name, variants } in &session.scaling {
            let point = |name: &String| ScalingPoint::of(name, rate(name)?, records);
            let mut points: Vec<ScalingPoint> = variants.iter().filter_map(point).collect();
            points.sort_by_key(|point| point.threads);
            if !points.is_empty() {
                lines.push(Self::of(name, points, records, session.seed));
            }
        }
        lines
    }

    fn of(name: &str, mut points: Vec<ScalingPoint>, records: &[&RunRecord], seed: u64) -> Self {
        let counting = points.iter().filter(|point| point.counts());
        let rates: Vec<ThreadRate> = counting.flat_map(|point| rates_of(point, records)).collect();
        if let Some(least) = rates.iter().map(|rate| rate.threads).min() {
            let counting = points.iter_mut().filter(|point| point.counts());
            for point in counting.filter(|point| point.threads > least) {
                point.efficiency = efficiency(point.threads, least, &rates, seed);
            }
        }
        Self {
            name: name.to_owned(),
            points,
            law: ScalabilityLaw::fit(&rates, seed),
            held_out: HeldOut::of(&rates, seed),
        }
    }

    /// The first and the last point that count; `None` if there are no two.
    #[must_use]
    pub fn ends(&self) -> Option<[&ScalingPoint; 2]> {
        let mut counting = self.points.iter().filter(|point| point.counts());
        let first = counting.next()?;
        let last = counting.next_back()?;
        (last.threads > first.threads).then_some([first, last])
    }
}

/// The rates of its valid runs.
fn rates_of(point: &ScalingPoint, records: &[&RunRecord]) -> Vec<ThreadRate> {
    let own = records.iter().filter(|record| record.variant == point.variant && record.is_valid());
    let rate = |record: &&RunRecord| {
        let qps = record.figure(Metric::AnsweredQps).and_then(RunFigure::measured)?;
        let (round, threads) = (record.repetition, point.threads);
        (qps > 0.0).then_some(ThreadRate { round, threads, qps })
    };
    own.filter_map(rate).collect()
}

/// The rate of a thread as a share of that with the `least` threads, over the rounds that have both.
fn efficiency(threads: u32, least: u32, rates: &[ThreadRate], seed: u64) -> Option<Estimate> {
    let per_thread = |rate: &ThreadRate| rate.qps / f64::from(rate.threads);
    let shares = rates.iter().filter(|rate| rate.threads == threads).filter_map(|rate| {
        let is_pair = |other: &&ThreadRate| (other.round, other.threads) == (rate.round, least);
        let first = rates.iter().find(is_pair)?;
        Some(per_thread(rate) / per_thread(first))
    });
    mean(&shares.collect::<Vec<f64>>(), seed)
}
