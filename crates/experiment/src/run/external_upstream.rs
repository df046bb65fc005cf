//! Upstreams that run already: how a forwarder is told of one, and whether it answers.

use std::net::SocketAddr;

use dnslab_lab::{Upstream, UpstreamTls, certificate};
use dnslab_record::ExternalUpstream;
use dnslab_settings::{Variant, Verification};

use super::error::TargetError;
use super::queries::Asked;
use super::ready::Question;
use super::ways::tls;

/// How often it is asked before it counts as silent: a datagram may be lost.
const ATTEMPTS: usize = 3;

/// What the last server of a variant forwards to, if that runs already, and what the record says of it. It has answered
/// rightly, or one of those beside it has.
pub(super) fn upstream(
    variant: &Variant,
    queries: &Asked,
) -> Result<Option<(Upstream, ExternalUpstream)>, TargetError> {
    let Some(external) = variant.external_upstream() else { return Ok(None) };
    let tls = external.tls_name.map(|name| {
        let given = external.authority.map(ToOwned::to_owned);
        let authority = given.or_else(certificate::of_system).ok_or(TargetError::NoAuthorities)?;
        Ok::<_, TargetError>(UpstreamTls { authority, name: name.to_owned() })
    });
    let Some((address, further)) = external.addresses.split_first() else { return Ok(None) };
    let upstream = Upstream {
        address: *address,
        further: further.to_vec(),
        transport: external.transport,
        tls: tls.transpose()?,
    };
    let service = variant.upstream.service.as_ref();
    let facts = ExternalUpstream {
        addresses: external.addresses,
        transport: upstream.transport.to_string(),
        tls_name: upstream.tls.as_ref().map(|tls| tls.name.clone()),
        service: service.map(ToString::to_string),
    };
    if service.is_some() {
        // It is reached from inside its cluster; the server that forwards is asked there.
        return Ok(Some((upstream, facts)));
    }
    let question = Question::of(variant, queries)?;
    let mut refusal = is_right(&upstream, upstream.address, &question)?.err();
    for address in &upstream.further {
        if refusal.is_some() && is_right(&upstream, *address, &question)?.is_ok() {
            refusal = None;
        }
    }
    match refusal {
        None => Ok(Some((upstream, facts))),
        Some(reason) => {
            let (address, transport) = (upstream.address, upstream.transport);
            Err(TargetError::ExternalUpstream { address, transport, reason })
        }
    }
}

/// Whether the upstream answers rightly at an address; if not, why.
fn is_right(
    upstream: &Upstream,
    address: SocketAddr,
    question: &Question,
) -> Result<Result<(), String>, TargetError> {
    let verification =
        upstream.tls.as_ref().map(|tls| Verification::Authority(tls.authority.clone()));
    let name = upstream.tls.as_ref().map_or("", |tls| &tls.name);
    let tls = tls(upstream.transport, verification.as_ref(), name, None)?;
    let ask = || question.ask(upstream.transport, address, tls.as_ref());
    let mut answer = ask();
    for _ in 1..ATTEMPTS {
        answer = answer.or_else(|_| ask());
    }
    Ok(answer)
}
