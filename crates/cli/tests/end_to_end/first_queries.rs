//! The first queries before a load are those of the load, and what they find is said with a remedy that leads somewhere.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use dnslab_lab::ports;
use dnslab_results::ResultsDirectory;
use dnslab_settings::{Expect, Load, Server};
use domain::base::Message;
use domain::base::iana::Rtype;
use domain::base::name::ToLabelIter as _;
use domain::base::opt::UnknownOptData;

use crate::command::{Done, Guarded, Running, program, unshare};
use crate::evidence::{measured, records, valid_records};
use crate::processes::wait_for;
use crate::room::{Room, free_port};
use crate::running_server::{RunningBind, named, queries, zone};

/// What came to a witness.
#[derive(Clone, Debug)]
struct Seen {
    from: IpAddr,
    is_tcp: bool,
    message: Vec<u8>,
}

/// How a witness answers.
#[derive(Clone, Copy, Debug, Default)]
struct Manner {
    /// The response code over UDP and over TCP, with the bits of EDNS.
    rcodes: [u16; 2],
    /// Answers over UDP and over TCP are truncated.
    truncates: [bool; 2],
    /// This code if the query has an OPT record.
    rcode_of_edns: Option<u16>,
    /// Each third query is refused.
    refuses_some: bool,
}

/// Answers each query as it is told to, and keeps what it saw. It ends with the test.
struct Witness {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Witness {
    fn start(manner: Manner) -> Self {
        // A port that no client of another test has over UDP.
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let listener = TcpListener::bind(address).unwrap();
        let socket = UdpSocket::bind(address).unwrap();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let over_udp = Arc::clone(&seen);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((length, client)) = socket.recv_from(&mut buffer) {
                let answer = keep(&over_udp, (client.ip(), false), &buffer[..length], manner);
                socket.send_to(&answer, client).ok();
            }
        });
        let over_tcp = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&over_tcp);
                thread::spawn(move || serve_stream(stream, &seen, manner));
            }
        });
        Self { address, seen }
    }

    fn target(&self) -> String {
        self.address.to_string()
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve_stream(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Seen>>,
    manner: Manner,
) -> std::io::Result<()> {
    let from = stream.peer_addr()?.ip();
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut query = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut query)?;
        let answer = keep(seen, (from, true), &query, manner);
        let length = u16::try_from(answer.len()).unwrap_or(u16::MAX).to_be_bytes();
        stream.write_all(&[length.as_slice(), &answer].concat())?;
    }
}

/// Keeps a query, and makes its answer: an address for type A if all is well.
fn keep(
    seen: &Mutex<Vec<Seen>>,
    (from, is_tcp): (IpAddr, bool),
    query: &[u8],
    manner: Manner,
) -> Vec<u8> {
    let number = {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(Seen { from, is_tcp, message: query.to_vec() });
        seen.len()
    };
    let asked = Message::from_octets(query).unwrap();
    let rcode = match manner.rcode_of_edns.filter(|_| asked.opt().is_some()) {
        Some(rcode) => rcode,
        None if manner.refuses_some && number % 3 == 0 => 5,
        None => manner.rcodes[usize::from(is_tcp)],
    };
    let truncates = manner.truncates[usize::from(is_tcp)];
    let mut answer = query[..12].to_vec();
    answer[2] = 0x84 | query[2] & 1 | if truncates { 2 } else { 0 };
    answer[3] = 0x80 | (rcode & 15) as u8;
    let question = asked.sole_question().unwrap();
    let end = 12 + usize::from(question.qname().compose_len()) + 4;
    answer[6..12].fill(0);
    answer.extend_from_slice(&query[12..end]);
    if rcode == 0 && !truncates && question.qtype() == Rtype::A {
        answer[7] = 1;
        answer.extend_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0\x09\0\x04\xc0\0\x02\x01");
    }
    if rcode > 15 {
        answer[11] = 1;
        answer.extend_from_slice(&[0, 0, 41, 4, 0xd0, (rcode >> 4) as u8, 0, 0, 0, 0, 0]);
    }
    answer
}

