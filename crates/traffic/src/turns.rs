//! Whose turn it is, where several loads on one timeline take turns.

use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;

/// How a timeline is divided among loads that take turns.
///
/// The machine changes slowly and the loads alternate fast, so what the machine does to one load it does to
/// all (docs/METHOD.md, "Slices").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlicePlan {
    /// Length of one turn; above zero.
    pub slice: Duration,
    /// Beginning of each turn that is not counted: answers to the load before it still arrive, and its own
    /// window is not full yet.
    pub lead: Duration,
    /// End of each turn that is not counted: what becomes due in it may be answered after it.
    pub tail: Duration,
    /// If true, a block is a random order and the same order backwards: a steady drift over the block is then
    /// the same for all loads. If false, it is the order of the loads, which the caller has to balance.
    pub mirrored: bool,
}

impl SlicePlan {
    /// The shortest time in which each of `loads` loads has turns of `own` in all, in whole blocks.
    #[must_use]
    pub fn length(&self, loads: usize, own: Duration) -> Duration {
        let of_block = self.slice.as_nanos() * u128::from(self.slices_per_block());
        let blocks = own.as_nanos().div_ceil(of_block.max(1)).max(1);
        let nanos = blocks * of_block * loads as u128;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Length of a block of `loads` loads.
    #[must_use]
    pub fn block(&self, loads: usize) -> Duration {
        self.slice * u32::try_from(self.slices_per_block() * loads as u64).unwrap_or(u32::MAX)
    }

    /// Slices of each load in one block.
    fn slices_per_block(&self) -> u64 {
        1 + u64::from(self.mirrored)
    }

    /// The turns of each of `loads` loads (at most 256) over a timeline of this length.
    ///
    /// Every load has as many slices as any other in each block. The order of a mirrored block is drawn from
    /// `seed`, so the load before a load is equally likely any of the others.
    #[must_use]
    pub fn turns(&self, loads: usize, length: Duration, seed: u64) -> Vec<Turns> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x736c_6963_6573_2121);
        let slice_ns = nanos(self.slice).max(1);
        let slices = nanos(length).div_ceil(slice_ns) as usize;
        let mut order = Vec::with_capacity(slices + 2 * loads);
        while order.len() < slices {
            let mut block: Vec<u8> = (0..loads).map(|load| load as u8).collect();
            if self.mirrored {
                block.shuffle(&mut random);
                order.extend(block.iter().rev());
            }
            order.extend(&block);
        }
        let order: Arc<[u8]> = order.into();
        let turns = (0..loads).map(|own| Turns {
            own_slices: own_slices(&order, own as u8),
            order: Arc::clone(&order),
            own: own as u8,
            loads: loads as u32,
            slice_ns,
            lead_ns: nanos(self.lead),
            tail_ns: nanos(self.tail),
        });
        turns.collect()
    }
}

/// The turns of one load: when it may send, and which of that counts.
///
/// ```
/// use std::time::Duration;
/// use dnslab_traffic::SlicePlan;
///
/// let ms = Duration::from_millis;
/// let plan = SlicePlan { slice: ms(50), lead: ms(5), tail: ms(0), mirrored: true };
/// let turns = plan.turns(2, ms(200), 1);
/// // Two loads, four slices: forwards, then backwards.
/// assert_ne!(turns[0].is_own(0), turns[1].is_own(0));
/// assert_eq!(turns[0].is_own(0), turns[0].is_own(199_999_999));
/// assert_eq!(turns[0].counted_between(0, 200_000_000), 90_000_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "SentTurns", into = "SentTurns")]
pub struct Turns {
    /// The load whose turn each slice is.
    order: Arc<[u8]>,
    /// Numbers of the own slices, in order.
    own_slices: Arc<[u32]>,
    own: u8,
    loads: u32,
    slice_ns: u64,
    lead_ns: u64,
    tail_ns: u64,
}

/// [`Turns`] as they are sent, without what follows from the rest.
#[derive(serde::Serialize, serde::Deserialize)]
struct SentTurns {
    order: Vec<u8>,
    own: u8,
    loads: u32,
    slice_ns: u64,
    lead_ns: u64,
    tail_ns: u64,
}

impl From<Turns> for SentTurns {
    fn from(turns: Turns) -> Self {
        let Turns { order, own, loads, slice_ns, lead_ns, tail_ns, .. } = turns;
        Self { order: order.to_vec(), own, loads, slice_ns, lead_ns, tail_ns }
    }
}

impl TryFrom<SentTurns> for Turns {
    type Error = &'static str;

