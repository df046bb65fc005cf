//! The report of a search for the capacity.

use std::fs;

use dnslab_record::{Capacity, Caveat, End, Finding, Judged};
use dnslab_report::{capacity_answer, write_report};
use dnslab_results::ResultsDirectory;

use crate::sample;

/// Writes a sample and its report; what it searched, and the report's files by name.
fn report(
    write: impl Fn(&std::path::Path) -> Result<ResultsDirectory, dnslab_results::ResultsError>,
) -> (Capacity, impl Fn(&str) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let results = write(&folder.path().join("results")).unwrap();
    write_report(&results).unwrap();
    let read = move |name: &str| fs::read_to_string(folder.path().join("results").join(name));
    (results.capacity().unwrap().unwrap(), move |name| read(name).unwrap())
}

#[test]
fn the_highest_rate_with_its_interval() {
    let (found, read) = report(sample::capacity::write_rate);
    insta::assert_snapshot!("capacity-table", read("table.md"));
    insta::assert_snapshot!("capacity-steps", read("capacity.csv"));
    let page = read("report.html");
    let answer = capacity_answer(&found).to_string();
    assert!(read("summary.json").contains(&format!("\"answer\": \"{answer}\"")));
    assert!(page.contains("<strong>68,572 queries per second</strong>"), "{answer}");
    for id in ["chart-capacity-answered", "chart-capacity-latency"] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(page.contains("rate-128000-2"), "every run is there");
    // Rates are no variants of each other.
    assert!(
        !page.contains("baseline</th>") && read("summary.json").contains("\"comparisons\": []")
    );
}

#[test]
fn the_window_to_use() {
    let (found, read) = report(sample::capacity::write_window);
    insta::assert_snapshot!("window-table", read("table.md"));
    let answer = capacity_answer(&found).to_string();
    assert!(answer.starts_with("ns1.example needs 256 outstanding to answer 66,"), "{answer}");
}

#[test]
fn every_end_has_its_sentence() {
    let (sample, _) = report(sample::capacity::write_rate);
    let text = |change: &dyn Fn(&mut Capacity)| {
        let mut capacity = sample.clone();
        change(&mut capacity);
        capacity_answer(&capacity).to_string()
    };
    let caveat = Caveat::GeneratorLimited { busy_share: 0.97 };
    let busy = || Finding::Caveat { caveat: caveat.clone(), workers: 1 };
    let limit = |capacity: &mut Capacity| {
        let last = capacity.steps.last_mut().unwrap();
        let breaches = last.judged.breaches().to_vec();
        last.judged = Judged::GeneratorLimited { breaches, generator: busy() };
    };
    let found = text(&|_| {});
    assert!(found.starts_with("ns1.example meets lost<0.1%, p99<10ms up to 68,572 queries per"));
    assert_eq!(
        text(&|capacity| capacity.end = Some(End::Max { qps: 64_000.0 })),
        "ns1.example meets lost<0.1%, p99<10ms up to at least 64,000 queries per second, the \
         highest rate that was to be tried (`--max`)."
    );
    let generator = text(&|capacity| {
        limit(capacity);
        capacity.end = Some(End::Generator { qps: Some(64_000.0) });
    });
    assert_eq!(
        generator,
        "ns1.example meets lost<0.1%, p99<10ms up to at least 64,000 queries per second; above, the \
         load generator was the bottleneck: The load generator had no CPU left: the server may do more than \
         this figure says (busiest worker: 97.0 % of its CPU). Give the load more CPUs and workers \
         (`load.cpus`, `load.workers`), on a machine that has them, or give the server fewer."
    );
    let below = text(&|capacity| {
        capacity.steps.truncate(9);
        capacity.end = Some(End::Lowest);
    });
    let expected = "ns1.example does not meet lost<0.1%, p99<10ms even at 1,000 queries per second; \
                    lost 4";
    assert!(below.starts_with(expected), "{below}");
    assert!(below.ends_with("; a search from a lower rate: `--from`."), "{below}");
    let failed =
        text(&|capacity| capacity.end = Some(End::Failed { reason: "it is gone".to_owned() }));
    let expected = "The search ended without an answer: ns1.example met lost<0.1%, p99<10ms at 69,";
    assert!(failed.starts_with(expected), "{failed}");
    assert!(failed.ends_with("; the last step failed: it is gone."), "{failed}");
    let interrupted = text(&|capacity| {
        capacity.steps.clear();
        capacity.end = Some(End::Interrupted);
    });
    assert_eq!(interrupted, "The search ended without an answer.");
}
