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
fn fields(of: Option<(&RunRecord, &WindowCounts)>) -> Vec<(String, String)> {
    let run = |write: fn(&RunRecord) -> String| of.map_or_else(String::new, |(run, _)| write(run));
    let window =
        |write: fn(&WindowCounts) -> String| of.map_or_else(String::new, |(_, of)| write(of));
    let own = [
        ("variant", run(|run| run.variant.clone())),
        ("repetition", run(|run| run.repetition.to_string())),
        ("status", run(|run| status(&run.status).0.to_owned())),
        ("window", window(|of| of.name.clone())),
        ("from_s", window(|of| seconds(of.from_ns))),
        ("to_s", window(|of| seconds(of.to_ns))),
        ("due", window(|of| of.outcomes.due.to_string())),
        ("answered", window(|of| of.outcomes.answered.to_string())),
        ("timed_out", window(|of| of.outcomes.timed_out.to_string())),
        ("not_sent", window(|of| of.outcomes.not_sent.to_string())),
        ("connection_lost", window(|of| of.outcomes.connection_lost.to_string())),
        ("malformed", window(|of| of.outcomes.malformed.to_string())),
        ("refused", window(|of| of.outcomes.refused.to_string())),
        (
            "answered_share",
            window(|of| number((of.outcomes.due > 0).then(|| 1.0 - of.outcomes.lost_share()))),
        ),
        (
            "answered_without_error_share",
            window(|of| number(of.outcomes.share_without_error(&of.rcodes))),
        ),
        ("rcodes", window(|of| rcodes(&of.rcodes))),
    ];
    let mut fields: Vec<(String, String)> =
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    fields.extend(histogram_fields("latency", of.map(|(_, window)| &window.latency)));
    fields.extend(histogram_fields("service_time", of.map(|(_, window)| &window.service_time)));
    fields
}
