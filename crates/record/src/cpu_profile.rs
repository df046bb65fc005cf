//! Where the CPU time of a server goes: samples taken while it was loaded, in a round of their own.

use serde::{Deserialize, Serialize};

/// Version of the form of the file of profiles. Whatever is added, dnslab goes on reading all of them.
pub const PROFILE_FORMAT: u32 = 1;

/// A part of what a server does for a query. A sample belongs to exactly one.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CostPart {
    /// The kernel's sockets, protocols, packets and network devices.
    KernelNetwork,
    /// The rest of the kernel: system calls as such, waiting, scheduling, memory, time.
    KernelRest,
    /// The whole kernel, where it hides its symbols.
    Kernel,
    /// The protocol of TLS.
    Tls,
    /// Ciphers, digests, signatures, key exchange.
    Crypto,
    /// The protocols of HTTP and QUIC.
    HttpQuic,
    /// The loop that waits for sockets and timers, with its tasks and buffers.
    EventLoop,
    /// Messages, zones, caches, answers.
    DnsLogic,
    /// Allocation, and copies by the C library.
    Memory,
    /// The query log and dnstap, with what the kernel does to write them and other files.
    Log,
    /// What cannot be told.
    Rest,
}

impl CostPart {
    /// All parts, in the order in which they are shown.
    pub const ALL: [Self; 11] = [
        Self::KernelNetwork,
        Self::KernelRest,
        Self::Kernel,
        Self::Tls,
        Self::Crypto,
        Self::HttpQuic,
        Self::EventLoop,
        Self::DnsLogic,
        Self::Memory,
        Self::Log,
        Self::Rest,
    ];

    /// Name for machines, as in the files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KernelNetwork => "kernel-network",
            Self::KernelRest => "kernel-rest",
            Self::Kernel => "kernel",
            Self::Tls => "tls",
            Self::Crypto => "crypto",
            Self::HttpQuic => "http-quic",
            Self::EventLoop => "event-loop",
            Self::DnsLogic => "dns-logic",
            Self::Memory => "memory",
            Self::Log => "log",
            Self::Rest => "rest",
        }
    }

    /// True if the kernel spent the time.
    #[must_use]
    pub fn is_kernel(self) -> bool {
        matches!(self, Self::KernelNetwork | Self::KernelRest | Self::Kernel)
    }
}

/// The profiles of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuProfiles {
    /// [`PROFILE_FORMAT`] at the time of writing.
    pub format: u32,
    /// One for each variant that was sampled, in the order of the experiment.
    pub profiles: Vec<CpuProfile>,
    /// Variants that were not, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<NotProfiled>,
}

/// A variant that has no profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotProfiled {
    /// Its name.
    pub variant: String,
    /// Why not, and what would help.
    pub reason: String,
}

/// The samples of one variant. All counts are of samples in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuProfile {
    /// The variant.
    pub variant: String,
    /// What sampled: program, version, event.
    pub sampler: String,
    /// Samples for each second of CPU time.
    pub rate_hz: u32,
    /// All samples.
    pub samples: u64,
    /// Samples that could not be written in time, according to the sampler, over the whole load.
    pub lost: u64,
    /// True if the kernel told its symbols.
    pub kernel_symbols: bool,
    /// What the server answered while it was sampled, queries per second.
    pub answered_qps: f64,
    /// CPU time for each answered query while it was sampled, nanoseconds.
    pub cpu_per_query_ns: f64,
    /// Samples by part; those without samples are left out.
    pub parts: Vec<PartSamples>,
    /// Samples by part and library, the most frequent first.
    pub libraries: Vec<LibrarySamples>,
    /// Names in the stacks, each once.
    pub names: Vec<String>,
    /// Stacks, the most frequent first. Rare ones may be cut short, so that there are not too many.
    pub stacks: Vec<StackSamples>,
}

/// Samples of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSamples {
    /// Which.
    pub part: CostPart,
    /// How many.
    pub samples: u64,
}

/// Samples of a part in a library, a program, or the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibrarySamples {
    /// The part.
    pub part: CostPart,
    /// The file's name without its folder, or `kernel`.
    pub library: String,
    /// How many.
    pub samples: u64,
}

/// Samples with one stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackSamples {
    /// The part that it belongs to.
    pub part: CostPart,
    /// Places in [`CpuProfile::names`], the outermost first: the callers in the kernel, or library and function.
    pub frames: Vec<u32>,
    /// How many.
    pub samples: u64,
}