    fn try_from(sent: SentTurns) -> Result<Self, Self::Error> {
        let SentTurns { order, own, loads, slice_ns, lead_ns, tail_ns } = sent;
        let is_one = |load: &u8| u32::from(*load) < loads;
        if loads > 256 || !is_one(&own) || !order.iter().all(is_one) {
            return Err("each turn is that of one of the loads");
        }
        let length = (order.len() as u64).checked_mul(slice_ns);
        let uncounted = lead_ns.checked_add(tail_ns);
        if slice_ns == 0
            || length.is_none_or(|length| length > u64::MAX / 2)
            || uncounted.is_none_or(|uncounted| uncounted > slice_ns)
        {
            return Err("a turn has a length, of which lead and tail are parts");
        }
        let order: Arc<[u8]> = order.into();
        Ok(Self {
            own_slices: own_slices(&order, own),
            order,
            own,
            loads,
            slice_ns,
            lead_ns,
            tail_ns,
        })
    }
}

/// Numbers of the slices of one load, in order.
fn own_slices(order: &[u8], own: u8) -> Arc<[u32]> {
    (0u32..).zip(order).filter(|(_, load)| **load == own).map(|(slice, _)| slice).collect()
}

impl Turns {
    /// Length of a slice, nanoseconds.
    #[must_use]
    pub fn slice_ns(&self) -> u64 {
        self.slice_ns
    }

    /// What does not count at the beginning of a slice, nanoseconds.
    #[must_use]
    pub fn lead_ns(&self) -> u64 {
        self.lead_ns
    }

    /// What does not count at the end of a slice, nanoseconds.
    #[must_use]
    pub fn tail_ns(&self) -> u64 {
        self.tail_ns
    }

    /// How many loads take turns.
    #[must_use]
    pub fn loads(&self) -> u32 {
        self.loads
    }

