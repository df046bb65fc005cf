//! The line of hosts, and the links between neighbours.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use dnslab_record::LinkFacts;

use super::devices::{address, configure, veth, wait_for_carrier};
use super::host::{Host, guarded};
use super::ip::{ip, run_ip};
use super::link::{LINK, LinkSpec};
use super::link_settings::LinkSettings;
use super::netem::carries_netem;
use super::possible::possible;
use crate::error::{LabError, refused};
use crate::guarded::{GuardProgram, GuardSpec};
use crate::process::RunningProcess;

/// A line of hosts.
#[derive(Debug)]
pub struct Hosts {
    pub(super) hosts: Vec<Host>,
    pub(super) links: Vec<Link>,
    pub(super) folder: PathBuf,
}

/// The link between a host and the next one.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) settings: LinkSettings,
    pub(super) addresses: [IpAddr; 2],
    pub(super) carrier: &'static str,
    /// Carries the packets of a link in user space.
    pub(super) process: Option<RunningProcess>,
    /// Those that this process may use.
    pub(super) cpus: Vec<usize>,
    /// What it draws from, if it draws and that is known.
    pub(super) seed: Option<u64>,
}

struct LinkMaker<'a> {
    ipv6: bool,
    pub(super) seed: u64,
    /// CPUs for the processes of links in user space.
    pub(super) cpus: &'a [usize],
    pub(super) folder: &'a Path,
    guard: &'a GuardProgram,
}

impl Hosts {
    /// Makes a host of each name, and between neighbours a link with these settings (one fewer than names),
    /// with IPv6 or IPv4 addresses. Logs go into `folder`.
    ///
    /// `seed` decides what emulated links draw. Names of hosts that a killed dnslab left are removed. A link
    /// in user space runs before ordinary processes, so it is kept on `cpus` (all, if empty): those of the
    /// server under test must not be among them.
    ///
    /// # Errors
    /// When this user may not, or a tool of the system refuses; nothing is left then.
    pub fn make(
        names: &[&'static str],
        settings: &[LinkSettings],
        ipv6: bool,
        seed: u64,
        cpus: &[usize],
        folder: &Path,
        guard: &GuardProgram,
    ) -> Result<Self, LabError> {
        possible().map_err(|reason| LabError::Hosts { what: "make hosts".to_owned(), reason })?;
        sweep();
        std::fs::create_dir_all(folder).map_err(refused("create", folder))?;
        let hosts: Vec<Host> =
            names.iter().map(|name| Host::make(name, folder, guard)).collect::<Result<_, _>>()?;
        let mut made = Self { hosts, links: Vec::new(), folder: folder.to_owned() };
        let maker = LinkMaker { ipv6, seed, cpus, folder, guard };
        for (number, settings) in settings.iter().enumerate().take(names.len().saturating_sub(1)) {
            let pair = [&made.hosts[number], &made.hosts[number + 1]];
            made.links.push(Link::make(pair, number, settings, &maker)?);
        }
        Ok(made)
    }

    /// The network namespace of a host; `None` if there is no such host.
    #[must_use]
    pub fn network(&self, name: &str) -> Option<&Path> {
        self.host(name).map(|host| host.network.as_path())
    }

    /// The address of a host on the link towards the clients; for the first host, that on its only link.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<IpAddr> {
        let place = self.hosts.iter().position(|host| host.name == name)?;
        match place.checked_sub(1) {
            Some(link) => Some(self.links.get(link)?.addresses[1]),
            None => Some(self.links.first()?.addresses[0]),
        }
    }

    /// Every host's name and addresses, in the order of the line.
    #[must_use]
    pub fn addresses(&self) -> Vec<(&'static str, Vec<IpAddr>)> {
        let numbered = self.hosts.iter().enumerate();
        numbered.map(|(place, host)| (host.name, self.addresses_at(place))).collect()
    }

    /// The addresses of the host at a place of the line: on the link before it, and on the link after it.
    fn addresses_at(&self, place: usize) -> Vec<IpAddr> {
        let before = place.checked_sub(1).and_then(|link| self.links.get(link));
        let after = self.links.get(place);
        let ends = [before.map(|link| link.addresses[1]), after.map(|link| link.addresses[0])];
        ends.into_iter().flatten().collect()
    }

    /// The links, for the record.
    #[must_use]
    pub fn links(&self) -> Vec<LinkFacts> {
        let pairs = self.hosts.windows(2);
        self.links.iter().zip(pairs).map(|(link, pair)| link.facts(&pair[0], &pair[1])).collect()
    }

