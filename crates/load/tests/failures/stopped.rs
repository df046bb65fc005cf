//! A generator that is itself away from its CPU: what came meanwhile is no fault of the server.

use std::process::{Command, id};
use std::time::Duration;

use dnslab_load::{LoadResult, LoadSpec, ReceiveTime};
use dnslab_traffic::{ClientBehaviour, Quota};
use dnslab_wire::Transport;

use crate::applied::{apply, both, last_end, spec};
use crate::process::{Serving, alone, role, until_input_ends};
use crate::responder::Responder;

/// Applies a load with a time-out of two seconds, in the middle of which the process is stopped for
/// four.
fn apply_stopped(spec: &LoadSpec) -> LoadResult {
    let own = id();
    let script = format!("sleep 0.6; kill -STOP {own}; sleep 4; kill -CONT {own}");
    let mut stopping = Command::new("sh").args(["-c", &script]).spawn().unwrap();
    let spec = LoadSpec {
        duration: Duration::from_millis(5_500),
        timeout: Duration::from_secs(2),
        ..spec.clone()
    };
    let result = apply(&spec);
    stopping.wait().unwrap();
    result
}

#[test]
fn what_came_while_the_generator_was_stopped_counts() {
    const NAME: &str = "stopped::what_came_while_the_generator_was_stopped_counts";
    if role().as_deref() == Some("serve") {
        let server = Responder::start(|_| {});
        println!("serving: {}", server.address(Transport::Udp));
        return until_input_ends();
    }
    alone(&[], NAME, || {
        let server = Serving::start(&[], NAME);
        let target = server.words[0].parse().unwrap();
        // By the kernel's clock every answer came in time.
        let receive_time = ReceiveTime::Kernel;
        let result = apply_stopped(&LoadSpec { receive_time, ..spec(target, Transport::Udp) });
        let outcomes = both(&result).outcomes;
        assert!(outcomes.answered > 0);
        assert_eq!(outcomes.timed_out, 0, "{outcomes:?}");
        // A connection for each query: those that came about meanwhile did not fail.
        let behaviour = ClientBehaviour {
            queries_per_connection: Some(Quota::Exact(1)),
            ..ClientBehaviour::default()
        };
        let sources = Some("127.0.1.0/24".parse().unwrap());
        let spec = LoadSpec { behaviour, sources, ..spec(target, Transport::Tcp) };
        let result = apply_stopped(&spec);
        let connections = both(&result).connections;
        assert!(connections.opened > 0);
        assert_eq!(connections.failed, 0, "{connections:?} {}", last_end(&result));
    });
}
