//! The terminal while the view has it: taken, and given back whatever happens.

use std::io::{self, Write};
use std::panic;
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

/// Longest wait until a terminal has taken what is written. One that takes nothing more must not keep the process.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// The modes of the terminal before the view took it; `None` while it has not. Whoever takes them out of here gives
/// the terminal back.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Held while a frame is written.
static DRAWING: Mutex<()> = Mutex::new(());

/// Takes the terminal.
///
/// # Errors
/// When it cannot be set up. It is as it was then.
pub(super) fn take() -> io::Result<()> {
    restore_at_panic();
    let mut before = lock(&BEFORE);
    let earlier = tcgetattr(io::stderr())?;
    set_modes(&earlier)?;
    *before = Some(earlier);
    drop(before);
    send(&sequence(|octets| queue!(octets, EnterAlternateScreen, Hide))).inspect_err(|_| restore())
}

/// The octets of commands to the terminal.
fn sequence(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
    let mut octets = Vec::new();
    write(&mut octets).expect("a vector takes all octets");
    octets
}

/// Writes to the terminal, past the lock of the standard library: a thread that waits for the terminal or for a CPU may
/// hold that for ever.
fn send(mut octets: &[u8]) -> io::Result<()> {
    while !octets.is_empty() {
        match rustix::io::write(io::stderr(), octets) {
            Ok(count) => octets = &octets[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Takes the terminal again after this process was stopped, if it is in front; returns whether it is. Whoever changes
/// the terminal in the background is stopped.
///
/// # Errors
/// As for [`take`].
pub(super) fn take_again() -> io::Result<bool> {
    let is_in_front = is_in_front();
    if is_in_front {
        take()?;
    }
    Ok(is_in_front)
}

/// Sets the modes of the view, which a shell has changed while this process was stopped.
pub(super) fn renew() {
    if let Some(before) = lock(&BEFORE).as_ref().filter(|_| is_in_front()) {
        // A terminal that is gone has no modes.
        set_modes(before).ok();
    }
}

/// The modes of the view on a terminal that had these before. Keys come at once and are not shown. The kernel still
/// makes signals of Ctrl-C and Ctrl-Z, so that they are heard whatever the threads of this process do.
fn set_modes(before: &Termios) -> io::Result<()> {
    let mut modes = before.clone();
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
    // Ctrl-S would stop the view for good.
    modes.input_modes -= InputModes::IXON;
    Ok(tcsetattr(io::stderr(), OptionalActions::Now, &modes)?)
}

fn is_in_front() -> bool {
    tcgetpgrp(io::stderr()).is_ok_and(|group| group == getpgrp())
}

/// The view has the terminal, and its keys come to this process.
pub(super) fn is_ours() -> bool {
    is_held() && is_in_front()
}

fn is_held() -> bool {
    lock(&BEFORE).is_some()
}

/// Takes whole frames, and drops those for which the terminal is no longer there. Only the writing is exclusive: the
/// thread that draws may be without a CPU for long.
#[derive(Debug)]
pub(super) struct Frames;

impl Write for Frames {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let _drawing = lock(&DRAWING);
        if is_ours() {
            send(octets)?;
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives the terminal back as it was, if the view has it.
fn restore() {
    let Some(before) = lock(&BEFORE).take() else { return };
    // First what never waits.
    tcsetattr(io::stderr(), OptionalActions::Now, &before).ok();
    // A frame that is under way would hide the cursor again.
    let given_up = Instant::now() + PATIENCE;
    let _drawing = loop {
        match DRAWING.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < given_up => {
                thread::sleep(Duration::from_millis(2));
            }
            tried => break tried.ok(),
        }
    };
    send(&sequence(|octets| queue!(octets, LeaveAlternateScreen, Show))).ok();
}

/// Gives the terminal back, if the view has it. A terminal that takes nothing more keeps the caller no longer than
/// twice [`PATIENCE`].
pub(crate) fn give_back() {
    if !is_held() {
        return;
    }
    match thread::Builder::new().name("terminal".to_owned()).spawn(restore) {
        Ok(thread) => {
            has_ended_within(&thread, 2 * PATIENCE);
        }
        Err(_) => restore(),
    }
}

/// Waits for the end of a thread that a terminal may hold for ever.
pub(super) fn has_ended_within(thread: &JoinHandle<()>, patience: Duration) -> bool {
    let given_up = Instant::now() + patience;
    while !thread.is_finished() && Instant::now() < given_up {
        thread::sleep(Duration::from_millis(5));
    }
    thread.is_finished()
}

/// The message of a panic must not be lost with the screen.
fn restore_at_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let earlier = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            give_back();
            earlier(panic);
        }));
    });
}

/// A thread that panicked has left plain values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
