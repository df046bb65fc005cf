//! What has changed between two lists of facts.

use dnslab_record::Fact;
use dnslab_wire::units::octets;

/// The fact whose value may differ a little.
const MEMORY: &str = "memory";

/// Relative difference below which memory is the same: what kernel and firmware reserve differs from one
/// start of a machine to the next.
const MEMORY_TOLERANCE: f64 = 0.02;

/// A fact that has another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactChange {
    /// What it is, e.g. `kernel`.
    pub name: String,
    /// The value then.
    pub then: String,
    /// The value now; `None` if it is not known.
    pub now: Option<String>,
}

/// The facts of `then` that `now` does not have. What only `now` has is not compared: an older dnslab did not
/// note it.
#[must_use]
pub fn changed_facts(then: &[Fact], now: &[Fact]) -> Vec<FactChange> {
    let changed = then.iter().filter_map(|fact| {
        let now = now.iter().find(|other| other.name == fact.name);
        FactChange::of(fact, now)
    });
    changed.collect()
}

impl FactChange {
    fn of(then: &Fact, now: Option<&Fact>) -> Option<Self> {
        let same = now.is_some_and(|now| {
            now.value == then.value || (then.name == MEMORY && is_near(&then.value, &now.value))
        });
        (!same).then(|| Self {
            name: then.name.clone(),
            then: then.value.clone(),
            now: now.map(|now| now.value.clone()),
        })
    }
}

/// True if two amounts of memory, like `24045 MiB`, are nearly the same.
fn is_near(then: &str, now: &str) -> bool {
    let amounts = octets::read(then).zip(octets::read(now));
    amounts.is_some_and(|(then, now)| (then - now).abs() <= MEMORY_TOLERANCE * then)
}
