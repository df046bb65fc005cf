//! The terminal while the view is on it: its modes, its keys, and the thread that draws.
//!
//! The thread that watches the load only leaves a copy of what is to be drawn, a few times a second. Another one draws
//! it, and that one runs when no other has work for its CPU.

use std::io::{self, BufWriter, Stderr};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dnslab_socket::set_idle_policy;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, raise};

use super::draw::{Look, Paint, draw};
use super::view::View;

/// Time between two frames. Figures that change faster cannot be read.
const FRAME: Duration = Duration::from_millis(500);

/// Time between two copies of what is drawn: each frame has a new one.
const COPY: Duration = Duration::from_millis(400);

/// Longest wait for the last frame at the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often to look for a key.
const LOOK: Duration = Duration::from_millis(50);

/// The terminal is the view's. Whoever clears it restores the terminal.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Held while a frame is drawn.
static DRAWING: Mutex<()> = Mutex::new(());

/// Gives the terminal back as it was, if the view has it.
fn restore() {
    if IS_ON.swap(false, Ordering::SeqCst) {
        // A frame that is under way would hide the cursor again.
        let given_up = Instant::now() + FRAME;
        let _frame = loop {
            match DRAWING.try_lock() {
                Err(TryLockError::WouldBlock) if Instant::now() < given_up => {
                    thread::sleep(Duration::from_millis(2));
                }
                tried => break tried.ok(),
            }
        };
        execute!(io::stderr(), LeaveAlternateScreen, Show).ok();
        disable_raw_mode().ok();
    }
}

/// [`restore`], but a terminal that takes nothing more keeps the process no longer than this.
pub(crate) fn restore_within(patience: Duration) {
    has_ended_within(&thread::spawn(restore), patience);
}

/// Waits for the end of a thread that a terminal may hold for ever.
fn has_ended_within(thread: &JoinHandle<()>, patience: Duration) -> bool {
    let given_up = Instant::now() + patience;
    while !thread.is_finished() && Instant::now() < given_up {
        thread::sleep(Duration::from_millis(5));
    }
    thread.is_finished()
}

fn take_terminal() -> io::Result<()> {
    enable_raw_mode()?;
    IS_ON.store(true, Ordering::SeqCst);
    execute!(io::stderr(), EnterAlternateScreen, Hide).inspect_err(|_| restore())
}

/// The message of a panic must not be lost with the screen.
fn restore_at_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let earlier = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore();
            earlier(panic);
        }));
    });
}

/// What is to be drawn next, and whether that is all.
#[derive(Default)]
struct Mailbox {
    view: Mutex<Option<View>>,
    has_ended: AtomicBool,
}

pub(crate) struct Screen {
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
    copied: Option<Instant>,
}

impl Screen {
    /// Takes the terminal. `began` is when the session began; `q` sets `stop`.
    ///
    /// # Errors
    /// When the terminal cannot be set up.
    pub(crate) fn start(began: Instant, stop: Arc<AtomicBool>, paint: Paint) -> io::Result<Self> {
        restore_at_panic();
        let signals = Signals::new([SIGQUIT, SIGTSTP])?;
        take_terminal()?;
        let mailbox = Arc::new(Mailbox::default());
        let painter = Painter { mailbox: Arc::clone(&mailbox), began, stop, paint };
        let thread = thread::Builder::new().name("view".to_owned()).spawn(move || {
            set_idle_policy();
            // A terminal that is gone takes no frames; the load goes on.
            painter.work(signals).ok();
            restore();
        });
        let thread = thread.inspect_err(|_| restore())?;
        Ok(Self { mailbox, thread: Some(thread), copied: None })
    }

    /// Shows what `view` gives. Most are passed over, since there are more than frames, unless `must_show`.
    pub(crate) fn show(&mut self, view: impl FnOnce() -> View, must_show: bool) {
        let mailbox = &self.mailbox.view;
        if must_show {
            *mailbox.lock().unwrap_or_else(PoisonError::into_inner) = Some(view());
        } else if self.copied.is_none_or(|copied| copied.elapsed() >= COPY)
            // The thread that draws may hold it for long where it has no CPU.
            && let Ok(mut mailbox) = mailbox.try_lock()
        {
            *mailbox = Some(view());
            self.copied = Some(Instant::now());
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.mailbox.has_ended.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return };
        // A terminal that takes nothing more must not keep the report.
        if has_ended_within(&thread, PATIENCE) {
            thread.join().ok();
            restore();
        }
    }
}

