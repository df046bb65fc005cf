//! Any messages are profiled without panic and within the limits of memory; what is found is a population.
#![no_main]

use dnslab_traffic::population::{Profiler, ProfilerLimits};
use dnslab_wire::Transport;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let limits = ProfilerLimits { clients: 4, names: 8, recent: 8, ..ProfilerLimits::default() };
    let mut profiler = Profiler::new(limits);
    let (mut rest, mut at_ns) = (octets, 0_u64);
    // The gap before each message, its client and its length are octets of the input.
    while let [gap, client, length, after @ ..] = rest {
        let (message, next) = after.split_at(after.len().min(usize::from(*length)));
        at_ns = at_ns.saturating_add(1_u64 << (gap & 63));
        // A message many times, so that there are enough.
        for _ in 0..20 {
            at_ns = at_ns.saturating_add(u64::from(*gap));
            let transport = Transport::ALL[usize::from(*client) % Transport::ALL.len()];
            profiler.observe(at_ns, client % 32, message, transport);
        }
        profiler.observe_response(message);
        rest = next;
    }
    if let Ok(profile) = profiler.finish() {
        assert_eq!(profile.population.check(), Ok(()), "{:?}", profile.population);
        assert_eq!(profile.population.to_toml().parse(), Ok(profile.population));
    }
});
