//! Any octets are read as two files of answers and joined, without panic and in bounded memory, and every query is
//! counted once.
#![no_main]

use std::alloc::System;

use cap::Cap;
use dnslab_analysis::join_answers;
use dnslab_figures::{AnswerRecord, AnswerRecords};
use libfuzzer_sys::fuzz_target;

/// An allocation beyond it ends the process, which is found.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, 256 << 20);

fuzz_target!(|octets: &[u8]| {
    // The length of the first file, then both.
    let Some((at, octets)) = octets.split_first_chunk() else { return };
    let (one, other) = octets.split_at(usize::from(u16::from_le_bytes(*at)).min(octets.len()));
    let [of_one, of_other] = [one, other].map(records);
    let Ok(joined) = join_answers(one, other) else { return };
    let (Some(of_one), Some(of_other)) = (of_one, of_other) else {
        panic!("a broken file was joined")
    };
    let all = (of_one + of_other) as u64;
    // A name that is there twice takes the place of the one before.
    assert!(2 * joined.compared + joined.alone[0] + joined.alone[1] <= all);
    let differing: u64 = joined.differences.iter().map(|difference| difference.queries).sum();
    let not_kept: u64 = joined.not_kept.iter().map(|(_, count)| count).sum();
    assert_eq!(joined.same + joined.neither + differing + not_kept, joined.compared);
});

/// How many records a file has; `None` if it is broken.
fn records(octets: &[u8]) -> Option<usize> {
    let mut records = AnswerRecords::open(octets).ok()?;
    let mut count = 0;
    while let Some(record) = records.next_record().ok()? {
        assert_eq!(AnswerRecord::read(&record.octets()), Some(record));
        count += 1;
    }
    Some(count)
}
