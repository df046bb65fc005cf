//! Hosts that are pods, in a real Kubernetes. `./test cluster` starts it, and says where all is:
//!
//! - `KUBECONFIG` is its administrator's; `PATH` has its kubectl.
//! - `DNSLAB` is the program, linked statically, which is in the image `dnslab:VERSION` of the nodes, too.
//! - `localhost/coredns:1` and `localhost/bind:1` are images on the nodes.
//!
//! A test has a namespace of its own, which is empty at its end.

use std::fs;
use std::path::Path;
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

    fn is_empty_within(&self, within: Duration) {
        let end = Instant::now() + within;
        loop {
            let left =
                kubectl(&["get", "jobs,pods,services,configmaps", "-n", self.name, "-o", "name"]);
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

    fn records(&self) -> Vec<RunRecord> {
        let results = fs::read_dir(self.folder.path().join("results")).unwrap();
        let path = results.flatten().next().unwrap().path();
        ResultsDirectory::open(&path).unwrap().runs().unwrap()
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
    kubectl(&[
        "delete",
        "pods",
        "-l",
        "dnslab/host=load",
        "-n",
        own.name,
        "--grace-period=0",
        "--force",
    ]);
    session.wait().unwrap();
    let records = own.records();
    let valid = records.iter().filter(|record| record.status == RunStatus::Valid).count();
    assert_eq!((records.len(), valid), (2, 1));
    own.is_empty_within(Duration::from_secs(20));
}

#[test]
fn whoever_is_interrupted_or_killed_leaves_nothing() {
    let own = Namespace::make("deaths");
    let mut session = own.start(&[]);
    own.wait_for_load();
    signal(&session, Signal::INT);
    assert_eq!(session.wait().unwrap().code(), Some(130));
    own.is_empty_within(Duration::from_secs(20));

    fs::remove_dir_all(own.folder.path().join("results")).unwrap();
    let mut session = own.start(&[]);
    own.wait_for_load();
    signal(&session, Signal::KILL);
    session.wait().unwrap();
    // Its pods wait for half a minute for another agent.
    own.is_empty_within(Duration::from_secs(90));
}
