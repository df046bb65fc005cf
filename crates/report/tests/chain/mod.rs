//! The report of chains of servers, of their own counters, and of logs.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use dnslab_record::{BottleneckKind, RunRecord};
use dnslab_report::write_report;
use dnslab_results::ResultsDirectory;

use super::{between, cells, first_field, report_of, runs_of, sample};

/// The page, the table and `chain.csv` of the sample of forwarders, made once.
static FORWARDERS: LazyLock<[String; 3]> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let results = sample::chain::write(&folder.path().join("results")).unwrap();
    write_report(&results).unwrap();
    files(&results)
});

/// The runs of the same sample, made once.
pub(crate) static RECORDS: LazyLock<Vec<RunRecord>> =
    LazyLock::new(|| sample::chain::records(&sample::chain::session()));

fn files(results: &ResultsDirectory) -> [String; 3] {
    ["report.html", "table.md", "chain.csv"]
        .map(|name| fs::read_to_string(results.path().join(name)).unwrap())
}

fn chain_table() -> &'static str {
    let section = between(&FORWARDERS[0], "<section id=\"chain\">", "</section>");
    between(section, "<table class=\"figures chain\">", "</table>")
}

#[test]
fn every_server_of_every_variant_has_its_row() {
    let table = chain_table();
    assert_eq!(table.matches("<tbody>").count(), 14);
    assert_eq!(table.matches("<th scope=\"row\">").count(), 14 * 2 + 3);
    let stubby = between(table, "</i>dnsmasq-stubby-100</th>", "</tbody>");
    let relay = cells(stubby, "relay");
    assert_eq!(relay[0], "relay stubby 1.6.0 (synthetic), on server");
    assert_eq!((relay[1].as_str(), relay[2].as_str()), ("UDP", "-"), "it tells nothing");
    let upstream = cells(stubby, "upstream");
    // Ten connections during the load of two runs, and one in each before it.
    assert_eq!(upstream[7..11], ["12 load: 10", "12 load: 10", "0", "75.1 load: 89.7"]);
    let unbound = between(table, "</i>unbound-dot-100</th>", "</tbody>");
    assert_eq!(cells(unbound, "upstream")[8..10], ["2 load: 0", "10"], "full and resumed");
}

#[test]
fn the_hosts_are_drawn_and_described() {
    let section = between(&FORWARDERS[0], "<section id=\"chain\">", "</section>");
    assert_eq!(section.matches("<svg class=\"hosts ").count(), 2, "one for each width");
    let described = "host client with load generator; then by a link (no delay, netem) host server \
                     with under test: dnsmasq, unbound, knot-resolver, coredns and relay: stubby \
                     (in some); then by a link (10 ms \u{b1} 500 us, 0.1\u{a0}% lost, 100 Mbit/s, \
                     netem) host upstream with upstream: embedded.";
    assert!(section.contains(described), "{section}");
    for picture in ["hosts-0-broad", "hosts-0-narrow"] {
        let labelled = format!("aria-labelledby=\"{picture}-title {picture}-text\"");
        for text in [
            labelled,
            format!("<title id=\"{picture}-title\">"),
            format!("<desc id=\"{picture}-text\">"),
        ] {
            assert_eq!(section.matches(&text).count(), 1, "{text}");
        }
    }
    assert!(!section.contains("loopback"));
}

