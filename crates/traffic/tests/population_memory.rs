//! What a profile takes in memory, counted by the allocator in the thread of the test.

use dnslab_traffic::population::{Profiler, ProfilerLimits};
use dnslab_wire::{Query, QueryOptions, Transport};
use domain::base::Name;
use domain::base::iana::Rtype;

#[test]
fn a_flood_of_clients_and_names_does_not_fill_the_memory() {
    let limits =
        ProfilerLimits { clients: 1_000, names: 2_000, recent: 3_000, ..ProfilerLimits::default() };
    let mut profiler = Profiler::new(limits);
    let memory = allocation_counter::measure(|| {
        for number in 0..100_000_u64 {
            let name: Name<Vec<u8>> =
                format!("n{number}.p{}.example.", number % 7_000).parse().unwrap();
            let rtype = Rtype::from_int(number as u16);
            let query = Query::new(&name, rtype, &QueryOptions::default()).unwrap();
            // In two seconds.
            profiler.observe(number * 20_000, number % 50_000, query.octets(), Transport::Udp);
        }
    });
    // Of the limits: 1,000 x 250, 2,000 x 60 and 2 x 3,000 x 100 octets, tables half full, and 4,096 kinds.
    assert!(memory.bytes_max < 2_500_000, "{memory:?}");
    let profile = profiler.finish().unwrap();
    // All but two of each type of a zone transfer, which no stub resolver asks for.
    assert_eq!(profile.queries, 100_000 - 4);
    // 50,000 of them, by samples of some hundreds.
    assert!((35_000..70_000).contains(&profile.clients_seen), "{}", profile.clients_seen);
}
