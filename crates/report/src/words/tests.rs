//! What is said of each value, as it stands on disk: one case a line, one line of the snapshot for each.

use dnslab_measure::{
    Bottleneck, BottleneckKind, Caveat, Evidence, Finding, InvalidReason, VariantCaveat,
};
use serde::de::DeserializeOwned;

use super::bottleneck::{bottleneck_text, evidence_text};
use super::caveat::{caveat_text, remark, remark_with, variant_caveat_text};
use super::invalid::invalid_text;
use super::self_check;

fn said<T: DeserializeOwned>(cases: &str, say: impl Fn(T) -> String) -> String {
    let say = |case: &str| {
        let value = serde_json::from_str(case).unwrap_or_else(|error| panic!("{case}: {error}"));
        let text = say(value);
        assert!(!text.contains("  ") && !text.contains(".."), "{text:?}");
        text
    };
    cases.trim().lines().map(say).collect::<Vec<_>>().join("\n")
}

#[test]
fn caveats() {
    const CASES: &str = r#"
{"kind":"generator-limited","busy_share":0.98}
{"kind":"shared-cpus"}
{"kind":"shared-core","cpus":[1,3]}
{"kind":"closed-loop","window":1000}
{"kind":"window-not-full","in_flight":1234.4,"window":4000}
{"kind":"window-not-full","in_flight":0.85,"window":1}
{"kind":"clients-not-connected","open":3,"clients":1000}
{"kind":"answers-wait-for-next-query","share":0.25,"gap_ns":2860000}
{"kind":"first-answers-wait","share":0.25,"connections":0.5}
{"kind":"connections-held","share":0.25}
{"kind":"rate-missed","intended_qps":50000.0,"offered_qps":49000.0}
{"kind":"send-lag","p50_ns":51000}
{"kind":"send-lag","p50_ns":51000,"p99_ns":70000}
{"kind":"pacing","width_ns":10000000,"share_within":0.5,"p99_error":0.25}
{"kind":"batch-delay","batch_delay_ns":50000,"p50_ns":70000}
{"kind":"horizon","horizon_ns":50000,"p50_ns":70000}
{"kind":"generator-drops","datagrams":12}
{"kind":"host-drops","datagrams":1200,"of_server":7}
{"kind":"connections-failed","attempted":1000,"failed":2,"lost":3,"example":""}
{"kind":"connections-failed","attempted":1000,"failed":2,"lost":3,"example":"refused"}
{"kind":"steal","share":0.031}
{"kind":"crowded","waited_share":0.2}
{"kind":"other-processes","cpus":0.5}
{"kind":"lost","share":0.012}
{"kind":"truncated","share":0.5}
{"kind":"empty-answers","share":0.2}
{"kind":"unsteady","lowest_qps":0.0,"median_qps":50000.0}
{"kind":"stray-answers","late":7,"duplicate":8,"unexpected":9}
{"kind":"counts-differ","sent":1000,"counted":900}
{"kind":"dnstap-dropped","share":0.25}
{"kind":"links-not-played","reason":"as nobody"}
{"kind":"wrong-answers","count":3,"example":"a. A"}
{"kind":"malformed-answers","malformed":1,"checked":2000,"example":"a. A"}
{"kind":"bad-signatures","count":3,"example":"BADKEY"}
{"kind":"http-errors","statuses":[[200,{"count":1,"first_ns":900000000}],[503,{"count":1234,"first_ns":2100000000}]]}
{"kind":"server-not-watched","reason":"another machine"}
{"kind":"cut-short","measured_ns":1500000000}
{"kind":"certificate-not-verified"}
{"kind":"turn-backlog","ns":7100000}
{"kind":"common-load-invalid","reason":{"why":"forsaken","forsaken":2,"clients":200}}
{"kind":"imported","generator":"dnsperf 2.10.0","lost_share":0.0}
{"kind":"imported","generator":"dnsperf 2.10.0","lost_share":0.012}
{"kind":"other","text":"The moon was full."}
"#;
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
"as a record of format 4 has it"
"#;
    insta::assert_snapshot!("evidence", said(CASES, |of: Evidence| evidence_text(&[of])));
}

