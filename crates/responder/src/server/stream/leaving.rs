//! The end of a connection whose quota of queries is used up: its answers arrive, whatever its client sends
//! meanwhile.

use std::net::Shutdown;

use super::quota::Stage;
use super::{Connection, READS, read};
use crate::counters::Ended;

impl Connection {
    pub(in crate::server) fn queries(&self) -> u64 {
        self.quota.taken
    }

    /// Only the client's end is waited for.
    pub(in crate::server) fn is_lingering(&self) -> bool {
        self.quota.stage == Stage::Lingering
    }

    /// The real reason. A client may be the first to close a connection on which it may ask no more, and may
    /// close it in any way once it has all answers.
    pub(in crate::server) fn why(&self, ended: Ended) -> Ended {
        match ended {
            Ended::Broken if self.is_lingering() => Ended::Quota,
            Ended::Closed if self.quota.is_used_up() => Ended::Quota,
            other => other,
        }
    }

    /// Closes the server's side once the quota is used up and every answer is written. Over HTTP/2 the client
    /// is told first (GOAWAY), and what it sent before it knew is answered.
    pub(super) fn leave(&mut self) {
        let is_done = match self.http {
            Some(_) => self.quota.stage == Stage::Spoken,
            None => self.quota.is_used_up(),
        };
        if !is_done || self.is_waiting() || !self.unwritten.is_empty() || self.is_lingering() {
            return;
        }
        self.quota.stage = Stage::Lingering;
        self.say_good_bye();
        // Fails if the client is gone; then the next read says so.
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Drops what the client still sends; an error when it has closed its side or is gone.
    pub(super) fn drop_input(&mut self) -> Result<(), Ended> {
        let mut dropped = [0; 4096];
        for _ in 0..READS {
            match read(&mut self.socket, &mut dropped) {
                Ok(None) => return Ok(()),
                Ok(Some(0)) | Err(_) => return Err(Ended::Quota),
                Ok(Some(_)) => {}
            }
        }
        Ok(())
    }
}
