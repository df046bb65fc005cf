//! The report of whole results directories.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::LazyLock;

use dnslab_figures::Interval;
use dnslab_record::{
    CaseId, Caveat, Compared, CostPart, CpuProfile, CpuProfiles, Evidence, InvalidReason,
    LibrarySamples, LoadMode, Measured, NotProfiled, OpenPace, PROFILE_FORMAT, PartSamples,
    RECORD_FORMAT, RunRecord, RunStatus, SESSION_FORMAT, Session, StackSamples, ThreadShare,
};
use dnslab_report::{ReportError, write_report};
use dnslab_results::{ResultsDirectory, ResultsError};
use dnslab_settings::MAX_VARIANTS;
use dnslab_traffic::Pace;

mod capacity;
mod chain;
mod figures;
mod golden;
mod history;
mod imported;
mod pooled;
mod sample;
mod scaling;
mod schema;
mod screens;
mod session_comparison;
mod shares;
mod sweep;
mod verdicts;

const FILES: [&str; 5] = ["report.html", "summary.json", "runs.csv", "series.csv", "table.md"];

/// Writes a results directory of these runs and its report; returns the files by [`FILES`].
fn report_of(session: &Session, records: &[RunRecord]) -> [String; 5] {
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsDirectory::create(&folder.path().join("results"), session).unwrap();
    for record in records {
        results.write_run(record).unwrap();
    }
    write_report(&results).unwrap();
    read(results.path())
}

fn read(folder: &Path) -> [String; 5] {
    FILES.map(|name| fs::read_to_string(folder.join(name)).unwrap())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The planned runs of a session, each valid, with a window of 1 s.
fn runs_of(session: &Session) -> Vec<RunRecord> {
    let cases = (0..).zip(&session.plan);
    cases
        .map(|(position, case)| {
            sample::run(sample::Behaviour::of(case), case.repetition, position, 1_000_000_000)
        })
        .collect()
}

#[test]
fn the_same_directory_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let results = sample::write(&folder.path().join("results")).unwrap();
    write_report(&results).unwrap();
    let first = read(results.path());
    for name in FILES {
        fs::remove_file(results.path().join(name)).unwrap();
    }
    write_report(&results).unwrap();
    for (place, again) in read(results.path()).iter().enumerate() {
        assert!(first[place] == *again, "{} differs", FILES[place]);
    }
    // A copy elsewhere is the same directory: no path is in the report.
    assert!(!first[0].contains(folder.path().to_str().unwrap()));
}

#[test]
fn a_newer_format_is_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let results = sample::write(&folder.path().join("results")).unwrap();
    for (name, format) in
        [("runs/udp-1/record.json", RECORD_FORMAT), ("session.json", SESSION_FORMAT)]
    {
        let path = results.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        let newer = text.replacen(&format!("\"format\": {format}"), "\"format\": 99", 1);
        fs::write(&path, newer).unwrap();
        let error = write_report(&results).unwrap_err();
        let ReportError::Results(ResultsError::Newer { path: named, found, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!((named, found), (path.clone(), 99));
        fs::write(&path, text).unwrap();
    }
    write_report(&results).unwrap();
}

/// A profile of a sample's variant: of `samples` samples, so many are of TLS.
fn profile(variant: &str, samples: u64, of_tls: u64, function: &str) -> CpuProfile {
    let counts = [
        (CostPart::KernelNetwork, "kernel", samples - of_tls),
        (CostPart::Tls, "libssl.so.3", of_tls),
    ];
    let counts = || counts.into_iter().filter(|(_, _, count)| *count > 0);
    CpuProfile {
        variant: variant.to_owned(),
        sampler: "perf 6.1, event cpu-clock".to_owned(),
        rate_hz: 997,
        samples,
        kernel_symbols: true,
        answered_qps: 100_000.0,
        cpu_per_query_ns: 7_000.0,
        parts: counts().map(|(part, _, samples)| PartSamples { part, samples }).collect(),
        libraries: counts()
            .map(|(part, library, samples)| {
                let library = library.to_owned();
                LibrarySamples { part, library, samples }
            })
            .collect(),
        names: ["kernel", "libssl.so.3", function].map(str::to_owned).to_vec(),
        stacks: counts()
            .map(|(part, _, samples)| {
                let library = u32::from(part == CostPart::Tls);
                StackSamples { part, frames: vec![library, 2], samples }
            })
            .collect(),
        ..CpuProfile::default()
    }
}

#[test]
fn a_profile_is_told_drawn_and_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let session = sample::session(5);
    let results = ResultsDirectory::create(&folder.path().join("results"), &session).unwrap();
    for record in runs_of(&session) {
        results.write_run(&record).unwrap();
    }
    let function = "</title><script>alert(1)</script>\u{202e}";
    let failed = NotProfiled { variant: "tcp".to_owned(), reason: "perf is busy".to_owned() };
    let profiles = CpuProfiles {
        format: PROFILE_FORMAT,
        profiles: vec![profile("udp", 9_000, 0, "f"), profile("dot", 9_000, 3_000, function)],
        failed: vec![failed],
    };
    results.write_cpu_profiles(&profiles).unwrap();
    write_report(&results).unwrap();
    let [page, summary, _, _, table] = read(results.path());
    assert!(page.contains("us are TLS and cryptography"), "{table}");
    assert!(table.contains("us are TLS and cryptography"), "{table}");
    assert!(table.contains("tcp was not sampled: perf is busy."), "{table}");
    assert!(page.contains("Flame graph of dot against udp"));
    assert!(!page.contains("<script>alert") && !page.contains('\u{202e}'));
    assert!(!page.contains("style=\""), "the policy of the page stops such styles");
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let dot = &summary["cpu"]["variants"][1];
    let parts = dot["parts"].as_array().unwrap();
    let sum: f64 = parts.iter().map(|part| part["ns"]["value"].as_f64().unwrap()).sum();
    let whole = dot["cpu_per_query_ns"]["value"].as_f64().unwrap();
    assert!((sum / whole - 1.0).abs() < 1e-9, "{sum} {whole}");
    let csv = fs::read_to_string(results.path().join("cpu.csv")).unwrap();
    assert!(csv.contains("\ndot,tls,3000,0.333"), "{csv}");
}

