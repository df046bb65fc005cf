//! System calls that no safe library offers: datagrams in batches, socket drop counts, and a
//! thread's scheduling policy.
//!
//! The only module of this crate that may hold `unsafe`.
#![expect(unsafe_code, reason = "these system calls have no safe binding")]

mod datagrams;
mod groups;
mod outbox;
mod scheduling;
mod socket;

pub(crate) use datagrams::{
    Inbox, enable_receive_groups, enable_stamps, receive_batch, send_batch,
};
pub(crate) use groups::send_group;
pub(crate) use outbox::{BATCH, Outbox};
pub(crate) use scheduling::yield_to_all_others;
pub(crate) use socket::{bind_address_without_port, round_trip, socket_drops};
