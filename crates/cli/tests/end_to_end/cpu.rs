//! Where the CPU time of a server goes, sampled by perf.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use dnslab_analysis::{CostSummary, Summary, VariantCost};
use dnslab_record::CostPart;

use crate::command::{Done, Running, program};
use crate::evidence::valid_records;
use crate::replay::capture;
use crate::room::{Room, SHORT};
use crate::running_server::{RunningBind, queries};

const UDP_AND_DOT: &str = "[[variant]]\nname = \"udp\"\nload.transport = \"udp\"\n\
    [[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n";

/// A load long enough for some hundred samples.
const LOAD: &str =
    "repeat.runs = 2\n[load]\nclients = 20\nduration = \"1s\"\nwarm_up = \"200ms\"\n";

fn cost(room: &Room) -> CostSummary {
    let results = room.results();
    let (session, records) = (results.session().unwrap(), results.runs().unwrap());
    let summary = Summary::whole(
        &session,
        &records,
        results.answer_comparisons().unwrap(),
        results.cpu_profiles().unwrap().as_ref(),
    );
    summary.cpu.unwrap_or_else(|| panic!("nothing was sampled in {}", room.path().display()))
}

fn of<'a>(cost: &'a CostSummary, variant: &str) -> &'a VariantCost {
    let found = cost.variants.iter().find(|variant_cost| variant_cost.variant == variant);
    found.unwrap_or_else(|| panic!("{variant} was not sampled: {cost:?}"))
}

/// Samples of parts of a variant.
fn samples(variant_cost: &VariantCost, parts: &[CostPart]) -> u64 {
    variant_cost
        .parts
        .iter()
        .filter(|cost| parts.contains(&cost.part))
        .map(|cost| cost.samples)
        .sum()
}

const ENCRYPTION: [CostPart; 2] = [CostPart::Tls, CostPart::Crypto];
const KERNEL: [CostPart; 2] = [CostPart::KernelNetwork, CostPart::KernelRest];

/// What must hold of UDP and DoT on any server.
#[track_caller]
fn check(room: &Room, done: &Done) {
    let results = room.results();
    let records = valid_records(&results, 4);
    let cost = cost(room);
    assert_eq!(cost.not_profiled, [], "{done}");
    for variant in ["udp", "dot"] {
        let variant_cost = of(&cost, variant);
        // The parts add up to what was measured without perf.
        let own = records.iter().filter(|record| record.variant == variant);
        let measured: Vec<f64> =
            own.filter_map(|record| record.observation()?.server_cpu_per_query_ns()).collect();
        // Means of runs are geometric.
        let mean = (measured.iter().map(|ns| ns.ln()).sum::<f64>() / measured.len() as f64).exp();
        let sum: f64 = variant_cost.parts.iter().map(|part| part.ns.value).sum();
        assert!(
            (sum / mean - 1.0).abs() < 1e-9,
            "{variant}: {sum} is not {mean}: {variant_cost:?}"
        );
        assert!(variant_cost.samples > 50, "{variant}: {variant_cost:?}");
        assert!(samples(variant_cost, &KERNEL) > 0, "{variant}: {variant_cost:?}");
        assert!(
            variant_cost.parts.iter().all(|part| part.ns.low <= part.ns.value),
            "{variant_cost:?}"
        );
        assert!(
            variant_cost.sampler.starts_with("perf ") && variant_cost.rate_hz > 0,
            "{variant_cost:?}"
        );
        assert!(variant_cost.answered_qps.iter().all(|qps| *qps > 0.0), "{variant_cost:?}");
    }
    assert_eq!(samples(of(&cost, "udp"), &ENCRYPTION), 0, "{cost:?}");
    assert!(samples(of(&cost, "dot"), &ENCRYPTION) > 0, "{cost:?}");

    let read = |name: &str| fs::read_to_string(results.path().join(name)).unwrap();
    let page = read("report.html");
    for text in ["Where the CPU time goes", "id=\"cpu-parts\"", "Flame graph of dot against udp"] {
        assert!(page.contains(text), "no `{text}` on the page: {done}");
    }
    assert!(read("table.md").contains("**Where the CPU time goes**"), "{done}");
    assert!(read("summary.json").contains("\"kernel-network\""), "{done}");
    let rows: usize = cost.variants.iter().map(|variant_cost| variant_cost.parts.len()).sum();
    assert_eq!(read("cpu.csv").lines().count(), 1 + rows, "{done}");
    // The runs with perf are in no figure, and nothing of them is left.
    assert_eq!(read("runs.csv").lines().count(), 5, "{done}");
    let left = fs::read_dir(results.path()).unwrap().flatten();
    let left: Vec<String> =
        left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!left.contains(&"sampled".to_owned()), "{left:?}");

    // The page needs no perf.
    fs::remove_file(results.path().join("report.html")).unwrap();
    let path = results.path().display().to_string();
    let mut again = Command::new(program());
    again.args(["report", &path]).env("PATH", "/nonexistent");
    Running::start(again, room.path()).finish().exits_with(0);
    assert_eq!(read("report.html"), page);
}

#[test]
fn parts_of_bind_add_up_to_its_cpu_time() {
    let room = Room::alone();
    room.experiment(&format!("server.kind = \"bind\"\n{LOAD}{UDP_AND_DOT}"));
    let done = room.dnslab(&["run", "./experiment.toml", "--profile"]).exits_with(0);
    check(&room, &done);
    let cost = cost(&room);
    // BIND's libraries are parts of their own.
    let udp = of(&cost, "udp");
    for part in [CostPart::EventLoop, CostPart::DnsLogic, CostPart::KernelNetwork] {
        assert!(samples(udp, &[part]) > 0, "{part:?}: {udp:?}");
    }
}

