//! Runs that a real Prometheus fetches or receives, and endpoints of remote write that do not do their part.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, thread};

use dnslab_analysis::{Summary, VariantSummary};
use dnslab_metrics::BOUNDS_NS;
use dnslab_results::ResultsDirectory;

use crate::command::{Done, Guarded};
use crate::evidence::valid_records;
use crate::processes::wait_for;
use crate::room::{Room, SHORT, UDP_AND_TCP, free_port};

/// A Prometheus with data of its own.
struct Prometheus {
    port: u16,
    _process: Guarded,
}

impl Prometheus {
    /// Fetches from the port every 0.2 s, if one is given.
    #[track_caller]
    fn start(room: &Room, scraped: Option<u16>, arguments: &[&str]) -> Self {
        let port = free_port();
        let jobs = scraped.map_or_else(String::new, |port| {
            format!(
                "scrape_configs:\n  - job_name: dnslab\n    scrape_interval: 200ms\n    scrape_timeout: 200ms\n    \
                 static_configs:\n      - targets: ['127.0.0.1:{port}']\n"
            )
        });
        let configuration = room.write(&format!("prometheus-{port}.yml"), &jobs);
        let log = fs::File::create(room.path().join(format!("prometheus-{port}.log"))).unwrap();
        let data = room.path().join(format!("prometheus-{port}"));
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn().expect("prometheus is installed");
        let own = Self { port, _process: Guarded(child) };
        let log = room.path().join(format!("prometheus-{port}.log"));
        let said = || fs::read_to_string(&log).unwrap_or_default();
        wait_for("Prometheus is ready", said, || own.get("/-/ready", &[]).map(drop));
        own
    }

    fn write_url(&self) -> String {
        format!("http://127.0.0.1:{}/api/v1/write", self.port)
    }

    /// `None` where it does not answer with 200.
    fn get(&self, path: &str, parameters: &[String]) -> Option<String> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--fail", "--get"]);
        parameters.iter().for_each(|parameter| {
            command.args(["--data-urlencode", parameter]);
        });
        let output = command.arg(format!("http://127.0.0.1:{}{path}", self.port)).output();
        let output = output.expect("curl is installed");
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Values by those of a label.
    #[track_caller]
    fn query(&self, query: &str, label: &str) -> BTreeMap<String, f64> {
        let text = self.get("/api/v1/query", &[format!("query={query}")]);
        let text = text.unwrap_or_else(|| panic!("no answer to {query}"));
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        let result = answer["data"]["result"].as_array().unwrap();
        let value =
            |series: &serde_json::Value| series["value"][1].as_str().unwrap().parse().unwrap();
        result
            .iter()
            .map(|series| {
                (series["metric"][label].as_str().unwrap_or_default().to_owned(), value(series))
            })
            .collect()
    }

    /// The latest value of each series of a metric of this phase, summed for the values of a label.
    #[track_caller]
    fn totals(&self, metric: &str, matchers: &str, label: &str) -> BTreeMap<String, f64> {
        self.query(&format!("sum by ({label}) (last_over_time({metric}{{{matchers}}}[1h]))"), label)
    }
}

