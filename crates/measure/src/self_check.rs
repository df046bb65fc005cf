//! Was the measuring side sound? One verdict for each run on the load generator, its machine and the path
//! from it to the server.
//!
//! A self-check finds nothing by itself. It folds what is in the record already: those caveats that
//! are about the measuring side, and the limit. So a doubt has one threshold, in `Caveat::find` or
//! `Bottleneck::decide`, and one wording, that of [`Caveat::finding`]. What the server and its answers
//! were like (lost queries, truncated answers) is a result, and in no self-check.

mod variant;

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::bottleneck::SERVER_BUSY;
use crate::server_options::{kind, socket_buffer};
use crate::{
    Bottleneck, BottleneckKind, Caveat, LoadFacts, LoadMode, Measured, RunRecord, ServerFacts,
    number,
};

pub use variant::{VariantFinding, VariantSelfCheck};

/// What the measuring side says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// The worst that the findings amount to.
    pub verdict: Verdict,
    /// The worst first. A clean run may have some too: notes that doubt nothing.
    pub findings: Vec<Remark>,
}

/// How far a run can be trusted, the better the less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The measuring side did what it was asked to.
    Clean,
    /// Something on the measuring side may have moved the figures.
    Doubtful,
    /// The load generator was the limit: the figures are its own, and the server may do more.
    GeneratorLimited,
}

impl Verdict {
    /// The word for it: `clean`, `doubtful` or `generator-limited`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Doubtful => "doubtful",
            Self::GeneratorLimited => "generator-limited",
        }
    }
}

/// One thing that was found: what, how much, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// What was found, a sentence without its full stop.
    pub what: String,
    /// How much of it, a few words; empty if there is no figure.
    pub figure: String,
    /// What can be done, a sentence without its full stop; empty if nothing needs to be.
    pub remedy: String,
}

impl Remark {
    /// A finding of these words.
    pub(crate) fn new(
        what: impl Into<String>,
        figure: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), figure: figure.into(), remedy: remedy.into() }
    }

    /// The whole as sentences: what with its figure, then the remedy.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.what.clone();
        if !self.figure.is_empty() {
            text.push_str(&format!(" ({})", self.figure));
        }
        text.push('.');
        if !self.remedy.is_empty() {
            text.push_str(&format!(" {}.", self.remedy));
        }
        text
    }
}

impl SelfCheck {
    /// Folds the caveats and the limit of a run; `None` if nothing was measured.
    #[must_use]
    pub fn of(record: &RunRecord) -> Option<Self> {
        record.measured.as_ref()?;
        let findings = fold(record);
        let verdict = findings.first().map_or(Verdict::Clean, |(verdict, _)| *verdict);
        Some(Self { verdict, findings: findings.into_iter().map(|(_, finding)| finding).collect() })
    }
}

/// Every finding of a run with the verdict that it alone would give, the worst first.
fn fold(record: &RunRecord) -> Vec<(Verdict, Remark)> {
    let workers = Some(record.load.workers);
    let of_caveat = |caveat: &Caveat| {
        Some((verdict_of(caveat, record.bottleneck.kind)?, caveat.finding_with(workers)))
    };
    let mut findings: Vec<_> = record.caveats.iter().filter_map(of_caveat).collect();
    // A generator that was the limit is named by its caveats, if there are any.
    let is_told = findings.iter().any(|(verdict, _)| *verdict == Verdict::GeneratorLimited);
    let is_new = |verdict| !(is_told && verdict == Verdict::GeneratorLimited);
    let limit = limit_finding(&record.bottleneck, &record.load)
        .or_else(|| socket_finding(&record.bottleneck, &record.server));
    findings.extend(limit.filter(|(verdict, _)| is_new(*verdict)));
    // Of two that are both at their ends the generator is named: then the server may do more.
    let of_server =
        record.measured.as_ref().filter(|_| record.bottleneck.kind != BottleneckKind::Generator);
    let note = of_server.and_then(server_finding);
    findings.extend(note.map(|note| (Verdict::Clean, note)));
    findings.sort_by_key(|(verdict, _)| Reverse(*verdict));
    findings
}

/// What a caveat alone makes of a run with this limit; `None` if it is not about the measuring side.
fn verdict_of(caveat: &Caveat, limit: BottleneckKind) -> Option<Verdict> {
    match caveat {
        // A generator that was busy, dropped or was late without being the limit leaves a doubt
        // about the latency, not about the rate.
        Caveat::GeneratorLimited { .. }
        | Caveat::GeneratorDrops { .. }
        | Caveat::ConnectionsHeld { .. }
        | Caveat::RateMissed { .. }
            if limit == BottleneckKind::Generator =>
        {
            Some(Verdict::GeneratorLimited)
        }
        caveat => caveat.is_of_measuring_side().then_some(Verdict::Doubtful),
    }
}

