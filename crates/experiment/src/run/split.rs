//! Which CPUs the load, the server under test and its upstream get.

use dnslab_lab::cpus::{self, CpuError, Split};

use crate::{Server, Variant};

/// The CPUs of one variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cpus {
    /// Those of the server under test and of a relay on its host; none for an external server.
    pub(super) server: Vec<usize>,
    /// Those of the load.
    pub(super) load: Vec<usize>,
    /// Those of the upstream; none without one.
    pub(super) upstream: Vec<usize>,
}

impl Cpus {
    /// Divides the CPUs that this process may use.
    ///
    /// The upstream gets the second half of those that are left to the load, rounded down, and shares a
    /// single one with it: it must never take from the server.
    ///
    /// # Errors
    /// When a named CPU is not allowed, or nothing is left for one side.
    pub(super) fn of(variant: &Variant) -> Result<Self, CpuError> {
        let Split { server, mut load } = split(variant)?;
        let Some(behind) = variant.laboratory.upstream() else {
            return Ok(Self { server, load, upstream: Vec::new() });
        };
        let named = behind.server.process().map(|process| process.cpus.clone()).unwrap_or_default();
        if !named.is_empty() {
            // Only to check them.
            cpus::split(&cpus::allowed(), Some(&server), Some(&named))?;
            return Ok(Self { server, load, upstream: named });
        }
        let is_free = variant.load.cpus.is_empty() && load.len() > 1;
        let upstream = match is_free {
            true => load.split_off(load.len().div_ceil(2)),
            false => load.clone(),
        };
        Ok(Self { server, load, upstream })
    }

    /// One sentence for the provenance.
    pub(super) fn describe(&self) -> String {
        let Self { server, load, upstream } = self;
        let sides = match server.as_slice() {
            [] => format!("load on CPUs {}", cpus::text(load)),
            _ => Split { server: server.clone(), load: load.clone() }.describe(),
        };
        match upstream.as_slice() {
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
    let allowed = cpus::allowed();
    let named = |list: &'_ [usize]| (!list.is_empty()).then(|| list.to_vec());
    let load = named(&variant.load.cpus);
    let Some(process) = variant.server.process() else {
        // A server on this machine needs CPUs too, though nobody pins it; one elsewhere leaves all
        // of them to the load. With both sides named the split only checks them.
        let is_here = matches!(
            &variant.server.server,
            Server::External { target, .. } if target.ip().is_loopback()
        );
        let server = (load.is_some() || !is_here).then_some(allowed.as_slice());
        let load = load.or_else(|| server.map(<[usize]>::to_vec));
        let Split { load, .. } = cpus::split(&allowed, server, load.as_deref())?;
        return Ok(Split { server: Vec::new(), load });
    };
    cpus::split(&allowed, named(&process.cpus).as_deref(), load.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_shares_with_the_load_and_never_with_the_server() {
        let of = |lines: &str| {
            let text = format!(
                "name = \"x\"\nserver.kind = \"unbound\"\nupstream.kind = \"embedded\"\n{lines}\n\
                 [[variant]]\nname = \"a\"\n"
            );
            Cpus::of(&crate::check_text(&text, &[]).unwrap().variants[0])
        };
        let all = cpus::allowed();
        let Cpus { server, load, upstream } = of("").unwrap();
        assert!(!load.is_empty() && !upstream.is_empty());
        if all.len() == 2 {
            assert_eq!((server, load, upstream), (vec![all[0]], vec![all[1]], vec![all[1]]));
            let cpus = of(&format!("upstream.cpus = [{}]", all[0])).unwrap();
            assert_eq!(cpus.upstream, [all[0]]);
            assert!(cpus.describe().contains("upstream on CPUs"), "{}", cpus.describe());
        }
        assert!(of("upstream.cpus = [8000]").is_err());
    }
}
