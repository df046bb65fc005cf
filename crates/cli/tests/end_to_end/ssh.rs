//! A server on another host, watched over a real sshd: one host has the clients, the other the server.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use dnslab_record::{RunRecord, RunStatus};
use rustix::process::{Pid, Signal};

use crate::command::{Done, Guarded, Running, program};
use crate::evidence::{measured, report_is_whole, valid_records};
use crate::host::Host;
use crate::processes::wait_for;
use crate::replay::capture;
use crate::room::{Room, SHORT, UDP_AND_TCP};
use crate::watching::unwatched;

pub(crate) const SERVER: &str = "192.0.2.1";

/// The address of the coordinator, at which other hosts reach what it starts.
pub(crate) const HERE: &str = "192.0.2.2";

/// Two hosts with a link, and perhaps generators of load that have a link to each of them. Dropping it ends all that runs
/// there.
pub(crate) struct Hosts {
    pub(crate) client: Host,
    server: Host,
    generators: Vec<Host>,
    _sshds: Vec<Guarded>,
    _named: Guarded,
}

/// What is not as usual between hosts.
#[derive(Default)]
pub(crate) struct Ways<'a> {
    /// The clients' key is for this command only, if there is one.
    pub(crate) forced: &'a str,
    /// `gen1`, `gen2` and so on are reached as the server's host is.
    pub(crate) generators: usize,
    /// Lines of sshd_config(5).
    pub(crate) sshd: &'a str,
    /// Lines of ssh_config(5).
    pub(crate) ssh: &'a str,
}

impl Hosts {
    /// With sshd and BIND on the server's host. The clients' key is for this command only, if there is one.
    #[track_caller]
    pub(crate) fn make(room: &Room, forced: &str) -> Self {
        Self::with(room, &Ways { forced, ..Ways::default() })
    }

    #[track_caller]
    pub(crate) fn with_generators(room: &Room, forced: &str, generators: usize) -> Self {
        Self::with(room, &Ways { forced, generators, ..Ways::default() })
    }

