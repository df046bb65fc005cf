//! What the network stack dropped between the ends of the measured window.

use dnslab_client::{Nanos, Phases};
use dnslab_figures::{NetworkCounters, NetworkDrops};

/// Longest time until the next look, so that the caller comes back in any case.
const MAX_LENGTH: Nanos = 1_000_000_000;

/// The counters at the two ends of the measured window, as far as they have been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkWindow {
    began: Reading,
    ended: Reading,
}

#[derive(Clone, Debug, Default)]
enum Reading {
    /// Its time has not come.
    #[default]
    Awaited,
    /// `None` if the kernel does not give the counters.
    Taken(Option<NetworkCounters>),
}

impl NetworkWindow {
    /// Reads the counters if `now` is past an end of the window that was not read yet. Returns how long the
    /// caller may wait until the next look, nanoseconds.
    pub(crate) fn look(&mut self, phases: &Phases, now: Nanos) -> Nanos {
        let began = self.began.take_from(phases.measured_from, now);
        let ended = self.ended.take_from(phases.until, now);
        began.min(ended).min(MAX_LENGTH)
    }

    /// What was counted in the window, or up to now if its end was not seen. Nothing in a window that never began;
    /// `None` if the kernel does not give the counters.
    pub(crate) fn drops(self) -> Option<NetworkDrops> {
        match self.began {
            Reading::Awaited => Some(NetworkDrops::default()),
            Reading::Taken(before) => Some(self.ended.or_now()?.since(&before?)),
        }
    }
}

impl Reading {
    /// Takes the reading if its time has come. Otherwise returns how long it is until then.
    fn take_from(&mut self, at: Nanos, now: Nanos) -> Nanos {
        match self {
            Self::Taken(_) => Nanos::MAX,
            Self::Awaited if now < at => at - now,
            Self::Awaited => {
                *self = Self::Taken(read());
                Nanos::MAX
            }
        }
    }

    fn or_now(self) -> Option<NetworkCounters> {
        match self {
            Self::Taken(counters) => counters,
            Self::Awaited => read(),
        }
    }
}

/// The counters of the calling thread's network namespace; `None` if the kernel does not give them.
fn read() -> Option<NetworkCounters> {
    let text = |file: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).ok();
    let counters = NetworkCounters::parse(&text("snmp")?, &text("netstat")?).ok()?;
    match text("snmp6") {
        Some(snmp6) => counters.with_ipv6(&snmp6).ok(),
        // Without IPv6 there is no file of it.
        None => Some(counters),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    const PHASES: Phases = Phases { measured_from: 100, until: 300, interval: 100, timeout: 1 };

    /// Sends a datagram to a port of which the kernel knows that nobody has it.
    fn drop_one() {
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[0], gone).unwrap();
    }

    #[test]
    fn only_what_is_dropped_in_the_window_counts() {
        // Tests that run beside this one drop datagrams too, so only a missing look can be seen.
        let mut window = NetworkWindow::default();
        assert_eq!(window.look(&PHASES, 40), 60);
        assert!(matches!(window.began, Reading::Awaited));
        assert_eq!(window.look(&PHASES, 100), 200);
        assert!(matches!(window.began, Reading::Taken(Some(_))));
        drop_one();
        assert_eq!(window.look(&PHASES, 300), MAX_LENGTH);
        drop_one();
        let at_end = window.clone().drops().unwrap();
        assert!(at_end.udp_no_port >= 1, "{at_end:?}");
        assert_eq!(window.drops(), Some(at_end), "nothing is added after the end");
    }

    #[test]
    fn a_window_without_an_end_lasts_until_now_and_one_without_a_beginning_has_nothing() {
        let mut window = NetworkWindow::default();
        window.look(&PHASES, 150);
        drop_one();
        assert!(window.drops().unwrap().udp_no_port >= 1);
        assert_eq!(NetworkWindow::default().drops(), Some(NetworkDrops::default()));
    }

    #[test]
    fn what_the_kernel_does_not_say_is_unknown() {
        let read = || Reading::Taken(read());
        let unknown = || Reading::Taken(None);
        for (began, ended) in [(unknown(), read()), (read(), unknown()), (unknown(), unknown())] {
            assert_eq!(NetworkWindow { began, ended }.drops(), None);
        }
    }
}
