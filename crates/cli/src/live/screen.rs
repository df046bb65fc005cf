//! The view on the terminal: the thread that draws, and the one that listens to keys.
//!
//! The thread that watches the load only leaves a copy of what is to be drawn, a few times a second. Another one draws
//! it, and that one runs when no other has work for its CPU. A third one hears keys and signals: it never draws, so a
//! terminal that takes no frames keeps nobody from leaving.

use std::fs::File;
use std::io::{self, BufWriter, Read as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use dnslab_socket::set_idle_policy;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCONT, SIGQUIT, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::draw::{Look, Paint, draw};
use super::held::{self, Frames};
use super::keys::{Key, Keys};
use super::view::View;

/// Time between two frames. Figures that change faster cannot be read.
const FRAME: Duration = Duration::from_millis(500);

/// Time between two copies of what is drawn: each frame has a new one.
const COPY: Duration = Duration::from_millis(400);

/// Longest wait for the last frame at the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Octets of a frame at most: more than a terminal of 500 columns and 200 rows has in colour.
const LARGEST: usize = 4 << 20;

/// How often to look for signals, and for the end.
const LOOK: Duration = Duration::from_millis(50);

/// What the threads share.
struct Shared {
    /// What is to be drawn next.
    view: Mutex<Option<View>>,
    has_ended: AtomicBool,
    controls: Controls,
    /// When the session began.
    began: Instant,
    /// Set by `q`.
    stop: Arc<AtomicBool>,
}

pub(crate) struct Screen {
    shared: Arc<Shared>,
    painter: JoinHandle<()>,
    copied: Option<Instant>,
}

impl Screen {
    /// Takes the terminal. `began` is when the session began; `q` sets `stop`.
    ///
    /// # Errors
    /// When the terminal cannot be set up.
    pub(crate) fn start(began: Instant, stop: Arc<AtomicBool>, paint: Paint) -> io::Result<Self> {
        let keyboard = keyboard()?;
        let signals = Signals::new([SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH])?;
        let (view, has_ended, controls) = Default::default();
        let shared = Arc::new(Shared { view, has_ended, controls, began, stop });
        held::take()?;
        let painter = Painter { shared: Arc::clone(&shared), paint };
        let painter = shared.start("view", move || painter.work())?;
        let (for_keys, wakes) = (Arc::clone(&shared), painter.thread().clone());
        shared.start("keys", move || for_keys.listen(keyboard, signals, &wakes))?;
        Ok(Self { shared, painter, copied: None })
    }

    /// Shows what `view` gives. Most are passed over, since there are more than frames, unless `must_show`.
    pub(crate) fn show(&mut self, view: impl FnOnce() -> View, must_show: bool) {
        let shown = &self.shared.view;
        if must_show {
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(view());
        } else if self.copied.is_none_or(|copied| copied.elapsed() >= COPY)
            // The thread that draws may hold it for long where it has no CPU.
            && let Ok(mut shown) = shown.try_lock()
        {
            *shown = Some(view());
            self.copied = Some(Instant::now());
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        self.painter.thread().unpark();
        held::has_ended_within(&self.painter, PATIENCE);
        // Also where the thread still waits for the terminal, or for a CPU.
        held::give_back();
    }
}

/// The terminal, to read from.
fn keyboard() -> io::Result<File> {
    let same = |_| Ok(File::from(io::stderr().as_fd().try_clone_to_owned()?));
    File::open("/dev/tty").or_else(same)
}

/// The keys that come while it is time to look for other things. None come in the background, where whoever reads
/// from the terminal is stopped.
fn heard(keyboard: &mut File, keys: &mut Keys) -> Vec<Key> {
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    let mut waits = [PollFd::new(&*keyboard, PollFlags::IN)];
    let is_ready = held::is_ours() && poll(&mut waits, Some(&look)).is_ok_and(|ready| ready > 0);
    let mut octets = [0; 64];
    match is_ready.then(|| keyboard.read(&mut octets)) {
        Some(Ok(count @ 1..)) => return keys.read(&octets[..count], Instant::now()),
        // The terminal is gone. Signals come all the same.
        Some(_) => thread::sleep(LOOK),
        None if !held::is_ours() => thread::sleep(LOOK),
        None => {}
    }
    keys.give_up(Instant::now()).into_iter().collect()
}

impl Shared {
    fn start(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
        thread.inspect_err(|_| {
            self.has_ended.store(true, Ordering::Relaxed);
            held::give_back();
        })
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Hears keys and signals until the view ends.
    fn listen(&self, mut keyboard: File, mut signals: Signals, painter: &Thread) {
        let (mut keys, mut is_away) = (Keys::default(), false);
        while !self.has_ended() {
            for key in heard(&mut keyboard, &mut keys) {
                self.controls.press(key, self.began.elapsed(), &self.stop);
            }
            for signal in signals.pending() {
                match signal {
                    SIGWINCH => self.controls.change(),
                    SIGCONT => {
                        held::renew();
                        self.controls.draw_all();
                    }
                    _ => {
                        held::give_back();
                        // It goes on here after a stop, in front or in the background.
                        is_away = emulate_default_handler(signal).is_ok();
                    }
                }
            }
            if is_away && !self.has_ended() && held::take_again().is_ok_and(|is_taken| is_taken) {
                is_away = false;
                self.controls.draw_all();
            }
            if self.controls.has_changed.load(Ordering::Relaxed) {
                painter.unpark();
            }
        }
    }
}

struct Painter {
    shared: Arc<Shared>,
    paint: Paint,
}

impl Painter {
    fn work(&self) {
        set_idle_policy();
        // A terminal that is gone takes no frames; the load goes on.
        if self.draw_frames().is_err() {
            held::give_back();
        }
    }

    fn draw_frames(&self) -> io::Result<()> {
        let Shared { view: next, controls, began, stop, .. } = &*self.shared;
        // A frame is written at once, so that no part of one is left when this thread loses its CPU.
        let backend = CrosstermBackend::new(BufWriter::with_capacity(LARGEST, Frames));
        let mut terminal = Terminal::new(backend)?;
        let (mut view, mut drawn): (Option<View>, Option<Instant>) = (None, None);
        while !self.shared.has_ended() {
            thread::park_timeout(LOOK);
            // While the view stands still, what comes waits.
            let paused = controls.paused();
            if paused.is_none()
                && let Ok(mut next) = next.lock()
            {
                view = next.take().or(view);
            }
            let has_changed = controls.has_changed.swap(false, Ordering::Relaxed);
            let is_due = has_changed || drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME);
            let (true, Some(view)) = (is_due, &view) else { continue };
            let look = Look {
                now: paused.unwrap_or_else(|| began.elapsed()),
                is_paused: paused.is_some(),
                has_help: controls.has_help.load(Ordering::Relaxed),
                selected: controls.selected.load(Ordering::Relaxed),
                is_leaving: stop.load(Ordering::Relaxed),
                paint: self.paint,
            };
            if controls.must_draw_all.swap(false, Ordering::Relaxed) {
                let size = terminal.size()?;
                terminal.resize(size.into())?;
            }
            terminal.draw(|frame| draw(frame, view, &look))?;
            drawn = Some(Instant::now());
        }
        Ok(())
    }
}

/// What the keys change. The thread that draws may be without a CPU for long: nobody waits for it.
#[derive(Debug, Default)]
struct Controls {
    /// Time of the frame that stands still, since the session began, in nanoseconds and one more; 0 for none.
    paused: AtomicU64,
    has_help: AtomicBool,
    selected: AtomicUsize,
    /// The next frame is due.
    has_changed: AtomicBool,
    /// Something else was written on the terminal meanwhile.
    must_draw_all: AtomicBool,
}

impl Controls {
    /// Time of the frame that stands still, since the session began.
    fn paused(&self) -> Option<Duration> {
        self.paused.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_nanos)
    }

    fn change(&self) {
        self.has_changed.store(true, Ordering::Relaxed);
    }

    fn draw_all(&self) {
        self.must_draw_all.store(true, Ordering::Relaxed);
        self.change();
    }

    /// `now` is the time since the session began.
    fn press(&self, key: Key, now: Duration, stop: &AtomicBool) {
        match key {
            // Whatever was pressed.
            _ if self.has_help.swap(false, Ordering::Relaxed) => {}
            Key::Sign('p' | ' ') => {
                let frame = self.paused().map_or(now.as_nanos() as u64 + 1, |_| 0);
                self.paused.store(frame, Ordering::Relaxed);
            }
            Key::Sign('q') => stop.store(true, Ordering::Relaxed),
            Key::Sign('?' | 'h') | Key::Help => self.has_help.store(true, Ordering::Relaxed),
            Key::Sign('\t') => {
                self.selected.fetch_add(1, Ordering::Relaxed);
            }
            Key::Sign(_) | Key::Other => return,
        }
        self.change();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_the_view_and_only_q_the_load() {
        let (controls, stop) = (Controls::default(), AtomicBool::new(false));
        let press = |key: Key| {
            controls.press(key, Duration::from_secs(3), &stop);
            controls.has_changed.swap(false, Ordering::Relaxed)
        };
        let has_help = || controls.has_help.load(Ordering::Relaxed);
        assert!(press(Key::Sign('p')));
        assert_eq!(controls.paused(), Some(Duration::from_secs(3)));
        assert!(press(Key::Sign(' ')));
        assert_eq!(controls.paused(), None);
        assert!(press(Key::Sign('\t')));
        assert_eq!(controls.selected.load(Ordering::Relaxed), 1);
        assert!(!press(Key::Sign('x')) && !press(Key::Other));
        // While the help is shown, any key closes it, and does nothing else.
        assert!(press(Key::Sign('?')) && has_help());
        assert!(press(Key::Sign('q')) && !has_help());
        assert!(press(Key::Help) && has_help());
        assert!(press(Key::Other) && !has_help());
        assert!(!stop.load(Ordering::Relaxed));
        assert!(press(Key::Sign('q')));
        assert!(stop.load(Ordering::Relaxed));
    }
}
