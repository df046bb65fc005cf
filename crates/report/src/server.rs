//! Names of servers.

use dnslab_settings::ServerKind;

/// The server's name as its makers write it, with the version.
pub(crate) fn title(kind: &str, version: &str) -> String {
    let name = match kind.parse::<ServerKind>() {
        Ok(ServerKind::Embedded) => "dnslab's own server",
        Ok(kind) => kind.profile().title,
        Err(_) if kind == "external" => "a running server",
        Err(_) => kind,
    };
    // BIND adds its build to the release: 9.18.49-1~deb12u3-Debian.
    let release = version.split(['-', ' ', '+']).next().unwrap_or_default();
    match kind {
        "embedded" => name.to_owned(),
        "external" if !release.is_empty() => format!("{name} ({release})"),
        _ => format!("{name} {release}").trim().to_owned(),
    }
}
