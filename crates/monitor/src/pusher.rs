//! Pushes points, with patience and within bounds.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dnslab_metrics::{EncodedRequest, Point, write_request};
use dnslab_socket::set_idle_policy;

use crate::endpoint::{Endpoint, Outcome};

/// Points that wait, at most: ten minutes of one load. Each has some 150 samples of 100 octets. The oldest are dropped.
const MAX_WAITING: usize = 600;

/// Points in one request, at most: some thousand samples, as Prometheus itself sends them.
const MAX_POINTS: usize = 15;

/// Pause before the second attempt; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The label `job` of what is pushed while it is measured.
const JOB: &str = "dnslab";

/// The label `job` of what is pushed from results. Its series are others: a server refuses samples that are older than
/// the newest of their series, and some of them may have been pushed while it was measured.
const JOB_OF_RESULTS: &str = "dnslab-results";

/// What became of the points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushReport {
    /// Samples that the endpoint has taken.
    pub samples: u64,
    /// Points that it has taken.
    pub taken: u64,
    /// Points that it refused for good.
    pub refused: u64,
    /// Points that were dropped, because too many waited.
    pub dropped: u64,
    /// Points that still waited at the end.
    pub unsent: u64,
    /// Why the last failed attempt failed.
    pub last_error: Option<String>,
}

impl PushReport {
    /// Points that the endpoint does not have.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.refused + self.dropped + self.unsent
    }
}

