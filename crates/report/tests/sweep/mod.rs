//! The report of servers under loads of several sizes, with time windows and response codes over time.

use std::fs;
use std::sync::LazyLock;

use dnslab_record::{InvalidReason, RunRecord, RunStatus};
use dnslab_report::write_report;
use serde_json::Value;

use super::{between, cells, report_of, runs_of, sample};

/// The files of the sample by the names in [`files`], made once.
static STUDY: LazyLock<[String; 5]> = LazyLock::new(|| {
    let session = sample::sweep::session(3);
    files(&sample::sweep::records(&session))
});

/// Page, `windows.csv`, `series.csv`, `table.md` and `summary.json` of these runs.
fn files(records: &[RunRecord]) -> [String; 5] {
    let folder = tempfile::tempdir().unwrap();
    let session = sample::sweep::session(3);
    let results = sample::sweep::write(&folder.path().join("results"), &session, records).unwrap();
    write_report(&results).unwrap();
    ["report.html", "windows.csv", "series.csv", "table.md", "summary.json"]
        .map(|name| fs::read_to_string(results.path().join(name)).unwrap())
}

/// What the script of the page draws.
fn data(page: &str) -> Value {
    let json = between(page, "id=\"data\">", "</script>");
    serde_json::from_str(&json.replace("\\u003c", "<")).unwrap()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn many_variants_are_drawn_by_their_loads() {
    let data = data(&STUDY[0]);
    let groups = data["groups"].as_array().unwrap();
    let titles: Vec<&str> = groups.iter().map(|group| group["name"].as_str().unwrap()).collect();
    let loads =
        ["1,000", "5,000", "10,000", "15,000"].map(|qps| format!("{qps} queries per second"));
    assert_eq!(titles, loads);
    for group in groups {
        assert_eq!(names(&group["labels"]), ["bind-9-16", "bind-9-18", "bind-9-20"]);
        // A server has one colour, whatever its load.
        let members = group["members"].as_array().unwrap().iter();
        let slots: Vec<&Value> =
            members.map(|place| &data["slots"][place.as_u64().unwrap() as usize]).collect();
        assert_eq!(slots, [0, 1, 2]);
    }
    assert!(data["baseline"].is_null(), "another load says nothing beside this one");
    let scope = between(&STUDY[0], "<p class=\"scope\">", "</p>");
    assert!(scope.contains("clients, 1,000 to 15,000 queries/s"), "{scope}");
}

/// Names with the numbers of their colours.
type Hues = Vec<(String, u64)>;

/// The colours of the servers' lines over the load and those of their variants, where the study has these only.
fn hues(servers: &[&str], loads: &[&str]) -> (Hues, Hues) {
    let mut session = sample::sweep::session(2);
    let is_in = |name: &str| {
        servers.iter().any(|server| name.starts_with(server))
            && loads.iter().any(|load| name.ends_with(load))
    };
    session.variants.retain(|name| is_in(name));
    session.plan.retain(|case| is_in(&case.variant));
    session.compared.retain(|pair| is_in(&pair.variant) && is_in(&pair.against));
    session.sweeps.iter_mut().for_each(|sweep| sweep.variants.retain(|name| is_in(name)));
    session.sweeps.retain(|sweep| !sweep.variants.is_empty());
    let records = sample::sweep::records(&session);
    let [page, ..] = report_of(&session, &records);
    let data = data(&page);
    let lines = data["sweep"]["lines"].as_array().unwrap();
    let lines: Hues = lines
        .iter()
        .map(|line| (line["name"].as_str().unwrap().to_owned(), line["slot"].as_u64().unwrap()))
        .collect();
    let slots = data["slots"].as_array().unwrap().iter().map(|slot| slot.as_u64().unwrap());
    let slots: Hues = session.variants.iter().cloned().zip(slots).collect();
    (lines, slots)
}

#[test]
fn a_server_has_one_colour_in_all_charts() {
    // Few variants: each had a colour of its own, and its server another one over the load.
    let (lines, slots) = hues(&["bind-9-18", "bind-9-20"], &["-x1", "-x5"]);
    assert_eq!((lines.len(), slots.len()), (2, 4));
    for (variant, slot) in &slots {
        let (_, hue) = lines.iter().find(|(name, _)| variant.starts_with(name)).unwrap();
        assert_eq!(slot, hue, "{variant}");
    }
    // The loads of one server are told apart, and none of them is the line.
    let (lines, slots) = hues(&["bind-9-18"], &["-x1", "-x5", "-x10"]);
    assert_eq!((lines[0].1, slots.iter().map(|slot| slot.1).collect()), (3, vec![0, 1, 2]));
}

#[test]
fn where_a_server_breaks_is_said_and_marked() {
    let section = between(&STUDY[0], "<section class=\"charts\" id=\"sweep\">", "</section>");
    let sentences = [
        "bind-9-16 breaks between 1,000 and 5,000 queries per second.",
        "bind-9-18 breaks between 5,000 and 10,000 queries per second.",
        "bind-9-20 holds 15,000 queries per second, the highest load.",
    ];
    for sentence in sentences {
        assert!(section.contains(sentence), "{sentence}: {section}");
        assert!(STUDY[3].contains(sentence), "{sentence}: {}", STUDY[3]);
    }
    let sweep = &data(&STUDY[0])["sweep"];
    assert_eq!(sweep["load_qps"], serde_json::json!([1_000.0, 5_000.0, 10_000.0, 15_000.0]));
    let breaks: Vec<&Value> =
        sweep["lines"].as_array().unwrap().iter().map(|line| &line["breaks_qps"]).collect();
    assert_eq!(breaks, [&Value::from(5_000.0), &Value::from(10_000.0), &Value::Null]);
    let old = &sweep["lines"][0]["answered_percent"];
    assert!(old["mean"][0] == 99.5 && old["mean"][1].as_f64().unwrap() < 91.0, "{old}");
    assert!(old["low"].is_array(), "three runs have a band");
}

/// Such a run is in no other figure, but it is what is looked for here.
#[test]
fn a_run_that_lost_too_much_to_count_says_where_a_server_breaks() {
    let session = sample::sweep::session(3);
    let mut records = sample::sweep::records(&session);
    for record in records.iter_mut().filter(|record| record.variant == "bind-9-16-x5") {
        let outcomes = record.measured.as_ref().unwrap().counters.outcomes;
        let reason = InvalidReason::Lost { outcomes, limit: 0.05, cause: None };
        record.status = RunStatus::Invalid { reason };
    }
    let [page, ..] = files(&records);
    assert!(page.contains("bind-9-16 breaks between 1,000 and 5,000 queries per second."));
    let table = between(&page, "<table class=\"figures chain windows\">", "</table>");
    assert!(!table.contains("bind-9-16-x5"), "it has no valid run");
    // For any other reason it says nothing.
    for record in records.iter_mut().filter(|record| record.variant == "bind-9-16-x5") {
        let reason = InvalidReason::TooShort { measured_ns: 1, asked_ns: 9 };
        record.status = RunStatus::Invalid { reason };
    }
    let [page, ..] = files(&records);
    assert!(page.contains("bind-9-16 breaks between 1,000 and 10,000 queries per second."));
}

#[test]
fn each_time_window_has_a_chart_and_a_row_for_each_variant() {
    let [page, csv, _, markdown, summary] = &*STUDY;
    let data = data(page);
    for (place, title) in
        ["Latency in cold, 0 s to 6 s", "Latency in warm, 6 s to 12 s"].iter().enumerate()
    {
        let figure = format!("id=\"chart-window-{place}\">\n<figcaption><h3>{title}</h3>");
        assert!(page.contains(&figure), "{figure}");
        let curves = &data["windows"][place]["latency_ms"];
        assert_eq!(curves.as_array().unwrap().len(), 12);
        // What is lost most of is at the time-out from the slowest on.
        let share = |at: usize| data["windows"][place]["slowest_share"][at].as_f64().unwrap();
        let few = (0..101).find(|at| share(*at) <= 0.01).unwrap();
        let old = &curves[9];
        let slowest = old["mean"][few].as_f64().unwrap();
        assert!((1_990.0..=2_010.0).contains(&slowest), "bind-9-16-x15: {slowest} ms");
    }
    let table = between(page, "<table class=\"figures chain windows\">", "</table>");
    assert_eq!(table.matches("<tbody>").count(), 2);
    assert_eq!(table.matches("<th scope=\"row\">").count(), 24);
    let cold = between(table, "cold, 0 s to 6 s</th>", "</tbody>");
    let row = cells(cold, "bind-9-16-x5");
    // 4,000 of 5,000, in each run.
    assert!(row[1].starts_with("80"), "{row:?}");
    // Half a hundredth of the answers are SERVFAIL.
    assert!(row[2].starts_with("79.6"), "{row:?}");
    assert_eq!(row[4], "time-out");
    assert!(row[6].starts_with("NOERROR 8"), "{row:?}");
    assert!(markdown.contains("**Time windows**"), "{markdown}");
    // Each run and time window has a row.
    assert_eq!(csv.lines().count(), 1 + 24 * 3);
    assert!(csv.lines().nth(1).unwrap().starts_with("bind-9-16-x1,1,valid,cold,0,6,6000,6000,0,"));
    // They are compared with the same server at the same load.
    let summary: Value = serde_json::from_str(summary).unwrap();
    let cold = &summary["windows"][0];
    let compared = cold["comparisons"].as_array().unwrap();
    let is_it = |comparison: &&Value| {
        comparison["variant"] == "bind-9-16-x5" && comparison["metric"] == "answered-share"
    };
    let found = compared.iter().find(is_it).unwrap();
    assert_eq!(found["against"], "bind-9-18-x5");
    let difference = found["difference"]["value"].as_f64().unwrap();
    assert!((-0.201..-0.195).contains(&difference), "{found}");
    assert_eq!(found["verdict"]["verdict"], "costs");
}

#[test]
fn response_codes_over_time_are_shares() {
    let [page, _, series, ..] = &*STUDY;
    assert!(page.contains("id=\"chart-rcodes\""));
    let data = data(page);
    let plots = data["timeline"]["series"][0]["rcodes"].as_array().unwrap();
    assert_eq!(plots.len(), 12);
    let old = plots.iter().find(|plot| plot["name"] == "bind-9-16-x10").unwrap();
    assert_eq!(names(&old["labels"]), ["NOERROR", "NXDOMAIN", "SERVFAIL", "unanswered"]);
    let steps = old["curves"][0]["mean"].as_array().unwrap().len();
    let shares =
        |at: usize| (0..4).map(move |curve| old["curves"][curve]["mean"][at].as_f64().unwrap());
    for at in 0..steps {
        let sum: f64 = shares(at).sum();
        assert!((99.9..=100.1).contains(&sum), "{sum} %");
    }
    // 4,000 of 10,000 with an empty cache, 8,000 with a full one.
    let unanswered = |at: usize| shares(at).nth(3).unwrap();
    assert!((58.0..61.0).contains(&unanswered(steps / 2)), "{}", unanswered(steps / 2));
    assert!((18.0..21.0).contains(&unanswered(steps - 1)), "{}", unanswered(steps - 1));
    let [header, first, ..] = series.lines().collect::<Vec<_>>()[..] else { panic!("{series}") };
    assert!(header.contains(",rcodes,"), "{header}");
    assert!(first.contains(",NOERROR="), "{first}");
}

#[test]
fn a_report_without_any_of_it_says_nothing_of_it() {
    let session = sample::session(2);
    let [page, summary, _, _, table] = report_of(&session, &runs_of(&session));
    for text in ["time-windows", "id=\"sweep\"", "chart-rcodes"] {
        assert!(!page.contains(text), "{text}");
    }
    assert!(!summary.contains("\"windows\"") && !summary.contains("\"sweep\""));
    assert!(!table.contains("Time windows"));
    assert!(data(&page)["sweep"].is_null());
}