/// The EDNS options of a query, by their codes.
fn edns_options(message: &[u8]) -> Vec<u16> {
    let message = Message::from_octets(message).unwrap();
    let Some(opt) = message.opt() else { return Vec::new() };
    let options = opt.opt().iter::<UnknownOptData<_>>();
    options.map(|option| option.unwrap().code().to_int()).collect()
}

fn payload(message: &[u8]) -> Option<u16> {
    Message::from_octets(message).unwrap().opt().map(|opt| opt.udp_payload_size())
}

fn rtype_of_last(message: &[u8]) -> Option<Rtype> {
    let message = Message::from_octets(message).unwrap();
    message.additional().unwrap().filter_map(Result::ok).last().map(|record| record.rtype())
}

fn qname(message: &[u8]) -> String {
    let message = Message::from_octets(message).unwrap();
    message.sole_question().unwrap().qname().to_string()
}

/// A short `dnslab load` of few clients, unless the words say another one.
#[track_caller]
fn load(room: &Room, target: &str, words: &[&str]) -> Done {
    const SHORT: [(&str, &str); 4] =
        [("--duration", "200ms"), ("--warm-up", "0s"), ("--timeout", "1s"), ("--clients", "4")];
    let number = (1..).find(|number| !room.path().join(format!("r{number}")).exists());
    let results = format!("r{}", number.unwrap_or_default());
    let mut all = vec!["load", target, "--results", &results];
    all.extend(words);
    let missing = SHORT.iter().filter(|(option, _)| !words.contains(option));
    all.extend(missing.flat_map(|(option, value)| [*option, *value]));
    room.dnslab(&all)
}

