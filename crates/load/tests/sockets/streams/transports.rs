//! DNS over HTTPS and DNS over TLS against servers that do as they should.

use std::num::NonZeroUsize;
use std::time::Duration;

use dnslab_settings::{Load, Mode, Records};
use dnslab_wire::{Method, Transport};

use crate::encrypted::{go, go_well, job, with_method, with_quota};
use crate::responder::Responder;
use crate::streams::servers::Bind;

#[test]
fn requests_to_our_responder() {
    for method in [Method::Get, Method::Post] {
        let server = Responder::start(|config| config.threads = NonZeroUsize::new(2).unwrap());
        let tls = server.identity.settings();
        let result = go_well(&with_method(job(server.doh2, Transport::Doh2, tls), method));
        let answered = result.measured.counters.outcomes.answered;
        assert_eq!(result.measured.counters.connections.opened, 3);
        assert_eq!(server.stop().doh2.answered, answered);
    }
}

#[test]
fn requests_to_bind() {
    for (method, streams, outstanding) in [
        (Method::Get, 100, 20),
        (Method::Post, 100, 250),
        (Method::Post, 1, 20),
        (Method::Get, 2, 5),
    ] {
        let server = Bind::start("", streams);
        let tls = server.identity.settings();
        let job = with_method(job(server.doh2, Transport::Doh2, tls), method);
        let result = go_well(&job.with(|load| load.mode = Mode::Closed { outstanding }));
        assert!(result.measured.counters.outcomes.answered > 100, "{method:?} {streams}");
        assert_eq!(result.measured.counters.connections.opened, 3);
    }
}

#[test]
fn messages_in_records_of_their_own_and_together() {
    let server = Responder::start(|_| {});
    for records in [Records::Shared, Records::PerQuery] {
        let tls =
            server.identity.settings().of_load(&Load { tls_records: records, ..Load::default() });
        go_well(&job(server.dot, Transport::Dot, tls));
    }
}

/// A stream whose answer never comes is given up at the time-out, so that others can be opened. The responder
/// loses more answers here than it allows streams.
#[test]
fn lost_answers_do_not_use_up_the_streams() {
    let server = Responder::start(|config| config.program.loss = "50%".parse().unwrap());
    let tls = server.identity.settings();
    let result = go(&job(server.doh2, Transport::Doh2, tls).with(|load| {
        load.clients = 1;
        load.workers = Some(1);
        load.mode = Mode::Closed { outstanding: 200 };
        // A machine that others use answers 200 queries within that, too.
        load.timeout = Duration::from_millis(100);
        load.duration = Duration::from_secs(2);
    }));
    let counters = &result.measured.counters;
    assert!(counters.outcomes.timed_out > 1500, "{:?}", counters.outcomes);
    assert!(counters.outcomes.answered > 500, "{:?}", counters.outcomes);
    assert_eq!((counters.outcomes.refused, counters.connections.lost), (0, 0));
}

/// The client closes them, with a good-bye on each level.
#[test]
fn connections_of_a_few_queries() {
    let server = Responder::start(|_| {});
    for (transport, target) in [(Transport::Dot, server.dot), (Transport::Doh2, server.doh2)] {
        let tls = server.identity.settings();
        let result = go_well(&with_quota(job(target, transport, tls), 10));
        let counters = &result.measured.counters;
        assert!(counters.connections.closed > 3, "{:?}", counters.connections);
        assert_eq!(counters.connections.lost, 0);
    }
    // The end of the load may find each client in the middle of a handshake.
    assert!(server.stop().connections.failed_handshakes <= 6);
}
