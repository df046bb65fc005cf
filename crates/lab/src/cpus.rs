//! Which CPUs the server gets and which the load.

use rustix::thread::CpuSet;

/// How the CPUs are divided in one experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// CPUs of the server, ascending.
    pub server: Vec<usize>,
    /// CPUs of the load, ascending.
    pub load: Vec<usize>,
}

/// Which CPUs are threads of one core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cores(Vec<Vec<usize>>);

impl Cores {
    /// From lists of CPUs, one per core. A CPU in none of them is a core of its own.
    #[must_use]
    pub fn new(mut cores: Vec<Vec<usize>>) -> Self {
        cores.iter_mut().for_each(|core| core.sort_unstable());
        cores.sort_unstable();
        cores.dedup();
        Self(cores)
    }

    /// As the kernel says; empty where the machine hides its cores, as some hypervisors do.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let lists = online().into_iter().filter_map(|cpu| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            parse_list(&std::fs::read_to_string(path).ok()?).ok()
        });
        Self::new(lists.collect())
    }

    /// CPUs that share a core with one of `cpus` and are not among them, ascending.
    #[must_use]
    pub fn siblings(&self, cpus: &[usize]) -> Vec<usize> {
        let is_met = |core: &&Vec<usize>| core.iter().any(|cpu| cpus.contains(cpu));
        let all = self.0.iter().filter(is_met).flatten().copied();
        let mut others: Vec<usize> = all.filter(|cpu| !cpus.contains(cpu)).collect();
        others.sort_unstable();
        others
    }

    /// `cpus` by core, ascending by the first CPU of each. If all are threads of one core, each CPU is a
    /// group of its own.
    #[must_use]
    pub fn apart(&self, cpus: &[usize]) -> Vec<Vec<usize>> {
        let mut left = cpus.to_vec();
        left.sort_unstable();
        let mut groups = Vec::new();
        while let Some(&first) = left.first() {
            let with = self.siblings(&[first]);
            let is_of_core = |cpu: &usize| *cpu == first || with.contains(cpu);
            let (core, rest) = left.into_iter().partition(is_of_core);
            groups.push(core);
            left = rest;
        }
        match groups.as_slice() {
            [core] => core.iter().map(|cpu| vec![*cpu]).collect(),
            _ => groups,
        }
    }
}

/// Why CPUs cannot be used as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    /// The text is no list of CPUs.
    #[error("`{0}` is no list of CPUs: write it as `0-3,6`")]
    Unreadable(String),
    /// The CPU is not there, or this process may not use it.
    #[error("CPU {cpu} is not among those that this process may use: {}", text(allowed))]
    NotAllowed {
        /// The CPU asked for.
        cpu: usize,
        /// Those that may be used.
        allowed: Vec<usize>,
    },
    /// Nothing is left for one side.
    #[error("no CPU is left for the {0}: name its CPUs too, or fewer for the other side")]
    NoneLeft(
        /// `server` or `load`.
        &'static str,
    ),
}

impl Split {
    /// True if server and load have a CPU in common: each then takes time from the other.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.server.iter().any(|cpu| self.load.contains(cpu))
    }

    /// CPUs of the load that share a core with one of the server's, ascending.
    #[must_use]
    pub fn on_shared_cores(&self, cores: &Cores) -> Vec<usize> {
        let siblings = cores.siblings(&self.server);
        self.load.iter().copied().filter(|cpu| siblings.contains(cpu)).collect()
    }

    /// One sentence for the provenance.
    #[must_use]
    pub fn describe(&self) -> String {
        let (server, load) = (text(&self.server), text(&self.load));
        if self.is_shared() {
            format!("server on CPUs {server}, load on CPUs {load}: shared, each slows the other")
        } else {
            format!("server on CPUs {server}, load on CPUs {load}")
        }
    }
}

/// The CPUs that this process may use, ascending (sched_getaffinity(2)). Where the kernel does not say, as
/// many as Rust assumes, from 0.
#[must_use]
pub fn allowed() -> Vec<usize> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect(),
        Err(_) => (0..std::thread::available_parallelism().map_or(1, Into::into)).collect(),
    }
}

