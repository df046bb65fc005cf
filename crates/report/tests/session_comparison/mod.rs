//! Two sessions against each other: on the screen, in Markdown and as JUnit XML.

use dnslab_analysis::{Ruling, SessionComparison, WholeSession};
use dnslab_record::{CostLimit, Fact, RunRecord, Session};
use dnslab_report::{
    Line, session_comparison_json, session_comparison_junit, session_comparison_markdown,
    session_comparison_screen,
};

use crate::sample::{self, Behaviour};

const LIMITS: [&str; 4] = ["qps>-3%", "p99<+5%", "cpu_per_query<+5%", "p99.9<1s"];

/// A session of this many runs of each variant, whose servers answer `factor` times as many queries as
/// those of the sample. `luck` decides by how much the runs differ.
pub(crate) fn session(runs: u32, factor: f64, luck: u32) -> (Session, Vec<RunRecord>) {
    let session = sample::session(runs);
    let mut records = Vec::new();
    for (position, case) in (0..).zip(&session.plan) {
        let behaviour = Behaviour::of(case);
        let behaviour = Behaviour { qps: behaviour.qps * factor, ..*behaviour };
        let run = sample::run(&behaviour, case.repetition, position + luck, 1_000_000_000);
        records.push(RunRecord { position, ..run });
    }
    (session, records)
}

pub(crate) const EXPERIMENT: &str = "name = \"sample\"\n[[variant]]\nname = \"udp\"\n[[variant]]\nname = \"tcp\"\n\
    load.transport = \"tcp\"\n[[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n";

fn compare(
    base: &(Session, Vec<RunRecord>),
    new: &(Session, Vec<RunRecord>),
    experiment: &str,
) -> SessionComparison {
    let limits: Vec<CostLimit> = LIMITS.iter().map(|limit| limit.parse().unwrap()).collect();
    SessionComparison::of(
        WholeSession { session: &base.0, records: &base.1, experiment: EXPERIMENT },
        WholeSession { session: &new.0, records: &new.1, experiment },
        &limits,
    )
}

pub(crate) fn text(lines: &[Line]) -> String {
    let line = |line: &Line| line.iter().map(|piece| piece.text.as_str()).collect::<String>();
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(name: &str, comparison: &SessionComparison, ruling: Ruling) {
    assert_eq!(comparison.ruling(), ruling, "{name}");
    for width in [80, 100] {
        let screen = session_comparison_screen(comparison, width);
        for line in &screen {
            let columns: usize = line.iter().map(|piece| piece.text.chars().count()).sum();
            assert!(columns <= width, "wider than {width}: {line:?}");
        }
        insta::assert_snapshot!(format!("comparison-{name}-{width}"), text(&screen));
    }
    insta::assert_snapshot!(
        format!("comparison-{name}-markdown"),
        session_comparison_markdown(comparison)
    );
    insta::assert_snapshot!(
        format!("comparison-{name}-junit"),
        session_comparison_junit(comparison)
    );
    let json: serde_json::Value =
        serde_json::from_str(&session_comparison_json(comparison)).unwrap();
    let word = serde_json::to_value(ruling).unwrap();
    assert_eq!((&json["format"], &json["ruling"]), (&1.into(), &word), "{json}");
    assert!(json["answer"].is_string() && json["changes"][0]["difference"]["value"].is_f64());
}

#[test]
fn of_a_change_that_costs_nothing() {
    let found = compare(&session(10, 1.0, 0), &session(10, 1.0, 1_000), EXPERIMENT);
    check("equal", &found, Ruling::Pass);
}

#[test]
fn of_a_slower_server_under_other_conditions() {
    let base = session(10, 1.0, 0);
    let mut new = session(10, 0.8, 1_000);
    new.0.dnslab = "0.2.0".to_owned();
    new.0.host = vec![
        Fact { name: "CPU".to_owned(), value: "another".to_owned() },
        Fact { name: "kernel".to_owned(), value: "Linux 6.12.0".to_owned() },
        Fact { name: "memory".to_owned(), value: "4 GiB".to_owned() },
    ];
    for record in &mut new.1 {
        record.server.version = "9.20.0 (synthetic)".to_owned();
    }
    let experiment = EXPERIMENT.replace("\"udp\"", "\"udp\"\nload.clients = 7");
    check("slower", &compare(&base, &new, &experiment), Ruling::Fail);
}

#[test]
fn of_too_few_runs_and_one_that_failed() {
    let base = session(3, 1.0, 0);
    let mut new = session(3, 0.98, 1_000);
    sample::fail(new.1.iter_mut().find(|record| record.variant == "dot").unwrap());
    new.0.variants.retain(|name| name != "tcp");
    new.0.plan.retain(|case| case.variant != "tcp");
    check("few", &compare(&base, &new, EXPERIMENT), Ruling::Unclear);
}

#[test]
fn of_single_runs() {
    check(
        "single",
        &compare(&session(1, 1.0, 0), &session(1, 0.9, 9), EXPERIMENT),
        Ruling::Unclear,
    );
}

/// A session of three runs of each variant under a name that is also that of one variant.
fn named(name: &str, factor: f64, luck: u32) -> (Session, Vec<RunRecord>) {
    let (mut session, mut records) = session(3, factor, luck);
    session.name = name.to_owned();
    for own in session.variants.iter_mut().filter(|own| *own == "udp") {
        name.clone_into(own);
    }
    for record in records.iter_mut().filter(|record| record.variant == "udp") {
        name.clone_into(&mut record.variant);
    }
    (session, records)
}

#[test]
fn names_of_others_do_no_harm() {
    let name = "a|b <i>&\"'\u{1b}[2J";
    let (base, new) = (named(name, 1.0, 0), named(name, 0.5, 9));
    let found = compare(&base, &new, EXPERIMENT);
    let (markdown, junit) = (session_comparison_markdown(&found), session_comparison_junit(&found));
    assert!(!markdown.contains('\u{1b}') && !markdown.contains("<i>"), "{markdown}");
    assert!(markdown.contains("a\\|b &lt;i>&amp;"), "{markdown}");
    assert!(!junit.contains('\u{1b}') && !junit.contains("<i>"), "{junit}");
    assert!(junit.contains("classname=\"a|b &lt;i&gt;&amp;&quot;&apos;"), "{junit}");
}
