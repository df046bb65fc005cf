//! Any octets are read as a session without panic and in bounded memory; what is accepted can be
//! written and read again.
#![no_main]

use std::alloc::System;

use cap::Cap;
use dnslab_record::Session;
use libfuzzer_sys::fuzz_target;

/// An allocation beyond it ends the process, which is found.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, 256 << 20);

fuzz_target!(|octets: &[u8]| {
    let Ok(session) = serde_json::from_slice::<Session>(octets) else { return };
    let written = serde_json::to_vec(&session).expect("what was read can be written");
    let again = serde_json::from_slice::<Session>(&written);
    assert!(again.is_ok(), "{}", String::from_utf8_lossy(&written));
});
