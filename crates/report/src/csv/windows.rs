//! The time windows of every run.

use dnslab_figures::WindowCounts;
use dnslab_record::RunRecord;

use super::field::{histogram_fields, number, push_row, rcodes, seconds, status};

pub(crate) fn windows(records: &[RunRecord]) -> String {
    let mut text = String::new();
    push_row(&mut text, fields(None).into_iter().map(|(name, _)| name));
    for record in records {
        for window in record.measured.iter().flat_map(|measured| &measured.windows) {
            let row = fields(Some((record, window)));
            push_row(&mut text, row.into_iter().map(|(_, value)| value));
        }
    }
    text
}

/// The headings and fields of a time window; without one only the headings count.
fn fields(window_of_run: Option<(&RunRecord, &WindowCounts)>) -> Vec<(String, String)> {
    let run = |write: fn(&RunRecord) -> String| {
        window_of_run.map_or_else(String::new, |(run, _)| write(run))
    };
    let window = |write: fn(&WindowCounts) -> String| {
        window_of_run.map_or_else(String::new, |(_, counts)| write(counts))
    };
    let own = [
        ("variant", run(|run| run.variant.clone())),
        ("repetition", run(|run| run.repetition.to_string())),
        ("status", run(|run| status(&run.status).0.to_owned())),
        ("window", window(|window_of_run| window_of_run.name.clone())),
        ("from_s", window(|window_of_run| seconds(window_of_run.from_ns))),
        ("to_s", window(|window_of_run| seconds(window_of_run.to_ns))),
        ("due", window(|window_of_run| window_of_run.outcomes.due.to_string())),
        ("answered", window(|window_of_run| window_of_run.outcomes.answered.to_string())),
        ("timed_out", window(|window_of_run| window_of_run.outcomes.timed_out.to_string())),
        ("not_sent", window(|window_of_run| window_of_run.outcomes.not_sent.to_string())),
        (
            "connection_lost",
            window(|window_of_run| window_of_run.outcomes.connection_lost.to_string()),
        ),
        ("malformed", window(|window_of_run| window_of_run.outcomes.malformed.to_string())),
        ("refused", window(|window_of_run| window_of_run.outcomes.refused.to_string())),
        (
            "answered_share",
            window(|window_of_run| {
                number(
                    (window_of_run.outcomes.due > 0)
                        .then(|| 1.0 - window_of_run.outcomes.lost_share()),
                )
            }),
        ),
        (
            "answered_without_error_share",
            window(|window_of_run| {
                number(window_of_run.outcomes.share_without_error(&window_of_run.rcodes))
            }),
        ),
        ("rcodes", window(|window_of_run| rcodes(&window_of_run.rcodes))),
    ];
    let mut fields: Vec<(String, String)> =
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    fields.extend(histogram_fields("latency", window_of_run.map(|(_, window)| &window.latency)));
    fields.extend(histogram_fields(
        "service_time",
        window_of_run.map(|(_, window)| &window.service_time),
    ));
    fields
}
