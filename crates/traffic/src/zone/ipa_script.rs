//! A zone as a shell script of `ipa` commands, for FreeIPA.
//!
//! FreeIPA's `batch` command takes many commands in one request, but the `ipa` command line does not have it.
//! `ipa console FILE` runs Python with FreeIPA's own interface, which does. So the script has the records as
//! plain lines at its end, and hands them to a few lines of Python.

use std::io::{self, Write};
use std::num::NonZeroU32;

use super::synthetic::{SERVER_ADDRESS, SyntheticZone};
use super::text::ZoneText;

/// The line after which the records follow.
const RECORDS: &str = "#### records";

/// Writes the script. FreeIPA decides itself on the SOA record's serial number, and makes its own servers
/// name servers of the zone. The zone's own name server is added to these.
pub(super) fn write(
    zone: &SyntheticZone,
    batch: NonZeroU32,
    file: &mut impl Write,
) -> io::Result<()> {
    write_zone(zone, file)?;
    if batch.get() == 1 {
        let ttl = zone.ttl.as_secs();
        for (host, address) in zone.hosts() {
            writeln!(file, r#"ipa dnsrecord-add "$zone" {host} --a-rec={address} --ttl={ttl}"#)?;
        }
        return Ok(());
    }
    write_program(zone, batch, file)?;
    for (host, address) in zone.hosts() {
        writeln!(file, "{host} {address}")?;
    }
    Ok(())
}

fn write_zone(zone: &SyntheticZone, file: &mut impl Write) -> io::Result<()> {
    let ZoneText { origin, name_server, mailbox, .. } = ZoneText::of(zone);
    let (soa, ttl, records) = (zone.soa(), zone.ttl.as_secs(), zone.records);
    writeln!(
        file,
        "#!/bin/sh\n\
         # Makes a zone of {records} hosts in FreeIPA (4.9 or later). Run it on a machine of the domain, from\n\
         # this file, with a ticket of somebody who may: kinit admin; sh FILE\n\
         # It ends at the first error. To begin anew: ipa dnszone-del NAME\n\
         set -eu\n\
         zone={}\n\
         ipa dnszone-add \"$zone\" --name-server={} --skip-nameserver-check \\\n    \
             --admin-email={} --refresh={} --retry={} --expire={} --minimum={} \\\n    \
             --ttl={ttl} --default-ttl={ttl}\n\
         ipa dnsrecord-add \"$zone\" ns --a-rec={SERVER_ADDRESS} --ttl={ttl}\n\
         ipa dnsrecord-add \"$zone\" @ --ns-rec={} --force",
        quoted(&origin),
        quoted(&name_server),
        quoted(&mailbox),
        soa.refresh().as_secs(),
        soa.retry().as_secs(),
        soa.expire().as_secs(),
        soa.minimum().as_secs(),
        quoted(&name_server),
    )
}

/// Writes the commands that hand the lines after [`RECORDS`] to FreeIPA, many in one request.
///
/// The Python has no functions: `ipa console` runs it with `api` as a local variable, which a function would
/// not see.
fn write_program(zone: &SyntheticZone, batch: NonZeroU32, file: &mut impl Write) -> io::Result<()> {
    let ttl = zone.ttl.as_secs();
    writeln!(
        file,
        r#"export zone
program=$(mktemp)
trap 'rm -f "$program"' EXIT
cat > "$program" <<'PYTHON'
import itertools
import os
import sys

zone = os.environ['zone']
done = 0
while True:
    methods = []
    for line in itertools.islice(sys.stdin, {batch}):
        name, address = line.split()
        options = {{'arecord': [address], 'dnsttl': {ttl}}}
        methods.append({{'method': 'dnsrecord_add', 'params': [[zone, name], options]}})
    if not methods:
        break
    for method, result in zip(methods, api.Command.batch(*methods)['results']):
        if result['error'] is not None:
            sys.exit('%s: %s' % (method['params'][0][1], result['error']))
    done += len(methods)
print('%d records added' % done)
PYTHON
sed '1,/^{RECORDS}$/d' "$0" | ipa console "$program"
exit
{RECORDS}"#
    )
}

/// A word that the shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ZoneFormat;

    fn text(zone: &str, records: u32, batch: u32) -> String {
        let zone = SyntheticZone::named(zone, records, Duration::from_secs(5)).unwrap();
        let batch = NonZeroU32::new(batch).unwrap();
        let mut octets = Vec::new();
        zone.write_as(&ZoneFormat::IpaScript { batch }, &mut octets).unwrap();
        String::from_utf8(octets).unwrap()
    }

    #[test]
    fn one_command_for_each_record() {
        let text = text("example.test", 2, 1);
        let (_, commands) = text.split_once("set -eu\n").unwrap();
        let expected = r#"zone='example.test.'
ipa dnszone-add "$zone" --name-server='ns.example.test.' --skip-nameserver-check \
    --admin-email='hostmaster.example.test.' --refresh=3600 --retry=3600 --expire=86400 --minimum=5 \
    --ttl=5 --default-ttl=5
ipa dnsrecord-add "$zone" ns --a-rec=192.0.2.53 --ttl=5
ipa dnsrecord-add "$zone" @ --ns-rec='ns.example.test.' --force
ipa dnsrecord-add "$zone" host-000001 --a-rec=10.0.0.1 --ttl=5
ipa dnsrecord-add "$zone" host-000002 --a-rec=10.0.0.2 --ttl=5
"#;
        assert_eq!(commands, expected);
    }

    #[test]
    fn many_records_in_a_request() {
        let text = text("example.test", 3, 500);
        assert!(text.contains("itertools.islice(sys.stdin, 500)"), "{text}");
        assert!(text.contains("'dnsttl': 5}"), "{text}");
        let (_, records) = text.split_once("\nexit\n#### records\n").unwrap();
        let expected = "host-000001 10.0.0.1\nhost-000002 10.0.0.2\nhost-000003 10.0.0.3\n";
        assert_eq!(records, expected);
    }

    #[test]
    fn the_shell_takes_no_part_of_a_name() {
        let text = text("a'`$(reboot)b.x", 1, 500);
        assert!(text.contains("zone='a'\\''`\\$\\(reboot\\)b.x.'\n"), "{text}");
    }
}
