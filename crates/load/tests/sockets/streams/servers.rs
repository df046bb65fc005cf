//! BIND with the zone and a certificate.

use std::net::SocketAddr;

use dnslab_test_support::free_addresses;

use crate::encrypted::{Identity, zone};
use crate::foreign::Foreign;

pub(crate) struct Bind {
    _process: Foreign,
    pub(crate) identity: Identity,
    pub(crate) dot: SocketAddr,
    pub(crate) doh2: SocketAddr,
}

impl Bind {
    /// Starts it with these statements in `tls`, and with so many HTTP/2 streams in a connection.
    pub(crate) fn start(tls: &str, streams: u32) -> Self {
        let identity = Identity::new();
        let folder = identity.folder.path();
        let [dot, doh2] = free_addresses([127, 0, 0, 1].into());
        let (chain, key) = (identity.chain.display(), identity.key.display());
        let configuration = format!(
            r#"
tls local-tls {{ cert-file "{chain}"; key-file "{key}"; {tls} }};
http local {{
    endpoints {{ "/dns-query"; }}; streams-per-connection {streams}; listener-clients 5000;
}};
options {{
    directory "{folder}"; pid-file "named.pid"; session-keyfile "session.key";
    managed-keys-directory "."; recursion no; dnssec-validation no; notify no;
    listen-on-v6 {{ none; }};
    listen-on port {dot} tls local-tls {{ 127.0.0.1; }};
    listen-on port {doh2} tls local-tls http local {{ 127.0.0.1; }};
    interface-interval 0; tcp-clients 5000; tcp-listen-queue 1024;
}};
controls {{ }};
zone "example" {{ type primary; file "example.zone"; }};
"#,
            folder = folder.display(),
            dot = dot.port(),
            doh2 = doh2.port(),
        );
        let process = Foreign::named(folder, &configuration, &zone(), &[dot, doh2]);
        Self { _process: process, identity, dot, doh2 }
    }
}
