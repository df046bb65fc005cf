use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, TableComponent, presets};
use dnslab_wire::units::number::count;
use dnslab_wire::units::share::percent;
use serde::Serialize;

use super::figures::{Aim, Ratio};
use super::windows::PacingError;
use crate::arguments::Work;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Comparison {
    pub(crate) work: Work,
    pub(crate) case: String,
    /// With its unit.
    pub(crate) figure: &'static str,
    /// Name and median of the measured program.
    pub(crate) ours: (String, f64),
    /// Name and median of the other program.
    pub(crate) theirs: (String, f64),
    /// Of ours to theirs.
    pub(crate) ratio: Ratio,
    /// Queries without an answer as a share of all, in the worst round of ours and of theirs.
    pub(crate) lost: (f64, f64),
    /// For the ratio, if anything.
    pub(crate) aim: Option<Aim>,
    /// A further figure of ours.
    pub(crate) beside: Option<String>,
}

/// Pacing of one program at one rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PacingRow {
    pub(crate) case: String,
    pub(crate) program: String,
    /// Medians over the rounds. But `windows` and the share of right ones are of all rounds together, and
    /// `max_error` is the largest.
    pub(crate) error: PacingError,
    /// Median of the send lag that the program itself reports, microseconds.
    pub(crate) send_lag_p50_us: Option<f64>,
    /// Aims for the share of right windows and for the send lag; for dnslab only.
    pub(crate) aims: Option<(Aim, Aim)>,
}

/// What one core of a generator carries; medians over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct GeneratorRow {
    pub(crate) case: String,
    pub(crate) program: String,
    pub(crate) answered_qps: f64,
    /// Share of its core that the program used.
    pub(crate) busy_share: f64,
    /// Of dnslab's answered rate to that of this peer; `None` for dnslab.
    pub(crate) ratio: Option<Ratio>,
    /// Queries without an answer as a share of all, in the worst round.
    pub(crate) lost: f64,
    /// What held the rate back, as dnslab says of each round. A peer does not say.
    pub(crate) limits: String,
}

impl GeneratorRow {
    /// The program had no more CPU to give, so the rate is what its core carries. Below that, a core carries
    /// more than was asked of it, but nobody knows how much: the share of each wake-up in the cost falls as
    /// the rate rises.
    pub(crate) fn is_the_limit(&self) -> bool {
        self.busy_share >= 0.97
    }
}

/// dnslab at one batch delay; medians over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct BatchDelayRow {
    pub(crate) case: String,
    pub(crate) answered_qps: f64,
    /// Microseconds.
    pub(crate) p50_us: f64,
    /// Microseconds.
    pub(crate) p99_us: f64,
    /// CPU time of the process for each answer, microseconds.
    pub(crate) cpu_us_per_answer: f64,
}

pub(crate) fn comparisons(rows: &[Comparison]) -> String {
    let mut table = table(&[
        "work", "load", "figure", "ours", "", "theirs", "", "ratio", "min..max", "aim", "verdict",
        "lost %", "beside",
    ]);
    for row in rows {
        let ratio = row.ratio;
        let (aim, verdict) = row
            .aim
            .map_or_else(Default::default, |aim| (aim.to_string(), aim.verdict(&ratio).to_owned()));
        let percent = |share: f64| format!("{:.2}", share * 100.0);
        table.add_row(cells(&[
            row.work.name(),
            row.case.clone(),
            row.figure.to_owned(),
            row.ours.0.clone(),
            number(row.ours.1),
            row.theirs.0.clone(),
            number(row.theirs.1),
            format!("{:.2}", ratio.of_medians),
            format!("{:.2}..{:.2}", ratio.lowest, ratio.highest),
            aim,
            verdict,
            format!("{} / {}", percent(row.lost.0), percent(row.lost.1)),
            row.beside.clone().unwrap_or_default(),
        ]));
    }
    table.to_string()
}

