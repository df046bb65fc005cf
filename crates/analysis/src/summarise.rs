//! Computes a summary from the records of a session, and from nothing else.

use std::borrow::Cow;
use std::cmp::Reverse;

use dnslab_figures::{Counters, Histogram, NetworkDrops, Outcomes, Pacing};
use dnslab_record::{
    AnswerComparison, Bottleneck, Caveat, Compared, CpuProfiles, Indicator, LoadMode, Measured,
    Metric, Observation, RunFigure, RunRecord, RunStatus, Session,
};

use crate::agreement::Agreement;
use crate::chain::ServerFigures;
use crate::connections::ConnectionFigures;
use crate::cost::CostSummary;
use crate::disturbed::are_disturbed;
use crate::gate::judge;
use crate::latency_floor::{floor_of_runs, latency_floor_of_runs_ns};
use crate::memory::{MemoryLog, RunMemory};
use crate::not_compared::NotCompared;
use crate::quantiles::RunFigures;
use crate::self_check::VariantSelfCheck;
use crate::statistics::{Comparison, Estimate, Pair, Paired, drift, mean_of};
use crate::summary::{Summary, VariantSummary};
use crate::sweep::SweepLine;
use crate::variant_caveat::VariantCaveat;
use crate::windows::{WindowOfVariant, WindowSummary};

/// From this share of the rate that another load generator was told on, it kept to it.
const RATE_KEPT: f64 = 0.98;

impl Summary {
    /// Computes the figures from the runs in any order; the same runs give the same figures, since
    /// the bootstrap takes the seed of the session. Differences are taken inside each repetition, and
    /// their words have one error rate ([`Comparison::of_report`]).
    ///
    /// Only valid runs enter a figure, a limit or a caveat; the others are counted. Records of
    /// variants that the session does not know are left out.
    #[must_use]
    pub fn of(session: &Session, records: &[RunRecord]) -> Self {
        let mut records: Vec<&RunRecord> = records.iter().collect();
        records.sort_by_key(|record| record.position);
        let runs: Vec<VariantRuns> =
            session.variants.iter().map(|name| VariantRuns::of(name, &records)).collect();
        let skipped = |name: &str| {
            let skip = session.skipped.iter().find(|skip| skip.variant == name);
            skip.map(|skip| skip.reason.clone())
        };
        let memory = MemoryLog::of(&records);
        let variants = runs
            .iter()
            .map(|runs| VariantSummary {
                skipped: skipped(runs.name),
                ..runs.summarise(&memory, session.seed)
            })
            .collect();
        let of = |name: &str| runs.iter().find(|runs| runs.name == name);
        let compared: Vec<VariantPair<'_>> = session
            .compared()
            .iter()
            .filter_map(|pair| {
                let Compared { variant, against } = pair;
                let is_control = session.controls.contains(pair);
                Some(VariantPair { own: of(variant)?, reference: of(against)?, is_control })
            })
            .collect();
        let mut windows = windows(&runs);
        let mut pairs: Vec<Pair> = compared.iter().flat_map(VariantPair::of_runs).collect();
        let mut counts = vec![pairs.len()];
        for window in &mut windows {
            window.variants =
                runs.iter().filter_map(|runs| runs.in_window(window, session.seed)).collect();
            let before = pairs.len();
            pairs.extend(compared.iter().flat_map(|pair| pair.of_window(window)));
            counts.push(pairs.len() - before);
        }
        // All of them have one error rate. They come back in the same order.
        let mut all = Comparison::of_report(pairs, session.margin, session.answered_by).into_iter();
        let mut next = |count: usize| all.by_ref().take(count).collect::<Vec<_>>();
        let comparisons = next(counts[0]);
        for (window, count) in windows.iter_mut().zip(&counts[1..]) {
            window.comparisons = next(*count);
        }
        let mut summary = Self {
            name: session.name.clone(),
            baseline: session.baseline.clone(),
            answered_by: session.answered_by,
            variants,
            comparisons,
            windows,
            sweep: SweepLine::all(&session.sweeps, &records),
            rulings: Vec::new(),
            answers: Vec::new(),
            cpu: None,
            missing_runs: session.plan.len().saturating_sub(records.len()) as u32,
        };
        summary.rulings =
            session.limits.iter().map(|limit| judge(limit, &summary, &records, session)).collect();
        summary
    }