    #[track_caller]
    pub(crate) fn with(room: &Room, ways: &Ways<'_>) -> Self {
        let Ways { forced, generators: count, sshd: sshd_lines, ssh } = *ways;
        let client = Host::make();
        let server = client.another();
        client.run(&format!(
            "ip link add server type veth peer name client netns {} && \
             ip address add 192.0.2.2/30 dev server && \
             ip address add 2001:db8::2/64 dev server nodad && ip link set server up",
            server.pid()
        ));
        server.run(
            "ip address add 192.0.2.1/30 dev client && \
             ip address add 2001:db8::1/64 dev client nodad && ip link set client up",
        );
        let folder = room.path().display();
        let make_keys = format!(
            "ssh-keygen -q -t ed25519 -N '' -f {folder}/host && ssh-keygen -q -t ed25519 -N '' -f {folder}/own"
        );
        let made = Command::new("sh").args(["-c", &make_keys]).status().unwrap();
        assert!(made.success(), "ssh-keygen: apt-get install openssh-client");
        let public = fs::read_to_string(room.path().join("own.pub")).unwrap();
        let forced = match forced {
            "" => String::new(),
            command => format!("restrict,command=\"{command}\" "),
        };
        room.write("authorized", &format!("{forced}{public}"));
        let key = fs::read_to_string(room.path().join("host.pub")).unwrap();
        let generators: Vec<Host> = (0..count).map(|_| client.another()).collect();
        let mut addresses = vec![("ns1".to_owned(), SERVER.to_owned())];
        for (place, generator) in generators.iter().enumerate() {
            addresses.push((format!("gen{}", place + 1), generator_address(place)));
            join(generator, place, &client, &server);
        }
        let (mut known, mut names) = (String::new(), String::new());
        for (name, address) in &addresses {
            known += &format!("{address} {key}");
            names += &format!("Host {name}\nHostName {address}\n");
        }
        room.write("known", &known);
        room.write(
            "ssh_config",
            &format!(
                "{ssh}{names}Host *\nIdentityFile {folder}/own\nIdentitiesOnly yes\n\
                 UserKnownHostsFile {folder}/known\nStrictHostKeyChecking yes\n"
            ),
        );
        // ssh reads the configuration of the user, which is not for a test to change.
        let bin = room.path().join("bin");
        fs::create_dir(&bin).unwrap();
        fs::write(
            bin.join("ssh"),
            format!("#!/bin/sh\nexec /usr/bin/ssh -F {folder}/ssh_config \"$@\"\n"),
        )
        .unwrap();
        fs::set_permissions(bin.join("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all("/run/sshd").unwrap();
        let all = std::iter::once(&server).chain(&generators).zip(&addresses);
        let sshds = all.map(|(host, address)| sshd(room, host, address, sshd_lines)).collect();
        let named = named(room, &server);
        let hosts = Self { client, server, generators, _sshds: sshds, _named: named };
        hosts.wait_until_they_answer(room, &addresses);
        hosts
    }

    #[track_caller]
    fn wait_until_they_answer(&self, room: &Room, addresses: &[(String, String)]) {
        let read = |name: &str| fs::read_to_string(room.path().join(name)).unwrap_or_default();
        let scan =
            |address: &str| self.client.command("ssh-keyscan").args(["-T", "1", address]).output();
        let has_key = |(_, address): &(String, String)| {
            scan(address).is_ok_and(|scanned| !scanned.stdout.is_empty())
        };
        let is_there = || {
            let has_zones = read("named.log").contains("all zones loaded");
            (has_zones && addresses.iter().all(has_key)).then_some(())
        };
        let log = || read("ns1.log") + &read("named.log");
        wait_for("they answer (apt-get install openssh-server bind9)", log, is_there);
    }

    /// Queries that BIND says it had.
    #[track_caller]
    pub(crate) fn asked(&self) -> u64 {
        let url = format!("http://{SERVER}:8053/json/v1/server");
        let output = self.server.command("curl").args(["-s", &url]).output().unwrap();
        let counts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let count = |name: &str| counts["nsstats"][name].as_u64().unwrap_or(0);
        count("Requestv4") + count("Requestv6")
    }

    /// Another address of the server, to which the generators have a way.
    pub(crate) fn give_server(&self, address: &str) {
        self.server.run(&format!("ip address add {address}/32 dev client"));
        for (place, generator) in self.generators.iter().enumerate() {
            let via = 4 * place + 1;
            generator.run(&format!("ip route add {address}/32 via 198.51.100.{via}"));
        }
    }

    /// dnslab on the host of the clients.
    pub(crate) fn dnslab(&self, room: &Room, arguments: &[&str]) -> Running {
        let path =
            format!("{}:{}", room.path().join("bin").display(), std::env::var("PATH").unwrap());
        let mut command = self.client.command(program());
        command.args(arguments).env("PATH", path);
        Running::start(command, room.path())
    }

    pub(crate) fn load(&self, room: &Room, duration: &str, further: &[&str]) -> Running {
        self.load_at(room, SERVER, duration, further)
    }

    fn load_at(&self, room: &Room, server: &str, duration: &str, further: &[&str]) -> Running {
        let few = ["load", server, "--duration", duration, "--clients", "10"];
        let patient = ["--set", "expect.lag_limit=1m"];
        self.dnslab(room, &[&few[..], &patient, further].concat())
    }
}

/// sshd on a host.
#[track_caller]
fn sshd(room: &Room, host: &Host, (name, address): &(String, String), lines: &str) -> Guarded {
    let folder = room.path().display();
    let config = room.write(
        &format!("sshd_{name}"),
        &format!(
            "Port 22\nListenAddress {address}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n\
             StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\nPasswordAuthentication no\n{lines}"
        ),
    );
    let mut sshd = host.command("/usr/sbin/sshd");
    sshd.args(["-D", "-e", "-f"]).arg(config).stdin(Stdio::null());
    sshd.stderr(fs::File::create(room.path().join(format!("{name}.log"))).unwrap());
    Guarded(sshd.spawn().unwrap())
}

/// The address by which a generator is reached.
fn generator_address(place: usize) -> String {
    format!("203.0.113.{}", 4 * place + 2)
}

/// Gives a generator a link to the coordinator and one to the server, and the ways to both.
#[track_caller]
fn join(generator: &Host, place: usize, client: &Host, server: &Host) {
    let (first, second) = (4 * place + 1, 4 * place + 2);
    for (name, host, net) in [("client", client, "203.0.113"), ("server", server, "198.51.100")] {
        let far = format!("gen{}", place + 1);
        let six = if name == "client" { "c" } else { "5" };
        generator.run(&format!(
            "ip link add {name} type veth peer name {far} netns {} && ip link set {name} up && \
             ip address add {net}.{second}/30 dev {name} && \
             ip address add 2001:db8:{six}:{place}::2/64 dev {name} nodad",
            host.pid()
        ));
        host.run(&format!(
            "ip address add {net}.{first}/30 dev {far} && \
             ip address add 2001:db8:{six}:{place}::1/64 dev {far} nodad && ip link set {far} up"
        ));
    }
    generator.run(&format!(
        "ip route add {SERVER}/32 via 198.51.100.{first} && ip route add {HERE}/32 via 203.0.113.{first} && \
         ip route add 2001:db8::1/128 via 2001:db8:5:{place}::1"
    ));
}

/// BIND with the zone that dnslab asks for.
#[track_caller]
fn named(room: &Room, server: &Host) -> Guarded {
    room.dnslab(&["make", "zone", "example.test", "--output", "zone"]).exits_with(0);
    let folder = room.path().display();
    room.write(
        "named.conf",
        &format!(
            "options {{ directory \"{folder}\"; listen-on {{ any; }}; listen-on-v6 {{ any; }}; recursion no; dnssec-validation no; \
             pid-file none; session-keyfile none; }};\ncontrols {{ }};\n\
             statistics-channels {{ inet {SERVER} port 8053; }};\n\
             zone \"example.test\" {{ type primary; file \"zone\"; }};\n"
        ),
    );
    let mut named = server.command("/usr/sbin/named");
    named.args(["-g", "-n", "1", "-c", &format!("{folder}/named.conf")]).stdin(Stdio::null());
    named.stderr(fs::File::create(room.path().join("named.log")).unwrap());
    Guarded(named.spawn().unwrap())
}

/// The program by a path that only this test has.
pub(crate) fn agent_here(room: &Room) -> String {
    let path = room.path().join("dnslab-there");
    if !path.exists() {
        symlink(program(), &path).unwrap();
    }
    path.display().to_string()
}

/// A script that runs the program with another kernel, as far as that can tell: hosts with one kernel are one machine.
pub(crate) fn agent(room: &Room) -> String {
    let (there, path) = (agent_here(room), room.path().join("dnslab"));
    if !path.exists() {
        let other = room.write("boot_id", "00000000-0000-0000-0000-000000000000\n");
        let mount = format!("mount --bind {} /proc/sys/kernel/random/boot_id", other.display());
        let folders = folders_there(room);
        fs::create_dir(&folders).unwrap();
        let script = format!(
            "#!/bin/sh\nexport TMPDIR={}\nexec unshare --mount sh -c '{mount} && exec {there} \"$@\"' sh \"$@\"\n",
            folders.display()
        );
        let draft = room.write("script", &script);
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(draft, &path).unwrap();
    }
    path.display().to_string()
}

/// Where the agent of this test makes its temporary folders.
pub(crate) fn folders_there(room: &Room) -> PathBuf {
    room.path().join("there")
}

pub(crate) fn as_there(path: &str) -> String {
    format!("hosts.program={path}")
}

/// The processes whose command lines begin with these words.
pub(crate) fn processes(words: &[&str]) -> Vec<i32> {
    let begins = words.join(" ");
    let all = fs::read_dir("/proc").unwrap().flatten();
    let found = all.filter_map(|process| {
        let line = fs::read(process.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let pid = process.file_name().to_string_lossy().parse().ok()?;
        line.starts_with(&begins).then_some(pid)
    });
    found.collect()
}

/// The agents of this test.
pub(crate) fn agents(room: &Room) -> Vec<i32> {
    processes(&[&agent_here(room), "agent"])
}

#[track_caller]
pub(crate) fn check_none_is_left(room: &Room) {
    let left = || format!("{:?}", agents(room));
    wait_for("no agent is left", left, || agents(room).is_empty().then_some(()));
}

#[track_caller]
pub(crate) fn check_watched(room: &Room, done: &Done) -> RunRecord {
    let record = valid_records(&room.results(), 1).remove(0);
    assert_eq!(unwatched(&record), None, "{done}");
    assert_eq!(record.server.host, "ns1", "{done}");
    let resources = &record.watched.resources;
    let used = resources.cpu_ns(measured(&record).window());
    assert!(used.is_some_and(|ns| ns > 1_000_000), "{used:?}{done}");
    // Over a link of this machine an exchange takes far less.
    let bound = resources.clock_bound_ns;
    assert!(bound.is_some_and(|ns| ns > 0 && ns < 50_000_000), "{bound:?}{done}");
    let load_host = record.watched.load_hosts.first().expect("the host of the load is seen, too");
    let load_host = &load_host.resources;
    assert!(!load_host.samples.is_empty() && load_host.clock_bound_ns.is_none());
    // There, and back from the host of the server.
    let paths = &record.watched.paths;
    let ways: Vec<_> = paths.iter().map(|path| (path.host.as_str(), path.device())).collect();
    let expected = [("", "server (veth)".to_owned()), ("ns1", "client (veth)".to_owned())];
    assert_eq!(ways, expected, "{done}");
    assert!(paths.iter().all(|path| path.mtu == 1_500 && path.dropped == 0), "{paths:?}");
    report_is_whole(&room.results(), &["load"]);
    record
}

#[test]
fn a_server_is_watched_on_its_host() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let there = as_there(&agent(&room));
    let done = hosts.load(&room, "2s", &["--watch", "ns1", "--set", &there]).finish().exits_with(0);
    let record = check_watched(&room, &done);
    assert!(record.server.version.starts_with("9."), "{:?}", record.server);
    check_none_is_left(&room);
}

/// Two names of one machine: the numbers of its CPUs are the same ones.
#[test]
fn a_host_with_the_same_kernel_is_this_machine() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let there = as_there(&agent_here(&room));
    let done = hosts.load(&room, "2s", &["--watch", "ns1", "--set", &there]).finish().exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    assert_eq!((unwatched(&record), record.server.host.as_str()), (None, ""), "{done}");
    let used = record.watched.resources.cpu_ns(measured(&record).window());
    assert!(used.is_some_and(|ns| ns > 1_000_000), "{used:?}{done}");
    assert!(record.watched.load_hosts.len() == 1);
}

#[test]
fn a_server_is_watched_over_ipv6_and_tcp() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let there = as_there(&agent(&room));
    let statistics = format!("server.statistics={SERVER}:8053");
    let counted = ["--set", &statistics];
    let further = ["--watch", "ns1", "--set", &there, "--transport", "tcp"];
    let further = [&further[..], &counted].concat();
    let done = hosts.load_at(&room, "2001:db8::1", "2s", &further).finish().exits_with(0);
    let record = check_watched(&room, &done);
    let counters = record.watched.counters.as_ref().expect("they were asked for");
    let measured = measured(&record);
    let sent = measured.warm_up.sent + measured.counters.sent;
    assert_eq!(counters.growth("queries"), Some(sent), "{counters:?}{done}");
    check_none_is_left(&room);
}

