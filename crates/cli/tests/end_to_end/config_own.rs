//! A configuration that the user wrote for his own server: it runs here as it is, but for addresses, ports and paths.

use std::fs;
use std::path::{Path, PathBuf};

use dnslab_record::counter;

use crate::evidence::{measured, valid_records};
use crate::room::Room;

const ZONE: &str = "$TTL 1h\n@ SOA ns hostmaster 1 1h 15m 4w 5m\n@ NS ns\nns A 192.0.2.1\n\
                    www A 192.0.2.80\n";

const LOAD: &str = "repeat.runs = 1\nload.clients = 4\nload.duration = \"200ms\"\nload.warm_up = \"50ms\"\n\
                    load.queries = \"queries\"\nexpect.rcode = \"any\"\n";

const BIND: &str = "options {
    directory \"FOLDER/var\";
    listen-on port 53 { 192.0.2.1; };
    pid-file \"/run/named/of-theirs.pid\";
    recursion no;
    minimal-any yes;
    version \"theirs\";
};
controls { inet 127.0.0.1 port 953 allow { localhost; }; };
include \"FOLDER/keys.conf\";
logging {
    channel theirs { file \"/var/log/named/theirs.log\"; };
    category queries { theirs; };
};
view \"all\" {
    match-clients { any; };
    allow-transfer { key partner; };
    also-notify { 192.0.2.9; };
    zone \"corp.example\" { type primary; file \"corp.zone\"; allow-update { key partner; }; };
    zone \"copy.example\" {
        type secondary; primaries { 192.0.2.3; }; file \"corp.zone\"; masterfile-format text;
    };
};
";

const KEYS: &str = "key partner { algorithm hmac-sha256; secret \"c2VjcmV0c2VjcmV0\"; };\n";

const NSD: &str = "server:
    ip-address: 192.0.2.1
    zonesdir: \"FOLDER/var\"
    username: nsd
    identity: theirs
    rrl-ratelimit: 0
include: \"FOLDER/keys.conf\"
pattern:
    name: all
    zonefile: \"corp.zone\"
    notify: 192.0.2.9 NOKEY
zone:
    name: corp.example
    include-pattern: all
zone:
    name: copy.example
    include-pattern: all
    request-xfr: 192.0.2.3 partner
";

const NSD_KEYS: &str = "key:\n name: partner\n algorithm: hmac-sha256\n secret: c2VjcmV0c2VjcmV0\n";

const KNOT: &str = "server:
    rundir: /run/theirs
    user: theirs:theirs
    listen: 192.0.2.1@53
    identity: theirs
include: keys.conf
remote:
  - id: second
    address: 192.0.2.9
    key: partner
template:
  - id: default
    storage: FOLDER/var
    file: corp.zone
    notify: second
zone:
  - domain: corp.example
  - domain: copy.example
    master: second
";

const KNOT_KEYS: &str =
    "key:\n  - id: partner\n    algorithm: hmac-sha256\n    secret: c2VjcmV0c2VjcmV0\n";

const UNBOUND: &str = "server:
    directory: \"/etc/theirs\"
    interface: 192.0.2.1
    access-control: 0.0.0.0/0 allow
    access-control: ::/0 allow
    identity: theirs
    local-data: \"www.copy.example. A 192.0.2.80\"
include-toplevel: \"FOLDER/*.conf\"
auth-zone:
    name: corp.example
    zonefile: \"FOLDER/var/corp.zone\"
    primary: 192.0.2.3
    for-upstream: no
";

const UNBOUND_MORE: &str = "remote-control:\n    control-enable: no\n";

const SECRET: &str = "c2VjcmV0c2VjcmV0";

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files.extend(files_below(&entry.path()));
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    files
}