#[test]
fn findings() {
    const CASES: &str = r#"
{"finding":"caveat","caveat":{"kind":"generator-limited","busy_share":0.97},"workers":1}
{"finding":"generator","evidence":[{"figure":"busiest-worker","share":0.95}],"workers":2}
{"finding":"small-window","evidence":[],"outstanding":100}
{"finding":"shared-cpu","evidence":[]}
{"finding":"server-thread","evidence":[]}
{"finding":"network","evidence":[]}
{"finding":"server-socket","evidence":[],"program":"knot"}
{"finding":"server-socket","evidence":[],"program":"unbound"}
{"finding":"server-full","busy_share":0.98}
{"finding":"left-late","demand":"p99<10ms","from_sending_ns":9000000.0,"lag_p99_ns":8000000}
{"what":"No CPU left","figure":"97 %","remedy":"Add a worker"}
"#;
    let say = |finding: Finding| self_check::remark(&finding).text();
    insta::assert_snapshot!("findings", said(CASES, say));
}

#[test]
fn reasons() {
    const CASES: &str = r#"
{"why":"unanswered","due":0,"warm_up_due":0,"warm_up_answered":0}
{"why":"unanswered","due":0,"warm_up_due":9,"warm_up_answered":0}
{"why":"unanswered","due":0,"warm_up_due":9,"warm_up_answered":1}
{"why":"unanswered","due":5,"warm_up_due":9,"warm_up_answered":0,"cause":{"cause":"connection","end":"refused"}}
{"why":"unanswered","due":5,"warm_up_due":0,"warm_up_answered":0,"cause":{"cause":"signature","example":"BADKEY"}}
{"why":"slower-than-slices","slice_ns":50000000,"max_ns":10000000}
{"why":"fell-silent","silence":{"from_ns":300000000,"length_ns":700000000,"window_ns":1000000000,"is_at_end":true},"cause":{"cause":"http","statuses":[[503,{"count":1,"first_ns":900000000}]]}}
{"why":"fell-silent","silence":{"from_ns":300000000,"length_ns":600000000,"window_ns":1000000000,"is_at_end":false}}
{"why":"lost","outcomes":{"due":200,"answered":77,"timed_out":3,"not_sent":120,"connection_lost":0,"malformed":0,"refused":0},"limit":0.5}
{"why":"wrong","wrong":3,"answers":4,"limit":0.0,"rcode":0,"has_record":true,"example":"a. A"}
{"why":"wrong","wrong":3,"answers":4,"limit":0.001,"rcode":3,"has_record":false}
{"why":"malformed","malformed":1,"checked":9,"limit":0.01,"example":"a. A"}
{"why":"too-short","measured_ns":250000000,"asked_ns":1000000000}
{"why":"unserved","served":150,"clients":9500,"failed_attempts":0,"program":"bind","is_started":true}
{"why":"unserved","served":150,"clients":9500,"failed_attempts":12,"program":"unbound","is_started":true}
{"why":"unserved","served":150,"clients":9500,"failed_attempts":0,"program":"external","is_started":false}
{"why":"forsaken","forsaken":2,"clients":200}
{"why":"rate-too-high","evidence":[{"figure":"busiest-worker","share":0.95}]}
{"why":"lost-over-transport","transport":"dot","due":1200,"answered":0,"limit":0.5,"cause":{"cause":"connection","end":"refused"}}
{"why":"lost-over-transport","transport":"doq","due":1200,"answered":599,"limit":0.5,"cause":null}
"as a record of format 4 has it"
"#;
    insta::assert_snapshot!("reasons", said(CASES, |of: InvalidReason| invalid_text(&of)));
}

#[test]
fn a_bottleneck_shows_its_evidence() {
    let of = |evidence| Bottleneck { kind: BottleneckKind::ServerCpu, evidence };
    let evidence = vec![Evidence::BusiestWorker { share: 0.5 }, Evidence::Text("so".into())];
    let told = "server CPU: the busiest load worker used 50 % of a CPU; so";
    assert_eq!(bottleneck_text(&of(evidence)), told);
    assert_eq!(bottleneck_text(&of(Vec::new())), "server CPU");
}

#[test]
fn a_caveat_says_in_how_many_runs_and_counts_workers() {
    let in_runs = |runs| VariantCaveat { worst: Caveat::Lost { share: 0.5 }, runs };
    assert!(variant_caveat_text(&in_runs(3), 5).ends_with(". (in 3 of 5 runs)"));
    assert_eq!(variant_caveat_text(&in_runs(5), 5), caveat_text(&in_runs(5).worst));
    let limited = Caveat::GeneratorLimited { busy_share: 1.0 };
    assert!(remark(&limited).remedy.contains("(`--set load.workers=N`)"));
    assert!(remark_with(&limited, Some(3)).remedy.contains("(`--set load.workers=4`)"));
}
