//! Plain TCP (RFC 7766): nothing between the messages and the stream.

use super::stream::Layer;
use super::{ChannelEnd, Handshake};
use crate::clock::Nanos;

/// The layer that changes nothing.
pub(crate) struct Plain;

impl Layer for Plain {
    fn begin(&mut self, _: &mut Vec<u8>) -> Result<(), ChannelEnd> {
        Ok(())
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn seal(&mut self, plain: &[u8], write: &mut Vec<u8>) -> Result<(), ChannelEnd> {
        write.extend_from_slice(plain);
        Ok(())
    }

    fn send_path(&self) -> &'static str {
        "one write per batch; a connection per client"
    }

    fn open(
        &mut self,
        read: &[u8],
        plain: &mut Vec<u8>,
        _: &mut Vec<u8>,
    ) -> Result<(), ChannelEnd> {
        plain.extend_from_slice(read);
        Ok(())
    }

    fn handshake(&self, _: Nanos) -> Option<Handshake> {
        None
    }
}
