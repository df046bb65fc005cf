//! CPU time of each thread of a server, over time.

use std::collections::HashMap;

use dnslab_record::{Span, ThreadShare};

/// Threads in a record.
const NAMED: usize = 8;

/// A thread below this share of a CPU is left out.
const LEAST: f64 = 0.005;

#[derive(Debug, Default)]
pub(crate) struct ThreadLog {
    threads: HashMap<u32, Thread>,
    began_ns: Option<i64>,
}

#[derive(Debug)]
struct Thread {
    name: String,
    /// When, and how much CPU time it had used, nanoseconds. Two points with one figure stand for all between
    /// them.
    points: Vec<(i64, u64)>,
}

impl ThreadLog {
    /// Adds a reading of all threads by their ids, at an instant not before the last one. `name` is called
    /// once for each thread.
    pub(crate) fn push(
        &mut self,
        at_ns: i64,
        reading: impl Iterator<Item = (u32, u64)>,
        name: impl Fn(u32) -> String,
    ) {
        self.began_ns.get_or_insert(at_ns);
        for (id, cpu_ns) in reading {
            let thread = self
                .threads
                .entry(id)
                .or_insert_with(|| Thread { name: name(id), points: Vec::new() });
            thread.push(at_ns, cpu_ns);
        }
    }

    /// What the busiest threads used in a span, the busiest first.
    pub(crate) fn busiest(&self, span: Span) -> Vec<ThreadShare> {
        let began_ns = self.began_ns.unwrap_or(0);
        let shares = self.threads.values().map(|thread| ThreadShare {
            name: thread.name.clone(),
            share: thread.share_in(span, began_ns),
        });
        let mut shares: Vec<ThreadShare> = shares.filter(|thread| thread.share >= LEAST).collect();
        shares.sort_by(|one, two| two.share.total_cmp(&one.share).then(one.name.cmp(&two.name)));
        shares.truncate(NAMED);
        shares
    }
}

impl Thread {
    /// What it used in a span, as a share of one CPU.
    fn share_in(&self, span: Span, began_ns: i64) -> f64 {
        let used = self.used_at(span.to_ns, began_ns) - self.used_at(span.from_ns, began_ns);
        // The instant of a sample is that of the first thread's reading. The error for the last thread must not
        // give it more than a CPU.
        (used / span.length_ns().max(1) as f64).clamp(0.0, 1.0)
    }

    fn push(&mut self, at_ns: i64, cpu_ns: u64) {
        if self.points.last().is_some_and(|(_, before)| *before > cpu_ns) {
            // The id was given to a new thread.
            self.points.clear();
        }
        match self.points.as_mut_slice() {
            [.., (_, first), (last_at, last)] if *first == cpu_ns && *last == cpu_ns => {
                *last_at = at_ns;
            }
            _ => self.points.push((at_ns, cpu_ns)),
        }
    }

    /// CPU time at an instant, linearly between the points around it. A thread that came after the first
    /// reading had none before its first point. One that ended keeps what it had.
    fn used_at(&self, at_ns: i64, began_ns: i64) -> f64 {
        let after = self.points.partition_point(|(at, _)| *at < at_ns);
        let before = after.checked_sub(1).map(|place| self.points[place]);
        match (before, self.points.get(after).copied()) {
            (None, Some((first, _))) if first > began_ns && at_ns < first => 0.0,
            (None, first) => first.map_or(0.0, |(_, used)| used as f64),
            (Some((_, last)), None) => last as f64,
            (Some((from, less)), Some((to, more))) => {
                let share = (at_ns - from) as f64 / (to - from) as f64;
                less as f64 + share * (more as f64 - less as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_come_and_go() {
        let mut log = ThreadLog::default();
        let mut push =
            |at, reading: &[(u32, u64)]| log.push(at, reading.iter().copied(), |id| id.to_string());
        push(-100, &[(1, 1_000), (2, 50)]);
        push(0, &[(1, 1_000), (2, 50)]);
        push(100, &[(1, 1_090), (2, 50), (3, 40)]);
        push(200, &[(1, 1_190), (2, 51)]);
        let shares_in = |from, to| {
            let shares = log.busiest(Span::between(from, to));
            shares.into_iter().map(|share| (share.name, share.share)).collect::<Vec<_>>()
        };
        let named = |name: &str, share| (name.to_owned(), share);
        assert_eq!(shares_in(0, 100), [named("1", 0.9), named("3", 0.4)]);
        assert_eq!(shares_in(100, 200), [named("1", 1.0), named("2", 0.01)]);
        assert_eq!(shares_in(50, 150), [named("1", 0.95), named("3", 0.4), named("2", 0.005)]);
        assert_eq!(shares_in(-100, 0), []);
    }

    #[test]
    fn a_quiet_thread_takes_no_room_and_a_record_names_eight() {
        let mut log = ThreadLog::default();
        for at in 0..1_000 {
            log.push(at * 100, (0..20).map(|id| (id, 5)), |id| format!("t{id}"));
        }
        assert!(log.threads.values().all(|thread| thread.points.len() == 2));
        log.push(100_000, (0..20).map(|id| (id, 5 + u64::from(id))), |_| String::new());
        let shares = log.busiest(Span::between(99_900, 100_000));
        assert_eq!(shares.len(), NAMED);
        assert_eq!((shares[0].name.as_str(), shares[0].share), ("t19", 0.19));
    }

    #[test]
    fn an_id_may_be_given_to_another_thread() {
        let mut log = ThreadLog::default();
        for (at, used) in [(0, 900), (100, 950), (200, 20)] {
            log.push(at, [(7, used)].into_iter(), |_| "x".to_owned());
        }
        assert_eq!(log.busiest(Span::between(0, 200))[0].share, 0.1);
    }
}
