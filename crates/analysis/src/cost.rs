//! What the parts of a server cost for each query, and how two variants differ in them.
//!
//! A part's time is its share of the samples times the CPU time for each query of the runs that nobody sampled. So the
//! parts add up to that.
//!
//! Two things are uncertain: the share, since samples are drawn at random, and the CPU time, which differs from run to
//! run. Shares have simultaneous intervals (Goodman, "On Simultaneous Confidence Intervals for Multinomial
//! Proportions", Technometrics 7, 1965): the score interval of Wilson at an error divided by the number of parts. It is
//! sound where a part has no sample at all. Products and differences combine the distances to the ends in quadrature
//! (Zou and Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008).

use dnslab_record::{
    CostPart, CpuProfile, CpuProfiles, Metric, NotProfiled, Observation, RunRecord, Session,
};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, Normal};

use crate::statistics::{Comparison, Estimate, Verdict, mean, mean_of};

/// The chance that any part of a variant is outside its interval.
const ERROR: f64 = 0.05;

/// Parts that are told as one in a sentence.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PartSet {
    /// The kernel's network stack.
    KernelNetwork,
    /// The rest of the kernel.
    KernelRest,
    /// The whole kernel.
    Kernel,
    /// TLS and cryptography together.
    TlsAndCrypto,
    /// HTTP and QUIC.
    HttpQuic,
    /// The event loop.
    EventLoop,
    /// DNS logic.
    DnsLogic,
    /// Memory.
    Memory,
    /// Log.
    Log,
    /// What cannot be told.
    Rest,
}

impl PartSet {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::KernelNetwork,
        Self::KernelRest,
        Self::Kernel,
        Self::TlsAndCrypto,
        Self::HttpQuic,
        Self::EventLoop,
        Self::DnsLogic,
        Self::Memory,
        Self::Log,
        Self::Rest,
    ];

    /// The parts of it.
    #[must_use]
    pub fn parts(self) -> &'static [CostPart] {
        match self {
            Self::KernelNetwork => &[CostPart::KernelNetwork],
            Self::KernelRest => &[CostPart::KernelRest],
            Self::Kernel => &[CostPart::Kernel],
            Self::TlsAndCrypto => &[CostPart::Tls, CostPart::Crypto],
            Self::HttpQuic => &[CostPart::HttpQuic],
            Self::EventLoop => &[CostPart::EventLoop],
            Self::DnsLogic => &[CostPart::DnsLogic],
            Self::Memory => &[CostPart::Memory],
            Self::Log => &[CostPart::Log],
            Self::Rest => &[CostPart::Rest],
        }
    }
}

/// Where the CPU time of all variants goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CostSummary {
    /// Those that were sampled, in the order of the experiment.
    pub variants: Vec<VariantCost>,
    /// Those that were sampled and are compared.
    pub differences: Vec<CostDifference>,
    /// Those that were not sampled, and why.
    pub not_profiled: Vec<NotProfiled>,
}

/// Where the CPU time of a variant goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VariantCost {
    /// Its name.
    pub variant: String,
    /// CPU time for each query in the runs that nobody sampled, nanoseconds.
    pub cpu_per_query_ns: Estimate,
    /// CPU time for each query while it was sampled, nanoseconds: what sampling costs is the difference.
    pub sampled_cpu_per_query_ns: f64,
    /// Answered queries per second without and with sampling.
    pub answered_qps: [f64; 2],
    /// Samples in the measured window.
    pub samples: u64,
    /// Samples that were lost.
    pub lost: u64,
    /// Samples for each second of CPU time.
    pub rate_hz: u32,
    /// What sampled.
    pub sampler: String,
    /// The parts that have samples, in the order in which they are shown.
    pub parts: Vec<PartCost>,
}

/// What a part costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartCost {
    /// Which.
    pub part: CostPart,
    /// Its samples.
    pub samples: u64,
    /// Share of the samples, in [0, 1].
    pub share: f64,
    /// CPU time for each query, nanoseconds.
    pub ns: Estimate,
}