#[test]
fn a_table_of_an_earlier_report_does_not_stay() {
    let folder = tempfile::tempdir().unwrap();
    let session = sample::session(2);
    let results = ResultsDirectory::create(&folder.path().join("results"), &session).unwrap();
    let optional =
        ["chain.csv", "resources.csv", "windows.csv", "answers.csv", "cpu.csv", "capacity.csv"];
    for name in optional {
        fs::write(results.path().join(name), "of before").unwrap();
    }
    write_report(&results).unwrap();
    for name in optional {
        assert!(!results.path().join(name).exists(), "{name} is still there");
    }
}

#[test]
fn a_directory_without_a_run_has_a_report() {
    let session = sample::session(2);
    let [page, _, runs, series, table] = report_of(&session, &[]);
    assert!(page.contains("No run has ended yet"));
    assert!(page.contains("<td>not run</td>"));
    assert_eq!((runs.lines().count(), series.lines().count()), (1, 1));
    assert!(table.contains("| udp [a] | - |"), "{table}");
}

#[test]
fn a_variant_with_failed_runs_only_is_shown_and_not_compared() {
    let session = sample::session(2);
    let mut records = runs_of(&session);
    for record in records.iter_mut().filter(|record| record.variant == "dot") {
        sample::fail(record);
    }
    let [page, summary, runs, _, table] = report_of(&session, &records);
    assert!(page.contains("No run of this variant is valid"));
    assert!(table.contains("| dot | no valid run |"), "{table}");
    assert!(table.contains("- dot: 0 of 2 runs count: named exited with status 1"), "{table}");
    assert!(!table.contains("dot answers"), "{table}");
    assert!(table.contains("Whether tcp differs from udp"), "{table}");
    assert_eq!(runs.matches(",failed,named exited with status 1").count(), 2);
    assert!(serde_json::from_str::<serde_json::Value>(&summary).is_ok());
}

/// Of a report that compares these pairs: the title of the differences, the label of none, and whether the title is
/// in the heading of the table.
fn differences_of(pairs: &[[&str; 2]]) -> (String, String, bool) {
    let compared = pairs.iter().map(|pair| {
        let [variant, against] = pair.map(str::to_owned);
        Compared { variant, against }
    });
    let session = Session { compared: compared.collect(), ..sample::session(3) };
    let [page, ..] = report_of(&session, &runs_of(&session));
    let section = between(&page, "<section id=\"differences\">", "</section>");
    let title = between(section, "<h2>", "</h2>").to_owned();
    let zero = between(section, "<line class=\"zero\"", "</text>");
    let is_in_table = between(section, "<table", "</thead>").contains(&title.to_lowercase());
    (title, zero.rsplit('>').next().unwrap().to_owned(), is_in_table)
}

