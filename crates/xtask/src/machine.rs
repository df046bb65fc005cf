//! The machine, and the time that its hypervisor took during measurements.

use std::fs;
use std::time::SystemTime;

use dnslab_lab::host;
use dnslab_record::Fact;

/// The facts that stand above the tables.
pub(crate) fn facts() -> Vec<Fact> {
    const SHOWN: [&str; 7] = [
        "CPU",
        "CPUs",
        "threads of one core",
        "kernel",
        "operating system",
        "virtualisation",
        "CPU frequency governor",
    ];
    host::facts().into_iter().filter(|fact| SHOWN.contains(&fact.name.as_str())).collect()
}

/// The section of a page of `evidence` that says where and when it was measured: now, on this machine. The site has these
/// tables of all pages in one (`site/evidence.rs`).
pub(crate) fn section(dnslab: &str) -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let day = now.split('T').next().unwrap_or_default();
    table(&facts(), dnslab, day)
}

fn table(facts: &[Fact], dnslab: &str, day: &str) -> String {
    let is_first = |fact: &&Fact| ["CPU", "kernel"].contains(&fact.name.as_str());
    let (first, others): (Vec<&Fact>, Vec<&Fact>) = facts.iter().partition(is_first);
    let pair = |fact: &&Fact| [fact.name.clone(), fact.value.clone()];
    let own = [["dnslab", dnslab], ["days", day]].map(|cells| cells.map(str::to_owned));
    let columns: Vec<[String; 2]> =
        first.iter().map(pair).chain(own).chain(others.iter().map(pair)).collect();
    let row = |cell: usize| -> String {
        columns.iter().map(|column| format!(" {} |", column[cell])).collect()
    };
    let (names, values, rule) = (row(0), row(1), " --- |".repeat(columns.len()));
    format!("## Machines and days\n\n|{names}\n|{rule}\n|{values}\n")
}

/// Time of one CPU since the machine started, in ticks of the kernel (proc_stat(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    total: u64,
    /// What the hypervisor gave to others while this machine wanted it.
    steal: u64,
}

impl CpuTime {
    /// CPU number `cpu`; zero if the kernel does not say.
    pub(crate) fn now(cpu: usize) -> Self {
        Self::read(&format!("cpu{cpu}"))
    }

    /// All CPUs together; zero if the kernel does not say.
    pub(crate) fn of_all() -> Self {
        Self::read("cpu")
    }

    /// `name` is the first word of a line in /proc/stat.
    fn read(name: &str) -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::parse(&text, name).unwrap_or_default()
    }

    fn parse(text: &str, name: &str) -> Option<Self> {
        let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(name))?;
        // user, nice, system, idle, iowait, irq, softirq, steal. Guests are in user already.
        let ticks: Option<Vec<u64>> =
            line.split_ascii_whitespace().skip(1).take(8).map(|word| word.parse().ok()).collect();
        let ticks = ticks?;
        Some(Self { total: ticks.iter().sum(), steal: *ticks.get(7)? })
    }

    /// Stolen share of the time since `earlier`, in [0, 1].
    pub(crate) fn stolen_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        if total == 0 {
            0.0
        } else {
            self.steal.saturating_sub(earlier.steal) as f64 / total as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share() {
        let before = CpuTime::parse("cpu  9 9\ncpu1 1 1 1 1 1 1 1 1 5 5\n", "cpu1").unwrap();
        let after = CpuTime::parse("cpu1 90 1 1 1 1 1 1 12 5 5", "cpu1").unwrap();
        assert_eq!(before, CpuTime { total: 8, steal: 1 });
        assert_eq!(after.stolen_since(before), 0.11);
        assert_eq!(after.stolen_since(after), 0.0);
        assert_eq!(CpuTime::parse("cpu1 1 2", "cpu1"), None);
        assert_eq!(CpuTime::parse("cpu10 1 1 1 1 1 1 1 1", "cpu1"), None);
    }

    #[test]
    fn the_section_has_a_column_for_each_fact() {
        let fact = |name: &str, value: &str| Fact { name: name.into(), value: value.into() };
        let facts = [fact("CPU", "Z80"), fact("CPUs", "2: 0-1"), fact("kernel", "Linux 6.1")];
        assert_eq!(
            table(&facts, "dnslab 0.1.0", "2026-11-23"),
            "## Machines and days\n\n| CPU | kernel | dnslab | days | CPUs |\n\
             | --- | --- | --- | --- | --- |\n| Z80 | Linux 6.1 | dnslab 0.1.0 | 2026-11-23 | 2: 0-1 |\n"
        );
    }

    #[test]
    fn this_machine_has_a_kernel() {
        assert!(facts().iter().any(|fact| fact.name == "kernel"));
    }
}
