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
        Self { schedule, clients, next_client: 0, picker, turns: None }
    }

    /// The same arrivals, with the schedule at rest outside the slices of this load.
    #[must_use]
    pub fn in_turns(self, turns: Turns) -> Self {
        Self { turns: Some(turns), ..self }
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
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

    #[test]
    fn the_same_seed_gives_the_same_arrivals() {
        let drawn = || merged(Pace::Poisson, Selection::Uniform, 3);
        assert_eq!(drawn(), drawn());
    }
}
