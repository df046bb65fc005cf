//! The watch over a process and all that it starts, until nothing of it runs any more.

use std::io::{self, BufRead as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::cgroup::Groups;
use crate::descendants;
use crate::ending::{Ending, ExitReport};
use crate::guarded::GRACE;

/// How long the guard tries to kill what is left; only a process stuck in the kernel takes longer.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// What wakes the guard.
pub(crate) enum Event {
    /// dnslab asks for the end, with this grace time.
    Stop(Duration),
    Child,
}

/// Leaves the terminal's session, and adopts every orphan below this process. What wakes the guard comes from the
/// receiver.
pub(crate) fn become_guard() -> io::Result<Receiver<Event>> {
    // Fails only if the caller has made us a group leader; then we have what we want.
    rustix::process::setsid().ok();
    let events = listen()?;
    // Without this, children that the server leaves behind would be adopted by init.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(events)
}

/// Starts the threads that turn input and signals into events. Call it before the first child starts, or the
/// end of that child goes unheard.
fn listen() -> io::Result<Receiver<Event>> {
    let (sender, receiver) = mpsc::channel();
    // A handler that does nothing, not "ignore": an ignored signal stays ignored across exec, and the server
    // would ignore it too.
    let mut signals = signal_hook::iterator::Signals::new([SIGCHLD, SIGTERM, SIGINT, SIGHUP])?;
    let for_signals = sender.clone();
    thread::Builder::new().spawn(move || {
        for signal in signals.forever() {
            let event = match signal {
                SIGCHLD => Event::Child,
                SIGTERM => Event::Stop(GRACE),
                _ => continue,
            };
            if for_signals.send(event).is_err() {
                return;
            }
        }
    })?;
    thread::Builder::new().spawn(move || forward_input(&sender))?;
    Ok(receiver)
}

/// The end of the input (dnslab died) asks for the end too.
fn forward_input(sender: &Sender<Event>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let milliseconds = line.strip_prefix("stop ").and_then(|text| text.parse().ok());
        let grace = milliseconds.map_or(GRACE, Duration::from_millis);
        if sender.send(Event::Stop(grace)).is_err() {
            return;
        }
    }
    sender.send(Event::Stop(GRACE)).ok();
}

/// Waits for the end of the first process and ends what it leaves. All of them must be children of this process, or
/// become its children ([`become_guard`]).
pub(crate) fn watch(server: Pid, groups: &Groups, events: &Receiver<Event>) -> ExitReport {
    let (mut requested, mut killed) = (false, false);
    let mut deadline: Option<Instant> = None;
    let ending = loop {
        let event = match deadline {
            Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Child) => {}
            Ok(Event::Stop(_)) if requested => {}
            Ok(Event::Stop(grace)) => {
                requested = true;
                rustix::process::kill_process(server, Signal::TERM).ok();
                // A stopped process receives SIGTERM only when it continues.
                rustix::process::kill_process(server, Signal::CONT).ok();
                deadline = Some(Instant::now() + grace);
            }
            Err(_) => {
                killed = true;
                kill_all(groups);
                deadline = Some(Instant::now() + Duration::from_millis(50));
            }
        }
        if let Some(ending) = reap(server) {
            break ending;
        }
    };
    ExitReport { ending, requested, killed, left_over: clear_away(groups) }
}

/// Reaps every child that has ended. Returns the server's ending, if it is among them.
fn reap(server: Pid) -> Option<Ending> {
    let mut ending = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == server {
            ending = Some(ending_of(status));
        }
    }
    ending
}

fn ending_of(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signaled(signal),
        (None, None) => Ending::Unknown,
    }
}

/// Kills all descendants until none is left. Returns how many there were at first.
fn clear_away(groups: &Groups) -> usize {
    let own = std::process::id();
    let left_over = descendants::descendants(own).len();
    let deadline = Instant::now() + KILL_PATIENCE;
    while !descendants::descendants(own).is_empty() && Instant::now() < deadline {
        kill_all(groups);
        thread::sleep(Duration::from_millis(5));
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
    }
    left_over
}

/// Kills what is in the groups and all descendants. They are our children or will be, so none of the ids can
/// belong to a stranger before we reap it.
fn kill_all(groups: &Groups) {
    groups.kill();
    for pid in descendants::descendants(std::process::id()) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            rustix::process::kill_process(pid, Signal::KILL).ok();
        }
    }
}
