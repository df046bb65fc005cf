//! The shares of loads as an agent has them, and what it tells of them. The agent of the coordinator's own process is handed
//! shares as they are, and hands its news over as they are: nothing is written, sent and read.

use std::collections::HashMap;
use std::fs::File;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dnslab_figures::Histogram;
use dnslab_load::{ClientTraffic, IntervalRecord, Job, Share};
use dnslab_protocol::Counted;
use dnslab_record::MeasuredShare;

/// The share of a load. Other agents make it of what they are sent.
#[derive(Debug)]
pub(crate) struct OwnShare {
    pub(crate) job: Job,
    pub(crate) share: Share,
    /// Clients with queries of their own.
    pub(crate) clients: Option<Arc<dyn ClientTraffic>>,
    /// Where what its queries are told is written, if somebody wants to know.
    pub(crate) told: Option<Arc<File>>,
}

/// What a host tells of its shares of loads.
#[derive(Debug)]
pub(crate) enum LoadNews {
    /// All its workers have finished an interval.
    Interval { member: usize, record: Box<Counted<IntervalRecord>> },
    /// They have ended.
    Ended { member: usize, share: Result<Box<Counted<MeasuredShare>>, String> },
}

/// The shares of loads, and where news of them go.
#[derive(Debug)]
pub(crate) struct HandedLoad {
    pub(crate) members: Vec<OwnShare>,
    pub(crate) news: SyncSender<LoadNews>,
    pub(crate) spares: Spares,
}

/// Empty histograms, in place of those that go with news. Each has 216 KiB, for which the kernel would have to find pages.
/// Only threads that add up wait for each other here, and not whoever sends them.
#[derive(Debug)]
pub(crate) struct Spares(Mutex<Receiver<Histogram>>);

impl Spares {
    pub(crate) fn new() -> (Self, Sender<Histogram>) {
        let (sender, spares) = mpsc::channel();
        (Self(Mutex::new(spares)), sender)
    }

    pub(crate) fn take(&self) -> Histogram {
        let spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spares.try_recv().unwrap_or_default()
    }
}

/// What waits for the order to make it ready, by the number of that load.
#[derive(Debug, Default)]
pub(crate) struct Handed(Mutex<HashMap<u32, HandedLoad>>);

impl Handed {
    pub(crate) fn put(&self, load: u32, handed: HandedLoad) {
        self.loads().insert(load, handed);
    }

    pub(crate) fn take(&self, load: u32) -> Option<HandedLoad> {
        self.loads().remove(&load)
    }

    fn loads(&self) -> MutexGuard<'_, HashMap<u32, HandedLoad>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
