//! What a server in a cluster publishes for Prometheus: its process, and what it counts, as CoreDNS has it.

use std::collections::BTreeMap;

use super::coredns::read_metrics;
use super::metrics::Metrics;

/// What a server has used and counted since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Published {
    /// CPU time of its process, nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Resident memory of its process, octets.
    pub(crate) memory_octets: u64,
    /// When its process began, seconds since 1970 in UTC, rounded; 0 if it does not say.
    pub(crate) started: u64,
    /// Threads that run its code at one time, if it says so.
    pub(crate) threads: Option<u64>,
    /// What it counted, by the common names.
    pub(crate) counts: BTreeMap<String, u64>,
}

/// Reads a page of metrics. Fails with half a sentence if nothing of a DNS server is on it.
pub(crate) fn published(page: &str) -> Result<Published, String> {
    // What was cut in the middle has other sums.
    if !page.ends_with('\n') {
        return Err("its metrics end in the middle of a line".to_owned());
    }
    let metrics = Metrics::new(page);
    let (cpu_ns, counts) =
        (metrics.sum_of_seconds_ns("process_cpu_seconds_total"), read_metrics(&metrics));
    if cpu_ns.is_none() && counts.is_empty() {
        return Err(
            "its metrics have neither process_cpu_seconds_total nor what CoreDNS counts".to_owned()
        );
    }
    Ok(Published {
        cpu_ns: cpu_ns.unwrap_or(0),
        memory_octets: metrics.sum("process_resident_memory_bytes", &[]).unwrap_or(0),
        started: metrics.sum("process_start_time_seconds", &[]).unwrap_or(0),
        threads: metrics.sum("go_sched_gomaxprocs_threads", &[]),
        counts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_what_it_counted() {
        let page = "process_cpu_seconds_total 1.5\nprocess_resident_memory_bytes 4.9e+07\n\
                    go_sched_gomaxprocs_threads 2\ncoredns_dns_requests_total{proto=\"udp\",server=\"dns://:53\"} 7\n";
        let read = published(page).unwrap();
        assert_eq!(
            (read.cpu_ns, read.memory_octets, read.threads),
            (1_500_000_000, 49_000_000, Some(2))
        );
        assert_eq!(read.counts.get("queries"), Some(&7));
        assert!(published("up 1\n").unwrap_err().contains("process_cpu_seconds_total"));
    }
}
