//! Hosts that are pods, in a real Kubernetes. `./test cluster` starts it, and says where all is:
//!
//! - `KUBECONFIG` is its administrator's; `PATH` has its kubectl.
//! - `DNSLAB` is the program, linked statically, which is in the image `dnslab:VERSION` of the nodes, too.
//! - `localhost/coredns:1` and `localhost/bind:1` are images on the nodes.
//! - The DNS of the cluster, `kube-system/kube-dns`, is two CoreDNS.
//!
//! A test has a namespace of its own, which is empty at its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_record::{RunRecord, RunStatus};
use dnslab_results::ResultsDirectory;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Server and load on nodes that give them different CPUs of the one machine that all nodes are on.
const APART: [&str; 4] = [
    "--set",
    "host.server.nodes=dnslab/reserved-cpu=0",
    "--set",
    "host.load.nodes=dnslab/reserved-cpu=1",
];

const JOB_DEADLINES: &str = "jsonpath={.items[*].spec.activeDeadlineSeconds}";

struct Namespace {
    name: &'static str,
    folder: TempDir,
}

impl Namespace {
    fn make(name: &'static str) -> Self {
        kubectl(&["create", "namespace", name]);
        let folder = tempfile::tempdir().unwrap();
        Self { name, folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("DNSLAB").expect("./test cluster sets it"));
        command.args(arguments).args(["--set", &format!("hosts.namespace={}", self.name)]);
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn dnslab(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The session that is refused says all of this, and leaves nothing.
    fn check_refused(&self, more: &[&str], expected: &[&str]) {
        let done = self.dnslab(&[&["run", "encryption", "--on", "kubernetes"], more].concat());
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success(), "{said}");
        for part in expected {
            assert!(said.contains(part), "no `{part}` in:\n{said}");
        }
        self.is_empty_within(Duration::from_secs(20));
    }

    /// The manifest is refused, says this, and leaves nothing.
    fn check_no_stack(&self, more: &[&str], expected: &str) {
        let words = ["run", "coredns-restart", "--only", "left-alone"];
        let done = self.dnslab(&[&words[..], more].concat());
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && said.contains(expected), "no `{expected}` in:\n{said}");
        self.is_empty_within(Duration::from_secs(30));
    }

