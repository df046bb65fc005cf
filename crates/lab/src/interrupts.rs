//! What each CPU did, including interrupts, and how the kernel counts interrupts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::readings::tick_ns;

/// What one CPU has done since the machine started, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    /// Everything but idle, iowait and steal. Guests are in the user time already (proc_stat(5)).
    pub(crate) used_ns: u64,
    /// Hard and soft interrupts.
    pub(crate) irq_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes(BTreeMap<usize, CpuTime>);

impl CpuTimes {
    /// The rows of a `/proc/stat`: `cpu0 user nice system idle iowait irq softirq steal ...`.
    pub(crate) fn of(stat: &str) -> Self {
        let rows = stat.lines().filter_map(|line| {
            let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
            let cpu = words.next()?.parse().ok()?;
            let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            let sum = |places: &[usize]| -> u64 {
                let ticks = places.iter().filter_map(|place| ticks.get(*place));
                ticks.sum::<u64>() * tick_ns()
            };
            // The row of the sum begins with `cpu` alone, and its first word is a count.
            line.as_bytes().get(3).filter(|octet| octet.is_ascii_digit())?;
            Some((cpu, CpuTime { used_ns: sum(&[0, 1, 2, 5, 6]), irq_ns: sum(&[5, 6]) }))
        });
        Self(rows.collect())
    }

    /// Zeros if there is no such CPU.
    pub(crate) fn cpu(&self, cpu: usize) -> CpuTime {
        self.0.get(&cpu).copied().unwrap_or_default()
    }

    /// CPU numbers, ascending.
    pub(crate) fn all(&self) -> Vec<usize> {
        self.0.keys().copied().collect()
    }

    pub(crate) fn sum(&self, cpus: &[usize]) -> CpuTime {
        cpus.iter().map(|cpu| self.cpu(*cpu)).fold(CpuTime::default(), |sum, one| CpuTime {
            used_ns: sum.used_ns + one.used_ns,
            irq_ns: sum.irq_ns + one.irq_ns,
        })
    }
}

/// Whether this kernel keeps the time of interrupts apart from that of the threads that they interrupt
/// (CONFIG_IRQ_TIME_ACCOUNTING); `None` where nothing tells.
pub(crate) fn kept_apart() -> Option<bool> {
    static ANSWER: OnceLock<Option<bool>> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let files = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
        let configured = files.iter().find_map(|path| fs::read_to_string(path).ok());
        let pressure = |name: &str| Path::new("/proc/pressure").join(name).exists();
        match configured {
            Some(text) => Some(is_configured(&text)),
            None => by_pressure(&release, pressure("cpu"), pressure("irq")),
        }
    })
}

fn is_configured(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "CONFIG_IRQ_TIME_ACCOUNTING=y")
}

/// What follows from the files of `/proc/pressure`: since Linux 6.1 a kernel that keeps interrupts
/// apart and shows any pressure shows theirs (`psi_proc_init`, kernel/sched/psi.c).
fn by_pressure(release: &str, has_cpu: bool, has_irq: bool) -> Option<bool> {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next()?, numbers.next()?);
    match (has_irq, has_cpu && version >= (6, 1)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readings::MachineTime;

    /// Time used and time of interrupts of CPU 0 between two readings of `/proc/stat`, in ticks.
    #[track_caller]
    fn check(before: &str, after: &str, (used, irq): (u64, u64)) {
        let [before, after] = [before, after].map(CpuTimes::of);
        let growth = CpuTime {
            used_ns: after.cpu(0).used_ns - before.cpu(0).used_ns,
            irq_ns: after.cpu(0).irq_ns - before.cpu(0).irq_ns,
        };
        assert_eq!(growth, CpuTime { used_ns: used * tick_ns(), irq_ns: irq * tick_ns() });
    }

    /// `recorded-*` are from a machine whose kernel has no CONFIG_IRQ_TIME_ACCOUNTING, 2 s apart, while a
    /// server on CPU 0 was queried over loopback. `rhel-*` are made up from what RHEL's kernels document: the
    /// same work, with more of it in the column of soft interrupts and as much less in `system`.
    #[test]
    fn rows_of_both_kinds_of_kernel_are_read() {
        check(
            include_str!("interrupts/recorded-before.txt"),
            include_str!("interrupts/recorded-after.txt"),
            (203, 14),
        );
        check(
            include_str!("interrupts/rhel-before.txt"),
            include_str!("interrupts/rhel-after.txt"),
            (203, 34),
        );
        let text = include_str!("interrupts/recorded-after.txt");
        let (all, machine) = (CpuTimes::of(text), MachineTime::of(text, false));
        let sum = all.sum(&[0, 1]).used_ns;
        // The kernel rounds each column of each row down.
        assert!(sum.abs_diff(machine.processes_ns) <= 16 * tick_ns(), "{sum} and {machine:?}");
        assert_eq!(all.cpu(7), CpuTime::default());
        assert_eq!(CpuTimes::of(""), CpuTimes::default());
    }

    #[test]
    fn a_kernel_tells_what_it_keeps_apart() {
        assert!(is_configured("CONFIG_A=y\nCONFIG_IRQ_TIME_ACCOUNTING=y\n"));
        assert!(!is_configured("# CONFIG_IRQ_TIME_ACCOUNTING is not set\n"));
        assert!(!is_configured("CONFIG_HAVE_IRQ_TIME_ACCOUNTING=y\n"));
        assert_eq!(by_pressure("6.12.0-55.el10.x86_64", true, true), Some(true));
        assert_eq!(by_pressure("6.12.0-55.el10.x86_64", true, false), Some(false));
        assert_eq!(by_pressure("5.14.0-503.el9.x86_64", true, false), None);
        assert_eq!(by_pressure("6.12.0", false, false), None);
        assert_eq!(by_pressure("odd", true, false), None);
    }
}
