//! Which CPUs the server gets and which the load.

use rustix::thread::CpuSet;

/// CPUs as told apart for one experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// CPUs of the server, ascending.
    pub server: Vec<usize>,
    /// CPUs of the load, ascending.
    pub load: Vec<usize>,
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

/// The CPUs that this process may use, ascending (sched_getaffinity(2)).
///
/// Where the kernel does not say, as many as Rust believes there are, from 0.
#[must_use]
pub fn allowed() -> Vec<usize> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect(),
        Err(_) => (0..std::thread::available_parallelism().map_or(1, Into::into)).collect(),
    }
}

/// Divides `allowed`: with more than one CPU the server gets the first half, rounded down, the load
/// the rest; a single one is shared. A side that is named gets what was asked, the other one the
/// rest.
///
/// # Errors
/// When a named CPU is not allowed, or naming one side leaves nothing for the other.
pub fn split(
    allowed: &[usize],
    server: Option<&[usize]>,
    load: Option<&[usize]>,
) -> Result<Split, CpuError> {
    let rest = |of: &[usize], side| {
        let left: Vec<usize> = allowed.iter().copied().filter(|cpu| !of.contains(cpu)).collect();
        if left.is_empty() { Err(CpuError::NoneLeft(side)) } else { Ok(left) }
    };
    let (server, load) = match (server, load) {
        (Some(server), Some(load)) => (named(allowed, server)?, named(allowed, load)?),
        (Some(server), None) => {
            let server = named(allowed, server)?;
            let load = rest(&server, "load")?;
            (server, load)
        }
        (None, Some(load)) => {
            let load = named(allowed, load)?;
            (rest(&load, "server")?, load)
        }
        (None, None) if allowed.len() < 2 => (allowed.to_vec(), allowed.to_vec()),
        (None, None) => {
            let (first, second) = allowed.split_at(allowed.len() / 2);
            (first.to_vec(), second.to_vec())
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
    let parts =
        parts.iter().map(
            |(first, last)| {
                if first == last { first.to_string() } else { format!("{first}-{last}") }
            },
        );
    parts.collect::<Vec<_>>().join(",")
}

/// Checks that every one of `asked` is allowed; ascending, without doubles.
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
    fn check(allowed: &str, server: Option<&str>, load: Option<&str>, expected: &str) {
        let list = |text: &str| parse_list(text).unwrap();
        let (server, load) = (server.map(list), load.map(list));
        let answer = match split(&list(allowed), server.as_deref(), load.as_deref()) {
            Ok(split) => split.describe(),
            Err(error) => error.to_string(),
        };
        assert_eq!(answer, expected);
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
