//! `nsupdate` fills a zone in a BIND that had only SOA and NS records.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use dnslab_lab::ports;

use crate::command::{Done, Guarded, Running};
use crate::evidence::{measured, valid_records};
use crate::processes::wait_for;
use crate::room::Room;
use crate::running_server::named;

/// A key as `nsupdate -y` takes it, and its secret.
const KEY: [&str; 2] = ["hmac-sha256:updater", "c2VjcmV0LW9mLXRoZS10ZXN0"];

/// A `named` with one zone that takes updates. Dropping it ends it.
struct UpdatedBind {
    port: u16,
    /// Ends it.
    _child: Guarded,
}

impl UpdatedBind {
    /// Starts it in `folder` with the zone `name`. `statement` allows its updates.
    #[track_caller]
    fn start(folder: &Path, name: &str, statement: &str) -> Self {
        let port = ports::free("127.0.0.1".parse().unwrap()).unwrap().plain;
        let zone =
            "$TTL 60\n@ SOA ns.elsewhere. hostmaster 7 3600 600 86400 60\n@ NS ns.elsewhere.\n";
        fs::write(folder.join("zone"), zone).unwrap();
        let [key, secret] = KEY;
        let (algorithm, key) = key.split_once(':').unwrap();
        let configuration = format!(
            "key \"{key}\" {{ algorithm {algorithm}; secret \"{secret}\"; }};
             options {{ directory \".\"; pid-file \"named.pid\"; session-keyfile \"session.key\";
                 managed-keys-directory \".\"; recursion no; dnssec-validation no; check-names primary ignore;
                 listen-on-v6 {{ none; }}; listen-on port {port} {{ 127.0.0.1; }}; }};
             controls {{ }};
             zone \"{name}\" {{ type primary; file \"zone\"; {statement} }};"
        );
        let child = named(folder, &configuration);
        let own = Self { port, _child: child };
        let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        wait_for("named is running", log, || log().contains("running\n").then_some(()));
        own
    }

    fn target(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The address records in a transfer of the zone, each as `name TTL address`.
    #[track_caller]
    fn addresses(&self, room: &Room, zone: &str) -> BTreeSet<String> {
        let mut command = Command::new("dig");
        command.args(["@127.0.0.1", "-p", &self.port.to_string(), "+noall", "+answer", "+onesoa"]);
        command.args([zone, "AXFR"]);
        let done = Running::start(command, room.path()).finish().exits_with(0);
        let fields = done.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let addresses = fields.filter(|fields| fields.get(3) == Some(&"A"));
        addresses.map(|fields| format!("{} {} {}", fields[0], fields[1], fields[4])).collect()
    }
}

/// Makes the commands for a zone of 4,000 hosts and gives them to `nsupdate`.
#[track_caller]
fn update(room: &Room, bind: &UpdatedBind, zone: &str, further: &[&str]) -> Done {
    let make = ["make", "zone", zone, "--records", "4000", "--ttl", "7s", "--format", "nsupdate"];
    let target = bind.target();
    let rest = ["--server", &target, "--output", "updates", "--force"];
    room.dnslab(&[&make[..], &rest].concat()).exits_with(0);
    let mut command = Command::new("nsupdate");
    command.args(["-v"]).args(further).arg("updates");
    Running::start(command, room.path()).finish()
}

/// The hosts that a transfer should show; `below` is the zone's name.
fn hosts(below: &str) -> BTreeSet<String> {
    let address = |number: u32| format!("10.0.{}.{}", number / 256, number % 256);
    let host = |number: u32| format!("host-{number:06}.{below} 7 {}", address(number));
    (1..=4_000).map(host).chain([format!("ns.{below} 7 192.0.2.53")]).collect()
}

/// dnslab then knows only the zone, and gets an answer to every query.
#[test]
fn all_records_are_there_and_are_answered() {
    let room = Room::with_load();
    let bind = UpdatedBind::start(room.path(), "example.test", "allow-update { 127.0.0.1; };");
    update(&room, &bind, "example.test", &[]).exits_with(0);
    assert!(bind.addresses(&room, "example.test") == hosts("example.test."));
    // Repeating it is no error, and changes nothing.
    update(&room, &bind, "example.test", &[]).exits_with(0);
    assert!(bind.addresses(&room, "example.test") == hosts("example.test."));

    let target = bind.target();
    let load = ["load", &target, "--zone", "example.test", "--records", "4000"];
    let rest = ["--duration", "300ms", "--warm-up", "100ms"];
    room.dnslab(&[&load[..], &rest].concat()).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    let counters = &measured(&record).counters;
    assert!(counters.outcomes.answered > 0, "{counters:?}");
    assert_eq!(counters.answers.wrong, 0, "{counters:?}");
}

/// A signature takes room in a message, and a name may have characters with a meaning to `nsupdate`.
#[test]
fn signed_updates_of_a_zone_with_an_odd_name() {
    let room = Room::quiet();
    // The policy is the one of docs/LABORATORY.md.
    let policy = "update-policy { grant updater zonesub ANY; };";
    let bind = UpdatedBind::start(room.path(), r"a\;b.x\032y", policy);
    let refused = update(&room, &bind, r"a\;b.x\032y", &[]);
    assert!(refused.stderr.contains("update failed: REFUSED"), "{refused}");
    let key = KEY.join(":");
    update(&room, &bind, r"a\;b.x\032y", &["-y", &key]).exits_with(0);
    assert!(bind.addresses(&room, r"a\;b.x\032y.") == hosts(r"a\;b.x\032y."));
}
