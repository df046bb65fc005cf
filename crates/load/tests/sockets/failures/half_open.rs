//! Peers that vanish without a word: the link between two network namespaces carries nothing any more while
//! connections are open.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use dnslab_load::{Job, LoadResult, TlsSettings, Verification};
use dnslab_wire::Transport;

use crate::failures::applied::{apply, both, job, last_end, open};
use crate::failures::process::{IN_NAMESPACE, Serving, alone, role, until_input_ends};
use crate::failures::responder::served;
use crate::responder::Responder;

const ALL: [Transport; 6] = Transport::ALL;

/// The link-layer address of the far end, and a foreign one. With the foreign one it takes no frame, and
/// nobody is told. (A link that is down would say so: sending fails, and TCP waits with what it could not
/// send instead of sending it again.)
const OWN: &str = "02:00:00:00:00:02";
const FOREIGN: &str = "02:00:00:00:00:99";

/// A responder in a network namespace of its own, and a link to it from this process's namespace.
struct Far {
    serving: Serving,
}

impl Far {
    /// Starts this program's test `test` as the server, and makes the link.
    fn start(test: &str) -> Self {
        let serving = Serving::start(&["unshare", "--net"], test);
        let far = Self { serving };
        let pid = &far.serving.words[0];
        near(&format!("link add near type veth peer name far address {OWN} netns {pid}"));
        near("addr add 10.9.0.1/24 dev near");
        near("link set near up");
        near(&format!("neigh add 10.9.0.2 dev near lladdr {OWN} nud permanent"));
        far.inside("addr add 10.9.0.2/24 dev far");
        far.inside("link set far up");
        // A link takes up to a second until it carries packets (`net/core/link_watch.c`).
        let address = far.address(Transport::Tcp);
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200));
        assert!((0..100).any(|_| connect().is_ok()), "{address} cannot be reached");
        far
    }

    /// `ip` in the server's namespace.
    fn inside(&self, arguments: &str) {
        let pid = &self.serving.words[0];
        run("nsenter", &format!("--target {pid} --net ip {arguments}"));
    }

    fn address(&self, transport: Transport) -> SocketAddr {
        let number = ALL.iter().position(|its| *its == transport).unwrap();
        SocketAddr::new([10, 9, 0, 2].into(), self.serving.words[1 + number].parse().unwrap())
    }
}

/// `ip` in this process's namespace.
fn near(arguments: &str) {
    run("ip", arguments);
}

#[track_caller]
fn run(program: &str, arguments: &str) {
    let status = Command::new(program).args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "{program} {arguments}: {status}");
}

fn serve() {
    let server = Responder::start(|config| {
        config.content = served().into();
        let all: SocketAddr = "0.0.0.0:0".parse().unwrap();
        config.listen = vec![all];
        config.dot_listen = vec![all];
        config.doh2_listen = vec![all];
        config.doq_listen = vec![all];
        config.doh3_listen = vec![all];
    });
    let ports = ALL.map(|transport| server.addresses(transport)[0].port().to_string()).join(" ");
    println!("serving: {} {ports}", std::process::id());
    until_input_ends();
}

/// Applies a load over every transport at the same time, while `link` runs.
fn apply_all(far: &Far, link: impl FnOnce()) -> Vec<(Transport, LoadResult)> {
    thread::scope(|scope| {
        let loads = ALL.map(|transport| {
            let tls = Some(TlsSettings::new("localhost", &Verification::Off).unwrap());
            let job = Job { tls, ..job(far.address(transport), transport) }.with(|load| {
                open(load, 400.0);
                load.duration = Duration::from_secs(6);
                load.timeout = Duration::from_millis(400);
            });
            scope.spawn(move || (transport, apply(&job)))
        });
        link();
        loads.map(|load| load.join().unwrap()).into()
    })
}

/// Answers in the first and in the last half second.
fn answered_at_the_ends(result: &LoadResult) -> (u64, u64) {
    let intervals = &result.measured.intervals;
    let sum =
        |part: &[dnslab_figures::Interval]| part.iter().map(|interval| interval.answered).sum();
    (sum(&intervals[..5]), sum(&intervals[intervals.len() - 5..]))
}

#[test]
fn a_peer_that_vanishes_and_comes_back() {
    const NAME: &str = "failures::half_open::a_peer_that_vanishes_and_comes_back";
    if role().as_deref() == Some("serve") {
        return serve();
    }
    alone(&IN_NAMESPACE, NAME, || {
        let far = Far::start(NAME);
        let results = apply_all(&far, || {
            thread::sleep(Duration::from_millis(1_000));
            far.inside(&format!("link set far address {FOREIGN}"));
            thread::sleep(Duration::from_millis(500));
            far.inside(&format!("link set far address {OWN}"));
        });
        for (transport, result) in results {
            let counters = both(&result);
            let (first, last) = answered_at_the_ends(&result);
            let context = format!("{transport}: {counters:?} {}", last_end(&result));
            assert!(first > 0 && last > 0, "{first} and {last} answered, {context}");
            assert!(counters.outcomes.timed_out > 20, "{context}");
            assert_eq!(counters.connections.lost, 0, "{context}");
            let network = result.measured.network.unwrap();
            assert!(network.tcp_retransmitted > 0, "{context} {network:?}");
        }
    });
}

#[test]
fn a_peer_that_vanishes_for_good() {
    const NAME: &str = "failures::half_open::a_peer_that_vanishes_for_good";
    if role().as_deref() == Some("serve") {
        return serve();
    }
    alone(&IN_NAMESPACE, NAME, || {
        let far = Far::start(NAME);
        let results = apply_all(&far, || {
            thread::sleep(Duration::from_millis(1_000));
            // Our own end: there is no route any more, and sending fails at once.
            near("link set near down");
        });
        for (transport, result) in results {
            let counters = both(&result);
            let (first, last) = answered_at_the_ends(&result);
            let context = format!("{transport}: {counters:?} {}", last_end(&result));
            assert!(first > 0 && last == 0, "{first} and {last} answered, {context}");
            let lost = counters.outcomes.timed_out + counters.outcomes.not_sent;
            assert!(lost + counters.outcomes.connection_lost > 400, "{context}");
        }
    });
}
