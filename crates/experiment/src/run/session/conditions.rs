//! What must be the same for all runs of an experiment, and what has changed when it is resumed.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use dnslab_analysis::{FactChange, changed_facts};
use dnslab_lab::{GuardProgram, OwnConfiguration, title};
use dnslab_record::{Fact, Session};
use dnslab_settings::{
    ChainServer, Experiment, HostsChoice, PopulationSource, ServerKind, Subnets, Variant,
};
use sha2::{Digest as _, Sha256};

use crate::installed;
use crate::run::error::QueriesError;
use crate::run::manifests;

/// Facts of the host that a figure depends on and that do not change by themselves. Other facts of
/// [`dnslab_lab::host::facts`] change (steal since the start, limits of the shell) or depend on the machine's
/// start.
const HOST_FACTS: [&str; 4] = ["CPU", "CPUs", "kernel", "memory"];

/// One thing that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// For example `kernel`.
    pub name: String,
    /// The value when the experiment began.
    pub then: String,
    /// The value now.
    pub now: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, then, now } = self;
        write!(formatter, "  {name}: it was `{then}`, now it is `{now}`")
    }
}

/// The query files, zone files, captures, population files, files of client subnets and hierarchies of all variants, each once, with their
/// digests. Key files are left out: not even their digest is kept.
///
/// # Errors
/// When a file cannot be read.
pub(super) fn inputs(
    experiment: &Experiment,
    guard: &GuardProgram,
) -> Result<Vec<Fact>, QueriesError> {
    let mut facts: Vec<Fact> = Vec::new();
    for variant in &experiment.variants {
        let own = variant.own_configuration().filter(|_| variant.server.host.is_none());
        if let Some((kind, path)) = own {
            let name = format!("configuration {}", path.display());
            if facts.iter().all(|fact| fact.name != name) {
                let own = OwnConfiguration::read(kind, path, variant.resolves())?;
                let value = digest_of(Sha256::new_with_prefix(own.whole()));
                facts.push(Fact { name, value });
                for file in own.files() {
                    note(&mut facts, "file of a configuration", &file.from)?;
                }
            }
        }
        if let (Some(path), Some(plan)) =
            (&variant.server.manifest, manifests::plan(variant).ok().flatten())
        {
            let name = format!("manifest {}", path.display());
            if facts.iter().all(|fact| fact.name != name) {
                let value = digest_of(Sha256::new_with_prefix(plan.manifest));
                facts.push(Fact { name, value });
            }
        }
        if let Some(path) = &variant.load.queries {
            note(&mut facts, "query file", path)?;
        }
        if let Some(path) = &variant.zone.file {
            note(&mut facts, "zone file", path)?;
        }
        if let Some(path) = &variant.server.policy_zone {
            note(&mut facts, "policy zone", path)?;
        }
        if let Some(path) = variant.load.mode.capture() {
            note(&mut facts, "capture", path)?;
        }
        if let Some(PopulationSource::File(path)) = variant.load.mode.population() {
            note(&mut facts, "population file", path)?;
        }
        if let Some(Subnets::File(path)) = &variant.load.client_subnets {
            note(&mut facts, "client subnets", path)?;
        }
        if let Some(path) = &variant.upstream.hierarchy {
            note(&mut facts, "hierarchy", path)?;
        }
    }
    facts.extend(servers(experiment, guard));
    facts.extend(hosts(experiment));
    Ok(facts)
}

/// The version and the program of every started server, each once: another one may answer at another rate.
fn servers(experiment: &Experiment, guard: &GuardProgram) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    // What is installed on other hosts is a fact of these.
    for variant in &experiment.variants {
        let all = variant.servers().into_iter();
        for server in all.filter(|server| variant.host_of(server.role).is_none()) {
            // dnslab's own version is compared anyway.
            let Some(name) =
                installed_name(&server).filter(|_| server.kind != Some(ServerKind::Embedded))
            else {
                continue;
            };
            let fact = Fact { name, value: installed(&server, guard) };
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        }
    }
    facts
}

