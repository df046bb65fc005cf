//! `dnslab load` on a server that somebody else runs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, thread};

use dnslab_analysis::{Summary, VariantSummary};
use dnslab_lab::ports;
use dnslab_record::{Caveat, LoadMode, Metric, OpenPace, RunRecord, RunStatus};
use dnslab_report::invalid_text;
use dnslab_results::ResultsDirectory;
use dnslab_traffic::Pace;
use dnslab_wire::Method;

use crate::command::Done;
use crate::evidence::{measured, records, report_is_whole, valid_records};
use crate::room::{Room, SHORT, UDP_AND_TCP, folders, free_port, with_few_clients};
use crate::running_server::{RunningBind, RunningUnbound, queries};
use crate::watching::unwatched;

/// A short load with these further arguments.
#[track_caller]
fn load(room: &Room, target: &str, further: &[&str]) -> Done {
    let short = ["load", target, "--duration", "300ms", "--warm-up", "300ms"];
    room.dnslab(&with_few_clients(&[&short, further].concat()))
}

/// The one valid record of a load on the test's BIND at `address`, with the names of the test's query file.
#[track_caller]
fn check(address: &str, transport: &str, further: &[&str]) -> RunRecord {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), address);
    room.write("queries", &queries());
    let authority = bind.authority.to_string_lossy();
    let further = further.iter().map(|word| if *word == "AUTHORITY" { &*authority } else { *word });
    let mut arguments = vec!["--queries", "queries", "--transport", transport];
    arguments.extend(further);
    let target = bind.target(transport);
    let done = load(&room, &target, &arguments).exits_with(0);
    let results = room.results();
    let record = valid_records(&results, 1).remove(0);
    report_is_whole(&results, &["load"]);
    assert_eq!(record.server.kind, "external", "{done}");
    assert_eq!(record.load.target, target, "{done}");
    assert_eq!(record.load.transport_name(), transport, "{done}");
    assert_eq!(unwatched(&record), None, "{done}");
    let unverified = record.caveats.contains(&Caveat::CertificateNotVerified);
    let insecure = arguments.contains(&"--insecure");
    assert_eq!(unverified, insecure, "{:?}{done}", record.caveats);
    // On the screen the notes of a busy machine may come first.
    let table = fs::read_to_string(results.path().join("table.md")).unwrap();
    assert_eq!(table.contains("was not verified"), insecure, "{table}");
    let tls = measured(&record).tls.as_ref().map(|tls| tls.verified);
    let encrypted = matches!(transport, "dot" | "doh2");
    assert_eq!(tls, encrypted.then_some(!insecure), "{done}");
    record
}

#[test]
fn udp_and_tcp_on_both_ip_versions() {
    for (address, transport) in
        [("127.0.0.1", "udp"), ("127.0.0.1", "tcp"), ("::1", "udp"), ("::1", "tcp")]
    {
        let record = check(address, transport, &["--clients", "3", "--outstanding", "7"]);
        assert_eq!(record.load.mode, LoadMode::Closed { outstanding: 7 });
        assert_eq!(record.load.clients, 3);
    }
}

#[test]
fn an_experiment_measures_a_running_server() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    room.write("queries", &queries());
    let (port, dot_port, doh_port) = (bind.plain.port(), bind.dot.port(), bind.doh2.port());
    room.experiment(&format!(
        "repeat.runs = 1\n[server]\nkind = \"external\"\naddress = \"127.0.0.1\"\nport = {port}\n\
         dot_port = {dot_port}\ndoh_port = {doh_port}\nauthority = \"bind/authority.pem\"\n{SHORT}\
         queries = \"queries\"\n{UDP_AND_TCP}\
         [[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n\
         [[variant]]\nname = \"doh2\"\nload.transport = \"doh2\"\n"
    ));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    for record in valid_records(&room.results(), 4) {
        assert_eq!(record.load.target, bind.target(&record.variant), "{done}");
        let tls = measured(&record).tls.as_ref().map(|tls| tls.verified);
        let encrypted = matches!(record.variant.as_str(), "dot" | "doh2");
        assert_eq!(tls, encrypted.then_some(true), "{done}");
    }
    report_is_whole(&room.results(), &["udp", "tcp", "dot", "doh2"]);
}

