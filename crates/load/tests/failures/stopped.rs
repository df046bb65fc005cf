//! A generator that is itself away from its CPU. What came in the meantime is no fault of the server.

use std::process::{Command, id};
use std::time::Duration;

use dnslab_load::{Job, LoadResult};
use dnslab_settings::ReceiveTime;
use dnslab_wire::Transport;

use crate::applied::{apply, both, exact_quota, job, last_end};
use crate::process::{Serving, alone, role, until_input_ends};
use crate::responder::Responder;

/// Applies a load with a time-out of two seconds; in its middle the process is stopped for four.
fn apply_stopped(job: Job) -> LoadResult {
    let own = id();
    let script = format!("sleep 0.6; kill -STOP {own}; sleep 4; kill -CONT {own}");
    let mut stopping = Command::new("sh").args(["-c", &script]).spawn().unwrap();
    let result = apply(&job.with(|load| {
        load.duration = Duration::from_millis(5_500);
        load.timeout = Duration::from_secs(2);
    }));
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
        let over_udp = job(target, Transport::Udp);
        let result = apply_stopped(over_udp.with(|load| load.receive_time = ReceiveTime::Kernel));
        let outcomes = both(&result).outcomes;
        assert!(outcomes.answered > 0);
        assert_eq!(outcomes.timed_out, 0, "{outcomes:?}");
        // A connection for each query: those that opened in the meantime did not fail.
        let result = apply_stopped(job(target, Transport::Tcp).with(|load| {
            exact_quota(load, 1);
            load.sources = Some("127.0.1.0/24".parse().unwrap());
        }));
        let connections = both(&result).connections;
        assert!(connections.opened > 0);
        assert_eq!(connections.failed, 0, "{connections:?} {}", last_end(&result));
    });
}
