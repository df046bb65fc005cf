//! A finished message that gets one more record.

use std::convert::Infallible;

use domain::base::wire::Composer;
use domain::dep::octseq::builder::{OctetsBuilder, Truncate};

/// A finished message as the target of a message builder.
///
/// Builders only begin messages: they empty their target and write a header of zeros. This target keeps its
/// content meanwhile, which saves a copy and an allocation for each signed query.
pub(super) struct Resumed<'a> {
    message: &'a mut Vec<u8>,
    /// The builder has written its header.
    begun: bool,
}

impl<'a> Resumed<'a> {
    /// Panics if the message is shorter than a header: the builder would read one all the same.
    pub(super) fn new(message: &'a mut Vec<u8>) -> Self {
        assert!(message.len() >= crate::header::HEADER, "a message has a header");
        Self { message, begun: false }
    }
}

impl OctetsBuilder for Resumed<'_> {
    type AppendError = Infallible;

    fn append_slice(&mut self, slice: &[u8]) -> Result<(), Infallible> {
        if self.begun {
            self.message.extend_from_slice(slice);
        }
        self.begun = true;
        Ok(())
    }
}

impl Truncate for Resumed<'_> {
    fn truncate(&mut self, length: usize) {
        if self.begun {
            self.message.truncate(length);
        }
    }
}

impl AsRef<[u8]> for Resumed<'_> {
    fn as_ref(&self) -> &[u8] {
        self.message
    }
}

impl AsMut<[u8]> for Resumed<'_> {
    fn as_mut(&mut self) -> &mut [u8] {
        self.message
    }
}

impl Composer for Resumed<'_> {}