/// What the results in a folder of the room say of the variant `dot`, and whether variants are compared by memory.
fn of_dot(room: &Room, folder: &str) -> (VariantSummary, bool) {
    let found = folders(&room.path().join(folder));
    let results = ResultsDirectory::open(&found[0]).unwrap();
    let (session, records) = (results.session().unwrap(), results.runs().unwrap());
    let summary = Summary::whole(
        &session,
        &records,
        results.answer_comparisons().unwrap(),
        results.cpu_profiles().unwrap().as_ref(),
    );
    let by_memory =
        summary.comparisons.iter().any(|comparison| comparison.metric == Metric::PeakMemory);
    let dot = summary
        .variants
        .into_iter()
        .find(|variant| ["dot", "load"].contains(&&*variant.name))
        .unwrap();
    (dot, by_memory)
}

/// Unbound keeps what it needed. The remedy that is told is followed.
#[test]
fn memory_that_a_running_server_had_needed_before_is_none_of_a_variant() {
    let room = Room::alone();
    let unbound = RunningUnbound::start(&room.path().join("unbound"));
    let (port, dot_port) = (unbound.plain.port(), unbound.dot.port());
    room.experiment(&format!(
        "repeat.runs = 2\nexpect.lost_limit = \"50%\"\n[server]\nkind = \"external\"\naddress = \"127.0.0.1\"\n\
         port = {port}\ndot_port = {dot_port}\nauthority = \"unbound/authority.pem\"\n[load]\nclients = 200\n\
         rate = 200\nduration = \"500ms\"\nwarm_up = \"2s\"\ntimeout = \"5s\"\nqueries = \"host7\"\n\
         [[variant]]\nname = \"udp\"\nload.transport = \"udp\"\n\
         [[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n"
    ));
    room.write("host7", "host7.example.test A\n");
    let run = |folder: &str| {
        room.dnslab(&["run", "./experiment.toml", "--results", folder]).exits_with(0)
    };
    let done = run("first").prints("At 200 queries/s from 200 clients udp takes ");
    let (first, by_memory) = of_dot(&room, "first");
    let per_connection = first.memory_per_connection_octets.unwrap_or_else(|| panic!("{done}"));
    assert!((15_000.0..100_000.0).contains(&per_connection), "{per_connection}: {done}");
    assert!(first.peak_memory_octets.is_some() && !by_memory, "{done}");

    let done = run("second").prints("not known").prints("Restart it");
    let done = done.prints("The memory of udp and dot is not known.");
    let (second, by_memory) = of_dot(&room, "second");
    let found = (second.memory_per_connection_octets, second.peak_memory_octets);
    assert_eq!((found, by_memory), ((None, None), false), "{done}");
    assert!(second.caveats.iter().any(|caveat| caveat.worst == Caveat::MemoryKept), "{done}");

    drop(unbound);
    let unbound = RunningUnbound::start(&room.path().join("unbound"));
    let authority = unbound.authority.to_string_lossy().into_owned();
    let alone = ["--transport", "dot", "--authority", &authority, "--queries", "host7"];
    let alone = [&alone[..], &["--clients", "200", "--rate", "200"]].concat();
    let alone = [&alone[..], &["--timeout", "5s", "--results", "alone"]].concat();
    let lasts = ["load", &unbound.dot.to_string(), "--duration", "500ms", "--warm-up", "2s"];
    let done = room.dnslab(&[&lasts[..], &alone].concat()).exits_with(0);
    let done = done.prints("At 200 queries/s from 200 clients the server takes ");
    let again = of_dot(&room, "alone").0.memory_per_connection_octets.unwrap_or(0.0);
    assert!((again / per_connection - 1.0).abs() < 0.5, "{again}, {per_connection}: {done}");
}

#[test]
fn dot_without_verification_carries_a_caveat() {
    check("127.0.0.1", "dot", &["--insecure"]);
}

#[test]
fn dot_is_verified_against_the_authority_and_by_name() {
    check("127.0.0.1", "dot", &["--authority", "AUTHORITY"]);
    check("::1", "dot", &["--authority", "AUTHORITY", "--tls-name", "dnslab.test"]);
}

#[test]
fn https_with_both_methods() {
    for method in ["get", "post"] {
        let further = ["--authority", "AUTHORITY", "--http-method", method];
        let record = check("127.0.0.1", "doh2", &further);
        let asked = record.load.http_method.map(Method::name);
        assert_eq!(asked, Some(method), "{:?}", record.load);
        check("::1", "doh2", &further);
    }
}

