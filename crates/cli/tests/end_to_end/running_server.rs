//! Servers that the test itself runs. To the command they are external.

use std::fs::{self, File};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dnslab_lab::{CertificateKind, certificate, ports};
use dnslab_wire::Transport;

use crate::command::{Guarded, Running};
use crate::processes::wait_for;
use crate::room::Room;

/// `host0` to `host99`.
const HOSTS: usize = 100;

/// The zone as a file.
pub(crate) fn zone() -> String {
    let mut text = "$ORIGIN example.test.\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n\
                    @ NS ns\nns A 192.0.2.1\n"
        .to_owned();
    for number in 0..HOSTS {
        text.push_str(&format!("host{number} A 192.0.2.7\n"));
    }
    text
}

/// In dnsperf's format: comment, empty line, tab, lower case, another type.
pub(crate) fn queries() -> String {
    let mut text = ";; queries of the test\n\n".to_owned();
    for number in 0..HOSTS {
        text.push_str(&format!("host{number}.example.test. A\n"));
    }
    text.push_str("example.test\tsoa\nexample.test NS\n");
    text
}

/// A `named` with a zone and a certificate. Dropping it ends it.
pub(crate) struct RunningBind {
    /// UDP and TCP.
    pub(crate) plain: SocketAddr,
    /// DNS over TLS.
    pub(crate) dot: SocketAddr,
    /// DNS over HTTPS with HTTP/2.
    pub(crate) doh2: SocketAddr,
    /// The authority that signed its certificate.
    pub(crate) authority: PathBuf,
    child: Guarded,
}

impl RunningBind {
    /// Starts it on free ports of `address` with all its files in `folder`, which need not exist. Waits until
    /// `dig` and `kdig` get the right answer.
    #[track_caller]
    pub(crate) fn start(folder: &Path, address: &str) -> Self {
        Self::start_with(folder, address, "")
    }

    /// With further `options`.
    #[track_caller]
    pub(crate) fn start_with(folder: &Path, address: &str, options: &str) -> Self {
        Self::begin(folder, address, &zone(), options, "own")
    }

    /// With this zone, in which `host7` must have the address that it has in [`zone`].
    #[track_caller]
    pub(crate) fn start_serving(folder: &Path, address: &str, zone: &str) -> Self {
        Self::begin(folder, address, zone, "", "own")
    }

    /// With the certificate that BIND makes for itself.
    #[track_caller]
    pub(crate) fn start_self_signed(folder: &Path, address: &str) -> Self {
        Self::begin(folder, address, &zone(), "", "ephemeral")
    }

