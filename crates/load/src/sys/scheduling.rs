//! How the kernel shares a CPU among threads.

/// From now on the calling thread runs when no other has work for its CPU, and leaves at once when
/// one has (`SCHED_IDLE`, sched(7)); for good, since an unprivileged thread cannot take it back. It
/// still gets some thousandths of a CPU that is never free. A kernel that refuses leaves it as it
/// was.
pub(crate) fn yield_to_all_others() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` lives through the call, which reads it and writes nothing; 0 is the
    // calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}
