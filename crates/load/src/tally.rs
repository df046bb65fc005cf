//! What one worker counts.

use dnslab_measure::{Counters, Histogram, Interval};
use dnslab_wire::rcode_name;

use crate::clock::Nanos;
use crate::in_flight::Entry;

/// When the phases of a load begin and end, nanoseconds since it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phases {
    /// End of the warm-up, beginning of the measured window.
    pub(crate) measured_from: Nanos,
    /// End of the measured window: nothing becomes due from here on.
    pub(crate) until: Nanos,
    /// Length of the intervals of the series.
    pub(crate) interval: Nanos,
    /// A query without an answer for this long has timed out.
    pub(crate) timeout: Nanos,
}

/// How a query ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    TimedOut,
    NotSent,
    ConnectionLost,
    Malformed,
}

/// Messages that match no query in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stray {
    Late,
    Duplicate,
    Unexpected,
}

/// Events of one interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntervalTally {
    pub(crate) number: u64,
    pub(crate) due: u64,
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    pub(crate) lost: u64,
    pub(crate) latency: Histogram,
}

/// Counts of one phase, with response codes by number.
#[derive(Clone, Debug, Default)]
struct Phase {
    counters: Counters,
    rcodes: [u64; 16],
}

/// Everything that one worker counts. Queries belong to the phase in which they were due; messages
/// that match none, and connections, to the phase in which they came.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    phases: Phases,
    warm_up: Phase,
    measured: Phase,
    /// Queries sent inside the measured window, whenever they were due.
    pub(crate) sent_in_window: u64,
    /// Answers received inside the measured window, whenever their query was due.
    pub(crate) answered_in_window: u64,
    pub(crate) latency: Histogram,
    pub(crate) service_time: Histogram,
    pub(crate) send_lag: Histogram,
    pub(crate) connect_time: Histogram,
    pub(crate) handshake_time: Histogram,
    pub(crate) interval: IntervalTally,
}

/// The parts of an answer that are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerFacts {
    /// Header response code, 0 to 15.
    pub(crate) rcode: u8,
    /// The TC bit.
    pub(crate) truncated: bool,
    /// NOERROR without a record in the answer section.
    pub(crate) empty: bool,
    /// Not the answer that the experiment expects.
    pub(crate) wrong: bool,
    /// Length of the message, octets.
    pub(crate) octets: usize,
}

impl Tally {
    pub(crate) fn new(phases: Phases) -> Self {
        Self {
            phases,
            warm_up: Phase::default(),
            measured: Phase::default(),
            sent_in_window: 0,
            answered_in_window: 0,
            latency: Histogram::new(),
            service_time: Histogram::new(),
            send_lag: Histogram::new(),
            connect_time: Histogram::new(),
            handshake_time: Histogram::new(),
            interval: IntervalTally::default(),
        }
    }

    /// Ends the measured window early, for a load that is interrupted.
    pub(crate) fn cut_short(&mut self, until: Nanos) {
        self.phases.until = until;
    }

    /// A query became due.
    #[inline]
    pub(crate) fn due(&mut self, at: Nanos) {
        self.phase(at).counters.outcomes.due += 1;
        self.interval.due += 1;
    }

    /// A query was handed to the kernel.
    #[inline]
    pub(crate) fn sent(&mut self, due: Nanos, at: Nanos, octets: usize) {
        let phase = self.phase(due);
        phase.counters.sent += 1;
        phase.counters.sent_octets += octets as u64;
        self.interval.sent += 1;
        self.sent_in_window += u64::from(self.is_in_window(at));
        if self.is_measured(due) {
            self.send_lag.record_ns(at.saturating_sub(due));
        }
    }

    /// A query was answered.
    #[inline]
    pub(crate) fn answered(&mut self, query: &Entry, received: Nanos, answer: AnswerFacts) {
        let phase = self.phase(query.due);
        phase.counters.outcomes.answered += 1;
        phase.rcodes[usize::from(answer.rcode & 0x0f)] += 1;
        let answers = &mut phase.counters.answers;
        answers.truncated += u64::from(answer.truncated);
        answers.empty += u64::from(answer.empty);
        answers.wrong += u64::from(answer.wrong);
        answers.octets += answer.octets as u64;
        self.interval.answered += 1;
        self.answered_in_window += u64::from(self.is_in_window(received));
        let latency = received.saturating_sub(query.due);
        self.interval.latency.record_ns(latency);
        if self.is_measured(query.due) {
            self.latency.record_ns(latency);
            self.service_time.record_ns(received.saturating_sub(query.sent));
        }
    }

