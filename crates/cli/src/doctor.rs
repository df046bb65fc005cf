//! `dnslab doctor`: what would spoil a measurement on this machine, and whether its latencies can be trusted.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use dnslab_agent::Link;
use dnslab_experiment::{CalibrationCheck, calibrate};
use dnslab_lab::doctor::{examine, examine_path};
use dnslab_lab::way::way_to;
use dnslab_record::{Diagnosis, Severity};
use dnslab_settings::HostPlace;

use crate::arguments::{Doctor, Examined};
use crate::exit::{Exit, Failure};
use crate::session::guard;
use crate::signals;

pub(crate) fn doctor(arguments: &Doctor) -> Result<Exit, Failure> {
    if let Some(host) = &arguments.on {
        let (program, install) = (arguments.program.clone(), arguments.install);
        let link = Link::open(&HostPlace { program, install, ..host.clone() })?;
        link.examine(arguments.of == Examined::Load)?.iter().for_each(show);
        between(&link)?.iter().for_each(show);
        return Ok(Exit::Fine);
    }
    for finding in std::iter::once(kernel()).chain(examine(&guard())) {
        show(&finding);
    }
    if !arguments.calibrate {
        return Ok(Exit::Fine);
    }
    say!(
        "\ncalibration: what the responder was programmed to do must be measured; less than three minutes"
    );
    let folder = tempfile::Builder::new()
        .prefix("dnslab-calibration-")
        .tempdir()
        .context("cannot make a folder for the responder's files")?;
    leave_nothing(folder.path())?;
    let calibration = calibrate(&guard(), folder.path(), &mut show_check)?;
    if calibration.passed() {
        say!("calibration passed");
        return Ok(Exit::Fine);
    }
    say!("calibration failed: do not trust latencies measured on this machine as it is now");
    Ok(Exit::Invalid)
}

/// What lies between this machine and a host.
fn between(link: &Link) -> Result<Vec<Diagnosis>, Failure> {
    let there = link.address().and_then(way_to);
    let from = there.as_ref().and_then(|path| path.from.parse().ok());
    let back = from.map(|from| link.path_to(from)).transpose()?.flatten();
    Ok(match there.zip(back) {
        Some((there, back)) => examine_path(&there, &back),
        None => vec![Diagnosis {
            severity: Severity::Note,
            subject: "path".to_owned(),
            found: "unknown".to_owned(),
            why: "what lies between the hosts may be the limit".to_owned(),
            remedy: "install iproute2 on both; sudo there must keep SSH_CONNECTION".to_owned(),
        }],
    })
}

/// Ends the program with the folder removed as soon as somebody interrupts it. Its servers end with it.
fn leave_nothing(folder: &Path) -> Result<(), Failure> {
    let stop = signals::stop_flag().context("cannot listen to signals")?;
    let folder = folder.to_owned();
    let thread = thread::Builder::new().spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(50));
        }
        std::fs::remove_dir_all(&folder).ok();
        std::process::exit(Exit::Interrupted.code().into());
    });
    thread.context("cannot start a thread")?;
    Ok(())
}

/// Whether the load and the embedded server can wait here.
fn kernel() -> Diagnosis {
    let (why, remedy) = match dnslab_socket::check_kernel() {
        Ok(()) => (String::new(), String::new()),
        Err(error) => (
            error.to_string(),
            "take a newer kernel, or a container whose filter of system calls knows that one"
                .to_owned(),
        ),
    };
    let (severity, found) = match why.is_empty() {
        true => (Severity::Good, "it has epoll_pwait2"),
        false => (Severity::Spoils, "no load can be sent and no answer given here"),
    };
    Diagnosis { severity, subject: "kernel".to_owned(), found: found.to_owned(), why, remedy }
}

fn show(finding: &Diagnosis) {
    let mark = match finding.severity {
        Severity::Good => "good  ",
        Severity::Note => "note  ",
        Severity::Spoils => "SPOILS",
    };
    say!("{mark}  {}: {}", finding.subject, finding.found);
    if finding.severity != Severity::Good {
        say!("        why:    {}", finding.why);
        say!("        remedy: {}", finding.remedy);
    }
}

fn show_check(check: &CalibrationCheck) {
    let mark = if check.passed { "true" } else { "OFF " };
    let CalibrationCheck { name, expected, measured, allowed, .. } = check;
    say!("{mark}  {name}: {measured}, expected {expected}, allowed {allowed}");
}
