//! What a population is.

use std::fmt;
use std::time::Duration;

use dnslab_wire::Transport;
use dnslab_wire::units::{duration, number, share};
use domain::base::iana::Rtype;

use super::distribution::LogNormal;

/// A description of DNS clients that gives traffic like theirs.
///
/// Clients are independent of each other. A client is silent, asks for several names in a burst, as for a page
/// of the web, and is silent again. Repetitions because an answer is late are not part of it: who sends the
/// queries makes them.
///
/// ```
/// use dnslab_traffic::population::Population;
///
/// let text = Population::typical().to_toml();
/// assert_eq!(text.parse(), Ok(Population::typical()));
/// let error = text.replace("spread", "spred").parse::<Population>().unwrap_err().to_string();
/// assert!(error.starts_with("line 8: unknown field `spred`"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    /// How many clients there are, from 1. Some of them send nothing in a short time.
    pub clients: u32,
    /// Queries per second of all clients together, above 0.
    pub rate_qps: f64,
    /// How the queries are spread over the clients.
    pub activity: Activity,
    /// When a client asks.
    pub bursts: Bursts,
    /// Which types a client asks for at once.
    pub lookups: Lookups,
    /// How often which names are asked for.
    pub names: PopularNames,
    /// What the stub resolvers of the clients are like.
    pub stubs: Stubs,
}

/// How the queries are spread over the clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    /// The distribution of the mean rates of all clients but [`Activity::busiest`].
    pub distribution: ActivityDistribution,
    /// Shares of all queries that single clients make, such as forwarders. Together below 1, and fewer than
    /// there are clients.
    pub busiest: Vec<f64>,
}

/// A distribution of mean rates over clients. Only its form matters: the rate of all clients together is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActivityDistribution {
    /// The logarithm of the rate is normally distributed.
    LogNormal {
        /// Standard deviation of the natural logarithm, 0 to 4; 0 if all clients are equally active.
        spread: f64,
    },
    /// The share of clients with more than `x` times the lowest rate is `x` to the power of `-shape`.
    Pareto {
        /// The exponent, 0.5 to 10: the lower, the more of the queries come from few clients.
        shape: f64,
    },
}

/// When a client asks: in bursts, with silence between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Bursts {
    /// Median of the number of lookups in a burst before it is rounded up, 0.1 to 500. The number is
    /// log-normally distributed, rounded up, and at most [`MAX_LOOKUPS`].
    pub lookups_median: f64,
    /// Standard deviation of its natural logarithm, 0 to 3.
    pub lookups_spread: f64,
    /// Median of the time from one lookup of a burst to the next before long ones are cut off: at most
    /// half of [`Bursts::silence`]. It is log-normally distributed, and never above the silence.
    pub gap_median: Duration,
    /// Standard deviation of its natural logarithm, 0 to 4.
    pub gap_spread: f64,
    /// The shortest silence between two bursts, 10 ms to a minute.
    pub silence: Duration,
    /// What the silence is longer has a Weibull distribution with this shape, 0.2 to 2. At 1, bursts follow
    /// each other at random as calls do; below, they are themselves in groups.
    pub silence_shape: f64,
}

/// The most lookups in a burst.
pub const MAX_LOOKUPS: u16 = 1_000;

/// Which types a client asks for at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookups {
    /// Mean time from one query of a lookup to the next, at most 50 ms. It is exponentially distributed.
    pub gap: Duration,
    /// The kinds of lookups, 1 to 64.
    pub kinds: Vec<LookupKind>,
}

/// Queries for one name that a client sends together.
#[derive(Clone, Debug, PartialEq)]
pub struct LookupKind {
    /// The types in the order in which they are sent, 1 to [`MAX_TYPES`], each once.
    pub types: Vec<Rtype>,
    /// Its share among the lookups, as a part of the sum of all weights. Above 0.
    pub weight: f64,
}

/// The most types of a lookup.
pub const MAX_TYPES: usize = 6;

/// How often which names are asked for. What remains beside the two shares asks for popular names.
#[derive(Clone, Debug, PartialEq)]
pub struct PopularNames {
    /// Names that exist.
    pub popular: Zipf,
    /// The share of lookups for names that do not exist and are asked for again and again, as search lists
    /// make them.
    pub missing_share: f64,
    /// Those names.
    pub missing: Zipf,
    /// The share of lookups for names that are asked for once and never again. Together with
    /// [`PopularNames::missing_share`] at most 1.
    pub random_share: f64,
}

