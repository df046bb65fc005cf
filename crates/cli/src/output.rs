//! The standard output and the standard error, through which all that commands print goes.
//!
//! A reader that goes away has what it wanted, and is no reason to lose an experiment: nothing more is printed, and
//! nothing is said. Any other failure, such as a full disk, is kept until the command is over: what was asked for is not
//! there, so the command has failed ([`lost`]).

#![expect(clippy::disallowed_methods, reason = "all output is here")]

use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::sync::{Mutex, PoisonError};

use dnslab_record::visible_lines;

/// Why the standard output is not written any more.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes to the standard output, unless that has failed before. Escape sequences of styles are left out where no
/// terminal wants them.
pub(crate) fn write(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let mut failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
    if failure.is_none() {
        let mut output = anstream::stdout().lock();
        *failure = write(&mut output).and_then(|()| output.flush()).err();
    }
}

/// Writes octets as they are.
pub(crate) fn write_plain(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let mut failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
    if failure.is_none() {
        let mut output = io::stdout().lock();
        *failure = write(&mut output).and_then(|()| output.flush()).err();
    }
}

/// Prints a line. Text of others in it cannot control the terminal.
pub(crate) fn line(text: &str) {
    write_plain(|output| writeln!(output, "{}", visible_lines(text)));
}

/// Prints a line on the standard error. If that is lost, nobody can be told.
pub(crate) fn line_beside(text: &str) {
    writeln!(io::stderr(), "{}", visible_lines(text)).ok();
}

/// True if the standard output goes to a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Why output was lost; `None` if all of it was written, or if nobody wanted the rest.
pub(crate) fn lost() -> Option<io::Error> {
    let mut failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
    failure.take().filter(|error| error.kind() != ErrorKind::BrokenPipe)
}
