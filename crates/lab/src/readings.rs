//! Single readings from `/proc` that the sampler turns into series.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::{descendants, sockets};

/// CPU time and context switches of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadUse {
    pub(crate) cpu_ns: u64,
    /// Context switches, voluntary and not.
    pub(crate) switches: u64,
    /// Time for which it could have run but had no CPU, nanoseconds; 0 where the kernel does not say
    /// ([`tells_waits`]).
    pub(crate) waited_ns: u64,
}

/// Sums over all threads of a server that never go down: what an ended thread had used stays in.
///
/// Two figures make the CPU time. That of the threads counts nanoseconds but misses what a thread used
/// between its last reading and its end. That of the processes (`/proc/PID/stat`) counts ended threads too,
/// but in whole ticks. Neither is ever too large, so the larger one is nearer to the truth. Context switches
/// and waits have only the first: what a thread waited between its last reading and its end is missing.
#[derive(Debug, Default)]
pub(crate) struct ThreadTally {
    threads: Tally,
    processes: Tally,
}

impl ThreadTally {
    /// Reads all threads of `processes` and returns the sums so far.
    pub(crate) fn read(&mut self, processes: &[u32]) -> ThreadUse {
        let stats = processes.iter().filter_map(|&pid| {
            let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, ThreadUse { cpu_ns: ticks_ns(&text)?, ..ThreadUse::default() }))
        });
        let by_process = self.processes.update(stats.collect());
        // Second, so that with long-lived threads it is the larger one.
        let threads = processes.iter().flat_map(|pid| {
            let folder = format!("/proc/{pid}/task");
            let threads = descendants::numbers_in(&folder);
            threads
                .into_iter()
                .filter_map(move |tid| Some((tid, read_thread(&format!("{folder}/{tid}"))?)))
        });
        let by_thread = self.threads.update(threads.collect());
        ThreadUse { cpu_ns: by_thread.cpu_ns.max(by_process.cpu_ns), ..by_thread }
    }
}

impl ThreadTally {
    /// The CPU time of each thread that was alive at the last reading, nanoseconds.
    pub(crate) fn alive(&self) -> impl Iterator<Item = (u32, u64)> {
        self.threads.alive.iter().map(|(id, thread)| (*id, thread.cpu_ns))
    }
}

/// A sum over things that come and go, by their ids.
#[derive(Debug, Default)]
struct Tally {
    alive: HashMap<u32, ThreadUse>,
    ended: ThreadUse,
}

impl Tally {
    /// Takes the state of all that are alive and returns the sums so far.
    fn update(&mut self, now: HashMap<u32, ThreadUse>) -> ThreadUse {
        for (id, before) in &self.alive {
            // A smaller figure means that the id was given to a new one.
            let same = now.get(id).is_some_and(|after| {
                after.cpu_ns >= before.cpu_ns
                    && after.switches >= before.switches
                    && after.waited_ns >= before.waited_ns
            });
            if !same {
                self.ended.cpu_ns += before.cpu_ns;
                self.ended.switches += before.switches;
                self.ended.waited_ns += before.waited_ns;
            }
        }
        self.alive = now;
        self.alive.values().fold(self.ended, |sum, one| ThreadUse {
            cpu_ns: sum.cpu_ns + one.cpu_ns,
            switches: sum.switches + one.switches,
            waited_ns: sum.waited_ns + one.waited_ns,
        })
    }
}

/// `None` if the thread has ended.
fn read_thread(folder: &str) -> Option<ThreadUse> {
    let status = fs::read_to_string(format!("{folder}/status")).ok()?;
    // A kernel without CONFIG_SCHED_INFO has no schedstat; its stat counts in ticks of 10 ms.
    let (cpu_ns, waited_ns) = match fs::read_to_string(format!("{folder}/schedstat")) {
        Ok(text) => scheduled(&text)?,
        Err(_) => (ticks_ns(&fs::read_to_string(format!("{folder}/stat")).ok()?)?, 0),
    };
    Some(ThreadUse { cpu_ns, switches: switches(&status), waited_ns })
}