    /// [`Summary::of`] with what stands in files of its own beside the records: the answers that were compared, and
    /// where the CPU time goes.
    #[must_use]
    pub fn whole(
        session: &Session,
        records: &[RunRecord],
        answers: Vec<AnswerComparison>,
        profiles: Option<&CpuProfiles>,
    ) -> Self {
        let mut summary = Self::of(session, records);
        summary.answers = answers;
        summary.cpu = profiles
            .map(|profiles| CostSummary::of(session, records, &summary.comparisons, profiles));
        summary
    }
}

struct VariantRuns<'a> {
    name: &'a str,
    valid: Vec<(&'a RunRecord, &'a Measured)>,
    /// Those that were measured and do not count.
    invalid: Vec<(&'a RunRecord, &'a Measured)>,
    others: usize,
    mode: Option<&'a LoadMode>,
}

impl<'a> VariantRuns<'a> {
    fn of(name: &'a str, records: &[&'a RunRecord]) -> Self {
        let own = || records.iter().filter(|record| record.variant == name);
        let with_status = |fits: fn(&RunStatus) -> bool| -> Vec<(&'a RunRecord, &'a Measured)> {
            own()
                .filter(|record| fits(&record.status))
                .filter_map(|record| Some((*record, record.measured.as_ref()?)))
                .collect()
        };
        let valid = with_status(|status| *status == RunStatus::Valid);
        let invalid = with_status(|status| matches!(status, RunStatus::Invalid { .. }));
        let others = own().count() - valid.len();
        let mode = own().next().map(|record| &record.load.mode);
        Self { name, valid, invalid, others, mode }
    }

    /// The variant with its invalid runs in the place of the valid ones; `None` unless only invalid ones were
    /// measured.
    fn of_invalid(&self) -> Option<Self> {
        (self.valid.is_empty() && !self.invalid.is_empty()).then(|| Self {
            valid: self.invalid.clone(),
            invalid: Vec::new(),
            others: 0,
            ..*self
        })
    }

    fn is_disturbed(&self) -> bool {
        are_disturbed(self.valid.iter().map(|(record, _)| *record))
    }

    fn figures(&self, metric: Metric) -> RunFigures {
        self.valid.iter().filter_map(|(record, _)| record.figure(metric)).collect()
    }

    /// What bounded it so that some of its figures are not the server's.
    fn not_compared(&self) -> Option<NotCompared> {
        NotCompared::of(self.valid.iter().map(|(record, _)| &record.bottleneck))
    }

    fn summarise(&self, memory: &MemoryLog<'_>, seed: u64) -> VariantSummary {
        let not_compared = self.not_compared();
        let is_lower_bound = not_compared == Some(NotCompared::Generator);
        let figures = Metric::COMPARED.map(|metric| (metric, self.figures(metric)));
        let metrics = figures.iter().filter_map(|(metric, of)| {
            let figure = of.mean(seed)?;
            let is_bound = is_lower_bound && *metric == Metric::AnsweredQps;
            Some((*metric, if is_bound { Estimate::unbounded(figure.value) } else { figure }))
        });
        let quantile = |quantile: f64| -> RunFigures {
            let runs = self.valid.iter();
            runs.filter_map(|(record, _)| record.latency_quantiles()?.at(quantile)).collect()
        };
        let (p90, p999) = (quantile(0.9), quantile(0.999));
        let far = [(Indicator::Percentile(90.0), &p90), (Indicator::Percentile(99.9), &p999)];
        let time_outs = figures
            .iter()
            .map(|(metric, of)| (Indicator::Metric(*metric), of))
            .chain(far)
            .filter_map(|(indicator, of)| Some((indicator.to_string(), of.time_outs()?)));
        let floors = Metric::COMPARED
            .into_iter()
            .filter_map(|metric| Some((metric, self.latency_floor_ns(metric)?)));
        let average = |figure: fn(&Measured) -> Option<f64>| average(self.measured(), figure);
        let times = || self.valid.iter().filter_map(|(record, _)| record.compared_times());
        let mut outcomes = Outcomes::default();
        let (mut counters, mut of_common) = (Counters::default(), Counters::default());
        let (mut latency, mut send_lag) = (Histogram::new(), Histogram::new());
        let mut start_lag = Histogram::new();
        let mut connections = ConnectionFigures::default();
        let network =
            self.valid.iter().try_fold(NetworkDrops::default(), |mut sum, (_, measured)| {
                sum.merge(measured.network.as_ref()?);
                Some(sum)
            });
        for (record, measured) in &self.valid {
            counters.merge(&measured.counters);
            if let Some(common) = &record.common_load {
                of_common.merge(&common.measured.counters);
            }
            if let Some(compared) = record.compared_times() {
                latency.merge(&compared.latency);
                outcomes.merge(&compared.counters.outcomes);
                if record.load.window().is_none() || record.common_load.is_some() {
                    send_lag.merge(&compared.send_lag);
                }
            }
            start_lag.merge(&measured.start_lag);
            connections.add(measured);
        }
        let counts = &connections.counts;
        let handshakes = counts.full_handshakes + counts.resumed_handshakes;
        let mut caveats = caveats(self.valid.iter().map(|(record, _)| match &record.common_load {
            None => Cow::Borrowed(record.caveats.as_slice()),
            Some(_) => Cow::Owned(record.all_caveats()),
        }));
        let runs = || self.valid.iter().map(|(record, _)| *record);
        let error_share = |of: &Counters| of.outcomes.error_share(&of.answers.rcodes);
        let rates = self.figures(Metric::AnsweredQps).measured();
        let drift = rates.and_then(|rates| drift(&rates)).filter(|_| !is_lower_bound);
        let memories: Vec<RunMemory> = runs().map(|record| memory.in_run(record)).collect();
        let (peaks, per_connection) = (
            memories.iter().filter_map(|memory| memory.peak_octets),
            memories.iter().filter_map(|memory| memory.per_connection_octets),
        );
        let (peak_memory_octets, memory_per_connection_octets) =
            (peaks.max(), per_connection.reduce(f64::max));
        let kept = memories.iter().filter(|memory| memory.is_kept).count();
        if peak_memory_octets.is_none() && kept > 0 {
            caveats.push(VariantCaveat { worst: Caveat::MemoryKept, runs: count(kept) });
        }
        VariantSummary {
            name: self.name.to_owned(),
            skipped: None,
            valid_runs: count(self.valid.len()),
            other_runs: count(self.others),
            mode: self.mode.cloned(),
            metrics: metrics.collect(),
            common_rate_qps: self.common_rate_qps(),
            not_compared,
            drift,
            p90_ns: p90.value(),
            p999_ns: p999.value(),
            time_outs: time_outs.collect(),
            latency_floors_ns: floors.collect(),
            outcomes,
            error_share: error_share(&counters).max(error_share(&of_common)),
            rcodes: counters.answers.rcodes,
            latency,
            server_busy_share: mean_of(
                &self.seen().filter_map(|run| run.server_busy_share()).collect::<Vec<f64>>(),
            ),
            server_waited_share: self
                .seen()
                .filter_map(|run| run.measured.waited_share_of(&run.watched.resources))
                .reduce(f64::max),
            is_disturbed: self.is_disturbed(),
            peak_memory_octets,
            memory_per_connection_octets,
            generator_cpu_per_query_ns: average(Measured::generator_cpu_per_query_ns),
            handshakes,
            asked_again: counters.asked_again,
            attempts: counters.attempts,
            checked_answers: counters.answers.checked,
            malformed_answers: counters.answers.malformed,
            bad_signature: counters.answers.bad_signature,
            connections,
            network,
            send_lag,
            start_lag,
            pacing: Pacing::of_runs(times().filter_map(|run| run.pacing.as_ref())),
            agreement: Agreement::sum(runs().filter_map(|run| Agreement::of(&run.observation()?))),
            chain: ServerFigures::over_runs(runs()),
            bottlenecks: bottlenecks(self.valid.iter().map(|(record, _)| &record.bottleneck)),
            self_check: VariantSelfCheck::of(runs(), &caveats),
            of_invalid: self.of_invalid().map(|runs| Box::new(runs.summarise(memory, seed))),
            imported: runs().find_map(|record| Some(record.imported.as_ref()?.title())),
            caveats,
        }
    }

    /// Whether all is of another load generator.
    fn is_imported(&self) -> bool {
        self.valid.iter().any(|(record, _)| record.imported.is_some())
    }

    /// Whether another load generator kept to a rate that it was told (`-Q` of dnsperf), and all of it was answered:
    /// then that says nothing of the server.
    fn is_as_asked(&self) -> bool {
        self.valid.iter().any(|(record, _)| {
            let most = record.imported.as_ref().and_then(|imported| imported.max_qps);
            let answered = record.figure(Metric::AnsweredQps).and_then(RunFigure::measured);
            most.zip(answered).is_some_and(|(most, answered)| answered >= RATE_KEPT * most)
        })
    }

    /// By how much dnslab itself may have moved this metric, or in what steps it is measured, in its unit.
    fn floor(&self, metric: Metric) -> Option<f64> {
        floor_of_runs(self.valid.iter().map(|(record, _)| *record), metric)
    }

    /// By how much the engine may have moved this metric; `None` for what is no latency.
    fn latency_floor_ns(&self, metric: Metric) -> Option<f64> {
        latency_floor_of_runs_ns(self.valid.iter().map(|(record, _)| *record), metric)
    }

    /// The intended rate of the common load, as in the first valid run that has one.
    fn common_rate_qps(&self) -> Option<f64> {
        self.valid.iter().find_map(|(record, _)| match record.common_load.as_ref()?.load.mode {
            LoadMode::Open { rate_qps, .. } => Some(rate_qps),
            LoadMode::Closed { .. } => None,
        })
    }

    fn seen(&self) -> impl Iterator<Item = Observation<'a>> {
        self.valid.iter().filter_map(|(record, _)| record.observation())
    }

    fn measured(&self) -> impl Iterator<Item = &'a Measured> {
        self.valid.iter().map(|(_, measured)| *measured)
    }

    /// Its figures of a time window; `None` if no valid run has it.
    fn in_window(&self, window: &WindowSummary, seed: u64) -> Option<WindowOfVariant> {
        let records = self.valid.iter().map(|(record, _)| *record);
        window.over(self.name, records, seed)
    }
}