/// Runs a configuration over UDP and TCP. The names of both of its zones are known, and nothing is written beside its files.
#[track_caller]
fn check(kind: &str, text: &str, included: &str, counts: bool) {
    let room = Room::with_load();
    let folder = room.path().join("etc");
    fs::create_dir_all(folder.join("var")).unwrap();
    fs::write(folder.join("var/corp.zone"), ZONE).unwrap();
    fs::write(folder.join("keys.conf"), included).unwrap();
    let main = folder.join("main");
    fs::write(&main, text.replace("FOLDER", &folder.to_string_lossy())).unwrap();
    room.write("queries", "www.corp.example A\nwww.copy.example A\n");
    room.experiment(&format!(
        "{LOAD}server.kind = \"{kind}\"\nserver.config = \"etc/main\"\n\
         {live}[[variant]]\nname = \"udp\"\n[[variant]]\nname = \"tcp\"\n\
         load.transport = \"tcp\"\n",
        live = if kind == "unbound" { "upstream.kind = \"live\"\n" } else { "" },
    ));
    room.dnslab(&["plan", "./experiment.toml"]).exits_with(0).prints("etc/main");
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    for record in valid_records(&room.results(), 2) {
        let answers = &measured(&record).counters.answers;
        let codes: Vec<&String> = answers.rcodes.keys().collect();
        assert_eq!(codes, ["NOERROR"], "{kind}");
        let notes = record.server.notes.join("\n");
        assert!(
            notes.contains("the configuration is ") && notes.contains("left out of it"),
            "{notes}"
        );
        assert!(notes.contains("192.0.2.1"), "{notes}");
        let counters = record.watched.counters.as_ref();
        let counted = counters.and_then(|counters| counters.growth(counter::QUERIES));
        assert_eq!(counted.is_some(), counts, "{kind}: {counters:?}");
    }
    let beside: Vec<_> = fs::read_dir(folder.join("var")).unwrap().collect();
    assert_eq!(beside.len(), 1, "{kind}: {beside:?}");
    for file in files_below(room.results().path()) {
        let text = fs::read(&file).unwrap();
        let has_secret = text.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        assert!(!has_secret, "{}", file.display());
    }
}

#[test]
fn bind() {
    check("bind", BIND, KEYS, true);
}

#[test]
fn nsd() {
    check("nsd", NSD, NSD_KEYS, true);
}

#[test]
fn knot() {
    check("knot", KNOT, KNOT_KEYS, false);
}

#[test]
fn unbound() {
    check("unbound", UNBOUND, UNBOUND_MORE, true);
}

/// Each fault names its file or key, before anything starts.
#[test]
fn what_cannot_be() {
    let room = Room::with_load();
    room.write("queries", "www.corp.example A\n");
    room.write("named.conf", "zone \"a\" { type primary; file \"f\"; dnssec-policy default; };\n");
    room.write("missing.conf", "zone \"a\" { type primary; file \"nothing.zone\"; };\n");
    room.write(
        "wrong.conf",
        "options { no-such-option yes; };\nzone a { type primary; file \"queries\"; };\n",
    );
    let run = |sets: &[&str]| {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let words = ["run", "transports"].into_iter().chain(sets);
        room.dnslab(&words.collect::<Vec<_>>())
    };
    let own = ["server.kind=bind", "load.queries=queries"];
    let with = |more: &[&'static str]| [&own[..], more].concat();
    run(&with(&["server.config=named.conf"])).exits_with(2).complains("so BIND would sign");
    run(&with(&["server.config=missing.conf"])).complains("nothing.zone");
    run(&with(&["server.config=wrong.conf"])).complains("no-such-option");
    run(&with(&["server.config=none.conf"])).exits_with(2).complains("there is no configuration");
    run(&["server.kind=unbound", "load.queries=queries", "server.config=queries"])
        .exits_with(2)
        .complains("`upstream.kind = \"live\"`");
    let both = with(&["server.config=named.conf", "server.dnstap=true"]);
    run(&both).exits_with(2).complains("says alone what its server does");
    run(&["server.kind=bind", "server.config=named.conf"])
        .exits_with(2)
        .complains("server.zone.file");
    let other = ["server.kind=pdns-auth", "load.queries=queries", "server.config=named.conf"];
    run(&other).exits_with(2).complains("`server.config`");
}
