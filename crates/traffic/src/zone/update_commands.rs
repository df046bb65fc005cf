//! A zone as commands for BIND's `nsupdate`, which sends them as dynamic updates (RFC 2136).

use std::io::{self, Write};
use std::num::NonZeroU32;

use domain::base::Name;

use super::synthetic::{SERVER_ADDRESS, SyntheticZone};
use super::text::ZoneText;
use super::update_server::UpdateServer;

/// The longest message (RFC 1035, section 4.2.2).
const MAX_MESSAGE: usize = 65_535;

/// Octets left for a signature: with TSIG two names of up to 255 octets and a hash of up to 64 (RFC 8945,
/// section 4.2), with GSS-TSIG a token in place of the hash.
const ROOM_FOR_SIGNATURE: usize = 1_024;

/// Octets of a message's header (RFC 1035, section 4.1.1).
const HEADER: usize = 12;

/// Octets of a record without its name: type, class, TTL, length, and an address of four.
const RECORD: usize = 10 + 4;

/// Writes the commands. The server's own parts of a zone stay: the SOA record, whose serial number the server
/// counts, and its NS records, to which the zone's own is added.
///
/// Adding a record that is there changes only its TTL, so all commands can be sent again.
pub(super) fn write(
    zone: &SyntheticZone,
    server: Option<&UpdateServer>,
    batch: Option<NonZeroU32>,
    file: &mut impl Write,
) -> io::Result<()> {
    let ZoneText { origin, below, name_server, .. } = ZoneText::of(zone);
    let ttl = zone.ttl.as_secs();
    if let Some(server) = server {
        writeln!(file, "server {server}")?;
    }
    writeln!(file, "zone {origin}")?;
    if !is_host_name(zone.origin()) {
        // Otherwise `nsupdate` takes the names of address records for mistakes (RFC 952, RFC 1123).
        writeln!(file, "check-names no")?;
    }
    // Sent alone: a server that refuses updates says so before the many.
    writeln!(file, "update add {name_server} {ttl} IN A {SERVER_ADDRESS}")?;
    writeln!(file, "update add {origin} {ttl} IN NS {name_server}")?;
    writeln!(file, "send")?;
    let batch = records_in_message(zone.origin(), &zone.name(0), batch);
    let mut unsent = 0;
    for (host, address) in zone.hosts() {
        writeln!(file, "update add {host}{below} {ttl} IN A {address}")?;
        unsent += 1;
        if unsent == batch {
            writeln!(file, "send")?;
            unsent = 0;
        }
    }
    if unsent > 0 {
        writeln!(file, "send")?;
    }
    Ok(())
}

/// True if the labels are those of host names: letters, digits and hyphens.
fn is_host_name(name: &Name<Vec<u8>>) -> bool {
    let is_usual = |octet: &u8| octet.is_ascii_alphanumeric() || *octet == b'-';
    name.iter().all(|label| label.as_slice().iter().all(is_usual))
}

/// How many hosts fit into one message, at most `most`. Names count in full, although `nsupdate` compresses
/// them: a library that does not may send the same commands.
fn records_in_message(
    origin: &Name<Vec<u8>>,
    host: &Name<Vec<u8>>,
    most: Option<NonZeroU32>,
) -> usize {
    let zone_section = origin.len() + 4;
    let room = MAX_MESSAGE - ROOM_FOR_SIGNATURE - HEADER - zone_section;
    let fitting = room / (host.len() + RECORD);
    most.map_or(fitting, |most| fitting.min(most.get() as usize))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ZoneFormat;

    fn text(zone: &SyntheticZone, server: Option<&str>, batch: Option<u32>) -> String {
        let server = server.map(|text| text.parse().unwrap());
        let batch = batch.and_then(NonZeroU32::new);
        let mut octets = Vec::new();
        zone.write_as(&ZoneFormat::UpdateCommands { server, batch }, &mut octets).unwrap();
        String::from_utf8(octets).unwrap()
    }

    fn zone(name: &str, records: u32) -> SyntheticZone {
        SyntheticZone::named(name, records, Duration::from_secs(5)).unwrap()
    }

    #[test]
    fn the_commands() {
        let expected = "\
            server 192.0.2.1 5300\n\
            zone example.test.\n\
            update add ns.example.test. 5 IN A 192.0.2.53\n\
            update add example.test. 5 IN NS ns.example.test.\n\
            send\n\
            update add host-000001.example.test. 5 IN A 10.0.0.1\n\
            update add host-000002.example.test. 5 IN A 10.0.0.2\n\
            send\n\
            update add host-000003.example.test. 5 IN A 10.0.0.3\n\
            send\n";
        assert_eq!(text(&zone("example.test", 3), Some("192.0.2.1:5300"), Some(2)), expected);
        let root = text(&zone(".", 2), None, Some(2));
        assert!(root.starts_with("zone .\nupdate add ns. 5 "), "{root}");
        let odd = text(&zone("_a.x", 1), None, None);
        assert!(odd.starts_with("zone _a.x.\ncheck-names no\nupdate add "), "{odd}");
        assert!(root.ends_with("update add host-000002. 5 IN A 10.0.0.2\nsend\n"), "{root}");
    }

    #[test]
    fn messages_fit() {
        let label = "a".repeat(59);
        let longest = [label.as_str(); 3].join(".") + "." + &"b".repeat(50);
        for name in [".", "x", "example.test", &longest] {
            let zone = zone(name, 5_000);
            let text = text(&zone, None, None);
            let sizes =
                text.split("send\n").skip(1).filter(|message| !message.is_empty()).map(|message| {
                    let records = message.lines().count();
                    HEADER + zone.origin().len() + 4 + records * (zone.name(0).len() + RECORD)
                });
            let sizes: Vec<usize> = sizes.collect();
            let limit = MAX_MESSAGE - ROOM_FOR_SIGNATURE;
            assert!(sizes.iter().all(|size| *size <= limit), "{name}: {sizes:?}");
            assert!(sizes[0] > limit - 300, "{name}: {sizes:?}");
        }
    }
}
