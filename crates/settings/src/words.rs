//! Words that are values of keys.

use dnslab_wire::words;

words! {
    /// Keys and signatures of the certificates that dnslab makes.
    #[derive(Default)]
    pub enum CertificateKind as "kind of certificate" {
        /// The authority and the server have ECDSA keys with P-256.
        #[default]
        EcdsaP256 = "ecdsa-p256",
        /// The authority and the server have RSA keys of 2048 bits.
        Rsa2048 = "rsa-2048",
        /// ECDSA keys with P-256, and an intermediate authority between the server and the authority that
        /// clients trust. The server sends the intermediate certificate too, as servers with public
        /// certificates must.
        Chain = "chain",
    }
}

words! {
    /// Whether dnslab signs the zone that a started server serves (RFC 4035), and with which keys.
    #[derive(Default)]
    pub enum ZoneSigning as "signing of the zone" {
        /// The zone is served as it is.
        #[default]
        No = "no",
        /// Keys of ECDSA with P-256 (algorithm 13).
        EcdsaP256 = "ecdsa-p256",
        /// Keys of RSA with 2048 bits (algorithm 8).
        Rsa2048 = "rsa-2048",
    }
}

words! {
    /// On which hosts the servers run.
    #[derive(Default)]
    pub enum HostsChoice as "choice of hosts" {
        /// All on the loopback interface of this host.
        #[default]
        Loopback = "loopback",
        /// Clients, server and upstream each in a network namespace.
        Namespaces = "namespaces",
        /// Namespaces if this user may make them, otherwise the loopback interface.
        Auto = "auto",
    }
}

words! {
    /// How the variants of a round alternate.
    #[derive(Default)]
    pub enum Alternate as "way to alternate" {
        /// In slices if servers can be up together without changing what is measured.
        #[default]
        Auto = "auto",
        /// In slices.
        Slices = "slices",
        /// One whole run after another.
        Runs = "runs",
    }
}

words! {
    /// When the clients' kernel acknowledges TCP data as soon as it was read (`TCP_QUICKACK`, tcp(7)),
    /// instead of waiting up to 40 ms for the next query to carry the acknowledgement.
    #[derive(Default)]
    pub enum Quickack as "use of quick acknowledgements" {
        /// Never, as is the kernel's default.
        #[default]
        Never = "never",
        /// In an open loop only. In a closed one the next query follows an answer at once, and carries the
        /// acknowledgement for nothing.
        OpenLoop = "open-loop",
        /// In every loop.
        Always = "always",
    }
}

words! {
    /// Whose clock says when a datagram came.
    #[derive(Default)]
    pub enum ReceiveTime as "receive time" {
        /// Our clock, read once for each batch after it was read from the kernel. This is what a client sees,
        /// with the wait for its CPU and for the batch.
        #[default]
        User = "user",
        /// The kernel's clock when the datagram came to the host (`SO_TIMESTAMPNS`, socket(7)), without the
        /// generator's own delay. UDP only.
        Kernel = "kernel",
    }
}

words! {
    /// The TLS versions that clients offer.
    #[derive(Default)]
    pub enum TlsVersions as "versions of TLS" {
        /// Both. The server chooses, and most choose 1.3.
        #[default]
        Both = "both",
        /// TLS 1.2 alone (RFC 5246).
        V12 = "1.2",
        /// TLS 1.3 alone (RFC 8446).
        V13 = "1.3",
    }
}

words! {
    /// How queries of DNS over TLS are put into TLS records (RFC 8446, section 5.1).
    #[derive(Default)]
    pub enum Records as "use of TLS records" {
        /// One record for each query, as real clients send them. Queries that are due together still leave in
        /// one write.
        #[default]
        PerQuery = "per-query",
        /// All queries of a batch in one record, as large as records get. NSD 4.6 answers only the first
        /// query of a record until more data comes.
        Shared = "shared",
    }
}

words! {
    /// Where a query log goes.
    #[derive(Default)]
    pub enum LogTarget as "target of a query log" {
        /// No query log.
        #[default]
        None = "none",
        /// A file in the server's folder, or in the folder of `server.log.folder`.
        File = "file",
        /// syslog(3).
        Syslog = "syslog",
        /// Standard error.
        StandardError = "stderr",
        /// Nowhere: each line is formatted and dropped.
        Null = "null",
    }
}

words! {
    /// How old files of a log are named.
    #[derive(Default)]
    pub enum LogSuffix as "suffix of old logs" {
        /// By their age: `.0` is the youngest, and all are renamed each time.
        #[default]
        Increment = "increment",
        /// By the time at which they were ended.
        Timestamp = "timestamp",
    }
}

words! {
    /// How the time of a line is written (BIND's `print-time`).
    #[derive(Default)]
    pub enum TimeForm as "form of the time" {
        /// Not at all.
        None = "none",
        /// Local custom: `22-Nov-2026 23:14:17.123`.
        #[default]
        Local = "local",
        /// ISO 8601, local: `2026-11-22T23:14:17.123`.
        Iso8601 = "iso8601",
        /// ISO 8601 in UTC: `2026-11-22T23:14:17.123Z`.
        Iso8601Utc = "iso8601-utc",
    }
}

words! {
    /// The meaning of a quota of queries.
    #[derive(Default)]
    pub enum QuotaKind as "kind of quota" {
        /// The mean of a number drawn for each connection.
        #[default]
        Random = "random",
        /// The number itself.
        Exact = "exact",
    }
}
