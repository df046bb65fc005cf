//! What a command prints.

use clap::{Args, ValueEnum};

/// What a command prints.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Output {
    /// Print the result alone, and not what happens on the way
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print JSON in the place of the result for people: `summary.json`, or DNS-OARC's dns-metrics
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "summary")]
    pub(crate) json: Option<JsonForm>,
    /// Print no result: what comes of several sessions is printed once.
    #[arg(skip)]
    pub(crate) is_part: bool,
}

/// Which JSON is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JsonForm {
    /// The figures of all variants, with their schema in docs/summary.schema.json
    Summary,
    /// <https://github.com/DNS-OARC/dns-metrics>, one object a line
    DnsMetrics,
}
