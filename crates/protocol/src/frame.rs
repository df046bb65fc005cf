//! Frames: how messages are told apart on a stream of octets that may be cut anywhere.
//!
//! A frame is a head of 16 octets and a body. The head has the length of the body, the place of the frame in its stream,
//! counted from 0, and a CRC-32 of both and the body, each in network order. So octets that are lost, repeated, exchanged
//! or changed on the way are seen, and a stream that ends early is, since its last message says how many frames it has.
//!
//! Before its first frame an agent says a line, [`GREETING`]. What comes before that line is not from it: a login shell
//! may print a banner.

/// What an agent says first, with the end of the line.
pub const GREETING: &[u8] = b"dnslab-agent 1\n";

/// How the line begins, whatever the version.
const GREETS: &[u8] = b"dnslab-agent ";

/// Octets of a body at most.
pub const MAX_BODY: usize = 16 << 20;

/// Octets before the greeting at most.
const MAX_BANNER: usize = 64 << 10;

const HEAD: usize = 16;

/// Why a stream cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenStream {
    /// A body is longer than [`MAX_BODY`].
    #[error("a frame of {length} octets is longer than the {MAX_BODY} that there may be")]
    TooLong {
        /// Octets of the body.
        length: usize,
    },
    /// A frame is not the one that follows.
    #[error(
        "frame {found} came in place of frame {expected}: some were lost, repeated or exchanged"
    )]
    Sequence {
        /// The one that follows.
        expected: u64,
        /// The one that came.
        found: u64,
    },
    /// Octets were changed.
    #[error("frame {sequence} was changed on its way: its checksum is wrong")]
    Checksum {
        /// The place of the frame.
        sequence: u64,
    },
    /// The greeting never came.
    #[error("no agent answered within the first {MAX_BANNER} octets")]
    NoGreeting,
    /// The agent is of another version.
    #[error(
        "the agent speaks another version of the protocol (`{found}`): install the same dnslab there"
    )]
    Version {
        /// Its greeting.
        found: String,
    },
}

/// Makes frames of bodies.
#[derive(Debug, Default)]
pub struct FrameWriter {
    next: u64,
}

impl FrameWriter {
    /// The next frame.
    ///
    /// # Errors
    /// When the body is longer than [`MAX_BODY`].
    pub fn frame(&mut self, body: &[u8]) -> Result<Vec<u8>, BrokenStream> {
        let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_BODY);
        let length = length.ok_or(BrokenStream::TooLong { length: body.len() })?;
        let mut frame = Vec::with_capacity(HEAD + body.len());
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(&self.next.to_be_bytes());
        frame.extend_from_slice(&checksum(&frame, body).to_be_bytes());
        frame.extend_from_slice(body);
        self.next += 1;
        Ok(frame)
    }

    /// Frames so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.next
    }
}

/// Finds the frames of a stream. It holds at most one frame and what was pushed since.
#[derive(Debug, Default)]
pub struct FrameReader {
    octets: Vec<u8>,
    /// Where the next frame begins.
    start: usize,
    next: u64,
}

impl FrameReader {
    /// Takes the octets that came next.
    pub fn push(&mut self, octets: &[u8]) {
        self.octets.drain(..self.start);
        self.start = 0;
        self.octets.extend_from_slice(octets);
    }

    /// The body of the next frame; `None` until all of it is there.
    ///
    /// # Errors
    /// When the stream is broken. It cannot be read on then.
    pub fn next_body(&mut self) -> Result<Option<&[u8]>, BrokenStream> {
        let octets = &self.octets[self.start..];
        let Some((head, rest)) = octets.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [a, b, c, d, sequence @ .., e, f, g, h] = *head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > MAX_BODY {
            return Err(BrokenStream::TooLong { length });
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let found = u64::from_be_bytes(sequence);
        if checksum(&head[..HEAD - 4], body) != u32::from_be_bytes([e, f, g, h]) {
            return Err(BrokenStream::Checksum { sequence: found });
        }
        if found != self.next {
            return Err(BrokenStream::Sequence { expected: self.next, found });
        }
        self.next += 1;
        let begin = self.start + HEAD;
        self.start = begin + length;
        Ok(Some(&self.octets[begin..self.start]))
    }

    /// Frames so far.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.next
    }
}

/// Waits for the greeting of an agent.
#[derive(Debug, Default)]
pub struct GreetingReader {
    octets: Vec<u8>,
}

impl GreetingReader {
    /// Takes the octets that came next. Returns those behind the greeting, once it is there.
    ///
    /// # Errors
    /// When too much comes before it, or it is that of another version.
    pub fn push(&mut self, octets: &[u8]) -> Result<Option<Vec<u8>>, BrokenStream> {
        self.octets.extend_from_slice(octets);
        let mut begin = 0;
        for line in self.octets.split_inclusive(|octet| *octet == b'\n') {
            // A banner may end without the end of a line.
            let at = line.windows(GREETS.len()).position(|window| window == GREETS);
            if let Some(greeting) = at.map(|at| &line[at..]).filter(|line| line.ends_with(b"\n")) {
                if greeting != GREETING {
                    let found = String::from_utf8_lossy(greeting).trim_end().to_owned();
                    return Err(BrokenStream::Version { found });
                }
                return Ok(Some(self.octets[begin + line.len()..].to_vec()));
            }
            begin += line.len();
        }
        match self.octets.len() > MAX_BANNER {
            true => Err(BrokenStream::NoGreeting),
            false => Ok(None),
        }
    }

