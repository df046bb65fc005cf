//! What the operator's work during a load cost.

use dnslab_analysis::Summary;
use dnslab_record::EventFacts;

use crate::example::{record, session};

#[test]
fn what_was_lost_is_told_as_time() {
    let mut run = record("udp", 1, 1_000);
    let measured = run.measured.as_mut().unwrap();
    let outcomes = &mut measured.counters.outcomes;
    (outcomes.due, outcomes.timed_out) = (outcomes.due + 250, 250);
    let (lost, window_ns) = (outcomes.lost_share(), measured.window_ns as f64);
    let command = vec!["rndc".to_owned(), "reload".to_owned()];
    run.watched.event = Some(EventFacts { command, at_ns: 5, ended_ns: 1_005 });
    let summary = Summary::of(&session(), &[run]);
    let found = summary.variants.iter().find_map(|variant| variant.event.as_ref()).unwrap();
    assert_eq!((found.command.as_str(), found.length_ns), ("rndc reload", 1_000.0));
    assert_eq!((found.lost, found.lost_ns), (250.0, lost * window_ns));
    let quiet = Summary::of(&session(), &[record("udp", 1, 1_000)]);
    assert!(quiet.variants.iter().all(|variant| variant.event.is_none()));
}
