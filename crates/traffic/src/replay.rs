//! Captured clients, played again: which of them, how fast, and how many times as many.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use dnslab_wire::Query;

use crate::{ClientQuery, Purpose, drawn_for};

/// A query as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenQuery {
    /// When, in nanoseconds since any instant that is the same for all.
    pub at_ns: u64,
    /// Who sent it.
    pub client: IpAddr,
    /// What was asked.
    pub query: Query,
}

/// How captured clients are played.
///
/// More load comes from more clients, never from clients that ask faster than they did: the capture is cut into
/// chunks of the load's length, and the clients of several chunks are played side by side, each chunk's as
/// clients of their own (DNS Shotgun: "DNS Shotgun: Realistic DNS benchmarking", OARC 2021).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayPlan {
    /// Chunks that are played side by side. Of a last fraction of a chunk, that share of the clients is played.
    pub factor: f64,
    /// How much faster than in the capture all clients ask; 1 for the time as it was.
    pub speed: f64,
    /// Length of the load.
    pub length: Duration,
    /// A capture may have a query so much later than one that came after it.
    pub disorder: Duration,
    /// Chooses the clients of a fraction.
    pub seed: u64,
}

impl ReplayPlan {
    /// Queries after each other that are beyond the end of a chunk: then it is the end. Others may still belong before
    /// it.
    pub const BEYOND: u32 = 16;

    /// How many chunks are read.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.factor.ceil().max(1.0) as u32
    }

    /// Length of a chunk, in the time of the capture.
    #[must_use]
    pub fn chunk(&self) -> Duration {
        self.length.mul_f64(self.speed)
    }

    /// The clients' queries, in order of time. `capture` reads the capture from its beginning, as often as
    /// there are chunks; `begin_ns` is the instant of its first query. Clients are numbered in the order in
    /// which they first ask.
    ///
    /// An error of `capture` is the last item. What was read ahead of it is not given any more.
    pub fn play<I, E>(
        self,
        begin_ns: u64,
        capture: impl FnMut() -> I,
    ) -> impl Iterator<Item = Result<ClientQuery, E>>
    where
        I: Iterator<Item = Result<SeenQuery, E>>,
    {
        let mut chunks: Vec<Chunk<I>> = std::iter::repeat_with(capture)
            .zip(0..self.chunks())
            .map(|(seen, number)| Chunk::new(&self, begin_ns, number, seen))
            .collect();
        let mut numbers: HashMap<(u32, IpAddr), u32> = HashMap::new();
        let mut next: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut failure = None;
        for (place, chunk) in chunks.iter_mut().enumerate() {
            match chunk.next_due() {
                Ok(due) => next.extend(due.map(|due| Reverse((due, place)))),
                Err(error) => failure = Some(error),
            }
        }
        std::iter::from_fn(move || {
            if let Some(error) = failure.take() {
                next.clear();
                return Some(Err(error));
            }
            let Reverse((due_ns, place)) = next.pop()?;
            let chunk = &mut chunks[place];
            let SeenQuery { client, query, .. } = chunk.take_next();
            match chunk.next_due() {
                Ok(due) => next.extend(due.map(|due| Reverse((due, place)))),
                Err(error) => failure = Some(error),
            }
            let new = numbers.len() as u32;
            let client = *numbers.entry((chunk.number, client)).or_insert(new);
            Some(Ok(ClientQuery { due_ns, client, query }))
        })
    }
}

/// One chunk of a capture, put in order.
struct Chunk<I> {
    seen: I,
    number: u32,
    from_ns: u64,
    to_ns: u64,
    speed: f64,
    disorder_ns: u64,
    /// The clients that are played, out of all, in [0, 1].
    share: f64,
    seed: u64,
    /// Queries by time, and among equals in the order of the capture.
    waiting: BinaryHeap<Reverse<Waiting>>,
    taken: u64,
    newest_ns: u64,
    /// Queries after its end, one after the other.
    beyond: u32,
    is_over: bool,
}

