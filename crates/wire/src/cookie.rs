//! DNS cookies, as a client keeps them (RFC 7873, RFC 9018).

use crate::ResponseOptions;
use crate::edns::{COOKIE, OPTION_HEADER, push_option_header};

/// Octets of the parts of a COOKIE option (RFC 7873, section 4).
const CLIENT: usize = 8;
const SHORTEST_SERVER: usize = 8;
const MAX_SERVER: usize = 32;
pub(crate) const MAX_LENGTH: usize = OPTION_HEADER + CLIENT + MAX_SERVER;

/// What one client knows of the cookies between it and one server, in 41 octets.
///
/// A client makes its half once, at random or hashed from its address (RFC 9018, section 3), and keeps the
/// half that the server last gave it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    client: [u8; CLIENT],
    server: [u8; MAX_SERVER],
    /// Known octets of `server`: 0, or 8 to 32.
    server_length: u8,
}

/// What a response said about cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieFinding {
    /// It has no COOKIE option, or one without a server cookie: the server gives none.
    None,
    /// The server cookie is kept for the next query. It may be the known one.
    Learned,
    /// The client cookie is not the one that was sent, or the option is malformed. Somebody else may have
    /// sent the response, so a client discards it (RFC 7873, section 5.3).
    WrongClientCookie,
}

impl Cookie {
    /// A client that has heard nothing of the server yet.
    #[must_use]
    pub fn new(client: [u8; CLIENT]) -> Self {
        Self { client, server: [0; MAX_SERVER], server_length: 0 }
    }

    /// The client's half.
    #[must_use]
    pub fn client(&self) -> [u8; CLIENT] {
        self.client
    }

    /// The server's half: empty, or 8 to 32 octets.
    #[must_use]
    #[inline]
    pub fn server(&self) -> &[u8] {
        &self.server[..usize::from(self.server_length)]
    }

    /// Keeps the server's half that a response has.
    #[inline]
    pub fn learn(&mut self, response: &ResponseOptions<'_>) -> CookieFinding {
        let Some(option) = response.cookie else { return CookieFinding::None };
        let Some((client, server)) = option.split_at_checked(CLIENT) else {
            return CookieFinding::WrongClientCookie;
        };
        if client != self.client {
            return CookieFinding::WrongClientCookie;
        }
        match server.len() {
            0 => CookieFinding::None,
            length @ SHORTEST_SERVER..=MAX_SERVER => {
                self.server[..length].copy_from_slice(server);
                self.server_length = length as u8;
                CookieFinding::Learned
            }
            _ => CookieFinding::WrongClientCookie,
        }
    }

    #[inline]
    pub(crate) fn option_length(&self) -> usize {
        OPTION_HEADER + CLIENT + usize::from(self.server_length)
    }

    #[inline]
    pub(crate) fn push_option(&self, out: &mut Vec<u8>) {
        push_option_header(out, COOKIE, CLIENT as u16 + u16::from(self.server_length));
        out.extend_from_slice(&self.client);
        out.extend_from_slice(self.server());
    }
}

impl std::fmt::Debug for Cookie {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Cookie")
            .field("client", &self.client)
            .field("server", &self.server())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(options: &[u8]) -> Vec<u8> {
        let mut message = vec![0, 0, 0x84, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        message.extend([0, 0, 41, 4, 0xd0, 1, 0, 0, 0, 0, options.len() as u8]);
        message.extend(options);
        message
    }

    #[track_caller]
    fn check(known: &mut Cookie, options: &[u8], expected: CookieFinding, server: &[u8]) {
        let message = response(options);
        let read = ResponseOptions::read(&message).unwrap();
        assert_eq!(known.learn(&read), expected);
        assert_eq!(known.server(), server);
    }

    /// The cookies of RFC 9018, appendix A.1 and A.2.
    #[test]
    fn the_server_cookie_is_kept_for_the_next_query() {
        let client = [0x24, 0x64, 0xc4, 0xab, 0xcf, 0x10, 0xc9, 0x57];
        let first = [1, 0, 0, 0, 0x5c, 0xf7, 0x9f, 0x11, 0x1f, 0x81, 0x30, 0xc3];
        let first = [first.as_slice(), &[0xee, 0xe2, 0x94, 0x80]].concat();
        let mut cookie = Cookie::new(client);
        let mut option = Vec::new();
        cookie.push_option(&mut option);
        assert_eq!(option, [&[0, 10, 0, 8], client.as_slice()].concat());

        let given = [&[0, 10, 0, 24], client.as_slice(), &first].concat();
        check(&mut cookie, &given, CookieFinding::Learned, &first);
        option.clear();
        cookie.push_option(&mut option);
        assert_eq!(option, given);

        // A shorter one replaces a longer one; a response without one changes nothing.
        let short = [&[0, 10, 0, 16], client.as_slice(), &[7; 8]].concat();
        check(&mut cookie, &short, CookieFinding::Learned, &[7; 8]);
        check(&mut cookie, &[], CookieFinding::None, &[7; 8]);
        let none = [&[0, 10, 0, 8], client.as_slice()].concat();
        check(&mut cookie, &none, CookieFinding::None, &[7; 8]);
    }

    #[test]
    fn what_somebody_else_may_have_sent_teaches_nothing() {
        let client = *b"a client";
        let option = |client: &[u8], server: usize| {
            let header = [0, 10, 0, (client.len() + server) as u8];
            [header.as_slice(), client, &vec![9; server]].concat()
        };
        for wrong in [
            option(b"another!", 16),
            option(b"another!", 0),
            option(b"a clien", 0),
            option(b"", 0),
            option(&client, 1),
            option(&client, 7),
            option(&client, 33),
        ] {
            let expected = CookieFinding::WrongClientCookie;
            check(&mut Cookie::new(client), &wrong, expected, &[]);
        }
        for length in [8, 32] {
            let expected = CookieFinding::Learned;
            check(&mut Cookie::new(client), &option(&client, length), expected, &vec![9; length]);
        }
    }

    #[test]
    fn a_cookie_is_small() {
        assert_eq!(size_of::<Cookie>(), 41);
    }
}