struct Painter {
    mailbox: Arc<Mailbox>,
    began: Instant,
    stop: Arc<AtomicBool>,
    paint: Paint,
}

impl Painter {
    fn work(&self, mut signals: Signals) -> io::Result<()> {
        let open = || Terminal::new(CrosstermBackend::new(BufWriter::new(io::stderr())));
        let mut terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>> = open()?;
        let mut state = State::default();
        let mut drawn: Option<Instant> = None;
        while !self.mailbox.has_ended.load(Ordering::Relaxed) {
            let mut is_due = drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME);
            if event::poll(LOOK)? {
                is_due |= match event::read()? {
                    Event::Key(key) => state.press(key, self.began.elapsed(), &self.stop),
                    Event::Resize(..) => true,
                    _ => false,
                };
            }
            for signal in signals.pending() {
                restore();
                emulate_default_handler(signal)?;
                // It goes on after a stop.
                take_terminal()?;
                terminal = open()?;
                is_due = true;
            }
            // While the view stands still, what comes waits.
            if state.paused.is_none()
                && let Ok(mut mailbox) = self.mailbox.view.lock()
                && let Some(view) = mailbox.take()
            {
                state.view = Some(view);
            }
            let _frame = DRAWING.lock();
            if !IS_ON.load(Ordering::SeqCst) {
                break;
            }
            if let (true, Some(view)) = (is_due, &state.view) {
                let look = Look {
                    now: state.paused.unwrap_or_else(|| self.began.elapsed()),
                    is_paused: state.paused.is_some(),
                    has_help: state.has_help,
                    selected: state.selected,
                    is_leaving: self.stop.load(Ordering::Relaxed),
                    paint: self.paint,
                };
                terminal.draw(|frame| draw(frame, view, &look))?;
                drawn = Some(Instant::now());
            }
        }
        Ok(())
    }
}

/// What the keys change.
#[derive(Default)]
struct State {
    view: Option<View>,
    /// Time of the frame that stands still, since the session began.
    paused: Option<Duration>,
    has_help: bool,
    selected: usize,
}

impl State {
    /// `now` is the time since the session began. Returns whether the key has changed anything.
    fn press(&mut self, key: KeyEvent, now: Duration, stop: &AtomicBool) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            // In raw mode the terminal sends no signal. A second one ends the process.
            KeyCode::Char('c') if is_control => {
                raise(SIGINT).ok();
            }
            KeyCode::Char('z') if is_control => {
                raise(SIGTSTP).ok();
            }
            _ if self.has_help => self.has_help = false,
            KeyCode::Char('p' | ' ') => self.paused = self.paused.xor(Some(now)),
            KeyCode::Char('q') => stop.store(true, Ordering::Relaxed),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.has_help = true,
            KeyCode::Tab => self.selected += 1,
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(state: &mut State, code: KeyCode, stop: &AtomicBool) -> bool {
        state.press(KeyEvent::new(code, KeyModifiers::NONE), Duration::from_secs(3), stop)
    }

    #[test]
    fn keys_change_the_view_and_only_q_the_load() {
        let (mut state, stop) = (State::default(), AtomicBool::new(false));
        assert!(press(&mut state, KeyCode::Char('p'), &stop));
        assert_eq!(state.paused, Some(Duration::from_secs(3)));
        assert!(press(&mut state, KeyCode::Char(' '), &stop));
        assert_eq!(state.paused, None);
        assert!(press(&mut state, KeyCode::Tab, &stop));
        assert_eq!(state.selected, 1);
        assert!(!press(&mut state, KeyCode::Char('x'), &stop));
        // While the help is shown, any key closes it, and does nothing else.
        assert!(press(&mut state, KeyCode::Char('?'), &stop) && state.has_help);
        assert!(press(&mut state, KeyCode::Char('q'), &stop) && !state.has_help);
        assert!(!stop.load(Ordering::Relaxed));
        assert!(press(&mut state, KeyCode::Char('q'), &stop));
        assert!(stop.load(Ordering::Relaxed));
    }
}