/// What a key of a load does to the first queries.
enum Shows {
    /// Each of them is like this, with these options. The server refuses all, so that no load follows.
    OnEach(&'static [&'static str], fn(&Seen) -> bool),
    /// Some are like this, and the server answers over UDP so: what follows then is what is looked for.
    OnSome(&'static [&'static str], Manner, fn(&Seen) -> bool),
    /// What the clients offer in TLS is like this.
    InHello(&'static [&'static str], fn(&Hello) -> bool),
    /// Another test shows it, against a real server.
    Elsewhere(&'static str),
    /// One query by itself looks the same.
    Nothing(&'static str),
}

const REFUSING: Manner =
    Manner { rcodes: [5, 5], truncates: [false; 2], rcode_of_edns: None, refuses_some: false };

/// What each key shows that a load knows. A new key needs a row.
fn row(key: &str) -> Shows {
    use Shows::{Elsewhere, InHello, Nothing, OnEach, OnSome};
    match key {
        "load.transport" => OnEach(&["--transport", "tcp"], |seen| seen.is_tcp),
        // Over UDP all is well, so that TCP follows.
        "load.mix" => {
            OnSome(&["--mix", "tcp:50%"], Manner { rcodes: [0, 5], ..REFUSING }, |seen| seen.is_tcp)
        }
        "load.truncated" => OnSome(
            &["--truncated", "ask-over-tcp"],
            Manner { truncates: [true, false], ..REFUSING },
            |seen| seen.is_tcp,
        ),
        "load.sources" => OnEach(
            &["--sources", "127.0.1.0/29"],
            |seen| matches!(seen.from, IpAddr::V4(from) if from.octets()[..3] == [127, 0, 1]),
        ),
        "load.edns_payload" => {
            OnEach(&["--edns-payload", "1400"], |seen| payload(&seen.message) == Some(1400))
        }
        "load.dnssec_ok" => OnEach(&["--dnssec-ok"], |seen| {
            Message::from_octets(&seen.message).unwrap().opt().is_some_and(|opt| opt.dnssec_ok())
        }),
        "load.edns_options" => OnEach(&["--edns-option", "65001:c0ffee"], |seen| {
            edns_options(&seen.message) == [65001]
        }),
        "load.keepalive" => OnEach(&["--transport", "tcp", "--keepalive"], |seen| {
            edns_options(&seen.message) == [11]
        }),
        "load.cookies" => OnEach(&["--cookies"], |seen| edns_options(&seen.message) == [10]),
        "load.client_subnets" => OnEach(&["--client-subnets", "10.0.0.0/8 by /24"], |seen| {
            edns_options(&seen.message) == [8]
        }),
        "load.tsig" => OnEach(&["--tsig", "a.key:c2VjcmV0"], |seen| {
            rtype_of_last(&seen.message) == Some(Rtype::TSIG)
        }),
        "load.tsig_file" => OnEach(&["--tsig-file", "key.txt"], |seen| {
            rtype_of_last(&seen.message) == Some(Rtype::TSIG)
        }),
        "load.recursion_desired" => {
            OnEach(&["--recursion-desired"], |seen| seen.message[2] & 1 == 1)
        }
        "load.queries" => {
            OnEach(&["--queries", "own.txt"], |seen| qname(&seen.message) == "own.example.test")
        }
        "load.types" => OnEach(&["--types", "AAAA"], |seen| {
            let message = Message::from_octets(&seen.message).unwrap();
            message.sole_question().unwrap().qtype() == Rtype::AAAA
        }),
        "load.names" | "load.search" | "load.ndots" => {
            Nothing("the first query is for the first of the names, as for that of a file")
        }
        "load.popular_names" => Nothing("only an upstream that is started knows these names"),
        "load.tls_versions" => InHello(&["--tls-versions", "1.2"], |hello| {
            hello.versions.iter().all(|version| *version < 0x0304)
        }),
        "load.tls_groups" => InHello(&["--tls-groups", "secp384r1"], |hello| hello.groups == [24]),
        "server.tls_name" => InHello(&["--tls-name", "ns1.example.test"], |hello| {
            hello.name.as_deref() == Some("ns1.example.test")
        }),
        "load.http_method" | "load.http_path" => Elsewhere("https_has_a_method_and_a_path"),
        "load.padding" => Elsewhere("padding_is_in_the_first_query"),
        "server.further" => Elsewhere("a_further_server_is_asked_as_the_first"),
        "server.address" | "server.port" | "server.dot_port" | "server.doh_port"
        | "server.doq_port" | "server.authority" | "server.insecure" => {
            Elsewhere("certificates_that_openssl_made")
        }
        "load.capture"
        | "load.capture_server"
        | "load.capture_ports"
        | "load.dnstap_messages"
        | "load.dnstap_source"
        | "load.population"
        | "load.factor"
        | "load.speed" => Nothing("the first queries are those of the capture or the population"),
        "expect.rcode" => Elsewhere("a_code_because_of_edns_and_any_code_expected"),
        "load.clients"
        | "load.outstanding"
        | "load.rate"
        | "load.pace"
        | "load.duration"
        | "load.queries_in_all"
        | "load.warm_up"
        | "load.windows"
        | "load.selection"
        | "load.zipf_exponent"
        | "load.connections"
        | "load.queries_per_connection"
        | "load.connection_quota"
        | "load.idle"
        | "load.connect"
        | "load.workers"
        | "load.cpus"
        | "load.batch_delay" => Nothing("they say how many, and when"),
        "load.timeout" | "load.attempts" | "load.backoff" | "load.server_order" => {
            Nothing("they say how long, how often and in which order a silent server is asked")
        }
        "load.hosts" | "hosts.program" | "hosts.install" => {
            Nothing("the first queries leave this host")
        }
        "load.receive_time" | "load.quickack" => Nothing("options of the socket"),
        "load.tls_records" | "load.resumption" | "load.early_data" => {
            Nothing("one query is one record, and the first connection has no ticket")
        }
        "expect.wrong_limit" | "expect.lost_limit" | "expect.lag_limit" | "expect.unsent_limit" => {
            Nothing("they judge what came")
        }
        // What dnslab starts, and how it watches a server.
        key if key.starts_with("server.") => Nothing("it is about servers that are started"),
        key => panic!("`{key}` has no row: what do the first queries show of it?"),
    }
}

#[test]
fn the_first_queries_are_those_of_the_load() {
    let keys = [Load::KEYS, Server::KEYS, Expect::KEYS];
    let room = Room::with_load();
    room.write("key.txt", "a.key:c2VjcmV0");
    room.write("own.txt", "own.example.test A\n");
    let (mut shown, mut elsewhere) = (0, Vec::new());
    for key in keys.into_iter().flatten() {
        match row(key.path) {
            Shows::OnEach(options, is_so) => {
                let witness = Witness::start(REFUSING);
                let done = load(&room, &witness.target(), options).exits_with(1).errors(1);
                let seen = witness.seen();
                assert!(!seen.is_empty() && seen.iter().all(is_so), "{}: {seen:?}{done}", key.path);
                // Otherwise the test shows nothing.
                let witness = Witness::start(REFUSING);
                load(&room, &witness.target(), &[]).exits_with(1);
                assert!(!witness.seen().iter().any(is_so), "{} is like that anyway", key.path);
                shown += 1;
            }
            Shows::OnSome(options, manner, is_so) => {
                let witness = Witness::start(manner);
                let done = load(&room, &witness.target(), options).exits_with(1).errors(1);
                assert!(
                    witness.seen().iter().any(is_so),
                    "{}: {:?}{done}",
                    key.path,
                    witness.seen()
                );
                shown += 1;
            }
            Shows::InHello(options, is_so) => {
                assert!(
                    is_so(&hello_of(&room, options)),
                    "{}: {:?}",
                    key.path,
                    hello_of(&room, options)
                );
                assert!(!is_so(&hello_of(&room, &[])), "{} is like that anyway", key.path);
                shown += 1;
            }
            Shows::Elsewhere(test) => elsewhere.push(test),
            Shows::Nothing(why) => assert!(!why.is_empty(), "{}", key.path),
        }
    }
    assert!(shown >= 18, "{shown}");
    // Those tests are there.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end");
    let text = ["first_queries.rs", "transports.rs"]
        .map(|file| std::fs::read_to_string(folder.join(file)).unwrap())
        .concat();
    for test in elsewhere {
        assert!(text.contains(&format!("fn {test}()")), "there is no test `{test}`");
    }
}

fn hello_of(room: &Room, words: &[&str]) -> Hello {
    let (target, hellos) = listen_for_hellos();
    let encrypted = ["--transport", "dot", "--insecure"];
    load(room, &target, &[&encrypted, words].concat()).exits_with(1);
    let hellos = hellos.lock().unwrap_or_else(PoisonError::into_inner);
    hellos.first().expect("a client said hello").clone()
}

/// What a client offers first in TLS (RFC 8446, section 4.1.2).
#[derive(Clone, Debug, Default)]
struct Hello {
    versions: Vec<u16>,
    groups: Vec<u16>,
    name: Option<String>,
}

/// Takes connections, reads what clients say first, and closes them.
fn listen_for_hellos() -> (String, Arc<Mutex<Vec<Hello>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let hellos = Arc::<Mutex<Vec<Hello>>>::default();
    let kept = Arc::clone(&hellos);
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 5];
            if stream.read_exact(&mut head).is_err() {
                continue;
            }
            let mut body = vec![0; u16::from_be_bytes([head[3], head[4]]).into()];
            if stream.read_exact(&mut body).is_ok() {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(hello(&body));
            }
        }
    });
    (target, hellos)
}

