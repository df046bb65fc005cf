//! The servers on the other core: BIND, and `dnslab serve`.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use dnslab_lab::CertificateKind;
use dnslab_lab::certificate::{self, CertificateFiles};
use dnslab_lab::{Ports, ports};
use dnslab_wire::Transport;

use super::sample::{Load, Mode};
use super::zone::{ORIGIN, ZoneFiles};
use crate::arguments::Work;
use crate::process::{Place, Running, write};

/// Both servers use the loopback device: `named` listens only on addresses that a device has.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A running server, pinned to one CPU. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server {
    /// For messages.
    pub(crate) name: &'static str,
    running: Running,
    ports: Ports,
    certificate: CertificateFiles,
}

impl Server {
    pub(crate) fn load<'a>(
        &'a self,
        work: Work,
        transport: Transport,
        clients: u32,
        mode: Mode,
    ) -> Load<'a> {
        let authority = transport.is_encrypted().then_some(&self.certificate.authority);
        let target = target(&self.ports, transport);
        Load { authority, ..Load::new(work, transport, target, clients, mode) }
    }
    /// # Errors
    /// If it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.running.check().with_context(|| format!("{} does not run", self.name))
    }
}

/// Starts `named`, authoritative, with one worker thread, for UDP, TCP, DoT and DoH.
///
/// # Errors
/// When its files cannot be written, or it cannot be started: with the remedy.
pub(crate) fn bind(folder: &Path, zone: &ZoneFiles, cpu: usize) -> Result<Server> {
    let folder = own_folder(folder, "bind")?;
    let ports = free_ports()?;
    let certificate = certificate::create(&folder, ADDRESS, CertificateKind::default())?;
    let configuration = folder.join("named.conf");
    write(&configuration, named_conf(&folder, &ports, zone, &certificate))?;
    let place = Place { cpu, namespace: None };
    let mut command = place.command(&["named", "-f", "-n", "1", "-L"]);
    command.arg(folder.join("named.log")).arg("-c").arg(&configuration);
    let running = Running::start(&mut command, &folder.join("output"))
        .context("cannot start BIND (on Debian: apt-get install bind9)")?;
    Ok(Server { name: "BIND", running, ports, certificate })
}

/// Starts `dnslab serve` with one thread. `listens` are the transports beyond UDP and TCP, each with the
/// option for its address.
///
/// # Errors
/// When its files cannot be written, or it cannot be started.
pub(crate) fn responder(
    folder: &Path,
    zone: &ZoneFiles,
    cpu: usize,
    dnslab: &Path,
    listens: &[(Transport, String)],
) -> Result<Server> {
    let folder = own_folder(folder, "responder")?;
    let ports = free_ports()?;
    let certificate = certificate::create(&folder, ADDRESS, CertificateKind::default())?;
    let place = Place { cpu, namespace: None };
    let mut command = place.command(&[dnslab]);
    command.arg("serve").arg("--zone").arg(&zone.zone);
    command.arg("--certificate").arg(&certificate.certificate);
    command.arg("--key").arg(&certificate.key).args(["--threads", "1"]);
    command.args(["--listen", &target(&ports, Transport::Udp).to_string()]);
    for (transport, option) in listens {
        command.args([option, &target(&ports, *transport).to_string()]);
    }
    let running = Running::start(&mut command, &folder.join("output"))?;
    Ok(Server { name: "dnslab serve", running, ports, certificate })
}

fn target(ports: &Ports, transport: Transport) -> SocketAddr {
    SocketAddr::new(ADDRESS, ports.of(transport))
}

fn free_ports() -> Result<Ports> {
    ports::free(ADDRESS).context("no free ports on the loopback device")
}

fn own_folder(folder: &Path, name: &str) -> Result<PathBuf> {
    let own = folder.join(name);
    fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
    Ok(own)
}

/// An authoritative `named`, with limits on clients and streams above what is measured. Options: BIND 9
/// Administrator Reference Manual, chapter 8.
fn named_conf(
    folder: &Path,
    ports: &Ports,
    zone: &ZoneFiles,
    certificate: &CertificateFiles,
) -> String {
    format!(
        "tls versus {{ cert-file \"{certificate}\"; key-file \"{key}\"; }};
http versus {{
    endpoints {{ \"/dns-query\"; }};
    listener-clients 1000;
    streams-per-connection 1000;
}};
options {{
    directory \"{folder}\";
    pid-file \"named.pid\";
    session-keyfile \"session.key\";
    managed-keys-directory \".\";
    listen-on-v6 {{ none; }};
    listen-on port {plain} {{ {ADDRESS}; }};
    listen-on port {dot} tls versus {{ {ADDRESS}; }};
    listen-on port {doh2} tls versus http versus {{ {ADDRESS}; }};
    recursion no;
    dnssec-validation no;
    allow-transfer {{ none; }};
    notify no;
    minimal-responses yes;
    tcp-clients 1000;
    tcp-listen-queue 1024;
    querylog no;
    interface-interval 0;
}};
controls {{ }};
zone \"{ORIGIN}\" {{ type primary; file \"{zone}\"; }};
",
        plain = ports.plain,
        dot = ports.dot,
        doh2 = ports.doh2,
        certificate = certificate.certificate.display(),
        key = certificate.key.display(),
        folder = folder.display(),
        zone = zone.zone.display(),
    )
}
