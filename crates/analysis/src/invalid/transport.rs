//! Transports that do not answer, beside others that do.

use dnslab_record::{Cause, InvalidReason, Measured};

/// From so many queries on, the share that was lost says something of a transport.
const LEAST_DUE: u64 = 10;

/// Why a load over several transports does not count: as a load over one of them alone would not, because nothing was
/// answered, or more than `limit` of its queries were lost. `None` if all of them answer. A few queries of a transport
/// may all be lost by chance, but then nothing is known of it.
#[must_use]
pub fn lost_over_transport(
    measured: &Measured,
    limit: f64,
    cause: Option<Cause>,
) -> Option<InvalidReason> {
    let mut all = measured.counters.by_transport.iter();
    let (transport, over) = all.find(|(_, over)| {
        let lost = over.due.saturating_sub(over.answered) as f64;
        let too_little = over.due >= LEAST_DUE && lost > limit * over.due as f64;
        over.due > 0 && over.answered == 0 || too_little
    })?;
    let (due, answered) = (over.due, over.answered);
    Some(InvalidReason::LostOverTransport {
        transport: transport.clone(),
        due,
        answered,
        limit,
        cause,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnslab_figures::TransportOutcomes;

    #[track_caller]
    fn check(udp: (u64, u64), dot: (u64, u64), expected: Option<&str>) {
        let mut measured = Measured::default();
        for (name, (due, answered)) in [("udp", udp), ("dot", dot)] {
            let outcomes = TransportOutcomes { due, answered };
            measured.counters.by_transport.insert(name.to_owned(), outcomes);
        }
        let found = match lost_over_transport(&measured, 0.5, None) {
            Some(InvalidReason::LostOverTransport { transport, .. }) => Some(transport),
            _ => None,
        };
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn each_transport_must_answer() {
        check((1_000, 1_000), (100, 100), None);
        check((1_000, 1_000), (100, 0), Some("dot"));
        check((0, 0), (100, 100), None);
        check((1, 0), (100, 100), Some("udp"));
        check((1_000, 1_000), (100, 50), None);
        check((1_000, 1_000), (100, 49), Some("dot"));
        // Too few to know.
        check((1_000, 1_000), (9, 1), None);
    }
}
