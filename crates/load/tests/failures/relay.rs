//! A relay between clients and a server over TCP that breaks connections in stated ways. So every transport
//! over TCP meets the same faults, encrypted or not.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use socket2::SockRef;

/// How a connection to the client ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In good order, with FIN.
    Fin,
    /// With RST: the peer has vanished, or its kernel has forgotten the connection.
    Reset,
}

/// What the relay does to each connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Ends it after so many octets of the server; 0 for right after it was accepted.
    EndAfter(usize, End),
    /// Ends it after a random number of octets of the server, up to this one.
    EndAtRandom(usize),
    /// Takes what comes and gives nothing back.
    Silence,
    /// Takes nothing from the client after so many octets, for this long; then goes on.
    StopReading(usize, Duration),
    /// Changes a bit of this octet on the way to the server, and of each that comes so many later.
    SpoilQueries(usize),
    /// The same on the way to the client.
    SpoilAnswers(usize),
    /// Replaces all of the server's octets after so many by octets of its own.
    Garbage(usize),
}

/// Starts a relay to a server, and returns its address. Each connection meets the fault.
pub(crate) fn relay(server: SocketAddr, fault: Fault) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    if matches!(fault, Fault::StopReading(..)) {
        // What is not read soon waits with the client.
        SockRef::from(&listener).set_recv_buffer_size(4 * 1024).unwrap();
    }
    let numbers = Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for client in listener.incoming() {
            let number = numbers.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || pass(client.unwrap(), server, fault, number));
        }
    });
    address
}

fn pass(client: TcpStream, server: SocketAddr, fault: Fault, number: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let (last, end) = match fault {
        Fault::EndAfter(octets, end) => (octets, end),
        Fault::EndAtRandom(most) => {
            let end = if random.random() { End::Fin } else { End::Reset };
            (random.random_range(0..=most), end)
        }
        _ => (usize::MAX, End::Fin),
    };
    if last == 0 {
        return end_with(&client, end);
    }
    let server = TcpStream::connect(server).unwrap();
    let (up, down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let upward = thread::spawn(move || pass_queries(up, down, fault));
    pass_answers(&client, &server, fault, last, &mut random);
    end_with(&client, end);
    server.shutdown(Shutdown::Both).ok();
    upward.join().unwrap();
}

/// Ends the connection to the client, from both sides.
fn end_with(client: &TcpStream, end: End) {
    match end {
        // Dropping it sends the RST.
        End::Reset => SockRef::from(client).set_linger(Some(Duration::ZERO)).unwrap(),
        End::Fin => {}
    }
    client.shutdown(if end == End::Fin { Shutdown::Write } else { Shutdown::Read }).ok();
}

/// Passes octets of the client on to the server.
fn pass_queries(mut client: TcpStream, mut server: TcpStream, fault: Fault) {
    let mut buffer = [0; 16 * 1024];
    let mut passed = 0;
    loop {
        if let Fault::StopReading(from, pause) = fault
            && passed >= from
            && passed < usize::MAX / 2
        {
            thread::sleep(pause);
            // Once for each connection.
            passed = usize::MAX / 2;
        }
        let Ok(count @ 1..) = client.read(&mut buffer) else { break };
        let octets = &mut buffer[..count];
        if let Fault::SpoilQueries(every) = fault {
            spoil(octets, passed, every);
        }
        passed = passed.saturating_add(count);
        if server.write_all(octets).is_err() {
            break;
        }
    }
    server.shutdown(Shutdown::Write).ok();
}

/// Passes octets of the server on to the client, `last` of them at most.
fn pass_answers(
    mut client: &TcpStream,
    mut server: &TcpStream,
    fault: Fault,
    last: usize,
    random: &mut Xoshiro256PlusPlus,
) {
    let mut buffer = [0; 16 * 1024];
    let mut passed = 0;
    while passed < last {
        let Ok(count @ 1..) = server.read(&mut buffer) else { break };
        let count = count.min(last - passed);
        let octets = &mut buffer[..count];
        match fault {
            Fault::Silence => continue,
            Fault::SpoilAnswers(every) => spoil(octets, passed, every),
            Fault::Garbage(from) => {
                let own = from.saturating_sub(passed).min(count);
                random.fill(&mut octets[own..]);
            }
            _ => {}
        }
        passed += count;
        if client.write_all(octets).is_err() {
            break;
        }
    }
}

/// Changes a bit of every octet whose number is a multiple of `every`, except the first. `passed` octets came
/// before.
fn spoil(octets: &mut [u8], passed: usize, every: usize) {
    for (number, octet) in (passed..).zip(octets) {
        if number > 0 && number % every == 0 {
            *octet ^= 0x10;
        }
    }
}