#[test]
fn a_difference_is_from_what_it_was_compared_with() {
    let (title, zero, is_in_table) = differences_of(&[["tcp", "udp"], ["dot", "udp"]]);
    assert_eq!((title.as_str(), zero.as_str()), ("Difference from udp", "udp"));
    assert!(is_in_table);
    // It was "from udp", the baseline of the session.
    let (title, zero, is_in_table) = differences_of(&[["udp", "dot"], ["tcp", "dot"]]);
    assert_eq!((title.as_str(), zero.as_str()), ("Difference from dot", "dot"));
    assert!(is_in_table);
    let (title, zero, _) = differences_of(&[["tcp", "udp"], ["dot", "tcp"]]);
    assert_eq!(title, "Difference from what each is compared with");
    assert_eq!(zero.replace('\u{a0}', " "), "0 %");
}

#[test]
fn a_picture_without_its_page_says_what_was_measured_where_and_when() {
    let session = sample::session(2);
    let [page, ..] = report_of(&session, &runs_of(&session));
    let origin = between(&page, "data-origin=\"", "\"");
    assert_eq!(origin, "BIND 9.18.0, 1 CPU \u{b7} synthetic, 2 cores \u{b7} 2026-01-02");
}

#[test]
fn a_failed_baseline_gives_no_answer() {
    let session = sample::session(1);
    let mut records = runs_of(&session);
    records.iter_mut().filter(|record| record.variant == "udp").for_each(sample::fail);
    let [page, ..] = report_of(&session, &records);
    assert!(page.contains("No answer: no run of udp, the reference, counts."));
}

#[test]
fn one_run_of_each_gives_no_interval() {
    let session = sample::session(1);
    let [page, summary, _, _, table] = report_of(&session, &runs_of(&session));
    assert!(table.contains("one round is too few"), "{table}");
    assert!(!table.contains("inf"), "{table}");
    assert!(!table.contains("NaN"), "{table}");
    assert!(page.contains("One valid run only"));
    assert!(serde_json::from_str::<serde_json::Value>(&summary).is_ok());
}

#[test]
fn an_invalid_run_is_in_no_figure() {
    let session = sample::session(2);
    let good = runs_of(&session);
    let mut records = good.clone();
    let wrong = records.iter_mut().find(|record| record.variant == "dot").unwrap();
    wrong.status = RunStatus::Invalid {
        reason: InvalidReason::Malformed {
            malformed: 1,
            checked: 2,
            limit: 0.0,
            example: "wrong, \"very\"\nwrong".to_owned(),
        },
    };
    wrong
        .measured
        .as_mut()
        .unwrap()
        .intervals
        .iter_mut()
        .for_each(|interval| interval.answered = 77_777_777);
    let [page, _, runs, ..] = report_of(&session, &records);
    assert!(runs.contains(": wrong, \"\"very\"\"\nwrong\","), "{runs}");
    assert!(page.contains("1 run is invalid or failed"));
    // Nor in a chart: 77,777,777 answers in 0.1 s are 777,777,770 queries per second.
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(!data.contains("77777"), "the invalid run is in the chart data");
    assert!(report_of(&session, &good)[0] != page);
}

/// Where no run of a variant counts, the figures of the invalid ones are shown as such, and compared with nothing.
#[test]
fn invalid_runs_alone_are_shown_as_such() {
    let session = sample::session(2);
    let mut records = runs_of(&session);
    for record in records.iter_mut().filter(|record| record.variant == "dot") {
        record.status =
            RunStatus::Invalid { reason: InvalidReason::Late { p99_ns: 2, limit_ns: 1 } };
    }
    let [page, summary, _, _, table] = report_of(&session, &records);
    assert!(table.contains("| dot | INVALID "), "{table}");
    assert!(table.contains("| dot (INVALID) ["), "{table}");
    assert!(page.contains("dot (INVALID)"));
    assert!(page.contains("those of invalid runs, to be seen and not to be used"));
    assert!(table.contains("Whether tcp differs from udp"), "{table}");
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let is_dot = |variant: &&serde_json::Value| variant["name"] == "dot";
    let dot = summary["variants"].as_array().unwrap().iter().find(is_dot).unwrap();
    assert_eq!((&dot["valid_runs"], &dot["of_invalid"]["valid_runs"]), (&0.into(), &2.into()));
    assert!(dot["metrics"].as_object().unwrap().is_empty(), "{dot}");
    let comparisons = summary["comparisons"].as_array().unwrap();
    assert!(comparisons.iter().all(|comparison| comparison["variant"] != "dot"), "{comparisons:?}");
}

