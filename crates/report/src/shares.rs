//! The variants at shares of their own rates as a table, the same in Markdown and on the page.

use dnslab_analysis::{ShareOfVariant, ShareSummary, Summary};
use dnslab_record::Metric;
use dnslab_wire::units::share::in_sentence;

use crate::number::{self, NONE};
use crate::screen::cell;
use crate::words::time_out;

pub(crate) const HEADER: [&str; 8] = [
    "share of its rate",
    "variant",
    "queries per second",
    "server CPU / query",
    "p50",
    "p95",
    "p99",
    "unanswered",
];

pub(crate) const LEGEND: &str = "Each variant was asked, by the clock and with random gaps (Poisson), for a share of the \
     rate that it had answered in the closed loop of the same round. So the servers are as busy as each other, and not \
     asked alike. Means over the valid runs; \"time-out\" where a quantile is that in so many rounds. \
     Unanswered: sum of the valid runs.";

/// A row for each share and variant.
pub(crate) fn rows(summary: &Summary) -> Vec<[String; HEADER.len()]> {
    let of_share =
        |share: &ShareSummary| share.variants.iter().map(|own| cells(share.share, own)).collect();
    summary.shares.iter().flat_map(of_share as fn(&ShareSummary) -> Vec<_>).collect()
}

pub(crate) fn title(share: &ShareSummary) -> String {
    format!("{} of its own rate", in_sentence(share.share))
}

fn cells(share: f64, own: &ShareOfVariant) -> [String; HEADER.len()] {
    let figure = |metric: Metric| match (own.metrics.get(&metric), own.time_outs(metric)) {
        (Some(found), _) => cell::figure(metric, found),
        (None, Some(found)) => time_out(found, "rounds"),
        (None, None) => NONE.to_owned(),
    };
    [
        in_sentence(share),
        own.variant.clone(),
        number::qps(own.offered_qps),
        figure(Metric::ServerCpuPerQuery),
        figure(Metric::LatencyP50),
        figure(Metric::LatencyP95),
        figure(Metric::LatencyP99),
        match own.outcomes.lost() {
            0 => NONE.to_owned(),
            lost => number::count(lost),
        },
    ]
}