/// The key allows one command, whatever the coordinator asks ssh for.
#[test]
fn a_forced_command_decides_on_its_host() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, &format!("{} agent --allow watch", agent(&room)));
    let done = hosts.load(&room, "2s", &["--watch", "ssh:ns1"]).finish().exits_with(0);
    check_watched(&room, &done);
}

#[track_caller]
fn check_refused((room, hosts): (&Room, &Hosts), further: &[&str], parts: &[&str]) {
    let mut done = hosts.load(room, "2s", further).finish().exits_with_one_of(&[1, 2]);
    for part in parts {
        done = done.complains(part);
    }
}

#[test]
fn each_mistake_is_named() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let at = (&room, &hosts);
    check_refused(at, &["--watch", "ns1"], &["ns1: no dnslab answered there", "hosts.program"]);
    check_refused(
        at,
        &["--watch", "192.0.2.77"],
        &["192.0.2.77: no dnslab answered there", "ssh: "],
    );
    check_refused(
        at,
        &["--watch", "nobody.example"],
        &["nobody.example", "ssh: Could not resolve hostname"],
    );
    check_refused(at, &["--watch", "stranger@ns1"], &["stranger@ns1", "Permission denied"]);
    check_refused(
        at,
        &["--watch", "nobody@ns1"],
        &["nobody@ns1", "This account is currently not available"],
    );
    check_refused(at, &["--watch=-oProxyCommand=x"], &["write what you give to ssh"]);
    let shell = as_there("/bin/true;reboot");
    check_refused(at, &["--watch", "ns1", "--set", &shell], &["letters, digits and /._+- only"]);
    let wrong =
        ["--watch", "ns1", "--set", &as_there(&agent(&room)), "--set", "server.pid=4194303"];
    check_refused(at, &wrong, &["the process 4194303 is not there"]);
}

