//! The guard: a small process between dnslab and a server, so that nothing is left behind even when dnslab is
//! killed with SIGKILL.
//!
//! dnslab starts itself again as its hidden subcommand `guard` and writes a [`GuardSpec`] as the first line
//! of the guard's standard input. The guard leaves the terminal's session (Ctrl-C does not reach the server),
//! adopts every orphan below it (`PR_SET_CHILD_SUBREAPER`), makes the control groups, and starts the server
//! through the stage in `crate::launch`. Then it waits for the first of: the server's end, the line `stop
//! MILLISECONDS`, the end of its input (dnslab died), SIGTERM. It ends the server with SIGTERM, after the
//! grace time with SIGKILL, together with all descendants, and removes the groups. The guard is in no group
//! of the server: only the server is counted.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::Pid;

use crate::cgroup::Groups;
use crate::guarded::{GuardSpec, Report};
use crate::hosts::link;
use crate::monitoring::daemon::{self, DAEMON};
use crate::regular::open_regular;
use crate::watch::{become_guard, watch};
use crate::{asked, launch, sweep};

/// The whole life of the guard. The hidden subcommand passes the arguments after its name (none when dnslab
/// starts it) and returns what this returns.
///
/// Never call this from a process that does anything else: it changes the session and reaps all children.
#[must_use]
pub fn main(arguments: &[OsString]) -> ExitCode {
    match arguments {
        [] => supervise(),
        [stage, spec] if stage == launch::STAGE => launch::enter(spec),
        [stage, question] if stage == asked::ASK => asked::answer(question),
        [stage, spec] if stage == link::LINK => link::carry(spec),
        [stage, spec] if stage == DAEMON => daemon::enter(spec),
        [stage] if stage == sweep::SWEEP => sweep::sweep(),
        _ => {
            eprintln!("the guard is started by dnslab, not by hand");
            ExitCode::FAILURE
        }
    }
}

fn supervise() -> ExitCode {
    let mut line = String::new();
    let started = read_specification(&mut line).and_then(|spec| {
        let events = become_guard()?;
        let groups = Groups::create();
        let (server, reader) = spawn(&spec, &groups).inspect_err(|_| groups.remove())?;
        Ok((spec, server, reader, groups, events))
    });
    match started {
        Err(error) => {
            say(&Report::Failed { reason: error.to_string() });
            ExitCode::FAILURE
        }
        Ok((spec, server, reader, groups, events)) => {
            let pid = server.as_raw_nonzero().get().unsigned_abs();
            say(&Report::Started { pid, sources: groups.sources.clone() });
            let report = watch(server, &groups, &events);
            groups.remove();
            // Nobody holds the pipe any more, so this ends; what is in it belongs to the log.
            if let Some(reader) = reader {
                reader.join().ok();
            }
            if let Some(run_as) = spec.run_as() {
                run_as.take_back(&spec.directory);
            }
            say(&Report::Exited(report));
            ExitCode::SUCCESS
        }
    }
}

fn read_specification(line: &mut String) -> io::Result<GuardSpec> {
    io::stdin().read_line(line)?;
    Ok(serde_json::from_str(line)?)
}

/// Starts the stage that enters the groups and then becomes the server, and the thread that copies its
/// standard error, if that goes through a pipe.
fn spawn(spec: &GuardSpec, groups: &Groups) -> io::Result<(Pid, Option<JoinHandle<()>>)> {
    let open = |path: &Path| open_regular(path, OpenOptions::new().create(true).append(true));
    let log = open(&spec.log)?;
    let standard_error = spec.standard_error.as_deref().map(open).transpose()?;
    let run_as = spec.run_as();
    // The files are open: from here on the server's user may put others in their place.
    if let Some(run_as) = run_as {
        run_as.hand_over(&spec.directory)?;
    }
    let (standard_error, reader) = match standard_error {
        None => (Stdio::from(log.try_clone()?), None),
        Some(mut file) => {
            let (mut pipe, end) = io::pipe()?;
            // A full disk ends the reading, and then the writing, as it does for a server's own file.
            let copy = move || drop(io::copy(&mut pipe, &mut file));
            (Stdio::from(end), Some(thread::Builder::new().spawn(copy)?))
        }
    };
    let stage = launch::Stage {
        command: spec.command.iter().map(OsString::from).collect(),
        groups: groups.folders.clone(),
        cpus: spec.cpus.clone(),
        file_system: spec.file_system.clone(),
        run_as: run_as.cloned(),
        environment: spec.environment,
        guard: std::process::id(),
    };
    let child = stage
        .begin(std::env::args_os().skip(1))?
        .current_dir(&spec.directory)
        .stdout(log)
        .stderr(standard_error)
        .spawn()?;
    Ok((Pid::from_child(&child), reader))
}

/// When dnslab is gone nobody reads the line, which is no reason to stop.
fn say(report: &Report) {
    let line = serde_json::to_string(report).expect("a report has string keys only");
    let mut output = io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).ok();
}
