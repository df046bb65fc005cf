//! The page of what another load generator measured.

use dnslab_import::{ImportFacts, ImportSource, read, results_of};

use super::report_of;

const WITH_INTERVALS: &str = include_str!("../../../import/tests/dnsperf/2.10-udp.txt");

/// The page of a text that dnsperf printed.
fn page(text: &str) -> String {
    let source = |run| ImportSource { variant: "udp".to_owned(), file: "udp.txt".to_owned(), run };
    let runs = read(text.as_bytes()).unwrap();
    let (session, records) =
        results_of(ImportFacts::default(), runs.into_iter().map(source).collect());
    let [page, ..] = report_of(&session, &records);
    page
}

#[test]
fn what_was_not_printed_has_no_figure() {
    let figures = |page: &str| -> Vec<String> {
        let ids = page.split("<figure ").skip(1).map(|part| part.split("id=\"").nth(1).unwrap());
        ids.map(|id| id.split('"').next().unwrap().to_owned()).collect()
    };
    // No histogram: no quantile. Intervals of -S: the answered rate over time, and nothing else.
    assert_eq!(figures(&page(WITH_INTERVALS)), ["first-answer", "chart-qps"]);
    let is_interval = |line: &&str| line.starts_with(|letter: char| letter.is_ascii_digit());
    let lines = WITH_INTERVALS.lines().filter(|line| !is_interval(line));
    let without = lines.collect::<Vec<_>>().join("\n").replace(" -S1", "");
    let page = page(&without);
    assert_eq!(figures(&page), ["first-answer"]);
    assert!(!page.contains("<h2>Charts</h2>"), "nothing stands below the heading");
}