    /// Gives every host a name that `ip netns exec` knows until this is dropped.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn name(&self) -> Result<NamedHosts, LabError> {
        let mut named = NamedHosts { names: Vec::new() };
        for host in &self.hosts {
            let name = format!("{NAME_PREFIX}{}-{}", std::process::id(), host.name);
            let pid = host.holder.pid().to_string();
            run_ip(Command::new("ip").args(["netns", "attach", &name, &pid]))
                .map_err(|reason| LabError::Hosts { what: format!("name {name}"), reason })?;
            named.names.push((host.name, name));
        }
        Ok(named)
    }

    pub(super) fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

/// How the names of hosts begin; the process id of dnslab follows.
const NAME_PREFIX: &str = "dnslab-";

/// Hosts that have names, which go away when this is dropped.
#[derive(Debug)]
pub struct NamedHosts {
    /// The hosts' names here, and what `ip netns` calls them.
    pub names: Vec<(&'static str, String)>,
}

impl Drop for NamedHosts {
    fn drop(&mut self) {
        for (_, name) in &self.names {
            run_ip(Command::new("ip").args(["netns", "delete", name])).ok();
        }
    }
}

/// Removes names that a killed dnslab left behind. The namespaces themselves go away as soon as nothing has
/// them open, but such a name alone would keep one.
pub fn sweep() {
    let Ok(entries) = std::fs::read_dir("/run/netns") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(NAME_PREFIX)) else {
            continue;
        };
        let maker = rest.split('-').next().unwrap_or_default();
        if maker.parse::<u32>().is_ok() && !Path::new("/proc").join(maker).exists() {
            run_ip(Command::new("ip").args(["netns", "delete"]).arg(&name)).ok();
        }
    }
}

impl Link {
    /// Joins two neighbours, as the `number`-th link (from 0).
    fn make(
        pair: [&Host; 2],
        number: usize,
        settings: &LinkSettings,
        maker: &LinkMaker<'_>,
    ) -> Result<Self, LabError> {
        let addresses = [1, 2].map(|end| address(number, end, maker.ipv6));
        let seed = maker.seed.wrapping_add(number as u64 * 2);
        // Each device has the name of the host that it leads to.
        let devices = [pair[1].name, pair[0].name];
        let mut link = Self {
            settings: settings.clone(),
            addresses,
            carrier: "veth",
            process: None,
            cpus: Vec::new(),
            seed: None,
        };
        if settings.is_plain() {
            veth(pair, devices)?;
            link.configure(pair, devices)?;
        } else if let Some(draws) = carries_netem(pair, devices, settings, seed)? {
            link.carrier = "netem";
            link.seed = draws.seed;
            link.configure(pair, devices)?;
        } else {
            link.seed = Some(seed);
            link.carrier = "user space";
            for (host, device) in pair.into_iter().zip(devices) {
                ip(&host.network, &[format!("tuntap add dev {device} mode tun")], None)?;
            }
            link.configure(pair, devices)?;
            let ends = [0, 1].map(|end| (pair[end].network.clone(), devices[end].to_owned()));
            let spec = LinkSpec { ends, settings: settings.clone(), seed };
            link.process = Some(start_carrier(maker, &spec, number)?);
            link.cpus = maker.cpus.to_vec();
        }
        for (host, device) in pair.into_iter().zip(devices) {
            wait_for_carrier(host, device)?;
        }
        Ok(link)
    }

    fn facts(&self, from: &Host, to: &Host) -> LinkFacts {
        LinkFacts {
            from: from.name.to_owned(),
            to: to.name.to_owned(),
            delay_ns: self.settings.delay_ns,
            jitter_ns: self.settings.jitter_ns,
            loss: self.settings.loss,
            rate_bps: self.settings.rate_bps,
            carrier: self.carrier.to_owned(),
            cpus: self.cpus.clone(),
            seed: self.seed,
        }
    }

    fn configure(&self, pair: [&Host; 2], devices: [&str; 2]) -> Result<(), LabError> {
        configure(pair, devices, self.addresses)
    }
}

fn start_carrier(
    maker: &LinkMaker<'_>,
    spec: &LinkSpec,
    number: usize,
) -> Result<RunningProcess, LabError> {
    let LinkMaker { cpus, folder, guard, .. } = maker;
    let json = serde_json::to_string(spec).expect("a link's settings are plain values");
    let mut command = vec!["/proc/self/exe".to_owned()];
    command.extend(guard.arguments.iter().map(|word| word.to_string_lossy().into_owned()));
    command.extend([LINK.to_owned(), json]);
    let spec = guarded(command, folder, &link_log(number))?;
    RunningProcess::start(guard, &GuardSpec { cpus: cpus.to_vec(), ..spec })
}

/// Log of the `number`-th link (from 0).
pub(super) fn link_log(number: usize) -> String {
    format!("link-{}.log", number + 1)
}
