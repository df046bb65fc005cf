//! What both sides say about themselves when a connection begins (RFC 9000, section 18).

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::{EndpointConfig, IdleTimeout, TransportConfig, VarInt};

use super::tls::VERSION;

/// Octets of one stream that may be on their way: the longest answer with what HTTP puts around it. A
/// client's limit of the whole connection is the highest there is, so that flow control never limits a load.
pub(super) const STREAM_WINDOW: u32 = 128 * 1024;

/// Octets that may wait to be acknowledged: enough for every stream of a busy connection.
const SEND_WINDOW: u64 = 16 * 1024 * 1024;

/// Octets that may wait so at a server, which has many connections: 4 KiB for each of 1,024 streams.
const SERVER_SEND_WINDOW: u64 = 4 * 1024 * 1024;

/// Octets that a client may have on their way to a server, on all streams of a connection: some ten
/// thousand queries. What arrives out of order is kept, so this bounds what a client can make it keep.
pub(super) const SERVER_RECEIVE_WINDOW: u32 = 1024 * 1024;

/// Unidirectional streams that the peer may open in HTTP/3: it needs three (RFC 9114, section 6.2),
/// and a peer may add some of reserved types, which are passed over (section 6.2.3). DNS over QUIC
/// has none (RFC 9250, section 4.3.3).
pub(super) const UNIDIRECTIONAL: u32 = 16;

/// What an end point is, whatever its connections are. `seed` makes its draws (connection ids, among others)
/// repeatable, for a simulation.
pub(super) fn endpoint(seed: Option<[u8; 32]>) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::default();
    config.supported_versions(vec![VERSION]).rng_seed(seed);
    Arc::new(config)
}

/// What is alike on both sides. The peer may open so many streams of either kind.
///
/// The rest is quinn-proto's default, as RFC 9002 recommends it: CUBIC from an initial window of ten packets
/// (some 200 queries, and as many again with each round trip; a load of questions and answers seldom fills
/// it), pacing, an acknowledgement of every second packet at the latest. It probes for a path MTU of up to
/// 1,452 octets: in batches of 100 queries that saves the client one in a hundred of its instructions and a
/// sixth of its packets. Acknowledgements are not asked to be rarer than that: few servers know the
/// extension, and those would seem cheaper to ask.
pub(super) fn transport(
    bidirectional: u32,
    unidirectional: u32,
    idle_timeout: Option<Duration>,
) -> TransportConfig {
    let mut config = TransportConfig::default();
    // A time-out beyond 2^62 ms is none.
    let idle_timeout = idle_timeout.and_then(|timeout| IdleTimeout::try_from(timeout).ok());
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(bidirectional))
        .max_concurrent_uni_streams(VarInt::from_u32(unidirectional))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .send_window(SEND_WINDOW)
        .max_idle_timeout(idle_timeout)
        // Messages are small and whole: one after the other, as they came.
        .send_fairness(false)
        .datagram_receive_buffer_size(None);
    config
}

/// The settings of a server, with bounds to what one connection can make it keep.
pub(super) fn server_transport(
    bidirectional: u32,
    unidirectional: u32,
    idle_timeout: Duration,
) -> TransportConfig {
    let mut config = transport(bidirectional, unidirectional, Some(idle_timeout));
    config.receive_window(VarInt::from_u32(SERVER_RECEIVE_WINDOW)).send_window(SERVER_SEND_WINDOW);
    config
}
