//! HTTP/2 client against server in memory, for a profile: `http2_exchange [get|post] [BATCHES]`
//! exchanges so many batches of 20 queries. Under callgrind, `--toggle-collect='*client_turn*'`
//! counts the client's part alone.

use dnslab_transport::http2::{Client, Server};
use dnslab_transport::{Method, Target};

/// Queries in one write.
const BATCH: u16 = 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let method = match arguments.first().map(String::as_str) {
        Some("get") => Method::Get,
        _ => Method::Post,
    };
    let batches = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let (authority, path) = ("ns.example".to_owned(), "/dns-query".to_owned());
    let mut client = Client::new(&Target { authority, path, method }).expect("the target is one");
    let mut server = Server::new("/dns-query");
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let mut answered = 0;
    for _ in 0..batches {
        to_server.clear();
        answered += client_turn(&mut client, &to_client, &mut to_server);
        to_client.clear();
        server_turn(&mut server, &to_server, &mut to_client);
    }
    println!("{answered} answered");
}

/// Reads the answers to the last batch and sends the next.
#[inline(never)]
fn client_turn(client: &mut Client, read: &[u8], write: &mut Vec<u8>) -> usize {
    let mut answered = 0;
    client.receive(read);
    client.poll(write, &mut |_| answered += 1).expect("the server goes on");
    for id in 0..BATCH {
        assert!(client.send(id, &[7; 40]));
    }
    client.flush(write).expect("the server goes on");
    answered
}

#[inline(never)]
fn server_turn(server: &mut Server, read: &[u8], write: &mut Vec<u8>) {
    server.receive(read);
    server.poll(write).expect("the client goes on");
    while let Some(request) = server.next_request() {
        server.answer(request.id, &[0; 56]);
    }
    server.poll(write).expect("the client goes on");
}
