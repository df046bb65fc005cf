//! The figures of a part of a load, added up while it runs.

use dnslab_figures::Histogram;
use dnslab_record::{LiveLimit, LiveLoad, LiveServer, LoadMode, OpenPace};
use dnslab_report::number;
use dnslab_settings::Variant;
use dnslab_wire::Transport;

use super::series::{QUANTILES, share_of};

/// What is known of a load before it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kind {
    /// Name of its variant, or of its step in a search.
    pub(crate) name: String,
    /// Transport, clients, and their window or rate.
    pub(crate) how: String,
    pub(crate) mode: LoadMode,
    pub(crate) clients: u32,
    /// The queries go over connections.
    pub(crate) is_stream: bool,
    /// Servers behind the one under test may be the bottleneck, and nobody watches them here.
    pub(crate) has_more_servers: bool,
}

impl Kind {
    pub(crate) fn of(variant: &Variant) -> Self {
        let load = &variant.load;
        let mode = LoadMode::of(&load.mode, load.warm_up, load.duration);
        let transports: Vec<String> =
            load.transports().map(|transport| transport.to_string()).collect();
        let clients = number::count(load.clients.into());
        let plural = if load.clients == 1 { "" } else { "s" };
        let asked = match &mode {
            LoadMode::Closed { outstanding } => format!("{outstanding} outstanding"),
            LoadMode::Open { rate_qps, .. } => format!("{} queries/s", number::qps(*rate_qps)),
        };
        let is_played = load.mode.is_played();
        let asked = if is_played { format!("{} pace", OpenPace::Clients) } else { asked };
        Self {
            name: variant.name.clone(),
            how: format!("{}, {clients} client{plural}, {asked}", transports.join(" and ")),
            mode,
            clients: load.clients,
            is_stream: load.transports().any(|transport| transport != Transport::Udp),
            has_more_servers: variant.forwards() || !variant.behind().is_empty(),
        }
    }
}

/// The figures of a part of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Length of that part, nanoseconds.
    pub(crate) length_ns: u64,
    pub(crate) answered_qps: f64,
    /// Queries that ended without an answer.
    pub(crate) lost: u64,
    /// [`Figures::lost`] as a share of the queries that ended, in [0, 1].
    pub(crate) lost_share: f64,
    /// [`QUANTILES`] in nanoseconds.
    pub(crate) quantiles_ns: [Option<u64>; 3],
    /// CPU use of the server in [0, 1] of its CPUs, in the load's own time.
    pub(crate) server_cpu: Option<f64>,
    /// CPU use of the busiest load worker in [0, 1], in the load's own time; `None` if it had no turn.
    pub(crate) load_cpu: Option<f64>,
}

/// Intervals put together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    /// Nanoseconds since the load began.
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
    pub(crate) own_ns: u64,
    pub(crate) due: u64,
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    pub(crate) lost: u64,
    pub(crate) latency: Histogram,
    /// The server before it and at its end.
    server: Option<(LiveServer, LiveServer)>,
    /// CPU time of the busiest worker.
    load_cpu_ns: u64,
}

impl Sum {
    /// `before` is the server as it was when the interval began, `load_cpu_ns` what the busiest worker used in it.
    pub(super) fn add(
        &mut self,
        live: &LiveLoad<'_>,
        before: Option<LiveServer>,
        load_cpu_ns: u64,
    ) {
        let latest = live.latest;
        let interval = &latest.interval;
        if self.until_ns == 0 {
            self.from_ns = interval.at_ns;
            self.server = before.map(|server| (server, server));
        }
        self.until_ns = interval.at_ns + interval.length_ns;
        self.own_ns += interval.own_ns.unwrap_or(interval.length_ns);
        self.due += interval.due;
        self.sent += interval.sent;
        self.answered += interval.answered;
        self.lost += interval.lost;
        self.latency.merge(&latest.latency);
        self.load_cpu_ns += load_cpu_ns;
        if let Some(server) = live.server {
            self.server = Some((self.server.map_or(server, |ends| ends.0), server));
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.own_ns.max(1) as f64 / 1e9
    }

    /// What the server used of its CPUs, in [0, 1].
    pub(crate) fn server_cpu(&self) -> Option<f64> {
        let used_ns = self.server_cpu_ns().filter(|used_ns| *used_ns > 0)?;
        share_of(used_ns / self.server_cpus().max(1) as u64, self.own_ns)
    }

    fn server_cpu_ns(&self) -> Option<u64> {
        self.server.map(|(before, now)| now.cpu_ns.saturating_sub(before.cpu_ns))
    }

    /// Datagrams dropped at the server's sockets.
    pub(crate) fn server_drops(&self) -> u64 {
        self.server.map_or(0, |(before, now)| now.udp_drops.saturating_sub(before.udp_drops))
    }

    /// Of the time for which the server's threads could run, the share for which they had no CPU, in [0, 1].
    pub(crate) fn server_waited(&self) -> Option<f64> {
        let (before, now) = self.server?;
        now.waited_share_since(&before)
    }

    /// The server's CPU quota, and how often it was used up.
    pub(crate) fn server_limit(&self) -> Option<LiveLimit> {
        let (before, now) = self.server?;
        let (before, now) = (before.limit.unwrap_or_default(), now.limit?);
        Some(LiveLimit {
            cpus: now.cpus,
            periods: now.periods.saturating_sub(before.periods),
            throttled: now.throttled.saturating_sub(before.throttled),
        })
    }

    /// What the busiest worker of the load generator used of its CPU, in [0, 1].
    pub(crate) fn load_cpu(&self) -> Option<f64> {
        share_of(self.load_cpu_ns, self.own_ns)
    }

    pub(crate) fn server_cpus(&self) -> usize {
        self.server.map_or(0, |(_, now)| now.cpus)
    }

    pub(crate) fn figures(&self) -> Figures {
        let ended = self.answered + self.lost;
        Figures {
            length_ns: self.until_ns - self.from_ns,
            answered_qps: self.answered as f64 / self.seconds(),
            lost: self.lost,
            lost_share: self.lost as f64 / ended.max(1) as f64,
            quantiles_ns: QUANTILES.map(|quantile| self.latency.quantile_ns(quantile)),
            server_cpu: self.server_cpu(),
            load_cpu: self.load_cpu(),
        }
    }
}
