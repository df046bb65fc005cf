//! Servers that others wrote, over transports where each has its peculiarities. Answers are counted on both
//! sides, if the server counts.

use std::process::Command;

use dnslab_record::{RunRecord, counter};
use rustix::process::Signal;

use crate::command::{Done, Running, cache, program};
use crate::evidence::{measured, valid_records};
use crate::processes::signal;
use crate::room::Room;

/// For a forwarder.
const UPSTREAM: &str = "upstream.kind = \"embedded\"\n";

/// Knot DNS 3.4, which `./test` has fetched.
const KNOT: &str = "server.kind = \"knot\"\nserver.root = \"knot-3.4\"\n";

/// `load` are further keys of the load.
fn run(room: &Room, server: &str, transport: &str, load: &str) -> Done {
    let load = format!(
        "load = {{ transport = \"{transport}\", duration = \"600ms\", warm_up = \"300ms\", {load} }}\n"
    );
    let variant = "repeat.runs = 1\n[[variant]]\nname = \"one\"\n";
    room.experiment(&format!("{server}{load}{variant}"));
    let mut command = Command::new(program());
    command.args(["run", "./experiment.toml"]).env("DNSLAB_CACHE", cache(&["knot-3.4"]));
    Running::start(command, room.path()).finish()
}

/// Every query is answered, by the server's own count too.
#[track_caller]
fn check(server: &str, transport: &str, load: &str) -> RunRecord {
    let room = Room::with_load();
    let done = run(&room, server, transport, load).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    let (mut asked, mut answered) = (0, 0);
    for counters in [&measured(&record).warm_up, &measured(&record).counters] {
        asked += counters.outcomes.due;
        answered += counters.outcomes.answered;
    }
    assert_eq!(answered, asked, "{done}");
    if let Some(counts) = &record.watched.counters {
        assert_eq!(counts.growth(counter::QUERIES), Some(asked), "{counts:?}{done}");
    }
    record
}

/// Some servers look only at the first query of a TLS record until more comes, so each query has its own
/// record.
#[test]
fn many_queries_at_a_time_over_tls() {
    for (server, upstream) in [("server.kind = \"nsd\"\n", ""), (KNOT, "")] {
        check(&format!("{server}{upstream}"), "dot", "clients = 4, outstanding = 20");
    }
    let dnsdist = format!("server.kind = \"dnsdist\"\n{UPSTREAM}");
    check(&dnsdist, "dot", "clients = 4, outstanding = 20");
}

/// The HTTP library of dnsdist 1.7 (h2o) refers to a dynamic table of header fields whatever the client says.
#[test]
fn dnsdist_over_https() {
    let dnsdist = format!("server.kind = \"dnsdist\"\n{UPSTREAM}");
    for method in ["get", "post"] {
        let load = format!("clients = 4, outstanding = 20, http_method = \"{method}\"");
        let record = check(&dnsdist, "doh2", &load);
        let connections = &measured(&record).warm_up.connections;
        assert_eq!((connections.opened, connections.lost), (4, 0), "{connections:?}");
    }
}

/// Refusals that begin in the middle of the load are shown with name, count and time.
#[test]
fn dnsdist_refuses_what_is_beyond_a_rate() {
    let extra =
        r#"server.extra = 'addAction(NotRule(MaxQPSRule(500)), HTTPStatusAction(503, "busy"))'"#;
    let dnsdist = format!("server.kind = \"dnsdist\"\n{UPSTREAM}{extra}\n");
    let load = "clients = 4, outstanding = 5";
    // Most queries are refused, which makes the run invalid unless that is allowed.
    let room = Room::with_load();
    run(&room, &dnsdist, "doh2", load).exits_with(3).prints("HTTP status 503");
    drop(room);
    let room = Room::with_load();
    let all_may_be_lost = format!("expect.lost_limit = \"100%\"\n{dnsdist}");
    let done = run(&room, &all_may_be_lost, "doh2", load).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    let (warm_up, counters) = (&measured(&record).warm_up, &measured(&record).counters);
    let refused = warm_up.outcomes.refused + counters.outcomes.refused;
    let refusals = measured(&record).http_refusals();
    let [(503, refusals)] = refusals[..] else { panic!("{refusals:?}{done}") };
    assert_eq!(refusals.count, refused, "{refusals:?}{done}");
    assert!(warm_up.outcomes.answered + counters.outcomes.answered >= 500, "{counters:?}{done}");
    assert!(refusals.first_ns > 0, "{refusals:?}{done}");
    done.prints("queries were refused (HTTP status 503, ");
}

/// Knot DNS allows 1,024 streams on a connection and never more. It also takes a token of its own for one of
/// another kind.
#[test]
fn knot_over_quic() {
    let record = check(KNOT, "doq", "clients = 2, outstanding = 9, workers = 1");
    let (warm_up, counters) = (&measured(&record).warm_up, &measured(&record).counters);
    let queries = warm_up.outcomes.answered + counters.outcomes.answered;
    let mut connections = warm_up.connections;
    connections.merge(&counters.connections);
    assert!(queries > 4 * 1024, "the load was too short to use a connection up: {queries}");
    // A connection need not be used up when the load ends.
    let most = connections.opened * 1024;
    assert!(
        queries <= most && connections.opened <= queries / 1024 + 2,
        "{queries} {connections:?}"
    );
    let open_at_end = connections.opened - connections.closed;
    assert!(open_at_end <= 2, "{connections:?}");
    assert_eq!(connections.lost, 0, "{connections:?}");
    // At most one handshake of each client began with a token before it was known that they fail.
    assert!(connections.failed <= 2, "{connections:?}");
    assert!(connections.resumed_handshakes > 0, "{connections:?}");
}

/// The window is larger than the server's socket buffer, and the server is away for a moment. The kernel's count
/// shows what was lost.
#[test]
fn a_window_that_no_socket_buffer_holds() {
    let default = std::fs::read_to_string("/proc/sys/net/core/rmem_default").unwrap();
    let default: u64 = default.trim().parse().unwrap();
    // Eight times its room, at 768 octets for a small query.
    let outstanding = 8 * default / 768 / 200;
    let room = Room::with_load();
    room.experiment(&format!(
        "server.kind = \"bind\"\nserver.threads = 1\nrepeat.runs = 1\n\
         load = {{ clients = 200, outstanding = {outstanding}, timeout = \"400ms\", duration = \"6s\", \
         warm_up = \"0s\" }}\n[[variant]]\nname = \"one\"\n"
    ));
    let running = room.start(&["run", "./experiment.toml"]);
    let (_, server) = room.wait_for_load(&running, |plan| plan.first());
    signal(server, Signal::STOP);
    std::thread::sleep(std::time::Duration::from_millis(100));
    signal(server, Signal::CONT);
    let done = running.finish().exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    let counters = &measured(&record).counters;
    assert!(counters.outcomes.timed_out > 0, "{counters:?}{done}");
    assert!(
        measured(&record).network.is_some_and(|drops| drops.udp_receive_buffer > 0),
        "{:?}{done}",
        measured(&record).network
    );
    // On a machine that does other things, too, the rate may have another bottleneck.
    let table = room.results().written("table.md").unwrap();
    let says = |text: &str| table.contains(text);
    assert!(says("socket buffer was full") || says("full sockets on this host dropped"), "{table}");
}

#[test]
fn more_at_a_time_than_knot_answers_over_quic() {
    let room = Room::quiet();
    let done = run(&room, KNOT, "doq", "clients = 2, outstanding = 20, connections = 2");
    done.exits_with(2)
        .errors(1)
        .complains("cannot be asked 10 queries at a time on one connection");
}