/// A variant and what it is compared with.
struct VariantPair<'a> {
    own: &'a VariantRuns<'a>,
    reference: &'a VariantRuns<'a>,
    /// The two do the same in the main load ([`Session::controls`]).
    is_control: bool,
}

impl VariantPair<'_> {
    /// Every metric that both could measure in the same repetition, that is the server's on both sides and the time-out
    /// in no run of either.
    fn of_runs(&self) -> Vec<Pair> {
        let why = [self.own.not_compared(), self.reference.not_compared()];
        let is_asked = [self.own, self.reference].iter().any(|side| side.is_as_asked());
        let is_compared = |metric: &Metric| {
            let is_bounded = why.into_iter().flatten().any(|it| it.includes(*metric));
            !is_bounded && (!is_asked || *metric != Metric::AnsweredQps)
        };
        let metrics: Vec<Metric> = Metric::COMPARED.into_iter().filter(is_compared).collect();
        let has_common_load = self.own.common_rate_qps().is_some();
        let mut pairs = self.pairs(&metrics, |metric, record| record.figure(metric));
        for pair in &mut pairs {
            let is_of_main_load = !pair.metric.is_latency() || !has_common_load;
            pair.is_control = self.is_control && is_of_main_load;
        }
        pairs
    }

    /// The pairs of a time window of the main load.
    fn of_window(&self, window: &WindowSummary) -> Vec<Pair> {
        let figure = |metric: Metric, record: &RunRecord| window.figure(metric, record);
        let mut pairs = self.pairs(&Metric::OF_WINDOWS, figure);
        for pair in &mut pairs {
            pair.is_control = self.is_control;
        }
        pairs
    }

    fn pairs(
        &self,
        metrics: &[Metric],
        figure: impl Fn(Metric, &RunRecord) -> Option<RunFigure>,
    ) -> Vec<Pair> {
        let Self { own, reference, .. } = self;
        let has_time_out = |side: &VariantRuns<'_>, metric: Metric| {
            let mut figures = side.valid.iter().filter_map(|(record, _)| figure(metric, record));
            figures.any(RunFigure::is_time_out)
        };
        let values = |metric: Metric| -> Vec<(f64, f64)> {
            let rounds = own.valid.iter().filter_map(|(record, _)| {
                let of_round = |other: &&(&RunRecord, _)| other.0.repetition == record.repetition;
                let (below, _) = reference.valid.iter().find(of_round)?;
                Some((figure(metric, below)?.measured()?, figure(metric, record)?.measured()?))
            });
            rounds.collect()
        };
        // Runs of another load generator are as they came.
        let is_imported = own.is_imported() || reference.is_imported();
        let alone = |side: &VariantRuns<'_>, metric: Metric| -> Vec<f64> {
            let found = side.valid.iter().filter_map(|(record, _)| figure(metric, record));
            found.filter_map(RunFigure::measured).collect()
        };
        let compared = |metric: Metric| match is_imported {
            true => Paired::of_unpaired(&alone(reference, metric), &alone(own, metric)),
            false => Paired::of(&values(metric)),
        };
        let floor = |metric: Metric| {
            let floors = [own, reference].map(|side| side.floor(metric));
            floors.into_iter().flatten().fold(0.0, f64::max)
        };
        let is_disturbed = own.is_disturbed() || reference.is_disturbed();
        let pair = |metric: Metric| {
            if has_time_out(own, metric) || has_time_out(reference, metric) {
                return None;
            }
            Some(Pair {
                variant: own.name.to_owned(),
                against: reference.name.to_owned(),
                metric,
                paired: compared(metric)?,
                floor: floor(metric),
                is_control: false,
                is_disturbed,
            })
        };
        metrics.iter().copied().filter_map(pair).collect()
    }
}