#[test]
fn a_path_that_is_not_served_is_said_clearly() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    let path = ["--transport", "doh2", "--insecure", "--http-path", "/elsewhere"];
    let done = load(&room, &bind.target("doh2"), &path).exits_with(1).errors(1);
    let done = done.complains("does not answer").complains("HTTP status");
    let done = done.complains("`--http-path PATH`");
    assert!(room.results_so_far().is_none(), "{done}");
}

/// BIND gets what queries carry and how clients behave, and the record has it.
#[test]
fn clients_behave_as_they_are_told() {
    let record = check(
        "127.0.0.1",
        "udp",
        &[
            "--cookies",
            "--edns-option",
            "65001:c0ffee",
            "--sources",
            "127.0.1.0/29",
            "--client-subnets",
            "10.0.0.0/8 by /24",
        ],
    );
    let carried = format!("{} {}", record.load.queries, record.load.edns).to_lowercase();
    for what in ["option 65001", "cookie", "subnet"] {
        assert!(carried.contains(what), "{what}: {carried}");
    }
    assert_eq!(record.load.sources, "127.0.1.0/29".parse().ok());

    let tls =
        ["--authority", "AUTHORITY", "--queries-per-connection", "20", "--tls-versions", "1.3"];
    let record = check("127.0.0.1", "dot", &tls);
    let counts = measured(&record).counters.connections;
    assert!(counts.closed > 4 && counts.resumed_handshakes > 4, "{counts:?}");
    assert!(record.load.behaviour.contains("20 queries"), "{}", record.load.behaviour);
    let further = [&tls[..], &["--resumption", "off"]].concat();
    let counts = measured(&check("127.0.0.1", "dot", &further)).counters.connections;
    assert!(counts.closed > 4 && counts.resumed_handshakes == 0, "{counts:?}");
}

/// The first query is signed, and shows it before any load.
#[test]
fn a_key_that_the_server_does_not_know_gives_no_answers() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    room.write("queries", &queries());
    let secret = "c2VjcmV0LW9mLXRoZS10ZXN0";
    let key = format!("a.key:{secret}");
    let arguments = ["--queries", "queries", "--tsig", &key];
    let done = load(&room, &bind.plain.to_string(), &arguments).exits_with(1).errors(1);
    let done = done.complains("refused the signature: BADKEY").complains("give it one");
    let done = done.complains("`a.key`");
    assert!(room.results_so_far().is_none(), "{done}");
    assert!(!done.stdout.contains(secret) && !done.stderr.contains(secret), "{done}");
}

#[test]
fn a_rate_may_change() {
    let rate = ["--rate", "steps:0,1000/100ms", "--clients", "10"];
    let record = check("127.0.0.1", "udp", &rate);
    // The pause is the warm-up; then 300 ms at 1,000 per second.
    assert_eq!(measured(&record).counters.outcomes.due, 300);
    let LoadMode::Open { pace, .. } = &record.load.mode else { panic!("{:?}", record.load.mode) };
    assert!(pace.to_string().contains("steps:0,1000/100ms"), "{pace}");
}