    fn start(&self, more: &[&str]) -> Child {
        let words = [
            "run",
            "encryption",
            "--on",
            "kubernetes",
            "--only",
            "udp",
            "--set",
            "load.duration=8s",
        ];
        let mut command = self.command(&[&words[..], &APART, more].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Servers behind Services and a load on one of them, which is measured.
    fn start_stack(&self) -> Child {
        let words = [
            "run",
            "coredns-restart",
            "--only",
            "left-alone",
            "--set",
            "server.image=localhost/coredns:1",
            "--set",
            "load.windows=all:0s..30s",
            "--set",
            "load.duration=30s",
        ];
        let mut command = self.command(&words);
        let session = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.wait_for_load();
        let made = kubectl(&["get", "jobs,deployments,services", "-n", self.name, "-o", "name"]);
        assert_eq!(made.lines().count(), 5, "{made}");
        session
    }

    /// One short run, as the user of this kubeconfig.
    fn short_run(&self, config: &Path) -> Output {
        let words = [
            &["run", "encryption", "--on", "kubernetes", "--only", "udp"][..],
            &["--set", "load.duration=1s", "--set", "repeat.runs=1"],
            &APART,
        ];
        self.command(&words.concat()).env("KUBECONFIG", config).output().unwrap()
    }

    /// Waits until the load has begun to be measured.
    fn wait_for_load(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while fs::read_dir(self.folder.path().join("results")).map_or(0, Iterator::count) == 0 {
            assert!(Instant::now() < end, "no session begins");
            thread::sleep(Duration::from_millis(100));
        }
        thread::sleep(Duration::from_secs(4));
    }

    /// A study at smoke size, whole, and what it said.
    fn study(&self, name: &str, more: &[&str]) -> String {
        let words = ["run", name, "--set", "repeat.runs=1", "--set", "load.warm_up=500ms"];
        let load = ["--set", "host.load.nodes=dnslab/reserved-cpu=1"];
        let done = self.dnslab(&[&words[..], &load, more].concat());
        let said = String::from_utf8_lossy(&[&done.stdout[..], &done.stderr].concat()).into_owned();
        assert!(done.status.success(), "{said}");
        self.is_empty_within(Duration::from_secs(30));
        for record in self.records() {
            assert_eq!(record.status, RunStatus::Valid, "{}: {said}", record.variant);
        }
        said
    }

    fn is_empty_within(&self, within: Duration) {
        const KINDS: &str = "jobs,pods,services,configmaps,deployments,daemonsets";
        let end = Instant::now() + within;
        loop {
            let left = kubectl(&["get", KINDS, "-n", self.name, "-o", "name"]);
            // The cluster puts its authority into each namespace.
            let left: Vec<&str> =
                left.lines().filter(|name| *name != "configmap/kube-root-ca.crt").collect();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "left in {}: {left:?}", self.name);
            thread::sleep(Duration::from_millis(500));
        }
    }

    /// The one results directory that was made.
    fn results(&self) -> PathBuf {
        let results = fs::read_dir(self.folder.path().join("results")).unwrap();
        results.flatten().next().unwrap().path()
    }

    fn records(&self) -> Vec<RunRecord> {
        ResultsDirectory::open(&self.results()).unwrap().runs().unwrap()
    }

    /// How many runs are valid, and how many there are.
    fn valid_of_all(&self) -> (usize, usize) {
        let records = self.records();
        let valid = records.iter().filter(|record| record.status == RunStatus::Valid);
        (valid.count(), records.len())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let words = ["delete", "namespace", self.name, "--wait=false"];
        Command::new("kubectl").args(words).stdout(Stdio::null()).status().ok();
    }
}

fn kubectl(words: &[&str]) -> String {
    let done = Command::new("kubectl").args(words).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn signal(process: &Child, signal: Signal) {
    kill_process(Pid::from_raw(process.id().cast_signed()).unwrap(), signal).unwrap();
}

fn apply(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    kubectl(&["apply", "-f", path.to_str().unwrap()]);
}

#[test]
fn the_hybrid_study_counts_what_coredns_counts() {
    let own = Namespace::make("hybrid");
    let words = [
        "run",
        "kubernetes-forwarding",
        "--on",
        "kubernetes",
        "--set",
        "load.duration=2s",
        "--set",
        "load.warm_up=500ms",
        "--set",
        "repeat.runs=1",
        "--set",
        "host.server.server_image=localhost/coredns:1",
        "--set",
        "host.upstream.server_image=localhost/bind:1",
    ];
    let done = own.dnslab(&[&words[..], &APART].concat());
    let said = [&done.stdout[..], &done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(done.status.success(), "{said}");
    assert!(said.contains("CoreDNS") && said.contains("dot-cached"), "{said}");
    own.is_empty_within(Duration::from_secs(20));
    let records = own.records();
    assert_eq!(records.len(), 4);
    for record in records {
        assert_eq!(record.status, RunStatus::Valid, "{}", record.variant);
        let measured = record.measured.unwrap();
        let sent = measured.counters.sent + measured.warm_up.sent;
        let counted = record.watched.counters.unwrap();
        let queries = counted.samples.last().unwrap().counts["queries"];
        // Beside those of the load it was asked whether it is ready, and whether it is reached.
        assert!(queries >= sent && queries <= sent + 10, "{}: {queries}, {sent}", record.variant);
        // The upstream is in a pod of its own, and seen there.
        let upstream = &record.watched.chain[0];
        assert_eq!((upstream.server.kind.as_str(), upstream.role.as_str()), ("bind", "upstream"));
        assert!(upstream.resources.samples.last().unwrap().cpu_ns > 0, "{}", record.variant);
    }
}

#[test]
fn what_cannot_be_is_said_and_leaves_nothing() {
    let own = Namespace::make("wrong");
    own.check_refused(
        &["--set", "hosts.image=localhost/none:1"],
        &["localhost/none:1", "hosts.image"],
    );
    own.check_refused(
        &["--set", "host.server.server_image=localhost/none:2"],
        &["server: its pod", "localhost/none:2", "host.server.server_image"],
    );
    own.check_refused(&["--set", "host.server.cpus=7"], &["Insufficient cpu", "host.server.cpus"]);
    own.check_refused(&["--set", "hosts.context=nowhere"], &["context \"nowhere\" does not exist"]);
    kubectl(&["create", "quota", "small", "--hard=limits.cpu=1", "-n", own.name]);
    own.check_refused(&[], &["exceeded quota: small"]);
}

#[test]
fn a_pod_that_never_runs_is_ended_by_the_cluster() {
    let own = Namespace::make("waiting");
    let mut session = own.start(&["--set", "host.server.nodes=dnslab/nowhere=1"]);
    let deadlines = ["get", "jobs", "-n", own.name, "-o", JOB_DEADLINES];
    let end = Instant::now() + Duration::from_secs(20);
    while !kubectl(&deadlines).contains("600") {
        assert!(Instant::now() < end, "no Job has a deadline");
        thread::sleep(Duration::from_millis(100));
    }
    signal(&session, Signal::KILL);
    session.wait().unwrap();
    // Nobody waits for ten minutes here.
    for job in kubectl(&["get", "jobs", "-n", own.name, "-o", "name"]).lines() {
        let soon = r#"{"spec": {"activeDeadlineSeconds": 1}}"#;
        kubectl(&["patch", job, "-n", own.name, "-p", soon]);
    }
    own.is_empty_within(Duration::from_secs(60));
}

#[test]
fn who_is_interrupted_before_a_pod_runs_leaves_nothing() {
    let own = Namespace::make("early");
    let mut session = own.start(&["--set", "host.server.nodes=dnslab/nowhere=1"]);
    let end = Instant::now() + Duration::from_secs(20);
    while kubectl(&["get", "jobs", "-n", own.name, "-o", "name"]).lines().count() < 2 {
        assert!(Instant::now() < end, "no pods are made");
        thread::sleep(Duration::from_millis(100));
    }
    signal(&session, Signal::INT);
    assert_eq!(session.wait().unwrap().code(), Some(130));
    own.is_empty_within(Duration::from_secs(10));
}

/// A node has a label as long as this is there.
struct Labelled(String);

impl Drop for Labelled {
    fn drop(&mut self) {
        let words = ["label", "node", &self.0, "dnslab/made-"];
        Command::new("kubectl").args(words).stdout(Stdio::null()).status().ok();
    }
}

#[test]
fn a_node_that_the_cluster_makes_is_waited_for() {
    let own = Namespace::make("scaled");
    let words = ["--set", "host.load.nodes=dnslab/made=1", "--set", "repeat.runs=1"];
    let mut session = own.start(&words);
    let of_load = ["get", "pods", "-l", "dnslab/host=load", "-n", own.name, "-o", "name"];
    let end = Instant::now() + Duration::from_secs(60);
    let pod = loop {
        let found = kubectl(&of_load);
        if let Some(name) = found.trim().strip_prefix("pod/") {
            break name.to_owned();
        }
        assert!(Instant::now() < end, "there is no pod");
        thread::sleep(Duration::from_millis(100));
    };
    // As the cluster autoscaler says it.
    let event = format!(
        r#"{{"apiVersion": "v1", "kind": "Event", "type": "Normal", "reason": "TriggeredScaleUp",
            "message": "pod triggered scale-up", "metadata": {{"name": "scale-up", "namespace": "{0}"}},
            "involvedObject": {{"kind": "Pod", "name": "{pod}", "namespace": "{0}"}}}}"#,
        own.name
    );
    apply(&own.folder.path().join("event.json"), &event);
    thread::sleep(Duration::from_secs(25));
    assert_eq!(session.try_wait().unwrap(), None, "it is not waited for");
    let nodes = ["get", "nodes", "-l", "dnslab/reserved-cpu=1", "-o"];
    let name = "jsonpath={.items[0].metadata.name}";
    let made = Labelled(kubectl(&[&nodes[..], &[name]].concat()));
    kubectl(&["label", "node", &made.0, "dnslab/made=1"]);
    assert_eq!(session.wait().unwrap().code(), Some(0));
    assert_eq!(own.valid_of_all(), (1, 1));
    own.is_empty_within(Duration::from_secs(30));
}

#[test]
fn the_role_of_the_plan_is_what_is_needed() {
    let own = Namespace::make("rights");
    let plan = own.dnslab(&["plan", "encryption", "--on", "kubernetes"]);
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    let role = &plan[plan.find("apiVersion: rbac").expect("a Role")..];
    let role = &role[..role.find("\n\n").unwrap()];
    let path = own.folder.path().join("role.yaml");
    apply(&path, &role.replace("\"get\",\"create\"", "\"get\""));
    kubectl(&["create", "serviceaccount", "tester", "-n", own.name]);
    kubectl(&[
        "create",
        "rolebinding",
        "tester",
        "--role=dnslab",
        "--serviceaccount=rights:tester",
        "-n",
        own.name,
    ]);
    let token = kubectl(&["create", "token", "tester", "-n", own.name]);
    let config = own.folder.path().join("config");
    let of_admin = fs::read_to_string(std::env::var_os("KUBECONFIG").unwrap()).unwrap();
    let of_tester = of_admin.lines().map(|line| match line.starts_with("users:") {
        true => format!("users: [{{name: admin, user: {{token: {}}}}}]", token.trim()),
        false => line.to_owned(),
    });
    fs::write(&config, of_tester.collect::<Vec<_>>().join("\n")).unwrap();
    let refused = String::from_utf8_lossy(&own.short_run(&config).stderr).into_owned();
    assert!(refused.contains("you may not create pods/exec"), "{refused}");
    // Nothing was made: a Job would be there for a moment.
    own.is_empty_within(Duration::ZERO);
    apply(&path, role);
    // What may be done is known to the cluster a moment later.
    let end = Instant::now() + Duration::from_secs(20);
    let may = ["auth", "can-i", "create", "pods", "--subresource=exec", "-n", own.name];
    let may = || Command::new("kubectl").args(may).env("KUBECONFIG", &config).output().unwrap();
    while !may().status.success() {
        assert!(Instant::now() < end, "the Role does not hold");
        thread::sleep(Duration::from_millis(100));
    }
    let done = own.short_run(&config);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    own.is_empty_within(Duration::from_secs(20));
}

#[test]
fn a_pod_that_is_killed_voids_its_run_alone() {
    let own = Namespace::make("killed");
    let mut session = own.start(&["--set", "repeat.runs=2"]);
    own.wait_for_load();
    // Those that run end by themselves.
    assert_eq!(kubectl(&["get", "jobs", "-n", own.name, "-o", JOB_DEADLINES]).trim(), "");
    // That of the server: the one that is made in its place has another address.
    let now = ["--grace-period=0", "--force"];
    kubectl(&[&["delete", "pods", "-l", "dnslab/host=server", "-n", own.name][..], &now].concat());
    session.wait().unwrap();
    assert_eq!(own.valid_of_all(), (1, 2));
    own.is_empty_within(Duration::from_secs(20));
}

#[test]
fn whoever_is_interrupted_or_killed_leaves_nothing() {
    let own = Namespace::make("deaths");
    let mut session = own.start_stack();
    signal(&session, Signal::INT);
    assert_eq!(session.wait().unwrap().code(), Some(130));
    own.is_empty_within(Duration::from_secs(30));

    fs::remove_dir_all(own.folder.path().join("results")).unwrap();
    let mut session = own.start_stack();
    signal(&session, Signal::KILL);
    session.wait().unwrap();
    // Its pod waits for half a minute for another agent. What was made of the manifest belongs to its Job.
    own.is_empty_within(Duration::from_secs(90));
}

/// No packet reaches the API server as long as this is there.
struct Cut;

impl Cut {
    const RULE: [&str; 6] = ["OUTPUT", "--destination", "10.78.0.1", "--jump", "DROP", "--wait"];

