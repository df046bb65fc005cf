//! The output of other load generators, as results.
//!
//! The principal function is [`read`]. It makes a [`ForeignRun`] of each run of a file: of what dnsperf prints, or of
//! dns-metrics, the JSON that tools of DNS-OARC have in common. [`results_of`] makes the session and the records of a
//! results directory of them, so that reports and comparisons treat them as any other.
//!
//! Modules, in the order of reading:
//!
//! - `dnsperf`, `dns_metrics`: the two readers. `options`: what the command line of dnsperf asks for.
//! - `statistics`: a run, whatever it was read from, and the sums that must hold.
//! - `record`: session and records.
//! - `error`: why a file cannot be imported, with its line.
//!
//! What always holds:
//!
//! - Invariant: an imported run has the totals that were printed, and no figure that was not.
//! - Invariant: it opens no file and reads no clock. Each list and number has a bound, since anybody may have written
//!   the file.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod dns_metrics;
mod dnsperf;
mod error;
mod options;
mod record;
mod statistics;
#[cfg(test)]
mod tests;

pub use error::ImportError;
pub use options::DnsperfOptions;
pub use record::{ImportFacts, ImportSource, results_of};
pub use statistics::{ForeignInterval, ForeignRun, ForeignStatistics};

/// Runs in one file, at most.
const MAX_RUNS: usize = 5_000;

/// Intervals in one run, at most: more than two days of seconds.
const MAX_INTERVALS: usize = 200_000;

/// A count of queries, at most: so many a histogram holds.
const MAX_COUNT: u64 = 1 << 48;

/// A time of a run, nanoseconds, at most (115 days): so long a record is.
const MAX_NS: u64 = 10_000_000_000_000_000;

/// Refuses more intervals than are read.
fn check_intervals(found: usize) -> Result<(), ImportError> {
    match found > MAX_INTERVALS {
        true => Err(ImportError::TooMany { what: "intervals", found, most: MAX_INTERVALS }),
        false => Ok(()),
    }
}

/// Every run of a file, in its order: text that dnsperf prints (2.0 and later), or dns-metrics.
///
/// # Errors
/// When the file holds no run, a run is not whole, or its sums do not hold. The error names the line.
pub fn read(octets: &[u8]) -> Result<Vec<ForeignRun>, ImportError> {
    let mut first = octets.iter().filter(|octet| !octet.is_ascii_whitespace());
    let runs = match (first.next(), first.next()) {
        // What dnsperf says of itself begins with `[Status]`.
        (Some(b'['), Some(letter)) if letter.is_ascii_alphabetic() => {
            dnsperf::read(&String::from_utf8_lossy(octets))?
        }
        (Some(b'{' | b'['), _) => dns_metrics::read(octets)?,
        _ => dnsperf::read(&String::from_utf8_lossy(octets))?,
    };
    runs.iter().try_for_each(ForeignRun::check_sum)?;
    match runs.len() {
        0 => Err(ImportError::NoRun),
        found if found > MAX_RUNS => {
            Err(ImportError::TooMany { what: "runs", found, most: MAX_RUNS })
        }
        _ => Ok(runs),
    }
}
