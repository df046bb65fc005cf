//! What workers leave behind, as it ever was: a change of the engine that is meant to change nothing changes none of
//! these digests. Over QUIC there are none: sizes of its packets depend on numbers that the system draws, and with them
//! what a seed means.
//!
//! `DNSLAB_SEEDS=1000 DNSLAB_BLESS=1 cargo test -p dnslab-client simulation` writes them anew.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::hash::Hasher as _;
use std::path::PathBuf;

use dnslab_figures::{ByPhase, WindowCounts};
use dnslab_wire::Transport;
use fnv::FnvHasher;

use super::scenario::Played;

/// Seeds that have one digest together.
const TOGETHER: u64 = 25;

/// The digests of the seeds of a transport, which are played in their order.
pub(super) struct Digests {
    transport: Transport,
    found: RefCell<Found>,
}

#[derive(Default)]
struct Found {
    seeds: u64,
    /// One for each [`TOGETHER`] seeds that were all played.
    whole: Vec<u64>,
    /// FNV-1a, which is the same on every machine and with every compiler.
    present: FnvHasher,
}

impl Digests {
    pub(super) fn of(transport: Transport) -> Self {
        Self { transport, found: RefCell::default() }
    }

    pub(super) fn add(&self, seed: u64, played: &Played) {
        let mut found = self.found.borrow_mut();
        // One seed alone, as the environment asks for it, has none.
        if self.transport.is_quic() || seed != found.seeds {
            return;
        }
        if seed.is_multiple_of(TOGETHER) {
            found.present = FnvHasher::default();
        }
        // A count that came later, and is 0 of all of them, changes no digest.
        found.present.write(text(played).replace(" searched: 0,", "").as_bytes());
        found.seeds += 1;
        if found.seeds.is_multiple_of(TOGETHER) {
            let present = found.present.finish();
            found.whole.push(present);
        }
    }

    /// Compares them with those that were written, as many as both are.
    #[track_caller]
    pub(super) fn compare(&self) {
        let found = self.found.borrow();
        if found.whole.is_empty() {
            return;
        }
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("src/simulation/digests")
            .join(self.transport.to_string());
        if std::env::var_os("DNSLAB_BLESS").is_some() {
            let mut lines = found.whole.iter().fold(String::new(), |mut lines, digest| {
                let _ = writeln!(lines, "{digest:016x}");
                lines
            });
            // Those of seeds that were not played stay: a run of few must not take the net away from a run of many.
            let before = fs::read_to_string(&path).unwrap_or_default();
            lines.extend(before.split_inclusive('\n').skip(found.whole.len()));
            fs::write(&path, lines).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap();
        for (place, (digest, written)) in found.whole.iter().zip(written.lines()).enumerate() {
            let first = place as u64 * TOGETHER;
            assert_eq!(
                format!("{digest:016x}"),
                written,
                "the seeds {first} to {} over {} end otherwise than before",
                first + TOGETHER - 1,
                self.transport
            );
        }
    }
}

/// All that a worker leaves behind but what the octets of TLS decide.
fn text(played: &Played) -> String {
    let Played { end, right, asked, transcript, .. } = played;
    let recorder = &end.recorder;
    let (mut latency, mut service, mut lag) = Default::default();
    recorder.add_times(&mut latency, &mut service, &mut lag);
    let mut windows = [(); 3].map(|()| WindowCounts::default());
    recorder.add_windows(&mut windows);
    let times = [latency, service, lag, recorder.start_lag.clone()].map(|times| {
        (
            times.len(),
            times.min_ns(),
            times.max_ns(),
            times.quantile_ns(0.5),
            times.quantile_ns(0.99),
        )
    });
    let windows = windows.map(|window| (window.outcomes, window.rcodes));
    let ByPhase { warm_up, measured } = recorder.clone().into_counters();
    let in_window = (recorder.sent_in_window, recorder.answered_in_window);
    format!(
        "({warm_up:?}, {measured:?}) {times:?} {windows:?} {in_window:?} {right} {asked} {transcript:?} {:?}",
        (
            end.elapsed,
            end.until,
            end.clients,
            end.open_clients,
            end.served_clients,
            end.held,
            end.drops
        )
    )
}
