//! Clients that come while the load runs.

/// The clients that have come so far, in the order of their numbers. None comes in a load whose clients are known
/// at the start.
#[derive(Default)]
pub(super) struct Comers {
    slots: Vec<u32>,
    askers: u32,
}

impl Comers {
    /// The slot of a client's first connection, if the client has come.
    #[inline]
    pub(super) fn slot(&self, client: u32) -> Option<u32> {
        self.slots.get(client as usize).copied()
    }

    pub(super) fn count(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The next client has come, and has this slot.
    pub(super) fn add(&mut self, slot: u32) {
        self.slots.push(slot);
    }

    /// One of them has a query that became due, for the first time.
    pub(super) fn note_asker(&mut self) {
        self.askers += 1;
    }

    /// How many of them have asked something.
    pub(super) fn askers(&self) -> u32 {
        self.askers
    }
}
