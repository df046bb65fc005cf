//! A load that ends after a number of queries.

use std::time::Duration;

use dnslab_settings::Mode;
use dnslab_traffic::{Pace, Rate};
use dnslab_wire::Transport;

use crate::behaviour::{go, job, plain};

#[test]
fn a_load_ends_with_its_last_query() {
    let (target, _seen) = plain();
    let closed = |outstanding| Mode::Closed { outstanding };
    let poisson = Mode::Open { rate: Rate::Constant(2_000.0), pace: Pace::Poisson };
    for (mode, clients, workers, most) in
        [(closed(1), 1, 1, 40), (closed(5), 3, 2, 37), (closed(50), 1, 1, 7), (poisson, 3, 2, 41)]
    {
        for transport in [Transport::Udp, Transport::Tcp] {
            let job = job(target, transport).with(|load| {
                load.mode = mode.clone();
                load.clients = clients;
                load.workers = Some(workers);
                load.queries_in_all = Some(most);
                load.warm_up = Duration::ZERO;
                load.duration = Duration::from_secs(60);
            });
            let result = go(&job);
            let outcomes = &result.measured.counters.outcomes;
            assert_eq!((outcomes.due, outcomes.answered), (most, most), "{mode:?} {transport}");
            assert!(!result.cut_short);
            assert!(result.measured.window_ns < 30_000_000_000, "{}", result.measured.window_ns);
        }
    }
}
