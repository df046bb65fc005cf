//! The host that the documents tell of, in a network namespace: `192.0.2.1` and `192.0.2.2` answer on it, and so do
//! the loopback address at ports 5300 and 5393, all over each transport that BIND has. What readers have already stands
//! in its folder: query files, a capture, programs of their own, results.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};

use crate::command::{Guarded, Running, program};
use crate::documents::{key_and_value, root};
use crate::host::Host;
use crate::processes::wait_for;
use crate::replay::capture;
use crate::room::Room;
use crate::running_server::named_by;

/// A program of the reader's own build.
const BUILDS: [&str; 3] = ["opt/bind/sbin", "old/sbin", "new/sbin"];

/// Folders of the system that commands write to. They are below the reader's folder here.
const OF_SYSTEM: [&str; 2] = ["/opt/", "/usr/local/"];

/// Every name exists, and has an address.
const ZONE: &str = "$ORIGIN .\n$TTL 60\n@ SOA ns.example. hostmaster.example. 1 3600 600 86400 60\n@ NS ns.example.\n\
                    * A 192.0.2.7\n* AAAA 2001:db8::7\n";

/// A zone of the reader's own.
const CORP: &str = "$TTL 60\ncorp.test. SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.7\n";

/// Dropping it ends the servers, and those of `dnslab monitor`.
pub(crate) struct ReadersHost {
    // They end in this order.
    server: Option<Guarded>,
    host: Host,
    pub(crate) room: Room,
}

impl ReadersHost {
    #[track_caller]
    pub(crate) fn make() -> Self {
        let host = Host::make();
        host.run(
            "ip address add 192.0.2.1/32 dev lo && ip address add 192.0.2.2/32 dev lo && \
             ip route add local 198.18.0.0/15 dev lo && ip -6 route add local 2001:2::/48 dev lo",
        );
        let reader = Self { server: None, host, room: Room::with_load() };
        let folder = reader.room.path();
        for name in ["docs", "experiments", "grafana", "monitoring"] {
            symlink(root().join(name).canonicalize().unwrap(), folder.join(name)).unwrap();
        }
        for build in BUILDS {
            fs::create_dir_all(folder.join(build)).unwrap();
            symlink("/usr/sbin/named", folder.join(build).join("named")).unwrap();
        }
        fs::create_dir_all(folder.join("usr/local/share/man")).unwrap();
        let names: Vec<String> =
            (0..100).map(|number| format!("www{number}.example.test A\n")).collect();
        reader.room.write("queries.txt", &names.concat());
        reader.room.write("names.txt", &names.concat());
        reader.room.write("corp.zone", CORP);
        let own = "zone \"example.test\" { type primary; file \"example.zone\"; };\n";
        reader.room.write("named.conf", own);
        let zone =
            "$TTL 60\n@ SOA ns hostmaster 1 60 60 60 60\n@ NS ns\nns A 192.0.2.1\n* A 192.0.2.7\n";
        reader.room.write("example.zone", zone);
        // Three seconds; a query that comes again within less would be one that was sent again.
        let captured = capture(&reader.room, 120, 2, 1_500_000_000);
        fs::rename(captured, folder.join("monday.pcap")).unwrap();
        reader
    }

    /// Starts the servers that run already where the reader begins.
    #[track_caller]
    pub(crate) fn with_servers(mut self) -> Self {
        let folder = self.room.path().join("named");
        fs::create_dir_all(&folder).unwrap();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
            .args([
                "-nodes",
                "-keyout",
                "key.pem",
                "-out",
                "certificate.pem",
                "-subj",
                "/CN=dnslab",
            ])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-addext"])
            .arg(
                "subjectAltName=IP:127.0.0.1,IP:192.0.2.1,IP:192.0.2.2,DNS:dns.example.test,\
                 DNS:ipa1.example.test",
            )
            .current_dir(&folder)
            .output();
        let made = made.unwrap_or_else(|error| panic!("{error}: apt-get install openssl"));
        assert!(made.status.success(), "{made:?}");
        for name in ["ca.pem", "ca.crt"] {
            fs::copy(folder.join("certificate.pem"), self.room.path().join(name)).unwrap();
        }
        fs::write(folder.join("zone"), ZONE).unwrap();
        let hosts = "192.0.2.1; 192.0.2.2;";
        let configuration = format!(
            "tls own {{ cert-file \"certificate.pem\"; key-file \"key.pem\"; }};
             http own {{ endpoints {{ \"/dns-query\"; }}; }};
             options {{ directory \".\"; pid-file \"named.pid\"; session-keyfile \"session.key\";
                 managed-keys-directory \".\"; recursion no; dnssec-validation no;
                 tcp-clients 1000; listen-on-v6 {{ none; }};
                 listen-on {{ {hosts} }};
                 listen-on port 5300 {{ 127.0.0.1; }};
                 listen-on port 5393 {{ 127.0.0.1; }};
                 listen-on port 853 tls own {{ {hosts} }};
                 listen-on port 8853 tls own {{ 127.0.0.1; {hosts} }};
                 listen-on port 443 tls own http own {{ {hosts} }}; }};
             controls {{ }};
             zone \".\" {{ type primary; file \"zone\"; }};"
        );
        self.server = Some(named_by(self.host.command("/usr/sbin/named"), &folder, &configuration));
        let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        wait_for("named answers", log, || {
            let answer = self.call("dig", &["@192.0.2.2", "a.example", "+short", "+tries=1"]);
            (answer.stdout == b"192.0.2.7\n").then_some(())
        });
        self
    }

    /// Ends what [`Self::with_servers`] started: a server of the reader's own takes its addresses.
    pub(crate) fn end_servers(&mut self) {
        self.server = None;
    }

    fn call(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = self.host.command(program);
        command.args(arguments).current_dir(self.room.path()).stdin(Stdio::null());
        command.output().unwrap_or_else(|error| panic!("{program}: {error}"))
    }

    /// What a program of others prints on this host.
    #[track_caller]
    pub(crate) fn output(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.call(program, arguments);
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[track_caller]
    pub(crate) fn start(&self, words: &[String]) -> Running {
        let mut command = self.host.command(program());
        command.args(words.iter().map(|word| self.with_own_paths(word)));
        Running::start(command, self.room.path())
    }

    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        self.start(&words).finish().exits_with(0);
    }

    /// Folders of the system become folders of this reader. `results/2...`, the results of the author's machine, are
    /// the newest ones here.
    fn with_own_paths(&self, word: &str) -> String {
        if word.starts_with("results/2") {
            let entries = fs::read_dir(self.room.path().join("results")).into_iter().flatten();
            let names =
                entries.flatten().map(|entry| format!("results/{}", entry.file_name().display()));
            return names.max().unwrap_or_else(|| word.to_owned());
        }
        let (key, value) = key_and_value(word);
        if !OF_SYSTEM.iter().any(|folder| value.starts_with(folder)) {
            return word.to_owned();
        }
        format!("{key}{}{value}", self.room.path().display())
    }
}

impl Drop for ReadersHost {
    fn drop(&mut self) {
        if self.room.path().join("monitor").exists() {
            let mut down = self.host.command(program());
            let output = down.args(["monitor", "down"]).current_dir(self.room.path()).output();
            let is_down = output.as_ref().is_ok_and(|output| output.status.success());
            assert!(is_down || std::thread::panicking(), "something of it is left: {output:?}");
        }
    }
}
