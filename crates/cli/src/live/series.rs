//! A load over time, in a bounded number of points.

use dnslab_figures::{Histogram, Interval};

/// Points of a series, at most. When there are more, each two become one: a chart has no more columns.
pub(crate) const MAX_POINTS: usize = 240;

/// Bounds of the latencies that are counted together, for each power of ten: neighbours differ by 12 %, which no
/// chart shows.
const EACH_DECADE: usize = 20;

/// The shortest latency told from shorter ones, nanoseconds.
const SHORTEST_NS: f64 = 1e3;

/// From 1 us to 100 s, beyond which no histogram tells latencies apart.
const DECADES: usize = 8;

/// The bounds of latencies that are counted together, nanoseconds.
pub(crate) fn bounds_ns() -> Vec<u64> {
    (0..=DECADES * EACH_DECADE).map(|place| bound_ns(place).round() as u64).collect()
}

fn bound_ns(place: usize) -> f64 {
    SHORTEST_NS * 10_f64.powf(place as f64 / EACH_DECADE as f64)
}

/// Latencies by [`bounds_ns`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LatencyCounts(Vec<u64>);

impl LatencyCounts {
    pub(crate) fn of(latency: &Histogram, bounds_ns: &[u64]) -> Self {
        Self(if latency.is_empty() { Vec::new() } else { latency.counts_between(bounds_ns) })
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        for (own, more) in self.0.iter_mut().zip(&other.0) {
            *own += more;
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The shortest and the longest latency, as bounds in nanoseconds; `None` if there is none.
    pub(crate) fn range_ns(&self) -> Option<(f64, f64)> {
        let first = self.0.iter().position(|count| *count > 0)?;
        let last = self.0.iter().rposition(|count| *count > 0)?;
        let shorter = bound_ns(first) * SHORTEST_NS / bound_ns(1);
        Some((shorter, bound_ns(last)))
    }

    /// How many lie between two latencies in nanoseconds. Those of a part that lies there in part are spread evenly
    /// over it.
    pub(crate) fn between_ns(&self, from_ns: f64, to_ns: f64) -> f64 {
        let place = |ns: f64| (ns / SHORTEST_NS).log10() * EACH_DECADE as f64;
        // The part of a place ends at its bound.
        let (from, to) = (place(from_ns) + 1.0, place(to_ns) + 1.0);
        let share = |at: usize| (to.min(at as f64 + 1.0) - from.max(at as f64)).max(0.0);
        self.0.iter().enumerate().map(|(at, count)| *count as f64 * share(at)).sum()
    }

    /// A latency that the share `quantile` of all does not exceed, nanoseconds.
    fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let needed = (self.total() as f64 * quantile).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            seen >= needed
        };
        let place = self.0.iter().position(reached)?;
        Some(bound_ns(place.min(DECADES * EACH_DECADE)).round() as u64)
    }
}

/// A mean that grows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    pub(crate) fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    pub(crate) fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

/// CPU time as a share of the load's own time, in [0, 1]: neither the ends of a turn nor the samples of the server are
/// those of an interval. `None` where the load had no turn.
pub(super) fn share_of(used_ns: u64, own_ns: u64) -> Option<f64> {
    (own_ns > 0).then(|| (used_ns as f64 / own_ns as f64).min(1.0))
}

/// What the two sides used: the server as a share of its CPUs and in octets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Use {
    pub(crate) server_cpu: Option<f64>,
    /// CPU time of the busiest load worker, nanoseconds.
    pub(crate) load_cpu_ns: u64,
    pub(crate) memory_octets: Option<u64>,
}

/// One point of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// Where it begins, nanoseconds since the load began.
    pub(crate) at_ns: u64,
    /// How long it lasts, nanoseconds.
    pub(crate) length_ns: u64,
    own_ns: u64,
    due: u64,
    answered: u64,
    /// Queries that ended without an answer.
    pub(crate) lost: u64,
    /// [`QUANTILES`] of the latency in nanoseconds.
    pub(crate) quantiles_ns: [Option<u64>; 3],
    /// CPU use of the server as a share of its CPUs.
    pub(crate) server_cpu: Mean,
    load_cpu_ns: u64,
    /// Memory of the server, octets.
    pub(crate) memory_octets: Option<u64>,
}

/// The quantiles of the latency that are shown.
pub(crate) const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// Their names.
pub(crate) const QUANTILE_NAMES: [&str; 3] = ["p50", "p95", "p99"];

impl Point {
    /// Queries answered per second of the load's own time.
    pub(crate) fn answered_qps(&self) -> f64 {
        self.answered as f64 * 1e9 / self.own_ns.max(1) as f64
    }

    /// Queries that became due per second of the load's own time.
    pub(crate) fn due_qps(&self) -> f64 {
        self.due as f64 * 1e9 / self.own_ns.max(1) as f64
    }

    /// CPU use of the busiest load worker in [0, 1].
    pub(crate) fn load_cpu(&self) -> Option<f64> {
        share_of(self.load_cpu_ns, self.own_ns)
    }

    /// Its middle, seconds since the load began.
    pub(crate) fn at_seconds(&self) -> f64 {
        (self.at_ns as f64 + self.length_ns as f64 / 2.0) / 1e9
    }

    fn merge(&mut self, other: &Self) {
        self.length_ns = other.at_ns + other.length_ns - self.at_ns;
        self.own_ns += other.own_ns;
        self.due += other.due;
        self.answered += other.answered;
        self.lost += other.lost;
        self.server_cpu.merge(other.server_cpu);
        self.load_cpu_ns += other.load_cpu_ns;
        self.memory_octets = self.memory_octets.max(other.memory_octets);
    }
}