impl Caveat {
    /// True if the doubt is about the load generator, its machine or its way to the server, or about a
    /// log that was to be measured and has holes, so that it is a part of the [`SelfCheck`]; false if it is about the server, its answers, or the
    /// method that was chosen.
    #[must_use]
    pub fn is_of_measuring_side(&self) -> bool {
        match self {
            Self::GeneratorLimited { .. }
            | Self::SharedCpus
            | Self::SharedCore { .. }
            | Self::WindowNotFull { .. }
            | Self::ClientsNotConnected { .. }
            | Self::ConnectionsHeld { .. }
            | Self::RateMissed { .. }
            | Self::SendLag { .. }
            | Self::Pacing { .. }
            | Self::BatchDelay { .. }
            | Self::GeneratorDrops { .. }
            | Self::HostDrops { .. }
            | Self::ConnectionsFailed { .. }
            | Self::Steal { .. }
            | Self::Crowded { .. }
            | Self::OtherProcesses { .. }
            | Self::LinksNotPlayed { .. } => true,
            Self::ClosedLoop { .. }
            | Self::AnswersWaitForNextQuery { .. }
            | Self::FirstAnswersWait { .. }
            | Self::Lost { .. }
            | Self::Truncated { .. }
            | Self::EmptyAnswers { .. }
            | Self::Unsteady { .. }
            | Self::StrayAnswers { .. }
            | Self::CountsDiffer { .. }
            | Self::DnstapDropped { .. }
            | Self::WrongAnswers { .. }
            | Self::MalformedAnswers { .. }
            | Self::BadSignatures { .. }
            | Self::HttpErrors { .. }
            | Self::ServerNotWatched { .. }
            | Self::CutShort { .. }
            | Self::CertificateNotVerified
            | Self::Other { .. } => false,
        }
    }
}

/// The limits that say something of the measuring side.
fn limit_finding(limit: &Bottleneck, load: &LoadFacts) -> Option<(Verdict, Remark)> {
    let evidence = limit.evidence.as_str();
    Some(match limit.kind {
        BottleneckKind::Generator => {
            let workers = load.workers.saturating_add(1);
            let remedy =
                format!("Add a worker with a CPU of its own (`--set load.workers={workers}`)");
            let what = "The load generator was the limit: the server may do more";
            (Verdict::GeneratorLimited, Remark::new(what, evidence, remedy))
        }
        // Who asks one query after another asks for the latency: no server is to be filled.
        BottleneckKind::Window if load.window() == Some(1) => return None,
        BottleneckKind::Window => {
            let what =
                "The window was too small to fill the server: the rate is that of the window";
            (Verdict::Doubtful, Remark::new(what, evidence, larger_window(load)))
        }
        BottleneckKind::SharedCpu => {
            let what = "A CPU that servers and load generator share was full: both may do more";
            let remedy = "Give each CPUs of its own: `server.cpus`, `upstream.cpus`, `load.cpus`";
            (Verdict::Doubtful, Remark::new(what, evidence, remedy))
        }
        BottleneckKind::ServerThread => {
            let what = "One thread of a server was full while it had CPUs left: with the load spread \
                        over its threads it may do more";
            let remedy = "Ask from more source ports (`load.clients`), let the server's threads share \
                          its port (`reuseport`), or give it more threads";
            (Verdict::Doubtful, Remark::new(what, evidence, remedy))
        }
        BottleneckKind::Network => {
            let what = "Datagrams were lost on the way, while neither side was busy";
            let remedy = "Find where: the counters of the interfaces and of the server";
            (Verdict::Doubtful, Remark::new(what, evidence, remedy))
        }
        BottleneckKind::ServerCpu
        | BottleneckKind::RelayCpu
        | BottleneckKind::UpstreamCpu
        | BottleneckKind::ServersCpu
        | BottleneckKind::ServerSocket
        | BottleneckKind::Rate
        | BottleneckKind::Unclear
        | BottleneckKind::Unknown => return None,
    })
}

/// A server whose socket buffer was full although it had CPU time left: bursts were longer than what
/// the buffer holds.
fn socket_finding(limit: &Bottleneck, server: &ServerFacts) -> Option<(Verdict, Remark)> {
    if limit.kind != BottleneckKind::ServerSocket {
        return None;
    }
    let option = socket_buffer(kind(server)).map(|option| format!(" or its option `{option}`"));
    let remedy = format!(
        "Ask with fewer outstanding (`load.outstanding`) or less in one burst, or raise \
         `net.core.rmem_default` on the server's host{}",
        option.unwrap_or_default()
    );
    let what = "The server's socket buffer was full while the server had CPU time left: the kernel \
                dropped queries that it could have answered";
    Some((Verdict::Doubtful, Remark::new(what, limit.evidence.as_str(), remedy)))
}

/// The remedy for a window that was too small.
fn larger_window(load: &LoadFacts) -> String {
    match load.mode {
        LoadMode::Closed { outstanding } => {
            format!(
                "Enlarge the window (`--set load.outstanding={}`)",
                outstanding.saturating_mul(2)
            )
        }
        LoadMode::Open { .. } => "Enlarge the window (`--set load.outstanding=N`)".to_owned(),
    }
}

/// How much CPU the server had left, if that was next to nothing: then it was at its end, and the
/// generator need not do more.
fn server_finding(measured: &Measured) -> Option<Remark> {
    let busy = measured.server_used_share().filter(|share| *share >= SERVER_BUSY)?;
    let what = "The server was at its end: more load shows no more of it";
    let left = number::percent((1.0 - busy).max(0.0), 0);
    Some(Remark::new(what, format!("the server had {left} of its CPU left"), ""))
}