/// BIND signs its answers if it knows the key. An unsigned answer counts as none.
#[test]
fn queries_are_signed() {
    let key = "a.key:c2VjcmV0LW9mLXRoZS10ZXN0";
    let room = Room::with_load();
    room.write("key.txt", key);
    room.write("queries", &queries());
    // Servers run as a user of their own.
    room.open_to_all();
    let of_bind = "key \"a.key\" { algorithm hmac-sha256; secret \"c2VjcmV0LW9mLXRoZS10ZXN0\"; };";
    room.write("bind.key", of_bind);
    let text = format!("include \"{}\";", room.path().join("bind.key").display());
    let common =
        format!("server = {{ kind = \"bind\", extra = '{text}' }}\nrepeat.runs = 1\n{SHORT}");
    let variants = "[[variant]]\nname = \"signed\"\nload.tsig_file = \"key.txt\"\n\
                    [[variant]]\nname = \"plain\"\n";
    room.experiment(&format!("{common}{variants}"));
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let results = room.results();
    for record in valid_records(&results, 2) {
        assert_eq!(measured(&record).counters.answers.bad_signature, 0);
        // A signature is some 80 octets.
        let answers = &measured(&record).counters.answers;
        assert!(answers.octets / measured(&record).counters.outcomes.answered.max(1) > 30);
    }
    let kept = std::fs::read_to_string(results.path().join("experiment.toml")).unwrap();
    assert!(kept.contains("tsig_file") && !kept.contains(key), "{kept}");

    // The secret is nowhere in what is kept.
    room.experiment(&format!("{common}[[variant]]\nname = \"signed\"\n"));
    let secret = "c2VjcmV0LW9mLXRoZS10ZXN0";
    let option = format!("load.tsig=a.key:{secret}");
    let words = ["run", "./experiment.toml", "--set", &option, "--results", "own"];
    let done = room.dnslab(&words).exits_with(0);
    let folder = &crate::room::folders(&room.path().join("own"))[0];
    for name in ["session.json", "experiment.toml", "report.html", "runs/signed-1/record.json"] {
        let kept = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(!kept.contains(secret), "{name} holds the secret");
    }
    assert!(!done.stdout.contains(secret) && !done.stderr.contains(secret), "{done}");
    let session = dnslab_results::ResultsDirectory::open(folder).unwrap().session().unwrap();
    let masked = format!("load.tsig=a.key:{}", "*".repeat(24));
    assert!(session.command.contains(&masked), "{:?}", session.command);
}

#[test]
fn dot_with_the_wrong_name_or_authority_is_no_measurement() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    let stranger = RunningBind::start(&room.path().join("stranger"), "127.0.0.1");
    let (own, other) = (bind.authority.to_string_lossy(), stranger.authority.to_string_lossy());
    let cases =
        [vec!["--authority", &own, "--tls-name", "other.test"], vec!["--authority", &other]];
    for (number, case) in cases.iter().enumerate() {
        let results = format!("results-{number}");
        let mut arguments = vec!["--transport", "dot", "--results", &results];
        arguments.extend(case);
        let done = load(&room, &bind.dot.to_string(), &arguments).exits_with(1).errors(1);
        let (what, remedy) = match number {
            0 => ("not for other.test", "`--tls-name "),
            _ => ("which is not trusted", "`--authority FILE`"),
        };
        done.complains("has a certificate ").complains(what).complains(remedy);
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let rate = ["--rate", "500", "--pace", "poisson", "--clients", "10"];
    let record = check("127.0.0.1", "udp", &rate);
    assert_eq!(
        record.load.mode,
        LoadMode::Open { rate_qps: 500.0, pace: OpenPace::constant(Pace::Poisson) }
    );
    // 150 queries are due in 300 ms. A Poisson process is off by more than 6 deviations (74) once in 500
    // million seeds, and this seed is fixed.
    let due = measured(&record).counters.outcomes.due;
    assert!((76..=224).contains(&due), "{due} queries were due");
}

#[test]
fn all_queries_of_the_file_are_asked() {
    let record = check("127.0.0.1", "tcp", &["--rate", "1000"]);
    let counters = &measured(&record).counters;
    assert_eq!(counters.outcomes.due, 300, "300 ms at 1,000 per second");
    assert!(record.load.queries.contains("102"), "the file holds 102: {}", record.load.queries);
    assert_eq!(counters.answers.rcodes.get("NOERROR"), Some(&counters.outcomes.answered));
}

