//! The samples in `tests/dnsperf` are what dnsperf 2.10.0 and 2.14.0 printed on loopback, against `dnslab serve`
//! with and without loss; of time-outs only some lines are left.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use dnslab_analysis::{SelfCheck, Summary};
use dnslab_figures::Outcomes;
use dnslab_record::{Caveat, Metric, RunFigure, RunRecord, RunStatus, Session};
use dnslab_wire::Transport;

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../tests/dnsperf/", $name, ".txt"))
    };
}

fn one(text: &str) -> ForeignRun {
    let runs = read(text.as_bytes()).unwrap();
    let [run] = runs.try_into().expect("one run is in it");
    run
}

/// The counts of a run that was read: sent, completed, lost, interrupted.
fn counts(run: &ForeignRun) -> [u64; 4] {
    let ForeignStatistics { sent, completed, lost, interrupted, .. } = run.totals;
    [sent, completed, lost, interrupted]
}

fn results(texts: &[(&str, &str)]) -> (Session, Vec<RunRecord>) {
    let mut sources = Vec::new();
    for (variant, text) in texts {
        let (variant, file) = ((*variant).to_owned(), format!("{variant}.txt"));
        let source = |run| ImportSource { variant: variant.clone(), file: file.clone(), run };
        sources.extend(read(text.as_bytes()).unwrap().into_iter().map(source));
    }
    let facts = ImportFacts { name: "dnsperf".to_owned(), ..ImportFacts::default() };
    results_of(facts, sources)
}

#[test]
fn totals_are_those_that_were_printed() {
    let udp = one(sample!("2.10-udp"));
    assert_eq!((udp.generator.as_str(), udp.version.as_str()), ("dnsperf", "2.10.0"));
    assert_eq!(counts(&udp), [15_000, 15_000, 0, 0]);
    let codes: Vec<_> =
        udp.totals.rcodes.iter().map(|(code, answers)| (code.as_str(), *answers)).collect();
    assert_eq!(codes, [("NOERROR", 14_993), ("NXDOMAIN", 7)]);
    assert_eq!((udp.totals.length_ns, udp.totals.mean_octets), (3_000_217_000, Some((39, 56))));
    let latency = udp.totals.latency.unwrap();
    assert_eq!((latency.mean_ns, latency.min_ns), (40_000.0, Some(13_000)));
    assert_eq!((latency.max_ns, latency.stddev_ns), (Some(4_303_000), Some(139_000.0)));
    assert_eq!((udp.target.as_str(), udp.ended.as_str()), ("127.0.0.1:15353", "time limit"));
    assert_eq!(udp.started_local, "2026-11-25T01:36:25");
    assert_eq!((udp.options.clients, udp.options.window, udp.options.max_qps), (10, 20, Some(5e3)));

    assert_eq!(counts(&one(sample!("2.10-lost"))), [11_858, 11_745, 113, 0]);
    assert_eq!(counts(&one(sample!("2.10-interrupted"))), [3_793, 3_753, 0, 40]);
    let tcp = one(sample!("2.10-tcp"));
    let connections = tcp.connections.unwrap();
    assert_eq!((counts(&tcp), connections.reconnected), ([2_001, 2_001, 0, 0], Some(18)));
    assert_eq!(connections.latency.unwrap().mean_ns, 283_000.0);
    // Nothing was answered, so there is no latency, and no zero.
    let none = one(sample!("2.10-unanswered"));
    assert_eq!((counts(&none), none.totals.latency), ([2_001, 0, 2_001, 0], None));
    let doh = one(sample!("2.14-doh"));
    assert_eq!((doh.options.transport.as_str(), doh.options.http_method.as_str()), ("doh2", "GET"));
    assert_eq!(doh.connections.unwrap().attempted, Some(4));
}

