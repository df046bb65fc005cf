//! A load that several hosts share, which are reached over real sshds.

use dnslab_record::{DifferenceClass, LoadFacts, RunRecord, RunStatus};
use rustix::process::{Pid, Signal};

use crate::command::{Done, Running};
use crate::evidence::{measured, report_is_whole, valid_records};
use crate::processes::wait_for;
use crate::replay::capture;
use crate::room::{Room, SHORT, UDP_AND_TCP};
use crate::ssh::{HERE, Hosts, SERVER, agent, agents, check_none_is_left, processes};

fn there(room: &Room) -> String {
    format!("hosts.program={}", agent(room))
}

fn shared_load(room: &Room, hosts: &Hosts, names: &str, further: &[&str]) -> Running {
    let there = there(room);
    let load = ["load", SERVER, "--hosts", names, "--set", &there, "--set", "expect.lag_limit=1m"];
    hosts.dnslab(room, &[&load[..], further].concat())
}

#[track_caller]
fn check_shared(room: &Room, done: &Done, hosts: &[&str]) -> RunRecord {
    let record = valid_records(&room.results(), 1).remove(0);
    let LoadFacts { hosts: shared, workers, cpus, .. } = &record.load;
    let names: Vec<&str> = shared.iter().map(|host| host.host.as_str()).collect();
    assert_eq!(names, hosts, "{done}");
    assert_eq!(shared.iter().map(|host| host.workers).sum::<u32>(), *workers, "{done}");
    assert!(cpus.is_empty(), "they are of other hosts: {cpus:?}");
    for host in shared {
        assert!(host.clock_bound_ns > 0 && host.clock_bound_ns < 50_000_000, "{host:?}{done}");
        assert_eq!(host.cpus.len(), host.workers as usize, "{host:?}");
    }
    let whole = measured(&record);
    assert_eq!(whole.workers.len(), *workers as usize);
    assert_eq!(shared.iter().map(|host| host.sent).sum::<u64>(), sent(&record), "{done}");
    let answered: u64 = shared.iter().map(|host| host.answered).sum();
    assert_eq!(answered, whole.counters.outcomes.answered, "{done}");
    let series = &record.watched.load_hosts;
    let seen: Vec<&str> = series.iter().map(|host| host.host.as_str()).collect();
    assert_eq!(seen, hosts, "the CPUs of each are seen");
    assert!(series.iter().all(|host| !host.resources.samples.is_empty()), "{series:?}");
    let ways: Vec<&str> = record.watched.paths.iter().map(|path| path.host.as_str()).collect();
    assert_eq!(ways, hosts, "the way from each is known");
    report_is_whole(&room.results(), &["load"]);
    check_none_is_left(room);
    record
}

/// Queries that were sent in all.
fn sent(record: &RunRecord) -> u64 {
    let measured = measured(record);
    measured.warm_up.sent + measured.counters.sent
}

/// BIND has had each query that was answered, and none that was not sent, but for those before the load: each host asks
/// whether it answers, and somebody who it is. A datagram that a busy machine loses was sent and is not answered.
#[track_caller]
fn check_asked(record: &RunRecord, asked: u64, done: &Done) {
    let (sent, of_load) = (sent(record), measured(record));
    let outcomes = [&of_load.warm_up.outcomes, &of_load.counters.outcomes];
    let answered: u64 = outcomes.iter().map(|outcomes| outcomes.answered).sum();
    assert!((answered..sent + 16).contains(&asked), "BIND had {asked} queries of {sent}{done}");
}

#[test]
fn hosts_share_a_load_and_nothing_is_lost() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 3);
    let before = hosts.asked();
    let load = ["--duration", "2s", "--clients", "30", "--rate", "3000", "--warm-up", "500ms"];
    let done = shared_load(&room, &hosts, "gen1,gen2,gen3", &load).finish().exits_with(0);
    let record = check_shared(&room, &done, &["gen1", "gen2", "gen3"]);
    check_asked(&record, hosts.asked() - before, &done);
    let measured = measured(&record);
    assert_eq!(measured.counters.outcomes.due, 6_000);
    let of_series: u64 = measured.intervals.iter().map(|interval| interval.due).sum();
    assert_eq!(of_series, 7_500, "the series has the warm-up, too");
    assert!(measured.pacing.is_some(), "how close to its schedule the load was is known");
}