/// A set of names in which the name of rank `r`, from 1, is asked for in proportion to `r` to the power of
/// `-exponent` (Zipf's law).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zipf {
    /// How many names there are, from 1.
    pub count: u32,
    /// The exponent, 0 to 3; at 0 all names are equally popular.
    pub exponent: f64,
}

/// What the stub resolvers of the clients are like. All shares are shares of clients: a client always does the
/// same.
#[derive(Clone, Debug, PartialEq)]
pub struct Stubs {
    /// Share that sets the RD bit.
    pub recursion_desired: f64,
    /// Share that sends an OPT record (RFC 6891).
    pub edns: f64,
    /// Share that sets the DO bit (RFC 3225), among those that send an OPT record.
    pub dnssec_ok: f64,
    /// Sizes of UDP answers that those which send an OPT record take, octets, with weights. 1 to 64 sizes.
    pub payload_sizes: Vec<(u16, f64)>,
    /// Transports with weights, each once, at least one.
    pub transports: Vec<(Transport, f64)>,
}

impl Population {
    /// Clients as in published studies of recursive resolvers, and assumptions where there is none. The table
    /// in `docs/POPULATIONS.md` says which is which.
    #[must_use]
    pub fn typical() -> Self {
        let kind = |types: &[Rtype], weight| LookupKind { types: types.to_vec(), weight };
        const A: Rtype = Rtype::A;
        const AAAA: Rtype = Rtype::AAAA;
        Self {
            clients: 10_000,
            rate_qps: 1_000.0,
            activity: Activity {
                distribution: ActivityDistribution::LogNormal { spread: 1.5 },
                busiest: Vec::new(),
            },
            bursts: Bursts {
                lookups_median: 3.0,
                lookups_spread: 1.2,
                gap_median: Duration::from_millis(60),
                gap_spread: 1.5,
                silence: Duration::from_secs(2),
                silence_shape: 0.6,
            },
            lookups: Lookups {
                gap: Duration::from_millis(1),
                kinds: vec![
                    kind(&[A, AAAA], 40.0),
                    kind(&[A], 30.0),
                    kind(&[A, AAAA, Rtype::HTTPS], 20.0),
                    kind(&[A, Rtype::HTTPS], 4.0),
                    kind(&[Rtype::PTR], 3.0),
                    kind(&[Rtype::TXT], 1.0),
                    kind(&[Rtype::SRV], 1.0),
                    kind(&[Rtype::MX], 1.0),
                ],
            },
            names: PopularNames {
                popular: Zipf { count: 1_000_000, exponent: 0.91 },
                missing_share: 0.06,
                missing: Zipf { count: 5_000, exponent: 1.0 },
                random_share: 0.02,
            },
            stubs: Stubs {
                recursion_desired: 1.0,
                edns: 0.3,
                dnssec_ok: 0.1,
                payload_sizes: vec![(1232, 60.0), (4096, 25.0), (512, 15.0)],
                transports: vec![(Transport::Udp, 1.0)],
            },
        }
    }

    /// Queries per second of so many clients, each as active as here.
    #[must_use]
    pub fn rate_of(&self, clients: u32) -> f64 {
        self.rate_qps / f64::from(self.clients) * f64::from(clients)
    }

    /// The share of lookups for names that exist.
    #[must_use]
    pub fn popular_share(&self) -> f64 {
        (1.0 - self.names.missing_share - self.names.random_share).max(0.0)
    }

    /// The mean number of queries in a burst.
    #[must_use]
    pub fn mean_burst(&self) -> f64 {
        self.bursts.mean_lookups() * self.lookups.mean_types()
    }

