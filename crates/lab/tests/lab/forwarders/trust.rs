//! Which certificates and signatures of their upstream forwarders trust.

use std::fs;
use std::process::Command;
use std::time::Instant;

use dnslab_lab::{
    CertificateKind, ServerKind, Upstream, UpstreamTls, ZoneFile, certificate, find, ports,
};
use dnslab_record::counter;
use dnslab_wire::Transport::{Dot, Tcp, Udp};

use super::{Authority, CASES, forwarder, probed, stop};
use crate::program::guard;
use crate::support::{ask, spec as authoritative, started};

/// A forwarder that trusts somebody else gives no answer, so the others did verify.
#[test]
fn a_certificate_of_another_authority_is_refused() {
    let authority = Authority::start();
    let stranger = tempfile::tempdir().unwrap();
    let files = certificate::create(
        stranger.path(),
        "127.0.0.1".parse().unwrap(),
        CertificateKind::default(),
    )
    .unwrap();
    for case in CASES.iter().filter(|case| case.upstreams.contains(&Dot)) {
        for (file, name) in [
            (&files.authority, certificate::NAME),
            (&authority.upstream(Dot).tls.unwrap().authority, "other.test"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let tls = UpstreamTls { authority: file.clone(), name: name.to_owned() };
            let upstream = Upstream { tls: Some(tls), ..authority.upstream(Dot) };
            let spec = forwarder(case.kind, folder.path(), ("127.0.0.1", &[Udp]), upstream);
            let server = probed(&spec, &|_, _| Ok(()));
            // More than once: the first query may come before it is ready.
            for _ in 0..3 {
                let answer = ask(folder.path(), Udp, server.address(Udp).unwrap());
                assert!(answer.is_err(), "{} believes a stranger, or {name}", case.kind);
            }
            stop(server);
        }
    }
}

/// PowerDNS Recursor speaks TLS to the standard port only, and verifies nobody.
#[test]
fn tls_without_a_name_at_its_own_port() {
    let folder = tempfile::tempdir().unwrap();
    let far = tempfile::tempdir().unwrap();
    // An address of loopback that no other test uses.
    let mut upstream = authoritative(ServerKind::Nsd, far.path(), "127.0.85.3", &[Udp, Dot]);
    upstream.ports.dot = 853;
    if ports::check(Dot, upstream.socket_address(Dot)).is_err() {
        // An ordinary user may not bind it; then only the rendered configuration is tested.
        return;
    }
    let server = started(&upstream, far.path());
    let tls = UpstreamTls {
        authority: server.authority().unwrap().to_owned(),
        name: certificate::NAME.to_owned(),
    };
    let upstream = Upstream {
        address: server.address(Dot).unwrap(),
        further: Vec::new(),
        transport: Dot,
        tls: Some(tls),
    };
    let clients = ("127.0.0.1", &[Udp, Tcp] as &[_]);
    let spec = forwarder(ServerKind::PowerDnsRecursor, folder.path(), clients, upstream);
    let recursor = started(&spec, folder.path());
    let watch = recursor.count().unwrap().finish(Instant::now());
    let sent = watch.total("upstream.queries.dot");
    assert!(sent > Some(0) && sent == watch.total(counter::UPSTREAM_QUERIES), "{watch:?}");
    stop(recursor);
    stop(server);
}

/// A signed root, and a forwarder that trusts its key or another one.
#[test]
fn validation_believes_the_trust_anchor_alone() {
    let far = tempfile::tempdir().unwrap();
    let mut root = authoritative(ServerKind::Knot, far.path(), "127.0.0.1", &[Udp, Tcp]);
    let path = far.path().join("root-of-the-test");
    let zone = "@ 60 SOA ns hostmaster 1 3600 600 86400 1\n@ 60 NS ns\nns 60 A 127.0.0.1\n\
                alf.example.test 60 A 192.0.2.7\n";
    fs::write(&path, format!("$ORIGIN .\n{zone}")).unwrap();
    root.zone = Some(ZoneFile { origin: ".".to_owned(), path, signatures: None });
    // The zone is at the end of the configuration.
    root.extra = Some("    dnssec-signing: on".to_owned());
    let server = started(&root, far.path());
    let output = Command::new("keymgr")
        .args(["-c", "knot.conf", ".", "ds"])
        .current_dir(&root.directory)
        .output()
        .unwrap();
    let anchors = String::from_utf8(output.stdout).unwrap();
    let right = anchors.lines().find(|line| line.contains(" 13 2 ")).unwrap().to_owned();
    let (start, digest) = right.rsplit_once(' ').unwrap();
    let other: String = digest.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
    let wrong = format!("{start} {other}");
    let upstream = Upstream {
        address: server.address(Udp).unwrap(),
        further: Vec::new(),
        transport: Udp,
        tls: None,
    };
    for case in CASES {
        let folder = tempfile::tempdir().unwrap();
        let clients = ("127.0.0.1", &[Udp] as &[_]);
        let mut spec = forwarder(case.kind, folder.path(), clients, upstream.clone());
        spec.trust_anchors = vec![right.clone()];
        let installed = find(case.kind, spec.binary.as_deref(), &guard()).unwrap();
        if let Err(reason) = installed.can_start(&spec) {
            let words = ["does not validate signatures", "does not configure validation in Stubby"];
            assert!(words.iter().any(|end| reason.ends_with(end)), "{reason}");
            continue;
        }
        stop(started(&spec, folder.path()));
        spec.trust_anchors = vec![wrong.clone()];
        let validator = probed(&spec, &|_, _| Ok(()));
        for _ in 0..3 {
            let answer = ask(folder.path(), Udp, validator.address(Udp).unwrap());
            assert!(answer.is_err(), "{} believes without a reason", case.kind);
        }
        stop(validator);
    }
    stop(server);
}
