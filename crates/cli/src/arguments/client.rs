//! The arguments about what clients do and what their queries carry.

use std::path::PathBuf;

use clap::Args;

use crate::load::{Lines, toml_path, toml_text};

/// How clients behave, the same for every command that applies a load. Each argument is a key of the
/// experiment file, which checks it.
#[derive(Debug, Args)]
pub(crate) struct Client {
    /// Connections of each client; with UDP, sockets [default: 1]
    #[arg(long, value_name = "N", help_heading = "Clients")]
    connections: Option<u32>,
    /// A client closes a connection after so many queries, and opens another
    #[arg(long, value_name = "N", help_heading = "Clients")]
    queries_per_connection: Option<u32>,
    /// Whether that number is drawn for each connection with that mean, or exact: random or exact
    /// [default: random]
    #[arg(long, value_name = "HOW", requires = "queries_per_connection", help_heading = "Clients")]
    connection_quota: Option<String>,
    /// A client closes a connection that was idle for so long: 10s
    #[arg(long, value_name = "DURATION", help_heading = "Clients")]
    idle: Option<String>,
    /// When a client opens its connections: at-start or on-demand [default: at-start]
    #[arg(long, value_name = "WHEN", help_heading = "Clients")]
    connect: Option<String>,
    /// UDP: what is done with a truncated answer: count or ask-over-tcp [default: count]
    #[arg(long, value_name = "WHAT", help_heading = "Clients")]
    truncated: Option<String>,
    /// Addresses that the clients send from: 127.0.1.0/24, 127.0.0.1-127.0.0.9, or a list with commas
    #[arg(long, value_name = "ADDRESSES", help_heading = "Clients")]
    sources: Option<String>,
    /// UDP: when a datagram has come, by the clock of whom: user or kernel [default: user]
    #[arg(long, value_name = "CLOCK", help_heading = "Clients")]
    receive_time: Option<String>,
    /// TCP, DoT, DoH2: acknowledge at once what comes (TCP_QUICKACK)
    #[arg(long, help_heading = "Clients")]
    quickack: bool,
    /// Key exchange groups offered, the preferred one first: x25519mlkem768,x25519
    /// [default: x25519,secp256r1,secp384r1]
    #[arg(long, value_name = "GROUPS", help_heading = "TLS and HTTP")]
    tls_groups: Option<String>,
    /// DoT: a TLS record for each query, or as few as can be: per-query or shared [default: per-query]
    #[arg(long, value_name = "HOW", help_heading = "TLS and HTTP")]
    tls_records: Option<String>,
    /// TLS versions offered: 1.2, 1.3 or both [default: both]
    #[arg(long, value_name = "VERSIONS", help_heading = "TLS and HTTP")]
    tls_versions: Option<String>,
    /// Resume with session tickets, each client with its own [default: on]
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"], help_heading = "TLS and HTTP")]
    resumption: Option<String>,
    /// Send queries with the first packet where a ticket allows it (0-RTT)
    #[arg(long, help_heading = "TLS and HTTP")]
    early_data: bool,
    /// DNS over HTTPS: post or get [default: post]
    #[arg(long, value_name = "METHOD", help_heading = "TLS and HTTP")]
    http_method: Option<String>,
    /// DNS over HTTPS: the path that is asked for [default: /dns-query]
    #[arg(long, value_name = "PATH", help_heading = "TLS and HTTP")]
    http_path: Option<String>,
    /// Types that the names of the zone are asked for: A:70,AAAA:30 [default: A]
    #[arg(
        long,
        value_name = "TYPE:WEIGHT,...",
        conflicts_with = "queries",
        help_heading = "Queries"
    )]
    types: Option<String>,
    /// Set the RD bit
    #[arg(long, help_heading = "Queries")]
    recursion_desired: bool,
    /// Set the DO bit
    #[arg(long, help_heading = "Queries")]
    dnssec_ok: bool,
    /// Send an OPT record with this UDP payload size
    #[arg(long, value_name = "OCTETS", help_heading = "Queries")]
    edns_payload: Option<u16>,
    /// Send an EDNS option, 65001:c0ffee; can be given more than once
    #[arg(long, value_name = "CODE:HEX", help_heading = "Queries")]
    edns_option: Vec<String>,
    /// Pad queries to blocks of 128 octets, or of another size: --padding=468
    #[arg(long, value_name = "OCTETS", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", help_heading = "Queries")]
    padding: Option<String>,
    /// TCP and DoT: ask for the server's idle time-out (RFC 7828)
    #[arg(long, help_heading = "Queries")]
    keepalive: bool,
    /// Send DNS cookies, each client its own
    #[arg(long, help_heading = "Queries")]
    cookies: bool,
    /// Client subnets: 192.0.2.0/24, "10.0.0.0/8 by /24", or a file with one on each line
    #[arg(long, value_name = "SUBNETS", help_heading = "Queries")]
    client_subnets: Option<String>,
    /// Sign queries with this TSIG key; others see it in the list of processes
    #[arg(long, value_name = "[ALGORITHM:]NAME:SECRET", help_heading = "Queries")]
    tsig: Option<String>,
    /// Sign queries with the TSIG key in this file
    #[arg(long, value_name = "FILE", conflicts_with = "tsig", help_heading = "Queries")]
    tsig_file: Option<PathBuf>,
}