/// Most frames of a stack.
pub const MAX_STACK_FRAMES: usize = 48;
/// Most stacks of a profile. A flame graph of a thousand stacks has details below a pixel.
pub const MAX_STACKS: usize = 1_000;
/// Most stacks of all profiles of an experiment together.
pub const MAX_PROFILE_STACKS: usize = 60_000;
/// Most libraries of a profile.
pub const MAX_LIBRARIES: usize = 200;
/// Most names in a profile, which stacks of [`MAX_STACKS`] hardly reach.
pub const MAX_STACK_NAMES: usize = 8_000;
/// Octets of a name in a profile. Names of generic Rust functions have hundreds.
pub const MAX_STACK_NAME: usize = 160;

impl CpuProfile {
    /// The samples of a part.
    #[must_use]
    pub fn of(&self, part: CostPart) -> u64 {
        self.parts.iter().filter(|own| own.part == part).map(|own| own.samples).sum()
    }

    fn is_sum_of(&self, mut counts: impl Iterator<Item = u64>) -> bool {
        counts.try_fold(0, u64::checked_add) == Some(self.samples)
    }

    /// What contradicts itself or is beyond the bounds; `None` if nothing does. A profile on disk may come from
    /// anybody.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let mut parts: Vec<CostPart> = self.parts.iter().map(|part| part.part).collect();
        parts.sort_unstable();
        parts.dedup();
        let is_time = |value: f64| value.is_finite() && value >= 0.0;
        if parts.len() != self.parts.len() {
            Some("it has a part twice")
        } else if !self.is_sum_of(self.parts.iter().map(|part| part.samples)) {
            Some("its parts do not add up to its samples")
        } else if self.libraries.len() > MAX_LIBRARIES
            || !self.is_sum_of(self.libraries.iter().map(|library| library.samples))
        {
            Some("its libraries do not add up to its samples")
        } else if self.stacks.len() > MAX_STACKS
            || !self.is_sum_of(self.stacks.iter().map(|stack| stack.samples))
        {
            Some("its stacks do not add up to its samples")
        } else if self.names.len() > MAX_STACK_NAMES
            || self.names.iter().any(|name| name.len() > MAX_STACK_NAME)
            || self.libraries.iter().any(|library| library.library.len() > MAX_STACK_NAME)
        {
            Some("its names are too many or too long")
        } else if self.stacks.iter().any(|stack| {
            stack.frames.len() > MAX_STACK_FRAMES
                || stack.frames.iter().any(|name| *name as usize >= self.names.len())
        }) {
            Some("it has a stack of names that it lacks")
        } else if !is_time(self.answered_qps) || !is_time(self.cpu_per_query_ns) {
            Some("its rate or its CPU time is none")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_files() {
        for part in CostPart::ALL {
            assert_eq!(serde_json::to_value(part).unwrap(), part.name());
        }
    }

    #[test]
    fn what_contradicts_itself_is_found() {
        let profile = CpuProfile {
            samples: 2,
            parts: vec![PartSamples { part: CostPart::Tls, samples: 2 }],
            libraries: vec![LibrarySamples {
                part: CostPart::Tls,
                library: "libssl.so.3".to_owned(),
                samples: 2,
            }],
            names: vec!["libssl.so.3".to_owned()],
            stacks: vec![StackSamples { part: CostPart::Tls, frames: vec![0], samples: 2 }],
            ..CpuProfile::default()
        };
        assert_eq!(profile.fault(), None);
        #[track_caller]
        fn check(profile: &CpuProfile, change: fn(&mut CpuProfile)) {
            let mut changed = profile.clone();
            change(&mut changed);
            assert!(changed.fault().is_some(), "{changed:?}");
        }
        check(&profile, |profile| profile.samples = 3);
        check(&profile, |profile| {
            profile.parts.push(PartSamples { part: CostPart::Tls, samples: 0 })
        });
        check(&profile, |profile| profile.libraries.clear());
        check(&profile, |profile| profile.stacks[0].frames.push(1));
        check(&profile, |profile| profile.stacks[0].samples = u64::MAX);
        check(&profile, |profile| profile.stacks[0].frames = vec![0; MAX_STACK_FRAMES + 1]);
        check(&profile, |profile| profile.names[0] = "x".repeat(MAX_STACK_NAME + 1));
        check(&profile, |profile| profile.cpu_per_query_ns = f64::INFINITY);
    }
}
