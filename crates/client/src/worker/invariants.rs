//! What holds of a worker in each round, before it waits. The simulation checks it, whatever happens there.

use std::collections::BTreeSet;

use super::Worker;
use super::alarm_queue::Alarm;
use crate::connection_slot::{ConnectionSlot, Life, SlotKind};
use crate::query_source::QuerySource;
use crate::runtime::Runtime;
use crate::time::Nanos;

impl<R: Runtime> Worker<'_, R> {
    /// Checks the round that began at `now`.
    #[track_caller]
    pub(super) fn check_invariants(&mut self, now: Nanos) {
        self.each_query_without_an_outcome_waits_or_is_in_flight();
        self.a_life_says_whether_there_is_a_connection();
        self.opening.check((0..).zip(self.slots.iter().map(|slot| slot.life)));
        self.each_query_on_a_drain_has_its_place_at_home();
        self.each_wait_has_an_alarm(now);
        self.no_client_has_more_outstanding_than_its_window();
    }

    /// Queries of a closed loop that were never sent are not due yet.
    #[track_caller]
    fn each_query_without_an_outcome_waits_or_is_in_flight(&self) {
        let due = |slot: &ConnectionSlot<R>| {
            slot.table.len() + slot.pending.iter().filter(|pending| pending.due.is_some()).count()
        };
        let unsettled = self.slots.iter().map(due).sum::<usize>();
        assert_eq!(self.unsettled, unsettled, "queries without an outcome");
    }

    #[track_caller]
    fn a_life_says_whether_there_is_a_connection(&self) {
        for slot in &self.slots {
            let has_connection = slot.life.has_connection();
            assert_eq!(slot.connection.is_some(), has_connection, "{:?}", slot.life);
            let may_have_sent = has_connection || slot.life == Life::Shared;
            assert!(may_have_sent || slot.table.len() == 0, "{:?}", slot.life);
        }
    }

    #[track_caller]
    fn each_query_on_a_drain_has_its_place_at_home(&self) {
        let mut on_drains = vec![0; self.slots.len()];
        let mut free = BTreeSet::new();
        for (number, slot) in (0..).zip(&self.slots) {
            if let Some(home) = slot.drains_for {
                assert!(slot.pending.is_empty(), "nothing is sent on a drain");
                on_drains[home as usize] += slot.table.len() as u32;
                free.extend(slot.connection.is_none().then_some(number));
            }
        }
        let places: Vec<u32> = self.slots.iter().map(|slot| slot.on_drains).collect();
        assert_eq!(places, on_drains, "places of queries on drains");
        self.detours.check(&free);
    }

    #[track_caller]
    fn each_wait_has_an_alarm(&mut self, now: Nanos) {
        let alarms = self.alarms.all();
        for number in 0..self.slots.len() as u32 {
            let slot = &mut self.slots[number as usize];
            let at = slot.alarm;
            let is_set = alarms.contains(&Alarm { at, slot: number });
            assert!(is_set || at == Nanos::MAX, "the alarm at {at} ns is in no queue");
            let timed_out = slot.table.expire(None, &self.shard.attempts, |_, _| {});
            let slot = &self.slots[number as usize];
            let ends = slot.pending.iter().map(|pending| pending.end_of_wait(&self.shard.attempts));
            let ends: Vec<Nanos> = ends.map(|end| end.unwrap_or(Nanos::MAX)).collect();
            assert!(ends.is_sorted(), "the first that waits is not the first to be given up");
            // What is listed is looked after without an alarm.
            let given_up = ends.first().copied().filter(|end| !slot.listed && *end < Nanos::MAX);
            let first = timed_out.into_iter().chain(given_up).min();
            assert!(
                first.is_none_or(|first| at <= first.max(now + 1)),
                "{first:?} ns, not {at} ns"
            );
        }
    }

    /// In a closed loop. With several servers a query may come back to a slot whose window is full again.
    #[track_caller]
    fn no_client_has_more_outstanding_than_its_window(&self) {
        let is_closed = matches!(self.query_source, QuerySource::Closed { .. });
        if !is_closed || self.shard.attempts.has_choice() {
            return;
        }
        let mut free = vec![0; self.shard.clients as usize];
        for slot in self.slots.iter().filter(|slot| slot.drains_for.is_none()) {
            assert!(slot.window <= slot.widest);
            assert!(slot.kind == SlotKind::Usual || slot.widest == 0);
            free[slot.client as usize] += i64::from(slot.widest) - slot.outstanding() as i64;
        }
        assert!(free.iter().all(|free| *free >= 0), "free places of the clients: {free:?}");
    }
}
