//! Any octets are read as the output of `perf script`, without panic and in bounded memory, and every sample is in one
//! part, one library and one stack.
#![no_main]

use std::alloc::System;

use cap::Cap;
use dnslab_lab::ServerKind;
use dnslab_lab::perf::profile_of;
use libfuzzer_sys::fuzz_target;

/// An allocation beyond it ends the process, which is found.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, 256 << 20);

fuzz_target!(|octets: &[u8]| {
    // Which server, how many stacks, then the text.
    let Some(([kind, stacks], text)) = octets.split_first_chunk() else { return };
    let kind = ServerKind::ALL.get(usize::from(*kind)).copied();
    let profile = profile_of(text, kind, (0, u64::MAX), usize::from(*stacks));
    let profile = profile.expect("octets in memory can be read");
    assert_eq!(profile.fault(), None, "{profile:?}");
    let written = serde_json::to_vec(&profile).expect("it can be written");
    let read = serde_json::from_slice(&written);
    assert_eq!(read.ok(), Some(profile));
});