#[test]
fn a_closed_loop_over_tcp_and_ipv6_is_shared() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 2);
    let there = there(&room);
    let load = ["load", "2001:db8::1", "--hosts", "gen1,ssh:gen2", "--set", &there];
    let further = ["--transport", "tcp", "--duration", "1s", "--clients", "20"];
    let patient = ["--set", "expect.lag_limit=1m"];
    let done =
        hosts.dnslab(&room, &[&load[..], &further, &patient].concat()).finish().exits_with(0);
    let record = check_shared(&room, &done, &["gen1", "gen2"]);
    let opened = measured(&record).warm_up.connections.opened;
    assert_eq!(opened, 20, "each client has its connection on its host");
}

/// The coordinator has no way to the server: the hosts of the load ask the first query, too.
#[test]
fn a_server_that_only_the_hosts_of_the_load_reach_is_asked() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 2);
    hosts.client.run("ip route add blackhole 198.18.0.1/32");
    hosts.give_server("198.18.0.1");
    let there = there(&room);
    let load = ["load", "198.18.0.1", "--hosts", "gen1,gen2", "--set", &there, "--clients", "10"];
    let further = ["--duration", "500ms", "--set", "expect.lag_limit=1m"];
    let done = hosts.dnslab(&room, &[&load[..], &further].concat()).finish().exits_with(0);
    check_shared(&room, &done, &["gen1", "gen2"]);
    // Nobody is there.
    let silent = ["load", "198.18.0.2", "--hosts", "gen1", "--set", &there, "--timeout", "200ms"];
    let done = hosts.dnslab(&room, &silent).finish().exits_with(1);
    done.complains("gen1: 198.18.0.2:53 does not answer over udp");
}

#[test]
fn a_host_under_two_names_has_one_share() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 1);
    let done =
        shared_load(&room, &hosts, "gen1,root@gen1", &[]).finish().exits_with_one_of(&[1, 2]);
    done.complains("root@gen1: it is the same host as gen1: name it once");
    room.experiment(&format!("repeat.runs = 1\n[server]\nkind = \"bind\"\n{SHORT}{UDP_AND_TCP}"));
    let there = there(&room);
    let served = ["run", "./experiment.toml", "--on", "root@ns1", "--set", "load.hosts=ns1"];
    let served = hosts.dnslab(&room, &[&served[..], &["--set", &there]].concat()).finish();
    let done = served.exits_with_one_of(&[1, 2]);
    done.complains("ns1 is the host of the server: a load there would take its CPUs");
}

/// What is due follows from the seed and the number of workers, wherever they are.
#[test]
fn the_same_seed_gives_the_same_arrivals_on_any_number_of_hosts() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 3);
    let load = ["--duration", "1s", "--clients", "12", "--warm-up", "300ms", "--seed", "7"];
    let poisson = ["--rate", "2000", "--pace", "poisson", "--workers", "6"];
    let all = [&load[..], &poisson].concat();
    let mut due = Vec::new();
    for names in ["gen1", "gen1,gen2", "gen3,gen1,gen2"] {
        let folder = format!("of-{}", names.len());
        shared_load(&room, &hosts, names, &[&all[..], &["--results", &folder]].concat())
            .finish()
            .exits_with(0);
        let record = valid_records(&room.results_in(&folder), 1).remove(0);
        let measured = measured(&record);
        due.push((measured.warm_up.outcomes.due, measured.counters.outcomes.due));
    }
    assert!(due.iter().all(|other| *other == due[0]), "{due:?}");
}

/// A capture stays here; what its clients ask is sent to the hosts. A client keeps its host, over TCP and UDP.
#[test]
fn a_capture_is_played_from_several_hosts() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 2);
    let played = capture(&room, 40, 100, 20_000_000).display().to_string();
    let replay = ["replay", &played, SERVER, "--duration", "2s", "--set", &there(&room)];
    let mut due = Vec::new();
    for (folder, further) in [
        ("here", &["--workers", "2"][..]),
        ("udp", &["--workers", "2", "--hosts", "gen1,gen2"]),
        ("tcp", &["--workers", "2", "--hosts", "gen2,gen1", "--transport", "tcp"]),
    ] {
        let lenient = ["--set", "expect.lag_limit=1m", "--expect", "any", "--results", folder];
        let before = hosts.asked();
        let done = hosts.dnslab(&room, &[&replay[..], further, &lenient].concat()).finish();
        let done = done.exits_with(0);
        let record = valid_records(&room.results_in(folder), 1).remove(0);
        check_asked(&record, hosts.asked() - before, &done);
        let measured = measured(&record);
        assert_eq!(measured.counters.outcomes.due, 4_000, "{done}");
        if folder == "tcp" {
            assert_eq!(measured.counters.connections.opened, 40, "one for each client{done}");
        }
        due.push(measured.intervals.iter().map(|interval| interval.due).collect::<Vec<_>>());
    }
    // An interval has what is due in it, but for what is taken up a little later.
    let sums = |due: &Vec<u64>| due.iter().sum::<u64>();
    assert!(due.iter().all(|other| sums(other) == sums(&due[0])), "{due:?}");
    check_none_is_left(&room);
}