pub(crate) fn pacing(rows: &[PacingRow]) -> String {
    let mut table = table(&[
        "load",
        "program",
        "qps",
        "windows",
        "within 1 %",
        "mean off",
        "p99 off",
        "max off",
        "send lag p50",
        "aims",
        "verdict",
    ]);
    for row in rows {
        let error = &row.error;
        let percent = |share: f64| percent(share, 2);
        let lag = row.send_lag_p50_us;
        let (aims, verdict) = row.aims.map_or_else(Default::default, |(windows, send_lag)| {
            let reached =
                windows.is_met(error.right_share) && lag.is_some_and(|lag| send_lag.is_met(lag));
            let text = format!("{windows} of windows, lag {send_lag} us");
            (text, if reached { "met" } else { "MISSED" }.to_owned())
        });
        table.add_row(cells(&[
            row.case.clone(),
            row.program.clone(),
            number(error.qps),
            error.windows.to_string(),
            percent(error.right_share),
            percent(error.mean_error),
            percent(error.p99_error),
            percent(error.max_error),
            lag.map_or_else(|| "-".to_owned(), |lag| format!("{lag:.1} us")),
            aims,
            verdict,
        ]));
    }
    table.to_string()
}

pub(crate) fn generators(rows: &[GeneratorRow]) -> String {
    let mut table = table(&[
        "load",
        "program",
        "a core carries qps",
        "CPU",
        "dnslab to it",
        "min..max",
        "lost %",
        "bottleneck",
    ]);
    for row in rows {
        let at_least = if row.is_the_limit() { "" } else { "at least " };
        let ratio = row.ratio.map_or_else(Default::default, |ratio| {
            (
                format!("{:.2}", ratio.of_medians),
                format!("{:.2}..{:.2}", ratio.lowest, ratio.highest),
            )
        });
        table.add_row(cells(&[
            row.case.clone(),
            row.program.clone(),
            format!("{at_least}{}", number(row.answered_qps)),
            percent(row.busy_share, 0),
            ratio.0,
            ratio.1,
            format!("{:.2}", row.lost * 100.0),
            row.limits.clone(),
        ]));
    }
    table.to_string()
}

pub(crate) fn batch_delays(rows: &[BatchDelayRow]) -> String {
    let mut table = table(&["load", "answered qps", "p50 us", "p99 us", "CPU us/answer"]);
    for row in rows {
        table.add_row(cells(&[
            row.case.clone(),
            number(row.answered_qps),
            number(row.p50_us),
            number(row.p99_us),
            number(row.cpu_us_per_answer),
        ]));
    }
    table.to_string()
}

/// A table with nothing but its headings.
fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_style(TableComponent::HeaderLines, '─');
    table.set_style(TableComponent::MiddleHeaderIntersections, '─');
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().copied());
    table
}

/// Numbers to the right, words to the left.
fn cells(texts: &[String]) -> Vec<Cell> {
    let cell = |text: &String| {
        let is_number = text.starts_with(|letter: char| letter.is_ascii_digit());
        let alignment = if is_number { CellAlignment::Right } else { CellAlignment::Left };
        Cell::new(text).set_alignment(alignment)
    };
    texts.iter().map(cell).collect()
}

/// A figure with as many digits as say something.
fn number(value: f64) -> String {
    if value >= 1000.0 {
        count(value.round_ties_even() as u64)
    } else if value >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups() {
        let check = |value: f64, expected: &str| assert_eq!(number(value), expected);
        check(0.0, "0.00");
        check(1.234, "1.23");
        check(999.4, "999");
        check(1000.0, "1,000");
        check(1_234_567.8, "1,234,568");
    }

    #[test]
    fn a_comparison_shows_its_verdict() {
        let mut row = Comparison {
            work: Work::Udp,
            case: "udp, 4 x 25".to_owned(),
            figure: "qps",
            ours: ("dnslab".to_owned(), 600_000.0),
            theirs: ("dnsperf 2.10.0".to_owned(), 100_000.0),
            ratio: Ratio { of_medians: 6.0, lowest: 5.0, highest: 7.0, rounds: 5 },
            lost: (0.0, 0.012),
            aim: Some(Aim::AtLeast(5.5)),
            beside: None,
        };
        let shown = comparisons(std::slice::from_ref(&row));
        for part in ["600,000", "6.00", "5.00..7.00", ">= 5.50", " unclear", "0.00 / 1.20"] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        row.ratio = Ratio { of_medians: 5.0, lowest: 4.9, highest: 5.1, rounds: 5 };
        assert!(comparisons(&[row]).contains("MISSED"));
    }
}