/// By how much a variant differs from another one, part by part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CostDifference {
    /// The variant.
    pub variant: String,
    /// The reference.
    pub against: String,
    /// The difference in CPU time for each query, nanoseconds.
    pub ns: f64,
    /// True if the runs say that there is one.
    pub is_certain: bool,
    /// The parts, those with the largest difference first.
    pub parts: Vec<PartDifference>,
}

/// By how much a part differs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartDifference {
    /// Which parts, told as one.
    pub part: PartSet,
    /// The difference in CPU time for each query, nanoseconds.
    pub ns: Estimate,
    /// True if the interval has not zero in it.
    pub is_certain: bool,
}

impl CostSummary {
    /// Puts profiles and runs together. A variant without a valid run, or without samples, is not profiled.
    #[must_use]
    pub fn of(
        session: &Session,
        records: &[RunRecord],
        comparisons: &[Comparison],
        profiles: &CpuProfiles,
    ) -> Self {
        let mut not_profiled = profiles.failed.clone();
        let mut known: Vec<Profiled<'_>> = Vec::new();
        for name in &session.variants {
            let Some(profile) = profiles.profiles.iter().find(|profile| profile.variant == *name)
            else {
                continue;
            };
            match variant_cost(profile, records, session.seed) {
                Some(cost) => known.push(Profiled { profile, cost }),
                None => not_profiled.push(NotProfiled {
                    variant: name.clone(),
                    reason: "no valid run tells its CPU time for each query".to_owned(),
                }),
            }
        }
        let find = |name: &str| known.iter().find(|known| known.profile.variant == name);
        let differences = session
            .compared()
            .iter()
            .filter_map(|pair| {
                let (own, reference) = (find(&pair.variant)?, find(&pair.against)?);
                let is_certain = comparisons.iter().any(|comparison| {
                    (&comparison.variant, &comparison.against) == (&pair.variant, &pair.against)
                        && comparison.metric == Metric::ServerCpuPerQuery
                        && matches!(comparison.verdict, Verdict::Costs | Verdict::Gains)
                });
                Some(CostDifference { is_certain, ..own.difference(reference) })
            })
            .collect();
        let variants = known.into_iter().map(|known| known.cost).collect();
        Self { variants, differences, not_profiled }
    }
}

fn variant_cost(profile: &CpuProfile, records: &[RunRecord], seed: u64) -> Option<VariantCost> {
    let own = records.iter().filter(|record| record.variant == profile.variant);
    let valid: Vec<Observation<'_>> =
        own.filter(|record| record.is_valid()).filter_map(RunRecord::observation).collect();
    // The server under test alone was sampled, so the servers behind it do not count.
    let cpu: Vec<f64> = valid.iter().filter_map(Observation::server_cpu_per_query_ns).collect();
    let rates: Vec<f64> = valid.iter().map(|run| run.measured.answered_qps()).collect();
    let (cpu_per_query_ns, answered_qps) = (mean(&cpu, seed)?, mean_of(&rates)?);
    if profile.samples == 0 {
        return None;
    }
    let parts = CostPart::ALL.into_iter().filter_map(|part| {
        let samples = profile.of(part);
        let ns = time_of(samples, profile.samples, cpu_per_query_ns);
        let share = samples as f64 / profile.samples as f64;
        (samples > 0).then_some(PartCost { part, samples, share, ns })
    });
    Some(VariantCost {
        variant: profile.variant.clone(),
        cpu_per_query_ns,
        sampled_cpu_per_query_ns: profile.cpu_per_query_ns,
        answered_qps: [answered_qps, profile.answered_qps],
        samples: profile.samples,
        lost: profile.lost,
        rate_hz: profile.rate_hz,
        sampler: profile.sampler.clone(),
        parts: parts.collect(),
    })
}