/// The run of this text, whose intervals have these lengths and add up to it.
#[track_caller]
fn added_up(text: &str, lengths_s: &[f64]) -> ForeignRun {
    let run = one(text);
    let sum = |count: fn(&ForeignStatistics) -> u64| {
        run.intervals.iter().map(|interval| count(&interval.counted)).sum::<u64>()
    };
    assert_eq!(sum(|counted| counted.completed), run.totals.completed);
    assert_eq!(sum(|counted| counted.length_ns), run.totals.length_ns);
    if run.has_whole_intervals {
        assert_eq!(sum(|counted| counted.sent), run.totals.sent);
        assert_eq!(sum(|counted| counted.lost), run.totals.lost);
    }
    let seconds = |ns: u64| (ns as f64 / 1e8).round() / 10.0;
    let lengths = run.intervals.iter().map(|interval| seconds(interval.counted.length_ns));
    assert_eq!(lengths.collect::<Vec<f64>>(), lengths_s);
    run
}

#[test]
fn intervals_add_up_to_the_whole() {
    let udp = added_up(sample!("2.10-udp"), &[1.0, 1.0, 1.0]);
    assert_eq!(udp.intervals[1].counted.completed, 5_000);
    assert_eq!(udp.started_ns, Some(1_795_570_586_008_517_000));
    added_up(sample!("2.10-dot"), &[0.5, 0.5, 0.5, 0.5]);
    added_up(sample!("2.10-interrupted"), &[1.0, 1.0, 0.3]);
    assert_eq!(one(sample!("2.10-tcp")).intervals, []);
    let whole = added_up(sample!("2.14-dot"), &[1.0, 1.0]);
    assert!(whole.has_whole_intervals);
    assert_eq!(whole.intervals[0].counted.rcodes["NXDOMAIN"], 1);
}

/// dnsperf 2.10 prints the first rate as the answers divided by the seconds since 1970. With less than two digits the
/// first interval and what comes after the last one are unknown.
#[test]
fn the_first_interval_is_not_lost_where_it_is_known() {
    let first = |rate: &str| sample!("2.10-udp").replace("1795570587.008517: 5000.434430", rate);
    // 5,000 / 1,795,570,587 s, and 44,891 / 1,795,642,646 s, which is more than there is.
    for (rate, expected) in [
        ("1795570587.008517: 0.000003", &[5_000][..]),
        ("1795570587.008517: 0.000025", &[10_000, 5_000, 0]),
        ("1795570587.008517: 0.000000", &[5_000]),
    ] {
        let run = one(&first(rate));
        let counts: Vec<u64> =
            run.intervals.iter().map(|interval| interval.counted.completed).collect();
        assert_eq!(counts, expected, "{rate}");
        if let [only] = run.intervals.as_slice() {
            assert_eq!(only.at_ns, 1_000_000_000, "{rate}");
        }
    }
    // Another version had no answer in its first interval.
    let newer = first("1795570587.008517: 0.000000").replace("Version 2.10.0", "Version 2.14.0");
    let counts: Vec<u64> =
        one(&newer).intervals.iter().map(|interval| interval.counted.completed).collect();
    assert_eq!(counts, [0, 5_000, 10_000]);
}

#[test]
fn the_output_of_resperf_is_named() {
    let text = "DNS Resolution Performance Testing Tool\nVersion 2.10.0\n\n[Status] Command line: resperf -s ::1\n";
    let named =
        ": this is the output of resperf, which is not read: dnslab imports that of dnsperf";
    for (text, line) in [(text, 1), (&text[40..], 3)] {
        let error = read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, format!("line {line}{named}"));
    }
}

#[test]
fn sums_that_contradict_the_totals_are_refused() {
    let error = |from: &str, to: &str| {
        let text = sample!("2.10-udp");
        assert!(text.contains(from), "{from}");
        read(text.replace(from, to).as_bytes()).unwrap_err().to_string()
    };
    // The answers of three seconds in one.
    assert!(
        error("3.000217", "1.000217")
            .ends_with("do not add up: 15000 answers in 1.000217 s are 14997 a second, not 5000")
    );
    assert!(error("second:   4999.638359", "second:   0.000000").ends_with("not 0"));
    assert!(
        error("4999.000200", "49990.00200")
            .contains("do not add up: answers of the intervals are 55000, not 15000")
    );
    let mut metrics = metrics();
    metrics[3]["responses"] = json!(990);
    metrics[3]["queries"] = json!(990);
    let error = read(metrics.to_string().as_bytes()).unwrap_err().to_string();
    assert!(error.contains("answers of the intervals are 1580, not 985"), "{error}");
}

