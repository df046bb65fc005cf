//! A load that ends after a number of queries.

use std::time::Duration;

use dnslab_traffic::Pace;
use dnslab_wire::Transport;

use crate::{go, job, open, plain};

#[test]
fn a_load_ends_with_its_last_query() {
    let (target, _seen) = plain();
    for (outstanding, clients, workers, most) in
        [(Some(1), 1, 1, 40), (Some(5), 3, 2, 37), (Some(50), 1, 1, 7), (None, 3, 2, 41)]
    {
        for transport in [Transport::Udp, Transport::Tcp] {
            let job = job(target, transport).with(|load| {
                load.outstanding = outstanding;
                if outstanding.is_none() {
                    open(load, 2_000.0);
                    load.pace = Some(Pace::Poisson);
                }
                load.clients = clients;
                load.workers = Some(workers);
                load.queries_in_all = Some(most);
                load.warm_up = Duration::ZERO;
                load.duration = Duration::from_secs(60);
            });
            let (result, mode) = (go(&job), job.settings.mode());
            let outcomes = &result.measured.counters.outcomes;
            assert_eq!((outcomes.due, outcomes.answered), (most, most), "{mode:?} {transport}");
            assert!(!result.cut_short);
            assert!(result.measured.window_ns < 30_000_000_000, "{}", result.measured.window_ns);
        }
    }
}