#[test]
fn a_population_is_played_from_several_hosts() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 2);
    let mut due = Vec::new();
    for (folder, further) in [("here", &[][..]), ("there", &["--hosts", "gen1,gen2"][..])] {
        let load =
            ["load", SERVER, "--population", "typical", "--clients", "300", "--rate", "1000"];
        let long = ["--duration", "2s", "--warm-up", "500ms", "--workers", "4", "--expect", "any"];
        let there = there(&room);
        let lenient = ["--set", "expect.lag_limit=1m", "--set", &there, "--results", folder];
        let all = [&load[..], &long, &lenient, further].concat();
        let done = hosts.dnslab(&room, &all).finish().exits_with(0);
        let record = valid_records(&room.results_in(folder), 1).remove(0);
        let measured = measured(&record);
        assert!(measured.counters.outcomes.answered > 1_000, "{done}");
        due.push(measured.counters.outcomes.due + measured.warm_up.outcomes.due);
    }
    assert_eq!(due[0], due[1], "the same clients ask the same from other hosts");
    check_none_is_left(&room);
}

/// The server is here, and the load comes from two other hosts, in slices.
#[test]
fn a_server_here_is_asked_from_other_hosts() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 2);
    room.experiment(&format!(
        "repeat.runs = 1\n[server]\nkind = \"bind\"\naddress = \"{HERE}\"\n[expect]\nlag_limit = \"1m\"\n\
         {SHORT}{UDP_AND_TCP}"
    ));
    let run = ["run", "./experiment.toml", "--set", "load.hosts=gen1,gen2", "--set", &there(&room)];
    let done = hosts.dnslab(&room, &run).finish().exits_with(0);
    for record in valid_records(&room.results(), 2) {
        assert_eq!(record.load.hosts.len(), 2, "{done}");
        assert!(record.server.cpus.len() > 1 || dnslab_lab::cpus::allowed().len() == 1);
        let used = record.watched.resources.cpu_ns(measured(&record).window());
        assert!(used.is_some_and(|ns| ns > 0), "{used:?}{done}");
    }
    let host = room.results().session().unwrap().host;
    assert!(host.iter().any(|fact| fact.name == "gen2: kernel"), "{host:?}");
    check_none_is_left(&room);
}

/// One generator is lost in the middle: the run has failed, with the reason; what the other measured is kept; and it is
/// made again when the session is resumed.
#[test]
fn a_lost_generator_fails_the_run_and_nothing_is_counted_twice() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 2);
    let load = ["--duration", "6s", "--clients", "20", "--rate", "500", "--warm-up", "500ms"];
    let running = shared_load(&room, &hosts, "gen1,gen2", &load);
    let are_there = || (agents(&room).len() == 2).then_some(());
    wait_for("both agents are there", || running.so_far(), are_there);
    std::thread::sleep(std::time::Duration::from_secs(3));
    let config = room.path().join("ssh_config").display().to_string();
    let of_second = processes(&["/usr/bin/ssh", "-F", &config]).into_iter().filter(|pid| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("\0gen2\0")
    });
    for pid in of_second {
        rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    let done = running.finish().exits_with(3);
    let record = room.results().runs().unwrap().remove(0);
    let RunStatus::Failed { reason, .. } = &record.status else {
        panic!("{:?}{done}", record.status)
    };
    assert!(reason.contains("gen2 is lost"), "{reason}");
    assert!(record.measured.is_some(), "what the other measured is kept");
    check_none_is_left(&room);
    let folder = room.results().path().display().to_string();
    hosts.dnslab(&room, &["run", "--resume", &folder]).finish().exits_with(0);
    let again = valid_records(&room.results(), 1).remove(0);
    assert_eq!(measured(&again).counters.outcomes.due, 3_000);
}

#[test]
fn a_coordinator_that_is_killed_leaves_no_load() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 2);
    let load = ["--duration", "60s", "--clients", "20", "--rate", "500"];
    let mut running = shared_load(&room, &hosts, "gen1,gen2", &load);
    let are_there = || (agents(&room).len() == 2).then_some(());
    wait_for("both agents are there", || running.so_far(), are_there);
    std::thread::sleep(std::time::Duration::from_secs(2));
    running.signal(Signal::KILL);
    check_none_is_left(&room);
    let asked = hosts.asked();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(hosts.asked() - asked <= 2, "nobody asks any more");
}

