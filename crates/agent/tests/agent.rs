//! An agent does what it is allowed and what it understands, and ends when its coordinator does.

use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::net::UdpSocket;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dnslab_agent::{AgentEnd, Permission, serve};
use dnslab_lab::GuardProgram;
use dnslab_protocol::{
    Answer, FrameReader, FrameWriter, FromAgent, GREETING, MAX_BODY, Order, Role, Sought, ToAgent,
    body_of, message_of,
};
use dnslab_record::{ResourceSample, ResourceSeries, Span};
use dnslab_settings::Identity;
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
        let (for_agent, input) = std::io::pipe().unwrap();
        let (mut output, of_agent) = std::io::pipe().unwrap();
        let guard = GuardProgram::this_program(["guard"]);
        let (roles, targets, max_rate_qps) = (roles.to_vec(), None, None);
        let permission = Permission { roles, targets, max_rate_qps, guard };
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
        agent.say(&ToAgent::Hello { version: env!("CARGO_PKG_VERSION").to_owned() });
        let FromAgent::Welcome { roles: allowed, .. } = agent.hear() else { panic!("no welcome") };
        assert_eq!(allowed, roles);
        agent
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
        agent.order(3, Order::Watch { server: 8, watch: 1, beside: Vec::new() }),
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
    let again = agent.order(6, Order::Watch { server: 8, watch: 2, beside: Vec::new() });
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
        let order = Order::Watch { server: 0, watch: number, beside: Vec::new() };
        refused += u32::from(agent.order(1_000 + number, order).is_err());
    }
    assert_eq!(refused, 2 * (300 - 64));
    // What is left makes room.
    assert_eq!(agent.order(5_000, Order::Leave { number: 0 }), Ok(Answer::Forgotten));
    let order = Order::Watch { server: 0, watch: 999, beside: Vec::new() };
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
