//! `dnslab monitor`: a real Prometheus with real exporters, a run on a real BIND that it takes, and every query of
//! every dashboard. Nothing of it is left at the end.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use dnslab_figures::Interval;
use dnslab_record::Measured;
use dnslab_test_support::free_addresses;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::command::{Done, Running, program};
use crate::evidence::{records, valid_records};
use crate::processes::{processes_of, wait_for};
use crate::room::Room;

/// The range of a rate in the dashboards: Grafana takes four intervals of fetching.
const RATE_INTERVAL: &str = "20s";

/// A stack in the folder `stack` of a room, on ports of its own. Dropping it ends it.
struct Stack<'a> {
    room: &'a Room,
    /// Of Prometheus, the BIND exporter, the node exporter, dnslab's metrics, BIND's statistics.
    ports: [u16; 5],
}

impl<'a> Stack<'a> {
    fn new(room: &'a Room) -> Self {
        let addresses = free_addresses(Ipv4Addr::LOCALHOST.into());
        Self { room, ports: addresses.map(|address| address.port()) }
    }

    fn words(&self) -> Vec<String> {
        let [prometheus, bind, node, metrics, statistics] = self.ports;
        let mut words: Vec<String> =
            ["monitor", "up", "--folder", "stack"].map(str::to_owned).to_vec();
        words.extend([
            format!("--prometheus-port={prometheus}"),
            format!("--bind-exporter-port={bind}"),
            format!("--node-exporter-port={node}"),
            format!("--metrics=127.0.0.1:{metrics}"),
            format!("--bind-statistics=127.0.0.1:{statistics}"),
            format!("--bind-pid-file={}", self.room.path().join("named.pid").display()),
        ]);
        words
    }

    #[track_caller]
    fn up(&self) -> Done {
        self.room.dnslab(&self.words())
    }

    #[track_caller]
    fn call(&self, command: &str) -> Done {
        self.room.dnslab(&["monitor", command, "--folder", "stack"])
    }

    /// The answer of Prometheus's interface for programs; `None` where it does not answer with 200.
    fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Option<Value> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--fail", "--get"]);
        for (name, value) in parameters {
            command.arg("--data-urlencode").arg(format!("{name}={value}"));
        }
        let output = command.arg(format!("http://127.0.0.1:{}{path}", self.ports[0])).output();
        let output = output.expect("curl is installed");
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    /// What a query gives: at the end, or over all the time since `begin`.
    fn asked(&self, query: &str, begin: Option<u64>) -> Vec<Value> {
        let now = unix_seconds().to_string();
        let answer = match begin {
            None => self.get("/api/v1/query", &[("query", query), ("time", now.as_str())]),
            Some(begin) => {
                let begin = begin.to_string();
                let (begin, now) = (begin.as_str(), now.as_str());
                let range = [("query", query), ("start", begin), ("end", now), ("step", "1s")];
                self.get("/api/v1/query_range", &range)
            }
        };
        let answer = answer.unwrap_or_else(|| panic!("Prometheus refuses {query}"));
        answer["data"]["result"].as_array().expect("a vector or a matrix").clone()
    }

    /// The series of a query, as [`Stack::asked`]. Only those with a number count.
    fn series(&self, query: &str, begin: Option<u64>) -> usize {
        self.asked(query, begin).iter().filter(|series| highest(series).is_some()).count()
    }

    /// The highest value of a query by variant.
    fn highest(&self, query: &str, begin: Option<u64>) -> BTreeMap<String, f64> {
        let of_variant = |series: &Value| {
            let variant = series["metric"]["variant"].as_str()?.to_owned();
            Some((variant, highest(series)?))
        };
        self.asked(query, begin).iter().filter_map(of_variant).collect()
    }
}

impl Drop for Stack<'_> {
    fn drop(&mut self) {
        if self.room.path().join("stack").exists() {
            let mut command = Command::new(program());
            command.args(["monitor", "down", "--folder", "stack"]).current_dir(self.room.path());
            command.output().ok();
        }
    }
}

