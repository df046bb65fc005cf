//! `dnslab load`: an experiment of one variant and one run on a server that runs already.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use dnslab_experiment::{ExperimentError, Here, SessionError, Source};
use dnslab_settings::{
    Document, Draft, Experiment, Host, HostAddress, OptionForm, Rounds, ServerChoice, VariantDraft,
};
use dnslab_traffic::TransportMix;
use dnslab_wire::Transport;

use crate::arguments::{KeyOptions, Load, Traffic};
use crate::exit::{Exit, Failure};
use crate::kept::{Place, needs_folder};
use crate::live::Wanted;
use crate::monitoring::Doors;
use crate::session;

pub(crate) fn load(arguments: Load) -> Result<Exit, Failure> {
    let (experiment, traffic) = (experiment(&arguments)?, &arguments.traffic);
    let doors = Doors::open(&traffic.monitor, traffic.output)?;
    apply(experiment, doors, traffic, None)
}

/// Carries out an experiment of the command line. A recording that is its capture moves into the results.
pub(crate) fn apply(
    experiment: Experiment,
    doors: Option<Doors>,
    traffic: &Traffic,
    recording: Option<&Path>,
) -> Result<Exit, Failure> {
    if experiment.repeat.profile {
        needs_folder(&traffic.results, "where the CPU time goes is in the report")?;
    }
    let place = Place::of(&traffic.results)?;
    let results = (place.folder(), recording);
    let mut session =
        session::begin(experiment, results, session::Gate::default(), OptionForm::Flag)?;
    let wanted = Wanted { watch: traffic.watch, output: traffic.output };
    session::carry_out(&mut session, doors, wanted, &place)
}

pub(crate) fn experiment(arguments: &Load) -> Result<Experiment, Failure> {
    let traffic = &arguments.traffic;
    let question = format!("What does {} answer under this load?", traffic.target);
    let document = ("load", Document::of_options("load"));
    let draft = draft(document, traffic, &arguments.options, question)?;
    let is_chosen = draft.variants[0].load.transport.is_written();
    let experiment = check(draft)?;
    if !is_chosen {
        check_port(&experiment, &traffic.target)?;
    }
    Ok(experiment)
}

/// The experiment of a draft that was made from arguments.
pub(crate) fn check(draft: Draft) -> Result<Experiment, Failure> {
    draft.check(&here()?).map_err(|problems| {
        let source_text = Source::of_arguments();
        session::failure(SessionError::from(ExperimentError::Invalid { problems, source_text }))
    })
}

/// The port of a target is that of `--transport`, and without it that of UDP and TCP. A population may have neither:
/// then silence would ask another port than the one that was named.
fn check_port(experiment: &Experiment, target: &str) -> Result<(), Failure> {
    let load = &experiment.variants[0].load;
    if !has_port(target) || !load.transports().all(Transport::is_encrypted) {
        return Ok(());
    }
    let usual = load.transport;
    Err(Failure::bad_input(anyhow!(
        "the port in `{target}` is for UDP and TCP, which no client of the population uses: choose the transport with \
         --transport {usual}, or leave the port out and give it as --{}-port",
        if usual.is_http() { "doh" } else { usual.name() }
    )))
}

/// True if a port stands behind the address or the name.
fn has_port(target: &str) -> bool {
    HostAddress::of_ip(target).map_or(target.contains(':'), |address| address.port.is_some())
}

/// This machine, for paths on the command line.
pub(crate) fn here() -> Result<Here, Failure> {
    Ok(Here::with_file_in(Path::new("")).context("there is no current folder")?)
}

/// The arguments that every command with a load has, as an experiment. A wrong target or a missing way to
/// verify the certificate is reported here; the check reports all other faults.
pub(crate) fn draft<const IS_SEARCH: bool>(
    (name, document): (&str, Document),
    traffic: &Traffic,
    options: &KeyOptions<IS_SEARCH>,
    question: String,
) -> Result<Draft, Failure> {
    let mut draft = draft_without_target((name, document), traffic, options, question);
    aim(&mut draft.variants[0], &traffic.target)?;
    Ok(draft)
}

/// A load as the arguments describe it, without a server.
pub(crate) fn draft_without_target<const IS_SEARCH: bool>(
    (name, mut document): (&str, Document),
    traffic: &Traffic,
    options: &KeyOptions<IS_SEARCH>,
    question: String,
) -> Draft {
    options.put_into(&mut document);
    traffic.set.iter().for_each(|set| document.set(set));
    let mut draft = document.draft();
    draft.top.name.set(name.to_owned());
    draft.top.question.set_default(question);
    draft.repeat.runs.set_default(Rounds::Count(1));
    draft
}

/// Directs the load of a variant to a server that runs already. A wrong target or a missing way to verify the
/// certificate is reported here.
pub(crate) fn aim(variant: &mut VariantDraft, target: &str) -> Result<(), Failure> {
    let (server, transport) = (&mut variant.server, variant.load.transport.value);
    let (address, host_name) = read_target(target).map_err(Failure::bad_input)?;
    if transport.is_encrypted() && server.authority.value.is_none() && !server.insecure.value {
        return Err(Failure::bad_input(anyhow!(
            "the certificate of {} cannot be verified: give its authority with --authority FILE, \
             or do not verify it with --insecure",
            target
        )));
    }
    server.kind.set(ServerChoice::External);
    server.address.set(HostAddress { port: None, ..address.clone() });
    let port = server.port_for(transport);
    if let Some(own) = address.port {
        if let Some(other) = port.value.filter(|other| port.is_written() && *other != own) {
            return Err(Failure::bad_input(anyhow!(
                "`{target}` is asked for {transport} at port {own}, and another option says {other}: leave one of them \
                 out"
            )));
        }
        port.set(Some(own));
    } else {
        port.set_default(Some(transport.default_port()));
    }
    let is_mixed =
        |mix: &TransportMix| mix.shares().iter().any(|(transport, _)| transport.is_encrypted());
    let may_be_encrypted = variant.load.mix.value.as_ref().is_some_and(is_mixed)
        || variant.load.population.value.is_some();
    if transport.is_encrypted() || may_be_encrypted {
        server.tls_name.set_default(host_name);
    }
    Ok(())
}

/// The address of a target, and its name if it was given by name.
fn read_target(target: &str) -> anyhow::Result<(HostAddress, Option<String>)> {
    if let Some(address) = HostAddress::of_ip(target) {
        return Ok((address, None));
    }
    let (name, port) = match target.rsplit_once(':') {
        Some((name, text)) => {
            let port = text.parse().ok().filter(|port| *port != 0);
            (name, Some(port.ok_or_else(|| anyhow!("`{text}` in `{target}` is no port"))?))
        }
        None => (target, None),
    };
    let address = HostAddress { host: Host::Name(name.to_owned()), link: None, port };
    Ok((address, Some(name.to_owned())))
}
