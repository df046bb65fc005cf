//! What each caveat and bottleneck of a run says of its measuring side.

use std::cmp::Reverse;

use dnslab_record::{BottleneckKind, Caveat, Finding, LoadMode, RunRecord};
use serde::{Deserialize, Serialize};

use crate::bottleneck::SERVER_BUSY;

/// How far a run can be trusted, the better the less.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The measuring side did what it was asked to.
    Clean,
    /// Something on the measuring side may have moved the figures.
    Doubtful,
    /// The load generator was the bottleneck: the figures are its own, and the server may do more.
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

/// Every finding of a run with the verdict that it alone would give, the worst first.
pub(super) fn fold(record: &RunRecord) -> Vec<(Verdict, Finding)> {
    let (kind, workers) = (record.bottleneck.kind, record.load.workers);
    let of_caveat = |caveat: &Caveat| {
        Some((verdict_of(caveat, kind)?, Finding::Caveat { caveat: caveat.clone(), workers }))
    };
    let mut findings: Vec<_> = record.caveats.iter().filter_map(of_caveat).collect();
    // A generator that was the bottleneck is named by its caveats, if there are any.
    let is_told = findings.iter().any(|(verdict, _)| *verdict == Verdict::GeneratorLimited);
    let is_new = |verdict| !(is_told && verdict == Verdict::GeneratorLimited);
    findings.extend(of_bottleneck(record).filter(|(verdict, _)| is_new(*verdict)));
    // Of two that are both at their ends the generator is named: then the server may do more.
    let full = record
        .observation()
        .and_then(|run| run.server_used_share())
        .filter(|share| *share >= SERVER_BUSY);
    let full = full.filter(|_| kind != BottleneckKind::Generator);
    findings.extend(full.map(|busy_share| (Verdict::Clean, Finding::ServerFull { busy_share })));
    findings.sort_by_key(|(verdict, _)| Reverse(*verdict));
    findings
}

/// What the bottleneck says of the measuring side, if anything.
fn of_bottleneck(record: &RunRecord) -> Option<(Verdict, Finding)> {
    let load = &record.load;
    let evidence = record.bottleneck.evidence.clone();
    let finding = match record.bottleneck.kind {
        BottleneckKind::Generator => {
            let finding = Finding::Generator { evidence, workers: load.workers };
            return Some((Verdict::GeneratorLimited, finding));
        }
        BottleneckKind::Window => match load.mode {
            // Who asks one query after another asks for the latency: no server is to be filled.
            LoadMode::Closed { outstanding }
                if load.window() != Some(1)
                    && !record.caveats.iter().any(Caveat::keeps_from_cpu) =>
            {
                Finding::SmallWindow { evidence, outstanding }
            }
            LoadMode::Closed { .. } | LoadMode::Open { .. } => return None,
        },
        BottleneckKind::SharedCpu => Finding::SharedCpu { evidence },
        BottleneckKind::ServerThread => Finding::ServerThread { evidence },
        BottleneckKind::Network => Finding::Network { evidence },
        BottleneckKind::ServerSocket => {
            Finding::ServerSocket { evidence, program: record.server.program().to_owned() }
        }
        BottleneckKind::ServerCpu
        | BottleneckKind::RelayCpu
        | BottleneckKind::UpstreamCpu
        | BottleneckKind::ServersCpu
        | BottleneckKind::ConnectionsRefused
        | BottleneckKind::ServerCpuLimit
        // Its caveats say it.
        | BottleneckKind::OtherPrograms
        | BottleneckKind::Rate
        | BottleneckKind::Unclear
        | BottleneckKind::Unknown => return None,
    };
    Some((Verdict::Doubtful, finding))
}

/// What a caveat alone makes of a run with this bottleneck; `None` if it is not about the measuring side.
fn verdict_of(caveat: &Caveat, bottleneck: BottleneckKind) -> Option<Verdict> {
    match caveat {
        // A generator that was busy, dropped or was late without being the bottleneck leaves a doubt
        // about the latency, not about the rate.
        Caveat::GeneratorLimited { .. }
        | Caveat::GeneratorDrops { .. }
        | Caveat::ConnectionsHeld { .. }
        | Caveat::LoadCpuLimit { .. }
        | Caveat::RateMissed { .. }
            if bottleneck == BottleneckKind::Generator =>
        {
            Some(Verdict::GeneratorLimited)
        }
        caveat => caveat.is_of_measuring_side().then_some(Verdict::Doubtful),
    }
}