fn summary(results: &ResultsDirectory) -> Summary {
    let text = fs::read_to_string(results.path().join("summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The totals and the 0.99 quantile of a variant are those of the summary.
#[track_caller]
fn has_the_summary(prometheus: &Prometheus, job: &str, variant: &VariantSummary) {
    let phase = if variant.common_rate_qps.is_some() { "common" } else { "measured" };
    let matchers = format!("job=\"{job}\",variant=\"{}\",phase=\"{phase}\"", variant.name);
    let outcomes = &variant.outcomes;
    let found = prometheus.totals("dnslab_queries_total", &matchers, "outcome");
    for (outcome, expected) in [
        ("answered", outcomes.answered),
        ("timed_out", outcomes.timed_out),
        ("not_sent", outcomes.not_sent),
        ("connection_lost", outcomes.connection_lost),
        ("malformed", outcomes.malformed),
        ("refused", outcomes.refused),
    ] {
        assert_eq!(
            found.get(outcome),
            Some(&(expected as f64)),
            "{outcome} of {matchers}: {found:?}"
        );
    }
    let due = prometheus.totals("dnslab_queries_due_total", &matchers, "variant");
    assert_eq!(due.get(&variant.name), Some(&(outcomes.due as f64)), "{matchers}");
    let rcodes: BTreeMap<String, f64> =
        variant.rcodes.iter().map(|(rcode, count)| (rcode.clone(), *count as f64)).collect();
    // The usual codes are there from the beginning.
    let mut totals = prometheus.totals("dnslab_answers_total", &matchers, "rcode");
    totals.retain(|_, count| *count > 0.0);
    assert_eq!(totals, rcodes, "{matchers}");
    let buckets = format!("last_over_time(dnslab_run_latency_seconds_bucket{{{matchers}}}[1h])");
    let p99 = format!("histogram_quantile(0.99, sum by (variant, le) ({buckets}))");
    let p99 = prometheus.query(&p99, "variant")[&variant.name] * 1e9;
    let expected = variant.latency.quantile_ns(0.99).unwrap();
    let above = BOUNDS_NS.partition_point(|bound| *bound < expected);
    let bucket = BOUNDS_NS[above - 1] as f64..=BOUNDS_NS[above] as f64;
    assert!(bucket.contains(&p99), "{p99} of {matchers} is not in {bucket:?}, where {expected} is");
}

fn twice_udp_and_tcp(room: &Room) {
    room.experiment(&format!("repeat.runs = 2\n{SHORT}{UDP_AND_TCP}"));
}

#[test]
fn prometheus_fetches_what_the_summary_has() {
    let room = Room::with_load();
    twice_udp_and_tcp(&room);
    let port = free_port();
    let prometheus = Prometheus::start(&room, Some(port), &[]);
    let address = format!("127.0.0.1:{port}");
    let done = room.dnslab(&[
        "run",
        "./experiment.toml",
        "--metrics-listen",
        &address,
        "--metrics-linger",
        "60s",
    ]);
    let done = done.exits_with(0).prints(&format!("metrics: http://{address}/metrics"));
    assert!(!done.stdout.contains("have not been fetched"), "{done}");
    valid_records(&room.results(), 4);
    // What was fetched last is stored a moment later.
    let runs = || prometheus.totals("dnslab_run_info", "", "job").get("dnslab").copied();
    wait_for("all runs are stored", || done.to_string(), || runs().filter(|runs| *runs == 4.0));
    let summary = summary(&room.results());
    assert_eq!(summary.variants.len(), 2);
    for variant in &summary.variants {
        has_the_summary(&prometheus, "dnslab", variant);
    }
}

#[test]
fn prometheus_receives_what_the_summary_has_and_once_more_from_the_results() {
    let room = Room::with_load();
    twice_udp_and_tcp(&room);
    let prometheus = Prometheus::start(&room, None, &["--web.enable-remote-write-receiver"]);
    let url = prometheus.write_url();
    room.write("token", "not-needed\n");
    let pushed = ["--remote-write", &url, "--remote-write-token", "token"];
    let done = room.dnslab(&[&["run", "./experiment.toml"], &pushed[..]].concat()).exits_with(0);
    assert!(!done.stdout.contains("remote write:"), "{done}");
    valid_records(&room.results(), 4);
    let summary = summary(&room.results());
    for variant in &summary.variants {
        has_the_summary(&prometheus, "dnslab", variant);
    }
    let path = room.results().path().to_str().unwrap().to_owned();
    let done = room.dnslab(&[&["export", "prometheus", &path], &pushed[..]].concat());
    done.exits_with(0).prints("pushed");
    for variant in &summary.variants {
        has_the_summary(&prometheus, "dnslab-results", variant);
    }
    // Both begin at zero, and so have all of it as growth.
    let grown = "sum by (job) (last_over_time(dnslab_queries_due_total[1h]) \
                 - on (job, variant, run, phase) group_left min_over_time(dnslab_queries_due_total[1h]))";
    let grown = prometheus.query(grown, "job");
    let all = prometheus.totals("dnslab_queries_due_total", "", "job");
    assert_eq!((grown.len(), &grown), (2, &all));
}

#[test]
fn native_histograms_are_served_to_who_asks_for_them() {
    let room = Room::with_load();
    room.experiment(&format!("repeat.runs = 1\n{SHORT}{UDP_AND_TCP}"));
    let port = free_port();
    let native = ["--enable-feature=native-histograms"];
    let prometheus = Prometheus::start(&room, Some(port), &native);
    let address = format!("127.0.0.1:{port}");
    let served = ["--metrics-listen", &address, "--metrics-linger", "60s"];
    room.dnslab(&[&["run", "./experiment.toml"], &served[..]].concat()).exits_with(0);
    let stored = || {
        let runs = prometheus.totals("dnslab_run_info", "", "job").get("dnslab").copied();
        runs.filter(|runs| *runs == 2.0)
    };
    wait_for("both runs are stored", String::new, stored);
    for variant in &summary(&room.results()).variants {
        let name = &variant.name;
        // Its series ended with dnslab, a moment after the last fetch: the figures are those of the instants before.
        let selector = format!("dnslab_run_latency_seconds{{variant=\"{name}\"}}");
        let latest = |what: &str| {
            let query = format!("last_over_time({what}[5m:10ms])");
            prometheus.query(&query, "variant")[name]
        };
        let count = latest(&format!("histogram_count({selector})"));
        assert_eq!(count, variant.latency.len() as f64, "{name}");
        let p99 = latest(&format!("histogram_quantile(0.99, {selector})"));
        let expected = variant.latency.quantile_ns(0.99).unwrap() as f64 / 1e9;
        // A bucket is 9 % wide.
        assert!((p99 / expected - 1.0).abs() < 0.1, "{name}: {p99} and {expected}");
    }
}

#[test]
fn a_port_in_use_is_said_before_anything_starts() {
    let room = Room::quiet();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    room.experiment(UDP_AND_TCP);
    let done = room.dnslab(&["run", "./experiment.toml", "--metrics-listen", &address]);
    let done = done.exits_with(1).errors(1);
    let done =
        done.complains(&format!("cannot serve metrics at {address}: Address already in use"));
    done.complains("another program listens there");
    assert!(room.results_so_far().is_none());
}

#[test]
fn an_endpoint_that_is_none_is_said_before_anything_starts() {
    let room = Room::quiet();
    room.experiment(UDP_AND_TCP);
    let done = room.dnslab(&["run", "./experiment.toml", "--remote-write", "localhost:9090"]);
    done.exits_with(2).errors(1).complains("`localhost:9090` is no address to push to");
    assert!(room.results_so_far().is_none());
}

/// What an endpoint does with requests.
#[derive(Clone, Copy)]
enum Doing {
    /// It answers with this status and text.
    Answer(&'static str),
    /// It never answers.
    Hang,
}

/// An endpoint, and how many requests it has had.
fn endpoint(doing: Doing) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/api/v1/write", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&requests);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            thread::spawn(move || while_connected(stream, doing, &counted));
        }
    });
    (url, requests)
}

