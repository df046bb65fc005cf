//! How the clients of a load reach their servers.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use dnslab_load::{Endpoint, Job, TlsSettings, TlsSettingsError, Verification as Verify};
use dnslab_settings::{Load, Variant, Verification};
use dnslab_traffic::QueryList;
use dnslab_wire::Transport;

use super::error::QueriesError;
use super::queries::{Asked, with_files};

/// How the clients of a load reach their servers.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<TlsSettings>,
    /// Where the clients of other transports go.
    pub(super) others: Vec<Endpoint>,
    /// The further servers that clients know.
    further: Vec<Vec<Endpoint>>,
}

impl Ways {
    /// One way to one server.
    pub(super) fn one(address: SocketAddr, tls: Option<TlsSettings>) -> Self {
        Self { address, tls, others: Vec::new(), further: Vec::new() }
    }

    /// Those to servers that run already; `None` for a server that is started.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(super) fn to_running(variant: &Variant) -> Result<Option<Self>, TlsSettingsError> {
        let Some(address) = variant.target() else { return Ok(None) };
        let load = &variant.load;
        let tls = |transport, target| external_tls_over(variant, transport, target);
        let endpoint = |transport, target, share| {
            let tls = tls(transport, target)?;
            Ok::<_, TlsSettingsError>(Endpoint { transport, target, tls, share })
        };
        let mut ways = Self::one(address, tls(load.transport, address)?);
        for (transport, share) in load.mixed().iter().copied() {
            let target = variant.target_over(transport).unwrap_or(address);
            ways.others.push(endpoint(transport, target, share)?);
        }
        for transport in load.transports() {
            for (place, target) in variant.further_over(transport).enumerate() {
                if ways.further.len() <= place {
                    ways.further.push(Vec::new());
                }
                ways.further[place].push(endpoint(transport, target, 0.0)?);
            }
        }
        Ok(Some(ways))
    }

    /// The servers that the clients know.
    pub(super) fn servers(&self) -> u8 {
        u8::try_from(1 + self.further.len()).unwrap_or(u8::MAX)
    }

    /// The load of a variant over these ways: what its clients send, before the load and in it.
    ///
    /// # Errors
    /// When a file that the queries need cannot be read.
    pub(super) fn job(&self, variant: &Variant, asked: &Asked) -> Result<Job, QueriesError> {
        let job = self.job_of(with_files(variant)?, Arc::clone(&asked.list));
        Ok(Job { played: asked.played(), ..job })
    }

    /// A load with these settings, whose files have been read, and this list of queries.
    pub(super) fn job_of(&self, load: Load, queries: Arc<QueryList>) -> Job {
        Job {
            tls: self.tls.clone(),
            others: self.others.clone(),
            further: self.further.clone(),
            ..Job::new(load, self.address, queries)
        }
    }
}

/// TLS to this external server over this transport, as the load wants it; `None` without encryption.
fn external_tls_over(
    variant: &Variant,
    transport: Transport,
    target: SocketAddr,
) -> Result<Option<TlsSettings>, TlsSettingsError> {
    let name = variant.server.tls_name.clone().unwrap_or_else(|| target.ip().to_string());
    let tls = tls(transport, variant.verification().as_ref(), &name, None)?;
    Ok(tls.map(|tls| tls.of_load(&variant.load)))
}

/// `own_authority` is the one made for the run.
pub(super) fn tls(
    transport: Transport,
    verification: Option<&Verification>,
    name: &str,
    own_authority: Option<&Path>,
) -> Result<Option<TlsSettings>, TlsSettingsError> {
    if !transport.is_encrypted() {
        return Ok(None);
    }
    let verify = match (verification, own_authority) {
        (Some(Verification::Authority(path)), _) => Verify::Authority(path.clone()),
        (Some(Verification::RunAuthority), Some(path)) => Verify::Authority(path.to_owned()),
        _ => Verify::Off,
    };
    TlsSettings::new(name, &verify).map(Some)
}