    fn make() -> Self {
        let done = Command::new("iptables").arg("--insert").args(Self::RULE).status().unwrap();
        assert!(done.success());
        Self
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        Command::new("iptables").arg("--delete").args(Self::RULE).status().ok();
    }
}

#[test]
fn a_way_that_is_cut_for_a_moment_harms_nothing_and_for_a_minute_one_run() {
    let own = Namespace::make("cut");
    let mut session = own.start(&["--set", "repeat.runs=2", "--set", "load.duration=16s"]);
    own.wait_for_load();
    let cut = Cut::make();
    thread::sleep(Duration::from_secs(10));
    drop(cut);
    assert_eq!(session.wait().unwrap().code(), Some(0));
    assert_eq!(own.valid_of_all(), (2, 2));
    own.is_empty_within(Duration::from_secs(30));

    fs::remove_dir_all(own.folder.path().join("results")).unwrap();
    let mut session = own.start(&["--set", "repeat.runs=2", "--set", "load.duration=16s"]);
    own.wait_for_load();
    let cut = Cut::make();
    thread::sleep(Duration::from_secs(60));
    drop(cut);
    session.wait().unwrap();
    // What was measured before is whole, and what was not can be measured when the way is there again.
    let (valid, all) = own.valid_of_all();
    assert!(valid < 2 && all <= 2, "{valid} of {all}");
    let results = own.results().display().to_string();
    let mut resume = Command::new(std::env::var_os("DNSLAB").unwrap());
    resume.args(["run", "--resume", &results]).current_dir(own.folder.path());
    let resumed = resume.output().unwrap();
    let said = String::from_utf8_lossy(&resumed.stderr).into_owned();
    assert!(resumed.status.success(), "{said}");
    assert_eq!(own.valid_of_all(), (2, 2));
    own.is_empty_within(Duration::from_secs(90));
}

/// A node takes no pods as long as this is there.
struct Drained(String);

impl Drop for Drained {
    fn drop(&mut self) {
        Command::new("kubectl").args(["uncordon", &self.0]).stdout(Stdio::null()).status().ok();
    }
}

#[test]
fn a_node_that_is_drained_voids_one_run() {
    let own = Namespace::make("drained");
    // Another node has the same CPU for the next one.
    let load = [
        "--set",
        "repeat.runs=2",
        "--set",
        "host.load.nodes=dnslab/reserved-cpu=0",
        "--set",
        "host.server.nodes=dnslab/reserved-cpu=1",
    ];
    let mut session = own.start(&load);
    own.wait_for_load();
    let of_load = ["get", "pods", "-l", "dnslab/host=load", "-n", own.name];
    let node = kubectl(&[&of_load[..], &["-o", "jsonpath={.items[0].spec.nodeName}"]].concat());
    let drained = Drained(node.clone());
    kubectl(&["drain", &node, "--ignore-daemonsets", "--delete-emptydir-data", "--force"]);
    session.wait().unwrap();
    assert_eq!(own.valid_of_all(), (1, 2));
    drop(drained);
    own.is_empty_within(Duration::from_secs(30));
}

/// A volume of the cluster as long as this is there.
struct Volume;

impl Drop for Volume {
    fn drop(&mut self) {
        let words = ["delete", "persistentvolume", "dns-nightly", "--wait=false"];
        Command::new("kubectl").args(words).stdout(Stdio::null()).status().ok();
    }
}

#[test]
fn each_night_is_compared_with_the_first() {
    let own = Namespace::make("nightly");
    let folder = own.folder.path().join("volume");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::chown(&folder, Some(65_532), Some(65_532)).unwrap();
    let claim = serde_json::json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "dns-nightly"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": folder},
            "claimRef": {"namespace": own.name, "name": "dns-nightly"}}});
    let _volume = Volume;
    apply(&own.folder.path().join("volume.json"), &claim.to_string());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kubernetes/nightly.yaml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let version = Command::new(std::env::var_os("DNSLAB").unwrap()).arg("--version").output();
    let version = String::from_utf8(version.unwrap().stdout).unwrap();
    let image = version.trim().replace(' ', ":");
    assert!(manifest.contains(&image), "{image}");
    let short = manifest.replace("duration = \"20s\"", "duration = \"1s\"");
    let short = short.replace("runs = 10", "runs = 2").replace("p99<+50%", "p99<+900%");
    let path = own.folder.path().join("nightly.yaml");
    fs::write(&path, short).unwrap();
    kubectl(&["apply", "-n", own.name, "-f", path.to_str().unwrap()]);
    for night in ["first", "second"] {
        kubectl(&["create", "job", "--from=cronjob/dns-nightly", night, "-n", own.name]);
        let end = Instant::now() + Duration::from_secs(60);
        let state =
            ["get", "job", night, "-n", own.name, "-o", "jsonpath={.status.conditions[*].type}"];
        let state = loop {
            let state = kubectl(&state);
            if state.contains("Complete") || state.contains("Failed") {
                break state;
            }
            assert!(
                Instant::now() < end,
                "{}",
                kubectl(&["get", "pods", "-n", own.name, "-o", "yaml"])
            );
            thread::sleep(Duration::from_millis(500));
        };
        let job = format!("job/{night}");
        let said = kubectl(&["logs", &job, "-n", own.name, "-c", "compare"]);
        // What two runs of a second say of a limit is chance.
        let expected =
            if night == "first" { "compared with itself" } else { "base: a running server" };
        assert!(said.contains(expected), "{state}: {said}");
    }
    let junit = fs::read_to_string(folder.join("dns-nightly.xml")).unwrap();
    assert!(junit.contains("<testsuite"), "{junit}");
}

