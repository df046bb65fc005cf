//! Several sessions of one experiment: on the screen, as JSON, and as a page.

use dnslab_analysis::statistics::Verdict;
use dnslab_analysis::{NotPooled, Pooled, WholeSession};
use dnslab_record::{Metric, RunRecord, Session};
use dnslab_report::{pooled_json, pooled_page, pooled_screen};

use crate::session_comparison::{EXPERIMENT, session, text};

/// A session, and its experiment.
type Made = ((Session, Vec<RunRecord>), String);

/// Sessions of these relative speeds, a day apart.
fn sessions(speeds: &[f64]) -> Vec<Made> {
    let made = (0..).zip(speeds).map(|(day, speed)| {
        let (mut facts, records) = session(4, *speed, 100 * day);
        facts.started = format!("2026-03-{:02}T03:04:05Z", day + 1);
        ((facts, records), EXPERIMENT.to_owned())
    });
    made.collect()
}

fn pool(made: &[Made]) -> Result<Pooled, NotPooled> {
    let whole = made.iter().map(|((session, records), experiment)| WholeSession {
        session,
        records,
        experiment,
    });
    Pooled::of(&whole.collect::<Vec<_>>())
}

/// The settings of the last one differ.
fn with_one_beside(speeds: &[f64]) -> Vec<Made> {
    let mut made = sessions(speeds);
    let last = made.last_mut().unwrap();
    last.1 = EXPERIMENT.replacen("[[variant]]", "load.batch_delay = \"0s\"\n[[variant]]", 1);
    made
}

#[test]
fn what_holds_over_sessions_is_told_with_the_next_one() {
    let found = pool(&with_one_beside(&[1.0, 1.02, 0.97, 1.01, 0.6])).unwrap();
    assert_eq!((found.sessions.len(), found.beside.len()), (4, 1));
    for width in [80, 100] {
        let screen = pooled_screen(&found, width);
        for line in &screen {
            let columns: usize = line.iter().map(|piece| piece.text.chars().count()).sum();
            assert!(columns <= width, "wider than {width}: {line:?}");
        }
        insta::assert_snapshot!(format!("pooled-{width}"), text(&screen));
    }
    let page = pooled_page(&found);
    assert!(page.contains("script-src 'none'") && !page.contains("<script"), "{page}");
    assert!(page.contains("load.batch_delay was"), "{page}");
    let json: serde_json::Value = serde_json::from_str(&pooled_json(&found)).unwrap();
    assert_eq!(json["format"], 1, "{json}");
    assert!(json["answer"].is_string() && json["differences"][0]["next"]["low"].is_f64(), "{json}");
}

/// The interval of prediction is that of one further value, by hand for the logarithms of four.
#[test]
fn the_next_session_lies_further_out_than_the_mean() {
    let found = pool(&sessions(&[1.0, 1.02, 0.97, 1.01])).unwrap();
    let rate = |found: &&dnslab_analysis::PooledDifference| {
        found.over_sessions.metric == Metric::AnsweredQps && found.over_sessions.variant == "dot"
    };
    let dot = found.differences.iter().find(rate).expect("the rates of dot are compared");
    let half = |[low, high]: [f64; 2]| (high.ln_1p() - low.ln_1p()) / 2.0;
    let of_mean = dot.over_sessions.difference;
    let ratio = half([dot.next.low, dot.next.high]) / half([of_mean.low, of_mean.high]);
    assert!((ratio - 5_f64.sqrt()).abs() < 1e-9, "{ratio}");
    assert_eq!((dot.each.len(), dot.over_sessions.rounds), (4, 4));
    assert_eq!(dot.over_sessions.verdict, Verdict::Costs);
}

#[test]
fn what_cannot_be_pooled_is_refused_with_a_remedy() {
    assert_eq!(pool(&[]), Err(NotPooled::TooFew));
    assert_eq!(pool(&sessions(&[1.0])), Err(NotPooled::TooFew));
    // Two sessions, each with settings of its own.
    assert_eq!(pool(&with_one_beside(&[1.0, 1.0])), Err(NotPooled::TooFew));
    let mut made = sessions(&[1.0, 1.0]);
    made[1].0.0.name = "other".to_owned();
    let error = pool(&made).unwrap_err();
    assert_eq!(error, NotPooled::Experiments("sample".to_owned(), "other".to_owned()));
    assert!(error.to_string().contains("hint:"), "{error}");
}