#[test]
fn histograms_are_those_of_the_queries() {
    let run = one(sample!("2.14-dot"));
    // dnsperf 2.14 prints it again for the connections.
    let counted: u64 = run.totals.buckets.iter().map(|bucket| bucket.count).sum();
    assert_eq!((counted, run.totals.completed), (6_000, 6_000));
    let mean_ns = run.totals.histogram().mean_ns().unwrap();
    let printed_ns = run.totals.latency.unwrap().mean_ns;
    // Half a microsecond, by which dnsperf cuts each, and half a bucket.
    assert!((mean_ns - printed_ns).abs() < 1_000.0 + 0.02 * printed_ns, "{mean_ns} {printed_ns}");
    assert_eq!(run.connections.unwrap().attempted, Some(4));
    assert_eq!(one(sample!("2.14-lost")).totals.histogram().len(), 10_397);
}

#[test]
fn records_say_what_is_not_known() {
    let (session, records) = results(&[
        ("udp", sample!("2.10-udp")),
        ("dot", sample!("2.14-dot")),
        ("udp", sample!("2.10-lost")),
    ]);
    assert_eq!((session.baseline.as_str(), session.variants.len()), ("udp", 2));
    let cases: Vec<String> = session.plan.iter().map(dnslab_record::CaseId::folder).collect();
    assert_eq!(cases, ["udp-1", "dot-1", "udp-2"]);
    let [udp, dot, lossy] = &records[..] else { panic!("three runs") };
    let measured = udp.measured.as_ref().unwrap();
    assert_eq!(measured.counters.sent, 15_000);
    assert_eq!(
        (measured.counters.sent_octets, measured.counters.answers.octets),
        (585_000, 840_000)
    );
    assert!((measured.answered_qps() - 4_999.638_359).abs() < 1e-6);
    assert_eq!(udp.status, RunStatus::Valid);
    assert_eq!(udp.started, "2026-11-25T01:36:26.008Z");
    for metric in Metric::COMPARED {
        let is_told = matches!(metric, Metric::AnsweredQps | Metric::LatencyMean);
        assert_eq!(udp.figure(metric).is_some(), is_told, "{metric:?}");
    }
    assert_eq!(udp.figure(Metric::LatencyMean), Some(RunFigure::Measured(40_000.0)));
    assert_eq!(measured.generator_cpu_per_query_ns(), None);
    assert_eq!(SelfCheck::of(udp), None);
    // With a histogram there are quantiles too.
    let p99_ns = dot.figure(Metric::LatencyP99).and_then(RunFigure::measured);
    assert!(p99_ns.is_some_and(|ns| (69_000.0..4_887_000.0).contains(&ns)));
    let share = lossy.caveats.iter().find_map(|caveat| match caveat {
        Caveat::Imported { lost_share, .. } => Some(*lost_share),
        _ => None,
    });
    assert_eq!(share, Some(113.0 / 11_858.0));
    let outcomes = lossy.measured.as_ref().unwrap().counters.outcomes;
    assert_eq!(
        outcomes,
        Outcomes { due: 11_858, answered: 11_745, timed_out: 113, ..Outcomes::default() }
    );

    let summary = Summary::of(&session, &records);
    assert_eq!(summary.variants[0].imported.as_deref(), Some("dnsperf 2.10.0"));
    assert_eq!(summary.variants[0].self_check.verdict(), None);
    assert_eq!(summary.missing_runs, 0);
}

#[test]
fn several_runs_in_a_file_are_repetitions() {
    let both = format!("$ dnsperf ...\n{}$\n{}", sample!("2.10-udp"), sample!("2.10-dot"));
    let (session, records) = results(&[("both", &both)]);
    assert_eq!((session.plan.len(), records[1].repetition), (2, 2));
    assert_eq!(records[1].load.transport, Some(Transport::Dot));
    // Copied without its title.
    let start = sample!("2.10-udp").find("[Status]").unwrap();
    let bare = one(&sample!("2.10-udp")[start..]);
    assert_eq!((counts(&bare)[0], bare.version.as_str()), (15_000, ""));
}

#[test]
fn secrets_are_not_kept() {
    let keyed = sample!("2.10-udp").replace("-Q 5000", "-Q 5000 -y hmac-sha256:key:c2VjcmV0");
    let (_, records) = results(&[("udp", &keyed)]);
    let text = serde_json::to_string(&records).unwrap();
    assert!(text.contains("key:********") && !text.contains("c2VjcmV0"), "{text}");
}