/// What the pods of the cluster's DNS counted in a run, each.
fn counted(record: &RunRecord) -> Vec<u64> {
    let service = record.watched.service.as_ref().expect("a Service was asked");
    assert_eq!(service.unseen, Vec::<String>::new());
    service.pods.iter().map(|pod| pod.counted("queries")).collect()
}

fn sent(record: &RunRecord) -> u64 {
    let measured = record.measured.as_ref().unwrap();
    measured.counters.sent + measured.warm_up.sent
}

#[test]
fn the_clusters_own_dns_is_watched_by_what_its_pods_publish() {
    let own = Namespace::make("watched");
    let said = own.study("cluster-dns", &["--set", "load.duration=3s"]);
    assert!(said.contains("the busiest of 2 pods got"), "{said}");
    let records = own.records();
    assert_eq!(records.len(), 4);
    for record in &records {
        let (counted, sent) = (counted(record), sent(record));
        // Others of the cluster ask it, too, and it is asked whether it is reached.
        let all: u64 = counted.iter().sum();
        assert!((sent..=sent + 200).contains(&all), "{}: {counted:?}, {sent}", record.variant);
        assert!(record.watched.resources.samples.last().unwrap().cpu_ns > 0, "{}", record.variant);
        assert_eq!(counted.len(), 2);
        // Of so many flows neither pod has few.
        if record.load.sockets == 1_024 {
            assert!(counted.iter().all(|count| count * 10 > all * 3), "{counted:?}");
        }
    }
    let sockets: Vec<u64> = records.iter().map(|record| record.load.sockets).collect();
    let mut sorted = sockets.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [2, 8, 64, 1_024], "{sockets:?}");
}