/// Time on a CPU and time waited for one of a `schedstat` file, nanoseconds.
fn scheduled(schedstat: &str) -> Option<(u64, u64)> {
    let mut figures = schedstat.split_ascii_whitespace().map(|figure| figure.parse().ok());
    Some((figures.next()??, figures.next()??))
}

/// Whether this kernel tells how long threads wait for a CPU (CONFIG_SCHED_INFO).
pub(crate) fn tells_waits() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| Path::new("/proc/self/schedstat").exists())
}

/// User and system time of a `stat` file (fields 14 and 15), nanoseconds.
pub(crate) fn ticks_ns(stat: &str) -> Option<u64> {
    let fields = descendants::stat_fields(stat)?;
    let (user, system): (u64, u64) = (fields.get(11)?.parse().ok()?, fields.get(12)?.parse().ok()?);
    Some((user + system) * tick_ns())
}

/// Both lines `voluntary_ctxt_switches` and `nonvoluntary_ctxt_switches` of a `status` file.
fn switches(status: &str) -> u64 {
    let counts = status.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.ends_with("voluntary_ctxt_switches").then(|| value.trim().parse::<u64>().ok())?
    });
    counts.sum()
}

/// Resident memory of `processes`, octets; pages that they share are counted in each.
pub(crate) fn resident_octets(processes: &[u32]) -> u64 {
    let page = rustix::param::page_size() as u64;
    let pages = processes.iter().filter_map(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
    });
    pages.sum::<u64>() * page
}

/// What the kernel has booked for all CPUs together since the machine started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MachineTime {
    /// CPU time of processes, nanoseconds.
    ///
    /// Interrupts and soft interrupts are counted where the kernel charges them to the thread or group that
    /// they interrupt (without CONFIG_IRQ_TIME_ACCOUNTING): without them this sum could be below that of all
    /// processes. Where the kernel keeps them apart, they are nobody's.
    pub(crate) processes_ns: u64,
    /// Time that the hypervisor kept from this machine, nanoseconds.
    pub(crate) steal_ns: u64,
}

impl MachineTime {
    /// Zeros where the kernel does not say.
    pub(crate) fn now() -> Self {
        Self::of(&fs::read_to_string("/proc/stat").unwrap_or_default(), false)
    }

    /// From the text of `/proc/stat`, of a kernel that keeps interrupts apart or not.
    pub(crate) fn of(text: &str, irq_apart: bool) -> Self {
        // `cpu user nice system idle iowait irq softirq steal ...` (proc_stat(5)).
        let words = text.lines().next().unwrap_or_default().split_ascii_whitespace().skip(1);
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let cpu_time = |place: usize| ticks.get(place).copied().unwrap_or(0) * tick_ns();
        let interrupts: &[usize] = if irq_apart { &[] } else { &[5, 6] };
        let processes_ns = [0, 1, 2].iter().chain(interrupts).map(|place| cpu_time(*place)).sum();
        Self { processes_ns, steal_ns: cpu_time(7) }
    }
}

/// Length of a tick of the kernel's counters (USER_HZ), nanoseconds.
pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// Datagrams dropped at a server's UDP sockets: a sum that never goes down.
#[derive(Debug)]
pub(crate) struct DropTally {
    /// The server's sockets and the drops last seen at each.
    sockets: HashMap<u64, u64>,
    /// When the sockets were last looked up.
    looked_up: Option<Instant>,
    /// How long the last reading took, and when it ended.
    last: Option<(Duration, Instant)>,
}

/// How often the sockets of the server are looked up again. They are opened at the start and stay, and a
/// process with hundreds of TCP connections has hundreds of links to read.
const LOOK_UP: Duration = Duration::from_secs(1);

