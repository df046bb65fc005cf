//! Somebody on the path between client and server who reads datagrams and forges some.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) queries: Vec<Vec<u8>>,
    /// Messages to the client that are not the server's.
    pub(crate) forged: u64,
}

/// Passes datagrams on to the server. `forge` says what the client gets in place of each answer.
pub(crate) fn relay(
    server: SocketAddr,
    forge: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + Sync + 'static,
) -> (SocketAddr, Arc<Mutex<Seen>>) {
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = near.local_addr().unwrap();
    let (seen, forge) = (Arc::<Mutex<Seen>>::default(), Arc::new(forge));
    let kept = Arc::clone(&seen);
    thread::spawn(move || {
        let mut peers: Vec<(SocketAddr, UdpSocket)> = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let (length, peer) = near.recv_from(&mut buffer).unwrap();
            lock(&kept).queries.push(buffer[..length].to_vec());
            if !peers.iter().any(|(known, _)| *known == peer) {
                let far = UdpSocket::bind("127.0.0.1:0").unwrap();
                far.connect(server).unwrap();
                let (back, near) = (far.try_clone().unwrap(), near.try_clone().unwrap());
                let (kept, forge) = (Arc::clone(&kept), Arc::clone(&forge));
                thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(length) = back.recv(&mut buffer) {
                        for message in forge(&buffer[..length]) {
                            lock(&kept).forged += u64::from(message != buffer[..length]);
                            near.send_to(&message, peer).ok();
                        }
                    }
                });
                peers.push((peer, far));
            }
            let (_, far) = peers.iter().find(|(known, _)| *known == peer).unwrap();
            far.send(&buffer[..length]).ok();
        }
    });
    (address, seen)
}

pub(crate) fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