fn hello(message: &[u8]) -> Hello {
    let word = |at: usize| usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
    let words = |octets: &[u8]| -> Vec<u16> {
        octets.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
    };
    let mut hello = Hello::default();
    // Type and length, version, random octets; session, cipher suites, compressions.
    let mut at = 4 + 2 + 32;
    at += 1 + usize::from(message[at]);
    at += 2 + word(at);
    at += 1 + usize::from(message[at]);
    let end = at + 2 + word(at);
    at += 2;
    while at < end {
        let (kind, length) = (word(at), word(at + 2));
        let data = &message[at + 4..at + 4 + length];
        match kind {
            0 => hello.name = Some(String::from_utf8_lossy(&data[5..]).into_owned()),
            10 => hello.groups = words(&data[2..]),
            43 => hello.versions = words(&data[1..]),
            _ => {}
        }
        at += 4 + length;
    }
    if hello.versions.is_empty() {
        // Without the extension the old field says it.
        hello.versions = vec![word(4) as u16];
    }
    hello
}

/// BIND answers clients of one network, as `dnsperf -a` asks from it.
#[test]
fn a_server_that_answers_one_network_is_asked_from_there() {
    let room = Room::with_load();
    let folder = room.path().join("bind");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("zone"), zone()).unwrap();
    let port = ports::free([127, 0, 0, 1].into()).unwrap().plain;
    let configuration = format!(
        "options {{ directory \".\"; pid-file \"named.pid\"; session-keyfile \"session.key\";
             managed-keys-directory \".\"; recursion no; dnssec-validation no;
             allow-query {{ 127.0.1.0/24; }}; listen-on-v6 {{ none; }};
             listen-on port {port} {{ 127.0.0.1; }}; }};
         controls {{ }};
         zone \"example.test\" {{ type primary; file \"zone\"; }};"
    );
    let _bind = named(&folder, &configuration);
    let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    wait_for("named answers", log, || {
        let port = port.to_string();
        let words = ["@127.0.0.1", "-b", "127.0.1.5", "-p", &port, "+tries=1", "+time=1", "+short"];
        let asked = Command::new("dig").args(words).args(["host7.example.test", "A"]).output();
        (asked.ok()?.stdout == b"192.0.2.7\n").then_some(())
    });
    room.write("queries", &queries());
    let target = format!("127.0.0.1:{port}");
    let from =
        |sources: &[&str]| load(&room, &target, &[&["--queries", "queries"], sources].concat());
    from(&["--sources", "127.0.1.0/24"]).exits_with(0);
    from(&[]).exits_with(1).complains("with REFUSED over udp");
    // Where a server is started, whether it is ready is asked from there, too.
    room.experiment(
        "repeat.runs = 1\nserver = { kind = \"bind\", extra = \"options { allow-query { 127.0.1.0/24; }; };\" }\n\
         [load]\nclients = 4\nduration = \"200ms\"\nwarm_up = \"0s\"\nsources = \"127.0.1.0/24\"\n\
         [[variant]]\nname = \"a\"\n",
    );
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    valid_records(&room.results(), 1);
}

