//! `dnslab load`: an experiment of one variant and one run on a server that runs already.

use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use dnslab_experiment::{Experiment, OptionForm, check_text, port_key};
use dnslab_wire::Transport;

use crate::arguments::{Load, Traffic};
use crate::exit::{Exit, Failure};
use crate::run;

/// Applies the load and reports.
pub(crate) fn load(arguments: Load) -> Result<Exit, Failure> {
    let traffic = &arguments.traffic;
    let mut session = run::begin(experiment(&arguments)?, &traffic.results, &[], OptionForm::Flag)?;
    run::carry_out(&mut session, traffic.output)
}

/// The experiment that the arguments describe.
pub(crate) fn experiment(arguments: &Load) -> Result<Experiment, Failure> {
    let text = experiment_text(arguments)?;
    check_text(&text, &arguments.traffic.set).map_err(|problems| {
        let rendered = dnslab_experiment::render(problems.as_slice(), &text, "<arguments>");
        Failure::bad_input(anyhow!(rendered))
    })
}

/// The arguments in the form of an experiment file, which checks them and goes into the results.
fn experiment_text(arguments: &Load) -> Result<String, Failure> {
    let traffic = &arguments.traffic;
    let question = format!("What does {} answer under this load?", traffic.target);
    let mut lines = traffic_lines(traffic, "load", &question)?;
    match (&arguments.rate, arguments.outstanding) {
        (Some(rate), _) => lines.add("load.rate", toml_text(rate)),
        (None, outstanding) => {
            lines.add("load.outstanding", outstanding.unwrap_or(1).to_string());
        }
    }
    lines.add("load.duration", toml_text(&arguments.duration));
    lines.add_if("load.pace", arguments.pace.as_deref().map(toml_text));
    Ok(lines.of_one_variant("load"))
}

/// Lines of an experiment file.
#[derive(Debug, Default)]
pub(crate) struct Lines(String);

impl Lines {
    /// Adds `key = value`; the value is TOML already.
    pub(crate) fn add(&mut self, key: &str, value: String) {
        writeln!(self.0, "{key} = {value}").expect("writing to a string does not fail");
    }

    /// Adds the key if it has a value.
    pub(crate) fn add_if(&mut self, key: &str, value: Option<String>) {
        if let Some(value) = value {
            self.add(key, value);
        }
    }

    /// The text without a variant.
    pub(crate) fn without_variant(self) -> String {
        self.0
    }

    /// The text of an experiment with one variant of this name.
    pub(crate) fn of_one_variant(self, name: &str) -> String {
        format!("{}\n[[variant]]\nname = {}\n", self.0, toml_text(name))
    }
}

/// The lines that every command with a load has in common. What is wrong with the target or the
/// certificate is said here; all other values are for the check of the experiment.
pub(crate) fn traffic_lines(
    traffic: &Traffic,
    name: &str,
    question: &str,
) -> Result<Lines, Failure> {
    let transport: Transport = traffic.transport.parse().map_err(Failure::bad_input)?;
    let (address, host) = resolve(&traffic.target, transport).map_err(Failure::bad_input)?;
    let encrypted = transport.is_encrypted();
    if encrypted && traffic.authority.is_none() && !traffic.insecure {
        return Err(Failure::bad_input(anyhow!(
            "the certificate of {} cannot be verified: give its authority with --authority FILE, \
             or do not verify it with --insecure",
            traffic.target
        )));
    }
    let mut lines = Lines::default();
    lines.add("name", toml_text(name));
    lines.add("question", toml_text(question));
    lines.add("repeat.runs", "1".to_owned());
    lines.add("server.kind", toml_text("external"));
    lines.add("server.address", toml_text(&address.ip().to_string()));
    lines.add(port_key(transport), address.port().to_string());
    lines.add("load.transport", toml_text(&traffic.transport.to_lowercase()));
    lines.add("load.clients", traffic.clients.to_string());
    lines.add("load.warm_up", toml_text(&traffic.warm_up));
    lines.add("load.timeout", toml_text(&traffic.timeout));
    let tls_name = traffic.tls_name.as_deref().or(host.as_deref());
    let optional = [
        ("load.queries", traffic.queries.as_deref().map(toml_path)),
        ("server.zone.name", traffic.zone.as_deref().map(toml_text)),
        ("server.zone.records", traffic.records.map(|records| records.to_string())),
        ("expect.rcode", traffic.expect.as_deref().map(toml_text)),
        ("server.authority", traffic.authority.as_deref().map(toml_path)),
        ("server.insecure", traffic.insecure.then(|| "true".to_owned())),
        ("server.tls_name", tls_name.filter(|_| encrypted).map(toml_text)),
        ("load.workers", traffic.workers.map(|workers| workers.to_string())),
        ("repeat.seed", traffic.seed.map(|seed| seed.to_string())),
    ];
    for (key, value) in optional {
        lines.add_if(key, value);
    }
    traffic.client.add_to(&mut lines);
    Ok(lines)
}

/// A path as a TOML string, from the root.
pub(crate) fn toml_path(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    toml_text(&absolute.to_string_lossy())
}

/// A TOML basic string.
pub(crate) fn toml_text(value: &str) -> String {
    let mut text = String::from("\"");
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            control if control.is_control() => {
                write!(text, "\\u{:04X}", u32::from(control)).expect("a string takes all");
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// The address that a target stands for, and its name if it has one.
fn resolve(target: &str, transport: Transport) -> anyhow::Result<(SocketAddr, Option<String>)> {
    if let Ok(address) = target.parse::<SocketAddr>() {
        return Ok((address, None));
    }
    let port = transport.default_port();
    if let Ok(address) = target.trim_matches(['[', ']']).parse() {
        return Ok((SocketAddr::new(address, port), None));
    }
    let (name, port) = match target.rsplit_once(':') {
        Some((name, text)) => {
            let port =
                text.parse().with_context(|| format!("`{text}` in `{target}` is no port"))?;
            (name, port)
        }
        None => (target, port),
    };
    let found = (name, port)
        .to_socket_addrs()
        .with_context(|| format!("cannot find the address of `{name}`"))?
        .next();
    let address = found.ok_or_else(|| anyhow!("`{name}` has no address"))?;
    Ok((address, Some(name.to_owned())))
}