    /// A query ended without an answer.
    pub(crate) fn lost(&mut self, due: Nanos, at: Nanos, loss: Loss) {
        let outcomes = &mut self.phase(due).counters.outcomes;
        match loss {
            Loss::TimedOut => outcomes.timed_out += 1,
            Loss::NotSent => outcomes.not_sent += 1,
            Loss::ConnectionLost => outcomes.connection_lost += 1,
            Loss::Malformed => outcomes.malformed += 1,
        }
        self.interval.lost += 1;
        // A client without an answer has waited for its time-out at least, however early the
        // engine knew that none would come. Else a transport that loses connections would look
        // faster than one that loses datagrams.
        let latency = at.saturating_sub(due).max(self.phases.timeout);
        self.interval.latency.record_ns(latency);
        if self.is_measured(due) {
            self.latency.record_ns(latency);
        }
    }

    /// A message came that matches no query in flight.
    pub(crate) fn stray(&mut self, at: Nanos, stray: Stray) {
        let answers = &mut self.phase(at).counters.answers;
        match stray {
            Stray::Late => answers.late += 1,
            Stray::Duplicate => answers.duplicate += 1,
            Stray::Unexpected => answers.unexpected += 1,
        }
    }

    /// The connection counts of the phase that `at` lies in.
    pub(crate) fn connections(&mut self, at: Nanos) -> &mut dnslab_measure::Connections {
        &mut self.phase(at).counters.connections
    }

    /// Hands out the oldest interval that `now` has left behind, if there is one; those in which
    /// nothing happened too. What happens after the measured window is in no interval.
    pub(crate) fn finished_interval(&mut self, now: Nanos) -> Option<IntervalTally> {
        let Phases { until, interval, .. } = self.phases;
        let current = if now >= until { until.div_ceil(interval) } else { now / interval };
        if self.interval.number >= current {
            return None;
        }
        let number = self.interval.number + 1;
        let next = IntervalTally { number, ..IntervalTally::default() };
        Some(std::mem::replace(&mut self.interval, next))
    }

    /// The counts of the warm-up and of the measured window.
    pub(crate) fn into_counters(self) -> (Counters, Counters) {
        (self.warm_up.finish(), self.measured.finish())
    }

    fn is_measured(&self, due: Nanos) -> bool {
        due >= self.phases.measured_from
    }

    #[inline]
    fn is_in_window(&self, at: Nanos) -> bool {
        (self.phases.measured_from..self.phases.until).contains(&at)
    }

    #[inline]
    fn phase(&mut self, at: Nanos) -> &mut Phase {
        if at >= self.phases.measured_from { &mut self.measured } else { &mut self.warm_up }
    }
}

impl Phase {
    fn finish(mut self) -> Counters {
        for (rcode, count) in (0u8..).zip(self.rcodes) {
            if count > 0 {
                self.counters.answers.rcodes.insert(rcode_name(rcode).into_owned(), count);
            }
        }
        self.counters
    }
}

impl IntervalTally {
    /// Adds the events of the same interval of another worker.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.sent += other.sent;
        self.answered += other.answered;
        self.lost += other.lost;
        self.latency.merge(&other.latency);
    }

    /// The interval in the form of the record.
    pub(crate) fn finish(&self, phases: &Phases) -> Interval {
        let at_ns = self.number * phases.interval;
        Interval {
            at_ns,
            length_ns: phases.interval.min(phases.until.saturating_sub(at_ns)).max(1),
            due: self.due,
            sent: self.sent,
            answered: self.answered,
            lost: self.lost,
            p50_ns: self.latency.quantile_ns(0.5),
            p95_ns: self.latency.quantile_ns(0.95),
            p99_ns: self.latency.quantile_ns(0.99),
            p999_ns: self.latency.quantile_ns(0.999),
            max_ns: self.latency.max_ns(),
        }
    }
}