/// Whether a server is ready is asked as its clients ask: others have no answer.
#[test]
fn a_server_that_is_started_is_asked_as_its_clients_ask() {
    let room = Room::with_load();
    room.experiment(
        "repeat.runs = 1\n[load]\nclients = 4\nduration = \"200ms\"\nwarm_up = \"0s\"\n\
         [[variant]]\nname = \"signed\"\nload.tsig = \"a.key:c2VjcmV0\"\n\
         server = { kind = \"bind\", extra = \"key a.key { algorithm hmac-sha256; secret \\\"c2VjcmV0\\\"; };\\n\
         options { allow-query { key a.key; }; };\" }\n\
         [[variant]]\nname = \"early\"\nserver.kind = \"embedded\"\n\
         load = { transport = \"doh2\", early_data = true, http_method = \"get\" }\n",
    );
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    valid_records(&room.results(), 2);
}

/// `openssl s_server` prints what the client says inside of TLS.
#[test]
fn padding_is_in_the_first_query() {
    let room = Room::with_load();
    certificate(&room, "/CN=x", Some("IP:127.0.0.1"));
    let port = ports::free([127, 0, 0, 1].into()).unwrap().dot;
    let _server = s_server(&room, port, &[]);
    let options = ["--transport", "dot", "--insecure", "--padding=100"];
    load(&room, &format!("127.0.0.1:{port}"), &options)
        .exits_with(1)
        .complains("no answer in time");
    let said = std::fs::read(room.path().join("said")).unwrap();
    let length = usize::from(u16::from_be_bytes([said[0], said[1]]));
    assert!(length > 0 && length % 100 == 0 && said.len() >= 2 + length, "{length}");
    assert!(edns_options(&said[2..2 + length]).contains(&12), "no padding");
}

#[test]
fn a_further_server_is_asked_as_the_first() {
    let room = Room::with_load();
    let (first, further) = (Witness::start(REFUSING), Witness::start(REFUSING));
    let further_target = further.target();
    let options = ["--rate", "100", "--further", &further_target, "--edns-option", "7:00"];
    let options = [&options[..], &["--sources", "127.0.1.0/29"]].concat();
    load(&room, &first.target(), &options).exits_with(1);
    for witness in [&first, &further] {
        let seen = witness.seen();
        let is_so = |seen: &Seen| {
            edns_options(&seen.message) == [7] && seen.from.to_string() != "127.0.0.1"
        };
        assert!(!seen.is_empty() && seen.iter().all(is_so), "{seen:?}");
    }
}