/// The field of the first run of `runs.csv` under a heading.
fn first_field<'a>(runs: &'a str, heading: &str) -> &'a str {
    let mut lines = runs.lines().map(|line| line.split(','));
    let place = lines.next().unwrap().position(|name| name == heading).unwrap();
    lines.next().unwrap().nth(place).unwrap()
}

#[test]
fn an_open_loop_is_told_by_the_cpu_time_that_it_takes() {
    let session = sample::session(3);
    let mut records = runs_of(&session);
    for record in &mut records {
        record.measured.as_mut().unwrap().send_lag.record_ns(5_000);
    }
    let [page, _, runs, ..] = report_of(&session, &records);
    assert!(page.contains(">Answered queries per second<"), "the chart of a closed loop");
    assert_eq!(first_field(&runs, "send_lag_max_ns"), "", "a closed loop has no lag");
    for record in records.iter_mut().filter(|record| record.variant == "udp") {
        record.load.mode =
            LoadMode::Open { rate_qps: 150_000.0, pace: OpenPace::constant(Pace::Constant) };
        let outcomes = &mut record.measured.as_mut().unwrap().counters.outcomes;
        outcomes.timed_out += outcomes.answered / 4;
        outcomes.answered -= outcomes.answered / 4;
    }
    records.sort_by_key(|record| record.variant != "udp");
    (0..).zip(&mut records).for_each(|(position, record)| record.position = position);
    let [page, _, runs, _, table] = report_of(&session, &records);
    let title = ">CPU time of the server per query<";
    assert!(page.contains(title), "the chart of an open loop");
    assert!(table.contains("| 25.0 % |"), "and what was lost: {table}");
    assert_ne!(first_field(&runs, "send_lag_max_ns"), "");
}

#[test]
fn figures_of_the_server_are_those_of_the_window() {
    let session = sample::session(1);
    let mut records = runs_of(&session);
    let resources = &mut records[0].watched.resources;
    for (at, sample) in (0..).zip(&mut resources.samples) {
        // Ten of each in a sample's 0.1 s: the window of 1 s has a hundred, the whole load more.
        (sample.udp_drops, sample.steal_ns) = (10 * at, 10 * at);
    }
    let [_, _, runs, ..] = report_of(&session, &records);
    for (heading, expected) in
        [("server_udp_drops", "100"), ("steal_ns", "100"), ("server_context_switches", "9000")]
    {
        assert_eq!(first_field(&runs, heading), expected, "{heading}");
    }
}

#[test]
fn a_caveat_of_some_runs_says_of_how_many() {
    let session = sample::session(3);
    let [page, _, _, _, table] = report_of(&session, &runs_of(&session));
    assert!(table.contains("(in 1 of 3 runs)"), "{table}");
    assert!(table.contains("Self-check: doubtful in 1 of 3 runs."), "{table}");
    assert!(page.contains("; in 1 of 3 runs)"));
    assert!(!table.contains("(in 3 of 3 runs)"), "{table}");
}

/// The report of the sample of an open loop, made once.
static OPEN_LOOP: LazyLock<[String; 5]> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let results = sample::open::write(&folder.path().join("results"), 1_000_000_000).unwrap();
    write_report(&results).unwrap();
    read(results.path())
});

fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let rest = page.split_once(from).unwrap_or_else(|| panic!("no {from} in the page")).1;
    rest.split_once(to).unwrap_or_else(|| panic!("no {to} after {from}")).0
}

/// The content of the cells of a table row that has this text in it, without markup.
fn cells(section: &str, text: &str) -> Vec<String> {
    let row = section.split("<tr>").find(|row| row.contains(text)).unwrap();
    row.split("</td>").flat_map(|part| part.split("</th>")).map(without_markup).collect()
}