/// The process by which the API server is read.
fn reader() -> Option<Pid> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let found = all.filter_map(|entry| {
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let is_it = line.starts_with("kubectl\0") && line.contains("--unix-socket=");
        entry.file_name().to_str()?.parse().ok().filter(|_| is_it)
    });
    found.filter_map(Pid::from_raw).next()
}

#[test]
fn who_reads_the_api_server_is_replaced_in_the_next_round() {
    let own = Namespace::make("reader");
    let words = ["run", "cluster-dns", "--only", "8-flows", "--set", "repeat.runs=2"];
    let load = ["--set", "host.load.nodes=dnslab/reserved-cpu=1", "--set", "load.duration=12s"];
    let mut session = own.command(&[&words[..], &load].concat());
    let mut session = session.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    own.wait_for_load();
    kill_process(reader().expect("one reads it"), Signal::KILL).unwrap();
    assert_eq!(session.wait().unwrap().code(), Some(0));
    let mut records = own.records();
    records.sort_by_key(|record| record.repetition);
    let unseen = records.iter().map(|record| record.watched.service.as_ref().unwrap().unseen.len());
    let unseen: Vec<usize> = unseen.collect();
    assert!(unseen[0] > 0 && unseen[1] == 0, "{unseen:?}");
    own.is_empty_within(Duration::from_secs(30));
}

