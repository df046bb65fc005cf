//! What writing a zone costs in memory, counted by the allocator in the thread of the test: the runner of tests
//! allocates meanwhile.

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::time::Duration;

use dnslab_traffic::{SyntheticZone, ZoneFormat};

#[derive(Debug, Default)]
struct Written {
    octets: usize,
    max_in_use: u64,
}

impl Write for Written {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.octets += octets.len();
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write(format: &ZoneFormat, records: u32) -> Written {
    let zone = SyntheticZone::named("example.test", records, Duration::from_secs(1)).unwrap();
    let mut written = Written::default();
    let memory = allocation_counter::measure(|| zone.write_as(format, &mut written).unwrap());
    written.max_in_use = memory.bytes_max;
    written
}

#[test]
fn a_hundred_times_the_records_take_no_more_memory() {
    let batch = NonZeroU32::new(500).unwrap();
    let formats = [
        ZoneFormat::MasterFile,
        ZoneFormat::IpaScript { batch },
        ZoneFormat::IpaScript { batch: NonZeroU32::MIN },
        ZoneFormat::Ldif { suffix: "dc=example,dc=test".parse().unwrap() },
        ZoneFormat::UpdateCommands { server: None, batch: None },
    ];
    for format in formats {
        // Both fill the buffer.
        let (few, many) = (write(&format, 20_000), write(&format, 2_000_000));
        assert!(many.octets > 90 * few.octets, "{format:?}: {few:?} {many:?}");
        // The larger zone's names have one more digit; otherwise they need the same.
        assert!(many.max_in_use <= few.max_in_use + 64, "{format:?}: {few:?} {many:?}");
        assert!(few.max_in_use < 100_000, "{format:?}: {few:?}");
    }
}
