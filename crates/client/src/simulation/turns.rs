//! A load that takes turns with others, whose thread does not get its CPU when it should.

use std::time::Duration;

use dnslab_settings::{Load, Mode};
use dnslab_traffic::{SlicePlan, Timeline};
use dnslab_wire::Transport;
use proptest::prelude::*;

use super::{MS, Scenario};

proptest! {
    /// What a worker used and what it waited are parts of the time that they are compared with, also where the
    /// thread finds long after its turn that it is over.
    #[test]
    fn a_worker_waits_for_no_longer_than_its_turns_take(
        seed in any::<u64>(),
        loads in 1_usize..5,
        slice_ms in 2_u64..20,
        away_ms in 1_u64..200,
        descheduled in 0.0..0.02,
        is_open in any::<bool>(),
    ) {
        let plan = SlicePlan {
            slice: Duration::from_millis(slice_ms),
            lead: Duration::from_millis(slice_ms) / 4,
            tail: Duration::ZERO,
            mirrored: true,
        };
        let length = plan.length(loads, Duration::from_millis(60));
        let mut scenario = Scenario::quiet(Load {
            transport: Transport::Udp,
            clients: 2,
            mode: match is_open {
                true => Mode::constant(2_000.0),
                false => Mode::Closed { outstanding: 2 },
            },
            warm_up: Duration::ZERO,
            duration: length,
            ..Load::default()
        });
        scenario.job.seed = seed;
        if loads > 1 {
            let turns = plan.turns(loads, length, seed).remove(0);
            scenario.job.timeline = Timeline::in_turns(Duration::ZERO, length, turns);
        }
        scenario.faults.descheduled = descheduled;
        scenario.faults.away = MS..(1 + away_ms) * MS;
        let end = scenario.play().end;
        let all = end.time.cpu + end.time.waited;
        prop_assert!(all <= end.elapsed, "{:?} of {} ns", end.time, end.elapsed);
    }
}