/// The CPUs of this machine that are switched on, ascending. Where the kernel does not say, those that this
/// process may use.
#[must_use]
pub fn online() -> Vec<usize> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    list.and_then(|list| parse_list(&list).ok()).unwrap_or_else(allowed)
}

/// The CPUs that those of the other side leave: not the other threads of its cores either, if that leaves any.
fn rest(allowed: &[usize], cores: &Cores, other_side: &[usize]) -> Vec<usize> {
    let left: Vec<usize> =
        allowed.iter().copied().filter(|cpu| !other_side.contains(cpu)).collect();
    let siblings = cores.siblings(other_side);
    let apart: Vec<usize> = left.iter().copied().filter(|cpu| !siblings.contains(cpu)).collect();
    if apart.is_empty() { left } else { apart }
}

/// Divides `allowed`. By default the server gets the first half of the cores, rounded down, and the load the
/// rest. The threads of a single core are divided in the same way, and a single CPU is shared. A side that is
/// named gets what was asked. The other side gets the rest, without the other threads of the named cores if
/// that leaves any.
///
/// # Errors
/// When a named CPU is not allowed, or naming one side leaves nothing for the other.
pub fn split(
    allowed: &[usize],
    cores: &Cores,
    server: Option<&[usize]>,
    load: Option<&[usize]>,
) -> Result<Split, CpuError> {
    let (server, load) = match (server, load) {
        (Some(server), Some(load)) => (named(allowed, server)?, named(allowed, load)?),
        (Some(server), None) => {
            let server = named(allowed, server)?;
            let load = rest(allowed, cores, &server);
            (server, load)
        }
        (None, Some(load)) => {
            let load = named(allowed, load)?;
            (rest(allowed, cores, &load), load)
        }
        (None, None) if allowed.len() < 2 => (allowed.to_vec(), allowed.to_vec()),
        (None, None) => {
            let groups = cores.apart(allowed);
            let (first, second) = groups.split_at(groups.len() / 2);
            (joined(first), joined(second))
        }
    };
    if server.is_empty() {
        return Err(CpuError::NoneLeft("server"));
    }
    if load.is_empty() {
        return Err(CpuError::NoneLeft("load"));
    }
    Ok(Split { server, load })
}

/// All CPUs of some cores, ascending.
#[must_use]
pub fn joined(cores: &[Vec<usize>]) -> Vec<usize> {
    let mut cpus = cores.concat();
    cpus.sort_unstable();
    cpus
}