    /// Whether this came on a line of its own.
    #[must_use]
    pub fn has_line(&self, wanted: &str) -> bool {
        let mut lines = self.octets.split_inclusive(|octet| *octet == b'\n');
        lines
            .any(|line| line.ends_with(b"\n") && line.trim_ascii_end().ends_with(wanted.as_bytes()))
    }

    /// What came in place of a greeting.
    #[must_use]
    pub fn banner(&self) -> String {
        String::from_utf8_lossy(&self.octets).trim().to_owned()
    }
}

fn checksum(head: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn stream(bodies: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut writer = FrameWriter::default();
        bodies.iter().map(|body| writer.frame(body).unwrap()).collect()
    }

    /// What is read of octets that come in pieces of these lengths.
    fn read(octets: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, BrokenStream> {
        let (mut reader, mut bodies) = (FrameReader::default(), Vec::new());
        for piece in octets.chunks(piece) {
            reader.push(piece);
            while let Some(body) = reader.next_body()? {
                bodies.push(body.to_vec());
            }
        }
        Ok(bodies)
    }

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_written(
            bodies in vec(vec(any::<u8>(), 0..300), 0..8),
            piece in 1_usize..400,
        ) {
            prop_assert_eq!(read(&stream(&bodies).concat(), piece), Ok(bodies));
        }

        /// A stream that was changed anywhere, but for a cut, is refused or lacks frames at its end.
        #[test]
        fn what_was_changed_is_never_read_as_something_else(
            bodies in vec(vec(any::<u8>(), 0..60), 1..6),
            at in any::<prop::sample::Index>(),
            bit in 0_u8..8,
        ) {
            let mut octets = stream(&bodies).concat();
            let at = at.index(octets.len());
            octets[at] ^= 1 << bit;
            match read(&octets, 64) {
                Err(_) => {}
                Ok(found) => prop_assert!(found.len() < bodies.len() && bodies.starts_with(&found)),
            }
        }

        #[test]
        fn frames_that_are_lost_repeated_or_exchanged_are_seen(
            bodies in vec(vec(any::<u8>(), 0..60), 2..6),
            (one, other) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        ) {
            let frames = stream(&bodies);
            let last = frames.len() - 1;
            let (one, other) = (one.index(last), other.index(frames.len()));
            let mut lost = frames.clone();
            lost.remove(one);
            prop_assert!(read(&lost.concat(), 64).is_err());
            let mut repeated = frames.clone();
            repeated.insert(other, frames[other].clone());
            prop_assert!(read(&repeated.concat(), 64).is_err());
            let mut exchanged = frames;
            exchanged.swap(one, one + 1);
            prop_assert!(read(&exchanged.concat(), 64).is_err());
        }

        #[test]
        fn any_octets_are_read_without_panic(octets in vec(any::<u8>(), 0..600), piece in 1_usize..90) {
            read(&octets, piece).ok();
            let mut greeting = GreetingReader::default();
            greeting.push(&octets).ok();
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_it_is_there() {
        let head = [&u32::MAX.to_be_bytes()[..], &[0; 12]].concat();
        let length = u32::MAX as usize;
        assert_eq!(read(&head, 64), Err(BrokenStream::TooLong { length }));
        let body = vec![0; MAX_BODY + 1];
        let length = body.len();
        let written = FrameWriter::default().frame(&body);
        assert_eq!(written, Err(BrokenStream::TooLong { length }));
    }

    #[track_caller]
    fn check_greeted(text: &str, expected: Option<&str>) {
        for piece in [1, 7, 100] {
            let (mut reader, mut rest) = (GreetingReader::default(), None::<Vec<u8>>);
            for octets in text.as_bytes().chunks(piece) {
                match &mut rest {
                    Some(rest) => rest.extend_from_slice(octets),
                    None => rest = reader.push(octets).unwrap(),
                }
            }
            assert_eq!(rest.as_deref(), expected.map(str::as_bytes), "{text} by {piece}");
        }
    }

    #[test]
    fn a_banner_comes_before_the_greeting() {
        check_greeted("dnslab-agent 1\nx", Some("x"));
        check_greeted("Welcome\nto host dnslab\n\ndnslab-agent 1\nxy", Some("xy"));
        check_greeted("no end of a line: dnslab-agent 1\n", Some(""));
        check_greeted("Welcome\ndnslab-agent 1", None);
        let mut reader = GreetingReader::default();
        let mut has_line = |octets: &[u8]| {
            reader.push(octets).unwrap();
            reader.has_line("copy")
        };
        assert_eq!([&b"no copy?\nco"[..], b"py", b"\r\n"].map(&mut has_line), [false, false, true]);
        let refused = GreetingReader::default().push(b"dnslab-agent 2\n").unwrap_err().to_string();
        assert!(refused.contains("`dnslab-agent 2`"), "{refused}");
        let flood = GreetingReader::default().push(&vec![b'x'; MAX_BANNER + 1]);
        assert_eq!(flood, Err(BrokenStream::NoGreeting));
    }
}