    /// True if the load has one turn only.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.own_slices.len() == 1
    }

    /// The shortest time in which each load has as many slices as any other, one: a block, or half of a mirrored one,
    /// nanoseconds.
    #[must_use]
    pub fn once_each_ns(&self) -> u64 {
        self.slice_ns.saturating_mul(u64::from(self.loads))
    }

    /// True if the instant (nanoseconds of the timeline) lies in a slice of this load.
    #[inline]
    #[must_use]
    pub fn is_own(&self, at_ns: u64) -> bool {
        self.order.get((at_ns / self.slice_ns) as usize) == Some(&self.own)
    }

    /// True if what happens at this instant counts: it lies in a slice of this load, outside lead and tail.
    #[inline]
    #[must_use]
    pub fn is_counted(&self, at_ns: u64) -> bool {
        let inside = at_ns % self.slice_ns;
        self.is_own(at_ns) && inside >= self.lead_ns && inside + self.tail_ns < self.slice_ns
    }

    /// The beginning of this load's next slice after the slice that the instant lies in, if there is one.
    #[must_use]
    pub fn next_own(&self, at_ns: u64) -> Option<u64> {
        let slice = (at_ns / self.slice_ns) as usize;
        let next = self.own_slices.partition_point(|own| (*own as usize) <= slice);
        self.own_slices.get(next).map(|own| u64::from(*own) * self.slice_ns)
    }

    /// The first instant from this one on at which a slice of this load begins to count.
    #[must_use]
    pub fn first_counted(&self, from_ns: u64) -> Option<u64> {
        let starts = self.own_slices.iter().map(|own| u64::from(*own) * self.slice_ns);
        starts.map(|start| start + self.lead_ns).find(|counted| *counted >= from_ns)
    }

    /// The instant of the timeline at which the load has had turns of `own_ns` in all; `None` beyond its last
    /// slice. This brings a schedule on the load's own time onto the timeline.
    #[inline]
    #[must_use]
    pub fn instant_of(&self, own_ns: u64) -> Option<u64> {
        let slice = self.own_slices.get((own_ns / self.slice_ns) as usize)?;
        Some(u64::from(*slice) * self.slice_ns + own_ns % self.slice_ns)
    }

    /// How much of a span of the timeline is this load's, nanoseconds.
    #[must_use]
    pub fn own_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.overlap(from_ns, to_ns, 0, self.slice_ns)
    }

    /// How much of a span of the timeline counts, nanoseconds.
    #[must_use]
    pub fn counted_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.overlap(from_ns, to_ns, self.lead_ns, self.slice_ns.saturating_sub(self.tail_ns))
    }

    /// How much of a span lies between these distances from the beginnings of own slices.
    fn overlap(&self, from_ns: u64, to_ns: u64, first: u64, last: u64) -> u64 {
        let slice_from = (from_ns / self.slice_ns) as usize;
        let begin = self.own_slices.partition_point(|own| (*own as usize) < slice_from);
        let starts = self.own_slices[begin..].iter().map(|own| u64::from(*own) * self.slice_ns);
        let inside =
            |start: u64| (start + last).min(to_ns).saturating_sub((start + first).max(from_ns));
        starts.take_while(|start| *start < to_ns).map(inside).sum()
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    const MS: u64 = 1_000_000;

    fn plan() -> SlicePlan {
        SlicePlan { slice: ms(10), lead: ms(2), tail: ms(1), mirrored: true }
    }

    proptest! {
        #[test]
        fn every_instant_is_one_loads_and_all_have_as_much(
            loads in 1usize..7,
            blocks in 1u64..20,
            seed: u64,
        ) {
            let length = plan().block(loads) * blocks as u32;
            prop_assert_eq!(plan().length(loads, ms(20) * blocks as u32), length);
            let turns = plan().turns(loads, length, seed);
            prop_assert_eq!(&turns, &plan().turns(loads, length, seed));
            let end = length.as_nanos() as u64;
            for at in (0..end).step_by(MS as usize) {
                prop_assert_eq!(turns.iter().filter(|turns| turns.is_own(at)).count(), 1);
            }
            for own in &turns {
                prop_assert_eq!(own.own_between(0, end), 20 * MS * blocks);
                prop_assert_eq!(own.counted_between(0, end), 14 * MS * blocks);
                // The mean place of a load's slices is the middle of each block.
                let of_block = plan().block(loads).as_nanos() as u64;
                for block in 0..blocks {
                    let middle = block * of_block + of_block / 2;
                    let before = own.own_between(block * of_block, middle);
                    prop_assert_eq!(before, 10 * MS);
                }
            }
        }

        #[test]
        fn without_a_mirror_each_load_has_one_turn(loads in 1usize..7, seed: u64) {
            let plan = SlicePlan { mirrored: false, ..plan() };
            let length = plan.length(loads, ms(7));
            prop_assert_eq!(length, ms(10) * loads as u32);
            let turns = plan.turns(loads, length, seed);
            let begins: Vec<u64> = turns.iter().filter_map(|own| own.first_counted(0)).collect();
            let expected: Vec<u64> = (0..loads as u64).map(|slice| (10 * slice + 2) * MS).collect();
            prop_assert_eq!(begins, expected);
            prop_assert!(turns.iter().all(Turns::is_single));
            prop_assert!(turns.iter().all(|own| own.counted_between(0, u64::MAX) == 7 * MS));
        }

        #[test]
        fn spans_add_up_and_agree_with_instants(from in 0u64..300, length in 0u64..300, seed: u64) {
            let turns = plan().turns(3, ms(600), seed);
            let (from, to) = (from * MS, (from + length) * MS);
            for own in &turns {
                let instants = || (from..to).step_by(MS as usize);
                let count = |is: fn(&Turns, u64) -> bool| {
                    instants().filter(|at| is(own, *at)).count() as u64 * MS
                };
                prop_assert_eq!(own.own_between(from, to), count(Turns::is_own));
                prop_assert_eq!(own.counted_between(from, to), count(Turns::is_counted));
            }
        }

        #[test]
        fn own_time_is_brought_onto_the_timeline(own_ms in 0u64..200, seed: u64) {
            for own in plan().turns(3, ms(600), seed) {
                let at = own.instant_of(own_ms * MS).unwrap();
                prop_assert!(own.is_own(at));
                prop_assert_eq!(own.own_between(0, at), own_ms * MS);
                prop_assert_eq!(own.instant_of(200 * MS), None);
                let next = own.next_own(at);
                let expected = own.instant_of((own_ms / 10 + 1) * 10 * MS);
                prop_assert_eq!(next, expected);
                prop_assert!(next.is_none_or(|next| next / own.slice_ns > at / own.slice_ns));
            }
        }
    }

    #[test]
    fn the_load_before_is_each_of_the_others_alike() {
        let turns = plan().turns(3, ms(60) * 2_000, 7);
        let mut before = [[0u32; 3]; 3];
        for pair in turns[0].order.windows(2) {
            before[usize::from(pair[0])][usize::from(pair[1])] += 1;
        }
        for (first, row) in before.iter().enumerate() {
            for (second, count) in row.iter().enumerate().filter(|(second, _)| *second != first) {
                // Some 3,333 of 12,000 for each of the six pairs that differ.
                assert!(
                    (1_450..=1_900).contains(count) || (2_900..=3_700).contains(count),
                    "{second} after {first}: {count}"
                );
            }
        }
    }
}
