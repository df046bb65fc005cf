//! The ideal server: an XDP program at the far end of a veth pair, in a network namespace.
//!
//! Client and reflector share one core: the veth device hands over a frame in the softirq of its sender. So
//! answered queries per second are queries per second of one core, everything included.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use anyhow::{Context as _, Result, bail};
use dnslab_wire::Transport;
use rustix::time::{ClockId, clock_gettime};

use super::sample::{Load, Mode};
use super::windows::KEPT_MS;
use crate::arguments::Work;
use crate::process::{output, write};
use crate::sys::BpfArray;

/// Prefix of our namespaces; the process id follows.
const NAMESPACE: &str = "dnslab-versus-";
/// Where iproute2 keeps named namespaces.
const NAMESPACES: &str = "/run/netns";
/// The client's address, in a network that exists in the namespace only.
const NEAR: &str = "10.53.0.1/24";
/// The reflector answers on the port of DNS (`bpf/reflector.c`).
const FAR: Ipv4Addr = Ipv4Addr::new(10, 53, 0, 2);
/// Locally administered.
const NEAR_MAC: &str = "02:00:00:00:00:01";
const FAR_MAC: &str = "02:00:00:00:00:02";

/// The program at the far end.
const REFLECTOR_SOURCE: &str = include_str!("bpf/reflector.c");
/// The program at the near end.
const PASS_SOURCE: &str = include_str!("bpf/pass.c");

const NEEDS_CLANG: &str = "on Debian: apt-get install clang linux-libc-dev";
const NEEDS_ETHTOOL: &str = "on Debian: apt-get install ethtool";
const NEEDS_ROOT: &str = "needs root, iproute2 with libbpf, and a kernel with veth and XDP";

/// A namespace with a running reflector. Dropping it removes both.
#[derive(Debug)]
pub(crate) struct Reflector {
    /// Holds both devices.
    namespace: Namespace,
    /// The map of the program, if it counts.
    counts: Option<BpfArray>,
}

/// Whether the reflector counts the queries of each millisecond, which costs it some nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    No,
    ByMillisecond,
}

#[derive(Debug)]
pub(crate) struct Counts {
    /// Queries by the millisecond modulo [`KEPT_MS`], since the program was loaded.
    by_slot: Vec<u64>,
    /// When they were read, milliseconds of `CLOCK_MONOTONIC`, the reflector's clock.
    at_ms: u64,
}

impl Reflector {
    /// Builds the programs in `folder`, makes the namespace with its two devices, and starts.
    ///
    /// # Errors
    /// When this process may not do that, or a program that it needs is missing: with the remedy.
    pub(crate) fn start(folder: &Path, counting: Counting) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            bail!("the reflector needs root (network namespace, XDP): run as root for this part");
        }
        let defines: &[&str] = match counting {
            Counting::No => &[],
            Counting::ByMillisecond => &["-DCOUNT_WINDOWS"],
        };
        let reflect = compile(folder, "reflector", REFLECTOR_SOURCE, defines)?;
        let pass = compile(folder, "pass", PASS_SOURCE, &[])?;
        remove_stale();
        let namespace = Namespace::create(format!("{NAMESPACE}{}", process::id()))?;
        namespace.ip("link add near type veth peer name far")?;
        namespace.ip(&format!("link set near address {NEAR_MAC}"))?;
        namespace.ip(&format!("link set far address {FAR_MAC}"))?;
        namespace.ip(&format!("address add {NEAR} dev near"))?;
        for device in ["lo", "near", "far"] {
            namespace.ip(&format!("link set {device} up"))?;
        }
        for (device, object) in [("near", &pass), ("far", &reflect)] {
            // `xdpdrv`: in the driver, or not at all. The generic form is another measurement.
            let object = object.display();
            namespace.ip(&format!("link set dev {device} xdpdrv obj {object} sec xdp"))?;
        }
        // Unlike network cards, a veth device does not coalesce received datagrams by itself.
        namespace.coalesce("near")?;
        // The far end has no IP stack to answer for its address.
        namespace.ip(&format!("neighbour add {FAR} lladdr {FAR_MAC} dev near nud permanent"))?;
        let counts = match counting {
            Counting::No => None,
            Counting::ByMillisecond => Some(namespace.counts()?),
        };
        Ok(Self { namespace, counts })
    }

    /// The namespace for its clients.
    fn namespace(&self) -> &str {
        &self.namespace.name
    }

    /// Over UDP, from the near end.
    pub(crate) fn load(&self, work: Work, clients: u32, mode: Mode) -> Load<'_> {
        let address = SocketAddr::from((FAR, 53));
        let load = Load::new(work, Transport::Udp, address, clients, mode);
        Load { namespace: Some(self.namespace()), ..load }
    }

    /// # Errors
    /// When it does not count.
    pub(crate) fn counts(&self) -> Result<Counts> {
        let array = self.counts.as_ref().context("this reflector does not count")?;
        let now = clock_gettime(ClockId::Monotonic);
        let at_ms = now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000;
        let by_slot = array.read(KEPT_MS).context("cannot read the reflector's counts")?;
        Ok(Counts { by_slot, at_ms })
    }
}

