//! The file of answers that a load leaves: a header, and as many records as it asked queries.

use std::io::{self, BufReader, Read};

use dnslab_wire::AnswerDigest;

/// Version of the form of the file, in its header. Whatever is added, dnslab goes on reading all of them.
pub const ANSWERS_FORMAT: u32 = 1;

/// The first octets of the file.
const MAGIC: &[u8; 8] = b"DNSLABAN";

/// Octets of the header.
const HEADER: usize = 16;

/// How a query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowEnded {
    /// It was answered.
    Answered,
    /// Its answer is malformed.
    Malformed,
    /// No answer came in time.
    TimedOut,
    /// It could not be sent.
    NotSent,
    /// Its connection ended before the answer.
    ConnectionLost,
    /// The server refused it below DNS: by a status of HTTP, say.
    Refused,
}

impl HowEnded {
    const ALL: [Self; 6] = [
        Self::Answered,
        Self::Malformed,
        Self::TimedOut,
        Self::NotSent,
        Self::ConnectionLost,
        Self::Refused,
    ];

    /// Its number in the file.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// `None` for a number that none has.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// How one query of a load ended, and what its answer says.
///
/// Client and number name the query. They are the same in each load that has the same queries, whatever its
/// transport and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerRecord {
    /// The client that asked, counted over all workers.
    pub client: u32,
    /// Which of the client's queries it is, from 0.
    pub number: u32,
    /// What was asked ([`dnslab_wire::Query::digest`]).
    pub question: u32,
    /// How it ended.
    pub ended: HowEnded,
    /// What its answer says; zero in all parts without a whole answer.
    pub digest: AnswerDigest,
}

/// The header of a file of answers: what it is, its format, and the octets of a record.
#[must_use]
pub fn header() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&ANSWERS_FORMAT.to_le_bytes());
    header[12..].copy_from_slice(&(AnswerRecord::LENGTH as u32).to_le_bytes());
    header
}

impl AnswerRecord {
    /// Octets of a record.
    pub const LENGTH: usize = 36;

    /// The record as octets, numbers with the least significant octet first.
    #[must_use]
    pub fn octets(&self) -> [u8; Self::LENGTH] {
        let AnswerDigest { rcode, flags, answer, authority, additional, signatures, edns } =
            self.digest;
        let mut octets = [0; Self::LENGTH];
        let numbers = [self.client, self.number, self.question];
        let parts = [answer, authority, additional, signatures, edns];
        for (place, number) in octets.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        octets[12..14].copy_from_slice(&rcode.to_le_bytes());
        octets[14] = flags;
        octets[15] = self.ended.number();
        for (place, part) in octets[16..].chunks_exact_mut(4).zip(parts) {
            place.copy_from_slice(&part.to_le_bytes());
        }
        octets
    }

    /// `None` if the query ended in no known way.
    #[must_use]
    pub fn read(octets: &[u8; Self::LENGTH]) -> Option<Self> {
        let number = |at: usize| {
            let four = [octets[at], octets[at + 1], octets[at + 2], octets[at + 3]];
            u32::from_le_bytes(four)
        };
        Some(Self {
            client: number(0),
            number: number(4),
            question: number(8),
            ended: HowEnded::of(octets[15])?,
            digest: AnswerDigest {
                rcode: u16::from_le_bytes([octets[12], octets[13]]),
                flags: octets[14],
                answer: number(16),
                authority: number(20),
                additional: number(24),
                signatures: number(28),
                edns: number(32),
            },
        })
    }
}

/// Why answers cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum AnswersError {
    /// A file cannot be read.
    #[error("cannot read the answers: {0}")]
    Io(#[from] io::Error),
    /// A file is no file of answers.
    #[error("the file of answers does not begin as one")]
    NotAnswers,
    /// A newer dnslab wrote the file.
    #[error(
        "the answers have format {found}; this dnslab reads up to {ANSWERS_FORMAT}: use a newer one"
    )]
    Newer {
        /// Its format.
        found: u32,
    },
    /// A file is cut, or was changed by hand.
    #[error("the file of answers is broken after {whole} records")]
    Broken {
        /// Records before that.
        whole: u64,
    },
    /// The loads had other queries.
    #[error(
        "query {number} of client {client} asks for different things: the loads did not have the same queries"
    )]
    OtherQuestion {
        /// The client.
        client: u32,
        /// Its query, from 0.
        number: u32,
    },
    /// One load is so much ahead of the other that what waits to be joined does not fit.
    #[error("{waiting} queries of one load wait for those of the other; dnslab keeps up to {most}")]
    Apart {
        /// Records that wait.
        waiting: usize,
        /// The bound.
        most: usize,
    },
}