/// A thread that pushes.
#[derive(Debug)]
pub struct Pusher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Point>,
    /// Those of the request under way.
    under_way: u64,
    report: PushReport,
    /// When pushing ends, whatever waits then.
    deadline: Option<Instant>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pusher {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there is none to be had.
    pub fn start(endpoint: Endpoint) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let push = move || {
            set_idle_policy();
            work(&endpoint, &own);
        };
        let thread = thread::Builder::new().name("push".to_owned()).spawn(push)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Takes points, in the order of time, and returns at once.
    pub fn push(&self, points: Vec<Point>) {
        let mut state = self.shared.state();
        state.waiting.extend(points);
        while state.waiting.len() > MAX_WAITING {
            state.waiting.pop_front();
            state.report.dropped += 1;
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Waits until all points are pushed, at most for so long and not once `is_over`, and says what became of them.
    #[must_use]
    pub fn finish(mut self, patience: Duration, is_over: &dyn Fn() -> bool) -> PushReport {
        const LOOK: Duration = Duration::from_millis(50);
        let deadline = Instant::now() + patience;
        loop {
            let mut state = self.shared.state();
            let is_done = state.waiting.is_empty() && state.under_way == 0;
            let is_late = Instant::now() >= deadline || is_over();
            if is_done || is_late {
                state.deadline = Some(Instant::now());
                let mut report = state.report.clone();
                report.unsent = state.waiting.len() as u64 + state.under_way;
                drop(state);
                self.shared.changed.notify_all();
                // A request under way may take its time yet; its thread ends with the process.
                let thread = self.thread.take().filter(|_| is_done);
                thread.map(JoinHandle::join);
                return report;
            }
            let waited = self.shared.changed.wait_timeout(state, LOOK);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

fn work(endpoint: &Endpoint, shared: &Shared) {
    loop {
        let points: Vec<Point> = {
            let waits = |state: &mut State| state.waiting.is_empty() && state.deadline.is_none();
            let state = shared.changed.wait_while(shared.state(), waits);
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            if state.deadline.is_some() {
                return;
            }
            let count = state.waiting.len().min(MAX_POINTS);
            state.under_way = count as u64;
            state.waiting.drain(..count).collect()
        };
        let EncodedRequest { octets, samples } = compressed(&points, JOB);
        let mut pauses = Pauses::default();
        loop {
            let outcome = endpoint.send(&octets);
            let mut state = shared.state();
            let pause = match outcome {
                Outcome::Taken => {
                    state.report.taken += points.len() as u64;
                    state.report.samples += samples;
                    None
                }
                Outcome::Refused { reason } => {
                    state.report.refused += points.len() as u64;
                    state.report.last_error = Some(reason);
                    None
                }
                Outcome::Later { reason, after } => {
                    state.report.last_error = Some(reason);
                    Some(pauses.next(after))
                }
            };
            let Some(pause) = pause else {
                state.under_way = 0;
                break;
            };
            // What comes meanwhile wakes it, which ends no pause.
            let until = Instant::now() + pause;
            while state.deadline.is_none() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let waited = shared.changed.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.deadline.is_some() {
                return;
            }
        }
        shared.changed.notify_all();
    }
}

/// Pushes the points of results and waits for the end of it. An endpoint that cannot be reached, or has no room, is
/// tried again for so long in all.
#[must_use]
pub fn push_all(endpoint: &Endpoint, points: &[Point], patience: Duration) -> PushReport {
    let mut report = PushReport::default();
    let deadline = Instant::now() + patience;
    let mut left = points.len() as u64;
    for points in points.chunks(MAX_POINTS) {
        let EncodedRequest { octets, samples } = compressed(points, JOB_OF_RESULTS);
        let mut pauses = Pauses::default();
        loop {
            match endpoint.send(&octets) {
                Outcome::Taken => {
                    report.taken += points.len() as u64;
                    report.samples += samples;
                    break;
                }
                Outcome::Refused { reason } => {
                    report.refused += points.len() as u64;
                    report.last_error = Some(reason);
                    break;
                }
                Outcome::Later { reason, after } => {
                    report.last_error = Some(reason);
                    let pause = pauses.next(after);
                    if Instant::now() + pause >= deadline {
                        report.unsent = left;
                        return report;
                    }
                    thread::sleep(pause);
                }
            }
        }
        left -= points.len() as u64;
    }
    report
}

/// In the block format of Snappy, which remote write names.
fn compressed(points: &[Point], job: &str) -> EncodedRequest {
    let EncodedRequest { octets, samples } = write_request(points, job);
    let octets = snap::raw::Encoder::new().compress_vec(&octets);
    EncodedRequest { octets: octets.expect("a request is below 4 GiB"), samples }
}

/// Pauses between attempts.
#[derive(Debug, Default)]
struct Pauses {
    last: Duration,
}

impl Pauses {
    /// What the endpoint asks for counts, within bounds.
    fn next(&mut self, asked: Option<Duration>) -> Duration {
        self.last = (self.last * 2).clamp(FIRST_PAUSE, MAX_PAUSE);
        asked.map_or(self.last, |asked| asked.clamp(FIRST_PAUSE, 6 * MAX_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_the_endpoint_may_ask_for_longer_ones() {
        let mut pauses = Pauses::default();
        let ms: Vec<u128> = (0..8).map(|_| pauses.next(None).as_millis()).collect();
        assert_eq!(ms, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert_eq!(pauses.next(Some(Duration::from_secs(12))), Duration::from_secs(12));
        assert_eq!(pauses.next(Some(Duration::from_secs(3_600))), Duration::from_secs(30));
    }

    #[test]
    fn the_oldest_points_go_when_too_many_wait() {
        // Nothing listens at the discard port of this address.
        let endpoint = Endpoint::new("http://127.0.0.1:9/", None, None).unwrap();
        let pusher = Pusher::start(endpoint).unwrap();
        let point = |at_ms| Point { at_ms, series: Arc::default() };
        let count = MAX_WAITING as i64 + 100;
        pusher.push((0..count).map(point).collect());
        let report = pusher.finish(Duration::from_millis(300), &|| false);
        assert_eq!(report.dropped + report.unsent, count as u64, "{report:?}");
        assert!(report.dropped >= 100, "{report:?}");
        assert!(report.last_error.is_some(), "{report:?}");
    }
}
