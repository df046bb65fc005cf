//! Counters in the text format of Prometheus ("Exposition formats", version 0.0.4).

pub(super) struct Metrics<'a>(&'a str);

impl<'a> Metrics<'a> {
    pub(super) fn new(page: &'a str) -> Self {
        Self(page)
    }

    /// The sum of all counts of the metric `name` that have each of `labels`, written `name="value"` or as
    /// the beginning of that. `None` if there is none: most servers leave a count out until it is 1.
    pub(super) fn sum(&self, name: &str, labels: &[&str]) -> Option<u64> {
        let counts = self.0.lines().filter_map(|line| value(line, name, labels));
        counts.map(|count| count as u64).reduce(|sum, count| sum + count)
    }

    /// The sum of a metric in seconds, in nanoseconds.
    pub(super) fn sum_of_seconds_ns(&self, name: &str) -> Option<u64> {
        let seconds = self.0.lines().filter_map(|line| value(line, name, &[]));
        seconds.reduce(|sum, seconds| sum + seconds).map(|seconds| (seconds * 1e9) as u64)
    }
}

/// The value on this line, if the line has this name and these labels.
fn value(line: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let rest = line.strip_prefix(name)?;
    let (own, number) = match rest.strip_prefix('{') {
        Some(rest) => rest.rsplit_once('}')?,
        None => ("", rest),
    };
    let has = |label: &&str| own.split(',').any(|its| its.starts_with(*label));
    if !labels.iter().all(has) {
        return None;
    }
    // A time stamp may follow. Go writes a million as 1e+06. A count has no fraction, and below 2^53 it is
    // exact.
    let value: f64 = number.strip_prefix(' ')?.split(' ').next()?.parse().ok()?;
    (value >= 0.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_by_name_and_labels() {
        let page = "# HELP asked_total 5\nasked_total{proto=\"udp\",server=\"dns://127.0.0.1:1\"} 3\n\
                    asked_total{proto=\"tcp\",server=\"dns://127.0.0.1:1\"} 4\n\
                    asked_total{proto=\"tcp\",server=\"tls://127.0.0.1:2\"} 1e+06 1395066363000\n\
                    asked_total_more 9\nplain 7\nbroken x\n";
        let metrics = Metrics::new(page);
        for (name, labels, expected) in [
            ("asked_total", &[] as &[&str], Some(1_000_007)),
            ("asked_total", &["proto=\"tcp\""], Some(1_000_004)),
            ("asked_total", &["proto=\"tcp\"", "server=\"dns:"], Some(4)),
            ("asked_total", &["proto=\"quic\""], None),
            ("plain", &[], Some(7)),
            ("plain", &["a=\"b\""], None),
            ("broken", &[], None),
            ("asked", &[], None),
        ] {
            assert_eq!(metrics.sum(name, labels), expected, "{name} {labels:?}");
        }
        let page = "took_seconds_sum{to=\"a\"} 0.25\ntook_seconds_sum{to=\"b\"} 1.5e-09\n";
        assert_eq!(Metrics::new(page).sum_of_seconds_ns("took_seconds_sum"), Some(250_000_001));
        assert_eq!(Metrics::new(page).sum_of_seconds_ns("took_seconds"), None);
    }
}