    /// `tls` is the name of the certificate in the configuration.
    #[track_caller]
    fn begin(folder: &Path, address: &str, zone: &str, options: &str, tls: &str) -> Self {
        fs::create_dir_all(folder).unwrap();
        let address: IpAddr = address.parse().expect("the tests write addresses rightly");
        let free = ports::free(address).expect("loopback has free ports");
        let certificate = certificate::create(folder, address, CertificateKind::default()).unwrap();
        fs::write(folder.join("zone"), zone).unwrap();
        let (listen, other) = match address {
            IpAddr::V4(_) => ("listen-on", "listen-on-v6"),
            IpAddr::V6(_) => ("listen-on-v6", "listen-on"),
        };
        let (plain, dot, doh2) = (free.plain, free.dot, free.doh2);
        let configuration = format!(
            "tls own {{ cert-file \"{}\"; key-file \"{}\"; }};
             http own {{ endpoints {{ \"/dns-query\"; }}; }};
             options {{ directory \".\"; pid-file \"named.pid\"; session-keyfile \"session.key\";
                 managed-keys-directory \".\"; recursion no; dnssec-validation no; {options}
                 {other} {{ none; }}; {listen} port {plain} {{ {address}; }};
                 {listen} port {dot} tls {tls} {{ {address}; }};
                 {listen} port {doh2} tls {tls} http own {{ {address}; }}; }};
             controls {{ }};
             zone \"example.test\" {{ type primary; file \"zone\"; }};",
            certificate::CERTIFICATE,
            certificate::KEY,
        );
        let child = named(folder, &configuration);
        let [plain, dot, doh2] = [plain, dot, doh2].map(|port| SocketAddr::new(address, port));
        let own = Self { plain, dot, doh2, authority: certificate.authority, child };
        let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        let asked = [(Transport::Udp, plain), (Transport::Dot, dot)];
        // A verifying client gets no answer if the certificate is BIND's own.
        for (transport, address) in asked.into_iter().take(if tls == "own" { 2 } else { 1 }) {
            wait_for("named answers", log, || {
                let answer = ask(transport, address, Some(&own.authority), "host7.example.test");
                (answer == "192.0.2.7").then_some(())
            });
        }
        own
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub(crate) fn target(&self, transport: &str) -> String {
        match transport {
            "dot" => self.dot.to_string(),
            "doh2" => self.doh2.to_string(),
            _ => self.plain.to_string(),
        }
    }
}

/// An `unbound` that answers for `example.test`, over UDP, TCP and DNS over TLS. It gives nothing of its memory back.
/// Dropping it ends it.
pub(crate) struct RunningUnbound {
    pub(crate) plain: SocketAddr,
    pub(crate) dot: SocketAddr,
    pub(crate) authority: PathBuf,
    _child: Guarded,
}

impl RunningUnbound {
    /// Starts it on free ports of loopback with all its files in `folder`. Waits until `dig` and `kdig` get the right
    /// answer.
    #[track_caller]
    pub(crate) fn start(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        let address = IpAddr::from([127, 0, 0, 1]);
        let free = ports::free(address).expect("loopback has free ports");
        let certificate = certificate::create(folder, address, CertificateKind::default()).unwrap();
        let [plain, dot] = [free.plain, free.dot].map(|port| SocketAddr::new(address, port));
        let configuration = format!(
            "server:\n directory: \"{folder}\"\n chroot: \"\"\n username: \"\"\n pidfile: \"\"\n \
             use-syslog: no\n interface: 127.0.0.1@{}\n interface: 127.0.0.1@{}\n tls-port: {}\n \
             tls-service-pem: \"{}\"\n tls-service-key: \"{}\"\n incoming-num-tcp: 1000\n \
             outgoing-range: 100\n num-threads: 1\n local-zone: \".\" static\n \
             local-data: \". SOA ns. hostmaster. 1 3600 600 86400 60\"\n local-zone: \"example.test.\" redirect\n \
             local-data: \"example.test. A 192.0.2.7\"\nremote-control:\n control-enable: no\n",
            plain.port(),
            dot.port(),
            dot.port(),
            certificate::CERTIFICATE,
            certificate::KEY,
            folder = folder.display(),
        );
        fs::write(folder.join("unbound.conf"), configuration).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let child = Command::new("/usr/sbin/unbound")
            .args(["-d", "-p", "-c", "unbound.conf"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let child =
            child.unwrap_or_else(|error| panic!("unbound: {error}: apt-get install unbound"));
        let authority = certificate.authority;
        let own = Self { plain, dot, authority, _child: Guarded(child) };
        let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        for (transport, address) in [(Transport::Udp, plain), (Transport::Dot, dot)] {
            wait_for("unbound answers", log, || {
                let answer = ask(transport, address, Some(&own.authority), "host7.example.test");
                (answer == "192.0.2.7").then_some(())
            });
        }
        own
    }
}

/// Starts `named` in `folder` with this configuration. Its log is the file `log` there.
#[track_caller]
pub(crate) fn named(folder: &Path, configuration: &str) -> Guarded {
    named_by(Command::new("/usr/sbin/named"), folder, configuration)
}

/// [`named`] by a command that calls it, on another host for example.
#[track_caller]
pub(crate) fn named_by(mut command: Command, folder: &Path, configuration: &str) -> Guarded {
    fs::write(folder.join("named.conf"), configuration).unwrap();
    let log = File::create(folder.join("log")).unwrap();
    let child = command
        .args(["-g", "-n", "1", "-c", "named.conf"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    Guarded(child.unwrap_or_else(|error| panic!("named: {error}: apt-get install bind9")))
}

/// Starts the responder on free ports of `address`, over all transports. Returns its address by transport.
#[track_caller]
pub(crate) fn serve(
    room: &Room,
    address: &str,
    further: &[&str],
) -> (Running, impl Fn(Transport) -> SocketAddr + use<>) {
    room.write("zone", &zone());
    serve_what(room, address, &["--zone", "zone"], further)
}

/// [`serve`] with something else to serve, such as `--names` and a list.
#[track_caller]
pub(crate) fn serve_what(
    room: &Room,
    address: &str,
    what: &[&str],
    further: &[&str],
) -> (Running, impl Fn(Transport) -> SocketAddr + use<>) {
    let address = address.parse().expect("the tests write addresses rightly");
    certificate::create(room.path(), address, CertificateKind::default()).unwrap();
    let free = ports::free(address).unwrap();
    let at = move |transport| SocketAddr::new(address, free.of(transport));
    let mut arguments = vec!["serve".to_owned()];
    for (option, transport) in [
        ("--listen", Transport::Udp),
        ("--dot-listen", Transport::Dot),
        ("--doh2-listen", Transport::Doh2),
        ("--doq-listen", Transport::Doq),
        ("--doh3-listen", Transport::Doh3),
    ] {
        arguments.extend([option.to_owned(), at(transport).to_string()]);
    }
    let files = ["--certificate", certificate::CERTIFICATE, "--key", certificate::KEY];
    arguments.extend(files.iter().chain(what).chain(further).map(|word| (*word).to_owned()));
    let running = room.start(&arguments);
    // UDP and TCP share a line.
    let listening = || running.stderr().lines().filter(|line| line.starts_with("serving ")).count();
    wait_for("it listens", || running.so_far(), || (listening() == 5).then_some(()));
    (running, at)
}

/// Asks for the address of `name` with `dig`, or with `kdig` over encrypted transports, where it verifies the
/// certificate against `authority`. Returns its output, or nothing if there was no answer.
#[track_caller]
pub(crate) fn ask(
    transport: Transport,
    address: SocketAddr,
    authority: Option<&Path>,
    name: &str,
) -> String {
    let (client, package) = match transport {
        Transport::Udp | Transport::Tcp => ("dig", "bind9-dnsutils"),
        _ => ("kdig", "knot-dnsutils"),
    };
    let mut command = Command::new(client);
    command.args([format!("@{}", address.ip()), "-p".to_owned(), address.port().to_string()]);
    match transport {
        Transport::Udp => command.args(["+tries=1", "+notcp"]),
        Transport::Tcp => command.args(["+tries=1", "+tcp"]),
        encrypted => {
            let authority = authority.expect("an authority for TLS").display();
            let name = format!("+tls-hostname={}", certificate::NAME);
            command.args(["+retry=0", &format!("+tls-ca={authority}"), &name]);
            match encrypted {
                Transport::Doh2 => command.arg("+https=/dns-query"),
                Transport::Doq => command.arg("+quic"),
                _ => &mut command,
            }
        }
    };
    let output = command
        .args(["+time=2", "+short", name, "A"])
        .output()
        .unwrap_or_else(|error| panic!("{client}: {error}: apt-get install {package}"));
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // Both clients write errors as comments.
    if text.starts_with(';') { String::new() } else { text }
}