fn without_markup(html: &str) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for letter in html.chars() {
        match letter {
            '<' => inside = true,
            '>' if inside => (inside, kept) = (false, kept + " "),
            _ if !inside => kept.push(letter),
            _ => {}
        }
    }
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_variant_has_the_verdict_of_its_self_check() {
    let [page, summary, runs, _, table] = &*OPEN_LOOP;
    let section = between(page, "<section id=\"self-check\">", "</section>");
    for (variants, verdict) in
        [("udp and doh2", "clean"), ("doq", "doubtful"), ("doh3", "generator-limited")]
    {
        let sentence = format!("<span class=\"verdict {verdict}\">{verdict}</span> ({variants})");
        assert!(section.contains(&sentence), "no {sentence} in {section}");
    }
    for note in [
        "<b>doq:</b> The hypervisor kept time from this machine",
        "<b>doh3:</b> The load generator had no CPU left",
    ] {
        assert_eq!(section.matches(note).count(), 1, "{note} in {section}");
    }
    assert!(section.contains("<code>load.workers</code>"), "{section}");
    // The verdict stands beside the figure, and every run has its own.
    let variants = between(page, "<table class=\"variants\">", "</table>");
    assert_eq!(variants.matches("href=\"#self-check\"").count(), 2);
    let all_runs = between(page, "<table class=\"runs\">", "</table>");
    for (verdict, count) in [("clean", 4), ("doubtful", 1), ("generator-limited", 2)] {
        let marked = format!("<span class=\"verdict {verdict}\">");
        assert_eq!(all_runs.matches(&marked).count(), count, "{verdict}");
    }
    assert!(table.contains("Self-check: generator-limited.  "), "{table}");
    assert!(!table.contains("Self-check: clean"), "{table}");
    let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
    assert_eq!(summary["variants"][3]["self_check"]["generator_limited"], 2);
    let finding = &summary["variants"][3]["self_check"]["findings"][0]["finding"];
    assert_eq!(finding["caveat"]["busy_share"], 0.99);
    assert_eq!(runs.matches(",clean,").count(), 4);
    assert_eq!(runs.matches(",generator-limited,\"The load generator").count(), 2);
}

#[test]
fn an_open_loop_shows_its_pacing_and_a_closed_one_has_none() {
    let [page, _, runs, ..] = &*OPEN_LOOP;
    let section = between(page, "<section id=\"pacing\">", "</section>");
    assert_eq!(section.matches("<td>10 ms</td><td>200</td><td>200</td>").count(), 3);
    // One run of doq counts.
    assert_eq!(section.matches("<td>10 ms</td><td>100</td><td>200</td>").count(), 1);
    assert_eq!(section.matches("<td>1 s</td>").count(), 4);
    let lags = between(section, "aria-label=\"Send lag\"", "</table>");
    assert_eq!(lags.matches("<tr><th scope=\"rowgroup\"").count(), 4);
    assert_eq!(first_field(runs, "pacing_10ms_windows"), "100");
    assert_ne!(first_field(runs, "pacing_1ms_max_error"), "");
    let session = sample::session(1);
    let [page, _, runs, ..] = report_of(&session, &runs_of(&session));
    assert!(!page.contains("id=\"pacing\""));
    assert_eq!(first_field(&runs, "pacing_10ms_windows"), "");
}

#[test]
fn connect_and_each_kind_of_handshake_are_figures_of_their_own() {
    let [page, _, runs, ..] = &*OPEN_LOOP;
    let section = between(page, "<section id=\"connections\">", "</section>");
    let cells = |name: &str| cells(section, name);
    assert!(!section.contains(">udp<"), "there are no connections over UDP");
    let doh2 = cells(">doh2<");
    assert_eq!(doh2[1..8], ["DoH (HTTP/2)", "1,400", "4", "0", "0", "1,384", "14"]);
    assert!(doh2[8].ends_with("1,400 times") && doh2[9].ends_with("400 times"), "{doh2:?}");
    assert!(doh2[10].ends_with("1,000 times") && doh2[11] == "-", "{doh2:?}");
    let doq = cells(">doq<");
    assert_eq!((doq[1].as_str(), doq[8].as_str()), ("DoQ", "-"), "QUIC connects by its handshake");
    assert!(doq[10].ends_with("240 times") && doq[11].ends_with("260 times"), "{doq:?}");
    assert_eq!(cells(">doh3<")[1], "DoH (HTTP/3)");
    assert!(section.contains("doh2: 6 TCP segments sent again"), "{section}");
    for heading in ["connect_p50_ns", "full_handshake_p50_ns", "resumed_handshake_p99_ns"] {
        assert_eq!(first_field(runs, heading), "", "{heading} of udp");
    }
}

#[test]
fn queries_that_were_refused_or_sent_twice_are_told() {
    let [page, _, runs, _, table] = &*OPEN_LOOP;
    for text in ["24 queries were refused one by one", "82 queries were sent a second time"] {
        assert!(table.contains(text), "{table}");
        assert!(page.contains(text));
    }
    assert_eq!((first_field(runs, "asked_again"), first_field(runs, "refused")), ("41", "0"));
    let section = between(page, "<section id=\"outcomes\">", "</section>");
    let refused = cells(section, ">due<").iter().position(|cell| cell == "refused").unwrap();
    assert!(cells(section, ">doh2<")[refused].starts_with("24 "), "{section}");
    assert_eq!(cells(section, ">udp<")[refused], "-");
}