#[test]
fn wrong_answers_make_the_run_invalid_and_show_an_example() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    room.write("absent", "absent1.example.test A\nabsent2.example.test AAAA\n");
    let target = bind.plain.to_string();
    let strict = ["--queries", "absent", "--expect", "NOERROR"];
    let done = load(&room, &target, &strict).exits_with(1).errors(1);
    let done = done.complains(&format!("{target} answers `absent1.example.test. A` with NXDOMAIN"));
    let done = done.complains("none of 2 queries").complains("`--expect NXDOMAIN`");
    assert!(room.results_so_far().is_none(), "{done}");

    // One right answer among the first is enough to begin.
    room.write("absent", "absent1.example.test A\nabsent2.example.test AAAA\nexample.test SOA\n");
    let done = load(&room, &target, &strict).exits_with(3);
    let done = done.prints("INVALID").prints("were not NOERROR").prints("NXDOMAIN");
    assert!(done.stdout.contains(".example.test"), "no example of a query: {done}");
    let found = records(&room.results());
    let [RunRecord { status: RunStatus::Invalid { reason }, .. }] = found.as_slice() else {
        panic!("{found:?}{done}");
    };
    let reason = invalid_text(reason);
    assert!(reason.contains("absent") && reason.contains("NXDOMAIN"), "{reason}");
    let wrong = measured(&found[0]).counters.answers.wrong;
    assert!(wrong > measured(&found[0]).counters.outcomes.answered / 2, "{done}");
    report_is_whole(&room.results(), &["load"]);

    // An expected answer is not wrong.
    room.write("absent", "absent1.example.test A\nabsent2.example.test AAAA\n");
    let arguments = ["--queries", "absent", "--expect", "NXDOMAIN", "--results", "expected"];
    load(&room, &target, &arguments).exits_with(0);
}

/// The query as an answer whose header promises a record that is not there.
fn lie(query: &[u8]) -> Vec<u8> {
    let mut lie = query.to_vec();
    lie[2] |= 0x84;
    lie[7] = 1;
    lie
}

/// The honest answers that a liar still gives.
type Honest = AtomicU32;

/// An answer to a question for an address has the promised record while honest answers are left.
fn answer(query: &[u8], honest: &Honest) -> Vec<u8> {
    let mut answer = lie(query);
    // An OPT record of eleven octets may follow the question.
    let end = query.len() - 11 * usize::from(query[11]);
    let is_for_address = query[..end].ends_with(&[0, 1, 0, 1]);
    let take = |left: u32| left.checked_sub(u32::from(is_for_address));
    if honest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
        let record = b"\xc0\x0c\0\x01\0\x01\0\0\0\x09\0\x04\xc0\0\x02\x01";
        answer.splice(end..end, *record);
    }
    answer
}

/// Starts a server that gives this many honest answers and then lies only, over UDP and TCP on one port. It
/// ends with the test.
fn liar(honest: u32) -> SocketAddr {
    let honest = Arc::new(Honest::new(honest));
    // A port that no client of another test has over UDP.
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let listener = TcpListener::bind(address).unwrap();
    let socket = UdpSocket::bind(address).unwrap();
    let over_udp = Arc::clone(&honest);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((length, client)) = socket.recv_from(&mut buffer) {
            socket.send_to(&answer(&buffer[..length], &over_udp), client).ok();
        }
    });
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let honest = Arc::clone(&honest);
            thread::spawn(move || over_tcp(stream, &honest));
        }
    });
    address
}

fn over_tcp(mut stream: TcpStream, honest: &Honest) -> std::io::Result<()> {
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut query = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut query)?;
        let answer = answer(&query, honest);
        let length = u16::try_from(answer.len()).unwrap_or(u16::MAX).to_be_bytes();
        stream.write_all(&[length.as_slice(), &answer].concat())?;
    }
}

#[test]
fn a_header_that_promises_a_record_makes_no_run_valid() {
    for transport in ["udp", "tcp"] {
        let room = Room::with_load();
        let done = load(&room, &liar(0).to_string(), &["--transport", transport]).exits_with(1);
        let done = done.complains("with what is no right answer (the answer section has 0 whole");
        assert!(room.results_so_far().is_none(), "{done}");
        // Its first answer shows it. If that was right, the later ones do.
        let target = liar(1).to_string();
        let done = load(&room, &target, &["--transport", transport]);
        let done = done.exits_with(3).prints("INVALID");
        let done = done.prints("checked in full did not hold what they must");
        let done = done.prints("the answer section has 0 whole records, and its header counts 1");
        let results = room.results();
        let found = records(&results);
        let [RunRecord { status: RunStatus::Invalid { reason }, .. }] = found.as_slice() else {
            panic!("{found:?}{done}");
        };
        let reason = invalid_text(reason);
        assert!(reason.contains("malformed answer to "), "{reason}");
        let answers = &measured(&found[0]).counters.answers;
        assert!(answers.checked > 0 && answers.malformed == answers.checked, "{done}");
        assert_eq!(answers.wrong, 0, "the headers are right: {done}");
        report_is_whole(&results, &["load"]);
    }
}