impl Counts {
    /// The queries of each millisecond from `earlier` until these counts were read.
    ///
    /// # Errors
    /// When more time went by than the reflector keeps.
    pub(crate) fn since(&self, earlier: &Self) -> Result<Vec<u64>> {
        let length = self.at_ms.saturating_sub(earlier.at_ms);
        if length >= u64::from(KEPT_MS) {
            bail!("{length} ms are longer than the {KEPT_MS} that are counted: shorten --seconds");
        }
        let slot = |ms: u64| (ms % u64::from(KEPT_MS)) as usize;
        let of_ms = |ms| self.by_slot[slot(ms)].saturating_sub(earlier.by_slot[slot(ms)]);
        Ok((earlier.at_ms..=self.at_ms).map(of_ms).collect())
    }
}

/// A named network namespace. Dropping it deletes it with everything in it.
#[derive(Debug)]
struct Namespace {
    /// Below [`NAMESPACES`].
    name: String,
}

impl Namespace {
    fn create(name: String) -> Result<Self> {
        output(Command::new("ip").args(["netns", "add", &name]), NEEDS_ROOT)?;
        Ok(Self { name })
    }

    /// `ip -n NAME WORDS`.
    fn ip(&self, words: &str) -> Result<String> {
        let mut command = Command::new("ip");
        command.args(["-n", &self.name]).args(words.split(' '));
        output(&mut command, NEEDS_ROOT)
    }

    /// Switches GRO on: coalescing of received datagrams.
    fn coalesce(&self, device: &str) -> Result<()> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, "ethtool", "-K", device, "gro", "on"]);
        output(&mut command, NEEDS_ETHTOOL).map(drop)
    }

    /// The map of the program at the far end.
    fn counts(&self) -> Result<BpfArray> {
        let text = self.ip("-json link show dev far")?;
        let links: serde_json::Value =
            serde_json::from_str(&text).context("cannot read what `ip -json link` says")?;
        let id = links.pointer("/0/xdp/prog/id").and_then(serde_json::Value::as_u64);
        let id = id.and_then(|id| u32::try_from(id).ok());
        let id = id.with_context(|| format!("no XDP program in what `ip` says: {text}"))?;
        BpfArray::of_program(id).context("cannot open the reflector's counts")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let deleted = output(Command::new("ip").args(["netns", "del", &self.name]), NEEDS_ROOT);
        if let Err(error) = deleted {
            eprintln!("warning: {error:#}");
        }
    }
}

/// Returns the path of the object file.
fn compile(folder: &Path, name: &str, source: &str, defines: &[&str]) -> Result<PathBuf> {
    let source_path = folder.join(name).with_extension("c");
    let object = folder.join(name).with_extension("o");
    write(&source_path, source)?;
    // Debian keeps `asm/` per architecture, where clang does not look when it compiles for BPF.
    let headers = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new("clang");
    // `-g` for BTF, which tells the loader what the map is.
    command.args(["-target", "bpf", "-O2", "-g", "-Wall", "-idirafter", &headers]);
    command.args(defines).arg("-c").arg(&source_path).arg("-o").arg(&object);
    output(&mut command, NEEDS_CLANG)?;
    Ok(object)
}

/// Deletes the namespaces of benchmarks that SIGKILL ended.
fn remove_stale() {
    for entry in fs::read_dir(NAMESPACES).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(NAMESPACE).and_then(|id| id.parse::<u32>().ok());
        if owner.is_some_and(|id| !Path::new("/proc").join(id.to_string()).exists()) {
            drop(Namespace { name });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Place;

    /// The kernel drops an answer with a wrong checksum, so queries of every length are tried. All answers
    /// must be counted.
    #[test]
    fn queries_of_every_length_are_answered_and_counted() {
        if !rustix::process::geteuid().is_root() {
            println!("not root: the reflector is not tried");
            return;
        }
        const LENGTHS: usize = 63;
        let folder = tempfile::tempdir().unwrap();
        let queries = folder.path().join("queries");
        let lines = (1..=LENGTHS).map(|length| format!("{} A\n", "a".repeat(length)));
        fs::write(&queries, lines.collect::<String>()).unwrap();
        let reflector = Reflector::start(folder.path(), Counting::ByMillisecond).unwrap();
        let before = reflector.counts().unwrap();
        let place = Place { cpu: 0, namespace: Some(reflector.namespace()) };
        let mut command = place.command(&["dnsperf", "-t", "1", "-n", "1", "-s"]);
        command.arg(FAR.to_string()).arg("-d").arg(&queries);
        let said = output(&mut command, "on Debian: apt-get install dnsperf").unwrap();
        assert!(said.contains(&format!("Queries completed:    {LENGTHS} (100.00%)")), "{said}");
        let counted = reflector.counts().unwrap().since(&before).unwrap();
        assert_eq!(counted.iter().sum::<u64>(), LENGTHS as u64);
        let namespace = Path::new(NAMESPACES).join(reflector.namespace());
        assert!(namespace.exists());
        drop(reflector);
        assert!(!namespace.exists());
    }

    #[test]
    fn counts_are_read_from_a_ring() {
        let ring = |at_ms: u64, slots: &[(usize, u64)]| {
            let mut by_slot = vec![7; KEPT_MS as usize];
            slots.iter().for_each(|(slot, count)| by_slot[*slot] = *count);
            Counts { by_slot, at_ms }
        };
        let end = u64::from(KEPT_MS) * 3;
        let earlier = ring(end - 2, &[]);
        let later = ring(end + 1, &[(KEPT_MS as usize - 1, 9), (0, 17)]);
        assert_eq!(later.since(&earlier).unwrap(), [0, 2, 10, 0]);
        let error = ring(end + u64::from(KEPT_MS), &[]).since(&earlier).unwrap_err();
        assert!(error.to_string().contains("--seconds"), "{error}");
    }
}
