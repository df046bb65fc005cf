//! What became of everything that was read.

use dnslab_wire::{DnstapKind, DnstapSource};

use crate::reason::Reason;
use crate::tunnels::Tunnel;

/// What became of everything that was read so far.
///
/// A packet is a packet of a capture or a data frame of dnstap. It is a query, or it is skipped for one
/// [`Reason`], or it carries a part of something that is counted by itself: it is a TCP segment, or a fragment.
/// Each whole message of a TCP stream is then a query or skipped, too, and so is each query of a datagram that has
/// several. So at any time `packets + stream_messages + segments = queries + carriers + skipped`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets read.
    pub packets: u64,
    /// Messages in TCP streams, with those whose end is missing.
    pub stream_messages: u64,
    /// Datagrams with several queries of one length, as a sender hands them to its kernel to be cut.
    pub segmented: u64,
    /// Queries in these datagrams, besides the first of each.
    pub segments: u64,
    /// Queries given.
    pub queries: u64,
    /// TCP segments, also without data, that went to a server, and fragments except the last one of each datagram.
    pub carriers: u64,
    skipped: [u64; Reason::ALL.len()],
    tunnels: [u64; Tunnel::ALL.len()],
    /// Link types that are not read, by their numbers, with their packets; not all of them if there are many.
    link_types: Vec<(u32, u64)>,
    /// Messages of dnstap that are not asked for.
    dnstap: [[u64; DnstapKind::ALL.len()]; DnstapSource::ALL.len()],
    /// TCP connections whose beginning was captured.
    pub connections: u64,
    /// TCP connections whose beginning was not captured.
    pub connections_without_start: u64,
    /// How often octets of a TCP stream were never captured.
    pub gaps: u64,
    /// How often a TCP stream was read on after a gap or from its middle, where a segment was whole messages.
    pub resumed: u64,
}

impl Counts {
    /// How many were skipped for this reason.
    #[must_use]
    pub fn skipped(&self, reason: Reason) -> u64 {
        self.skipped[reason as usize]
    }

    /// Reasons that occurred and how often, in the order of [`Reason::ALL`].
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, u64)> {
        let all = Reason::ALL.into_iter().zip(self.skipped);
        all.filter(|(_, count)| *count > 0)
    }

    /// What was skipped in words, and how often: a reason, for link types with their number, for messages of dnstap
    /// with their kind.
    #[must_use]
    pub fn left_out(&self) -> Vec<(String, u64)> {
        let mut left_out = Vec::new();
        for (reason, mut count) in self.reasons() {
            let mut push = |what: String, part: u64| {
                count -= part;
                left_out.push((format!("{reason} {what}"), part));
            };
            match reason {
                Reason::UnknownLinkType => {
                    self.link_types
                        .iter()
                        .for_each(|(number, part)| push(number.to_string(), *part));
                }
                Reason::DnstapKind => {
                    self.unwanted_dnstap().for_each(|((kind, source), part)| {
                        push(format!("{kind} {source}"), part);
                    });
                }
                _ => {}
            }
            if count > 0 {
                left_out.push((reason.to_string(), count));
            }
        }
        left_out
    }

    /// Link types that are not read, by their numbers (<https://www.tcpdump.org/linktypes.html>), with their packets;
    /// the first 16 of them.
    #[must_use]
    pub fn unknown_link_types(&self) -> &[(u32, u64)] {
        &self.link_types
    }

    /// Messages of dnstap that were skipped because their kind is not asked for, and how many.
    pub fn unwanted_dnstap(&self) -> impl Iterator<Item = ((DnstapKind, DnstapSource), u64)> {
        let kinds = DnstapSource::ALL
            .into_iter()
            .flat_map(|source| DnstapKind::ALL.map(|kind| (kind, source)));
        kinds.zip(self.dnstap.into_iter().flatten()).filter(|(_, count)| *count > 0)
    }

    /// The tunnels that packets were in, and how many.
    pub fn tunnels(&self) -> impl Iterator<Item = (Tunnel, u64)> {
        Tunnel::ALL.into_iter().zip(self.tunnels).filter(|(_, count)| *count > 0)
    }

    /// How many were skipped.
    #[must_use]
    pub fn all_skipped(&self) -> u64 {
        self.skipped.iter().sum()
    }

    /// True if nothing was lost or counted twice, which always holds.
    #[must_use]
    pub fn add_up(&self) -> bool {
        self.packets + self.stream_messages + self.segments
            == self.queries + self.carriers + self.all_skipped()
    }

    #[inline]
    pub(crate) fn skip(&mut self, reason: Reason) {
        self.skipped[reason as usize] += 1;
    }

    /// A packet of a link type that is not read.
    #[cold]
    pub(crate) fn skip_link_type(&mut self, number: u32) {
        /// The most numbers that are told apart.
        const MOST: usize = 16;
        self.skip(Reason::UnknownLinkType);
        if let Some((_, count)) = self.link_types.iter_mut().find(|(known, _)| *known == number) {
            *count += 1;
        } else if self.link_types.len() < MOST {
            self.link_types.push((number, 1));
        }
    }

    /// A message of dnstap of a kind that is not asked for.
    pub(crate) fn skip_dnstap(&mut self, kind: Option<(DnstapKind, DnstapSource)>) {
        self.skip(Reason::DnstapKind);
        if let Some((kind, source)) = kind {
            self.dnstap[source as usize][kind as usize] += 1;
        }
    }

    pub(crate) fn enter(&mut self, tunnel: Tunnel) {
        self.tunnels[tunnel as usize] += 1;
    }

    /// Packets that were taken as carriers, but nothing came of what they carried.
    pub(crate) fn carried_nothing(&mut self, packets: u64, reason: Reason) {
        self.carriers -= packets;
        self.skipped[reason as usize] += packets;
    }

    /// A message of a stream that is no query.
    pub(crate) fn skip_message(&mut self, reason: Reason) {
        self.stream_messages += 1;
        self.skip(reason);
    }
}
