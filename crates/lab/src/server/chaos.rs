//! Questions to a server about itself: TXT records of the class CHAOS.

#![expect(clippy::disallowed_types, reason = "asks a server for what it counted")]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::str::FromStr as _;

use domain::base::iana::{Class, Rtype};
use domain::base::{Message, MessageBuilder, Name};
use domain::rdata::Txt;

use super::control::PATIENCE;

/// Largest answer over UDP without EDNS (RFC 1035, section 4.2.1).
const MAX_SIZE: usize = 512;

/// Asks the server at `address` for the texts at `name`, one per record. Fails with half a sentence if no
/// answer with a text comes in time.
pub(crate) fn texts(address: SocketAddr, name: &'static str) -> Result<Vec<String>, String> {
    let answer = exchange(address, &query(name))
        .map_err(|error| format!("its answer to `{name} CH TXT`: {error}"))?;
    read(&answer).ok_or_else(|| format!("its answer to `{name} CH TXT` has no text"))
}

fn query(name: &'static str) -> Vec<u8> {
    let name = Name::<Vec<u8>>::from_str(name).expect("the names are written in this program");
    let mut message = MessageBuilder::new_vec();
    // Each socket asks one question, from a port of the kernel's choice, so any id will do.
    message.header_mut().set_id(0x6473);
    let mut question = message.question();
    question.push((name, Rtype::TXT, Class::CH)).expect("an empty message has room");
    question.finish()
}

/// Returns the first message that comes back from that address.
fn exchange(address: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let any = if address.is_ipv4() {
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
    } else {
        SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(query)?;
    let mut answer = vec![0; MAX_SIZE];
    let length = socket.recv(&mut answer)?;
    answer.truncate(length);
    Ok(answer)
}

/// `None` if the answer has no text.
fn read(answer: &[u8]) -> Option<Vec<String>> {
    let message = Message::from_octets(answer).ok()?;
    let records = message.answer().ok()?.limit_to::<Txt<_>>();
    let text = |record: domain::base::Record<_, Txt<&[u8]>>| {
        String::from_utf8_lossy(&record.data().text::<Vec<u8>>()).into_owned()
    };
    let texts: Vec<String> = records.filter_map(Result::ok).map(text).collect();
    (!texts.is_empty()).then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_from_an_answer() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let mut octets = [0; MAX_SIZE];
            let (length, client) = server.recv_from(&mut octets).unwrap();
            let query = Message::from_octets(&octets[..length]).unwrap();
            let question = query.sole_question().unwrap();
            assert_eq!(question.qclass(), Class::CH);
            let builder = MessageBuilder::new_vec();
            let mut answer =
                builder.start_answer(&query, domain::base::iana::Rcode::NOERROR).unwrap();
            for text in ["one", "two 2"] {
                let data = Txt::<Vec<u8>>::build_from_slice(text.as_bytes()).unwrap();
                answer.push((question.qname(), Class::CH, 0, data)).unwrap();
            }
            server.send_to(&answer.finish(), client).unwrap();
        });
        assert_eq!(texts(address, "servers.bind.").unwrap(), ["one", "two 2"]);
        thread.join().unwrap();
        assert_eq!(read(&query("hits.bind.")), None);
        assert_eq!(read(b"short"), None);
    }
}
