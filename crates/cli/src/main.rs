//! The dnslab command.
fn main() {}
