use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use dnslab_lab::pods;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use crate::exit::Exit;
use crate::live;

/// What must not stay when the process is ended at once.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// What the first signal sets, once somebody looks at it.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Removes this folder when a signal ends the process at once, which drops nothing then.
pub(crate) fn remove_at_exit(folder: &Path) {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).push(folder.to_owned());
}

/// A file that outgrows the limit of `ulimit -f` is an error of whoever writes it, and no end without a word
/// (setrlimit(2)). A handler that does nothing, not "ignore": an ignored signal stays ignored in programs that are
/// executed.
pub(crate) fn outlive_large_files() {
    // Without it the program ends as other programs do.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).ok();
}

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets, one for the process. The second one ends the process at once, and
/// the guards then stop their servers.
pub(crate) fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    listen()?;
    Ok(Arc::clone(STOP.get_or_init(Arc::default)))
}

/// From here on a signal leaves nothing behind, also as long as nobody looks at the flag: it ends the process at once.
pub(crate) fn listen() -> io::Result<()> {
    static LISTENS: Mutex<bool> = Mutex::new(false);
    let mut listens = LISTENS.lock().unwrap_or_else(PoisonError::into_inner);
    if *listens {
        return Ok(());
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    // A handler may not give the terminal back; a thread may.
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if STOP.get().is_none_or(|stop| stop.swap(true, Ordering::SeqCst)) {
                live::give_back();
                for folder in TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    fs::remove_dir_all(folder).ok();
                }
                pods::remove_all();
                low_level::exit(Exit::Interrupted.code().into());
            }
        }
    })?;
    *listens = true;
    Ok(())
}
