//! Messages out, as frames.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dnslab_protocol::{Answer, Failure, FrameWriter, FromAgent, body_of};
use serde::Serialize;

/// How often an end with nothing else to say gives a sign of life. Each end waits several times as long for the other's.
pub(crate) const BETWEEN_BEATS: Duration = Duration::from_secs(2);

/// Octets that an end reads at once.
pub(crate) const READ: usize = 64 << 10;

/// The output of an end. Its threads take turns at whole frames.
pub(crate) struct Output<W> {
    inner: Mutex<(FrameWriter, W)>,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(output: W) -> Self {
        Self { inner: Mutex::new((FrameWriter::default(), output)) }
    }

    /// Writes a message at once.
    pub(crate) fn say(&self, message: &impl Serialize) -> io::Result<()> {
        self.say_with(|_| message)
    }

    /// Writes a message, unless another one is being written.
    pub(crate) fn try_say(&self, message: &impl Serialize) -> io::Result<()> {
        let Ok(mut inner) = self.inner.try_lock() else { return Ok(()) };
        let body = body_of(message).map_err(io::Error::other)?;
        write(&mut inner, &body)
    }

    /// Writes a message that is made of how many frames were written before it.
    pub(crate) fn say_with<M: Serialize>(&self, message: impl FnOnce(u64) -> M) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let body = body_of(&message(inner.0.written())).map_err(io::Error::other)?;
        write(&mut inner, &body)
    }

    /// Writes a message that is a body already.
    pub(crate) fn say_body(&self, body: &[u8]) -> io::Result<()> {
        write(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner), body)
    }

    /// Writes octets that are no frame.
    pub(crate) fn greet(&self, greeting: &[u8]) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.1.write_all(greeting)?;
        inner.1.flush()
    }
}

fn write<W: Write>((frames, output): &mut (FrameWriter, W), body: &[u8]) -> io::Result<()> {
    // Nothing was written then.
    let too_long = |broken| io::Error::new(io::ErrorKind::InvalidInput, broken);
    let frame = frames.frame(body).map_err(too_long)?;
    output.write_all(&frame)?;
    output.flush()
}

/// Says what came of an order. What does not fit into a frame has failed.
pub(crate) fn tell_answer<W: Write>(
    output: &Output<W>,
    id: u32,
    done: Result<Answer, Failure>,
) -> io::Result<()> {
    let failed = |failure: Failure| output.say(&FromAgent::Failed { id, failure });
    let answer = match done {
        Ok(answer) => answer,
        Err(failure) => return failed(failure),
    };
    match output.say(&FromAgent::Done { id, answer }) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            failed(Failure::of(format!("its answer is too long: {error}")))
        }
        said => said,
    }
}