#[test]
fn a_search_list_costs_what_the_pods_count() {
    let own = Namespace::make("search");
    let said = own.study(
        "ndots",
        &["--set", "load.duration=3s", "--set", "server.image=localhost/coredns:1"],
    );
    assert!(said.contains("Queries for each name and type: 3.00 in ndots-5"), "{said}");
    for record in own.records() {
        let measured = record.measured.as_ref().unwrap();
        let (answered, searched) =
            (measured.counters.outcomes.answered, measured.counters.searched);
        let all: u64 = counted(&record).iter().sum();
        let sent = sent(&record);
        assert!((sent..=sent + 200).contains(&all), "{}: {all}, {sent}", record.variant);
        // www.example.com is found after three domains, or at once; kubernetes.default in the second domain, which comes
        // second or third.
        let expected = match record.variant.as_str() {
            "ndots-5" => 2.0,
            "ndots-2" => 0.5,
            "ndots-1" => 1.0,
            "own" => 2.0,
            "fqdn" | "autopath" => 0.0,
            variant => panic!("{variant}"),
        };
        let found = searched as f64 / answered as f64;
        assert!((found - expected).abs() < 0.05, "{}: {found}", record.variant);
    }
}

#[test]
fn a_node_cache_asks_the_clusters_dns_and_answers_from_its_cache() {
    let own = Namespace::make("cache");
    let cache = [
        "--set",
        "load.duration=3s",
        "--set",
        "host.cache.server_image=localhost/coredns:1",
        "--set",
        "host.cache.nodes=dnslab/reserved-cpu=0",
    ];
    own.study("node-cache", &cache);
    let records = own.records();
    let cached = records.iter().find(|record| record.variant == "node-cache").unwrap();
    let counters = cached.watched.counters.as_ref().unwrap();
    let (queries, hits) = (counters.growth("queries"), counters.growth("cache.hits"));
    assert!(hits > Some(100) && hits <= queries, "{queries:?} {hits:?}");
    // What the pods of the cluster do for it is not seen.
    assert_eq!(cached.servers_cpu_per_query_ns(), None);
}