/// A part's time for each query: its share of the samples times the whole.
fn time_of(samples: u64, all: u64, whole: Estimate) -> Estimate {
    let share = share(samples, all);
    let value = share.value * whole.value;
    // One run says nothing of its spread: then the interval is that of the share alone.
    let whole = match whole.is_bounded() {
        true => whole,
        false => Estimate { low: whole.value, high: whole.value, ..whole },
    };
    let [below, above] = [(share.low, whole.low), (share.high, whole.high)].map(|(part, all)| {
        let (by_share, by_whole) = (part - share.value, all - whole.value);
        (by_share * whole.value).hypot(by_whole * share.value)
    });
    Estimate { value, low: (value - below).max(0.0), high: value + above }
}

/// The share of the samples with its simultaneous interval, in [0, 1].
fn share(samples: u64, all: u64) -> Estimate {
    let (count, total) = (samples as f64, all as f64);
    let value = count / total;
    let z = Normal::standard().inverse_cdf(1.0 - ERROR / (2.0 * CostPart::ALL.len() as f64));
    let shrink = 1.0 + z * z / total;
    let middle = (value + z * z / (2.0 * total)) / shrink;
    let half = z / shrink * (value * (1.0 - value) / total + z * z / (4.0 * total * total)).sqrt();
    // Rounding must not move an end over the value where that is 0 or 1.
    let (low, high) = ((middle - half).clamp(0.0, value), (middle + half).clamp(value, 1.0));
    Estimate { value, low, high }
}

/// A variant that was profiled, with what the profile says together with the runs.
struct Profiled<'a> {
    profile: &'a CpuProfile,
    cost: VariantCost,
}

