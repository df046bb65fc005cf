//! Addresses that need more than their digits: link-local ones, and the further ones of a name.

use crate::command::{Done, Running, program, unshare};
use crate::evidence::{measured, valid_records};
use crate::room::Room;
use crate::running_server::{queries, zone};

/// Calls the shell script in namespaces of its own. `$0` is dnslab, and what follows it are the words of a short load
/// but for its target.
fn run(room: &Room, namespaces: &[&str], script: &str) -> Done {
    room.write("zone", &zone());
    room.write("queries", &queries());
    let mut command = unshare();
    command.args(namespaces).args(["sh", "-c", script]).arg(program());
    command.args([
        "--queries",
        "queries",
        "--clients",
        "2",
        "--duration",
        "200ms",
        "--warm-up",
        "0s",
    ]);
    Running::start(command, room.path()).finish()
}

/// Two ends of a link, each with an address that is that of its link alone.
const LINK: &str = "
    ip link set lo up && ip link add left type veth peer name right
    ip -6 address add fe80::1/64 dev left nodad && ip -6 address add fe80::2/64 dev right nodad
    ip link set left up && ip link set right up
    # A link that is up has its routes a moment later.
    until ip -6 route show dev right | grep -q fe80; do sleep 0.1; done
    serve() {
        \"$dnslab\" serve --zone zone --listen \"$1\" 2> served & server=$!
        until grep -q '^serving' served; do kill -0 $server || exit 99; sleep 0.05; done
    }
    dnslab=$0
";

#[test]
fn link_local_servers_are_asked_on_their_link() {
    let room = Room::with_load();
    let script = format!(
        "{LINK}
        serve '[fe80::1%left]:53'
        number=$(ip -o link show right | cut -d: -f1)
        for target in fe80::1%right '[fe80::1%right]' '[fe80::1%right]:53' \"fe80::1%$number\" \"[fe80::1%$number]:53\"; do
            for transport in udp tcp; do
                \"$dnslab\" load \"$target\" \"$@\" --transport $transport || {{ code=$?; kill $server; exit $code; }}
            done
        done
        \"$dnslab\" load fe80::1%right \"$@\" --sources fe80::2 || {{ kill $server; exit 98; }}
        \"$dnslab\" load fe80::1 \"$@\" 2> without
        \"$dnslab\" load fe80::1%absent \"$@\" 2> absent
        \"$dnslab\" serve --zone zone --listen '[fe80::1%absent]:53' 2> listen
        kill $server"
    );
    run(&room, &["--net"], &script).exits_with(0);
    let folders = crate::room::folders(&room.path().join("results"));
    assert_eq!(folders.len(), 11);
    for folder in folders {
        let results = dnslab_results::ResultsDirectory::open(&folder).unwrap();
        let record = valid_records(&results, 1).remove(0);
        assert!(measured(&record).counters.outcomes.answered > 0);
        // The experiment as it was run names the interface as the user did.
        let text = results.written("experiment.toml").unwrap();
        assert!(text.contains("address = \"fe80::1%"), "{text}");
    }
    for (file, expected) in [
        ("without", "`fe80::1` is a link-local address"),
        ("absent", "this host has no interface `absent`"),
        ("listen", "this host has no interface `absent`"),
    ] {
        let said = std::fs::read_to_string(room.path().join(file)).unwrap();
        assert!(said.contains(expected), "{file}: {said}");
    }
}

/// The names of a host are those of `/etc/hosts`, which the namespace has for itself.
#[test]
fn the_address_that_answers_is_taken() {
    for (first, second) in [("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1")] {
        let room = Room::with_load();
        room.write("hosts", &format!("{first} twice.test\n{second} twice.test\n"));
        let script = "
            mount --bind hosts /etc/hosts && ip link set lo up || exit 99
            dnslab=$0
            \"$dnslab\" serve --zone zone --listen 127.0.0.2:5300 2> served & server=$!
            until grep -q '^serving' served; do kill -0 $server || exit 98; sleep 0.05; done
            \"$dnslab\" load twice.test:5300 \"$@\"; code=$?
            kill $server; exit $code";
        let done = run(&room, &["--net", "--mount"], script).exits_with(0);
        let taken =
            "note: `twice.test` is asked at 127.0.0.2, since it does not answer at 127.0.0.1";
        // Whatever the order of the file, the system prefers the address from which it would ask (RFC 6724, section 6).
        assert!(done.stdout.contains(taken), "{done}");
        let record = valid_records(&room.results(), 1).remove(0);
        assert!(record.load.target.starts_with("127.0.0.2:5300"), "{}", record.load.target);
    }
}
