//! `dnslab monitor`: a Prometheus with exporters, to watch runs by.

use std::path::Path;

use anyhow::anyhow;
use dnslab_lab::monitoring::{
    Ended, MonitoringError, Part, Raised, SCRAPE_SECONDS, Stack, StackSettings, State,
};

use crate::arguments::monitoring_stack::{MonitorCommand, MonitorStack, MonitorUp};
use crate::exit::{Exit, Failure};
use crate::session::guard;

pub(crate) fn monitor(arguments: &MonitorStack) -> Result<Exit, Failure> {
    match &arguments.command {
        MonitorCommand::Up(arguments) => up(arguments),
        MonitorCommand::Down(arguments) => down(&arguments.folder),
        MonitorCommand::Status(arguments) => Ok(status(&arguments.folder)),
    }
}

fn up(arguments: &MonitorUp) -> Result<Exit, Failure> {
    let settings = StackSettings {
        prometheus: arguments.prometheus_port,
        bind_exporter: arguments.bind_exporter_port,
        node_exporter: arguments.node_exporter_port,
        metrics: arguments.metrics,
        bind_statistics: arguments.bind_statistics,
        bind_pid_file: arguments.bind_pid_file.clone(),
    };
    let ports = [settings.prometheus, settings.bind_exporter, settings.node_exporter];
    if ports[0] == ports[1] || ports[0] == ports[2] || ports[1] == ports[2] {
        return Err(Failure::bad_input(anyhow!(
            "the ports {ports:?} are not three different ones\n  hint:    choose them with {}",
            Part::ALL.map(Part::option).join(", ")
        )));
    }
    let Raised { stack, started, remarks } =
        Stack::up(&arguments.folder.folder, &settings, &guard()).map_err(failure)?;
    if started.is_empty() {
        say!("it is up already");
    }
    show(&stack);
    for remark in remarks {
        say!("note: {remark}");
    }
    if stack.settings != settings {
        say!(
            "it keeps the ports and addresses of its start; `{}` and then `up` change them",
            call("down", &arguments.folder.folder)
        );
    }
    let (metrics, port) = (stack.settings.metrics, stack.settings.prometheus);
    let push = format!("--remote-write http://127.0.0.1:{port}/api/v1/write");
    say!("\nnext, with the time stamps of the run itself:");
    say!("  dnslab run encryption {push}");
    say!("or fetched every {SCRAPE_SECONDS} seconds:");
    say!("  dnslab run encryption --metrics-listen {metrics}");
    let is_up = |(part, state): &(Part, State)| *part == Part::BindExporter && is_running(state);
    if stack.parts.iter().any(is_up) {
        let statistics = stack.settings.bind_statistics;
        say!("or on BIND, whose own counters the BIND exporter reads:");
        say!("  dnslab run encryption {push} \\");
        say!("    --set server.kind=bind --set repeat.alternate=runs \\");
        say!(
            "    --set 'server.extra=statistics-channels {{ inet {} port {}; }};'",
            statistics.ip(),
            statistics.port()
        );
    }
    say!("\nthen look at it:");
    say!("  dnslab dashboard --prometheus http://127.0.0.1:{port}");
    say!("\n`{}` stops it and keeps the data", call("down", &arguments.folder.folder));
    Ok(Exit::Fine)
}

fn down(folder: &Path) -> Result<Exit, Failure> {
    let ended = Stack::down(folder).map_err(failure)?;
    let ended = ended.ok_or_else(|| none_in(folder))?;
    if ended.is_empty() {
        say!("it is not up");
    }
    for (part, how) in ended {
        let how = match how {
            Ended::Asked => "stopped",
            Ended::Killed => "killed: it did not end by itself",
            Ended::Before => "had ended by itself",
        };
        say!("{:<14}{how}", part.title());
    }
    if let Some(stack) = Stack::status(folder) {
        say!(
            "the data stay in {}: `{}` serves them again; remove the folder if you need them no more",
            stack.data().display(),
            call("up", folder)
        );
    }
    Ok(Exit::Fine)
}

fn status(folder: &Path) -> Exit {
    match Stack::status(folder) {
        Some(stack) => show(&stack),
        None => say!("it is not up, and never was in {}", folder.display()),
    }
    Exit::Fine
}

fn none_in(folder: &Path) -> anyhow::Error {
    anyhow!(
        "there is no monitoring stack in {}\n  hint:    `dnslab monitor up` makes one; name another folder with --folder",
        folder.display()
    )
}

fn show(stack: &Stack) {
    for (part, state) in &stack.parts {
        let address = stack.settings.address(*part);
        let state = match state {
            State::Up(pid) => format!("http://{address}  (process {pid}){}", about(*part, stack)),
            State::Down => "down".to_owned(),
            State::NotInstalled => format!("not installed; {}", part.remedy()),
        };
        say!("{:<14}{state}", part.title());
    }
}

/// What to know of a part that runs.
fn about(part: Part, stack: &Stack) -> String {
    match part {
        Part::Prometheus => format!(", its data in {}", stack.data().display()),
        Part::BindExporter => format!(", asks the BIND at {}", stack.settings.bind_statistics),
        Part::NodeExporter => String::new(),
    }
}

fn is_running(state: &State) -> bool {
    matches!(state, State::Up(_))
}

/// A command line for this folder.
fn call(command: &str, folder: &Path) -> String {
    match folder.to_str() {
        Some("monitor") => format!("dnslab monitor {command}"),
        _ => format!("dnslab monitor {command} --folder {}", folder.display()),
    }
}

/// A folder of somebody else is wrong input.
fn failure(error: MonitoringError) -> Failure {
    match error {
        MonitoringError::Foreign(_) | MonitoringError::NotOwn { .. } => Failure::bad_input(error),
        _ => error.into(),
    }
}