impl Client {
    /// Adds the keys that were given.
    pub(crate) fn add_to(&self, lines: &mut Lines) {
        let texts = [
            ("load.idle", &self.idle),
            ("load.connect", &self.connect),
            ("load.truncated", &self.truncated),
            ("load.sources", &self.sources),
            ("load.receive_time", &self.receive_time),
            ("load.connection_quota", &self.connection_quota),
            ("load.tls_versions", &self.tls_versions),
            ("load.tls_records", &self.tls_records),
            ("load.http_method", &self.http_method),
            ("load.http_path", &self.http_path),
            ("load.types", &self.types),
            ("load.client_subnets", &self.client_subnets),
            ("load.tsig", &self.tsig),
        ];
        for (key, text) in texts {
            lines.add_if(key, text.as_deref().map(toml_text));
        }
        let flags = [
            ("load.early_data", self.early_data),
            ("load.recursion_desired", self.recursion_desired),
            ("load.dnssec_ok", self.dnssec_ok),
            ("load.keepalive", self.keepalive),
            ("load.cookies", self.cookies),
        ];
        for (key, is_given) in flags {
            lines.add_if(key, is_given.then(|| "true".to_owned()));
        }
        lines.add_if("load.quickack", self.quickack.then(|| toml_text("always")));
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        lines.add_if("load.connections", number(self.connections));
        lines.add_if("load.queries_per_connection", number(self.queries_per_connection));
        lines.add_if("load.edns_payload", number(self.edns_payload.map(u32::from)));
        let resumption = self.resumption.as_deref().map(|word| (word == "on").to_string());
        lines.add_if("load.resumption", resumption);
        lines.add_if("load.padding", self.padding.as_deref().map(toml_word));
        lines.add_if("load.tsig_file", self.tsig_file.as_deref().map(toml_path));
        if let Some(groups) = &self.tls_groups {
            let groups: Vec<String> = groups.split(',').map(|it| toml_text(it.trim())).collect();
            lines.add("load.tls_groups", format!("[{}]", groups.join(", ")));
        }
        if !self.edns_option.is_empty() {
            let options: Vec<String> = self.edns_option.iter().map(|it| toml_text(it)).collect();
            lines.add("load.edns_options", format!("[{}]", options.join(", ")));
        }
    }
}

/// A word as TOML: as it is if it is a number or a truth, else as text, for the check to refuse.
fn toml_word(word: &str) -> String {
    let is_plain = word.parse::<u32>().is_ok() || word.parse::<bool>().is_ok();
    if is_plain { word.to_owned() } else { toml_text(word) }
}
