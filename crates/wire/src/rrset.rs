//! Records of one owner and type.

/// The records of one owner and type, which have one TTL (RFC 9499, section 5; RFC 2181, section 5.2). Their data are as
/// DNSSEC signs them: names are in lower case and have no pointers (RFC 4034, section 6.2).
///
/// ```
/// let mut set = dnslab_wire::RrSet::default();
/// set.begin(dnslab_wire::rtype::A, 60);
/// set.push(|octets| octets.extend_from_slice(&[192, 0, 2, 1]));
/// assert_eq!(set.data().collect::<Vec<_>>(), [[192, 0, 2, 1]]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct RrSet {
    /// Type of all records.
    pub rtype: u16,
    /// Seconds.
    pub ttl: u32,
    octets: Vec<u8>,
    ends: Vec<u32>,
}

impl RrSet {
    /// Empties it for records of another type.
    pub fn begin(&mut self, rtype: u16, ttl: u32) {
        self.rtype = rtype;
        self.ttl = ttl;
        self.octets.clear();
        self.ends.clear();
    }

    /// Adds a record whose data `write` appends.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.octets);
        self.ends.push(self.octets.len() as u32);
    }

    /// True if it has no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The data of each record.
    pub fn data(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let data = &self.octets[start..*end as usize];
            start = *end as usize;
            data
        })
    }
}
