//! What one worker has to send, when, and for which of its clients.

use crate::{Picker, Schedule, Turns};

/// One query that becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, in nanoseconds since the load began.
    pub due_ns: u64,
    /// The client that sends it: an index into the clients of its worker, from 0.
    pub client: u32,
    /// The query: an index into the query list.
    pub query: u32,
}

/// The arrivals of one worker, in order of time. Each due instant goes to the next of its clients in turn,
/// with the query that the picker gives.
///
/// Worker `s` of `k` may have the clients `s`, `s + k`, ... Then the same clients send the same queries for
/// any number of workers that divides the number of clients, as long as pace and selection draw nothing at
/// random.
#[derive(Clone, Debug)]
pub struct Arrivals {
    schedule: Schedule,
    clients: u32,
    next_client: u32,
    picker: Picker,
    /// The first of those that are to come, if it was looked at.
    upcoming: Option<Arrival>,
    /// The slices in which the schedule goes on; without them it always does.
    turns: Option<Turns>,
}

impl Arrivals {
    /// The arrivals of a worker that has this number of clients.
    ///
    /// # Panics
    /// When there is no client.
    #[must_use]
    pub fn new(schedule: Schedule, clients: u32, picker: Picker) -> Self {
        assert!(clients > 0, "a worker without clients has no arrivals");
        Self { schedule, clients, next_client: 0, picker, upcoming: None, turns: None }
    }

    /// Arrivals with the schedule at rest outside the slices of this load.
    #[must_use]
    pub fn in_turns(self, turns: Turns) -> Self {
        Self { turns: Some(turns), ..self }
    }

    /// When the next one is due; `None` at the end of the schedule.
    pub fn next_due(&mut self) -> Option<u64> {
        self.upcoming = self.upcoming.take().or_else(|| self.draw());
        self.upcoming.as_ref().map(|arrival| arrival.due_ns)
    }

    /// The next one if it is not due after this instant.
    #[inline]
    pub fn next_until(&mut self, last_ns: u64) -> Option<Arrival> {
        let next = self.upcoming.take().or_else(|| self.draw())?;
        if next.due_ns > last_ns {
            self.upcoming = Some(next);
            return None;
        }
        Some(next)
    }

    /// Passes over those that are due before this instant, and returns how many they are, as
    /// [`Schedule::skip_until`] does. They take no query from the list.
    pub fn skip_until(&mut self, until_ns: u64) -> u64 {
        if self.next_due().is_none_or(|due_ns| due_ns >= until_ns) {
            return 0;
        }
        self.upcoming = None;
        let own_ns = self.turns.as_ref().map_or(until_ns, |turns| turns.own_between(0, until_ns));
        let skipped = self.schedule.skip_until(own_ns);
        let next = u64::from(self.next_client).wrapping_add(skipped) % u64::from(self.clients);
        self.next_client = u32::try_from(next).expect("it is below the number of clients");
        1 + skipped
    }

    /// The client that the next of those has which were not looked at.
    #[must_use]
    pub fn next_client(&self) -> u32 {
        self.next_client
    }

    #[inline]
    fn draw(&mut self) -> Option<Arrival> {
        let due_ns = self.schedule.next()?;
        let due_ns = match &self.turns {
            Some(turns) => turns.instant_of(due_ns)?,
            None => due_ns,
        };
        let client = self.next_client;
        self.next_client += 1;
        if self.next_client == self.clients {
            self.next_client = 0;
        }
        Some(Arrival { due_ns, client, query: self.picker.next_query() })
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        self.upcoming.take().or_else(|| self.draw())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Pace, Rate, Selection, SlicePlan};

    /// Of 12 clients and 7 queries, by time, with the client's number over all workers.
    fn merged(pace: Pace, selection: Selection, shards: u32) -> Vec<Arrival> {
        let mut all: Vec<Arrival> = (0..shards)
            .flat_map(|shard| {
                let schedule = Schedule::new(&Rate::Constant(50_000.0), pace, 3, shard, shards);
                let picker = Picker::new(selection, 0.0, 7, 3, (shard, shards));
                Arrivals::new(schedule, 12 / shards, picker).take(600 / shards as usize).map(
                    move |arrival| Arrival { client: arrival.client * shards + shard, ..arrival },
                )
            })
            .collect();
        all.sort_by_key(|arrival| arrival.due_ns);
        all
    }

    #[test]
    fn the_number_of_workers_changes_nothing() {
        let one = merged(Pace::Constant, Selection::InOrder, 1);
        for (n, arrival) in (0u32..).zip(&one) {
            let due_ns = u64::from(n) * 20_000;
            assert_eq!(*arrival, Arrival { due_ns, client: n % 12, query: n % 7 });
        }
        for shards in [2, 3, 4, 6, 12] {
            assert_eq!(merged(Pace::Constant, Selection::InOrder, shards), one, "{shards} workers");
        }
    }