/// Makes `cert.pem` and `key.pem` as people do, by `openssl req -x509`.
#[track_caller]
fn certificate(room: &Room, subject: &str, names: Option<&str>) {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", subject]);
    if let Some(names) = names {
        command.args(["-addext", &format!("subjectAltName={names}")]);
    }
    command.args(["-keyout", "key.pem", "-out", "cert.pem"]).current_dir(room.path());
    let made = command.stderr(Stdio::null()).status();
    assert!(made.is_ok_and(|status| status.success()), "openssl: apt-get install openssl");
}

/// `openssl s_server` at this port of 127.0.0.1; what clients say is in the file `said`.
#[track_caller]
fn s_server(room: &Room, port: u16, words: &[&str]) -> Guarded {
    let said = std::fs::File::create(room.path().join("said")).unwrap();
    let child = Command::new("openssl")
        .args(["s_server", "-accept", &format!("127.0.0.1:{port}"), "-cert", "cert.pem"])
        .args(["-key", "key.pem", "-alpn", "dot", "-quiet"])
        .args(words)
        .current_dir(room.path())
        .stdin(Stdio::piped())
        .stdout(said)
        .stderr(Stdio::null())
        .spawn();
    let child = Guarded(child.expect("openssl can be started"));
    wait_for("it listens", String::new, || {
        TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(())
    });
    child
}

/// `dnslab serve` over TLS with `cert.pem` and `key.pem`.
#[track_caller]
fn serve_tls(room: &Room, port: u16) -> Running {
    room.write("zone", &zone());
    let plain = ports::free([127, 0, 0, 1].into()).unwrap().plain;
    let (plain, dot) = (format!("127.0.0.1:{plain}"), format!("127.0.0.1:{port}"));
    let files = ["--certificate", "cert.pem", "--key", "key.pem", "--zone", "zone"];
    let places = ["serve", "--listen", &plain, "--dot-listen", &dot];
    // The one before has it until its last process has ended.
    let is_free = || TcpListener::bind(("127.0.0.1", port)).is_ok().then_some(());
    wait_for("the port is free", String::new, is_free);
    let running = room.start(&[&places[..], &files].concat());
    wait_for(
        "it listens",
        || running.so_far(),
        || TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(()),
    );
    running
}

/// What stands in backticks and begins so.
#[track_caller]
fn printed(done: &Done, begin: &str) -> Vec<String> {
    let spans = done.stderr.split('`').skip(1).step_by(2);
    let found = spans.into_iter().find(|span| span.starts_with(begin));
    let found = found.unwrap_or_else(|| panic!("no remedy begins with {begin}: {done}"));
    found.split_whitespace().map(str::to_owned).collect()
}

