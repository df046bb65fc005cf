//! The order of octets in the numbers of a file.

/// In which order the octets of numbers stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Big,
    Little,
}

impl Order {
    /// The number at `at`, which is there.
    #[inline]
    pub(crate) fn u32(self, octets: &[u8], at: usize) -> u32 {
        let octets = [octets[at], octets[at + 1], octets[at + 2], octets[at + 3]];
        match self {
            Self::Big => u32::from_be_bytes(octets),
            Self::Little => u32::from_le_bytes(octets),
        }
    }

    /// The number at `at`, which is there.
    pub(crate) fn u16(self, octets: &[u8], at: usize) -> u16 {
        let octets = [octets[at], octets[at + 1]];
        match self {
            Self::Big => u16::from_be_bytes(octets),
            Self::Little => u16::from_le_bytes(octets),
        }
    }
}
