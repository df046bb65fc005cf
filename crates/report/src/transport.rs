//! Transports in words.

/// The name of a transport as people write it, from its name in a record; a name that is not known
/// here stays as it is.
#[must_use]
pub fn transport_name(transport: &str) -> &str {
    match transport {
        "udp" => "UDP",
        "tcp" => "TCP",
        "dot" => "DoT",
        "doh2" => "DoH (HTTP/2)",
        "doq" => "DoQ",
        "doh3" => "DoH (HTTP/3)",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transport_has_a_name() {
        let names = ["udp", "tcp", "dot", "doh2", "doq", "doh3", "carrier pigeon"];
        let words = ["UDP", "TCP", "DoT", "DoH (HTTP/2)", "DoQ", "DoH (HTTP/3)", "carrier pigeon"];
        assert_eq!(names.map(transport_name), words);
    }
}
