//! AdGuard's dnsproxy, a forwarder on Go's QUIC and HTTP, in front of `dnslab serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use dnslab_lab::{CertificateKind, certificate, ports};
use dnslab_wire::Transport;

use super::room::{Room, Window};
use super::table::Row;
use super::{clients, servers};
use crate::process::Running;

/// In the table.
pub(super) const NAME: &str = "dnsproxy";

/// Time for it to open its sockets.
const PATIENCE: Duration = Duration::from_secs(20);

/// Asks it over all transports.
///
/// # Errors
/// When it or dnslab cannot be started.
pub(super) fn ask(program: &Path, window: Window, room: &Room<'_>) -> Result<Vec<Row>> {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let (upstream, _serving) = clients::serve(room, &[])?;
    let certificate = certificate::create(room.folder, address, CertificateKind::default())
        .context("cannot make a certificate")?;
    let free = ports::free(address).context("no free ports")?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program).current_dir(room.folder);
    command.args(["--listen", "127.0.0.1", "--http3", "--ratelimit", "0", "--cache"]);
    for (option, port) in [
        ("--port", free.plain),
        ("--tls-port", free.dot),
        ("--https-port", free.doh2),
        ("--quic-port", free.doq),
    ] {
        command.args([option, &port.to_string()]);
    }
    command.args(["--tls-crt", certificate::CERTIFICATE, "--tls-key", certificate::KEY]);
    command.args(["--upstream", &upstream.to_string()]);
    let mut running = Running::start(&mut command, &room.folder.join("dnsproxy.log"))?;
    // It opens its listeners one after the other, DoQ last.
    let last = SocketAddr::new(address, free.doq);
    let is_open = || ports::check(Transport::Doq, last).is_err();
    running.wait_until(is_open, PATIENCE, &format!("dnsproxy has not opened {last}"))?;
    // HTTP/2 and HTTP/3 share one port, over TCP and UDP.
    let keys = format!(
        "[server]\nkind = \"external\"\naddress = \"127.0.0.1\"\nport = {}\ndot_port = {}\n\
         doh_port = {}\ndoq_port = {}\nauthority = {:?}\n",
        free.plain,
        free.dot,
        free.doh2,
        free.doq,
        certificate.authority.display().to_string(),
    );
    servers::rows(NAME, &keys, window, room)
}
