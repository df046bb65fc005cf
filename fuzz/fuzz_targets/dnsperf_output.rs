//! Any octets are read as the output of dnsperf, or as dns-metrics, without panic and in bounded memory. What is
//! accepted adds up and makes records that can be written, read again and summarised.
#![no_main]

use std::alloc::System;

use cap::Cap;
use dnslab_analysis::Summary;
use dnslab_import::{ImportFacts, ImportSource, read, results_of};
use dnslab_record::RunRecord;
use libfuzzer_sys::fuzz_target;

/// An allocation beyond it ends the process, which is found.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, 256 << 20);

fuzz_target!(|octets: &[u8]| {
    let Ok(runs) = read(octets) else { return };
    let source =
        |run| ImportSource { variant: "fuzz".to_owned(), file: "fuzz.txt".to_owned(), run };
    // As many as take no time.
    let sources = runs.into_iter().take(10).map(source).collect();
    let (session, records) = results_of(ImportFacts::default(), sources);
    for record in &records {
        let measured = record.measured.as_ref().expect("an imported run was measured");
        measured.counters.outcomes.check().expect("a run is read only if its sums hold");
        assert!(measured.intervals.len() <= 1_000);
        let written = serde_json::to_vec(record).expect("a record can be written");
        let again = serde_json::from_slice::<RunRecord>(&written).expect("and read again");
        assert_eq!(again.variant, record.variant);
    }
    assert_eq!(Summary::of(&session, &records).missing_runs, 0);
});