#[test]
fn what_is_cut_or_damaged_is_named_with_its_line() {
    let whole = sample!("2.10-lost");
    let error = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
    let changed = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        error(&whole.replace(from, to))
    };
    assert_eq!(error(""), "no run of dnsperf is in it");
    assert_eq!(error("hello\nworld\n"), "no run of dnsperf is in it");
    let statistics = whole.lines().position(|line| line == "Statistics:").unwrap() + 1;
    let at = |offset: usize| format!("line {}: ", statistics + offset);
    assert_eq!(
        changed("Queries completed:    11745", "Queries completed:    x"),
        at(3) + "`x (99.05%)` cannot be read as `Queries completed`"
    );
    assert_eq!(
        changed("  Queries lost:         113 (0.95%)\n", ""),
        format!(
            "the statistics that begin in line {statistics} are cut: `Queries lost` is missing"
        )
    );
    assert_eq!(
        changed("Queries sent:         11858", "Queries sent:         11859"),
        format!(
            "the statistics that begin in line {statistics} do not add up: queries completed, lost and \
             interrupted are 11858, not 11859"
        )
    );
    assert!(changed("NXDOMAIN 5", "NXDOMAIN 6").contains("answers by response code are 11746"));
    assert_eq!(
        changed("min 0.000008", "min -1"),
        at(11) + "`0.000091 (min -1, max 0.003674)` cannot be read as `Average Latency (s)`"
    );
    assert!(changed("Statistics:\n", "").contains("line 1 has no statistics"));
    let histogram = sample!("2.14-lost");
    let fewer = histogram.replace("  0.002432 - 0.002495:  5\n", "");
    assert!(error(&fewer).contains("answers of the latency histogram are 10392, not 10397"));
    let wrong = histogram.replace("0.002432 - 0.002495:  5", "0.002432 - x:  5");
    assert!(error(&wrong).contains("cannot be read as `Latency bucket (s)`"));
    // Cut anywhere, a file with a histogram is an error, but for what follows the last figure.
    let last = histogram.trim_end().len();
    for length in 1..last {
        assert!(read(&histogram.as_bytes()[..length]).is_err(), "{length}");
    }
    assert!(read(&histogram.as_bytes()[..=last]).is_ok());
}

fn statistics(
    kind: &str,
    since: u64,
    until: u64,
    queries: u64,
    responses: u64,
) -> serde_json::Value {
    json!({
        "runid": "1", "type": kind, "since": since, "until": until, "queries": queries,
        "responses": responses, "timeouts": queries - responses, "interrupted": 0,
        "unexpected": 0, "response_rcodes": {"NOERROR": responses},
        "response_latency": {
            "avg": 126, "min": 43, "max": 3_967, "stddev": 113,
            "buckets": [[120, 127, responses - 1], [3_904, 3_967, 1]],
        },
        "conn_info": {"type": "udp", "packets_sent": queries, "packets_received": responses},
    })
}

/// What the schema of dns-metrics describes, in the units of its example for dnsperf.
fn metrics() -> serde_json::Value {
    let start = 1_675_865_567_760_972;
    json!([
        {
            "runid": "1", "type": "header", "schema_version": 20_221_207, "generator": "dnsperf",
            "generator_version": "2.15.0", "generator_params": ["-Q", "1000", "-c", "4", "-t", "2"],
            "time_units_per_sec": 1_000_000, "stats_interval": 1.0, "timeout": 2.0,
        },
        {"runid": "1", "type": "event", "msg": "hello"},
        statistics("stats_periodic", start, start + 1_000_000, 600, 590),
        statistics("stats_periodic", start + 1_000_000, start + 2_000_000, 400, 395),
        statistics("stats_sum", start, start + 2_000_000, 1_000, 985),
    ])
}

