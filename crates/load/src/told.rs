//! Writes what the queries of a load are told, in a thread of its own.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use dnslab_client::records_of;

use crate::pin::pin_to;

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

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// A query that timed out: client 1, number 2, question 3.
    const BLOCK: [u8; 17] = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0];

    #[test]
    fn all_blocks_are_written_before_the_writer_ends() {
        let file = tempfile::tempfile().unwrap();
        let (teller, writer) = Writer::new(&file);
        let other = teller.clone();
        std::thread::scope(|scope| {
            let written = scope.spawn(|| writer.write(&[]));
            (0..20).for_each(|_| teller.tell(BLOCK.to_vec()));
            (0..20).for_each(|_| other.tell([BLOCK, BLOCK].concat()));
            drop((teller, other));
            written.join().unwrap().unwrap();
        });
        let mut read = Vec::new();
        std::io::Seek::rewind(&mut &file).unwrap();
        (&file).read_to_end(&mut read).unwrap();
        assert_eq!(read.len(), 60 * 36);
        assert!(read.chunks(36).all(|record| record[..12] == BLOCK[..12] && record[15] == 2));
    }

    #[test]
    fn a_worker_waits_for_no_writer() {
        let file = tempfile::tempfile().unwrap();
        let (teller, writer) = Writer::new(&file);
        (0..DEPTH + 50).for_each(|_| teller.tell(BLOCK.to_vec()));
        drop(teller);
        writer.write(&[]).unwrap();
        assert_eq!(file.metadata().unwrap().len() as usize, DEPTH * 36);
    }

    #[test]
    fn a_full_disk_is_told_and_stops_no_worker() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (teller, writer) = Writer::new(&full);
        teller.tell(BLOCK.to_vec());
        let error = writer.write(&[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        teller.tell(BLOCK.to_vec());
    }
}
