//! `dnslab profile`: the population behind a capture.

use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use dnslab_capture::{CaptureOptions, ServerAddresses};
use dnslab_experiment::CaptureProfile;
use dnslab_lab::dnstap_socket::{DnstapAddress, ReceiveUntil};
use dnslab_record::visible;
use dnslab_wire::units::{duration, number, share};

use crate::arguments::Profile;
use crate::exit::{Exit, Failure};
use crate::record::Live;
use crate::replay::live_address;
use crate::{make, signals};

pub(crate) fn profile(arguments: &Profile) -> Result<Exit, Failure> {
    let Profile { capture, output, .. } = arguments;
    let options = options(arguments);
    let found = match live_address(capture)? {
        Some(address) => find_live(arguments, &address, options)?,
        None if arguments.duration.is_some() => {
            return Err(Failure::bad_input(anyhow!(
                "--duration is for a socket: {} is read to its end",
                capture.display()
            )));
        }
        None => CaptureProfile::find(capture, &options).map_err(Failure::bad_input)?,
    };
    let said = said(&found);
    for line in found.profile.population.summary().iter().chain([&String::new()]).chain(&said) {
        tell!("{}", visible(line));
    }
    // What is said here stays with the file. Lines of others cannot end a comment.
    let comments: String = said.iter().map(|line| format!("# {}\n", visible(line))).collect();
    let text = format!("{comments}\n{}", found.profile.population.to_commented_toml());
    make::write_to(output, |output| output.write_all(text.as_bytes()))
}

/// Which queries count. Ports that servers are named with are read, too.
fn options(arguments: &Profile) -> CaptureOptions {
    let servers = arguments.capture_server.clone();
    let mut ports = arguments.capture_ports.0.clone();
    ports.extend(servers.iter().flat_map(ServerAddresses::ports));
    CaptureOptions {
        ports,
        servers,
        dnstap_kinds: arguments.dnstap_messages.clone(),
        dnstap_source: arguments.dnstap_source,
        // Clients of a population ask again by themselves.
        skips_repeats: true,
    }
}

/// The population of what comes to a socket.
fn find_live(
    arguments: &Profile,
    address: &DnstapAddress,
    options: CaptureOptions,
) -> Result<CaptureProfile, Failure> {
    let stop = signals::stop_flag().context("cannot listen to signals")?;
    let live = Live::open(address, &arguments.access, false)?;
    // A file without a name is gone with the process, however that ends.
    let recording = tempfile::tempfile().context("cannot make a temporary file")?;
    let file = recording.try_clone().context("cannot open the temporary file")?;
    let until = ReceiveUntil { duration: arguments.duration, queries: None };
    let received = live.receive(file, (until, options.clone()), &stop)?;
    live.conclude(&received, "a temporary file")?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", recording.as_raw_fd()));
    CaptureProfile::find(&path, &options).map_err(Failure::bad_input)
}

/// What to know about the profile, in lines.
fn said(found: &CaptureProfile) -> Vec<String> {
    let profile = &found.profile;
    let mut lines = vec![format!(
        "found from {} of {} in {}; of all queries {} were repetitions, which are left out",
        number::counted(profile.queries, "query", "queries"),
        number::counted(profile.clients_seen, "client", "clients"),
        duration::rounded(profile.length.as_nanos() as f64),
        share::rounded(profile.retransmitted_share),
    )];
    lines.extend(profile.notes.iter().map(|note| format!("note: {note}")));
    if !found.left_out.is_empty() {
        lines.push(format!("note: not read: {}", found.left_out));
    }
    lines.extend(found.notes.iter().map(|note| format!("note: {note}")));
    lines.extend(
        found.cut.iter().map(|cut| format!("note: the capture was not read to its end: {cut}")),
    );
    lines
}