/// Reads a list of CPUs as the kernel writes it: `0-3,6`. Ascending, without doubles.
///
/// # Errors
/// When the text is something else.
pub fn parse_list(list: &str) -> Result<Vec<usize>, CpuError> {
    let unreadable = || CpuError::Unreadable(list.to_owned());
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| unreadable());
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last >= CpuSet::MAX_CPU {
            return Err(unreadable());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The list as text: `0-3,6`.
#[must_use]
pub fn text(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let written = parts.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    written.collect::<Vec<_>>().join(",")
}

/// Checks that each of `asked` is allowed. Ascending, without doubles.
fn named(allowed: &[usize], asked: &[usize]) -> Result<Vec<usize>, CpuError> {
    if let Some(&cpu) = asked.iter().find(|cpu| !allowed.contains(cpu)) {
        return Err(CpuError::NotAllowed { cpu, allowed: allowed.to_vec() });
    }
    let mut asked = asked.to_vec();
    asked.sort_unstable();
    asked.dedup();
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_on(
        cores: &[&str],
        allowed: &str,
        server: Option<&str>,
        load: Option<&str>,
        expected: &str,
    ) {
        let list = |text: &str| parse_list(text).unwrap();
        let (server, load) = (server.map(list), load.map(list));
        let cores = Cores::new(cores.iter().map(|core| list(core)).collect());
        let answer = match split(&list(allowed), &cores, server.as_deref(), load.as_deref()) {
            Ok(split) => match split.on_shared_cores(&cores).as_slice() {
                [] => split.describe(),
                shared => format!("{}; {} on cores of the server", split.describe(), text(shared)),
            },
            Err(error) => error.to_string(),
        };
        assert_eq!(answer, expected);
    }

    #[track_caller]
    fn check(allowed: &str, server: Option<&str>, load: Option<&str>, expected: &str) {
        check_on(&[], allowed, server, load, expected);
    }

    #[test]
    fn cpus_are_divided() {
        check("0-1", None, None, "server on CPUs 0, load on CPUs 1");
        check("2,5-6", None, None, "server on CPUs 2, load on CPUs 5-6");
        check("0-7", None, None, "server on CPUs 0-3, load on CPUs 4-7");
        let shared = "server on CPUs 3, load on CPUs 3: shared, each slows the other";
        check("3", None, None, shared);
        check("0-3", Some("3"), None, "server on CPUs 3, load on CPUs 0-2");
        check("0-3", None, Some("0,1"), "server on CPUs 2-3, load on CPUs 0-1");
        check("3", Some("3"), Some("3"), shared);
        let none = "no CPU is left for the load: name its CPUs too, or fewer for the other side";
        check("0-1", Some("0-1"), None, none);
        let other = "CPU 9 is not among those that this process may use: 0-1";
        check("0-1", Some("9"), None, other);
    }

    #[test]
    fn the_threads_of_a_core_stay_together() {
        // Each machine as cores, then what may be used of it.
        let without = ["0", "1", "2", "3"];
        check_on(&without, "0-3", None, None, "server on CPUs 0-1, load on CPUs 2-3");
        check_on(
            &["0"],
            "0",
            None,
            None,
            "server on CPUs 0, load on CPUs 0: shared, each slows the other",
        );
        let one = ["0-1"];
        let threads = "server on CPUs 0, load on CPUs 1; 1 on cores of the server";
        check_on(&one, "0-1", None, None, threads);
        // Two cores, numbered as on cloud machines, and as on most others.
        let pairs = ["0-1", "2-3"];
        check_on(&pairs, "0-3", None, None, "server on CPUs 0-1, load on CPUs 2-3");
        let halves = ["0,2", "1,3"];
        check_on(&halves, "0-3", None, None, "server on CPUs 0,2, load on CPUs 1,3");
        check_on(&halves, "0-2", None, None, "server on CPUs 0,2, load on CPUs 1");
        check_on(&halves, "0-1", None, None, "server on CPUs 0, load on CPUs 1");
        check_on(
            &halves,
            "1,3",
            None,
            None,
            "server on CPUs 1, load on CPUs 3; 3 on cores of the server",
        );
        let four = ["0,4", "1,5", "2,6", "3,7"];
        check_on(&four, "0-7", None, None, "server on CPUs 0-1,4-5, load on CPUs 2-3,6-7");
        // Named for one side: the other stays off its cores, if it can.
        check_on(&four, "0-7", Some("0"), None, "server on CPUs 0, load on CPUs 1-3,5-7");
        check_on(&four, "0-7", None, Some("3,6"), "server on CPUs 0-1,4-5, load on CPUs 3,6");
        check_on(
            &halves,
            "0-3",
            Some("0-1"),
            None,
            "server on CPUs 0-1, load on CPUs 2-3; 2-3 on cores of the server",
        );
        check_on(
            &halves,
            "0-3",
            Some("0"),
            Some("2"),
            "server on CPUs 0, load on CPUs 2; 2 on cores of the server",
        );
    }

    #[test]
    fn this_machine_has_cores() {
        let cores = Cores::of_this_machine();
        for core in &cores.0 {
            let (first, others) = core.split_first().unwrap();
            assert_eq!(cores.siblings(&[*first]), others);
        }
        assert_eq!(joined(&cores.apart(&online())), online());
    }

    #[test]
    fn lists_are_read_and_written() {
        for (read, written) in [("0", "0"), ("6,0-3", "0-3,6"), (" 1,1,2\n", "1-2")] {
            assert_eq!(text(&parse_list(read).unwrap()), written);
        }
        for bad in ["", "a", "3-1", "1,,2", "-1", "999999"] {
            assert_eq!(parse_list(bad), Err(CpuError::Unreadable(bad.to_owned())));
        }
    }

    #[test]
    fn this_process_may_use_some_cpu() {
        assert!(!allowed().is_empty());
    }
}
