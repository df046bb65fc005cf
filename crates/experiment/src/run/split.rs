//! Which CPUs the load, the server under test and its upstream get.

use dnslab_lab::cpus::{self, Cores, CpuError, Split};
use dnslab_lab::ports;
use dnslab_settings::{ServerChoice, UpstreamChoice, Variant};

use super::watching;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cpus {
    /// The CPUs of the server under test and of a relay on its host; empty for an external server.
    pub(super) server: Vec<usize>,
    /// Empty where other hosts have the load.
    pub(super) load: Vec<usize>,
    /// Empty without an upstream.
    pub(super) upstream: Vec<usize>,
}

impl Cpus {
    /// Divides the CPUs that this process may use.
    ///
    /// The upstream gets the second half of the load's cores, rounded down, or shares a single CPU with the
    /// load. It never takes from the server.
    ///
    /// # Errors
    /// When a named CPU is not allowed, or nothing is left for one side.
    pub(super) fn of(variant: &Variant) -> Result<Self, CpuError> {
        let Split { mut server, mut load } = split(variant)?;
        let is_elsewhere = variant.server.host.is_some();
        if is_elsewhere || variant.upstream.kind.and_then(UpstreamChoice::started).is_none() {
            return Ok(Self { server, load, upstream: Vec::new() });
        }
        let named = variant.upstream.cpus.clone();
        if !named.is_empty() {
            // Only to check them.
            cpus::split(&cpus::allowed(), &Cores::default(), Some(&server), Some(&named))?;
            return Ok(Self { server, load, upstream: named });
        }
        let is_free = variant.load.cpus.is_empty() && load.len() > 1;
        let upstream = match is_free {
            // All are the server's then.
            _ if load.is_empty() => {
                let cores = Cores::of_this_machine().apart(&server);
                let (first, second) = cores.split_at(cores.len().div_ceil(2));
                match second {
                    [] => server.clone(),
                    second => {
                        server = cpus::joined(first);
                        cpus::joined(second)
                    }
                }
            }
            true => {
                let cores = Cores::of_this_machine().apart(&load);
                let (first, second) = cores.split_at(cores.len().div_ceil(2));
                load = cpus::joined(first);
                cpus::joined(second)
            }
            false => load.clone(),
        };
        Ok(Self { server, load, upstream })
    }

    /// One sentence for the provenance.
    pub(super) fn describe(&self) -> String {
        let Self { server, load, upstream } = self;
        let sides = match server.as_slice() {
            _ if load.is_empty() => format!("server on CPUs {}", cpus::text(server)),
            [] => format!("load on CPUs {}", cpus::text(load)),
            _ => Split { server: server.clone(), load: load.clone() }.describe(),
        };
        match upstream.as_slice() {
            [] if server.is_empty() && load.is_empty() => "none here".to_owned(),
            [] => sides,
            _ if upstream.iter().any(|cpu| load.contains(cpu)) => {
                format!("{sides}, upstream on CPUs {}, shared with the load", cpus::text(upstream))
            }
            _ => format!("{sides}, upstream on CPUs {}", cpus::text(upstream)),
        }
    }
}

/// The CPUs of a variant's server and load. An external server has none here.
fn split(variant: &Variant) -> Result<Split, CpuError> {
    let (allowed, cores) = (cpus::allowed(), Cores::of_this_machine());
    let named = |list: &'_ [usize]| (!list.is_empty()).then(|| list.to_vec());
    let load = named(&variant.load.cpus);
    if variant.server.kind != ServerChoice::External && variant.server.host.is_some() {
        // The CPUs of the server are those of its host.
        if variant.load.hosts.is_some() {
            return Ok(Split { server: Vec::new(), load: Vec::new() });
        }
        let load = load.unwrap_or_else(|| allowed.clone());
        let Split { load, .. } = cpus::split(&allowed, &cores, Some(&allowed), Some(&load))?;
        return Ok(Split { server: Vec::new(), load });
    }
    if variant.load.hosts.is_some() {
        // Only to check the named ones.
        let server = named(&variant.server.cpus).unwrap_or_else(|| allowed.clone());
        let Split { server, .. } = cpus::split(&allowed, &cores, Some(&server), Some(&allowed))?;
        let is_started = variant.server.kind != ServerChoice::External;
        let server = if is_started { server } else { Vec::new() };
        return Ok(Split { server, load: Vec::new() });
    }
    if variant.server.kind == ServerChoice::External {
        // A server on this machine needs CPUs too, though it is not pinned here: those that it may use, if
        // somebody else pinned it. A server elsewhere leaves all CPUs to the load. With both sides named the
        // split only checks them.
        let is_here = ports::is_local(variant.server.address.ip());
        let own = if load.is_none() { watching::cpus_of(variant, &allowed) } else { None };
        let all = (load.is_some() || !is_here).then(|| allowed.clone());
        let load = load.or_else(|| if own.is_none() { all.clone() } else { None });
        let server = own.or(all);
        let Split { load, .. } = cpus::split(&allowed, &cores, server.as_deref(), load.as_deref())?;
        return Ok(Split { server: Vec::new(), load });
    }
    cpus::split(&allowed, &cores, named(&variant.server.cpus).as_deref(), load.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus_of(lines: &str) -> Result<Cpus, CpuError> {
        let text = format!(
            "name = \"x\"\nserver.kind = \"unbound\"\nupstream.kind = \"embedded\"\n{lines}\n\
             [[variant]]\nname = \"a\"\n"
        );
        Cpus::of(&dnslab_settings::check_text(&text, &[]).unwrap().variants[0])
    }

    #[test]
    fn an_upstream_shares_with_the_load_and_never_with_the_server() {
        let all = cpus::allowed();
        let Cpus { server, load, upstream } = cpus_of("").unwrap();
        assert!(!load.is_empty() && !upstream.is_empty());
        if all.len() == 2 {
            assert_eq!((server, load, upstream), (vec![all[0]], vec![all[1]], vec![all[1]]));
            let cpus = cpus_of(&format!("upstream.cpus = [{}]", all[0])).unwrap();
            assert_eq!(cpus.upstream, [all[0]]);
            assert!(cpus.describe().contains("upstream on CPUs"), "{}", cpus.describe());
        }
        assert!(cpus_of("upstream.cpus = [8000]").is_err());
    }
}
