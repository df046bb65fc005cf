use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use crate::exit::Exit;
use crate::live;

/// Longest wait until the terminal is as it was.
const PATIENCE: Duration = Duration::from_millis(500);

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets. The second one ends the process at once, and the
/// guards then stop their servers.
pub(crate) fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let flag = Arc::clone(&stop);
    // A handler may not give the terminal back; a thread may.
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if flag.swap(true, Ordering::SeqCst) {
                live::restore_within(PATIENCE);
                low_level::exit(Exit::Interrupted.code().into());
            }
        }
    })?;
    Ok(stop)
}