    /// The description in a few lines for the terminal, each without a line break at its end.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        let bursts = &self.bursts;
        let activity = match self.activity.distribution {
            ActivityDistribution::LogNormal { spread } => {
                format!("log-normal, spread {}", number::write(spread))
            }
            ActivityDistribution::Pareto { shape } => {
                format!("Pareto, shape {}", number::write(shape))
            }
        };
        let busiest = match self.activity.busiest.len() {
            0 => String::new(),
            count => {
                let sum: f64 = self.activity.busiest.iter().sum();
                format!("; the busiest {count} make {} of the queries", share::rounded(sum))
            }
        };
        let types = self.lookups.type_shares();
        let listed =
            types.iter().take(4).map(|(rtype, part)| format!("{rtype} {}", share::rounded(*part)));
        let names = &self.names;
        let transports = of_sum(&self.stubs.transports);
        let transports: Vec<String> = transports
            .map(|(transport, part)| format!("{transport} {}", share::rounded(part)))
            .collect();
        vec![
            format!(
                "{}, {}",
                number::counted(u64::from(self.clients), "client", "clients"),
                number::queries_per_second(self.rate_qps)
            ),
            format!("activity   {activity}{busiest}"),
            format!(
                "bursts     {} queries on average, then silent for {} or more",
                number::three_digits(self.mean_burst()),
                duration::write(bursts.silence)
            ),
            format!("types      {}", listed.collect::<Vec<_>>().join(", ")),
            format!(
                "names      {} popular (Zipf exponent {}), {} missing, {} never repeated",
                number::count(u64::from(names.popular.count)),
                number::write(names.popular.exponent),
                share::rounded(names.missing_share),
                share::rounded(names.random_share)
            ),
            format!(
                "stubs      EDNS {}, RD {}; {}",
                share::rounded(self.stubs.edns),
                share::rounded(self.stubs.recursion_desired),
                transports.join(", ")
            ),
        ]
    }
}

impl fmt::Display for Population {
    /// The lines of [`Population::summary`].
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.summary().join("\n"))
    }
}

impl Bursts {
    pub(crate) fn lookups(&self) -> LogNormal {
        LogNormal { mean: self.lookups_median.ln(), deviation: self.lookups_spread }
    }

    /// Of seconds, before those above the silence are cut off.
    pub(crate) fn gap(&self) -> LogNormal {
        LogNormal { mean: self.gap_median.as_secs_f64().ln(), deviation: self.gap_spread }
    }

    /// The mean number of lookups in a burst.
    pub(crate) fn mean_lookups(&self) -> f64 {
        let lookups = self.lookups();
        // The mean of a count is the sum of the chances that it is higher.
        (0..MAX_LOOKUPS).map(|count| lookups.above(f64::from(count))).sum()
    }

    /// The mean time from the first lookup of a burst to its last, seconds.
    pub(crate) fn mean_length_s(&self) -> f64 {
        let gap = self.gap().mean_below(self.silence.as_secs_f64());
        (self.mean_lookups() - 1.0) * gap
    }
}

impl Lookups {
    /// The mean number of queries in a lookup.
    pub(crate) fn mean_types(&self) -> f64 {
        let sum: f64 = self.kinds.iter().map(|kind| kind.weight).sum();
        let types = self.kinds.iter().map(|kind| kind.types.len() as f64 * kind.weight);
        types.sum::<f64>() / sum
    }

    /// Shares of all queries, the highest first.
    #[must_use]
    pub fn type_shares(&self) -> Vec<(Rtype, f64)> {
        let mut shares: Vec<(Rtype, f64)> = Vec::new();
        let sum: f64 = self.kinds.iter().map(|kind| kind.types.len() as f64 * kind.weight).sum();
        for kind in &self.kinds {
            for rtype in &kind.types {
                match shares.iter_mut().find(|(known, _)| known == rtype) {
                    Some((_, part)) => *part += kind.weight / sum,
                    None => shares.push((*rtype, kind.weight / sum)),
                }
            }
        }
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }
}

/// Weights as parts of their sum.
fn of_sum<T: Copy>(weighted: &[(T, f64)]) -> impl Iterator<Item = (T, f64)> {
    let sum: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    weighted.iter().map(move |(value, weight)| (*value, weight / sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_a_few_lines() {
        let mut population = Population::typical();
        population.activity.busiest = vec![0.2, 0.05];
        let expected = "\
            10,000 clients, 1,000 queries per second\n\
            activity   log-normal, spread 1.5; the busiest 2 make 25.0 % of the queries\n\
            bursts     12.3 queries on average, then silent for 2s or more\n\
            types      A 51.1 %, AAAA 32.6 %, HTTPS 13.0 %, PTR 1.6 %\n\
            names      1,000,000 popular (Zipf exponent 0.91), 6 % missing, 2 % never repeated\n\
            stubs      EDNS 30.0 %, RD 100 %; udp 100 %";
        assert_eq!(population.to_string(), expected);
    }

    #[test]
    fn means_are_those_of_the_distributions() {
        let mut bursts = Population::typical().bursts;
        (bursts.lookups_median, bursts.lookups_spread) = (4.0, 0.0);
        assert_eq!(bursts.mean_lookups(), 4.0);
        bursts.gap_spread = 0.0;
        assert!((bursts.mean_length_s() - 0.18).abs() < 1e-9);
        let shares = Population::typical().lookups.type_shares();
        assert!((shares.iter().map(|(_, part)| part).sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
