//! DNS over QUIC and over HTTP/3 against our own responder, against CoreDNS, and against servers that fail.
//! CoreDNS is also tested with the encrypted transports over TCP.

mod coredns;
mod failures;
mod transports;
