//! Versions of TLS, tickets, early data.

use std::time::Duration;

use dnslab_load::LoadResult;
use dnslab_settings::{Load, TlsVersions};
use dnslab_wire::{Method, TlsGroup, Transport};

use crate::encrypted::{Identity, go, go_well, job, with_method, with_quota};
use crate::responder::Responder;
use crate::streams::servers::Bind;

/// The TLS version agreed on, as the record has it.
fn version(result: &LoadResult) -> &str {
    &result.measured.tls.as_ref().expect("a handshake ended").version
}

#[test]
fn versions_are_those_offered_and_those_spoken() {
    let old = Bind::start("protocols { TLSv1.2; };", 100);
    let new = Bind::start("protocols { TLSv1.3; };", 100);
    let both = Bind::start("", 100);
    use TlsVersions::{Both, V12, V13};
    for (server, versions, expected) in [
        (&old, Both, Some("TLSv1.2")),
        (&old, V12, Some("TLSv1.2")),
        (&old, V13, None),
        (&new, Both, Some("TLSv1.3")),
        (&new, V12, None),
        (&both, V12, Some("TLSv1.2")),
        (&both, V13, Some("TLSv1.3")),
    ] {
        let tls =
            server.identity.settings().of_load(&Load { tls_versions: versions, ..Load::default() });
        let job = job(server.dot, Transport::Dot, tls);
        match expected {
            Some(expected) => assert_eq!(version(&go_well(&job)), expected),
            None => {
                let result = go(&job);
                assert_eq!(result.measured.counters.outcomes.answered, 0);
                assert!(result.measured.counters.connections.failed > 0);
                // BIND closes without a word, or with an alert.
                let end = result.last_connection_end.unwrap();
                assert!(end.starts_with("TLS: ") || end.contains("closed"), "{end}");
            }
        }
    }
}

#[test]
fn groups_are_those_offered_and_those_spoken() {
    let own = Responder::start(|_| {});
    // OpenSSL before 3.5 has no ML-KEM, and takes the part of the group that it knows.
    let bind = Bind::start("", 100);
    use TlsGroup::{Secp256r1, Secp384r1, X25519, X25519MlKem768};
    for group in TlsGroup::ALL {
        let tls =
            own.identity.settings().of_load(&Load { tls_groups: vec![group], ..Load::default() });
        let result = go_well(&job(own.dot, Transport::Dot, tls));
        assert_eq!(result.measured.tls.as_ref().unwrap().group, group.name());
        assert_eq!(result.facts.tls.as_ref().unwrap().groups, [group.name()]);
    }
    for (groups, expected) in [
        (&[X25519][..], X25519),
        (&[Secp384r1, Secp256r1], Secp384r1),
        // As the server prefers it, since it has a key share of both.
        (&[X25519MlKem768, X25519], X25519),
    ] {
        let tls = bind
            .identity
            .settings()
            .of_load(&Load { tls_groups: groups.to_vec(), ..Load::default() });
        let agreed = go_well(&job(bind.dot, Transport::Dot, tls)).measured.tls.unwrap();
        let is_expected = agreed.group == expected.name();
        let is_newer = groups.contains(&X25519MlKem768) && agreed.group == X25519MlKem768.name();
        assert!(is_expected || is_newer, "{groups:?}: {agreed:?}");
    }
}

#[test]
fn the_certificate_of_the_handshake_is_recorded() {
    let own = Responder::start(|_| {});
    for transport in [Transport::Dot, Transport::Doh2] {
        let target = if transport == Transport::Dot { own.dot } else { own.doh2 };
        let result = go_well(&job(target, transport, own.identity.settings()));
        let certificate = result.measured.tls.unwrap().certificate.unwrap();
        assert_eq!((certificate.key.as_str(), certificate.key_bits), ("ECDSA P-256", 256));
        assert_eq!(certificate.signature, "ECDSA with SHA-256");
        assert!(certificate.sent >= 1 && certificate.octets > 200, "{certificate:?}");
    }
}

/// Each of the three clients has one full handshake and then its own tickets.
fn check_resumed(result: &LoadResult, is_resumed: bool) {
    let connections = &result.measured.counters.connections;
    let (full, resumed) = (connections.full_handshakes, connections.resumed_handshakes);
    assert!(connections.opened > 6, "{connections:?}");
    if is_resumed {
        assert_eq!((full, resumed), (3, connections.opened - 3));
    } else {
        assert_eq!((full, resumed), (connections.opened, 0));
    }
}

#[test]
fn the_second_connection_is_resumed() {
    let bind = Bind::start("", 100);
    let own = Responder::start(|_| {});
    let none = Responder::start(|config| config.tickets = false);
    for versions in [TlsVersions::V12, TlsVersions::V13] {
        let load = Load { tls_versions: versions, ..Load::default() };
        let with = |server: &Identity| server.settings().of_load(&load);
        let load_without = Load { resumption: false, ..load.clone() };
        let without_tickets = own.identity.settings().of_load(&load_without);
        for (target, transport, tls, is_resumed) in [
            (bind.dot, Transport::Dot, with(&bind.identity), true),
            (bind.doh2, Transport::Doh2, with(&bind.identity), true),
            (own.dot, Transport::Dot, with(&own.identity), true),
            (own.doh2, Transport::Doh2, with(&own.identity), true),
            (none.dot, Transport::Dot, with(&none.identity), false),
            (own.dot, Transport::Dot, without_tickets, false),
        ] {
            let job = with_quota(job(target, transport, tls), 40);
            // Time for a second connection of each client on a busy machine too.
            let job = job.with(|load| load.duration = Duration::from_millis(1_200));
            check_resumed(&go_well(&job), is_resumed);
        }
    }
}

#[test]
fn early_data_is_accepted_or_sent_again() {
    for (transport, accepted) in [
        (Transport::Dot, true),
        (Transport::Dot, false),
        (Transport::Doh2, true),
        (Transport::Doh2, false),
    ] {
        let server = Responder::start(|config| config.early_data = accepted);
        let tls = server.identity.settings().of_load(&Load { early_data: true, ..Load::default() });
        let target = if transport == Transport::Dot { server.dot } else { server.doh2 };
        // By GET: what is sent by POST must not be sent early.
        let job = with_method(job(target, transport, tls), Method::Get);
        let result = go_well(&with_quota(job, 40));
        check_resumed(&result, true);
        let connections = &result.measured.counters.connections;
        if accepted {
            assert!(connections.early_data > 3, "{connections:?}");
            assert_eq!(connections.early_data, result.measured.early_data_time.len());
        } else {
            assert_eq!(connections.early_data, 0);
        }
        let counters = server.stop();
        assert!(counters.connections.early_data >= connections.early_data);
        assert_eq!(counters.messages(transport).answered, result.measured.counters.sent);
    }
}
