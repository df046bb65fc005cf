//! TCP and DNS over TLS.

use std::num::NonZeroU64;

use dnslab_wire::Transport;
use domain::base::iana::Rtype;

use crate::running::{Running, connect};
use crate::{BIG, alone, answered, check, flood, frames, start};

fn ask_and_read_nothing(server: &Running, frames: &[u8]) {
    let mut plain = connect(server.address);
    let socket = plain.try_clone().unwrap();
    flood(&mut plain, &socket, frames, frames.len());
    let mut tls = server.tls(server.dot_address, b"dot");
    let socket = tls.sock.try_clone().unwrap();
    flood(&mut tls, &socket, frames, frames.len());
    std::thread::sleep(std::time::Duration::from_millis(500));
}

/// 180 MB of answers are asked for, and not read.
#[test]
fn unread_answers() {
    let _alone = alone();
    let server = start(|_| {});
    let queries = frames(1500, "big.example.", Rtype::TXT);
    check(&server, 32 << 20, || ask_and_read_nothing(&server, &queries));
    server.stop();
}

/// 90 MB of answers on each connection are to be held back for longer than the test.
#[test]
fn delayed_answers() {
    let _alone = alone();
    let server = start(|config| config.program.delay = "60s".parse().unwrap());
    let queries = frames(1500, "big.example.", Rtype::TXT);
    let grown = crate::growth(|| ask_and_read_nothing(&server, &queries));
    assert!(grown < 32 << 20, "{} MiB", grown >> 20);
    let counters = server.stop();
    for transport in [Transport::Tcp, Transport::Dot] {
        let messages = counters.messages(transport);
        // 4 MiB of answers, and the one that crossed the line.
        assert!(messages.received <= (4 << 20) / (BIG as u64 - 2_000) + 1, "{messages:?}");
        assert_eq!(messages.received, messages.unsent);
    }
}

/// A client that may ask no more, and whose answer has not come yet, sends 100 MB.
#[test]
fn input_after_the_last_query() {
    let _alone = alone();
    let server = start(|config| {
        config.queries_per_connection = NonZeroU64::new(1);
        config.program.delay = "2s".parse().unwrap();
    });
    let part = frames(1000, "big.example.", Rtype::TXT);
    check(&server, 24 << 20, || {
        let mut plain = connect(server.address);
        let socket = plain.try_clone().unwrap();
        flood(&mut plain, &socket, &part, 100 << 20);
        let mut tls = server.tls(server.dot_address, b"dot");
        let socket = tls.sock.try_clone().unwrap();
        flood(&mut tls, &socket, &part, 100 << 20);
    });
    assert!(answered(&server.stop(), Transport::Tcp) >= 1);
}