impl Profiled<'_> {
    fn difference(&self, reference: &Self) -> CostDifference {
        let parts = PartSet::ALL.into_iter().filter_map(|set| self.part_difference(reference, set));
        let mut parts: Vec<PartDifference> = parts.collect();
        parts.sort_by(|one, other| other.ns.value.abs().total_cmp(&one.ns.value.abs()));
        CostDifference {
            variant: self.profile.variant.clone(),
            against: reference.profile.variant.clone(),
            ns: self.cost.cpu_per_query_ns.value - reference.cost.cpu_per_query_ns.value,
            is_certain: false,
            parts,
        }
    }

    /// `None` if neither has a sample of it.
    fn part_difference(&self, reference: &Self, part: PartSet) -> Option<PartDifference> {
        if [self, reference].iter().all(|side| side.samples(part) == 0) {
            return None;
        }
        let [own, other] = [self, reference].map(|side| {
            time_of(side.samples(part), side.profile.samples, side.cost.cpu_per_query_ns)
        });
        let value = own.value - other.value;
        let ns = Estimate {
            value,
            low: value - (own.value - own.low).hypot(other.high - other.value),
            high: value + (own.high - own.value).hypot(other.value - other.low),
        };
        // One run says nothing of its spread.
        let is_known = [self, reference].iter().all(|side| side.cost.cpu_per_query_ns.is_bounded());
        let is_certain = is_known && (ns.low > 0.0 || ns.high < 0.0);
        Some(PartDifference { part, ns, is_certain })
    }

    fn samples(&self, set: PartSet) -> u64 {
        set.parts().iter().map(|part| self.profile.of(*part)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnslab_record::PartSamples;
    use rand::{Rng as _, SeedableRng as _};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn exact(value: f64) -> Estimate {
        Estimate { value, low: value, high: value }
    }

    /// Wilson's interval at the 1 - 0.05/22 quantile of the normal distribution, 2.83760, computed with Python's
    /// `statistics.NormalDist` for 30 of 100.
    #[test]
    fn shares_have_the_interval_of_wilson() {
        let found = share(30, 100);
        assert!((found.low - 0.188923).abs() < 1e-5, "{found:?}");
        assert!((found.high - 0.440885).abs() < 1e-5, "{found:?}");
        let none = share(0, 1_000);
        assert_eq!((none.value, none.low), (0.0, 0.0));
        assert!((0.007..0.009).contains(&none.high), "{none:?}");
        assert_eq!(share(1_000, 1_000).high, 1.0);
    }

    /// At least 95 of 100 times all parts of a variant are inside their intervals.
    #[test]
    fn intervals_hold_all_parts_at_once() {
        let truth = [0.4, 0.2, 0.0, 0.05, 0.1, 0.15, 0.05, 0.03, 0.0, 0.02, 0.0];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut held = 0;
        for _ in 0..2_000 {
            let mut counts = [0_u64; 11];
            for _ in 0..500 {
                let mut left: f64 = random.random();
                let drawn = truth.iter().position(|share| {
                    left -= share;
                    left < 0.0
                });
                counts[drawn.unwrap_or(0)] += 1;
            }
            let all = counts.iter().zip(truth).all(|(count, truth)| {
                let found = share(*count, 500);
                found.low <= truth && truth <= found.high
            });
            held += u32::from(all);
        }
        assert!((1_900..=1_995).contains(&held), "{held}");
    }

    #[test]
    fn parts_add_up_and_have_both_uncertainties() {
        let whole = Estimate { value: 10_000.0, low: 9_000.0, high: 11_000.0 };
        let counts = [500, 300, 200];
        let sum: f64 = counts.iter().map(|count| time_of(*count, 1_000, whole).value).sum();
        assert!((sum - 10_000.0).abs() < 1e-6);
        let (wide, narrow) = (time_of(500, 1_000, whole), time_of(500, 1_000, exact(10_000.0)));
        assert!(wide.low < narrow.low && narrow.high < wide.high);
        let unknown = Estimate { low: f64::NEG_INFINITY, high: f64::INFINITY, ..whole };
        assert_eq!(time_of(500, 1_000, unknown), narrow);
    }

    fn sampled(variant: &str, parts: &[(CostPart, u64)]) -> CpuProfile {
        let parts = parts.iter().map(|&(part, samples)| PartSamples { part, samples });
        CpuProfile {
            variant: variant.to_owned(),
            samples: parts.clone().map(|part| part.samples).sum(),
            parts: parts.collect(),
            ..CpuProfile::default()
        }
    }

    fn profiled(profile: &CpuProfile, whole_ns: f64) -> Profiled<'_> {
        let cost = VariantCost {
            variant: profile.variant.clone(),
            cpu_per_query_ns: exact(whole_ns),
            sampled_cpu_per_query_ns: 0.0,
            answered_qps: [0.0; 2],
            samples: profile.samples,
            lost: 0,
            rate_hz: 0,
            sampler: String::new(),
            parts: Vec::new(),
        };
        Profiled { profile, cost }
    }

    #[test]
    fn differences_beyond_the_error_of_sampling_are_certain() {
        use CostPart::{Crypto, DnsLogic, KernelNetwork, Tls};
        let udp = sampled("udp", &[(KernelNetwork, 4_000), (DnsLogic, 2_000)]);
        let dot = [(KernelNetwork, 5_000), (DnsLogic, 1_550), (Tls, 100), (Crypto, 900)];
        let dot = sampled("dot", &dot);
        let found = profiled(&dot, 10_000.0).difference(&profiled(&udp, 6_000.0));
        assert_eq!(found.ns, 4_000.0);
        let sum: f64 = found.parts.iter().map(|part| part.ns.value).sum();
        assert!((sum - 4_000.0).abs() < 1e-6);
        let by = |set: PartSet| found.parts.iter().find(|part| part.part == set).unwrap();
        assert!(by(PartSet::KernelNetwork).is_certain);
        assert!(by(PartSet::TlsAndCrypto).is_certain, "one has none of it");
        assert!(!by(PartSet::DnsLogic).is_certain, "{:?}", by(PartSet::DnsLogic));
        assert_eq!(found.parts[0].part, PartSet::KernelNetwork, "the largest first");
    }
}
