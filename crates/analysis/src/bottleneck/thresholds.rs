//! From where on a figure names a bottleneck.

/// A rate counts as met from this share of it on: the pacing error and the queries in flight at
/// the ends of the window stay below 1 %.
pub(crate) const RATE_MET: f64 = 0.99;

/// From this busy share of its worker on the generator has no CPU left. A worker with work is one
/// thread on one CPU and could reach 1, but for its pauses: after each round it sleeps for one batch delay
/// `h`. With a time `w` for the work of a round its busy share is
/// `w / (w + h)` at most, and in a closed loop `w` is at most the window times the CPU time for
/// each query: with 200 outstanding, 2.8 us each and `h` = 50 us that is 560 / 610 = 92 %. It would
/// never come to 95 %. With smaller windows the batch delay itself holds up the rate, and its
/// caveat says so.
pub(crate) const GENERATOR_BUSY: f64 = 0.90;

/// Below this busy share of its busiest worker, a generator that sends less than intended is not
/// short of CPU time: it waits.
pub(crate) const GENERATOR_IDLE: f64 = 0.5;

/// From this share of its CPUs on the server has none left. The work of several threads is never
/// spread quite evenly, and interrupts take their part of the CPUs without being counted for it.
pub(crate) const SERVER_BUSY: f64 = 0.90;

/// Above this share of the answers, drops at the generator's own sockets bound the answered rate.
pub(crate) const DROPS: f64 = 0.001;

/// Above this share of the queries, lost datagrams are more than an accident.
pub(crate) const LOST: f64 = 0.001;

/// From this share of the lost datagrams on, drops at the server's full sockets account for them. Not
/// all: the drops are those between two samples, and a query that was lost twice is one lost query.
pub(crate) const SOCKET_DROPS: f64 = 0.5;

/// Above this share of the time, connections that waited for their turn in the generator are more
/// than the moment after the server has closed many at once.
pub(crate) const CONNECTIONS_HELD: f64 = 0.05;

/// Above this share of the attempts, connections fail because of the server, and others wait for it too.
pub(crate) const CONNECTIONS_FAIL: f64 = 0.1;

/// Fewer connections than these say nothing of how a server treats connections.
pub(crate) const LEAST_TURNED_AWAY: u64 = 10;

/// How far the queries in flight may be from the window, as a share of it. The mean of the window
/// is taken over queries that became due in it, so start, end and stalls leave some difference.
pub(crate) const LITTLE: f64 = 0.25;