/// The time windows that the variants have, without figures yet.
fn windows(runs: &[VariantRuns<'_>]) -> Vec<WindowSummary> {
    let mut windows: Vec<WindowSummary> = Vec::new();
    for window in runs.iter().flat_map(VariantRuns::measured).flat_map(|of| &of.windows) {
        if !windows.iter().any(|known| known.is(window)) {
            windows.push(WindowSummary::like(window));
        }
    }
    windows
}

/// The mean of a figure over the runs that have it; `None` if none has.
fn average<'a>(
    runs: impl Iterator<Item = &'a Measured>,
    figure: fn(&Measured) -> Option<f64>,
) -> Option<f64> {
    mean_of(&runs.filter_map(figure).collect::<Vec<f64>>())
}

/// The first bottleneck of each kind, the most frequent kind first; of equally frequent ones the one
/// seen first.
fn bottlenecks<'a>(runs: impl Iterator<Item = &'a Bottleneck>) -> Vec<Bottleneck> {
    let mut kinds: Vec<(&Bottleneck, u32)> = Vec::new();
    for of_run in runs {
        match kinds.iter_mut().find(|(seen, _)| seen.kind == of_run.kind) {
            Some((_, times)) => *times += 1,
            None => kinds.push((of_run, 1)),
        }
    }
    kinds.sort_by_key(|(_, times)| Reverse(*times));
    kinds.into_iter().map(|(first, _)| first.clone()).collect()
}

/// The worst caveat of each kind and the number of runs that have one, in the order in which the
/// kinds were seen; of equally bad ones the first.
fn caveats<'a>(runs: impl Iterator<Item = Cow<'a, [Caveat]>>) -> Vec<VariantCaveat> {
    let mut kinds: Vec<VariantCaveat> = Vec::new();
    for of_run in runs {
        // A run counts once for each kind, though it may say one twice.
        let mut counted = vec![false; kinds.len()];
        for caveat in of_run.iter() {
            let known = kinds.iter().position(|kind| kind.worst.is_same_kind(caveat));
            let Some(place) = known else {
                kinds.push(VariantCaveat { worst: caveat.clone(), runs: 1 });
                counted.push(true);
                continue;
            };
            let kind = &mut kinds[place];
            kind.runs += u32::from(!std::mem::replace(&mut counted[place], true));
            if caveat.severity() > kind.worst.severity() {
                kind.worst = caveat.clone();
            }
        }
    }
    kinds
}

fn count(runs: usize) -> u32 {
    u32::try_from(runs).expect("nobody makes four billion runs")
}
