//! The life of the clients' channels: opened, read, lost, opened again.

use std::cmp::Reverse;

use rustix::event::epoll;

use super::Worker;
use crate::channel::{self, ChannelEnd, Opened, Received};
use crate::clock::Nanos;
use crate::tally::Loss;

/// Reads of one channel in one round at most, so that none starves the others.
const READS_PER_ROUND: usize = 16;

/// First pause after a failed connection attempt; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Nanos = 10_000_000;
const LONGEST_PAUSE: Nanos = 1_000_000_000;

impl Worker<'_> {
    /// Lets one channel do what its socket is ready for, and books what came.
    pub(super) fn advance(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        let before = client.table.len();
        let mut end = None;
        if let Some(channel) = client.channel.as_mut() {
            for _ in 0..READS_PER_ROUND {
                let (table, judge, tally) = (&mut client.table, &mut self.judge, &mut self.tally);
                let mut deliver = |message: Received<'_>| judge.receive(table, tally, message);
                match channel.advance(&self.orders.clock, &mut self.scratch, &mut deliver) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(reason) => {
                        end = Some(reason);
                        break;
                    }
                }
            }
        }
        let ended = before - client.table.len();
        self.unsettled -= ended;
        if ended > 0 {
            // Only a server that answers is worth a reconnection without a pause.
            client.attempts = 0;
        }
        let opened = client.channel.as_mut().and_then(|channel| channel.take_opened());
        if let Some(opened) = opened {
            self.note_opened(number, opened);
        }
        if let Some(end) = end {
            self.end_channel(number, &end);
        }
        self.list(number);
    }

    /// Begins to open a client's channel.
    pub(super) fn open(&mut self, number: u32, now: Nanos) {
        let client = &mut self.clients[number as usize];
        let (transport, target) = (self.orders.transport, self.orders.target);
        if transport.is_stream() {
            self.tally.connections(now).attempted += 1;
        }
        client.connecting_since = now;
        self.connecting.push_back((now + self.orders.timeout, number, now));
        match channel::open(transport, target, client.tls.as_ref(), now) {
            Ok(mut channel) => {
                let opened = channel.take_opened();
                client.watches_writing = channel.wants_to_write();
                let data = epoll::EventData::new_u64(u64::from(number));
                let flags = interest(client.watches_writing);
                epoll::add(&self.poll, channel.descriptor(), data, flags)
                    .expect("a new descriptor can be registered");
                client.channel = Some(channel);
                if let Some(opened) = opened {
                    self.note_opened(number, opened);
                }
            }
            Err(end) => self.end_channel(number, &end),
        }
    }

    pub(super) fn note_opened(&mut self, number: u32, opened: Opened) {
        self.list(number);
        let now = self.orders.clock.now();
        let Some(connect) = opened.connect else { return };
        let counts = self.tally.connections(now);
        counts.opened += 1;
        if let Some(handshake) = &opened.handshake {
            if handshake.resumed {
                counts.resumed_handshakes += 1;
            } else {
                counts.full_handshakes += 1;
            }
            self.tally.handshake_time.record_ns(handshake.duration);
        }
        self.tally.connect_time.record_ns(connect);
        if let Some(handshake) = opened.handshake {
            self.tls.get_or_insert(handshake.agreed);
        }
    }

    /// Closes a channel that is at its end: what was in flight on it is lost, what was not sent
    /// waits for the next one.
    pub(super) fn end_channel(&mut self, number: u32, end: &ChannelEnd) {
        let now = self.orders.clock.now();
        let client = &mut self.clients[number as usize];
        let channel = client.channel.take();
        let was_open = channel.as_ref().is_some_and(|channel| channel.is_open());
        client.drops += channel.as_ref().map_or(0, |channel| channel.drops());
        // Closing the descriptor takes it out of epoll.
        drop(channel);
        let counts = self.tally.connections(now);
        if was_open {
            counts.lost += 1;
        } else {
            counts.failed += 1;
        }
        let (tally, unsettled) = (&mut self.tally, &mut self.unsettled);
        client.table.drain(|entry| {
            tally.lost(entry.due, now, Loss::ConnectionLost);
            *unsettled -= 1;
        });
        let pause = match client.attempts {
            0 => 0,
            failed => (FIRST_PAUSE << (failed - 1).min(10)).min(LONGEST_PAUSE),
        };
        client.attempts += 1;
        client.window = 0;
        self.last_end = Some(end.to_string());
        self.reconnects.push(Reverse((now + pause, number)));
        self.list(number);
    }

    /// Gives up attempts to connect that have taken longer than the time-out: a lost SYN would keep
    /// its client away for seconds, and nobody would be told.
    pub(super) fn give_up_connecting(&mut self, now: Nanos) {
        while let Some((at, number, since)) = self.connecting.front().copied()
            && at <= now
        {
            self.connecting.pop_front();
            let client = &self.clients[number as usize];
            if client.connecting_since == since && client.channel.is_some() && !client.is_open() {
                let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
                self.end_channel(number, &ChannelEnd::Connect(error));
            }
        }
    }

    /// Opens again what has paused for long enough, while there is something left to send.
    pub(super) fn reconnect(&mut self, now: Nanos) {
        while let Some(Reverse((at, number))) = self.reconnects.peek().copied()
            && at <= now
        {
            self.reconnects.pop();
            if now < self.until || !self.clients[number as usize].pending.is_empty() {
                self.open(number, now);
            }
        }
    }

    /// Asks epoll for writability only while something waits for it.
    pub(super) fn watch(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        let Some(channel) = &client.channel else { return };
        let writing = channel.wants_to_write();
        if writing != client.watches_writing {
            client.watches_writing = writing;
            let data = epoll::EventData::new_u64(u64::from(number));
            epoll::modify(&self.poll, channel.descriptor(), data, interest(writing))
                .expect("the descriptor is open and registered");
        }
    }
}

fn interest(writing: bool) -> epoll::EventFlags {
    let reading = epoll::EventFlags::IN;
    if writing { reading | epoll::EventFlags::OUT } else { reading }
}