/// One Ctrl-C ends the load on all hosts, and what was measured is kept.
#[test]
fn an_interrupt_ends_the_load_on_all_hosts() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 2);
    let load = ["--duration", "60s", "--clients", "20", "--rate", "500", "--warm-up", "300ms"];
    let mut running = shared_load(&room, &hosts, "gen1,gen2", &load);
    let are_there = || (agents(&room).len() == 2).then_some(());
    wait_for("both agents are there", || running.so_far(), are_there);
    std::thread::sleep(std::time::Duration::from_secs(3));
    running.signal(Signal::INT);
    running.finish().exits_with(130);
    let record = room.results().runs().unwrap().remove(0);
    let measured = measured(&record);
    assert!(measured.window_ns < 30_000_000_000 && measured.counters.outcomes.answered > 0);
    check_none_is_left(&room);
}

#[test]
fn a_host_decides_what_may_be_asked_from_it() {
    let room = Room::with_load();
    let forced = format!("{} agent --allow load --targets {SERVER} --max-rate 600", agent(&room));
    let hosts = Hosts::with_generators(&room, &forced, 1);
    let short = ["--duration", "1s", "--clients", "10"];
    let load = |further: &[&str]| {
        shared_load(&room, &hosts, "gen1", &[&short[..], further].concat()).finish()
    };
    load(&["--rate", "500"]).exits_with(0);
    load(&["--rate", "700"]).exits_with(1).complains("600 at most");
    load(&[]).exits_with(1).complains("loads with a rate only");
    load(&["--rate", "500", "--set", "server.address=192.0.2.9"]).exits_with_one_of(&[1, 2]);
    let watch = load(&["--rate", "500", "--watch", "ns1"]);
    watch.exits_with_one_of(&[1, 2]).complains("does not allow it to `watch`");
    check_none_is_left(&room);
}

#[track_caller]
fn check_refused((room, hosts): (&Room, &Hosts), further: &[&str], part: &str) {
    let load = [&["load", "--duration", "1s"], further].concat();
    hosts.dnslab(room, &load).finish().exits_with_one_of(&[1, 2]).complains(part);
}

#[test]
fn each_mistake_about_hosts_is_named() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 1);
    check_refused((&room, &hosts), &[SERVER, "--hosts", "gen1"], "no dnslab answered there");
    check_refused(
        (&room, &hosts),
        &[SERVER, "--hosts", "nobody.example"],
        "Could not resolve hostname",
    );
    check_refused(
        (&room, &hosts),
        &["127.0.0.1", "--hosts", "gen1"],
        "other hosts cannot ask 127.0.0.1",
    );
    check_refused((&room, &hosts), &[SERVER, "--hosts", "gen1,gen1"], "each host has one share");
    check_refused(
        (&room, &hosts),
        &[SERVER, "--hosts", "gen1,gen2", "--clients", "1"],
        "would have no client",
    );
    check_refused(
        (&room, &hosts),
        &[SERVER, "--hosts", "gen1", "--watch", "gen1"],
        "the host of the server",
    );
}

/// What queries of two hosts are told is brought here, and asked again from there: one of two servers does not have half of
/// the names.
#[test]
fn answers_to_two_hosts_are_compared() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 2);
    let names: String = (1..=10).map(|n| format!("host-{n:06}.example.test A\n")).collect();
    room.write("queries", &names);
    room.experiment(
        "repeat.runs = 1\ncompare.answers = true\n[expect]\nwrong_limit = \"100%\"\nlag_limit = \"1m\"\n\
         [load]\nqueries = \"queries\"\nrate = 500\nduration = \"400ms\"\nwarm_up = \"200ms\"\nworkers = 2\n\
         [[variant]]\nname = \"ten\"\nserver = { kind = \"bind\", zone = { records = 10 } }\n\
         [[variant]]\nname = \"five\"\nserver = { kind = \"nsd\", zone = { records = 5 } }\n",
    );
    let there = there(&room);
    let run = ["run", "./experiment.toml", "--on", "ns1", "--set", &there];
    let run = [&run[..], &["--set", "load.hosts=gen1,gen2"]].concat();
    let done = hosts.dnslab(&room, &run).finish().exits_with(5);
    let found = room.results().answer_comparisons().unwrap().remove(0);
    // 300 and those of the uncounted end of a turn. A busy machine loses some.
    assert!((250..400).contains(&found.compared), "{found:?}{done}");
    let code = found.classes.iter().find(|class| class.class == DifferenceClass::Code);
    let code = code.unwrap_or_else(|| panic!("{found:?}{done}"));
    assert!(code.queries > 100 && found.same > 100, "{found:?}");
    assert_eq!((code.questions, code.questions_again), (5, 5), "{found:?}");
    check_none_is_left(&room);
}
