//! Any text is read as a query file without panic; what is accepted is not empty of queries.
#![no_main]

use dnslab_traffic::QueryList;
use dnslab_wire::QueryOptions;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    if let Ok(list) = QueryList::from_text(octets, "fuzz", &QueryOptions::default()) {
        assert!(!list.is_empty());
    }
});