/// The points of a load, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    /// Length of a point's part of the time, nanoseconds.
    width_ns: u64,
    points: Vec<Kept>,
}

#[derive(Clone, Debug)]
struct Kept {
    point: Point,
    /// From which the quantiles of several intervals follow.
    counts: LatencyCounts,
    is_merged: bool,
}

/// Intervals of a point where loads take turns: a load has its turns in less than each of them.
const OF_TURNS: u64 = 3;

impl Series {
    /// Adds the interval that follows the others.
    pub(crate) fn add(&mut self, interval: &Interval, counts: LatencyCounts, used: Use) {
        let own_ns = interval.own_ns.unwrap_or(interval.length_ns);
        if own_ns == 0 && interval.answered == 0 {
            // Another load had its turn.
            return;
        }
        if self.width_ns == 0 {
            let together = if interval.own_ns.is_some() { OF_TURNS } else { 1 };
            self.width_ns = (interval.length_ns * together).max(1);
        }
        let mut point = Point {
            at_ns: interval.at_ns,
            length_ns: interval.length_ns,
            own_ns,
            due: interval.due,
            answered: interval.answered,
            lost: interval.lost,
            quantiles_ns: [interval.p50_ns, interval.p95_ns, interval.p99_ns],
            load_cpu_ns: used.load_cpu_ns,
            memory_octets: used.memory_octets,
            ..Point::default()
        };
        point.server_cpu.add(used.server_cpu);
        self.push(Kept { point, counts, is_merged: false });
        while self.points.len() > MAX_POINTS {
            self.width_ns *= 2;
            for kept in std::mem::take(&mut self.points) {
                self.push(kept);
            }
        }
    }

    fn push(&mut self, kept: Kept) {
        let place = |kept: &Kept| kept.point.at_ns / self.width_ns;
        match self.points.last_mut() {
            Some(last) if place(last) == place(&kept) => {
                last.point.merge(&kept.point);
                last.counts.merge(&kept.counts);
                last.is_merged = true;
            }
            _ => self.points.push(kept),
        }
    }

    pub(crate) fn points(&self) -> Vec<Point> {
        self.points.iter().map(finished).collect()
    }
}

/// With the quantiles of all that was merged into it.
fn finished(kept: &Kept) -> Point {
    let mut point = kept.point.clone();
    if kept.is_merged {
        point.quantiles_ns = QUANTILES.map(|quantile| kept.counts.quantile_ns(quantile));
    }
    point
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn interval(number: u64, answered: u64, latency: &Histogram) -> Interval {
        let quantile = |share| latency.quantile_ns(share);
        Interval {
            at_ns: number * SECOND,
            length_ns: SECOND,
            due: answered,
            answered,
            p50_ns: quantile(0.5),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            ..Interval::default()
        }
    }

    #[test]
    fn a_day_takes_no_more_points_than_a_chart_has_columns() {
        let bounds = bounds_ns();
        let mut latency = Histogram::new();
        latency.record_many_ns(80_000, 90);
        latency.record_many_ns(3_000_000, 10);
        let counts = LatencyCounts::of(&latency, &bounds);
        let mut series = Series::default();
        const DAY: u64 = 24 * 3_600;
        for number in 0..DAY {
            series.add(&interval(number, 100, &latency), counts.clone(), Use::default());
        }
        let points = series.points();
        assert!((MAX_POINTS / 2..=MAX_POINTS).contains(&points.len()), "{}", points.len());
        assert_eq!(points[0].at_ns, 0);
        let last = points.last().unwrap();
        assert_eq!(last.at_ns + last.length_ns, DAY * SECOND);
        for pair in points.windows(2) {
            assert_eq!(pair[0].at_ns + pair[0].length_ns, pair[1].at_ns);
        }
        for point in &points {
            assert!((point.answered_qps() - 100.0).abs() < 1e-6, "{point:?}");
            let [p50, p95, p99] = point.quantiles_ns.map(Option::unwrap);
            assert!((80_000..90_000).contains(&p50), "{p50}");
            assert!((3_000_000..3_400_000).contains(&p95) && p95 == p99, "{p95}");
        }
    }

    #[test]
    fn counts_are_found_where_the_latencies_were() {
        let mut latency = Histogram::new();
        latency.record_many_ns(500, 1);
        latency.record_many_ns(50_000, 100);
        latency.record_many_ns(200_000_000_000, 2);
        let counts = LatencyCounts::of(&latency, &bounds_ns());
        assert_eq!(counts.total(), 103);
        assert!((counts.between_ns(30_000.0, 90_000.0) - 100.0).abs() < 1e-6);
        let (from, to) = counts.range_ns().unwrap();
        assert!(from <= 1_000.0 && to >= 1e11, "{from} {to}");
        assert_eq!(LatencyCounts::default().range_ns(), None);
    }

    #[test]
    fn turns_of_others_are_no_points() {
        let mut series = Series::default();
        let mut add = |number, own_ns, answered| {
            let interval =
                Interval { own_ns: Some(own_ns), ..interval(number, answered, &Histogram::new()) };
            series.add(&interval, LatencyCounts::default(), Use::default());
        };
        add(0, 50_000_000, 500);
        add(1, 0, 0);
        add(2, 50_000_000, 500);
        add(3, 0, 0);
        let points = series.points();
        assert_eq!(points.len(), 1, "{points:?}");
        assert!((points[0].answered_qps() - 10_000.0).abs() < 1e-6);
    }
}
