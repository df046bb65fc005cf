//! How figures are written: the same in the terminal, in Markdown and on the page.

pub use dnslab_wire::units::duration::{
    as_set, in_seconds, range as time_range, rounded as duration,
    with_interval as time_with_interval,
};
pub use dnslab_wire::units::number::{
    bits_per_second, certain, certain_decimals, certain_value, count, counted, qps,
    queries_per_second, three_digits,
};
pub use dnslab_wire::units::octets::rounded as octets;
pub use dnslab_wire::units::share::{TIMES_FROM, change, largest, percent, rounded as share, size};

/// What stands where there is no figure.
pub const NONE: &str = "-";
