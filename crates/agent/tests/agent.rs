//! An agent does what it is allowed and what it understands, and ends when its coordinator does.

use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::net::UdpSocket;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base64::Engine as _;
use dnslab_agent::{AgentEnd, Permission, serve};
use dnslab_lab::GuardProgram;
use dnslab_load::{Job, Share};
use dnslab_protocol::{
    Answer, FrameReader, FrameWriter, FromAgent, GREETING, MAX_BODY, Order, PortChoice, Role,
    SentFile, SentJob, SentPolicy, SentQueries, SentRootHints, SentShare, SentSource, SentUpstream,
    SentZone, ServerOrder, Sought, ToAgent, body_of, message_of,
};
use dnslab_record::{ResourceSample, ResourceSeries, Span};
use dnslab_settings::{ChainRole, Identity, Load, Mode};
use dnslab_traffic::QueryList;
use dnslab_wire::{Query, QueryOptions};
use proptest::prelude::*;

/// An agent on a thread, and the coordinator's ends of its pipes.
struct Agent {
    input: Option<PipeWriter>,
    output: PipeReader,
    written: FrameWriter,
    frames: FrameReader,
    /// What it has sent of them.
    samples: Vec<ResourceSample>,
    end: JoinHandle<Result<(), AgentEnd>>,
}

impl Agent {
    fn start(roles: &[Role]) -> Self {
        Self::bounded(roles, None, None)
    }

    fn bounded(roles: &[Role], targets: Option<&str>, max_rate_qps: Option<f64>) -> Self {
        let (for_agent, input) = std::io::pipe().unwrap();
        let (mut output, of_agent) = std::io::pipe().unwrap();
        let guard = GuardProgram::this_program(["guard"]);
        let (roles, targets) = (roles.to_vec(), targets.map(|text| text.parse().unwrap()));
        let permission = Permission { roles, is_bounded: true, targets, max_rate_qps, guard };
        let end = thread::spawn(move || serve(&permission, for_agent, of_agent, |_| ()));
        let mut greeting = vec![0; GREETING.len()];
        output.read_exact(&mut greeting).unwrap();
        assert_eq!(greeting, GREETING);
        let (written, frames) = (FrameWriter::default(), FrameReader::default());
        Self { input: Some(input), output, written, frames, samples: Vec::new(), end }
    }

    /// One that knows its coordinator.
    fn known(roles: &[Role]) -> Self {
        let mut agent = Self::start(roles);
        agent.greet(roles);
        agent
    }

    fn greet(&mut self, roles: &[Role]) {
        let agent = self;
        agent.say(&ToAgent::Hello { version: env!("CARGO_PKG_VERSION").to_owned() });
        let FromAgent::Welcome { roles: allowed, .. } = agent.hear() else { panic!("no welcome") };
        assert_eq!(allowed, roles);
    }

    fn write(&mut self, octets: &[u8]) {
        self.input.as_mut().unwrap().write_all(octets).unwrap();
    }

    fn say(&mut self, message: &ToAgent) {
        let frame = self.written.frame(&body_of(message).unwrap()).unwrap();
        self.write(&frame);
    }

    /// What it says next, but beats and samples.
    fn hear(&mut self) -> FromAgent {
        self.hear_any(|message| !matches!(message, FromAgent::Beat | FromAgent::Latest { .. }))
    }

    fn hear_any(&mut self, counts: impl Fn(&FromAgent) -> bool) -> FromAgent {
        let mut octets = [0; 4096];
        loop {
            if let Some(body) = self.frames.next_body().unwrap() {
                let message = message_of(body).unwrap();
                if counts(&message) {
                    return message;
                }
                continue;
            }
            let count = self.output.read(&mut octets).unwrap();
            assert!(count > 0, "it ended");
            self.frames.push(&octets[..count]);
        }
    }

    fn order(&mut self, id: u32, order: Order) -> Result<Answer, String> {
        self.say(&ToAgent::Order { id, order });
        let mut heard = self.hear();
        while let FromAgent::Samples { samples, .. } = heard {
            self.samples.extend(samples);
            heard = self.hear();
        }
        match heard {
            FromAgent::Done { id: done, answer } if done == id => Ok(answer),
            FromAgent::Failed { id: failed, failure } if failed == id => Err(failure.reason),
            other => panic!("{other:?}"),
        }
    }

    /// Has its input end.
    fn leave(mut self) -> Result<(), AgentEnd> {
        self.input = None;
        self.end.join().unwrap()
    }
}

