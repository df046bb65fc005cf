//! What is said of each value, as it stands on disk: one case a line, one line of the snapshot for each.

use dnslab_analysis::VariantCaveat;
use dnslab_record::{Bottleneck, BottleneckKind, Caveat, Evidence, Finding, InvalidReason};
use serde::de::DeserializeOwned;

use super::bottleneck::{bottleneck_text, evidence_text};
use super::caveat::{caveat_text, variant_caveat_text};
use super::invalid::invalid_text;
use super::self_check;

fn said<T: DeserializeOwned>(cases: &str, say: impl Fn(T) -> String) -> String {
    let mut texts = Vec::new();
    for case in cases.trim().lines() {
        let value = serde_json::from_str(case).unwrap_or_else(|error| panic!("{case}: {error}"));
        let text = say(value);
        assert!(!text.contains("  ") && !text.contains(".."), "{text:?}");
        texts.push(text);
    }
    texts.join("\n")
}

#[test]
fn caveats() {
    const CASES: &str = include_str!("../../tests/words/caveats.jsonl");
    insta::assert_snapshot!("caveats", said(CASES, |caveat: Caveat| caveat_text(&caveat)));
}

#[test]
fn evidence() {
    const CASES: &str = r#"
{"figure":"rate-met","intended_qps":100000.0,"offered_qps":98999.5,"answered_qps":98000.4}
{"figure":"rate-missed","intended_qps":100000.0,"offered_qps":98999.5,"send_lag_p50_ns":1500000}
{"figure":"not-taken","intended_qps":100000.0,"offered_qps":98999.5}
{"figure":"answered","intended_qps":100000.0,"answered_qps":98000.4}
{"figure":"servers","servers":[{"role":"upstream","busy_share":0.97,"cpus":2},{"role":"server","busy_share":0.61,"cpus":1}]}
{"figure":"servers","servers":[{"role":"server","busy_share":null,"cpus":1},{"role":"relay","busy_share":null,"cpus":1}]}
{"figure":"servers-together","share":0.955}
{"figure":"servers-and-load","share":0.92}
{"figure":"server-thread","role":"server","thread":{"name":"isc-loop-0000","share":0.97},"next":{"name":"isc-loop-0001","share":0.04}}
{"figure":"server-thread","role":"upstream","thread":{"name":"back","share":0.95},"next":null}
{"figure":"busiest-worker","share":0.9}
{"figure":"worker-waited","share":0.95}
{"figure":"generator-drops","answers":1001}
{"figure":"connections-held","share":0.06}
{"figure":"lost","share":0.012,"server_drops":0}
{"figure":"lost","share":0.012,"server_drops":12000}
{"figure":"lost-on-loopback"}
{"figure":"late","share":0.012}
{"figure":"in-flight","answered_qps":100000.0,"mean_latency_ns":4000000.0,"window":400.0}
"#;
    insta::assert_snapshot!(
        "evidence",
        said(CASES, |evidence: Evidence| evidence_text(&[evidence]))
    );
}

#[test]
fn findings() {
    const CASES: &str = include_str!("../../tests/words/findings.jsonl");
    let say = |finding: Finding| self_check::remark(&finding).text();
    insta::assert_snapshot!("findings", said(CASES, say));
}

#[test]
fn reasons() {
    const CASES: &str = include_str!("../../tests/words/reasons.jsonl");
    insta::assert_snapshot!("reasons", said(CASES, |reason: InvalidReason| invalid_text(&reason)));
}

#[test]
fn a_bottleneck_shows_its_evidence() {
    let bottleneck = |evidence| Bottleneck { kind: BottleneckKind::ServerCpu, evidence };
    let evidence =
        vec![Evidence::BusiestWorker { share: 0.5 }, Evidence::GeneratorDrops { answers: 7 }];
    let expected = "server CPU: the busiest load worker used 50 % of a CPU; the generator's \
                sockets dropped 7 answers";
    assert_eq!(bottleneck_text(&bottleneck(evidence)), expected);
    assert_eq!(bottleneck_text(&bottleneck(Vec::new())), "server CPU");
}

#[test]
fn a_caveat_says_in_how_many_runs() {
    let in_runs = |runs| VariantCaveat { worst: Caveat::Lost { share: 0.5 }, runs };
    assert!(variant_caveat_text(&in_runs(3), 5).ends_with(". (in 3 of 5 runs)"));
    assert_eq!(variant_caveat_text(&in_runs(5), 5), caveat_text(&in_runs(5).worst));
}
