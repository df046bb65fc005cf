//! Time windows: what is counted of a part of the measured window.

use std::time::Duration;

use dnslab_figures::WindowCounts;
use dnslab_wire::Transport;

use crate::behaviour::{go, job, open, plain};

#[test]
fn a_time_window_has_the_queries_that_became_due_in_it() {
    let (target, _seen) = plain();
    for is_open in [true, false] {
        let result = go(&job(target, Transport::Udp).with(|load| {
            if is_open {
                open(load, 2_000.0);
            }
            load.warm_up = Duration::from_millis(100);
            load.windows = "first:0ms..100ms,rest:100ms..400ms,all:0s..400ms".parse().ok();
        }));
        let measured = &result.measured;
        let names: Vec<&str> = measured.windows.iter().map(|window| window.name.as_str()).collect();
        assert_eq!(names, ["first", "rest", "all"]);
        let [first, rest, all] = &measured.windows[..] else { panic!("{names:?}") };
        assert_eq!((rest.from_ns, rest.to_ns), (100_000_000, 400_000_000));
        for window in &measured.windows {
            let WindowCounts { outcomes, rcodes, latency, service_time, .. } = window;
            assert_eq!(rcodes["NOERROR"], outcomes.answered);
            assert_eq!((latency.len(), service_time.len()), (outcomes.due, outcomes.answered));
        }
        let due = |window: &WindowCounts| window.outcomes.due;
        assert!(due(first) > 0 && due(first) + due(rest) == due(all));
        assert_eq!(all.outcomes, measured.counters.outcomes, "not the warm-up");
        assert_eq!(all.latency, measured.latency);
        if is_open {
            // One each half millisecond, of two workers.
            assert!(due(first).abs_diff(200) <= 2, "{}", due(first));
        }
    }
}