fn own_server() -> (UdpSocket, Sought) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, Sought { identity: Identity::Address, transport: "udp".to_owned(), address })
}

#[test]
fn a_server_is_found_and_watched() {
    let mut agent = Agent::known(&[Role::Watch]);
    let mut server = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let (_socket, at) = own_server();
    // Whoever watches does not watch itself, so the process is named.
    let sought = Sought { identity: Identity::Process(server.id()), ..at };
    let fact = agent.order(1, Order::Find { server: 7, sought });
    // It does not listen there, and the agent may see that.
    let Ok(Answer::NotFound { reason, is_fault: true }) = fact else { panic!("{fact:?}") };
    assert!(reason.contains("does not listen"), "{reason}");
    let (_socket, sought) = own_server();
    let found = agent.order(2, Order::Find { server: 8, sought: sought.clone() });
    let Ok(Answer::Found(found)) = found else { panic!("{found:?}") };
    assert_eq!((found.facts.kind.as_str(), found.plain), ("external", Some(sought.address)));
    agent.say(&ToAgent::Clock { sent_ns: -5 });
    let clock = agent.hear();
    let FromAgent::Clock { sent_ns: -5, received_ns, answered_ns } = clock else {
        panic!("{clock:?}")
    };
    assert!(received_ns <= answered_ns);
    assert_eq!(
        agent.order(
            3,
            Order::Watch {
                server: 8,
                watch: 1,
                load_cpus: Vec::new(),
                has_no_interrupts: false,
                own: Vec::new()
            }
        ),
        Ok(Answer::Watching)
    );
    let latest = agent.hear_any(|message| matches!(message, FromAgent::Latest { .. }));
    let FromAgent::Latest { watch: 1, .. } = latest else { panic!("{latest:?}") };
    let (from_ns, to_ns) = (10_000_000, 50_000_000);
    thread::sleep(Duration::from_millis(300));
    let end = Order::EndWatch { watch: 1, origin_ns: answered_ns + 100_000_000, from_ns, to_ns };
    let Ok(Answer::Resources(series)) = agent.order(4, end) else { panic!("no series") };
    let series = ResourceSeries { samples: std::mem::take(&mut agent.samples), ..*series };
    assert!(series.cpu_ns(Span::between(from_ns, to_ns)).is_some(), "{series:?}");
    assert_eq!(series.fault(), None);
    assert_eq!(agent.order(5, Order::Forget { server: 8 }), Ok(Answer::Forgotten));
    let again = agent.order(
        6,
        Order::Watch {
            server: 8,
            watch: 2,
            load_cpus: Vec::new(),
            has_no_interrupts: false,
            own: Vec::new(),
        },
    );
    assert!(again.unwrap_err().contains("no server 8"));
    let frames = agent.written.written();
    agent.say(&ToAgent::Bye { frames });
    let FromAgent::Bye { .. } = agent.hear() else { panic!("no farewell") };
    agent.leave().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn what_is_not_allowed_is_not_done() {
    let mut agent = Agent::known(&[]);
    let (_socket, sought) = own_server();
    let refused = agent.order(1, Order::Find { server: 1, sought }).unwrap_err();
    assert!(refused.contains("does not allow it to `watch`"), "{refused}");
}

/// A list of one query.
fn one_query() -> SentQueries {
    let name: domain::base::Name<Vec<u8>> = "a.example.".parse().unwrap();
    let query = Query::new(&name, domain::base::iana::Rtype::A, &QueryOptions::default()).unwrap();
    SentQueries::parts_of(&QueryList::from_queries(vec![query], "one".to_owned())).remove(0)
}

/// A share of an open loop at this rate, or of a closed one, of two workers.
fn share_of(target: &str, rate: Option<f64>, share: Share) -> SentShare {
    let ms = Duration::from_millis;
    let mode = match rate {
        Some(rate) => Mode::constant(rate),
        None => Mode::Closed { outstanding: 1 },
    };
    let settings = Load {
        mode,
        clients: 4,
        warm_up: ms(0),
        duration: ms(300),
        timeout: ms(50),
        ..Load::default()
    };
    let none = Arc::new(QueryList::from_queries(Vec::new(), String::new()));
    let job = Job { workers: 2, ..Job::new(settings, target.parse().unwrap(), none) };
    SentShare { job: SentJob::from(&job), list: 1, share }
}

const SECOND: Share = Share { first: 1, count: 1 };

#[test]
fn a_share_of_a_load_begins_when_it_is_told_to() {
    let (silent, _) = own_server();
    let target = silent.local_addr().unwrap().to_string();
    let mut agent = Agent::known(&[Role::Load]);
    assert_eq!(agent.order(1, Order::Queries { list: 1, part: one_query() }), Ok(Answer::Taken));
    let members = vec![share_of(&target, Some(100.0), SECOND)];
    assert_eq!(agent.order(2, Order::Load { load: 5, members }), Ok(Answer::Ready));
    agent.say(&ToAgent::Clock { sent_ns: 0 });
    let FromAgent::Clock { answered_ns, .. } = agent.hear() else { panic!("no clock") };
    let hour = 3_600_000_000_000;
    for at_ns in [answered_ns - hour, answered_ns + hour] {
        let refused = agent.order(3, Order::Begin { load: 5, at_ns }).unwrap_err();
        assert!(refused.contains("within a minute"), "{refused}");
    }
    let begin = Order::Begin { load: 5, at_ns: answered_ns + 100_000_000 };
    assert_eq!(agent.order(4, begin), Ok(Answer::Told));
    let mut intervals = Vec::new();
    let share = loop {
        match agent.hear() {
            FromAgent::Interval { load: 5, member: 0, record } => intervals.push(record.0),
            FromAgent::Ended { load: 5, member: 0, share } => break share.unwrap().0,
            other => panic!("{other:?}"),
        }
    };
    // Every other query of 100 per second is due on the second of two workers.
    let outcomes = share.counted.counters.outcomes;
    assert_eq!((outcomes.due, outcomes.answered), (15, 0));
    // A busy machine may be too late to send one.
    assert_eq!(outcomes.timed_out + outcomes.not_sent, 15, "{outcomes:?}");
    assert_eq!(share.counted.workers.len(), 1);
    let numbers: Vec<u64> = intervals.iter().map(|interval| interval.number).collect();
    assert_eq!(numbers, [0, 1, 2]);
    let due: u64 = intervals.iter().map(|interval| interval.events.due).sum();
    assert_eq!(due, 15);
    assert!(matches!(agent.leave(), Err(AgentEnd::Gone)));
}

#[test]
fn a_load_that_is_left_before_it_begins_ends() {
    let mut agent = Agent::known(&[Role::Load]);
    agent.order(1, Order::Queries { list: 1, part: one_query() }).unwrap();
    let members = vec![share_of("127.0.0.1:9", Some(10.0), SECOND)];
    agent.order(2, Order::Load { load: 5, members }).unwrap();
    agent.say(&ToAgent::Order { id: 3, order: Order::Leave { number: 5 } });
    let ended = agent.hear_any(|message| matches!(message, FromAgent::Ended { .. }));
    let FromAgent::Ended { share: Err(failure), .. } = ended else { panic!("{ended:?}") };
    assert!(failure.reason.contains("given up"), "{failure:?}");
}

/// Whether an agent with these bounds refuses loads, and with which word.
#[track_caller]
fn check_bounded(members: Vec<SentShare>, word: &str) {
    let mut agent = Agent::bounded(&[Role::Load], Some("127.0.0.0/8,[::1]:53"), Some(200.0));
    agent.greet(&[Role::Load]);
    agent.order(1, Order::Queries { list: 1, part: one_query() }).unwrap();
    let refused = agent.order(2, Order::Load { load: 5, members }).unwrap_err();
    assert!(refused.contains(word), "{refused}");
}

#[test]
fn what_a_load_may_ask_is_decided_here() {
    let whole = Share { first: 0, count: 2 };
    check_bounded(
        vec![share_of("192.0.2.1:53", Some(10.0), whole)],
        "does not allow it to ask 192.0.2.1",
    );
    check_bounded(
        vec![share_of("[::1]:54", Some(10.0), whole)],
        "does not allow it to ask [::1]:54",
    );
    check_bounded(vec![share_of("127.0.0.1:53", None, whole)], "loads with a rate only");
    check_bounded(vec![share_of("127.0.0.1:53", Some(201.0), whole)], "200 at most");
    let half = || share_of("127.0.0.1:53", Some(300.0), SECOND);
    check_bounded(vec![half(), half()], "300 queries per second");
    let beyond = Share { first: 1, count: 2 };
    check_bounded(vec![share_of("127.0.0.1:53", Some(10.0), beyond)], "has no such share");
    let endless = Share { first: u32::MAX, count: 2 };
    check_bounded(vec![share_of("127.0.0.1:53", Some(10.0), endless)], "has no such share");
    check_bounded(vec![SentShare { list: 9, ..half() }], "it has no list 9");
}

/// Why a server of these lines, with this zone, is not started.
#[track_caller]
fn check_not_served(lines: &str, zone: &str, word: &str) {
    check_order_not_served(lines, zone, word, |_| {});
}

/// Why a server of these lines, with this zone, is not started by an order that is changed so.
#[track_caller]
fn check_order_not_served(
    lines: &str,
    zone: &str,
    word: &str,
    change: impl FnOnce(&mut ServerOrder),
) {
    let mut agent = Agent::known(&[Role::Serve]);
    let octets = base64::engine::general_purpose::STANDARD.encode(zone);
    assert_eq!(agent.order(1, Order::File { file: 3, octets }), Ok(Answer::Taken));
    let zone = SentZone { file: SentFile::Sent(3), signatures: None };
    let mut order = ServerOrder {
        variant: format!("name = \"x\"\n{lines}\n[[variant]]\nname = \"a\"\n"),
        role: ChainRole::Server,
        folder: None,
        address: [127, 0, 0, 1].into(),
        ports: PortChoice::Free,
        cpus: Vec::new(),
        connections: 10,
        seed: 1,
        question: one_query(),
        has_record: true,
        denied: None,
        source: SentSource { zone: Some(zone), ..SentSource::default() },
        client: Box::new(share_of("127.0.0.1:53", None, SECOND).job),
        start_limit_ns: 2_000_000_000,
    };
    change(&mut order);
    let order = Order::Serve { server: 9, order: Box::new(order) };
    let refused = agent.order(2, order).unwrap_err();
    assert!(refused.contains(word), "{refused}");
    let watch = agent.order(3, Order::Log { server: 9, lines: 1 }).unwrap_err();
    assert!(watch.contains("no server 9"), "{watch}");
}

#[test]
fn what_may_be_started_is_decided_here() {
    let zone = "@ 1 SOA a. b. 1 1 1 1 1\n@ 1 NS a.\n";
    let refused = |lines: &str, word: &str| check_not_served(lines, zone, word);
    refused("server.kind = \"nsd\"\nserver.extra = \"x\"", "does not allow `server.extra`");
    refused("server.kind = \"nsd\"\nserver.binary = \"/bin/true\"", "`server.binary`");
    refused(
        "server.kind = \"bind\"\nserver.log.to = \"file\"\nserver.log.folder = \"/etc\"",
        "`server.log.folder`",
    );
    refused("server.kind = \"unbound\"\nupstream.kind = \"embedded\"", "serves no zone");
    refused(
        "server.kind = \"unbound\"\nupstream.kind = \"live\"\nload.queries = \"x\"",
        "a server that resolves",
    );
    refused("server.kind = \"nsd\"\nserver.cpus = [4000]", "may not use CPU 4000");
    refused("server.kind = \"nonsense\"", "settings that are none");
    let bind = "server.kind = \"bind\"";
    let changed = |word: &str, change: fn(&mut ServerOrder)| {
        check_order_not_served(bind, zone, word, change);
    };
    changed("no server can listen there", |order| order.address = [192, 0, 2, 77].into());
    changed("no file 4", |order| order.source.zone.as_mut().unwrap().file = SentFile::Sent(4));
    changed("nothing to answer from", |order| order.source.zone = None);
    changed("no such server", |order| order.role = ChainRole::Relay);
    changed("files of its own", |order| order.folder = Some("/etc".into()));
    changed("files of its own", |order| order.source.names = Some(SentFile::There("/x".into())));
    changed("a server that resolves", |order| {
        order.source.root_hints = Some(SentRootHints::BuiltIn);
    });
    changed("a server that resolves", |order| order.source.hierarchy = Some(String::new()));
    changed("such a trust anchor", |order| order.source.trust_anchors = vec!["\"; }".to_owned()]);
    changed("a server that asks 192.0.2.1:53", |order| {
        let addresses = vec!["192.0.2.1:53".parse().unwrap()];
        let transport = "udp".to_owned();
        order.source.upstream = Some(SentUpstream { addresses, transport, tls: None });
    });
    changed("`server.policy_zone`", |order| {
        let (name, file) = ("rpz.".to_owned(), SentFile::Sent(3));
        order.source.policy = Some(SentPolicy { name, file });
    });
    // BIND reads each of these as a directive.
    for text in ["$include /x", "a A 192.0.2.1\r$INCLUDE /x", "($INCLUDE /x)", "\"$include\" /x"] {
        check_not_served(bind, &format!("{text}\n"), "does not allow `$INCLUDE`");
    }
    check_not_served(bind, " $GENERATE 0-9 a$ A 192.0.2.1\n", "does not allow `$GENERATE`");
}

#[test]
fn nothing_is_done_before_the_version_is_known() {
    let mut agent = Agent::start(&Role::ALL);
    agent.say(&ToAgent::Order { id: 1, order: Order::Forget { server: 1 } });
    let FromAgent::Refused { reason } = agent.hear() else { panic!("not refused") };
    assert!(reason.contains("the first message"), "{reason}");
    let mut agent = Agent::start(&Role::ALL);
    agent.say(&ToAgent::Hello { version: "0.0.7".to_owned() });
    let FromAgent::Refused { reason } = agent.hear() else { panic!("not refused") };
    assert!(reason.contains("the coordinator 0.0.7: install the same on both"), "{reason}");
    assert!(matches!(agent.leave(), Err(AgentEnd::Refused(_))));
}

#[test]
fn an_end_of_input_is_no_farewell() {
    assert!(matches!(Agent::known(&Role::ALL).leave(), Err(AgentEnd::Gone)));
    // Nor is a farewell that counts other frames.
    let mut agent = Agent::known(&Role::ALL);
    agent.say(&ToAgent::Bye { frames: 7 });
    let FromAgent::Refused { reason } = agent.hear() else { panic!("not refused") };
    assert!(reason.contains("counts 7 frames, not 1"), "{reason}");
}

/// The octets after a greeting, and what the agent says of them.
#[track_caller]
fn check_refused(octets: &[u8], why: &str) {
    let mut agent = Agent::known(&Role::ALL);
    agent.write(octets);
    let FromAgent::Refused { reason } = agent.hear() else { panic!("not refused") };
    assert!(reason.contains(why), "{reason}");
    assert!(matches!(agent.leave(), Err(AgentEnd::Refused(_))));
}

#[test]
fn frames_that_cannot_be_right_end_it() {
    let (mut frames, beat) = (FrameWriter::default(), body_of(&ToAgent::Beat).unwrap());
    let first = frames.frame(&beat).unwrap();
    check_refused(&first, "frame 0 came in place of frame 1");
    let second = frames.frame(&beat).unwrap();
    let mut changed = second.clone();
    *changed.last_mut().unwrap() ^= 1;
    check_refused(&changed, "its checksum is wrong");
    check_refused(&[second.clone(), second].concat(), "frame 1 came in place of frame 2");
    let mut frames = FrameWriter::default();
    frames.frame(&beat).unwrap();
    check_refused(&frames.frame(b"{\"reboot\":{}}").unwrap(), "this is no message");
    let long = u32::try_from(MAX_BODY + 1).unwrap().to_be_bytes();
    check_refused(&[&long[..], &[0; 12]].concat(), "longer than");
}

#[test]
fn a_coordinator_that_floods_is_bounded() {
    let mut agent = Agent::known(&Role::ALL);
    let (_socket, sought) = own_server();
    let mut refused = 0;
    for number in 0..300 {
        let order = Order::Find { server: number, sought: sought.clone() };
        refused += u32::from(agent.order(number, order).is_err());
    }
    assert_eq!(refused, 300 - 64);
    for number in 0..300 {
        let order = Order::Watch {
            server: 0,
            watch: number,
            load_cpus: Vec::new(),
            has_no_interrupts: false,
            own: Vec::new(),
        };
        refused += u32::from(agent.order(1_000 + number, order).is_err());
    }
    assert_eq!(refused, 2 * (300 - 64));
    // What is left makes room.
    assert_eq!(agent.order(5_000, Order::Leave { number: 0 }), Ok(Answer::Forgotten));
    let order = Order::Watch {
        server: 0,
        watch: 999,
        load_cpus: Vec::new(),
        has_no_interrupts: false,
        own: Vec::new(),
    };
    assert_eq!(agent.order(5_001, order), Ok(Answer::Watching));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever comes, it ends, and says why or that nobody is there.
    #[test]
    fn any_octets_end_it(octets: Vec<u8>) {
        let mut agent = Agent::known(&Role::ALL);
        agent.write(&octets);
        prop_assert!(matches!(agent.leave(), Err(AgentEnd::Gone | AgentEnd::Refused(_))));
    }
}
