//! `dnslab load`: an experiment of one variant and one run on a server that runs already.

use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::{Context as _, anyhow};
use dnslab_experiment::check_text;
use dnslab_wire::Transport;

use crate::arguments::Load;
use crate::exit::{Exit, Failure};
use crate::run;

/// Applies the load and reports.
pub(crate) fn load(arguments: Load) -> Result<Exit, Failure> {
    let transport: Transport = arguments.transport.parse().map_err(Failure::bad_input)?;
    let (address, name) = resolve(&arguments.target, transport).map_err(Failure::bad_input)?;
    if transport.is_encrypted() && arguments.authority.is_none() && !arguments.insecure {
        return Err(Failure::bad_input(anyhow!(
            "the certificate of {} cannot be verified: give its authority with --authority FILE, \
             or switch verification off with --insecure",
            arguments.target
        )));
    }
    let text = experiment_text(&arguments, address, name.as_deref());
    let experiment = check_text(&text, &arguments.set).map_err(|problems| {
        let rendered = dnslab_experiment::render(problems.as_slice(), &text, "<arguments>");
        Failure::bad_input(anyhow!(rendered))
    })?;
    let session = run::begin(experiment, &arguments.results)?;
    run::carry_out(&session, &[])
}

/// The arguments in the form of an experiment file, which checks them and goes into the results.
fn experiment_text(arguments: &Load, address: SocketAddr, name: Option<&str>) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: String| {
        writeln!(text, "{key} = {value}").expect("writing to a string does not fail");
    };
    let quoted = |value: &str| toml_text(value);
    line("name", quoted("load"));
    line("question", quoted(&format!("What does {} answer under this load?", arguments.target)));
    line("repeat.runs", "1".to_owned());
    line("server.kind", quoted("external"));
    line("server.address", quoted(&address.ip().to_string()));
    let encrypted = arguments.transport.parse::<Transport>().is_ok_and(Transport::is_encrypted);
    let port = if encrypted { "server.dot_port" } else { "server.port" };
    line(port, address.port().to_string());
    line("load.transport", quoted(&arguments.transport.to_lowercase()));
    line("load.clients", arguments.clients.to_string());
    match (arguments.rate, arguments.outstanding) {
        (Some(rate), _) => line("load.rate", format!("{rate:?}")),
        (None, outstanding) => line("load.outstanding", outstanding.unwrap_or(100).to_string()),
    }
    line("load.duration", quoted(&arguments.duration));
    line("load.warm_up", quoted(&arguments.warm_up));
    line("load.timeout", quoted(&arguments.timeout));
    let path = |path: &std::path::Path| {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        quoted(&absolute.to_string_lossy())
    };
    let tls_name = arguments.tls_name.as_deref().or(name);
    let optional = [
        ("load.pace", arguments.pace.as_deref().map(quoted)),
        ("load.queries", arguments.queries.as_deref().map(path)),
        ("server.zone.name", arguments.zone.as_deref().map(quoted)),
        ("server.zone.records", arguments.records.map(|records| records.to_string())),
        ("expect.rcode", arguments.expect.as_deref().map(quoted)),
        ("server.authority", arguments.authority.as_deref().map(path)),
        ("server.insecure", arguments.insecure.then(|| "true".to_owned())),
        ("server.tls_name", tls_name.filter(|_| encrypted).map(quoted)),
        ("load.workers", arguments.workers.map(|workers| workers.to_string())),
        ("repeat.seed", arguments.seed.map(|seed| seed.to_string())),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            line(key, value);
        }
    }
    text.push_str("\n[[variant]]\nname = \"load\"\n");
    text
}

/// A TOML basic string.
fn toml_text(value: &str) -> String {
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
