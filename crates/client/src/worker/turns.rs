//! What a worker's thread does in the slices of time in which its load may send.

use crate::runtime::Runtime;
use crate::time::{Nanos, ThreadTime};

/// The thread's time in the turns of its load. A load that takes no turns with others has one, which lasts.
#[derive(Default)]
pub(super) struct OwnTurns {
    /// The last round was in a turn.
    has_turn: bool,
    /// The measured window has begun, as this thread saw it.
    has_begun: bool,
    /// The measured window has ended, as this thread saw it.
    has_ended: bool,
    /// The current turn of the measured window.
    current: Option<Turn>,
    /// The thread's time in all turns of the measured window before.
    time: ThreadTime,
    /// How long those took, each until the thread found that it was over.
    elapsed: Nanos,
    /// The thread's CPU time at the beginning of the current turn, in the warm-up too.
    used_since: Option<Nanos>,
    /// The thread's CPU time in all turns before, in the warm-up too.
    used: Nanos,
}

/// A turn that has begun.
struct Turn {
    at: Nanos,
    time: ThreadTime,
}

impl OwnTurns {
    /// The last round was in a turn.
    pub(super) fn has_turn(&self) -> bool {
        self.has_turn
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The thread has seen the measured window begin, and not end.
    pub(super) fn is_measured(&self) -> bool {
        self.has_begun && !self.has_ended
    }

    pub(super) fn begin_window(&mut self, runtime: &impl Runtime, now: Nanos) {
        self.has_begun = true;
        if self.has_turn {
            self.begin_turn(runtime, now);
        }
    }

    pub(super) fn end_window(&mut self, runtime: &impl Runtime) {
        self.end_turn(runtime);
        self.has_ended = true;
    }

    /// Notes whether this round is in a turn. `is_own`: no other load has its turn, whether this one sends or only
    /// connects. True if a turn begins with this round.
    pub(super) fn note_round(
        &mut self,
        runtime: &impl Runtime,
        now: Nanos,
        has_turn: bool,
        is_own: bool,
    ) -> bool {
        if is_own != self.used_since.is_some() {
            self.used = self.used(runtime);
            self.used_since = is_own.then(|| runtime.cpu_time());
        }
        let had_turn = std::mem::replace(&mut self.has_turn, has_turn);
        match (has_turn, had_turn) {
            (true, false) if self.is_measured() => self.begin_turn(runtime, now),
            (false, true) => self.end_turn(runtime),
            _ => {}
        }
        has_turn && !had_turn
    }

    fn begin_turn(&mut self, runtime: &impl Runtime, now: Nanos) {
        self.current = Some(Turn { at: now, time: runtime.thread_time() });
    }

    /// Adds the thread's time in its own turns of the measured window. In the turns of others the thread only
    /// waits, for them and for late answers. A thread that does not get its CPU finds late that its turn is over,
    /// and has waited until then: the length of the turn is that of the same time.
    pub(super) fn end_turn(&mut self, runtime: &impl Runtime) {
        if let Some(Turn { at, time }) = self.current.take() {
            self.time = self.time.plus(runtime.thread_time().since(time));
            // After the thread's time, so that no part of it is beyond this span.
            self.elapsed += runtime.now().saturating_sub(at);
        }
    }

    /// CPU time of the thread in its own turns so far.
    pub(super) fn used(&self, runtime: &impl Runtime) -> Nanos {
        let in_turn = self.used_since.map(|since| runtime.cpu_time().saturating_sub(since));
        self.used + in_turn.unwrap_or(0)
    }

    /// The thread's time in the turns of the measured window that have ended.
    pub(super) fn time(&self) -> ThreadTime {
        self.time
    }

    /// How long those turns took.
    pub(super) fn elapsed(&self) -> Nanos {
        self.elapsed
    }
}
