//! The manifests in `kubernetes`: they parse and fit together, their Corefiles run in a real CoreDNS
//! that forwards to a real BIND, and the real command takes the arguments of their jobs.
//!
//! No cluster is used: the test replaces addresses and paths of a cluster by its own.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dnslab_lab::{certificate, ports};
use dnslab_record::RunStatus;
use dnslab_wire::Transport;
use serde_json::Value;

use crate::command::{Guarded, coredns};
use crate::evidence::{records, valid_records};
use crate::processes::wait_for;
use crate::room::Room;
use crate::running_server::{RunningBind, ask};

/// The upstream's address in the manifests.
const UPSTREAM: &str = "192.0.2.53";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kubernetes")
}

/// The documents of a YAML file.
#[track_caller]
fn documents(path: &str) -> Vec<Value> {
    let script = "import json, sys, yaml\n\
                  json.dump(list(yaml.safe_load_all(open(sys.argv[1]))), sys.stdout)";
    let output = Command::new("/usr/bin/python3")
        .args(["-c", script])
        .arg(folder().join(path))
        .output()
        .unwrap_or_else(|error| panic!("python3: {error}: apt-get install python3-yaml"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{path}: {text}: apt-get install python3-yaml");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn document(path: &str, kind: &str, name: &str) -> Value {
    let found = documents(path).into_iter().find(|document| {
        document["kind"] == kind
            && document.pointer("/metadata/name").is_some_and(|its| its == name)
    });
    found.unwrap_or_else(|| panic!("no {kind} {name} in {path}"))
}

#[track_caller]
fn text(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {pointer} in {value}")).to_owned()
}

/// The arguments of a job's container, with the replacements that the cluster would make.
#[track_caller]
fn arguments(path: &str, name: &str, replaced: &[(&str, &str)]) -> Vec<String> {
    let job = document(path, "Job", name);
    let list = job.pointer("/spec/template/spec/containers/0/args").and_then(Value::as_array);
    let list = list.expect("the container has arguments").iter();
    let list: Vec<String> = list
        .map(|word| {
            let word = word.as_str().expect("arguments are text").to_owned();
            replaced.iter().fold(word, |word, (from, to)| word.replace(from, to))
        })
        .collect();
    assert!(list.iter().all(|word| !word.contains("$(")), "nothing replaces it: {list:?}");
    list
}

/// Runs the Corefile of one of the paths. Dropping it ends it.
struct CoreDns {
    address: SocketAddr,
    child: Guarded,
}

impl CoreDns {
    /// Starts it in `folder`, with `bind` as its upstream, whose certificate must name `server_name`.
    #[track_caller]
    fn start(path: &str, folder: &Path, bind: &RunningBind, server_name: &str) -> Self {
        fs::create_dir_all(folder).unwrap();
        let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
        // The ports of one call differ from each other.
        let free = ports::free(localhost).unwrap();
        let corefile =
            text(&document(&format!("{path}/path.yaml"), "ConfigMap", "path"), "/data/Corefile");
        let mut own = corefile;
        let upstream = if path == "tls" { bind.dot } else { bind.plain };
        let authority = bind.authority.display().to_string();
        for (from, to) in [
            (".:1053 {".to_owned(), format!(".:{} {{\n    bind 127.0.0.1", free.plain)),
            ("ready :8181".to_owned(), format!("ready 127.0.0.1:{}", free.doh2)),
            ("prometheus :9153".to_owned(), format!("prometheus 127.0.0.1:{}", free.dot)),
            (UPSTREAM.to_owned(), upstream.to_string()),
        ] {
            assert_eq!(own.matches(&from).count(), 1, "`{from}` in {own}");
            own = own.replace(&from, &to);
        }
        if path == "tls" {
            assert!(
                own.contains("tls /etc/upstream/ca.pem") && own.contains("dns.example"),
                "{own}"
            );
            own =
                own.replace("/etc/upstream/ca.pem", &authority).replace("dns.example", server_name);
        }
        fs::write(folder.join("Corefile"), &own).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let child = Command::new(coredns())
            .args(["-conf", "Corefile"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run coredns: {error}; ./test installs it"));
        let mut own =
            Self { address: SocketAddr::new(localhost, free.plain), child: Guarded(child) };
        let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        wait_for("coredns listens", log, || {
            let ended = own.child.0.try_wait().unwrap();
            assert!(ended.is_none(), "coredns ended with {ended:?}: {}", log());
            log().contains("CoreDNS-").then_some(())
        });
        own
    }
}

/// Writes the query file of the manifests into the room, and returns its path.
fn queries(room: &Room) -> String {
    let queries = text(&document("setup.yaml", "ConfigMap", "queries"), "/data/queries.txt");
    room.write("queries.txt", &queries).display().to_string()
}

/// Shortens a job's load: replaces the values of its options.
fn short(arguments: Vec<String>) -> Vec<String> {
    let shortened = [("--rate=", "200"), ("--warm-up=", "100ms"), ("--duration=", "300ms")];
    let shorten = |word: String| {
        let found = shortened.iter().find(|(option, _)| word.starts_with(option));
        found.map_or(word.clone(), |(option, value)| format!("{option}{value}"))
    };
    arguments.into_iter().map(shorten).collect()
}

#[test]
fn the_corefiles_forward_and_the_jobs_load_them() {
    for path in ["udp", "tls"] {
        let room = Room::with_load();
        let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
        let coredns = CoreDns::start(path, &room.path().join(path), &bind, certificate::NAME);
        wait_for("it forwards", String::new, || {
            let answer = ask(Transport::Udp, coredns.address, None, "host7.example.test");
            (answer == "192.0.2.7").then_some(())
        });
        let (queries, results) = (queries(&room), room.path().join("results"));
        let arguments = arguments(
            "base/load.yaml",
            "load",
            &[
                ("$(TARGET)", &coredns.address.to_string()),
                ("/etc/queries/queries.txt", &queries),
                ("/results", results.to_str().unwrap()),
            ],
        );
        room.dnslab(&short(arguments)).exits_with(0);
        let record = valid_records(&room.results(), 1).remove(0);
        assert_eq!((record.load.clients, record.load.transport_name()), (50, "udp"));
    }
}

/// The certificate is really verified, so the answers above came over TLS.
#[test]
fn an_upstream_of_another_name_is_not_asked() {
    let room = Room::quiet();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    let coredns = CoreDns::start("tls", &room.path().join("tls"), &bind, "other.test");
    let failed = |log: &str| log.contains("certificate is valid for") && log.contains("other.test");
    let log = || fs::read_to_string(room.path().join("tls/log")).unwrap_or_default();
    wait_for("it complains of the name", log, || {
        let answer = ask(Transport::Udp, coredns.address, None, "host7.example.test");
        assert_eq!(answer, "", "it forwarded to a server of another name");
        failed(&log()).then_some(())
    });
}

#[test]
fn the_comparison_asks_both_paths_in_alternation() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    let paths = ["udp", "tls"]
        .map(|path| CoreDns::start(path, &room.path().join(path), &bind, certificate::NAME));
    let queries = queries(&room);
    let experiment =
        text(&document("compare/experiment.yaml", "ConfigMap", "experiment"), "/data/hybrid.toml");
    let experiment = experiment.replace("/etc/queries/queries.txt", &queries);
    let file = room.write("hybrid.toml", &experiment).display().to_string();
    let results = room.path().join("results");
    let [udp, tls] = paths.each_ref().map(|path| path.address.to_string());
    let mut arguments = arguments(
        "compare/job.yaml",
        "compare",
        &[
            ("$(COREDNS_UDP_SERVICE_HOST)", &udp),
            ("$(COREDNS_TLS_SERVICE_HOST)", &tls),
            ("/etc/experiment/hybrid.toml", &file),
            ("/results", results.to_str().unwrap()),
        ],
    );
    for shorter in ["load.rate=200", "load.warm_up=100ms", "load.duration=300ms", "repeat.runs=2"] {
        arguments.push(format!("--set={shorter}"));
    }
    room.dnslab(&arguments).exits_with(0).prints("4 runs of 2 variants");
    let records = records(&room.results());
    assert!(records.iter().all(|record| record.status == RunStatus::Valid));
    for record in records {
        let target = if record.variant == "udp" { &udp } else { &tls };
        assert_eq!(&record.load.target, target);
    }
}

/// Every workload is pinned (Guaranteed: limits equal requests), and keeps away from the other one.
#[test]
fn workloads_have_cpus_and_nodes_of_their_own() {
    for (path, kind, name) in [
        ("base/coredns.yaml", "Deployment", "coredns"),
        ("base/load.yaml", "Job", "load"),
        ("compare/job.yaml", "Job", "compare"),
    ] {
        let pod = document(path, kind, name)["spec"]["template"].take();
        let containers = pod["spec"]["containers"].as_array().unwrap();
        assert!(pod["spec"].get("initContainers").is_none(), "they count for the class, too");
        for container in containers {
            let (requests, limits) =
                (&container["resources"]["requests"], &container["resources"]["limits"]);
            assert_eq!(requests, limits, "{path} is not Guaranteed");
            let whole = text(requests, "/cpu").parse::<u32>();
            assert!(whole.is_ok_and(|cpus| cpus > 0), "{path} gets no CPUs of its own");
            assert!(requests.get("memory").is_some(), "{path}");
        }
        let apart =
            "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0";
        let apart = pod.pointer(apart).unwrap_or_else(|| panic!("{path} may be anywhere"));
        assert_eq!(apart["topologyKey"], "kubernetes.io/hostname");
        let others = &apart["labelSelector"]["matchExpressions"][0];
        assert_eq!((&others["key"], &others["operator"]), (&"app".into(), &"In".into()));
        assert_eq!(others["values"], serde_json::json!(["coredns", "load"]), "{path}");
        let own = text(&pod, "/metadata/labels/app");
        assert!(["coredns", "load"].contains(&own.as_str()), "{path} is not kept away from");
    }
}

/// Names that one manifest gives and another uses.
#[test]
fn the_manifests_fit_together() {
    for path in ["base", "udp", "tls", "compare"] {
        let kustomization = documents(&format!("{path}/kustomization.yaml")).remove(0);
        for resource in kustomization["resources"].as_array().unwrap() {
            let resource = folder().join(path).join(resource.as_str().unwrap());
            assert!(resource.exists(), "{path}: there is no {}", resource.display());
        }
        assert_eq!(kustomization["namespace"], "dnslab", "{path}");
    }
    document("setup.yaml", "Namespace", "dnslab");
    for path in ["udp", "tls"] {
        let suffix = text(&documents(&format!("{path}/kustomization.yaml"))[0], "/nameSuffix");
        let target =
            text(&document(&format!("{path}/path.yaml"), "ConfigMap", "path"), "/data/target");
        assert_eq!(target, format!("coredns{suffix}"), "the load would ask another Service");
        // The comparison must know the variable with the address of that Service.
        let variable = target.to_uppercase().replace('-', "_");
        let job = document("compare/job.yaml", "Job", "compare").to_string();
        let setting = format!("variant.{path}.server.address=$({variable}_SERVICE_HOST)");
        assert!(job.contains(&setting), "no {setting} in {job}");
    }
    let service = document("base/coredns.yaml", "Service", "coredns");
    let deployment = document("base/coredns.yaml", "Deployment", "coredns");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(service["spec"]["selector"], *labels);
    let ports = deployment.pointer("/spec/template/spec/containers/0/ports").unwrap().to_string();
    for port in service["spec"]["ports"].as_array().unwrap() {
        assert!(ports.contains(&text(port, "/targetPort")), "no port {port} in {ports}");
    }
    // Volumes must be existing ConfigMaps and claims.
    let known = ["path", "upstream-ca", "queries", "experiment", "results"];
    for (path, kind, name) in [
        ("base/coredns.yaml", "Deployment", "coredns"),
        ("base/load.yaml", "Job", "load"),
        ("compare/job.yaml", "Job", "compare"),
    ] {
        let pod = document(path, kind, name)["spec"]["template"]["spec"].take();
        for volume in pod["volumes"].as_array().unwrap() {
            let source = volume
                .pointer("/configMap/name")
                .or(volume.pointer("/persistentVolumeClaim/claimName"));
            assert!(known.contains(&source.unwrap().as_str().unwrap()), "{path}: {volume}");
        }
        for mount in pod["containers"][0]["volumeMounts"].as_array().unwrap() {
            let volumes = pod["volumes"].as_array().unwrap();
            assert!(
                volumes.iter().any(|volume| volume["name"] == mount["name"]),
                "{path}: {mount}"
            );
        }
    }
    let reader = document("reader.yaml", "Pod", "reader");
    assert_eq!(text(&reader, "/spec/volumes/0/persistentVolumeClaim/claimName"), "results");
}