/// The highest number of a series.
fn highest(series: &Value) -> Option<f64> {
    let values = series["values"].as_array().into_iter().flatten();
    let points = [&series["value"]].into_iter().chain(values);
    let numbers = points.filter_map(|point| point[1].as_str()?.parse::<f64>().ok());
    numbers.filter(|number| !number.is_nan()).reduce(f64::max)
}

/// The least and the most that a load answered in a second, by the time of it that was its turn: of all seconds that
/// end with an interval.
fn seconds(measured: &Measured) -> (f64, f64) {
    const SECOND: u64 = 1_000_000_000;
    let end = |interval: &Interval| interval.at_ns + interval.length_ns;
    let rates = measured.intervals.iter().map(end).filter_map(|last| {
        let intervals = measured.intervals.iter();
        let inside =
            intervals.filter(|interval| end(interval) <= last && end(interval) + SECOND > last);
        let (answered, own_ns) = inside.fold((0, 0), |(answered, own_ns), interval| {
            (answered + interval.answered, own_ns + interval.own_ns.unwrap_or(interval.length_ns))
        });
        (own_ns > 0).then(|| answered as f64 * SECOND as f64 / own_ns as f64)
    });
    rates.fold((f64::INFINITY, 0.0), |(least, most), rate| (rate.min(least), rate.max(most)))
}

/// The query of a panel.
fn query_of(dashboard: &str, title: &str, kind: &str) -> String {
    let dashboard = &dashboards()[dashboard];
    let panels = dashboard["panels"].as_array().unwrap();
    let panel =
        panels.iter().find(|panel| text(panel, "title") == title && text(panel, "type") == kind);
    substituted(text(&panel.expect("there is such a panel")["targets"][0], "expr"))
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A file of the repository.
fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The dashboards, by name.
fn dashboards() -> BTreeMap<String, Value> {
    let entries = fs::read_dir(in_repository("grafana")).unwrap().flatten();
    let paths = entries.map(|entry| entry.path());
    let jsons = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
    };
    jsons.map(read).collect()
}

/// With the variables of a dashboard where all is chosen.
fn substituted(query: &str) -> String {
    let mut query = query.replace("$__rate_interval", RATE_INTERVAL).replace("$__range", "1h");
    for variable in ["experiment", "variant", "run", "phase", "bind", "node"] {
        query = query.replace(&format!("\"${variable}\""), "\".*\"");
    }
    assert!(!query.contains('$'), "a variable that is not known here: {query}");
    query
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no text `{name}` in {value}"))
}

/// A query that gives the values of a variable, from `label_values(METRIC, LABEL)`.
fn values_of(query: &str) -> String {
    let inner = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
    let (metric, label) =
        inner.and_then(|inner| inner.rsplit_once(", ")).expect("label_values(..)");
    format!("count by ({label}) (last_over_time({}[1h]))", substituted(metric))
}