#[test]
fn a_replay_is_watched_there() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let there = as_there(&agent(&room));
    let played = capture(&room, 5, 40, 50_000_000).display().to_string();
    let replay = ["replay", "--watch", "ns1", "--set", &there, &played, SERVER, "--duration", "1s"];
    // BIND refuses the names of the capture.
    let done = hosts.dnslab(&room, &replay).finish().exits_with_one_of(&[0, 3]);
    let record = room.results().runs().unwrap().remove(0);
    assert_eq!(unwatched(&record), None, "{done}");
    assert!(record.watched.resources.clock_bound_ns.is_some(), "{done}");
}

#[test]
fn an_experiment_is_watched_there_and_resumed() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let program = agent(&room);
    room.experiment(&format!(
        "repeat.runs = 1\n[server]\nkind = \"external\"\naddress = \"{SERVER}\"\nhost = \"ns1\"\n\
         [host.ns1]\nprogram = \"{program}\"\n[expect]\nlag_limit = \"1m\"\n{SHORT}{UDP_AND_TCP}"
    ));
    hosts.dnslab(&room, &["run", "./experiment.toml"]).finish().exits_with(0);
    let results = room.results();
    let folder = results.path().display().to_string();
    hosts.dnslab(&room, &["run", "--resume", &folder, "--more", "1"]).finish().exits_with(0);
    for record in valid_records(&results, 4) {
        assert_eq!(unwatched(&record), None);
        assert!(record.watched.resources.clock_bound_ns.is_some(), "{}", record.variant);
    }
    let host = results.session().unwrap().host;
    assert!(host.iter().any(|fact| fact.name == "ns1: kernel"), "{host:?}");
    report_is_whole(&results, &["udp", "tcp"]);
    check_none_is_left(&room);
}