#[test]
fn how_many_answers_were_checked_in_full_is_told() {
    let session = sample::session(1);
    let mut records = runs_of(&session);
    const SAID: &str = "Checked in full, with every record: ";
    assert!(!report_of(&session, &records)[0].contains(SAID), "older records do not say it");
    let mut answered = 0;
    for record in &mut records {
        let Some(measured) = &mut record.measured else { continue };
        let answers = &mut measured.counters.answers;
        (answers.checked, answers.malformed) = (600, 1);
        answered += answers.rcodes.values().sum::<u64>();
    }
    let count = u64::try_from(records.len()).unwrap();
    let [checked, answered, malformed] =
        [600 * count, answered, count].map(dnslab_report::number::count);
    let page = &report_of(&session, &records)[0];
    let said =
        format!("{SAID}{checked} of {answered} answers; {malformed} of them were malformed.");
    assert!(page.contains(&said), "{said}: {:?}", page.find(SAID).map(|at| &page[at..at + 120]));
}

#[test]
fn names_from_outside_cannot_leave_their_place() {
    // The name of a variant is that of a folder.
    const NAME: &str = "<!--<b>|,\"";
    let mut session = sample::session(2);
    session.question = "</title><script>alert(1)</script>".to_owned();
    let mut records = runs_of(&session);
    session.variants.iter_mut().filter(|name| *name == "dot").for_each(|name| *name = NAME.into());
    for case in session.plan.iter_mut().filter(|case| case.variant == "dot") {
        case.variant = NAME.to_owned();
    }
    for record in records.iter_mut().filter(|record| record.variant == "dot") {
        record.variant = NAME.to_owned();
    }
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsDirectory::create(&folder.path().join("results"), &session).unwrap();
    for record in &records {
        results.write_run(record).unwrap();
    }
    write_report(&results).unwrap();
    let [page, _, runs, _, table] = read(results.path());
    assert_eq!(page.matches("</script>").count(), 2, "the data block's and the bundle's");
    assert!(!page.contains("<b>|"), "the name opened an element");
    assert!(!page.contains("<script>alert"), "the question opened an element");
    assert!(page.contains("\\u003c!--\\u003cb>|,"), "the name is in the chart data");
    assert!(table.contains("&lt;!--&lt;b>\\|,\""), "{table}");
    assert!(runs.contains("\n\"<!--<b>|,\"\"\",1,"), "{runs}");
}

#[test]
fn what_others_wrote_acts_on_no_terminal_and_in_no_spreadsheet() {
    const WRITTEN: &str = "=1+1 \u{1b}[2J\u{9b}31m\u{7f}\u{202e}\r";
    let mut session = sample::session(2);
    session.question = WRITTEN.to_owned();
    session.dnslab = WRITTEN.to_owned();
    session.host.iter_mut().for_each(|fact| fact.value = WRITTEN.to_owned());
    let mut records = runs_of(&session);
    for record in &mut records {
        record.server.version = WRITTEN.to_owned();
        record.server.notes.push(WRITTEN.to_owned());
        record.bottleneck.evidence = vec![Evidence::ServerThread {
            role: WRITTEN.to_owned(),
            thread: ThreadShare { name: WRITTEN.to_owned(), share: 0.9 },
            next: None,
        }];
    }
    let log_tail = vec![WRITTEN.to_owned()];
    records[0].status = RunStatus::Failed { reason: WRITTEN.to_owned(), log_tail };
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsDirectory::create(&folder.path().join("results"), &session).unwrap();
    for record in &records {
        results.write_run(record).unwrap();
    }
    let server = results.run_path(&session.plan[0]).join("server");
    fs::create_dir(&server).unwrap();
    fs::write(server.join("server.log"), WRITTEN).unwrap();
    write_report(&results).unwrap();
    for (name, text) in FILES.iter().zip(read(results.path())) {
        let acts = |one: char| one.is_control() && one != '\n' || one == '\u{202e}';
        // The script may have a tab of its own.
        let found = text.replace('\t', "").matches(acts).count();
        assert_eq!(found, 0, "{name}");
        if name.ends_with(".csv") {
            assert!(!text.contains(",=") && !text.contains("\"="), "{name}");
        }
    }
    let [page, summary, runs, ..] = read(results.path());
    assert!(
        page.contains("<pre tabindex=\"0\">=1+1 \\u{1b}[2J\\u{9b}31m\\u{7f}\\u{202e}\\r</pre>")
    );
    assert!(runs.contains(",'=1+1 \\u{1b}[2J"), "{runs}");
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["question"], WRITTEN);
}