/// After a reading the watch rests for this many times its length. With thousands of UDP sockets on the
/// machine the kernel takes milliseconds for the table, and the watch must not become a load itself.
const REST: u32 = 50;

impl DropTally {
    /// `sockets` are known already to be the server's.
    pub(crate) fn new(sockets: &HashSet<u64>) -> Self {
        let sockets = sockets.iter().map(|inode| (*inode, 0)).collect();
        Self { sockets, looked_up: None, last: None }
    }

    /// The drops so far at the sockets of `processes`, which share a network namespace.
    pub(crate) fn read(&mut self, processes: &[u32]) -> u64 {
        let began = Instant::now();
        let due = self.last.is_none_or(|(took, ended)| began - ended >= took * REST);
        if due {
            if self.looked_up.is_none_or(|at| began - at >= LOOK_UP) {
                self.looked_up = Some(began);
                for inode in processes.iter().flat_map(|pid| sockets::inodes_of(*pid)) {
                    self.sockets.entry(inode).or_default();
                }
            }
            let first = processes.first().map_or_else(|| "self".to_owned(), u32::to_string);
            for entry in sockets::recent_udp_table(&first).iter() {
                if let Some(drops) = self.sockets.get_mut(&entry.inode) {
                    *drops = entry.drops.max(*drops);
                }
            }
            self.last = Some((began.elapsed(), Instant::now()));
        }
        self.sockets.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn ended_threads_stay_in_the_sum() {
        let mut tally = Tally::default();
        let thread = |cpu_ns, switches| ThreadUse { cpu_ns, switches, waited_ns: 2 * switches };
        let steps = [
            (vec![(1, thread(10, 1)), (2, thread(20, 2))], thread(30, 3)),
            (vec![(1, thread(15, 2))], thread(35, 4)),
            // Thread 1 ended and its id was given to a new one.
            (vec![(1, thread(3, 1))], thread(38, 5)),
            (vec![], thread(38, 5)),
        ];
        for (now, expected) in steps {
            assert_eq!(tally.update(now.into_iter().collect()), expected);
        }
    }

    #[test]
    fn both_kinds_of_switches_count() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t5\n";
        assert_eq!(switches(status), 12);
        assert_eq!(switches(""), 0);
    }

    #[test]
    fn ticks_are_those_of_the_stat_file() {
        let stat = "1 (a b) S 0 1 1 0 -1 4194560 1 1 1 1 3 4 0 0 20 0 1 0 1 0 0";
        assert_eq!(ticks_ns(stat), Some(7 * tick_ns()));
    }

    #[test]
    fn interrupts_are_work_and_waiting_is_not() {
        let machine = MachineTime::of("cpu  1 10 100 7 7 1000 10000 3 1 0\ncpu0 9 9 9\n", false);
        assert_eq!(machine.processes_ns, 11_111 * tick_ns());
        assert_eq!(machine.steal_ns, 3 * tick_ns());
        let apart = MachineTime::of("cpu  1 10 100 7 7 1000 10000 3 1 0\n", true);
        assert_eq!(apart.processes_ns, 111 * tick_ns());
        assert_eq!(MachineTime::of("", false).processes_ns, 0);
    }

    #[test]
    fn drops_of_a_full_socket_are_counted() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut tally = DropTally::new(&HashSet::new());
        let before = tally.read(&[std::process::id()]);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        // Far more than any default buffer holds: with 2,048 octets of payload the kernel charges
        // at least 2,048 for each, and the largest common default is 25 MB.
        for _ in 0..20_000 {
            sender.send_to(&[0; 2048], receiver.local_addr().unwrap()).unwrap();
        }
        tally.last = None;
        std::thread::sleep(sockets::SHARED_FOR);
        assert!(tally.read(&[std::process::id()]) > before);
    }

    #[test]
    fn our_own_memory_is_seen() {
        assert!(resident_octets(&[std::process::id()]) > 100_000);
        assert_eq!(resident_octets(&[]), 0);
    }
}