struct Waiting {
    at: (u64, u64),
    query: SeenQuery,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl<E, I: Iterator<Item = Result<SeenQuery, E>>> Chunk<I> {
    fn new(plan: &ReplayPlan, begin_ns: u64, number: u32, seen: I) -> Self {
        let length_ns = nanos(plan.chunk());
        let from_ns = begin_ns.saturating_add(u64::from(number).saturating_mul(length_ns));
        Self {
            seen,
            number,
            from_ns,
            to_ns: from_ns.saturating_add(length_ns),
            speed: plan.speed,
            disorder_ns: nanos(plan.disorder),
            share: (plan.factor - f64::from(number)).min(1.0),
            seed: plan.seed,
            waiting: BinaryHeap::new(),
            taken: 0,
            newest_ns: 0,
            beyond: 0,
            is_over: false,
        }
    }

    /// When its next query is due, in nanoseconds of the load.
    fn next_due(&mut self) -> Result<Option<u64>, E> {
        // A later query of the capture may belong before the first that waits.
        while !self.is_over
            && self.waiting.peek().is_none_or(|Reverse(first)| {
                first.at.0.saturating_add(self.disorder_ns) >= self.newest_ns
            })
        {
            self.read()?;
        }
        let due = |first: &Waiting| ((first.at.0 - self.from_ns) as f64 / self.speed) as u64;
        Ok(self.waiting.peek().map(|Reverse(first)| due(first)))
    }

    fn read(&mut self) -> Result<(), E> {
        let Some(query) = self.seen.next().transpose()? else {
            self.is_over = true;
            return Ok(());
        };
        // One that is out of order is not the end.
        let is_beyond = query.at_ns >= self.to_ns.saturating_add(self.disorder_ns);
        self.beyond = if is_beyond { self.beyond + 1 } else { 0 };
        self.is_over = self.beyond >= ReplayPlan::BEYOND;
        if !is_beyond {
            self.newest_ns = self.newest_ns.max(query.at_ns);
        }
        let is_played = (self.from_ns..self.to_ns).contains(&query.at_ns)
            && (self.share >= 1.0 || self.share > self.drawn(query.client));
        if is_played {
            self.taken += 1;
            self.waiting.push(Reverse(Waiting { at: (query.at_ns, self.taken), query }));
        }
        Ok(())
    }

    fn take_next(&mut self) -> SeenQuery {
        self.waiting.pop().expect("a query is waiting").0.query
    }

    /// For a client of this chunk the same in each replay with this seed.
    fn drawn(&self, client: IpAddr) -> f64 {
        let bits = match client {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        let folded = (bits >> 64) as u64 ^ (bits as u64).rotate_left(32);
        drawn_for(self.seed, Purpose::Presence, folded)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    const PLAN: ReplayPlan = ReplayPlan {
        factor: 1.0,
        speed: 1.0,
        length: Duration::from_nanos(1_000),
        disorder: Duration::ZERO,
        seed: 1,
    };

    fn seen(at_ns: u64, client: u32) -> SeenQuery {
        SeenQuery { at_ns, client: IpAddr::V4(client.into()), query: Query::reserved() }
    }

    fn played(plan: ReplayPlan, capture: &[SeenQuery]) -> Vec<(u64, u32)> {
        let begin_ns = capture.iter().map(|query| query.at_ns).min().unwrap_or(0);
        let queries = plan.play(begin_ns, || capture.iter().cloned().map(Ok::<_, Infallible>));
        queries
            .map(|query| {
                let Ok(ClientQuery { due_ns, client, .. }) = query;
                (due_ns, client)
            })
            .collect()
    }

    #[test]
    fn a_capture_that_cannot_be_read_further_is_no_end() {
        // The second chunk fails, while the first is whole.
        let played: Vec<_> = ReplayPlan { factor: 2.0, ..PLAN }
            .play(0, || {
                let queries = [seen(0, 1), seen(900, 1), seen(1_100, 2), seen(1_200, 2)];
                queries.into_iter().map(Ok).chain([Err("gone")])
            })
            .map(|query| query.map(|query| query.due_ns))
            .collect();
        assert_eq!(played.last(), Some(&Err("gone")));
        assert!(played[..played.len() - 1].iter().all(Result::is_ok), "{played:?}");
        let failed = PLAN.play(0, || std::iter::once(Err::<SeenQuery, _>("gone")));
        assert_eq!(failed.collect::<Vec<_>>(), [Err("gone")]);
    }

    #[test]
    fn clients_keep_their_time() {
        let capture =
            [seen(5_000, 9), seen(5_010, 4), seen(5_010, 9), seen(5_999, 7), seen(6_000, 9)];
        assert_eq!(played(PLAN, &capture), [(0, 0), (10, 1), (10, 0), (999, 2)]);
        let faster = ReplayPlan { speed: 2.0, ..PLAN };
        assert_eq!(played(faster, &capture), [(0, 0), (5, 1), (5, 0), (499, 2), (500, 0)]);
        assert_eq!(played(PLAN, &[]), []);
    }

    #[test]
    fn more_load_is_more_clients() {
        let capture = [seen(0, 1), seen(900, 1), seen(1_100, 1), seen(1_200, 2), seen(2_300, 1)];
        let twice = ReplayPlan { factor: 2.0, ..PLAN };
        // The first client of the first chunk is not that of the second, though they have one address.
        assert_eq!(played(twice, &capture), [(0, 0), (100, 1), (200, 2), (900, 0)]);
        let thrice = ReplayPlan { factor: 3.0, ..PLAN };
        assert_eq!(played(thrice, &capture)[3], (300, 3));
    }

    #[test]
    fn what_was_captured_out_of_order_is_put_in_order() {
        let capture = [seen(0, 1), seen(300, 2), seen(250, 3), seen(301, 4), seen(280, 5)];
        let plan = ReplayPlan { disorder: Duration::from_nanos(50), ..PLAN };
        let due: Vec<u64> = played(plan, &capture).into_iter().map(|(due, _)| due).collect();
        assert_eq!(due, [0, 250, 280, 300, 301]);
    }

    proptest! {
        /// Whole chunks lose nobody and merge nobody; a part of a chunk plays that share of its clients, with
        /// all of their queries.
        #[test]
        fn no_client_is_lost_or_merged(
            gaps in prop::collection::vec((0u64..40, 0u32..50), 1..400),
            factor in 0.1f64..4.0,
        ) {
            let mut at_ns = 7;
            let capture: Vec<_> = gaps
                .iter()
                .map(|(gap, client)| {
                    at_ns += gap;
                    seen(at_ns, *client)
                })
                .collect();
            let begin_ns = capture[0].at_ns;
            let chunk_of = |query: &SeenQuery| ((query.at_ns - begin_ns) / 1_000) as u32;
            let whole = factor.floor();
            let plan = ReplayPlan { factor: whole, ..PLAN };
            if whole >= 1.0 {
                let expected: Vec<_> = capture.iter().filter(|query| f64::from(chunk_of(query)) < whole).collect();
                let clients: HashSet<_> = expected.iter().map(|query| (chunk_of(query), query.client)).collect();
                let played = played(plan, &capture);
                prop_assert_eq!(played.len(), expected.len());
                prop_assert!(played.is_sorted_by_key(|(due, _)| *due));
                let numbers: HashSet<u32> = played.iter().map(|(_, client)| *client).collect();
                prop_assert_eq!(numbers.len(), clients.len());
                prop_assert_eq!(numbers.iter().max().map(|most| *most as usize + 1), Some(clients.len()));
            }
            // A client is in whole or not at all.
            let more = played(ReplayPlan { factor, ..PLAN }, &capture);
            let all = played(ReplayPlan { factor: factor.ceil(), ..PLAN }, &capture);
            prop_assert!(more.len() <= all.len());
            prop_assert!(factor.fract() == 0.0 || more.len() >= played(plan, &capture).len() || whole < 1.0);
        }
    }

    #[test]
    fn a_part_of_a_chunk_has_that_share_of_its_clients() {
        let capture: Vec<_> =
            (0..100_000u32).map(|n| seen(u64::from(n % 1_000), n % 10_000)).collect();
        for share in [0.1, 0.5, 0.9] {
            let clients: HashSet<u32> = played(ReplayPlan { factor: share, ..PLAN }, &capture)
                .into_iter()
                .map(|(_, client)| client)
                .collect();
            // Five standard deviations of a binomial distribution.
            let bound = 5.0 * (share * (1.0 - share) * 10_000f64).sqrt();
            assert!((clients.len() as f64 - share * 10_000.0).abs() < bound, "{}", clients.len());
        }
    }
}
