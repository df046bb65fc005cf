//! Samples counted by part, library and stack, within bounds.

use std::collections::HashMap;
use std::hash::Hash;

use dnslab_record::{
    CostPart, CpuProfile, LibrarySamples, MAX_LIBRARIES, MAX_STACK_FRAMES, MAX_STACK_NAME,
    MAX_STACK_NAMES, MAX_STACKS, PartSamples, StackSamples,
};

use super::parts::Parts;
use super::script::Frame;

/// Different stacks that are held at once; of further ones only the first frame is kept. So many take 50 MB.
const MAX_HELD: usize = 200_000;
/// Different names that are held at once; further ones are one.
const MAX_HELD_NAMES: usize = 50_000;

/// What stands for names that there is no room for.
const OTHERS: &str = "(others)";
/// What stands for a function that perf does not know.
const UNKNOWN: &str = "[unknown]";
/// The library of the kernel.
const KERNEL: &str = "kernel";

#[derive(Debug)]
pub(super) struct Tally {
    map: Parts,
    lost: u64,
    kernel_symbols: bool,
    names: Names,
    /// Of each part and stack, the outermost frame first.
    stacks: HashMap<(CostPart, Vec<u32>), u64>,
    libraries: HashMap<(CostPart, u32), u64>,
}

#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<String, u32>,
    all: Vec<String>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        let name = shortened(name);
        let known = if self.numbers.contains_key(name) || self.all.len() < MAX_HELD_NAMES {
            name
        } else {
            OTHERS
        };
        if let Some(number) = self.numbers.get(known) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(known.to_owned());
        self.numbers.insert(known.to_owned(), number);
        number
    }
}