#[test]
fn parts_of_the_embedded_server_add_up_to_its_cpu_time() {
    let room = Room::alone();
    room.experiment(&format!("repeat.profile = true\n{LOAD}{UDP_AND_DOT}"));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    check(&room, &done);
    // The key and the option are the same; whoever resumes has nothing more to do.
    let path = room.results().path().display().to_string();
    let before = fs::metadata(room.results().path().join("cpu-profile.json")).unwrap();
    room.dnslab(&["run", "--resume", &path]).exits_with(0);
    let after = fs::metadata(room.results().path().join("cpu-profile.json")).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
}

/// A server that somebody else started is found by its port, and its libraries are known by their names.
#[test]
fn a_running_server_is_sampled_under_a_load_and_under_clients() {
    let room = Room::alone();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    room.write("queries", &queries());
    capture(&room, 500, 2, 500_000_000);
    let target = bind.plain.to_string();
    let load = ["load", &target, "--queries", "queries", "--duration", "1s"];
    let replay = ["replay", "capture.pcap", &target, "--factor", "4"];
    for words in [&load[..], &replay] {
        let done = room.dnslab(&[words, &["--profile"]].concat()).exits_with(0);
        let cost = cost(&room);
        assert_eq!(cost.not_profiled, [], "{done}");
        let variant_cost = of(&cost, words[0]);
        for parts in [&KERNEL[..], &[CostPart::DnsLogic, CostPart::EventLoop]] {
            assert!(samples(variant_cost, parts) > 0, "{parts:?}: {variant_cost:?}");
        }
        let page = fs::read_to_string(room.results().path().join("report.html")).unwrap();
        assert!(page.contains("Where the CPU time goes"), "{done}");
        done.prints("of CPU time for each query, the server spends");
        fs::remove_dir_all(room.path().join("results")).unwrap();
    }
    let mut command = Command::new(program());
    command.args(load).arg("--profile").env("PATH", "/nonexistent");
    let done = Running::start(command, room.path()).finish().exits_with(0);
    done.prints("note: no server will be sampled: perf is not installed");
}

#[test]
fn without_perf_the_reason_is_told_and_the_session_goes_on() {
    let room = Room::with_load();
    room.experiment(&format!("repeat.runs = 1\n{SHORT}{UDP_AND_DOT}"));
    let mut command = Command::new(program());
    command.args(["run", "./experiment.toml", "--profile"]).env("PATH", "/nonexistent");
    let done = Running::start(command, room.path()).finish().exits_with(0);
    let done = done.prints("No server was sampled: perf is not installed");
    assert!(done.stdout.contains("apt-get install linux-perf"), "{done}");
    let results = room.results();
    valid_records(&results, 2);
    let cost = cost(&room);
    assert_eq!(cost.variants, [], "{done}");
    let reasons: BTreeMap<&str, &str> = cost
        .not_profiled
        .iter()
        .map(|exception| (exception.variant.as_str(), exception.reason.as_str()))
        .collect();
    assert_eq!(reasons.keys().copied().collect::<Vec<_>>(), ["dot", "udp"]);
    let page = fs::read_to_string(results.path().join("report.html")).unwrap();
    assert!(page.contains("No server was sampled: perf is not installed"));
}

/// A perf that says its version and then fails, as one does that a container does not allow.
#[test]
fn a_perf_that_fails_is_quoted() {
    let room = Room::with_load();
    room.experiment(&format!("repeat.runs = 1\n{SHORT}{UDP_AND_DOT}"));
    let fake = room.write(
        "perf",
        "#!/bin/sh\n[ \"$1\" = --version ] && echo perf version 0.0 && exit\necho No permission to enable it >&2\nexit 255\n",
    );
    let made = Command::new("chmod").arg("755").arg(&fake).status();
    assert!(made.is_ok_and(|status| status.success()));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program());
    command.args(["run", "./experiment.toml", "--profile"]);
    command.env("PATH", format!("{}:{path}", room.path().display()));
    let done = Running::start(command, room.path()).finish().exits_with(0);
    let reasons: Vec<String> =
        cost(&room).not_profiled.into_iter().map(|exception| exception.reason).collect();
    assert_eq!(reasons.len(), 2, "{done}");
    for reason in reasons {
        assert!(reason.contains("(No permission to enable it)"), "{reason}");
        assert!(reason.contains("PERFMON"), "{reason}");
    }
}

/// Whoever may sample the kernel does; whoever may not is told what is missing.
#[test]
fn an_ordinary_user_is_told_what_the_kernel_does_not_allow() {
    let room = Room::with_load();
    room.experiment(&format!("{LOAD}{UDP_AND_DOT}"));
    let mut command = room.as_nobody();
    command.args(["run", "./experiment.toml", "--profile"]);
    let done = Running::start(command, room.path()).finish().exits_with(0);
    let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let paranoid: i32 = setting.trim().parse().unwrap();
    if paranoid < 2 {
        assert_eq!(cost(&room).not_profiled, [], "{done}");
        return;
    }
    let reason =
        format!("this user may not sample the kernel (kernel.perf_event_paranoid is {paranoid})");
    done.prints(&format!("note: no server will be sampled: {reason}"))
        .prints(&format!("No server was sampled: {reason}"))
        .prints("sysctl kernel.perf_event_paranoid=1");
    assert_eq!(cost(&room).not_profiled.len(), 2);
}