#[test]
fn dns_metrics_are_read_one_after_another_or_in_an_array() {
    let array = metrics();
    let lines: Vec<String> = array.as_array().unwrap().iter().map(ToString::to_string).collect();
    let run = one(&array.to_string());
    assert_eq!(counts(&run), [1_000, 985, 15, 0]);
    assert_eq!((run.version.as_str(), run.options.clients), ("2.15.0", 4));
    assert_eq!(run.totals.length_ns, 2_000_000_000);
    let latency = run.totals.latency.unwrap();
    assert_eq!((latency.mean_ns, latency.max_ns), (126_000.0, Some(3_967_000)));
    assert_eq!(run.totals.histogram().len(), 985);
    assert_eq!(run.started_ns, Some(1_675_865_567_760_972_000));
    let [first, second] = &run.intervals[..] else { panic!("two intervals") };
    assert_eq!((first.counted.sent, second.at_ns), (600, 1_000_000_000));
    let rerun = one(&(lines.join("\n") + "\n"));
    assert_eq!(ForeignRun { line: 1, ..rerun }, run);
    // Each thread for itself.
    let threads: Vec<String> = lines
        .iter()
        .flat_map(|line| {
            [1, 2].map(|thread| line.replacen('{', &format!("{{\"subid\":\"{thread}\","), 1))
        })
        .collect();
    let both = one(&threads.join("\n"));
    assert_eq!((counts(&both), both.intervals.len()), ([2_000, 1_970, 30, 0], 2));
    assert_eq!(both.totals.latency.unwrap().mean_ns, 126_000.0);
}

#[test]
fn damaged_dns_metrics_are_named_with_their_line() {
    let lines: Vec<String> =
        metrics().as_array().unwrap().iter().map(ToString::to_string).collect();
    let error = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
    let text = lines.join("\n");
    assert_eq!(
        error(&text[..text.len() - 1]),
        "line 5: the file is cut: EOF while parsing an object"
    );
    let without_sum = lines[..4].join("\n");
    assert!(error(&without_sum).starts_with("the run that begins in line 1 has no statistics"));
    assert_eq!(
        error(&text.replace("\"queries\":400", "\"queries\":-4")),
        "line 4: `-4` cannot be read as `queries`"
    );
    let unbalanced = error(&text.replace("\"responses\":985", "\"responses\":986"));
    assert!(unbalanced.starts_with("the statistics that begin in line 5 do not add up"));
    assert_eq!(
        error("{\"type\": \"header\"}"),
        "the statistics that begin in line 1 are cut: `runid` is missing"
    );
    assert_eq!(error("[1]"), "line 1: an object of dns-metrics is expected");
    assert!(error("{\"a\" 1}").starts_with("line 1: expected `:`"), "{}", error("{\"a\" 1}"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Whatever becomes of the output of dnsperf, it is refused or makes records that hold together.
    #[test]
    fn damage_is_refused_or_makes_whole_records(
        nth in 0_usize..5,
        changes in prop::collection::vec((any::<u16>(), any::<u8>(), 0_u8..4), 1..4),
    ) {
        let samples = [
            sample!("2.10-udp").to_owned(),
            sample!("2.10-tcp").to_owned(),
            sample!("2.10-interrupted").to_owned(),
            sample!("2.14-doh").to_owned(),
            metrics().to_string(),
        ];
        let mut octets = samples[nth].clone().into_bytes();
        for (place, octet, how) in changes {
            let place = usize::from(place) % octets.len().max(1);
            match how {
                _ if octets.is_empty() => {}
                0 => octets[place] = octet,
                // Digits are where the figures are.
                1 => octets[place] = b'0' + octet % 10,
                2 => octets.insert(place, b'0' + octet % 10),
                _ => drop(octets.drain(place..(place + usize::from(octet)).min(octets.len()))),
            }
        }
        let Ok(runs) = read(&octets) else { return Ok(()) };
        let source = |run| ImportSource {
            variant: "a".to_owned(),
            file: "a.txt".to_owned(),
            run,
        };
        let sources = runs.into_iter().map(source).collect();
        let (session, records) = results_of(ImportFacts::default(), sources);
        for record in &records {
            prop_assert!(record.measured.as_ref().unwrap().counters.outcomes.check().is_ok());
            let text = serde_json::to_string(record).unwrap();
            prop_assert!(serde_json::from_str::<RunRecord>(&text).is_ok());
        }
        prop_assert_eq!(Summary::of(&session, &records).missing_runs, 0);
    }
}
