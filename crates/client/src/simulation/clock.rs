//! The time of day, which signatures have (RFC 8945), and which somebody may set.

use std::sync::Arc;
use std::time::Duration;

use dnslab_settings::{Load, Mode};
use dnslab_wire::Transport;
use domain::tsig::{Algorithm, Key};

use super::{MS, Scenario};

/// Queries are 2 ms apart, so none is in flight when the clock is set.
#[test]
fn signatures_have_the_time_of_day_after_it_was_set() {
    let name = "a.key".parse().unwrap();
    let key = Arc::new(Key::new(Algorithm::Sha256, b"secret", name, None, None).unwrap());
    for transport in [Transport::Udp, Transport::Tcp, Transport::Dot] {
        for seconds in [3_600, -3_600] {
            let mut scenario = Scenario::quiet(Load {
                transport,
                clients: 1,
                mode: Mode::constant(500.0),
                duration: Duration::from_millis(200),
                warm_up: Duration::ZERO,
                tsig: Some("a.key:c2VjcmV0".parse().unwrap()),
                ..Load::default()
            });
            scenario.manners.key = Some(Arc::clone(&key));
            scenario.faults.clock_set = Some((101 * MS, seconds));
            let counters = scenario.play().end.recorder.into_counters().measured;
            let (outcomes, bad) = (&counters.outcomes, counters.answers.bad_signature);
            let found = (outcomes.due, outcomes.answered, bad);
            assert_eq!(found, (100, 100, 0), "{transport}, {seconds} s: {outcomes:?}");
        }
    }
}
