//! The list of metrics: names, types, units, labels, meaning.

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows while its run lasts.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations in buckets.
    Histogram,
    /// Its labels are what it says; its value is 1.
    Info,
}

/// The unit of a metric, which ends its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Numbers of things.
    None,
    /// Seconds.
    Seconds,
    /// Octets.
    Bytes,
    /// A share in [0, 1].
    Ratio,
}

impl Unit {
    /// As in the name; empty for numbers of things.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Ratio => "ratio",
        }
    }
}

/// What a series is of: the labels that come before its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Of this process.
    Process,
    /// Of the experiment: `experiment`.
    Experiment,
    /// Of a run: `experiment`, `variant`, `run`.
    Run,
    /// Of a run's load: as of a run, and `load`, which is `main` or `common`.
    Load,
    /// Of a phase of a run: as of a run, and `phase`, which is `warm_up`, `measured`, `common_warm_up` or `common`.
    Phase,
}

impl Scope {
    /// Its labels.
    #[must_use]
    pub fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Process => &[],
            Self::Experiment => &["experiment"],
            Self::Run => &["experiment", "variant", "run"],
            Self::Load => &["experiment", "variant", "run", "load"],
            Self::Phase => &["experiment", "variant", "run", "phase"],
        }
    }
}

/// A metric with its labels: each set of their values is a series.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// Without what the type adds (`_total`, `_bucket`, `_info`).
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// In which unit.
    pub unit: Unit,
    /// What a series is of.
    pub scope: Scope,
    /// Its own labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

impl Family {
    /// As queries of Prometheus name it; a histogram without `_bucket`, `_sum` and `_count`.
    #[must_use]
    pub fn full_name(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Info => format!("{}_info", self.name),
            Kind::Gauge | Kind::Histogram => self.name.to_owned(),
        }
    }
}

macro_rules! families {
    ($($constant:ident: $kind:ident $unit:ident of $scope:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(crate) static $constant: Family = Family {
            name: $name,
            kind: Kind::$kind,
            unit: Unit::$unit,
            scope: Scope::$scope,
            labels: &[$($label),*],
            help: $help,
        };)*
        /// All metrics, in the order in which they are served.
        pub static FAMILIES: &[&Family] = &[$(&$constant),*];
    };
}