    #[test]
    fn a_schedule_rests_while_other_loads_have_their_turns() {
        let plan = SlicePlan {
            slice: Duration::from_millis(10),
            lead: Duration::ZERO,
            tail: Duration::ZERO,
            mirrored: true,
        };
        for own in plan.turns(3, Duration::from_millis(600), 5) {
            let arrivals = || {
                let schedule = Schedule::new(&Rate::Constant(50_000.0), Pace::Poisson, 3, 0, 1);
                Arrivals::new(schedule, 4, Picker::new(Selection::Uniform, 0.0, 7, 3, (0, 1)))
            };
            let sliced: Vec<Arrival> = arrivals().in_turns(own.clone()).collect();
            // As many as in 200 ms without turns, and the same gaps on the load's own time.
            let whole: Vec<Arrival> =
                arrivals().take_while(|arrival| arrival.due_ns < 200_000_000).collect();
            assert_eq!(sliced.len(), whole.len());
            for (sliced, whole) in sliced.iter().zip(&whole) {
                assert!(own.is_own(sliced.due_ns));
                assert_eq!(own.own_between(0, sliced.due_ns), whole.due_ns);
                assert_eq!((sliced.client, sliced.query), (whole.client, whole.query));
            }
        }
    }

    /// However many are passed over: what follows is what follows without it, and nobody is lost or counted twice.
    #[test]
    fn what_is_passed_over_is_counted() {
        let seconds = |text: &str| text.parse::<Rate>().unwrap();
        let plan = SlicePlan {
            slice: Duration::from_millis(10),
            lead: Duration::ZERO,
            tail: Duration::ZERO,
            mirrored: true,
        };
        let turns = plan.turns(2, Duration::from_millis(600), 5).remove(1);
        for (rate, is_exact) in [
            ("1000000000", true),
            ("7001", true),
            ("steps:300,0,90000/50ms", true),
            ("ramp:0..80000/200ms", true),
        ]
        .into_iter()
        .flat_map(|(rate, _)| [(rate, true), (rate, false)])
        {
            let pace = if is_exact { Pace::Constant } else { Pace::Poisson };
            for (shard, turns) in [(0, None), (2, None), (0, Some(turns.clone()))] {
                let schedule = Schedule::new(&seconds(rate), pace, 3, shard, 3);
                let picker = Picker::new(Selection::InOrder, 0.0, 7, 3, (shard, 3));
                let whole = Arrivals::new(schedule, 5, picker);
                let mut whole = match &turns {
                    Some(turns) => whole.in_turns(turns.clone()),
                    None => whole,
                };
                // A billion a second are counted one by one for a millisecond only.
                let until =
                    if rate.len() > 9 && rate.starts_with('1') { 1_000_003 } else { 130_000_003 };
                let mut skipping = whole.clone();
                let first = skipping.next_until(until / 7).map_or(0, |_| 1);
                let skipped = first + skipping.skip_until(until);
                let mut counted = 0;
                while whole.next_until(until - 1).is_some() {
                    counted += 1;
                }
                let what =
                    format!("{rate}, {pace:?}, worker {shard}, in turns: {}", turns.is_some());
                let next = skipping.next();
                assert!(next.is_none_or(|next| next.due_ns >= until), "{what}: {next:?}");
                if is_exact {
                    let (due, client) =
                        (|arrival: Arrival| arrival.due_ns, |arrival: Arrival| arrival.client);
                    let expected = whole.next();
                    assert_eq!(skipped, counted, "{what}");
                    assert_eq!(next.map(due), expected.map(due), "{what}");
                    assert_eq!(next.map(client), expected.map(client), "{what}");
                } else {
                    // A Poisson count is off from its mean by six times its root once in a billion.
                    let off = (skipped as f64 - counted as f64).abs();
                    assert!(
                        off <= 6.0 * (counted as f64).sqrt() + 2.0,
                        "{what}: {skipped} of {counted}"
                    );
                }
                assert_eq!(skipping.skip_until(until), 0, "{what}");
            }
        }
        // An hour of a billion a second, at once.
        let schedule = Schedule::new(&Rate::Constant(1e9), Pace::Constant, 1, 0, 1);
        let picker = Picker::new(Selection::InOrder, 0.0, 7, 3, (0, 1));
        let mut arrivals = Arrivals::new(schedule, 1, picker);
        assert_eq!(arrivals.skip_until(3_600_000_000_000), 3_600_000_000_000);
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals() {
        let drawn = || merged(Pace::Poisson, Selection::Uniform, 3);
        assert_eq!(drawn(), drawn());
    }
}
