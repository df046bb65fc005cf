//! BIND, over UDP and TCP.

use std::net::SocketAddr;

use dnslab_test_support::free_address;

use crate::answers::load::zone;
use crate::foreign::Foreign;

pub(crate) struct Bind {
    _process: Foreign,
    pub(crate) address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Bind {
    /// Starts it with these statements outside and these inside of `options`.
    pub(crate) fn start(outside: &str, inside: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = free_address([127, 0, 0, 1].into());
        let configuration = format!(
            r#"
options {{
    directory "{folder}"; pid-file "named.pid"; session-keyfile "session.key";
    managed-keys-directory "."; recursion no; dnssec-validation no; notify no;
    listen-on-v6 {{ none; }}; listen-on port {port} {{ 127.0.0.1; }};
    interface-interval 0; {inside}
}};
controls {{ }};
{outside}
zone "example" {{ type primary; file "example.zone"; }};
"#,
            folder = folder.path().display(),
            port = address.port(),
        );
        let process = Foreign::named(folder.path(), &configuration, &zone(), &[address]);
        Self { _process: process, address, _folder: folder }
    }
}