#[test]
fn from_nothing_to_data_in_every_panel() {
    let room = Room::with_load();
    let stack = Stack::new(&room);
    let begin = unix_seconds();
    let [prometheus, bind, node, metrics, statistics] = stack.ports;
    let done = stack.up().exits_with(0);
    let mut done = done.prints(&format!("Prometheus http://127.0.0.1:{prometheus}"));
    for port in [bind, node] {
        done = done.prints(&format!("exporter http://127.0.0.1:{port}"));
    }
    let url = format!("http://127.0.0.1:{prometheus}/api/v1/write");
    let done = done.prints(&format!("dnslab run encryption --remote-write {url}"));
    done.prints(&format!("dnslab dashboard --prometheus http://127.0.0.1:{prometheus}"));
    stack.up().exits_with(0).prints("it is up already");
    stack.call("status").exits_with(0).prints(&format!("Prometheus http://127.0.0.1:{prometheus}"));

    // One BIND at a time, each for as long as it takes to be fetched twice, even if a fetch in between fails.
    room.experiment(&format!(
        "repeat.runs = 1\nrepeat.alternate = \"runs\"\n[server]\nkind = \"bind\"\nextra = '''\nstatistics-channels \
         {{ inet 127.0.0.1 port {statistics}; }};\n'''\n[load]\nclients = 10\nrate = 500\nduration = \"14s\"\nwarm_up = \
         \"200ms\"\n[[variant]]\nname = \"tcp\"\nload.transport = \"tcp\"\n[[variant]]\nname = \"dot\"\nload.transport \
         = \"dot\"\n"
    ));
    let served = format!("127.0.0.1:{metrics}");
    let watched = ["--remote-write", &url, "--metrics-listen", &served];
    let words = [&["run", "./experiment.toml"], &watched[..]].concat();
    let is_over = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        scope.spawn(|| name_the_bind(&room, &is_over));
        let done = room.dnslab(&words);
        is_over.store(true, Relaxed);
        done.exits_with(0)
    });
    assert!(!done.stdout.contains("remote write:"), "{done}");
    assert!(!done.stdout.contains("have not been fetched"), "{done}");
    valid_records(&room.results(), 2);
    for way in [format!("instance=\"{served}\""), "instance=\"\"".to_owned()] {
        let runs = format!("last_over_time(dnslab_run_info{{{way}}}[1h])");
        // What was fetched last is stored a moment later.
        let both = || (stack.series(&runs, None) == 2).then_some(());
        wait_for("both runs are stored", || format!("{runs} {done}"), both);
    }

    panels_show_the_rates_of_the_records(&stack, &room, begin);
    let all =
        dashboards().keys().map(|name| format!("dnslab-{name}")).collect::<Vec<_>>().join(",");
    the_page_draws(&room, &format!("http://127.0.0.1:{prometheus}"), &all);

    let mut without = Vec::new();
    let mut queries = 0;
    for (name, dashboard) in dashboards() {
        for variable in dashboard["templating"]["list"].as_array().unwrap() {
            if text(variable, "type") == "query" {
                let query = values_of(text(variable, "query"));
                if stack.series(&query, None) == 0 {
                    without.push(format!("{name}, variable {}: {query}", text(variable, "name")));
                }
            }
        }
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let query = substituted(text(target, "expr"));
                let begin = (target["instant"] != true).then_some(begin);
                queries += 1;
                if stack.series(&query, begin) == 0 {
                    without.push(format!("{name}, {}: {query}", text(panel, "title")));
                }
            }
        }
    }
    assert!(without.is_empty(), "no data: {without:#?}");
    assert!(queries > 30, "only {queries} queries: the walk is broken");

    let data = room.path().join("stack/prometheus/data");
    stack.call("down").exits_with(0).prints("Prometheus stopped").prints("node exporter stopped");
    room.wait_for_silence();
    assert!(data.exists());
    stack.call("status").exits_with(0).prints("Prometheus down");
    // What was stored is there again.
    stack.up().exits_with(0);
    assert!(stack.series("last_over_time(dnslab_run_info[1h])", None) > 0);
    stack.call("down").exits_with(0);
    stack.call("down").exits_with(0).prints("it is not up");
    room.wait_for_silence();
}

