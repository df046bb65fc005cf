//! The adapter of each kind of server.

use dnslab_settings::ServerKind;

use super::adapter::Adapter;
use super::{
    bind, coredns, dnsdist, dnsmasq, embedded, knot, knot_resolver, nsd, pdns_auth, pdns_recursor,
    stubby, unbound,
};

pub(crate) fn adapter(kind: ServerKind) -> &'static dyn Adapter {
    match kind {
        ServerKind::Embedded => &embedded::Embedded,
        ServerKind::Bind => &bind::Bind,
        ServerKind::Knot => &knot::Knot,
        ServerKind::Nsd => &nsd::Nsd,
        ServerKind::PowerDnsAuthoritative => &pdns_auth::PowerDnsAuthoritative,
        ServerKind::Unbound => &unbound::Unbound,
        ServerKind::KnotResolver => &knot_resolver::KnotResolver,
        ServerKind::Dnsmasq => &dnsmasq::Dnsmasq,
        ServerKind::Stubby => &stubby::Stubby,
        ServerKind::CoreDns => &coredns::CoreDns,
        ServerKind::Dnsdist => &dnsdist::Dnsdist,
        ServerKind::PowerDnsRecursor => &pdns_recursor::PowerDnsRecursor,
    }
}