/// Reads a file of answers, record by record.
#[derive(Debug)]
pub struct AnswerRecords<R: Read> {
    reader: BufReader<R>,
    whole: u64,
}

impl<R: Read> AnswerRecords<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// When it is that of another kind of file, or of a newer format.
    pub fn open(source: R) -> Result<Self, AnswersError> {
        const BUFFER: usize = 1 << 18;
        let mut reader = BufReader::with_capacity(BUFFER, source);
        let mut header = [0; HEADER];
        reader.read_exact(&mut header).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => AnswersError::NotAnswers,
            _ => error.into(),
        })?;
        let found = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        match found {
            _ if !header.starts_with(MAGIC) => Err(AnswersError::NotAnswers),
            ANSWERS_FORMAT if header == self::header() => Ok(Self { reader, whole: 0 }),
            0 | ANSWERS_FORMAT => Err(AnswersError::NotAnswers),
            found => Err(AnswersError::Newer { found }),
        }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, ends within a record, or holds something else.
    pub fn next_record(&mut self) -> Result<Option<AnswerRecord>, AnswersError> {
        let mut octets = [0; AnswerRecord::LENGTH];
        let mut read = 0;
        while read < octets.len() {
            match self.reader.read(&mut octets[read..]) {
                Ok(0) if read == 0 => return Ok(None),
                Ok(0) => return Err(AnswersError::Broken { whole: self.whole }),
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let record = AnswerRecord::read(&octets);
        let record = record.ok_or(AnswersError::Broken { whole: self.whole })?;
        self.whole += 1;
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> AnswerRecord {
        AnswerRecord {
            client: 0x0403_0201,
            number: 5,
            question: 6,
            ended: HowEnded::Refused,
            digest: AnswerDigest {
                rcode: 0x0807,
                flags: 9,
                answer: 10,
                authority: 11,
                additional: 12,
                signatures: 13,
                edns: 14,
            },
        }
    }

    /// The octets of format 1, which must be readable for ever.
    const FORMAT_1: [u8; 52] = [
        b'D', b'N', b'S', b'L', b'A', b'B', b'A', b'N', 1, 0, 0, 0, 36, 0, 0, 0, //
        1, 2, 3, 4, 5, 0, 0, 0, 6, 0, 0, 0, 7, 8, 9, 5, //
        10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 13, 0, 0, 0, 14, 0, 0, 0,
    ];

    #[test]
    fn format_1_is_read_and_written() {
        assert_eq!([&header()[..], &record().octets()].concat(), FORMAT_1);
        let mut records = AnswerRecords::open(&FORMAT_1[..]).unwrap();
        assert_eq!(records.next_record().unwrap(), Some(record()));
        assert_eq!(records.next_record().unwrap(), None);
        for ended in HowEnded::ALL {
            assert_eq!(HowEnded::of(ended.number()), Some(ended));
        }
    }

    fn error(octets: &[u8]) -> String {
        let read = AnswerRecords::open(octets).and_then(|mut records| {
            while records.next_record()?.is_some() {}
            Ok(())
        });
        read.unwrap_err().to_string()
    }

    #[test]
    fn broken_files_say_what_they_are() {
        assert_eq!(error(b""), "the file of answers does not begin as one");
        assert_eq!(
            error(b"{\"format\": 1, \"x\": 1}"),
            "the file of answers does not begin as one"
        );
        let mut newer = FORMAT_1;
        newer[8] = 2;
        assert!(error(&newer).starts_with("the answers have format 2"), "{}", error(&newer));
        assert_eq!(error(&FORMAT_1[..50]), "the file of answers is broken after 0 records");
        let mut unknown = [&FORMAT_1[..], &FORMAT_1[16..]].concat();
        unknown[16 + 36 + 15] = 6;
        assert_eq!(error(&unknown), "the file of answers is broken after 1 records");
    }
}
