//! Clients that want the server's memory, one after the other, and how much of it they get.
//!
//! The server runs in this process, so the peak of the process is an upper bound for the server. Each attack
//! sends or asks for several times what may be kept.

mod http2;
mod many;
mod quic;
#[path = "../server/running.rs"]
#[expect(dead_code, reason = "the tests of the whole server use the rest")]
mod running;
mod streams;

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dnslab_responder::{Config, Counters, Zone};
use dnslab_wire::{Response, Transport, push_frame};
use domain::base::iana::Rtype;

use crate::running::{Running, exchange};

/// Octets of the answer to `big.example. TXT`, and some more.
const BIG: usize = 60_000;

/// One attack at a time: they share what is measured.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In octets.
fn status(name: &str) -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kib = line.trim_start_matches(':').trim().trim_end_matches("kB").trim();
    kib.parse::<usize>().unwrap() * 1024
}

/// The most octets that the process held during `attack` above those before it.
fn growth(attack: impl FnOnce()) -> usize {
    // This resets the peak (proc(5), clear_refs).
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    attack();
    status("VmHWM").saturating_sub(before)
}

/// The attack must not get `most` octets out of the server, and another client is answered after it.
#[track_caller]
fn check(server: &Running, most: usize, attack: impl FnOnce()) {
    let grown = growth(attack);
    assert!(grown < most, "{} MiB, {} MiB are allowed", grown >> 20, most >> 20);
    let answer = exchange(&mut server.tcp(), &query("www.example.", Rtype::A));
    assert_eq!(Response::parse(&answer).unwrap().answers, 1);
}

/// The answer to `big.example. TXT` has [`BIG`] octets.
fn start(change: impl FnOnce(&mut Config)) -> Running {
    let mut text = "$ORIGIN example.\n$TTL 300\n@ SOA ns host 1 2 3 4 60\n@ NS ns\n\
                    ns A 192.0.2.53\nwww A 192.0.2.1\n"
        .to_owned();
    for number in 0..BIG / 212 {
        text += &format!("big TXT \"{number:0>199}\"\n");
    }
    Running::start(|config| {
        config.content = Zone::parse(text.as_bytes(), None).unwrap().into();
        change(config);
    })
}

/// The id is 0.
fn query(qname: &str, qtype: Rtype) -> Vec<u8> {
    running::query(0, qname, qtype)
}

/// So many queries for a stream.
fn frames(count: usize, qname: &str, qtype: Rtype) -> Vec<u8> {
    let mut frames = Vec::new();
    (0..count).for_each(|_| push_frame(&mut frames, &query(qname, qtype)));
    frames
}

/// Writes until the other side takes no more for half a second, or is gone, or `most` octets are written.
fn flood(stream: &mut impl Write, socket: &TcpStream, part: &[u8], most: usize) {
    socket.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut written = 0;
    while written < most && stream.write_all(part).and_then(|()| stream.flush()).is_ok() {
        written += part.len();
    }
}

fn answered(counters: &Counters, transport: Transport) -> u64 {
    counters.messages(transport).answered
}
