//! The arguments of `dnslab lab`.

use clap::{Args, Subcommand};

/// `dnslab lab`
#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

/// What is to be done with servers of other releases.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Fetch servers into the cache: `bind-9.16 coredns`
    Get(Get),
    /// Say which servers there are to get, and what the cache holds
    List,
}

/// `dnslab lab get`
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// Names of servers, as `dnslab lab list` has them
    #[arg(required = true)]
    pub(crate) name: Vec<String>,
    /// Debian mirror [default: the one that apt uses here]
    #[arg(long, value_name = "URL")]
    pub(crate) mirror: Option<String>,
}
