//! A zone as a master file (RFC 1035, section 5).

use std::io::{self, Write};

use super::synthetic::{SERVER_ADDRESS, SyntheticZone};
use super::text::ZoneText;

pub(super) fn write(zone: &SyntheticZone, file: &mut impl Write) -> io::Result<()> {
    let ZoneText { origin, name_server, mailbox, .. } = ZoneText::of(zone);
    let soa = zone.soa();
    writeln!(file, "$ORIGIN {origin}")?;
    writeln!(file, "$TTL {}", zone.ttl.as_secs())?;
    writeln!(
        file,
        "@ IN SOA {name_server} {mailbox} {} {} {} {} {}",
        soa.serial(),
        soa.refresh().as_secs(),
        soa.retry().as_secs(),
        soa.expire().as_secs(),
        soa.minimum().as_secs()
    )?;
    writeln!(file, "@ IN NS {name_server}")?;
    writeln!(file, "ns IN A {SERVER_ADDRESS}")?;
    for (host, address) in zone.hosts() {
        writeln!(file, "{host} IN A {address}")?;
    }
    Ok(())
}