/// Writes the process of the BIND that runs into the file where the exporter looks for it, as the BIND of an operator
/// does.
fn name_the_bind(room: &Room, is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        let named = processes_of(room.path()).into_iter().find(|(_, line)| {
            let program = line.split(' ').next().unwrap_or_default();
            program.rsplit('/').next() == Some("named")
        });
        if let Some((pid, _)) = named {
            room.write("named.pid", &pid.to_string());
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// A page of `dnslab dashboard` shows what a Prometheus has, in a real browser. Each panel of these dashboards has data.
#[track_caller]
fn the_page_draws(room: &Room, prometheus: &str, full: &str) {
    let page = ["dashboard", "--prometheus", prometheus];
    room.dnslab(&page).exits_with(0).prints("open dashboard.html in a browser");
    room.dnslab(&page).exits_with(2).complains("dashboard.html exists").complains("--force");
    room.dnslab(&[&page[..], &["--force"]].concat()).exits_with(0);
    let mut node = Command::new("node");
    node.current_dir(in_repository("crates/report/page"));
    node.args(["--test", "--test-reporter=tap", "test/dashboard.test.mjs"]);
    node.env("DNSLAB_DASHBOARD", room.path().join("dashboard.html"));
    node.env("DNSLAB_PROMETHEUS", prometheus).env("DNSLAB_FULL", full);
    let records = records(&room.results());
    let loads = records.iter().flat_map(|record| {
        let common = record.common_load.as_ref().map(|common| &common.measured);
        record.measured.iter().chain(common)
    });
    let answered = |measured: &Measured| {
        measured.warm_up.outcomes.answered + measured.counters.outcomes.answered
    };
    let answered = loads.map(answered).sum::<u64>();
    node.env("DNSLAB_ANSWERED", answered.to_string());
    let output = node.output().expect("node is installed");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("# pass 5\n"), "{prometheus}: {said}");
}

/// Another receiver of remote write, with the interface of Prometheus for queries.
#[test]
fn victoria_metrics_takes_it_and_the_page_draws_it() {
    let room = Room::with_load();
    let [address] = free_addresses(Ipv4Addr::LOCALHOST.into());
    let mut command = Command::new("victoria-metrics");
    command.arg(format!("-httpListenAddr={address}"));
    command.arg(format!("-storageDataPath={}", room.path().join("data").display()));
    // Else it answers as of half a minute ago.
    command.arg("-search.latencyOffset=0s");
    let mut receiver = Running::start(command, room.path());
    let stack = Stack { room: &room, ports: [address.port(); 5] };
    let up = || stack.get("/api/v1/query", &[("query", "1")]);
    wait_for("VictoriaMetrics is up", || receiver.so_far(), up);
    let url = format!("http://{address}/api/v1/write");
    room.experiment(
        "repeat.runs = 2\n[load]\nclients = 10\nrate = 500\nduration = \"2s\"\nwarm_up = \"200ms\"\n[[variant]]\n\
         name = \"udp\"\n[[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n",
    );
    let done = room.dnslab(&["run", "./experiment.toml", "--remote-write", &url]).exits_with(0);
    assert!(!done.stdout.contains("remote write:"), "{done}");
    valid_records(&room.results(), 4);
    let query = "sum by (variant) (last_over_time(dnslab_queries_total{phase=\"measured\"}[1h]))";
    let mut expected = BTreeMap::new();
    for record in records(&room.results()) {
        let counters = record.measured.unwrap().counters;
        *expected.entry(record.variant).or_insert(0.0) += counters.outcomes.due as f64;
    }
    // What came last can be asked for a moment later.
    let whole = || (stack.highest(query, None) == expected).then_some(());
    wait_for("all queries are stored", || format!("{:?}", stack.highest(query, None)), whole);
    the_page_draws(&room, &format!("http://{address}"), "dnslab-load,dnslab-variants");
    receiver.signal(Signal::TERM);
    receiver.finish();
    room.wait_for_silence();
}

/// What the panels show of the runs since `begin`, and of no others.
#[track_caller]
fn panels_show_the_rates_of_the_records(stack: &Stack<'_>, room: &Room, begin: u64) {
    let ended = query_of("variants", "Answered queries per second", "bargauge");
    let ended = stack.highest(&ended.replace("phase=~\".*\"", "phase=\"measured\""), None);
    let live = query_of("load", "Answered queries per second", "timeseries");
    assert!(!live.contains("rate("), "{live}");
    let live = stack.highest(&live, Some(begin));
    let cpus = query_of("server", "CPUs used", "timeseries");
    let cpus = stack.highest(&cpus, Some(begin));
    for record in records(&room.results()) {
        let (name, measured) = (&record.variant, record.measured.as_ref().unwrap());
        let (rate, (least, most)) = (measured.answered_qps(), seconds(measured));
        let common = record.common_load.as_ref();
        let most = common.map_or(most, |common| most.max(seconds(&common.measured).1));
        let (shown, ended, cpus) = (live[name], ended[name], cpus[name]);
        assert!((ended / rate - 1.0).abs() < 0.05, "{name}: {ended}, not {rate}");
        // Whichever second it was that was fetched.
        assert!(
            (0.95 * least..=1.05 * most).contains(&shown),
            "{name}: {shown}, {least} to {most}"
        );
        let busy = record.observation().unwrap().server_busy_share().unwrap()
            * record.watched.resources.cpus as f64;
        assert!(cpus >= 0.5 * busy && cpus < 64.0, "{name}: {cpus} CPUs, {busy} in the record");
    }
}

/// What `monitor up` prints, in one round: five variants take turns, each with less than a second of load.
#[test]
fn variants_that_take_turns_have_their_whole_rate_in_the_panels() {
    let room = Room::alone();
    let stack = Stack::new(&room);
    let begin = unix_seconds();
    let done = stack.up().exits_with(0);
    let url = format!("http://127.0.0.1:{}/api/v1/write", stack.ports[0]);
    done.prints(&format!("dnslab run encryption --remote-write {url}"));
    let words = ["run", "encryption", "--remote-write", &url, "--set", "repeat.runs=1"];
    let done = room.dnslab(&words).exits_with(0);
    let runs = "last_over_time(dnslab_run_info[1h])";
    let all = || (stack.series(runs, None) == 5).then_some(());
    wait_for("all runs are stored", || format!("{runs} {done}"), all);
    panels_show_the_rates_of_the_records(&stack, &room, begin);
    stack.call("down").exits_with(0);
    room.wait_for_silence();
}

#[test]
fn what_is_killed_while_it_starts_can_be_cleared() {
    let room = Room::quiet();
    let stack = Stack::new(&room);
    let mut command = Command::new(program());
    command.args(stack.words());
    let mut running = Running::start(command, room.path());
    let record = room.path().join("stack/prometheus.process");
    wait_for("Prometheus is being started", || running.so_far(), || record.exists().then_some(()));
    running.signal(Signal::KILL);
    let left = || processes_of(room.path()).into_iter().map(|(pid, _)| pid).collect::<Vec<_>>();
    wait_for("only what lives on is left", String::new, || {
        (!left().contains(&running.pid())).then_some(())
    });
    // What it was about to start has come by then.
    thread::sleep(Duration::from_millis(300));
    assert!(!left().is_empty());
    stack.call("down").exits_with(0).prints("Prometheus stopped");
    room.wait_for_silence();
}

#[test]
fn one_that_was_killed_is_started_again() {
    let room = Room::quiet();
    let stack = Stack::new(&room);
    stack.up().exits_with(0);
    let pid = |part: &str| {
        let text = fs::read_to_string(room.path().join("stack").join(part)).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        u32::try_from(record["id"]["pid"].as_u64().unwrap()).unwrap()
    };
    let prometheus = pid("prometheus.process");
    crate::processes::kill(pid("node-exporter.process"));
    let node = || processes_of(room.path()).iter().any(|(_, line)| line.contains("node-exporter"));
    wait_for("it is gone", String::new, || (!node()).then_some(()));
    stack.call("status").exits_with(0).prints("node exporter down");
    let done = stack.up().exits_with(0);
    assert!(!done.stdout.contains("already"), "{done}");
    assert_eq!(pid("prometheus.process"), prometheus);
    stack.call("down").exits_with(0).prints("node exporter stopped");
    room.wait_for_silence();
}

#[test]
fn what_cannot_be_started_is_said() {
    let room = Room::quiet();
    let stack = Stack::new(&room);
    let taken = TcpListener::bind(("127.0.0.1", stack.ports[0])).unwrap();
    let done = stack.up().exits_with(1).errors(1);
    let done = done.complains(&format!("cannot start Prometheus on 127.0.0.1:{}", stack.ports[0]));
    let done = done.complains(&format!("another process owns the port: {}", std::process::id()));
    done.complains("--prometheus-port PORT");
    drop(taken);
    let mut command = Command::new(program());
    command.args(stack.words()).env("PATH", "/nonexistent");
    let done = Running::start(command, room.path()).finish().exits_with(1).errors(1);
    done.complains("Prometheus is not installed").complains("apt-get install prometheus");
    stack.call("down").exits_with(0).prints("it is not up");
    assert!(processes_of(room.path()).is_empty());
}

#[test]
fn a_folder_of_others_is_left_alone() {
    let room = Room::quiet();
    let mine = room.path().join("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("file"), "mine").unwrap();
    let done = room.dnslab(&["monitor", "up", "--folder", "mine"]).exits_with(2).errors(1);
    done.complains("is not empty, and no folder of `dnslab monitor`");
    let done = room.dnslab(&["monitor", "down", "--folder", "mine"]).exits_with(1).errors(1);
    done.complains("there is no monitoring stack in mine");
    assert_eq!(fs::read_dir(&mine).unwrap().count(), 1);
}

/// What checks a dashboard against Grafana's published schema; `./test` builds it.
fn schema_check(paths: &[PathBuf]) -> (bool, String) {
    let checker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/grafana-schema");
    assert!(checker.exists(), "{} is missing; ./test builds it", checker.display());
    let output = Command::new(checker).args(paths).output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn dashboards_are_as_grafanas_schema_wants_them() {
    let all = dashboards();
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(names, ["idm", "load", "server", "variants"]);
    let paths: Vec<PathBuf> =
        names.iter().map(|name| in_repository(&format!("grafana/{name}.json"))).collect();
    let (is_right, said) = schema_check(&paths);
    assert!(is_right, "{said}");
    for (name, dashboard) in &all {
        assert_eq!(text(dashboard, "uid"), format!("dnslab-{name}"));
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        let variables: Vec<&str> =
            variables.iter().map(|variable| text(variable, "name")).collect();
        assert_eq!(variables[..4], ["datasource", "experiment", "variant", "run"], "{name}");
        for panel in dashboard["panels"].as_array().unwrap() {
            let is_row = text(panel, "type") == "row";
            assert!(is_row || panel["datasource"]["uid"] == "${datasource}", "{panel}");
            let units = panel.pointer("/fieldConfig/defaults/unit");
            let units = units.or_else(|| panel.pointer("/options/yAxis/unit"));
            assert!(is_row || units.is_some(), "no unit: {name}, {}", text(panel, "title"));
        }
    }
}

#[test]
fn the_schema_finds_faults_in_dashboards() {
    let room = Room::quiet();
    let wrong = json!({ "defaults": { "uint": "s" }, "overrides": [] });
    for (pointer, value, fault) in [
        ("/panels", json!(7), "cannot unmarshal"),
        ("/templating", json!({ "liste": [] }), "unexpected field 'liste'"),
        ("/panels/0/fieldConfig", wrong, "unexpected field 'uint'"),
        ("/panels/0/options", json!({ "graph": "none" }), "unexpected field 'graph'"),
        ("/panels/0/targets/0/expr", json!(7), "expr"),
    ] {
        let mut dashboard = dashboards().remove("load").unwrap();
        *dashboard.pointer_mut(pointer).unwrap() = value;
        let path = room.write("wrong.json", &dashboard.to_string());
        let (is_right, said) = schema_check(&[path]);
        assert!(!is_right && said.contains(fault), "{pointer}: {said}");
    }
}

/// A file of the repository.
fn yaml(path: &str) -> Value {
    let script = "import json, sys, yaml\njson.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)";
    let mut command = Command::new("/usr/bin/python3");
    let output = command.args(["-c", script]).arg(in_repository(path)).output().unwrap();
    assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_is_offered_is_what_the_programs_read() {
    for (what, path) in
        [("config", "monitoring/prometheus.yml"), ("web-config", "monitoring/web.yml")]
    {
        let mut promtool = Command::new("promtool");
        let output = promtool.args(["check", what]).arg(in_repository(path)).output();
        let output = output.expect("promtool is installed");
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{path}: {said}");
    }
    let configuration = yaml("monitoring/prometheus.yml");
    assert_eq!(configuration["global"]["scrape_interval"], "5s");
    let sources = yaml("monitoring/grafana/datasources/prometheus.yml");
    assert_eq!(sources["datasources"][0]["url"], "http://127.0.0.1:9090");
    assert_eq!(sources["datasources"][0]["jsonData"]["timeInterval"], "5s");
    let providers = yaml("monitoring/grafana/dashboards/dnslab.yml");
    let folder = providers["providers"][0]["options"]["path"].as_str().unwrap().to_owned();

    // What a container sees is in the repository, and it listens on the loopback interface alone.
    let entries = fs::read_dir(in_repository("monitoring/quadlets")).unwrap().flatten();
    let mut seen = Vec::new();
    for entry in entries {
        let path = entry.path();
        let unit = fs::read_to_string(&path).unwrap();
        seen.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        assert!(unit.contains("\nNetwork=host\n") && unit.contains("127.0.0.1"), "{path:?}");
        assert!(!unit.contains("0.0.0.0"), "{path:?}");
        for volume in unit.lines().filter_map(|line| line.strip_prefix("Volume=/etc/dnslab/")) {
            let (outside, inside) = volume.split_once(':').unwrap();
            assert!(in_repository(outside).exists(), "{path:?}: {outside}");
            if outside == "grafana" {
                assert_eq!(inside.split(':').next(), Some(&folder[..]), "{path:?}");
            }
        }
    }
    seen.sort();
    let all = ["bind-exporter", "grafana", "node-exporter", "prometheus"];
    assert_eq!(seen, all.map(|name| format!("dnslab-{name}")));
}

/// A record of a running process in the form that `up` writes, as anybody can forge it.
fn forged_record(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let started: u64 =
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let id = serde_json::json!({ "pid": pid, "started": started, "boot": boot.trim_end() });
    serde_json::json!({ "id": id, "run_as": null }).to_string()
}

#[track_caller]
fn refuse(room: &Room, expected: &str) {
    for command in ["up", "down"] {
        let done = room.dnslab(&["monitor", command, "--folder", "stack"]);
        done.exits_with(2).complains(expected);
    }
}

#[test]
fn a_folder_of_somebody_else_ends_no_process_and_is_not_written() {
    assert!(rustix::process::geteuid().is_root(), "only root can give a file away: run it as root");
    let room = Room::quiet();
    let folder = room.path().join("stack");
    fs::create_dir(&folder).unwrap();
    let mut process = Command::new("sleep").arg("1000").spawn().unwrap();
    fs::write(folder.join("monitor.json"), "{}").unwrap();
    fs::write(folder.join("prometheus.process"), forged_record(process.id())).unwrap();
    std::os::unix::fs::symlink(room.path().join("made"), folder.join("lock")).unwrap();
    std::os::unix::fs::chown(&folder, Some(54_321), None).unwrap();
    refuse(&room, "belongs to the user 54321, not to root (0)");
    std::os::unix::fs::chown(&folder, Some(0), None).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    refuse(&room, "everybody may write ");
    // Nor does the sticky bit keep strangers from adding files that say what to do.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
    refuse(&room, "everybody may write ");
    // Who may write the folder above can put another one in its place.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(room.path(), fs::Permissions::from_mode(0o777)).unwrap();
    refuse(&room, "everybody may write ");
    fs::set_permissions(room.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // In root's own folder no link is followed.
    room.dnslab(&["monitor", "down", "--folder", "stack"]).exits_with(1);
    assert!(!room.path().join("made").exists());
    fs::remove_file(folder.join("lock")).unwrap();
    // A process of another user is not the one that root started.
    process.kill().unwrap();
    process.wait().unwrap();
    let mut other = Command::new("setpriv");
    other.args(["--reuid", "54321", "--clear-groups", "sleep", "1000"]);
    let mut process = other.spawn().unwrap();
    let uid = || fs::metadata(format!("/proc/{}", process.id())).unwrap().uid();
    wait_for("the process is the other user's", String::new, || (uid() == 54_321).then_some(()));
    fs::write(folder.join("prometheus.process"), forged_record(process.id())).unwrap();
    room.dnslab(&["monitor", "down", "--folder", "stack"]).exits_with(0);
    assert!(process.try_wait().unwrap().is_none(), "a process of another user was ended");
    process.kill().unwrap();
    process.wait().unwrap();
}