#[test]
fn a_record_in_another_run_s_place_is_refused_by_name() {
    let session = sample::session(2);
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsDirectory::create(&folder.path().join("results"), &session).unwrap();
    for record in runs_of(&session) {
        results.write_run(&record).unwrap();
    }
    let at = |name: &str| results.path().join("runs").join(name).join("record.json");
    fs::copy(at("udp-1"), at("tcp-2")).unwrap();
    let error = write_report(&results).unwrap_err().to_string();
    let expected = format!("{} is the record of run udp-1, not of this one", at("tcp-2").display());
    assert!(error.starts_with(&expected) && error.contains("rm -r '"), "{error}");
}

#[test]
fn the_size_of_a_record_is_bounded() {
    let session = sample::session(2);
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsDirectory::create(&folder.path().join("results"), &session).unwrap();
    for record in runs_of(&session) {
        results.write_run(&record).unwrap();
    }
    write_report(&results).unwrap();
    // Nothing of it is on the disk.
    let second = results.run_path(&session.plan[1]).join("record.json");
    fs::File::create(&second).unwrap().set_len(1 << 30).unwrap();
    let error = write_report(&results).unwrap_err().to_string();
    let expected = format!(
        "{} has 1073741824 octets, of which dnslab reads up to 536870912",
        second.display()
    );
    assert!(error.starts_with(&expected), "{error}");
}

/// Why there is no report of a changed run of the chain.
fn refusal(record: &RunRecord, change: &dyn Fn(&mut RunRecord)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let session = sample::chain::session();
    let results = ResultsDirectory::create(&folder.path().join("results"), &session).unwrap();
    let mut record = record.clone();
    change(&mut record);
    results.write_run(&record).unwrap();
    write_report(&results).unwrap_err().to_string()
}

#[test]
fn lists_of_a_record_are_bounded() {
    let check = |change: &dyn Fn(&mut RunRecord), expected: &str| {
        let error = refusal(&chain::RECORDS[0], change);
        assert!(error.contains("record.json has ") && error.contains(expected), "{error}");
    };
    check(
        &|record| record.watched.chain = vec![record.watched.chain[0].clone(); 17],
        "17 servers in its chain; dnslab reads up to 16",
    );
    check(
        &|record| record.caveats = vec![Caveat::CertificateNotVerified; 1_001],
        "1001 caveats; dnslab reads up to 1000",
    );
    fn measured(record: &mut RunRecord) -> &mut Measured {
        record.measured.as_mut().unwrap()
    }
    check(
        &|record| record.watched.resources.core_cpus = (0..33).collect(),
        "33 CPUs; dnslab reads up to 32",
    );
    check(
        &|record| record.watched.chain[0].resources.core_cpus = (0..33).collect(),
        "33 CPUs; dnslab reads up to 32",
    );
    check(
        &|record| measured(record).intervals = vec![Interval::default(); 1_001],
        "1001 intervals; dnslab reads up to 1000",
    );
    check(&|record| measured(record).window_ns = u64::MAX, " nanoseconds of load; ");
    check(&|record| measured(record).intervals[0].at_ns = u64::MAX, " nanoseconds of load; ");
    let early = |at_ns: &mut i64| *at_ns = i64::MIN;
    let between = " nanoseconds between a sample and the load; ";
    check(&|record| early(&mut record.watched.resources.samples[0].at_ns), between);
    check(&|record| early(&mut record.watched.chain[0].resources.samples[0].at_ns), between);
}

#[test]
fn samples_in_another_order_are_refused() {
    let counted = chain::RECORDS.iter().find(|record| record.variant == "unbound-dot").unwrap();
    let check = |change: &dyn Fn(&mut RunRecord), what: &str| {
        let error = refusal(counted, change);
        let expected = format!("record.json: the samples of the {what} are not in order of time");
        assert!(error.contains(&expected), "{error}");
    };
    check(&|record| record.watched.resources.samples.swap(0, 1), "resources");
    check(&|record| record.watched.chain[0].resources.samples.swap(0, 1), "resources");
    check(
        &|record| {
            record.watched.counters.as_mut().unwrap().samples.reverse();
        },
        "server's own counters",
    );
    check(
        &|record| {
            let counters = record.watched.chain.iter_mut().find_map(|part| part.counters.as_mut());
            counters.unwrap().samples.reverse();
        },
        "server's own counters",
    );
}