/// Certificates as people make them with openssl, what is said of them, and the remedy followed to its end.
#[test]
fn certificates_that_openssl_made() {
    let room = Room::with_load();
    room.write("queries", &queries());
    let port = ports::free([127, 0, 0, 1].into()).unwrap().dot;
    let target = format!("127.0.0.1:{port}");
    let with = |words: &[&str]| {
        let common = ["--transport", "dot", "--queries", "queries"];
        load(&room, &target, &[&common, words].concat())
    };
    let trusting = ["--authority", "cert.pem"];
    let check = |subject: &str, names: Option<&str>, fault: &str| {
        certificate(&room, subject, names);
        let serving = serve_tls(&room, port);
        (with(&trusting).exits_with(1).errors(1).complains(fault), serving)
    };

    // A certificate of an authority, given as the authority: it is that server's own.
    certificate(&room, "/CN=x", Some("IP:127.0.0.1"));
    let serving = serve_tls(&room, port);
    with(&trusting).exits_with(0);
    // Another one is not.
    std::fs::copy(room.path().join("cert.pem"), room.path().join("other.pem")).unwrap();
    drop(serving);
    certificate(&room, "/CN=x", Some("IP:127.0.0.1"));
    let serving = serve_tls(&room, port);
    let done = with(&["--authority", "other.pem"]).exits_with(1);
    done.complains("has a self-signed certificate").complains("`--authority FILE`");
    drop(serving);

    // The address as a name. The remedy is a line of openssl, which is run as it was printed.
    let fault = "for the DNS name 127.0.0.1, not for the address 127.0.0.1";
    let (done, serving) = check("/CN=x", Some("DNS:127.0.0.1"), fault);
    assert!(!done.stderr.contains("--tls-name"), "that name does not do: {done}");
    drop(serving);
    let line = printed(&done, "openssl req ");
    let made = Command::new(&line[0]).args(&line[1..]).current_dir(room.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let serving = serve_tls(&room, port);
    with(&trusting).exits_with(0);
    drop(serving);

    let fault = "without a subjectAltName; its common name is not looked at";
    drop(check("/CN=127.0.0.1", None, fault));
    // No client takes that for a name below it.
    let (done, _) = check("/CN=x", Some("DNS:*.example"), "has a certificate for *.example, not");
    assert!(!done.stderr.contains("--tls-name"), "no name does: {done}");
    let names = Some("DNS:*.example,DNS:*.dns.example.test");
    let (done, serving) = check("/CN=x", names, "*.dns.example.test, not for 127.0.0.1");
    let name = printed(&done, "--tls-name ");
    let words: Vec<&str> = trusting.into_iter().chain(name.iter().map(String::as_str)).collect();
    with(&words).exits_with(0);
    drop(serving);

    // The server wants a certificate, in both versions of TLS.
    certificate(&room, "/CN=x", Some("IP:127.0.0.1"));
    let server = s_server(&room, port, &["-Verify", "1"]);
    for version in ["1.2", "1.3"] {
        let done = with(&["--insecure", "--tls-versions", version]).exits_with(1);
        done.complains("wants a certificate of its clients");
    }
    drop(server);
    let server = s_server(&room, port, &["-tls1_3"]);
    let done = with(&["--insecure", "--tls-versions", "1.2"]).exits_with(1);
    drop(server);
    assert_eq!(printed(&done, "--tls-versions "), ["--tls-versions", "both"]);
    let serving = serve_tls(&room, port);
    with(&["--insecure", "--tls-versions", "both"]).exits_with(0);
    drop(serving);
}

/// A code that EDNS alone brings is told as that, and what is printed for a code is taken.
#[test]
fn a_code_because_of_edns_and_any_code_expected() {
    let room = Room::with_load();
    room.write("queries", "a.example.test A\n");
    let asked = ["--queries", "queries", "--edns-payload", "1232"];
    for (code, name) in [(1, "FORMERR"), (4, "NOTIMP"), (16, "BADVERS"), (12, "RCODE12")] {
        let witness = Witness::start(Manner { rcode_of_edns: Some(code), ..Manner::default() });
        let target = witness.target();
        let done = load(&room, &target, &asked).exits_with(1).errors(1);
        let done = done.complains(&format!("with {name}"));
        let is_edns = done.stderr.contains("because of EDNS");
        assert_eq!(is_edns, code != 12, "{done}");
        let option = printed(&done, "--expect ");
        let option: Vec<&str> = option.iter().map(String::as_str).collect();
        load(&room, &target, &[&asked[..], &option].concat()).exits_with(0);
        load(&room, &target, &[&asked[..], &["--expect", "any"]].concat()).exits_with(0);
        // Without EDNS the server answers.
        load(&room, &target, &asked[..2]).exits_with(0);
    }
    let wrong = load(&room, "127.0.0.1:9", &["--expect", "NXDOMIAN"]).exits_with(2);
    wrong.complains("did you mean NXDOMAIN?");
}

/// Truncated over TCP, too: at most all of the answers are, and the remedy that is in force is not printed.
#[test]
fn answers_that_are_truncated_over_tcp_too() {
    let room = Room::with_load();
    room.write("queries", "a.example.test A\n");
    let witness = Witness::start(Manner { truncates: [true, true], ..Manner::default() });
    let asked = ["--queries", "queries", "--duration", "20s", "--set", "load.queries_in_all=40"];
    let folder = |name: &str| crate::room::folders(&room.path().join(name)).remove(0);
    let notes = |name: &str| std::fs::read_to_string(folder(name).join("table.md")).unwrap();
    let done =
        load(&room, &witness.target(), &[&asked[..], &["--truncated", "ask-over-tcp"]].concat());
    let done = done.exits_with(0);
    let said = notes("r1");
    assert!(said.contains("over TCP too, where they were asked again (100 %"), "{said}");
    assert!(!said.contains("load.truncated"), "that is in force: {said}{done}");
    let results = ResultsDirectory::open(&folder("r1")).unwrap();
    let answers = measured(&records(&results)[0]).counters.answers.clone();
    assert_eq!(answers.truncated, 40, "{answers:?}");
    assert_eq!(answers.truncated, answers.asked_over_tcp, "{answers:?}");
    assert_eq!(answers.truncated, answers.truncated_over_tcp, "{answers:?}");
    // Where nobody asks again, the remedy is printed, and it is taken.
    load(&room, &witness.target(), &asked).exits_with(0);
    let said = notes("r2");
    assert!(said.contains("`--set load.truncated=ask-over-tcp` does so"), "{said}");
    let option = ["--set", "load.truncated=ask-over-tcp"];
    load(&room, &witness.target(), &[&asked[..], &option].concat()).exits_with(0);
}

/// Names that the user brings need not all exist. Codes are shown, also those of a run that does not count.
#[test]
fn codes_of_names_that_the_user_brings_are_shown() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    let mut names: String =
        (0..80).map(|number| format!("host{number}.example.test A\n")).collect();
    names.extend((0..20).map(|number| format!("absent{number}.example.test A\n")));
    room.write("queries", &names);
    let target = bind.plain.to_string();
    let asked = ["--queries", "queries", "--duration", "20s", "--set", "load.queries_in_all=200"];
    // Each name twice.
    let done = load(&room, &target, &asked).exits_with(0);
    done.prints("80.0 % NOERROR, 20.0 % NXDOMAIN");
    let strict = [&asked[..], &["--expect", "NOERROR"]].concat();
    let done = load(&room, &target, &strict).exits_with(3);
    let done = done.prints("40 of 200 answers were not NOERROR").prints("80.0 % NOERROR");
    let done = done.prints("INVALID, to be seen and not to be used").prints("20.0 % NXDOMAIN");
    let done = done.prints("`--set expect.rcode=any` takes every code as right");
    assert!(
        done.stdout.lines().any(|line| line.trim_start().starts_with("load  INVALID ")),
        "{done}"
    );
    let folder = &crate::room::folders(&room.path().join("r2"))[0];
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(
        page.contains("load (INVALID)") && page.contains("NXDOMAIN"),
        "the page lacks the figures"
    );
    let table = std::fs::read_to_string(folder.join("table.md")).unwrap();
    assert!(table.contains("| load (INVALID) [a] |"), "{table}");
    let any = [&asked[..], &["--set", "expect.rcode=any"]].concat();
    load(&room, &target, &any).exits_with(0);
    // An error is none of a name.
    let witness = Witness::start(Manner { refuses_some: true, ..Manner::default() });
    room.write("queries", "a.example.test A\n");
    let done = load(&room, &witness.target(), &asked).exits_with(3);
    done.prints("NOERROR or NXDOMAIN").prints("% REFUSED");
}

