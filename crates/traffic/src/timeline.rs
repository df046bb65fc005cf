//! When a load may send, and which part of that is measured.

use std::time::Duration;

use crate::turns::{Turns, nanos};

/// When a load may send, and which part of that is measured: nanoseconds from the zero that all loads of a run share.
///
/// ```
/// use std::time::Duration;
/// use dnslab_traffic::{SlicePlan, Timeline};
///
/// let ms = Duration::from_millis;
/// let alone = Timeline::alone(ms(500), ms(2_000));
/// assert_eq!((alone.measured_from_ns(), alone.until_ns()), (500_000_000, 2_500_000_000));
/// // Two loads in slices: each has half of the timeline.
/// let plan = SlicePlan { slice: ms(50), lead: ms(5), tail: ms(0), mirrored: true };
/// let turns = plan.turns(2, ms(5_000), 1).remove(0);
/// let shared = Timeline::in_turns(ms(1_000), ms(5_000), turns);
/// assert_eq!((shared.own_warm_up_ns(), shared.own_window_ns()), (500_000_000, 2_000_000_000));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "SentTimeline")]
pub struct Timeline {
    measured_from_ns: u64,
    until_ns: u64,
    turns: Option<Turns>,
}

/// A [`Timeline`] as it is sent.
#[derive(serde::Deserialize)]
struct SentTimeline {
    measured_from_ns: u64,
    until_ns: u64,
    turns: Option<Turns>,
}

impl TryFrom<SentTimeline> for Timeline {
    type Error = &'static str;

    fn try_from(sent: SentTimeline) -> Result<Self, Self::Error> {
        let SentTimeline { measured_from_ns, until_ns, turns } = sent;
        if until_ns < measured_from_ns || until_ns > LONGEST_NS {
            return Err("a timeline ends behind its warm-up, and within a year");
        }
        Ok(Self { measured_from_ns, until_ns, turns })
    }
}

/// No load is longer: warm-up and window have a week each, and some loads take turns.
const LONGEST_NS: u64 = 400 * 24 * 3_600 * 1_000_000_000;

impl Timeline {
    /// Of a load that takes no turns with others.
    #[must_use]
    pub fn alone(warm_up: Duration, window: Duration) -> Self {
        let until_ns = nanos(warm_up.saturating_add(window));
        Self { measured_from_ns: nanos(warm_up), until_ns, turns: None }
    }

    /// Of a load that sends in its turns alone. The measured window is that of the timeline, whoever's turn it is.
    #[must_use]
    pub fn in_turns(measured_from: Duration, until: Duration, turns: Turns) -> Self {
        let measured_from_ns = nanos(measured_from);
        Self { measured_from_ns, until_ns: nanos(until).max(measured_from_ns), turns: Some(turns) }
    }

    /// End of the warm-up, beginning of the measured window.
    #[must_use]
    pub fn measured_from_ns(&self) -> u64 {
        self.measured_from_ns
    }

    /// End of the measured window: nothing becomes due from here on.
    #[must_use]
    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// Warm-up and measured window together.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.until_ns)
    }

    /// When the load may send, if it takes turns.
    #[must_use]
    pub fn turns(&self) -> Option<&Turns> {
        self.turns.as_ref()
    }

    /// The part of the warm-up that is this load's own.
    #[must_use]
    pub fn own_warm_up_ns(&self) -> u64 {
        match &self.turns {
            None => self.measured_from_ns,
            Some(turns) if turns.is_single() => turns.lead_ns(),
            Some(turns) => self.measured_from_ns / u64::from(turns.loads()),
        }
    }

    /// The part of the measured window that is this load's own.
    #[must_use]
    pub fn own_window_ns(&self) -> u64 {
        let window_ns = self.until_ns - self.measured_from_ns;
        match &self.turns {
            None => window_ns,
            Some(turns) if turns.is_single() => turns.counted_between(0, u64::MAX),
            Some(turns) => window_ns / u64::from(turns.loads()),
        }
    }

    /// Where an instant of the load's own measured window lies. Turns again and again make it part of a longer one.
    #[must_use]
    pub fn instant_ns(&self, own: Duration) -> u64 {
        let loads = match &self.turns {
            Some(turns) if !turns.is_single() => u64::from(turns.loads()),
            _ => 1,
        };
        self.measured_from_ns.saturating_add(nanos(own).saturating_mul(loads))
    }
}
