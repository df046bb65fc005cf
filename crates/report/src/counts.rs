//! What servers counted themselves beside what the load says it sent.

use dnslab_analysis::{Agreement, Summary};
use dnslab_record::{RunRecord, RunStatus};

use crate::number::{self, NONE};

pub(crate) const HEADER: [&str; 5] =
    ["variant", "sent by the load", "counted by the server", "difference", "source"];

pub(crate) const LEGEND: &str = "Queries of warm-up and measured window together. The server is read before the load and after \
     it, by a way of its own: it knows nothing of the load's count. What it does not count, and who \
     else asks it, is in the method.";

/// The cells of each variant: the sums of its valid runs. Nothing if no server told its counts.
pub(crate) fn rows(summary: &Summary, records: &[RunRecord]) -> Vec<[String; 5]> {
    let tells = |record: &&RunRecord| counters_of(record).is_some();
    if !records.iter().any(|record| tells(&record)) {
        return Vec::new();
    }
    let row = |variant: &dnslab_analysis::VariantSummary| {
        let own = records.iter().filter(|record| record.variant == variant.name);
        let failure = own.filter(tells).find_map(not_compared);
        cells(variant.name.clone(), variant.agreement.as_ref(), failure.unwrap_or_default())
    };
    summary.variants.iter().map(row).collect()
}

/// The cells of each run whose server tells its counts, in the order of execution. The runs that do
/// not count are among them, for what is wrong there may show.
pub(crate) fn run_rows(records: &[RunRecord]) -> Vec<[String; 5]> {
    records.iter().filter(|record| counters_of(record).is_some()).map(run_row).collect()
}

fn run_row(record: &RunRecord) -> [String; 5] {
    let agreement = record.observation().and_then(|run| Agreement::of(&run));
    let status = if record.status == RunStatus::Valid { "" } else { ", does not count" };
    let name = format!("{}-{}{status}", record.variant, record.repetition);
    cells(name, agreement.as_ref(), not_compared(record).unwrap_or_default())
}

fn counters_of(record: &RunRecord) -> Option<&dnslab_record::CounterSeries> {
    record.measured.as_ref()?;
    record.watched.counters.as_ref()
}

/// Why the counts of a run cannot be compared although the server tells some.
fn not_compared(record: &RunRecord) -> Option<String> {
    let counters = counters_of(record)?;
    if record.observation().is_some_and(|run| Agreement::of(&run).is_some()) {
        return None;
    }
    let why =
        counters.failure.as_deref().unwrap_or("no count of queries before and after the load");
    Some(format!("{}: {why}", counters.source))
}

fn cells(name: String, agreement: Option<&Agreement>, failure: String) -> [String; 5] {
    let none = || NONE.to_owned();
    match agreement {
        None if failure.is_empty() => [name, none(), none(), none(), "does not tell".to_owned()],
        None => [name, none(), none(), none(), failure],
        Some(agreement) => [
            name,
            number::count(agreement.sent),
            number::count(agreement.counted),
            difference(agreement),
            agreement.source.clone(),
        ],
    }
}

/// `equal`, or by how many the server's count is off and which share that is.
pub(crate) fn difference(agreement: &Agreement) -> String {
    let sign = match agreement.difference() {
        0 => return "equal".to_owned(),
        more if more > 0 => '+',
        _ => '-',
    };
    let size = number::count(agreement.difference().unsigned_abs());
    format!("{sign}{size} ({})", number::share(agreement.share()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_with_sign_and_share() {
        let text =
            |sent, counted| difference(&Agreement { sent, counted, source: "a socket".to_owned() });
        assert_eq!(text(1_000_000, 1_000_000), "equal");
        assert_eq!(text(1_000_000, 1_000_002), "+2 (0.0002 %)");
        assert_eq!(text(10_000, 8_500), "-1,500 (15.0 %)");
    }
}