/// The name of a server with its program or its root, if it has its own; `None` for one that runs already.
pub(super) fn installed_name(server: &ChainServer<'_>) -> Option<String> {
    let from = server.root.or(server.binary).map(|path| format!(" ({})", path.display()));
    Some(format!("{}{}", title(server.kind?), from.unwrap_or_default()))
}

/// Where the servers are, if that depends on what this user may do: all runs of an experiment must agree in
/// it.
fn hosts(experiment: &Experiment) -> Option<Fact> {
    let is_auto = |variant: &Variant| variant.lab.hosts == HostsChoice::Auto;
    if !experiment.variants.iter().any(is_auto) {
        return None;
    }
    let value = match dnslab_lab::hosts::possible() {
        Ok(()) => "network namespaces",
        Err(_) => "the loopback interface",
    };
    Some(Fact { name: "hosts".to_owned(), value: value.to_owned() })
}

fn note(facts: &mut Vec<Fact>, what: &'static str, path: &Path) -> Result<(), QueriesError> {
    let name = format!("{what} {}", path.display());
    if facts.iter().all(|fact| fact.name != name) {
        let value = digest(path).map_err(QueriesError::unreadable(what, path))?;
        facts.push(Fact { name, value });
    }
    Ok(())
}

/// What has changed since `session` began: dnslab's version, the host, the inputs. What an older dnslab did
/// not note is not compared.
pub(super) fn differences(
    session: &Session,
    dnslab: &str,
    host: &[Fact],
    inputs: &[Fact],
) -> Vec<Difference> {
    let version = |value: &str| Fact { name: "dnslab".to_owned(), value: value.to_owned() };
    let mut found = compare(&[version(&session.dnslab)], &[version(dnslab)]);
    let then = session.host.iter().filter(|fact| matters(fact, host));
    let then: Vec<Fact> = then.cloned().collect();
    found.extend(compare(&then, host));
    found.extend(compare(&session.inputs, inputs));
    found
}

/// Whether figures depend on a fact of a host. Those of other hosts have the name of the host before them, and not all hosts
/// have a part in what is left.
fn matters(fact: &Fact, now: &[Fact]) -> bool {
    let Some((_, name)) = fact.name.rsplit_once(": ") else {
        return HOST_FACTS.contains(&fact.name.as_str());
    };
    let program = name.split(" (").next().unwrap_or_default();
    let is_server = ServerKind::ALL.iter().any(|kind| title(*kind) == program);
    (HOST_FACTS.contains(&name) || is_server) && now.iter().any(|now| now.name == fact.name)
}

fn compare(then: &[Fact], now: &[Fact]) -> Vec<Difference> {
    let difference = |FactChange { name, then, now }: FactChange| Difference {
        name,
        then,
        now: now.unwrap_or_else(|| "not known".to_owned()),
    };
    changed_facts(then, now).into_iter().map(difference).collect()
}

/// `sha256:` and the digest of a file (FIPS 180-4) in hexadecimal, as `sha256sum` prints it.
fn digest(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut reader = BufReader::new(File::open(path)?);
    loop {
        let octets = reader.fill_buf()?;
        if octets.is_empty() {
            break;
        }
        hasher.update(octets);
        let length = octets.len();
        reader.consume(length);
    }
    Ok(digest_of(hasher))
}