/// What the system says, on a host whose routes are like this.
#[test]
fn what_the_system_says_has_a_hint_that_fits() {
    let room = Room::quiet();
    let cases = [
        ("", "Network is unreachable", "this host has no route"),
        (
            "ip route add prohibit 192.0.2.0/24",
            "Permission denied",
            "a route of this host forbids it",
        ),
        ("ip route add unreachable 192.0.2.0/24", "No route to host", "no host has that address"),
        ("ip route add blackhole 192.0.2.0/24", "Invalid argument", "(blackhole)"),
    ];
    for (number, (route, said, hint)) in cases.into_iter().enumerate() {
        for transport in ["udp", "tcp"] {
            let load = format!(
                "{} load 192.0.2.1 --transport {transport} --timeout 200ms --results r{number}{transport}",
                program().display()
            );
            let mut command = unshare();
            let script = format!("ip link set lo up; {route}\n{load}");
            command.args(["--net", "sh", "-c", &script]);
            let done = Running::start(command, room.path()).finish().exits_with(1).errors(1);
            let done = done.complains(said).complains(hint);
            assert!(!done.stderr.contains("does the server serve"), "{done}");
            // What it names can be called, and says of that way what there is to say.
            let line = printed(&done, "ip route get ");
            assert_eq!(line.last().map(String::as_str), Some("192.0.2.1"));
        }
    }
}
