//! What is measured, one file for each work.

mod batch_delay;
mod clients;
mod generator;
mod pacing;
mod quic;
mod receive_time;
mod streams;
mod udp;

pub(crate) use batch_delay::batch_delay;
pub(crate) use clients::clients;
pub(crate) use generator::generator;
pub(crate) use pacing::pacing;
pub(crate) use quic::quic;
pub(crate) use receive_time::receive_time;
pub(crate) use streams::streams;
pub(crate) use udp::udp;