#[test]
fn nobody_there_is_said_clearly() {
    let room = Room::with_load();
    let free = ports::free([127, 0, 0, 1].into()).unwrap();
    let target = SocketAddr::from(([127, 0, 0, 1], free.plain)).to_string();
    let insecure = ["dot", "doh2", "doq", "doh3"].map(|transport| (transport, Some("--insecure")));
    for (transport, further) in [("udp", None), ("tcp", None)].into_iter().chain(insecure) {
        let results = format!("results-{transport}");
        let mut arguments = vec!["--transport", transport, "--results", &results];
        arguments.extend(further);
        let done = load(&room, &target, &arguments).exits_with(1).errors(1);
        let done = done.complains(&format!("{target} does not answer over {transport}"));
        let done = done.complains("Connection refused");
        assert!(done.stderr.lines().count() <= 5, "more than a glance: {done}");
    }
}

/// A list may begin with a name whose own servers are silent.
#[test]
fn a_name_without_an_answer_is_no_silent_server() {
    let room = Room::with_load();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = socket.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let honest = Honest::new(u32::MAX);
        let mut buffer = [0; 4096];
        while let Ok((length, client)) = socket.recv_from(&mut buffer) {
            // The name follows the header and the length of its first label.
            if !buffer[13..length].starts_with(b"silent") {
                socket.send_to(&answer(&buffer[..length], &honest), client).ok();
            }
        }
    });
    room.write("queries", "silent.test A\na.test A\nb.test A\nc.test A\n");
    let arguments = ["--queries", "queries", "--timeout", "100ms"];
    load(&room, &target, &arguments).exits_with(0);
    room.write("queries", "silent.test A\nsilent1.test A\n");
    let arguments = [arguments.as_slice(), &["--results", "silent"]].concat();
    let done = load(&room, &target, &arguments).exits_with(1).errors(1);
    done.complains("does not answer over udp: no answer in time");
}

/// BIND refuses names outside its zones. No run begins, whatever their number.
#[test]
fn a_server_that_refuses_ends_the_experiment_before_its_first_run() {
    let room = Room::quiet();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    room.experiment(&format!(
        "repeat.runs = 3\n[server]\nkind = \"external\"\naddress = \"{}\"\n\
         zone.name = \"other.test\"\n{SHORT}{UDP_AND_TCP}",
        bind.plain
    ));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(1).errors(1);
    let done =
        done.complains("variant `udp`: ").complains(" with REFUSED over udp, not with NOERROR");
    let done = done.complains("`--set expect.rcode=REFUSED`");
    assert!(room.results_so_far().is_none(), "{done}");
    let target = bind.plain.to_string();
    let done = load(&room, &target, &["--zone", "other.test"]).exits_with(1).errors(1);
    let done = done.complains(" with REFUSED over udp").complains("`--expect REFUSED`");
    assert!(!done.stderr.contains("variant"), "the variant of a load has no name: {done}");

    // A variant on another transport is asked over that one.
    let (plain, dot) = (bind.plain.port(), bind.dot.port());
    room.write("queries", &queries());
    room.experiment(&format!(
        "repeat.runs = 3\n[server]\nkind = \"external\"\naddress = \"127.0.0.1\"\nport = {plain}\n\
         dot_port = {dot}\n{SHORT}queries = \"queries\"\n\
         [[variant]]\nname = \"udp\"\n[[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n\
         server.tls_name = \"other.test\"\nserver.authority = \"bind/authority.pem\"\n"
    ));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(1).errors(1);
    let done = done.complains("variant `dot`: ").complains("not for other.test");
    let done = done.complains("`--set server.tls_name=");
    assert!(room.results_so_far().is_none(), "{done}");
}

/// BIND makes this certificate for itself (`tls ephemeral`).
#[test]
fn a_self_signed_certificate_is_named_with_what_to_do() {
    let room = Room::quiet();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    let authority = bind.authority.to_string_lossy().into_owned();
    let other = RunningBind::start_self_signed(&room.path().join("other"), "127.0.0.1");
    let target = other.target("dot");
    let arguments = ["--transport", "dot", "--authority", &authority];
    let done = load(&room, &target, &arguments).exits_with(1).errors(1);
    let done = done.complains(&format!("{target} has a self-signed certificate"));
    let done = done.complains("`--insecure`");
    assert!(room.results_so_far().is_none(), "{done}");
}