fn digest_of(hasher: Sha256) -> String {
    let mut text = "sha256:".to_owned();
    for octet in hasher.finalize() {
        write!(text, "{octet:02x}").expect("writing to a string does not fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tests::session;
    use super::*;

    fn facts(facts: &[(&str, &str)]) -> Vec<Fact> {
        let fact = |(name, value): &(&str, &str)| Fact {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        facts.iter().map(fact).collect()
    }

    #[track_caller]
    fn check(dnslab: &str, change: (&str, &str), expected: &[&str]) {
        let host = [
            ("CPU", "Model A"),
            ("CPUs", "2: 0-1"),
            ("kernel", "Linux 6.1"),
            ("memory", "24000 MiB"),
            ("steal since the machine started", "1.00 s"),
            ("file descriptors", "1024 (hard limit 20000)"),
        ];
        let input = ("query file /q", "sha256:00");
        let then = Session { host: facts(&host), inputs: facts(&[input]), ..session() };
        let mut now: Vec<_> = host.into_iter().chain([input]).collect();
        now.iter_mut().filter(|fact| fact.0 == change.0).for_each(|fact| fact.1 = change.1);
        now.retain(|fact| !fact.1.is_empty());
        let (inputs, host) = now.into_iter().partition::<Vec<_>, _>(|fact| fact.0 == input.0);
        let found = differences(&then, dnslab, &facts(&host), &facts(&inputs));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{change:?}");
    }

    #[test]
    fn each_difference_is_told_with_both_values() {
        check("0.1.0", ("", ""), &[]);
        check("0.2.0", ("", ""), &["  dnslab: it was `0.1.0`, now it is `0.2.0`"]);
        check("0.1.0", ("CPU", "Model B"), &["  CPU: it was `Model A`, now it is `Model B`"]);
        check("0.1.0", ("CPU", ""), &["  CPU: it was `Model A`, now it is `not known`"]);
        check("0.1.0", ("CPUs", "1: 0"), &["  CPUs: it was `2: 0-1`, now it is `1: 0`"]);
        check("0.1.0", ("memory", "23990 MiB"), &[]);
        let less = "  memory: it was `24000 MiB`, now it is `12000 MiB`";
        check("0.1.0", ("memory", "12000 MiB"), &[less]);
        check("0.1.0", ("steal since the machine started", "9.00 s"), &[]);
        check("0.1.0", ("file descriptors", "20000 (hard limit 20000)"), &[]);
        let file = "  query file /q: it was `sha256:00`, now it is `sha256:01`";
        check("0.1.0", ("query file /q", "sha256:01"), &[file]);
        let both = ["  dnslab: it was `0.1.0`, now it is `0.2.0`", file];
        check("0.2.0", ("query file /q", "sha256:01"), &both);
    }

    #[test]
    fn what_an_older_dnslab_did_not_note_is_not_compared() {
        let now = [facts(&[("CPU", "Model A")]), facts(&[("query file /q", "sha256:00")])];
        assert_eq!(differences(&session(), "0.1.0", &now[0], &now[1]), []);
    }

    #[test]
    fn this_machine_is_the_same_as_itself() {
        let then = Session { host: dnslab_lab::host::facts(), ..session() };
        assert_eq!(differences(&then, "0.1.0", &dnslab_lab::host::facts(), &[]), []);
        for name in ["CPUs", "kernel", "memory"] {
            assert!(then.host.iter().any(|fact| fact.name == name), "no fact `{name}`");
        }
    }

    #[test]
    fn digests_are_those_of_sha256sum() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("queries");
        fs::write(&path, "abc").unwrap();
        // The example of FIPS 180-4.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(&path).unwrap(), format!("sha256:{expected}"));
    }

    #[test]
    fn query_files_are_inputs_once_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("queries");
        fs::write(&path, "www.example A\n").unwrap();
        let text = format!(
            "name = \"x\"\nload.queries = \"{}\"\n[[variant]]\nname = \"a\"\n[[variant]]\n\
             name = \"b\"\nload.transport = \"tcp\"\n",
            path.display()
        );
        let experiment = dnslab_settings::check_text(&text, &[]).unwrap();
        let guard = GuardProgram { path: "/nonexistent/guard".into(), arguments: Vec::new() };
        let found = inputs(&experiment, &guard).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].name, format!("query file {}", path.display()));
        fs::remove_file(&path).unwrap();
        assert!(matches!(inputs(&experiment, &guard), Err(QueriesError::Unreadable { .. })));
    }
}
