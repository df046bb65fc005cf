//! Servers that do as they should.

use std::num::NonZeroUsize;
use std::time::Duration;

use dnslab_settings::{Load, Mode, QuotaKind};
use dnslab_wire::{Method, Transport};

use crate::encrypted::{go, go_well, job};
use crate::responder::Responder;

/// The transports over QUIC, with each HTTP method where there is one.
const WAYS: [(Transport, Method); 3] = [
    (Transport::Doq, Method::Post),
    (Transport::Doh3, Method::Get),
    (Transport::Doh3, Method::Post),
];

#[test]
fn queries_are_answered_on_both_families() {
    for (transport, method) in WAYS {
        let server = Responder::start(|config| config.threads = NonZeroUsize::new(2).unwrap());
        let mut answered = 0;
        for target in server.addresses(transport) {
            let job = job(*target, transport, server.identity.settings());
            let result = go_well(&job.with(|load| load.http_method = method));
            answered += result.measured.counters.outcomes.answered;
            let connections = &result.measured.counters.connections;
            assert_eq!((connections.opened, connections.full_handshakes), (3, 3));
            assert_eq!(result.measured.connect_time.len(), 0, "QUIC has no connect of its own");
            assert_eq!(result.measured.handshake_time.len(), 3);
            let tls = result.measured.tls.as_ref().unwrap();
            assert_eq!((tls.version.as_str(), tls.verified), ("TLSv1.3", true));
            assert_eq!(tls.cipher_suite, "TLS13_AES_256_GCM_SHA384");
            assert_eq!(tls.group, "x25519");
            assert_eq!(tls.certificate.as_ref().unwrap().key, "ECDSA P-256");
        }
        let counters = server.stop();
        assert_eq!(counters.messages(transport).answered, answered);
        assert_eq!(counters.messages(transport).received, answered);
        assert_eq!(counters.connections.accepted, 6);
        assert_eq!(counters.connections.full_handshakes, 6);
    }
}

/// With an open loop, and more outstanding queries than the server allows streams.
#[test]
fn wide_windows_and_schedules() {
    let server = Responder::start(|_| {});
    for transport in [Transport::Doq, Transport::Doh3] {
        let job = job(server.addresses(transport)[0], transport, server.identity.settings());
        go_well(&job.clone().with(|load| load.mode = Mode::Closed { outstanding: 2000 }));
        go_well(&job.with(|load| load.mode = Mode::constant(3000.0)));
    }
}

/// The engine sees the responder's program: delays in the latency, and losses as time-outs, whose streams are
/// given up.
#[test]
fn programs_are_played() {
    for transport in [Transport::Doq, Transport::Doh3] {
        let server = Responder::start(|config| {
            config.program.delay = "5ms".parse().unwrap();
            config.program.loss = "20%".parse().unwrap();
        });
        let job = job(server.addresses(transport)[0], transport, server.identity.settings());
        let result = go(&job.with(|load| {
            load.mode = Mode::Closed { outstanding: 100 };
            load.timeout = Duration::from_millis(60);
            load.duration = Duration::from_secs(1);
        }));
        let outcomes = &result.measured.counters.outcomes;
        // More than the 1,024 streams of a connection were lost over three of them.
        assert!(outcomes.answered > 4_000, "{outcomes:?}");
        assert!(outcomes.timed_out > 500, "{outcomes:?}");
        assert_eq!(outcomes.answered + outcomes.timed_out, outcomes.due, "{outcomes:?}");
        // A histogram's figures are exact to three digits.
        assert!(result.measured.service_time.min_ns().unwrap() >= 4_990_000);
        let counters = server.stop();
        let messages = counters.messages(transport);
        // On a busy machine answers may come too late, too.
        assert!(messages.lost_by_program <= outcomes.timed_out, "{messages:?} {outcomes:?}");
        assert!(messages.answered >= outcomes.answered, "{messages:?} {outcomes:?}");
        let rest = messages.lost_by_program + messages.unsent;
        assert_eq!(messages.received, messages.answered + rest, "{messages:?}");
    }
}

/// Tickets are used, each client's own, and early data where the server takes it.
#[test]
fn connections_are_resumed() {
    for (transport, method) in WAYS {
        for early_data in [false, true] {
            let server = Responder::start(|config| config.early_data = early_data);
            // What is sent by POST must not be sent early.
            let may_be_early = transport == Transport::Doq || method == Method::Get;
            let tls = server
                .identity
                .settings()
                .of_load(&Load { early_data: may_be_early, ..Load::default() });
            let early_data = early_data && may_be_early;
            let job = job(server.addresses(transport)[0], transport, tls);
            let result = go_well(&job.with(|load| {
                load.queries_per_connection = Some(50);
                load.connection_quota = QuotaKind::Exact;
                load.http_method = method;
            }));
            let connections = &result.measured.counters.connections;
            assert_eq!(connections.full_handshakes, 3, "{connections:?}");
            assert!(connections.resumed_handshakes > 3, "{connections:?}");
            assert_eq!(connections.early_data > 0, early_data, "{connections:?}");
            assert!(connections.closed > 3, "{connections:?}");
            assert_eq!(connections.lost, 0, "{connections:?}");
            let counted = server.stop().connections;
            assert_eq!(counted.full_handshakes, 3);
            // Stopped, it does not read what each client sent last.
            let seen = counted.resumed_handshakes + 3;
            assert!(seen >= connections.resumed_handshakes, "{counted:?} {connections:?}");
        }
    }
}