#[test]
fn the_report_of_a_stranger_s_directory_stays_inside_it() {
    let folder = tempfile::tempdir().unwrap();
    let results = sample::write(&folder.path().join("results")).unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "do not show").unwrap();
    for name in FILES {
        symlink(&secret, results.path().join(name)).unwrap();
        symlink(&secret, results.path().join(format!("{name}.part"))).unwrap();
    }
    let server = results.path().join("runs/udp-1/server");
    symlink(&secret, server.join("server.log")).unwrap();
    write_report(&results).unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "do not show");
    for (name, text) in FILES.iter().zip(read(results.path())) {
        assert!(!text.contains("do not show"), "{name}");
        assert!(fs::symlink_metadata(results.path().join(name)).unwrap().is_file(), "{name}");
    }
    assert!(read(results.path())[0].contains("not shown: it is a symbolic link"));
    // The whole folder, and the record.
    let elsewhere = folder.path().join("elsewhere");
    for name in ["runs/udp-1/server", "runs/udp-1/record.json", "runs"] {
        let path = results.path().join(name);
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        let error = write_report(&results).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} is a symbolic link", path.display())), "{error}");
        fs::remove_file(&path).unwrap();
        fs::rename(&elsewhere, &path).unwrap();
    }
    write_report(&results).unwrap();
}

#[test]
fn a_page_says_which_files_it_has_no_space_for() {
    let folder = tempfile::tempdir().unwrap();
    let results = sample::write(&folder.path().join("results")).unwrap();
    let plan = results.session().unwrap().plan;
    // Each octet is shown as six.
    let log = "\u{1b}".repeat(64 * 1024);
    for case in &plan[..7] {
        for number in 0..32 {
            let path = results.run_path(case).join(format!("server/{number:02}.log"));
            fs::write(path, &log).unwrap();
        }
    }
    write_report(&results).unwrap();
    let page = fs::read_to_string(results.path().join("report.html")).unwrap();
    assert!(page.len() < 66 << 20, "{}", page.len());
    let missing = format!("From run {} on, in the order of execution,", plan[5].folder());
    assert_eq!(page.matches(&missing).count(), 1);
}

#[test]
fn as_many_variants_as_may_be_are_reported() {
    const MEASURED: usize = 20;
    let mut session = sample::session(1);
    let template = runs_of(&session).swap_remove(0);
    session.variants = (0..MAX_VARIANTS).map(|number| format!("v{number}")).collect();
    session.baseline = "v0".to_owned();
    session.skipped.clear();
    let case = |variant: &String| CaseId { variant: variant.clone(), repetition: 1 };
    session.plan = session.variants.iter().map(case).collect();
    let records: Vec<RunRecord> = (0..)
        .zip(&session.variants[..MEASURED])
        .map(|(position, variant)| {
            let variant = variant.clone();
            RunRecord { variant, position, repetition: 1, ..template.clone() }
        })
        .collect();
    let [page, _, runs, ..] = report_of(&session, &records);
    assert_eq!(runs.lines().count(), 1 + MEASURED);
    assert!(page.contains(">v1<") && page.contains(">v999<"));
}

#[test]
fn a_plan_that_contradicts_the_variants_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = sample::session(1);
    session.variants.retain(|name| name != "dot");
    let results = ResultsDirectory::create(&folder.path().join("results"), &session).unwrap();
    let error = write_report(&results).unwrap_err();
    assert!(error.to_string().contains("`dot`"), "{error}");
}

#[test]
fn each_figure_and_each_note_stands_once() {
    let session = sample::session(3);
    let [page, _, _, _, table] = report_of(&session, &runs_of(&session));
    assert!(!page.contains("In words") && !page.contains(": costs"), "{page}");
    assert!(table.contains("of CPU for a query"), "{table}");
    let notes = between(&page, "<ul class=\"notes\">", "</ul>");
    let closed = "A closed loop waits when the server stalls";
    assert_eq!(
        (page.matches(closed).count(), notes.matches(closed).count()),
        (1 + 9, 1),
        "{notes}"
    );
    assert!(notes.contains("<b>all variants:</b> A closed loop"), "{notes}");
    // The first view: the answer and two charts for each width, then what is collapsed.
    let first = between(&page, "<section class=\"first\">", "</section>");
    assert_eq!(first.matches("<svg class=\"picture ").count(), 4);
    let figures = between(&page, "<section id=\"figures\">", "</section>");
    assert!(figures.starts_with("\n<details><summary>"), "{figures}");
}

#[test]
fn the_policy_of_the_page_allows_nothing_from_outside() {
    let session = sample::session(1);
    let [page, ..] = report_of(&session, &runs_of(&session));
    let policy = page.split("http-equiv=\"Content-Security-Policy\" content=\"").nth(1).unwrap();
    let policy = policy.split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(!page.contains(" style=\""), "the policy would refuse it");
    assert!(!page.contains(" src="), "the page loads something");
}
