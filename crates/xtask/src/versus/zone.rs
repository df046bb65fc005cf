//! The zone of all queries, as zone file and as query file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::process;

/// Name of the zone; `.test` is never delegated (RFC 6761, section 6.2).
pub(crate) const ORIGIN: &str = "versus.test";
/// Each has one address record.
const NAMES: u32 = 1_000;

#[derive(Clone, Debug)]
pub(crate) struct ZoneFiles {
    /// Master file (RFC 1035, section 5).
    pub(crate) zone: PathBuf,
    /// One query for each name, in dnsperf's format, which dnslab reads too.
    pub(crate) queries: PathBuf,
}
/// # Errors
/// When they cannot be written.
pub(crate) fn write(folder: &Path) -> Result<ZoneFiles> {
    let files = ZoneFiles { zone: folder.join("versus.zone"), queries: folder.join("queries") };
    for (path, text) in [(&files.zone, zone()), (&files.queries, queries())] {
        process::write(path, text)?;
    }
    Ok(files)
}

fn zone() -> String {
    let mut text = format!(
        "$ORIGIN {ORIGIN}.\n$TTL 300\n\
         @ IN SOA ns hostmaster 1 7200 3600 1209600 300\n@ IN NS ns\nns IN A 192.0.2.53\n"
    );
    for number in 0..NAMES {
        let address = format!("10.0.{}.{}", number / 250, number % 250 + 1);
        writeln!(text, "{} IN A {address}", label(number)).expect("a string takes all");
    }
    text
}

fn queries() -> String {
    (0..NAMES).map(|number| format!("{}.{ORIGIN} A\n", label(number))).collect()
}

/// All names have the same length, as those of hosts in numbered ranges.
fn label(number: u32) -> String {
    format!("host-{number:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_has_its_record() {
        let (zone, queries) = (zone(), queries());
        assert_eq!(queries.lines().count(), NAMES as usize);
        for line in queries.lines() {
            let label = line.split('.').next().unwrap();
            assert_eq!(zone.matches(&format!("\n{label} IN A 10.0.")).count(), 1, "{line}");
        }
    }
}
