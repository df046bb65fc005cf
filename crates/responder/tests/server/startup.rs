//! The server says what is wrong when it starts, with the remedy.

use std::net::UdpSocket;
use std::num::NonZeroUsize;

use dnslab_responder::{CertificateFiles, Config, Server};

use crate::running::{Running, zone};

fn check(change: impl FnOnce(&mut Config), expected: &[&str]) {
    let mut config = Config::new(zone());
    change(&mut config);
    let error = Server::bind(config).err().expect("the server must not start").to_string();
    for part in expected {
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
}

#[test]
fn faults_name_culprit_and_remedy() {
    check(|_| {}, &["no address to listen on"]);
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let in_use = [address.to_string(), "(udp)".to_owned(), "ss -lntup".to_owned()];
    let in_use: Vec<&str> = in_use.iter().map(String::as_str).collect();
    check(|config| config.listen.push(address), &in_use);
    let running = Running::start(|config| config.threads = NonZeroUsize::new(2).unwrap());
    let two = |config: &mut Config| config.threads = NonZeroUsize::new(2).unwrap();
    check(
        |config| {
            two(config);
            config.listen.push(running.address);
        },
        &["another process owns it"],
    );
    check(
        |config| {
            two(config);
            config.certificate = Some(running.certificate.clone());
            config.dot_listen.push(running.dot_address);
        },
        &["(dot)", "another process owns it"],
    );
    check(
        |config| config.listen.push("192.0.2.1:5353".parse().unwrap()),
        &["192.0.2.1:5353", "ip -4 address"],
    );
    let dot = |config: &mut Config| config.dot_listen.push("127.0.0.1:0".parse().unwrap());
    check(dot, &["127.0.0.1:0 needs a certificate"]);
    let other = Running::start(|_| {});
    let other = other.certificate.key.to_str().unwrap();
    for (chain, key, expected) in [
        ("missing.pem", "key.pem", &["certificate chain", "missing.pem"][..]),
        ("chain.pem", "missing.pem", &["private key", "missing.pem"]),
        ("key.pem", "key.pem", &["key.pem", "holds no certificate"]),
        ("chain.pem", "chain.pem", &["private key", "chain.pem"]),
        ("chain.pem", other, &["cannot be used"]),
    ] {
        let [chain, key] = [chain, key].map(|name| running.chain.with_file_name(name));
        let files = |config: &mut Config| {
            dot(config);
            config.certificate = Some(CertificateFiles { chain, key });
        };
        check(files, expected);
    }
}
