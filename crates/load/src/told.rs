//! Writes what the queries of a load are told, in a thread of its own.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use dnslab_client::records_of;

use crate::engine::pin_to;

/// Blocks that wait to be written at most, some 140 kB each.
const DEPTH: usize = 512;

/// Takes the blocks of a worker.
#[derive(Clone)]
pub(crate) struct Teller(SyncSender<Vec<u8>>);

impl Teller {
    /// Passes a block on. If the writer is behind by [`DEPTH`] blocks, this one is lost: a worker waits for
    /// nobody, and the comparison counts queries of one side alone.
    pub(crate) fn tell(&self, block: Vec<u8>) {
        self.0.try_send(block).ok();
    }
}

/// Writes the records of all blocks until no worker is left.
pub(crate) struct Writer<'a> {
    file: &'a File,
    blocks: Receiver<Vec<u8>>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(file: &'a File) -> (Teller, Self) {
        let (sender, blocks) = sync_channel(DEPTH);
        (Teller(sender), Self { file, blocks })
    }

    /// Stays on these CPUs, as far as that can be done.
    ///
    /// # Errors
    /// When the disk refuses. The workers go on all the same.
    pub(crate) fn write(mut self, cpus: &[usize]) -> io::Result<()> {
        pin_to(cpus).ok();
        let mut records = Vec::new();
        while let Ok(block) = self.blocks.recv() {
            records.clear();
            records_of(&block, &mut records);
            self.file.write_all(&records)?;
        }
        Ok(())
    }
}