#[test]
fn places_and_servers_are_in_the_order_of_the_variants() {
    let mut session = sample::chain::session();
    session.plan.reverse();
    let mut records = sample::chain::records(&session);
    let is_elsewhere = |name: &str| name.starts_with("unbound");
    for record in records.iter_mut().filter(|record| is_elsewhere(&record.variant)) {
        record.testbed = None;
        record.watched.chain[0].host = "elsewhere".to_owned();
    }
    let [page, ..] = report_of(&session, &records);
    let section = between(&page, "<section id=\"chain\">", "</section>");
    let titles: Vec<&str> =
        section.split("<h3>").skip(1).map(|part| part.split("</h3>").next().unwrap()).collect();
    let of_place = |elsewhere: bool| {
        let names = session.variants.iter().filter(|name| is_elsewhere(name) == elsewhere);
        names.map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(titles, [of_place(false), of_place(true)]);
    assert!(section.contains("with under test: dnsmasq, knot-resolver, coredns"), "{section}");
    let scope = between(&page, "<p class=\"scope\">", "</p>");
    assert!(scope.starts_with("dnsmasq"), "{scope}");
}

#[test]
fn a_chain_without_namespaces_says_so() {
    let session = sample::chain::session();
    let mut records = RECORDS.clone();
    for record in &mut records {
        let testbed = record.testbed.as_mut().unwrap();
        testbed.namespaces = false;
        testbed.links.clear();
    }
    // One of them has none at all, and another place.
    let last = records.last_mut().unwrap();
    last.testbed = None;
    last.watched.chain[0].host = "elsewhere".to_owned();
    let [page, ..] = report_of(&session, &records);
    let section = between(&page, "<section id=\"chain\">", "</section>");
    assert_eq!(section.matches("All of it ran on the loopback interface").count(), 2);
    assert!(section.contains(">loopback</text>") && section.contains(">elsewhere</text>"));
    assert!(section.contains("<h3>coredns-dot-closing</h3>"), "whose picture it is");
}

#[test]
fn what_servers_counted_stands_beside_what_was_sent() {
    let [page, table, _] = &*FORWARDERS;
    let section = between(page, "<section id=\"counts\">", "</section>");
    let row = |name: &str| cells(section, name);
    assert_eq!(
        row("</i>unbound-dot<")[3..],
        ["equal", "the server's control socket", ""].map(|text| text.replace('\'', "&#39;"))
    );
    assert_eq!(row("</i>kresd-dot<")[3].replace('\u{a0}', " "), "-18 (2 %)");
    assert_eq!(row("</i>dnsmasq-udp<")[1..5], ["-", "-", "-", "does not tell"]);
    // Both runs of the ten that tell.
    let runs = between(section, "<details><summary>each run", "</details>");
    assert_eq!(runs.matches("<tr><th scope=\"row\">").count(), 20);
    assert!(table.contains("| unbound-udp | 933 | 933 | equal | the server's control socket |"));
    assert!(page.contains("id=\"chart-counted\""));
}

#[test]
fn a_count_that_was_not_read_to_the_end_says_why() {
    let session = sample::chain::session();
    let mut records = RECORDS.clone();
    for record in records.iter_mut().filter(|record| record.variant == "unbound-dot") {
        let counters = record.watched.counters.as_mut().unwrap();
        counters.samples.truncate(3);
        counters.failure = Some("connection refused".to_owned());
    }
    let [page, ..] = report_of(&session, &records);
    let section = between(&page, "<section id=\"counts\">", "</section>");
    assert_eq!(
        cells(section, "</i>unbound-dot<")[4],
        "the server&#39;s control socket: connection refused"
    );
}

#[test]
fn provenance_has_every_server_of_the_chain() {
    let [page, ..] = &*FORWARDERS;
    let facts = between(page, "<h3>Variant dnsmasq-stubby</h3>", "</dl>");
    for text in [
        "<dt>relay</dt><dd>stubby 1.6.0 (synthetic), on server, asked over UDP</dd>",
        "<dt>relay command</dt><dd>stubby -C server.conf</dd>",
        "<dt>upstream</dt><dd>embedded 0.1.0, on upstream, asked over DoT</dd>",
        "<dt>upstream changed from defaults</dt><dd>The upstream keeps its defaults",
        "<dt>upstream counters from</dt><dd>the responder&#39;s counters</dd>",
        "<dt>hosts</dt><dd>client (10.53.0.1; CPUs: 1), server (10.53.0.2 and 10.53.1.1; CPUs: 0)",
        "<dt>links</dt><dd>client to server: no delay, netem; server to upstream: 10 ms",
    ] {
        assert!(facts.contains(text), "no {text} in {facts}");
    }
    for role in ["server", "relay", "upstream"] {
        assert!(page.contains(&format!("# the {role} of dnsmasq-stubby-1\n")), "{role}");
    }
    assert!(page.contains("<summary>upstream: server.conf</summary>"));
}

#[test]
fn many_variants_are_told_in_few_words() {
    let [page, table, _] = &*FORWARDERS;
    let heading = between(page, "<h1", "</h1>");
    assert!(
        heading.contains("Of 13, 2 differ for certain from dnsmasq-udp in the median latency"),
        "{heading}"
    );
    let open = between(page, "<h2>Difference from", "<details>");
    assert_eq!(open.matches("<circle").count(), 2 * 13, "one metric, for both widths");
    assert!(open.contains(">dnsmasq-stubby-closing</text>"), "its whole name");
    let all = between(page, "<summary>Every difference as a table", "</table>");
    assert_eq!(all.matches("<tr><th scope=\"row\">").count(), 13 * 7, "the other metrics too");
    // One plot for each of the four programs, and in the first view every variant twice.
    let data = between(page, "id=\"data\">", "</script>");
    let groups = between(data, "\"groups\":[", "],\"baseline\"");
    let names: Vec<&str> =
        groups.split("{\"name\":\"").skip(1).map(|part| part.split('"').next().unwrap()).collect();
    assert_eq!(names, ["dnsmasq", "unbound", "kresd", "coredns"]);
    let first = between(page, "<section class=\"first\">", "</section>");
    assert_eq!(first.matches(">unbound-dot-closing</text>").count(), 2);
    assert!(table.contains("<details><summary>all figures</summary>"));
}

#[test]
fn the_rows_of_the_chain_are_in_a_file_of_their_own() {
    let csv = &FORWARDERS[2];
    assert_eq!(csv.lines().count(), 1 + 2 * (14 * 2 + 3));
    assert_eq!(first_field(csv, "role"), "server");
    let upstream: Vec<&str> =
        csv.lines().filter(|line| line.starts_with("unbound-dot-100,1,valid,upstream,")).collect();
    let [upstream] = upstream.as_slice() else { panic!("{upstream:?}") };
    let text = format!("{}\n{upstream}", csv.lines().next().unwrap());
    for (heading, value) in [
        ("transport", "dot"),
        ("connections_during_load", "5"),
        ("connections_since_start", "6"),
        ("resumed_handshakes_since_start", "5"),
        ("full_handshakes_during_load", "0"),
    ] {
        assert_eq!(first_field(&text, heading), value, "{heading}");
    }
}

/// A run of the common sample and what is not in its report.
#[test]
fn without_chain_counters_and_log_there_is_nothing_of_them() {
    let session = sample::session(1);
    let [page, summary, runs, _, table] = report_of(&session, &runs_of(&session));
    for text in ["id=\"chain\"", "id=\"counts\"", "chart-counted", "log octets/query"] {
        assert!(!page.contains(text), "{text}");
    }
    assert!(!table.contains("The chain") && !table.contains("own counters"), "{table}");
    assert!(!summary.contains("\"chain\"") && !summary.contains("\"agreement\""));
    for heading in ["log_octets_per_query", "counted_by_server"] {
        assert_eq!(first_field(&runs, heading), "", "{heading}");
    }
}

#[test]
fn logs_are_told_by_their_octets() {
    let folder = tempfile::tempdir().unwrap();
    let results = sample::chain::write_logs(&folder.path().join("results")).unwrap();
    write_report(&results).unwrap();
    assert!(!results.path().join("chain.csv").exists());
    let page = fs::read_to_string(results.path().join("report.html")).unwrap();
    let variants = between(&page, "<table class=\"variants\">", "</table>");
    assert!(variants.contains("<th scope=\"col\">log octets/query</th>"));
    assert!(!variants.contains("handshakes"), "there are none");
    let column = |name: &str| cells(variants, name).iter().rev().nth(3).unwrap().clone();
    assert_eq!((column(">none<").as_str(), column(">query-log<").as_str()), ("-", "153"));
    let runs = fs::read_to_string(results.path().join("runs.csv")).unwrap();
    assert_eq!(first_field(&runs, "counted_less_sent"), "0");
    assert_eq!(first_field(&runs, "server_log_octets"), "0");
    let series = fs::read_to_string(results.path().join("series.csv")).unwrap();
    assert_ne!(first_field(&series, "server_counted_qps"), "");
}

#[test]
fn the_limit_of_a_chain_has_its_name() {
    let session = sample::chain::session();
    let mut records = RECORDS.clone();
    let kinds = [
        BottleneckKind::RelayCpu,
        BottleneckKind::UpstreamCpu,
        BottleneckKind::ServersCpu,
        BottleneckKind::SharedCpu,
    ];
    for (record, kind) in records.iter_mut().zip(kinds) {
        record.bottleneck.kind = kind;
    }
    let [_, _, runs, ..] = report_of(&session, &records);
    for name in ["relay CPU", "upstream CPU", "servers' CPU", "shared CPU"] {
        assert_eq!(runs.matches(&format!(",{name},")).count(), 1, "{name}");
    }
}

/// A folder that a record names is never outside the run.
#[test]
fn files_outside_the_run_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("secret.conf"), "do not show").unwrap();
    let session = sample::chain::session();
    let mut record = RECORDS[0].clone();
    record.watched.chain[0].server.configuration = Some("../../../secret.conf".to_owned());
    let results = ResultsDirectory::create(&folder.path().join("results"), &session).unwrap();
    results.write_run(&record).unwrap();
    write_report(&results).unwrap();
    let page = fs::read_to_string(Path::new(results.path()).join("report.html")).unwrap();
    assert!(!page.contains("do not show"));
}
