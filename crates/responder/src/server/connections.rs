//! A worker's table of connections.

use dnslab_transport::quic::Holder;

use super::stream::Connection;
use super::token::ConnectionId;

/// Places are used again, names are not.
#[derive(Default)]
pub(super) struct Connections {
    /// A free place keeps the name of its next connection.
    places: Vec<Place>,
    free: Vec<u32>,
    count: usize,
    /// Octets that all of them hold.
    memory: usize,
}

enum Place {
    Free(ConnectionId),
    Taken(ConnectionId, Box<Connection>),
}

impl Connections {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The name of the connection that is added next.
    pub(super) fn next_id(&mut self) -> ConnectionId {
        if self.free.is_empty() {
            let place = u32::try_from(self.places.len()).expect("descriptors end before 4 G");
            self.places.push(Place::Free(ConnectionId { place, generation: 0 }));
            self.free.push(place);
        }
        let place = self.free[self.free.len() - 1];
        match self.places[place as usize] {
            Place::Free(id) | Place::Taken(id, _) => id,
        }
    }

    /// The name is that of [`Connections::next_id`].
    pub(super) fn add(&mut self, id: ConnectionId, connection: Connection) {
        debug_assert_eq!(self.free.last(), Some(&id.place), "the name was given out by next_id");
        self.free.pop();
        self.places[id.place as usize] = Place::Taken(id, Box::new(connection));
        self.count += 1;
    }

    /// `None` if the connection is gone.
    pub(super) fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        match self.places.get_mut(id.place as usize)? {
            Place::Taken(taken, connection) if *taken == id => Some(connection),
            _ => None,
        }
    }

    /// Dropping the connection closes it.
    pub(super) fn remove(&mut self, id: ConnectionId) {
        if let Some(connection) = self.get(id) {
            let memory = connection.noted_memory;
            self.memory -= memory;
            self.places[id.place as usize] = Place::Free(id.successor());
            self.free.push(id.place);
            self.count -= 1;
        }
    }

    /// Notes the memory that this connection holds now.
    pub(super) fn note_memory(&mut self, id: ConnectionId) {
        let Some(connection) = self.get(id) else { return };
        let memory = connection.memory();
        let before = std::mem::replace(&mut connection.noted_memory, memory);
        self.memory = self.memory - before + memory;
    }

    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// With the memory that each holds, octets.
    pub(super) fn holders(&self) -> impl Iterator<Item = Holder<ConnectionId>> {
        self.taken().map(|(connection, stream)| Holder { connection, memory: stream.noted_memory })
    }

    /// Frees memory that is only kept for later.
    pub(super) fn release_memory(&mut self) {
        let mut memory = 0;
        for place in &mut self.places {
            if let Place::Taken(_, connection) = place {
                connection.release();
                connection.noted_memory = connection.memory();
                memory += connection.noted_memory;
            }
        }
        self.memory = memory;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.taken().map(|(_, connection)| connection)
    }

    pub(super) fn matching(&self, is_wanted: impl Fn(&Connection) -> bool) -> Vec<ConnectionId> {
        self.taken().filter(|(_, connection)| is_wanted(connection)).map(|(id, _)| id).collect()
    }

    fn taken(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.places.iter().filter_map(|place| match place {
            Place::Taken(id, connection) => Some((*id, &**connection)),
            Place::Free(_) => None,
        })
    }
}
