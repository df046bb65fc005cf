//! `summary.json`, the figures of a results directory for programs, and its schema.

use dnslab_analysis::{Ruling, Summary};
use dnslab_record::{RunRecord, Session, visible_json};
use serde::Serialize;
use serde_json::{Value, json};

use crate::screen::conditions::conditions;

/// Version of the form of `summary.json`, which its schema names too.
const SUMMARY_FORMAT: u32 = 1;

/// The figures of an experiment, computed from its records.
///
/// Times are in nanoseconds (`_ns`), sizes in octets, shares in [0, 1]. A figure that was not measured is
/// absent or null. An end of an interval that is not known is null.
#[derive(Serialize, schemars::JsonSchema)]
struct Document<'a> {
    /// Version of the form of this file.
    format: u32,
    /// The question that the experiment answers.
    question: &'a str,
    /// Relative difference (0.02 = 2 %) below which a difference does not matter.
    margin: f64,
    /// The answer, in sentences.
    answer: String,
    /// Under which conditions it was measured, as one line.
    conditions: String,
    /// What all limits say together; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    ruling: Option<Ruling>,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// What another tool does not tell of a variant that it measured: it is left out, since it would be 0.
const UNKNOWN: [&str; 9] = [
    "handshakes",
    "asked_again",
    "checked_answers",
    "malformed_answers",
    "bad_signature",
    "connections",
    "network",
    "bottlenecks",
    "self_check",
];

/// Ways for a query to end that another tool does not tell apart.
const UNKNOWN_OUTCOMES: [&str; 4] = ["not_sent", "connection_lost", "malformed", "refused"];

/// The summary with its words.
pub(crate) fn summary_json(
    session: &Session,
    records: &[RunRecord],
    summary: &Summary,
    answer: String,
) -> String {
    let document = Document {
        format: SUMMARY_FORMAT,
        question: &session.question,
        margin: session.margin,
        answer,
        conditions: conditions(session, records),
        ruling: summary.ruling(),
        summary,
    };
    let text = match summary.variants.iter().any(|variant| variant.imported.is_some()) {
        true => serde_json::to_value(&document).map(|mut value| {
            leave_unknown(&mut value);
            format!("{value:#}")
        }),
        false => serde_json::to_string_pretty(&document),
    };
    let text = text.expect("our types have string keys");
    // It is shown on terminals too.
    visible_json(&text).into_owned() + "\n"
}

fn leave_unknown(document: &mut Value) {
    let variants = document["variants"].as_array_mut().into_iter().flatten();
    for variant in variants.filter(|variant| !variant["imported"].is_null()) {
        let Some(figures) = variant.as_object_mut() else { continue };
        // dnsperf's window is one over all clients, which is in the record.
        figures.insert("mode".to_owned(), Value::Null);
        UNKNOWN.iter().for_each(|name| drop(figures.remove(*name)));
        if let Some(outcomes) = figures.get_mut("outcomes").and_then(Value::as_object_mut) {
            UNKNOWN_OUTCOMES.iter().for_each(|name| drop(outcomes.remove(*name)));
        }
    }
}

/// The JSON schema (draft 2020-12) of `summary.json`, with a line break at the end. It is published as
/// `docs/summary.schema.json`; its names and descriptions are those of the types.
///
/// Fields that it does not name may be added within a format. What is removed, or means something else, raises
/// the format.
#[must_use]
pub fn summary_schema() -> String {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<Document<'_>>();
    let mut schema = Value::from(schema);
    schema["title"] = json!(format!("dnslab summary.json, format {SUMMARY_FORMAT}"));
    schema["properties"]["format"]["const"] = json!(SUMMARY_FORMAT);
    for (name, unknown) in [("VariantSummary", &UNKNOWN[..]), ("Outcomes", &UNKNOWN_OUTCOMES)] {
        let required = schema["$defs"][name]["required"].as_array_mut();
        required
            .expect("some of its fields are always there")
            .retain(|field| !field.as_str().is_some_and(|field| unknown.contains(&field)));
    }
    format!("{schema:#}\n")
}
