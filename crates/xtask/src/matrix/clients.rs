//! dnsperf as a client of `dnslab serve`.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use dnslab_lab::{CertificateKind, certificate, ports};
use dnslab_wire::Transport;
use serde_json::Value;

use super::room::{Room, Window};
use super::table::{Cell, Counts, Row};
use crate::process::{Finished, Running, output, run, write};

/// In the table.
pub(super) const NAME: &str = "dnsperf";

/// Time for a server to listen, and for a client to end after its time.
const SLACK: Duration = Duration::from_secs(30);

/// The transports of dnsperf, with the words of its option `-m`.
const MODES: [(Transport, &str); 4] = [
    (Transport::Udp, "udp"),
    (Transport::Tcp, "tcp"),
    (Transport::Dot, "dot"),
    (Transport::Doh2, "doh"),
];

/// Starts `dnslab serve` with the default zone on a free port. The address is that of UDP and TCP.
///
/// # Errors
/// When it cannot be started, or does not listen.
pub(super) fn serve(room: &Room<'_>, further: &[String]) -> Result<(SocketAddr, Running)> {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let zone = output(
        Command::new(&room.dnslab.path).args(["make", "zone", "example.test", "--format", "bind"]),
        "is it a dnslab that runs on this machine?",
    )?;
    let file = room.folder.join("example.test.zone");
    write(&file, zone)?;
    let plain = SocketAddr::new(address, ports::free(address).context("no free ports")?.plain);
    let log = room.folder.join("serve.log");
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(&room.dnslab.path).current_dir(room.folder);
    command.args(["serve", "--listen", &plain.to_string(), "--zone"]).arg(&file).args(further);
    let mut running = Running::start(&mut command, &log)?;
    let wanted = 1 + further.iter().filter(|word| word.ends_with("-listen")).count();
    let is_listening = || {
        let said = fs::read_to_string(&log).unwrap_or_default();
        said.lines().filter(|line| line.starts_with("serving ")).count() >= wanted
    };
    running.wait_until(is_listening, SLACK, "dnslab serve does not listen")?;
    Ok((plain, running))
}

/// Has dnsperf ask over each of its transports.
///
/// # Errors
/// When dnsperf or dnslab cannot be started, or their output cannot be read.
pub(super) fn ask(window: Window, room: &Room<'_>) -> Result<Vec<Row>> {
    MODES.into_iter().map(|(transport, mode)| asked(transport, mode, window, room)).collect()
}

fn asked(transport: Transport, mode: &str, window: Window, room: &Room<'_>) -> Result<Row> {
    let Window { clients, outstanding } = window;
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    certificate::create(room.folder, address, CertificateKind::default())
        .context("cannot make a certificate")?;
    let free = ports::free(address).context("no free ports")?;
    let at = |port| SocketAddr::new(address, port).to_string();
    let counters = room.folder.join("counters.json");
    let mut further = vec!["--counters".to_owned(), counters.display().to_string()];
    for (option, value) in [
        ("--dot-listen", at(free.dot)),
        ("--doh2-listen", at(free.doh2)),
        ("--certificate", certificate::CERTIFICATE.to_owned()),
        ("--key", certificate::KEY.to_owned()),
    ] {
        further.extend([option.to_owned(), value]);
    }
    let (plain, serving) = serve(room, &further)?;
    let queries = room.folder.join("queries");
    let names: String =
        (1..=100).map(|number| format!("host-{number:06}.example.test A\n")).collect();
    write(&queries, names)?;
    let port = match transport {
        Transport::Dot => free.dot,
        Transport::Doh2 => free.doh2,
        _ => plain.port(),
    };
    let seconds = room.duration.as_secs().max(1);
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "dnsperf", "-s", "127.0.0.1", "-m", mode, "-t", "2"]);
    command.args(["-p", &port.to_string(), "-c", &clients.to_string(), "-l", &seconds.to_string()]);
    command.args(["-q", &(clients * outstanding).to_string(), "-d"]).arg(&queries);
    let finished = run(&mut command, room.folder, SLACK, room.stop)?;
    // At its end the server writes the exact sums.
    drop(serving);
    let text = fs::read_to_string(&counters).context("dnslab serve left no counters")?;
    let counters: Value = serde_json::from_str(&text).context("the counters are no JSON")?;
    let counted = counters["transports"][transport.name()]["received"].as_u64();
    let cell = match counts(&finished, counted) {
        Some(counts) => Cell::Asked(counts),
        None => Cell::Failed(finished.tail()),
    };
    let server = format!("embedded, asked by {NAME}");
    Ok(Row { server, transport, window: (clients, outstanding), loses: None, cell })
}

/// Reads `Queries sent: 5`, `Queries completed: 5 (100.00%)` and `Queries lost: 0 (0.00%)`.
fn counts(finished: &Finished, counted: Option<u64>) -> Option<Counts> {
    let count = |name: &str| -> Option<u64> {
        let line = finished.output.lines().find_map(|line| line.trim().strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let (sent, answered) = (count("Queries sent:")?, count("Queries completed:")?);
    Some(Counts { sent, answered, lost: count("Queries lost:")?, wrong: 0, counted })
}