/// As many letters as fit into [`MAX_STACK_NAME`] octets.
fn shortened(name: &str) -> &str {
    let mut end = name.len().min(MAX_STACK_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

impl Tally {
    pub(super) fn new(map: Parts) -> Self {
        Self {
            map,
            lost: 0,
            kernel_symbols: false,
            names: Names::default(),
            stacks: HashMap::new(),
            libraries: HashMap::new(),
        }
    }

    pub(super) fn lose(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
    }

    /// Counts a sample, whose innermost frame is the first.
    pub(super) fn count(&mut self, frames: &[Frame]) {
        let part = self.map.part(frames);
        let is_kernel = frames.first().is_some_and(|first| first.is_kernel);
        self.kernel_symbols |= is_kernel && part != CostPart::Kernel;
        let library = match frames.first() {
            _ if is_kernel => KERNEL,
            Some(first) if !first.library.is_empty() => first.library.as_str(),
            _ => UNKNOWN,
        };
        let library = self.names.number(library);
        let mut stack = vec![library];
        match part {
            CostPart::Kernel => {}
            _ if is_kernel => {
                let kernel = frames.iter().take_while(|frame| frame.is_kernel);
                let kernel: Vec<&Frame> = kernel.collect();
                // The outermost ones: what is cut is what a flame graph shows last.
                let outer = kernel.iter().rev().take(MAX_STACK_FRAMES - 1);
                stack.extend(outer.map(|frame| match frame.symbol.as_str() {
                    "" => self.names.number(UNKNOWN),
                    symbol => self.names.number(symbol),
                }));
            }
            // Servers are seldom built so that the callers of a function can be found.
            _ => {
                let symbol = frames.first().map(|first| first.symbol.as_str());
                let symbol = symbol.filter(|symbol| !symbol.is_empty());
                stack.extend(symbol.map(|symbol| self.names.number(symbol)));
            }
        }
        let mut key = (part, stack);
        if self.stacks.len() >= MAX_HELD && !self.stacks.contains_key(&key) {
            key.1.truncate(1);
        }
        *self.stacks.entry(key).or_default() += 1;
        *self.libraries.entry((part, library)).or_default() += 1;
    }

    /// The profile with at most `max_stacks` stacks. Rate and CPU time are left open.
    pub(super) fn profile(self, max_stacks: usize) -> CpuProfile {
        let Self { lost, kernel_symbols, names, stacks, libraries, .. } = self;
        // A kernel that tells its symbols has some code without: programs of BPF, say.
        let shown_as = |part: CostPart| match part {
            CostPart::Kernel if kernel_symbols => CostPart::KernelRest,
            part => part,
        };
        let (stacks, libraries) = (summed(stacks, shown_as), summed(libraries, shown_as));
        let mut parts: HashMap<CostPart, u64> = HashMap::new();
        for ((part, _), samples) in &libraries {
            *parts.entry(*part).or_default() += samples;
        }
        let parts = CostPart::ALL.into_iter().filter_map(|part| {
            parts.get(&part).map(|samples| PartSamples { part, samples: *samples })
        });
        let parts: Vec<PartSamples> = parts.collect();
        let name = |number: u32| names.all[number as usize].as_str();
        let mut libraries: Vec<LibrarySamples> = libraries
            .into_iter()
            .map(|((part, library), samples)| {
                let library = name(library).to_owned();
                LibrarySamples { part, library, samples }
            })
            .collect();
        libraries.sort_by(|one, other| {
            let order = other.samples.cmp(&one.samples);
            order.then_with(|| (one.part, &one.library).cmp(&(other.part, &other.library)))
        });
        // One for each part takes what is left.
        let others = libraries.split_off(libraries.len().min(MAX_LIBRARIES - CostPart::ALL.len()));
        for part in CostPart::ALL {
            let of_part =
                others.iter().filter(|other| other.part == part).map(|other| other.samples);
            let samples = of_part.sum();
            if samples > 0 {
                libraries.push(LibrarySamples { part, library: OTHERS.to_owned(), samples });
            }
        }
        let (names, stacks) = pruned(&names.all, stacks, max_stacks);
        CpuProfile {
            samples: parts.iter().map(|part| part.samples).sum(),
            lost,
            kernel_symbols,
            parts,
            libraries,
            names,
            stacks,
            ..CpuProfile::default()
        }
    }
}

/// Counts by part and something else, with the parts as `shown_as` has them.
fn summed<T: Eq + Hash>(
    counts: HashMap<(CostPart, T), u64>,
    shown_as: impl Fn(CostPart) -> CostPart,
) -> HashMap<(CostPart, T), u64> {
    let mut sums = HashMap::new();
    for ((part, what), samples) in counts {
        *sums.entry((shown_as(part), what)).or_default() += samples;
    }
    sums
}

/// The most frequent stacks, with the names that they need. Of the others only the part is kept.
fn pruned(
    all: &[String],
    stacks: HashMap<(CostPart, Vec<u32>), u64>,
    max_stacks: usize,
) -> (Vec<String>, Vec<StackSamples>) {
    let mut stacks: Vec<((CostPart, Vec<u32>), u64)> = stacks.into_iter().collect();
    let named = |frames: &[u32]| -> Vec<&str> {
        frames.iter().map(|number| all[*number as usize].as_str()).collect()
    };
    stacks.sort_by(|((part, frames), samples), ((other_part, other), other_samples)| {
        let order = other_samples.cmp(samples).then_with(|| part.cmp(other_part));
        order.then_with(|| named(frames).cmp(&named(other)))
    });
    let most = max_stacks.min(MAX_STACKS).max(CostPart::ALL.len()) - CostPart::ALL.len();
    let mut kept: Vec<StackSamples> = Vec::new();
    let mut cut: HashMap<CostPart, u64> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    for ((part, frames), samples) in stacks {
        let new = frames.iter().filter(|number| !numbers.contains_key(number)).count();
        if kept.len() >= most || names.len() + new > MAX_STACK_NAMES {
            *cut.entry(part).or_default() += samples;
            continue;
        }
        let frames = frames.into_iter().map(|number| {
            *numbers.entry(number).or_insert_with(|| {
                names.push(all[number as usize].clone());
                names.len() as u32 - 1
            })
        });
        kept.push(StackSamples { part, frames: frames.collect(), samples });
    }
    for part in CostPart::ALL {
        if let Some(samples) = cut.get(&part) {
            kept.push(StackSamples { part, frames: Vec::new(), samples: *samples });
        }
    }
    (names, kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;

    fn frame(is_kernel: bool, library: &str, symbol: &str) -> Frame {
        Frame { is_kernel, library: library.to_owned(), symbol: symbol.to_owned() }
    }

    fn tally() -> Tally {
        Tally::new(Parts::of(Some(ServerKind::Bind)))
    }

    #[test]
    fn samples_are_counted_by_part_library_and_stack() {
        let mut tally = tally();
        let network = [
            frame(true, "[kernel.kallsyms]", "tcp_sendmsg"),
            frame(true, "[kernel.kallsyms]", "do_syscall_64"),
            frame(false, "libc.so.6", "sendmsg"),
        ];
        tally.count(&network);
        tally.count(&network);
        tally.count(&[frame(false, "libdns-9.18.so", "dns_name_hash"), frame(false, "x", "y")]);
        tally.count(&[frame(false, "libcrypto.so.3", "")]);
        tally.count(&[]);
        tally.lose(3);
        let profile = tally.profile(MAX_STACKS);
        assert_eq!(profile.fault(), None);
        assert_eq!((profile.samples, profile.lost, profile.kernel_symbols), (5, 3, true));
        let counts: Vec<(CostPart, u64)> =
            profile.parts.iter().map(|part| (part.part, part.samples)).collect();
        use CostPart::{Crypto, DnsLogic, KernelNetwork, Rest};
        assert_eq!(counts, [(KernelNetwork, 2), (Crypto, 1), (DnsLogic, 1), (Rest, 1)]);
        let first = &profile.stacks[0];
        let names: Vec<&str> =
            first.frames.iter().map(|number| profile.names[*number as usize].as_str()).collect();
        assert_eq!((names, first.samples), (vec!["kernel", "do_syscall_64", "tcp_sendmsg"], 2));
        assert_eq!(profile.libraries[0].library, "kernel");
        let stacks: Vec<usize> = profile.stacks.iter().map(|stack| stack.frames.len()).collect();
        assert_eq!(stacks, [3, 1, 2, 1]);
    }

    #[test]
    fn a_kernel_that_hides_its_symbols_is_one_part() {
        let mut tally = tally();
        tally.count(&[frame(true, "", ""), frame(true, "", "")]);
        let profile = tally.profile(MAX_STACKS);
        assert!(!profile.kernel_symbols);
        assert_eq!(profile.of(CostPart::Kernel), 1);
        let mut tally = self::tally();
        tally.count(&[frame(true, "", "")]);
        tally.count(&[frame(true, "", "do_syscall_64")]);
        let profile = tally.profile(MAX_STACKS);
        assert_eq!(profile.fault(), None);
        assert_eq!((profile.of(CostPart::Kernel), profile.of(CostPart::KernelRest)), (0, 2));
    }

    #[test]
    fn there_are_bounds_and_all_samples_stay() {
        let mut tally = tally();
        for number in 0..60_000 {
            let deep = |depth: usize| frame(true, "k", &format!("f{number}_{depth}"));
            let frames: Vec<Frame> = (0..60).map(deep).collect();
            tally.count(&frames[..if number < 500 { 60 } else { 1 }]);
            tally.count(&[frame(false, &format!("lib{number}"), &"x".repeat(1_000))]);
        }
        assert!(tally.names.all.len() <= MAX_HELD_NAMES + 1);
        let profile = tally.profile(100);
        assert_eq!(profile.fault(), None);
        assert_eq!(profile.samples, 120_000);
        assert!(profile.stacks.len() <= 100, "{}", profile.stacks.len());
        assert!(profile.libraries.len() <= MAX_LIBRARIES);
    }
}