#[test]
fn a_server_is_sampled_on_its_host() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let there = as_there(&agent(&room));
    let further = ["--watch", "ns1", "--set", &there, "--profile"];
    let done = hosts.load(&room, "3s", &further).finish().exits_with(0);
    let found = room.results().cpu_profiles().unwrap().expect("it was asked for");
    assert!(found.failed.is_empty(), "{:?}{done}", found.failed);
    assert!(found.profiles[0].samples > 100, "{:?}{done}", found.profiles);
    check_none_is_left(&room);
    let left: Vec<_> = fs::read_dir(folders_there(&room)).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_host_is_examined() {
    let room = Room::quiet();
    let hosts = Hosts::make(&room, "");
    let doctor = ["doctor", "--on", "ns1", "--program", &agent(&room)];
    hosts
        .dnslab(&room, &doctor)
        .finish()
        .exits_with(0)
        .prints("steal")
        .prints("BIND")
        .prints("by server (veth), ");
    check_none_is_left(&room);
}

/// A load whose server is watched.
fn watched_load(room: &Room, hosts: &Hosts, duration: &str) -> Running {
    let there = as_there(&agent(room));
    let running = hosts.load(room, duration, &["--watch", "ns1", "--set", &there]);
    wait_for("the agent watches", || running.so_far(), || agents(room).first().copied());
    std::thread::sleep(Duration::from_secs(2));
    running
}

#[track_caller]
fn check_lost(room: &Room, running: Running, why: &str) {
    let done = running.finish().exits_with(3);
    let record = room.results().runs().unwrap().remove(0);
    let RunStatus::Failed { reason, .. } = &record.status else {
        panic!("{:?}{done}", record.status)
    };
    assert!(reason.contains("ns1 is lost") && reason.contains(why), "{reason}");
    assert!(record.measured.is_some(), "what was measured is kept");
    check_none_is_left(room);
}

#[test]
fn a_coordinator_that_is_killed_leaves_no_agent() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let mut running = watched_load(&room, &hosts, "60s");
    running.signal(Signal::KILL);
    check_none_is_left(&room);
}

/// Its ssh lives on, and so does the connection. The agent hears nothing for 30 s.
#[test]
fn a_coordinator_that_sleeps_leaves_no_agent() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let mut running = watched_load(&room, &hosts, "60s");
    running.signal(Signal::STOP);
    check_none_is_left(&room);
    running.signal(Signal::CONT);
    check_lost(&room, running, "said nothing for");
}

#[test]
fn a_cable_that_is_cut_ends_both_ends() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let running = watched_load(&room, &hosts, "60s");
    hosts.client.run("ip link set server down");
    check_lost(&room, running, "not responding");
}

/// The connection ends in the middle of the load: the run has failed, with the reason, no agent is left, and the run is
/// made again when the session is resumed.
#[test]
fn a_host_that_is_lost_fails_the_run() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let running = watched_load(&room, &hosts, "10s");
    let config = room.path().join("ssh_config").display().to_string();
    for pid in processes(&["/usr/bin/ssh", "-F", &config]) {
        let pid = Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }
    check_lost(&room, running, "");
    let folder = room.results().path().display().to_string();
    hosts.dnslab(&room, &["run", "--resume", &folder]).finish().exits_with(0);
    assert_eq!(unwatched(&valid_records(&room.results(), 1)[0]), None);
}
