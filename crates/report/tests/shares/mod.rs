//! The report of variants that were asked at shares of their own rates.

use dnslab_record::{CommonLoad, LoadFacts, LoadMode, OpenPace, RunRecord, ShareLoad};
use dnslab_traffic::Pace;
use serde_json::Value;

use super::sample::Behaviour;
use super::{between, report_of, runs_of, sample};

const SHARES: [f64; 2] = [0.1, 0.8];

/// Twice as slow at the larger share.
fn with_shares(mut record: RunRecord) -> RunRecord {
    let behaviour = match record.variant.as_str() {
        "udp" => Behaviour { name: "udp", transport: "udp", qps: 1.0, p50_ms: 0.2, tail: 3.0 },
        _ => Behaviour { name: "tcp", transport: "tcp", qps: 1.0, p50_ms: 0.4, tail: 3.0 },
    };
    let own_qps = record.measured.as_ref().unwrap().answered_qps();
    for share in SHARES {
        let qps = share * own_qps;
        let behaviour = Behaviour {
            qps,
            p50_ms: behaviour.p50_ms * if share > 0.5 { 2.0 } else { 1.0 },
            ..behaviour
        };
        let run = sample::run(&behaviour, record.repetition, record.position, 1_000_000_000);
        let mode = LoadMode::Open {
            rate_qps: qps,
            pace: OpenPace::Schedule { pace: Pace::Poisson, changing: None },
        };
        let load = LoadFacts { mode, ..run.load };
        let (measured, watched) = (run.measured.unwrap(), run.watched);
        let (caveats, bottleneck) = (Vec::new(), run.bottleneck);
        let load = CommonLoad { load, measured, watched, caveats, bottleneck };
        record.share_loads.push(ShareLoad { share, load });
    }
    record
}

#[test]
fn each_share_has_its_figures_and_differences() {
    let mut session = sample::session(5);
    session.variants.retain(|name| name != "dot");
    session.plan.retain(|case| case.variant != "dot");
    let records: Vec<RunRecord> = runs_of(&session).into_iter().map(with_shares).collect();
    let [page, summary, _, _, table] = report_of(&session, &records);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    for (place, share) in SHARES.iter().enumerate() {
        let own = &summary["shares"][place];
        assert_eq!(own["share"].as_f64(), Some(*share));
        for (place, qps) in [148_000.0, 131_000.0].into_iter().enumerate() {
            let offered = own["variants"][place]["offered_qps"].as_f64().unwrap();
            assert!((offered / (qps * share) - 1.0).abs() < 0.05, "{offered}");
        }
        let p50 = own["comparisons"].as_array().unwrap().iter();
        let p50 = p50.filter(|found| found["metric"] == "latency-p50").collect::<Vec<_>>();
        let [p50] = p50.as_slice() else { panic!("one pair: {own}") };
        assert!((p50["difference"]["value"].as_f64().unwrap() - 1.0).abs() < 0.1, "{p50}");
    }
    let section = between(&page, "id=\"shares\">", "</section>\n<section>");
    assert!(section.contains("chart-shares-latency"));
    insta::assert_snapshot!(between(&table, "**Latency over load**\n\n", "\n\n"));
}

#[test]
fn a_report_without_such_loads_says_nothing_of_them() {
    let session = sample::session(2);
    let [page, summary, ..] = report_of(&session, &runs_of(&session));
    assert!(!page.contains("id=\"shares\"") && !summary.contains("\"shares\""));
}
