//! Acknowledgements that the client's kernel holds back, and those that it is asked for.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use dnslab_settings::{Mode, Quickack};
use dnslab_wire::Transport;

use crate::behaviour::{go, job};

/// A server that writes each answer in two parts. Nagle's algorithm is on, as by default: the second part
/// leaves when the first is acknowledged.
fn server_in_two_parts() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut message = [0; 512];
                while let Ok(()) = stream.read_exact(&mut message[..2]) {
                    let length = usize::from(u16::from_be_bytes([message[0], message[1]]));
                    stream.read_exact(&mut message[2..2 + length]).unwrap();
                    // The bit QR: it is a response.
                    message[4] |= 0x80;
                    let (first, second) = message[..2 + length].split_at(7);
                    if stream.write_all(first).and_then(|()| stream.write_all(second)).is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

fn service_time_ns(target: SocketAddr, quickack: bool, quantile: f64) -> u64 {
    let result = go(&job(target, Transport::Tcp).with(|load| {
        load.clients = 1;
        load.workers = Some(1);
        load.mode = Mode::Closed { outstanding: 1 };
        load.duration = Duration::from_millis(1_500);
        load.quickack = if quickack { Quickack::Always } else { Quickack::OpenLoop };
    }));
    assert_eq!(result.facts.quickack, quickack);
    result.measured.service_time.quantile_ns(quantile).unwrap()
}

/// `open-loop` is never in a closed loop. A busy machine makes answers later, and none earlier. So some must
/// be early where the client acknowledges at once, and most late where it does not.
#[test]
fn answers_do_not_wait_for_an_acknowledgement_that_is_sent_at_once() {
    /// Linux holds an acknowledgement back for 40 ms at least (TCP_DELACK_MIN).
    const HELD_BACK_NS: u64 = 38_000_000;
    let target = server_in_two_parts();
    let median = service_time_ns(target, false, 0.5);
    assert!(median > HELD_BACK_NS, "{median}");
    let early = service_time_ns(target, true, 0.1);
    assert!(early < HELD_BACK_NS / 2, "{early}");
}