families! {
    BUILD: Info None of Process "dnslab_build" ["version"] "The running dnslab";
    RUNS_PLANNED: Gauge None of Experiment "dnslab_runs_planned" [] "Runs that this process makes";
    RUNS_ENDED: Counter None of Experiment "dnslab_runs_ended" [] "Runs that this process has made";
    QUERIES: Counter None of Phase "dnslab_queries" ["transport", "outcome"]
        "Queries that ended, by how: answered, timed_out, not_sent, connection_lost, malformed, refused. The phase is \
         that in which the query was due. Where clients use several transports, queries without an answer have the \
         transport `mixed`";
    QUERIES_DUE: Counter None of Phase "dnslab_queries_due" [] "Queries that became due";
    QUERIES_SENT: Counter None of Phase "dnslab_queries_sent" [] "Queries handed to the kernel, each time";
    ASKED_AGAIN: Counter None of Phase "dnslab_queries_asked_again" []
        "Queries asked a second or further time: truncated answers over TCP, other attempts of clients";
    SENT: Counter Bytes of Phase "dnslab_sent_bytes" [] "Octets of the DNS messages sent, without framing";
    ANSWERS: Counter None of Phase "dnslab_answers" ["rcode"] "Answers to queries, by response code (RFC 6895)";
    RECEIVED: Counter Bytes of Phase "dnslab_received_bytes" [] "Octets of the DNS messages received, without framing";
    TRUNCATED: Counter None of Phase "dnslab_answers_truncated" [] "Answers with the TC bit";
    EMPTY: Counter None of Phase "dnslab_answers_empty" [] "Answers with NOERROR and no record: NODATA, or referrals";
    WRONG: Counter None of Phase "dnslab_answers_wrong" [] "Answers that are not what the experiment expects";
    STRAY: Counter None of Phase "dnslab_answers_stray" ["kind"]
        "Messages that answer no query in flight: late (the query had timed out), duplicate, unexpected";
    CONNECTIONS: Counter None of Phase "dnslab_connections" ["event"]
        "Connections that were attempted, opened (usable), failed, lost (not ended by us) or closed (by us)";
    HANDSHAKES: Counter None of Phase "dnslab_tls_handshakes" ["kind"]
        "TLS handshakes: full, resumed, or early_data (resumed, with early data that the server accepted)";
    HTTP_REFUSALS: Counter None of Phase "dnslab_http_refusals" ["status"]
        "Responses of HTTP without a DNS message, by their status";
    LATENCY: Histogram Seconds of Phase "dnslab_latency_seconds" []
        "Time from due to answered, of queries that ended in this phase, while it goes on. A lost query counts with \
         its time-out";
    ANSWERED_NOW: Gauge None of Load "dnslab_answered_per_second" []
        "Queries answered in the last second, by the time of it that was the turn of this load: where loads take turns, \
         and where runs are short, the rate of `dnslab_queries_total` is a part of it";
    LOST_NOW: Gauge None of Load "dnslab_lost_per_second" []
        "Queries that ended without an answer in the last second, whoever's turn it was: a query that times out has \
         ended when its time-out is over";
    IN_FLIGHT: Gauge None of Load "dnslab_queries_in_flight" [] "Queries that are due and have not ended";
    OPEN: Gauge None of Load "dnslab_connections_open" [] "Usable connections";
    QUANTILE: Gauge Seconds of Load "dnslab_latency_quantile_seconds" ["level"]
        "Latency of the queries that ended in the latest interval; `level` is the quantile, such as 0.99";
    SERVER_CPU: Counter Seconds of Load "dnslab_server_cpu_seconds" []
        "CPU time of the server under test since its watch began, just before the load";
    SERVER_CPUS_USED: Gauge None of Load "dnslab_server_cpus_used" []
        "CPU time of the server under test in the last second, by the time of it that was the turn of this load";
    SERVER_CPUS: Gauge None of Load "dnslab_server_cpus" [] "CPUs that the server may use";
    SERVER_MEMORY: Gauge Bytes of Load "dnslab_server_memory_bytes" [] "Memory of the server's processes";
    SERVER_DROPS: Counter None of Load "dnslab_server_udp_drops" []
        "Datagrams dropped at the server's UDP sockets, because their buffer was full";
    LOAD_CPU: Gauge Ratio of Load "dnslab_load_cpu_used_ratio" ["cpu"] "Use of a CPU of the load, by whatever process";
    WORKER_CPU: Counter Seconds of Load "dnslab_load_worker_cpu_seconds" []
        "CPU time of the busiest load worker since the load began, in the turns of its load";
    RUN: Info None of Run "dnslab_run" ["transport", "server", "server_version"]
        "A run that has ended: its load and server";
    RUN_STATUS: Gauge None of Run "dnslab_run_status" ["status"]
        "1 for what a run that has ended is: valid, invalid or failed";
    RUN_CAVEAT: Gauge None of Run "dnslab_run_caveat" ["caveat"] "1 for each reason to doubt a run that has ended";
    RUN_BOTTLENECK: Gauge None of Run "dnslab_run_bottleneck" ["kind"]
        "1 for what bounded the answered rate of a run that has ended";
    RUN_LATENCY: Histogram Seconds of Phase "dnslab_run_latency_seconds" []
        "Latency of a run that has ended, as in its record: of queries due in the measured window, or in that of the \
         common load";
    RUN_WINDOW: Gauge Seconds of Phase "dnslab_run_window_seconds" []
        "Time that counts for the rate of a run that has ended";
    RUN_RATE: Gauge None of Phase "dnslab_run_answered_per_second" []
        "Answered queries per second of a run that has ended, as in its record";
    RUN_CPU: Gauge Seconds of Phase "dnslab_run_server_cpu_per_query_seconds" []
        "CPU time of the server for each answered query of a run that has ended, as in its record";
}