#[test]
fn sockets_of_coredns_are_compared() {
    let own = Namespace::make("sockets");
    let server = [
        "--set",
        "load.duration=1s",
        "--set",
        "host.server.server_image=localhost/coredns:1",
        "--set",
        "host.server.nodes=dnslab/reserved-cpu=0",
        "--set",
        "host.server.cpus=1",
    ];
    let said = own.study("coredns-sockets", &server);
    assert!(said.contains("8-sockets"), "{said}");
}

#[test]
fn what_is_lost_while_coredns_is_rolled() {
    let own = Namespace::make("rolled");
    let short = [
        "--set",
        "server.image=localhost/coredns:1",
        "--set",
        "load.duration=12s",
        "--set",
        "load.windows=before:0s..2s,roll-out:2s..12s",
        "--set",
        "event.at=2s",
    ];
    let said = own.study("coredns-restart", &short);
    assert!(said.contains("The work in lameduck takes"), "{said}");
    for record in own.records() {
        let outcomes = record.measured.as_ref().unwrap().counters.outcomes;
        let changes = &record.watched.service.as_ref().unwrap().changes;
        match &record.watched.event {
            None => assert_eq!((record.variant.as_str(), outcomes.lost()), ("left-alone", 0)),
            Some(event) => {
                assert!(event.ended_ns > event.at_ns, "{event:?}");
                assert!(!changes.is_empty(), "{}", record.variant);
                let came: usize = changes.iter().map(|change| change.came.len()).sum();
                assert_eq!(came, 2, "{changes:?}");
            }
        }
        // A CoreDNS that ends at once is asked until every node knows.
        if record.variant == "abrupt" {
            assert!(outcomes.lost() > 0, "{outcomes:?}");
        }
    }
}

#[test]
fn a_cache_of_a_node_that_is_replaced_leaves_its_pods_without_dns() {
    let own = Namespace::make("replaced");
    let short = [
        "--set",
        "server.image=localhost/coredns:1",
        "--set",
        "load.duration=28s",
        "--set",
        "load.windows=before:0s..1s,roll-out:1s..28s",
        "--set",
        "event.at=1s",
        "--set",
        "load.rate=500",
    ];
    own.study("node-cache-restart", &short);
    let lost = |name: &str| {
        let records = own.records();
        let record = records.iter().find(|record| record.variant == name).unwrap();
        record.measured.as_ref().unwrap().counters.outcomes.lost_share()
    };
    let (alone, surging, replaced) = (lost("left-alone"), lost("surging"), lost("replaced"));
    assert_eq!(alone, 0.0);
    assert!(replaced > 10.0 * surging && replaced > 0.01, "{surging} {replaced}");
}

#[test]
fn a_manifest_that_cannot_be_is_said_and_leaves_nothing() {
    let own = Namespace::make("manifest");
    own.check_no_stack(&["--set", "server.image=localhost/none:3"], "`server.image`");
    own.check_no_stack(&["--set", "server.manifest=nothing"], "dnslab has no manifest `nothing`");
    let path = own.folder.path().join("wide.yaml");
    fs::write(&path, "apiVersion: v1\nkind: Namespace\nmetadata: {name: wide}\n").unwrap();
    let wide = format!("server.manifest={}", path.display());
    own.check_no_stack(&["--set", &wide], "of the kind `Namespace`");
    own.check_no_stack(
        &["--set", "server.image=localhost/coredns:1", "--set", "server.service=none"],
        "services \"none\" not found",
    );
}
