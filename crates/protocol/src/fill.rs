//! Queries of clients that have their own, as they are sent ahead of a load.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dnslab_traffic::ClientQuery;
use dnslab_wire::Query;
use serde::{Deserialize, Serialize};

use crate::job::UnusableJob;

/// What a worker's clients send next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SentFill {
    /// Further queries.
    Queries(PackedQueries),
    /// No query follows.
    End {
        /// How many there were for this worker.
        queries: u64,
    },
    /// The source cannot be read further.
    Failed {
        /// What is wrong with which source, as half a sentence.
        reason: String,
    },
}

/// Queries with their clients and instants, in base64. Of each: when it is due (nanoseconds since the load began, 8 octets),
/// its client (4), the block that it is padded to (2), the length of its message (2), all in network order, and its message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedQueries(String);

/// Octets before each message.
const HEAD: usize = 16;

impl<'a> FromIterator<&'a ClientQuery> for PackedQueries {
    fn from_iter<I: IntoIterator<Item = &'a ClientQuery>>(queries: I) -> Self {
        let mut octets = Vec::new();
        for ClientQuery { due_ns, client, query } in queries {
            let (message, padding_block) = query.parts();
            octets.extend_from_slice(&due_ns.to_be_bytes());
            octets.extend_from_slice(&client.to_be_bytes());
            octets.extend_from_slice(&padding_block.to_be_bytes());
            let length = u16::try_from(message.len()).expect("a message of DNS is no longer");
            octets.extend_from_slice(&length.to_be_bytes());
            octets.extend_from_slice(&message);
        }
        Self(BASE64.encode(octets))
    }
}

impl PackedQueries {
    /// The queries, in their order.
    ///
    /// # Errors
    /// When they are cut, or a message is none of a query.
    pub fn queries(&self) -> Result<Vec<ClientQuery>, UnusableJob> {
        let octets = BASE64.decode(&self.0)?;
        let (mut rest, mut queries) = (&octets[..], Vec::new());
        while !rest.is_empty() {
            let (head, behind) = rest.split_first_chunk::<HEAD>().ok_or(UnusableJob::Cut)?;
            let [due @ .., c1, c2, c3, c4, p1, p2, l1, l2] = *head;
            let length = usize::from(u16::from_be_bytes([l1, l2]));
            let (message, behind) = behind.split_at_checked(length).ok_or(UnusableJob::Cut)?;
            let query = Query::from_parts(message, u16::from_be_bytes([p1, p2]));
            let number = queries.len() + 1;
            queries.push(ClientQuery {
                due_ns: u64::from_be_bytes(due),
                client: u32::from_be_bytes([c1, c2, c3, c4]),
                query: query.map_err(|source| UnusableJob::Query { number, source })?,
            });
            rest = behind;
        }
        Ok(queries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnslab_wire::QueryOptions;
    use domain::base::Name;
    use domain::base::iana::Rtype;

    fn asked() -> Query {
        let name: Name<Vec<u8>> = "www.example.".parse().unwrap();
        Query::new(&name, Rtype::A, &QueryOptions::default()).unwrap()
    }

    #[test]
    fn queries_are_read_as_they_were_packed_and_not_if_they_are_cut() {
        let query = |number: u32| ClientQuery {
            due_ns: u64::from(number) * 7_000_000_000,
            client: number * 1_000_000_007,
            query: asked(),
        };
        let queries: Vec<ClientQuery> = (0..3).map(query).collect();
        let packed: PackedQueries = queries.iter().collect();
        assert_eq!(packed.queries().unwrap(), queries);
        assert_eq!(PackedQueries(String::new()).queries().unwrap(), []);
        let octets = BASE64.decode(&packed.0).unwrap();
        let length = octets.len() / 3;
        for end in (0..octets.len()).filter(|end| end % length > 0) {
            assert!(PackedQueries(BASE64.encode(&octets[..end])).queries().is_err(), "{end}");
        }
    }
}