fn while_connected(stream: TcpStream, doing: Doing, requests: &AtomicU32) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        loop {
            line.clear();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        stream.read_exact(&mut vec![0; length]).ok()?;
        requests.fetch_add(1, Ordering::Relaxed);
        match doing {
            Doing::Hang => thread::sleep(std::time::Duration::from_secs(600)),
            Doing::Answer(answer) => {
                let (status, text) = answer.split_once('|').unwrap_or((answer, ""));
                let length = text.len();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{text}");
                stream.get_mut().write_all(head.as_bytes()).ok()?;
            }
        }
    }
}

/// A run whose metrics are pushed there is valid and whole, and says what is missing. Returns what was printed.
#[track_caller]
fn is_not_disturbed(url: &str, expected: &str) -> Done {
    let room = Room::with_load();
    room.experiment(&format!(
        "repeat.runs = 1\n{UDP_AND_TCP}[load]\nclients = 10\nrate = 2000\nduration = \"1s\"\nwarm_up = \"100ms\"\n"
    ));
    let done = room.dnslab(&["run", "./experiment.toml", "--remote-write", url]);
    let done = done.exits_with(0).prints(expected).prints("the results are whole");
    let records = valid_records(&room.results(), 2);
    for record in &records {
        let measured = record.measured.as_ref().unwrap();
        assert_eq!(measured.latency.len(), 2_000, "each query of the second has an outcome");
        assert!(measured.began_unix_ns > 1_700_000_000_000_000_000, "{}", measured.began_unix_ns);
    }
    let hint = format!("dnslab export prometheus {}", Path::new("results").display());
    done.prints(&hint)
}

#[test]
fn an_endpoint_that_is_down_disturbs_nothing() {
    let url = format!("http://127.0.0.1:{}/api/v1/write", free_port());
    let done = is_not_disturbed(&url, "points could not be pushed");
    assert!(done.stdout.contains("Connection refused"), "{done}");
}

#[test]
fn an_endpoint_that_hangs_disturbs_nothing() {
    let (url, requests) = endpoint(Doing::Hang);
    is_not_disturbed(&url, "points could not be pushed");
    assert!(requests.load(Ordering::Relaxed) > 0);
}

#[test]
fn an_endpoint_that_fails_is_tried_again() {
    let (url, requests) = endpoint(Doing::Answer("503 Service Unavailable|no room\nmore"));
    is_not_disturbed(
        &url,
        &format!("points could not be pushed to {url}: 503 Service Unavailable: no room"),
    );
    assert!(requests.load(Ordering::Relaxed) > 1);
}

#[test]
fn an_endpoint_that_refuses_is_not_asked_again_for_the_same_points() {
    let (url, requests) = endpoint(Doing::Answer("400 Bad Request|out of order sample"));
    let done = is_not_disturbed(&url, "400 Bad Request: out of order sample");
    let said = done.stdout.lines().find(|line| line.starts_with("remote write: ")).unwrap();
    let points: u32 = said.split(' ').nth(2).unwrap().parse().unwrap();
    assert!((1..=points).contains(&requests.load(Ordering::Relaxed)), "{done}");
}
