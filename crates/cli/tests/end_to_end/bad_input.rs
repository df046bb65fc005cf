//! Bad input: the exit code is 2, every fault is shown at once, nothing is started.

use dnslab_record::{RECORD_FORMAT, SESSION_FORMAT};

use crate::command::Done;
use crate::evidence::valid_records;
use crate::room::Room;

/// Calls the command, which must exit with 2, show one error for each fault, and say all of `texts`. It must
/// not begin an experiment.
#[track_caller]
fn check(arguments: &[&str], faults: usize, texts: &[&str]) {
    check_in(&Room::quiet(), arguments, faults, texts);
}

/// [`check`] in a room with files.
#[track_caller]
fn check_in(room: &Room, arguments: &[&str], faults: usize, texts: &[&str]) {
    let mut done: Done = room.dnslab(arguments).exits_with(2).errors(faults);
    for text in texts {
        done = done.complains(text);
    }
    assert!(room.results_so_far().is_none(), "an experiment was begun: {done}");
}

#[test]
fn all_faults_of_an_experiment_are_shown_with_their_lines() {
    let room = Room::quiet();
    let text = r#"name = "x"
baseline = "upd"

[load]
clinets = 4
outstanding = 100
rate = 50_000
duration = "10"

[repeat]
runs = 0

[[variant]]
name = "udp"
load.transport = "carrier pigeon"
"#;
    room.write("faulty.toml", text);
    let texts = [
        "faulty.toml:2:",
        "faulty.toml:5:",
        "did you mean `load.clients`",
        "faulty.toml:7:",
        "outstanding",
        "faulty.toml:8:",
        "faulty.toml:11:",
        "faulty.toml:15:",
    ];
    check_in(&room, &["run", "./faulty.toml"], 6, &texts);
}

#[test]
fn what_the_embedded_server_would_refuse_is_refused_by_the_plan() {
    let sets = ["--set", "server.delay=xx", "--set", "server.loss=101%"];
    for command in ["plan", "run"] {
        let words: Vec<&str> = [command, "encryption"].into_iter().chain(sets).collect();
        check(&words, 2, &["delay `xx`: one of `5ms`", "loss `101%`: a share between 0 and 1"]);
    }
    // The server itself uses the same words.
    let serve = ["serve", "--zone", "x", "--delay", "xx"];
    check(&serve, 1, &["delay `xx`: one of `5ms`"]);
}

#[test]
fn an_experiment_that_is_not_there_is_named() {
    check(&["run", "encrypton"], 1, &["`encrypton`", "encryption"]);
    check(&["run", "./absent.toml"], 1, &["absent.toml", "No such file"]);
}

#[test]
fn arguments_that_clash_or_lack_something_are_named() {
    check(&["load"], 1, &["<TARGET>"]);
    check(&["load", "127.0.0.1", "--clients"], 1, &["--clients <N>"]);
    check(
        &["load", "127.0.0.1", "--transport", "quic"],
        1,
        &["`quic`", "udp, tcp, dot, doh2, doq"],
    );
    check(&["load", "127.0.0.1", "--duration", "10"], 1, &["10", "unit"]);
    check(&["load", "127.0.0.1:port"], 1, &["`port`"]);
    check(&["load", "::1", "--rate", "steps:5"], 1, &["`steps:5` is no rate", "steps:10000,"]);
    check(&["load", "::1", "--padding=x"], 1, &["load.padding", "a number of octets"]);
    check(&["load", "::1", "--resumption", "no"], 1, &["--resumption <on|off>"]);
    check(&["load", "::1", "--http-method", "get"], 1, &["load.http_method", "doh2, doh3"]);
    check(&["load", "::1", "--sources", "127.0.0.1"], 1, &["load.sources", "address family"]);
    check(&["load", "::1", "--types", "A", "--queries", "x"], 2, &["--types", "--queries"]);
    let both = ["load", "127.0.0.1", "--rate", "5", "--outstanding", "5"];
    check(&both, 1, &["exclude each other", "--rate=5", "--outstanding=5"]);
    check(&["load", "127.0.0.1", "--pace", "poisson"], 1, &["--pace=poisson", "load.rate"]);
    check(&["run", "--set", "load.rate=5", "--set", "load.outstanding=6"], 1, &["outstanding"]);
    check(&["run", "--limit", "answered=1%"], 1, &["`answered`", "answered>99.9%"]);
    check(&["run", "--limit", "answer=1%"], 1, &["`answer`", "cpu_per_query"]);
    check(&["run", "--limit", "qps"], 1, &["p99=10%", "p99<10ms"]);
    check(&["run", "--set", "server.delai=5ms"], 1, &["did you mean `server.delay`"]);
    check(&["doctor", "--calibrated"], 1, &["--calibrate"]);
}

#[test]
fn a_load_over_tls_says_how_to_verify() {
    check(&["load", "127.0.0.1", "--transport", "dot"], 1, &["--authority", "--insecure"]);
}

/// Neither on the terminal nor in the results.
#[test]
fn the_secret_of_a_key_is_not_told() {
    let key = ["--tsig", "md5:a.key:c2VjcmV0"];
    let done = Room::quiet().dnslab(&[&["load", "127.0.0.1"], &key[..]].concat());
    let done = done.exits_with(2).complains("`md5` is not supported").complains("md5:a.key:****");
    assert!(!done.stderr.contains("c2VjcmV0"), "{done}");
}

#[test]
fn addresses_that_the_host_has_not_are_no_sources() {
    // For documentation only (RFC 5737).
    let foreign = ["run", "--set", "server.address=127.0.0.1", "--set", "load.sources=192.0.2.1"];
    check(&foreign, 1, &["cannot send from 192.0.2.1", "ip address"]);
}

#[test]
fn too_many_clients_are_too_many() {
    check(&["run", "--set", "load.clients=4_000_000"], 1, &["load.clients", "1,000,000"]);
    // The file may say so, but this process may not open so many.
    let million = ["run", "--set", "load.clients=1_000_000"];
    check(&million, 1, &["1000000 sockets open at once", "fewer clients"]);
}

#[test]
fn a_query_file_is_refused_with_the_line() {
    let room = Room::quiet();
    room.write("queries", "host1.example.test A\nhost2.example.test\nhost3.example.test B\n");
    let load = ["load", "127.0.0.1:1", "--queries"];
    let texts = ["line 2: `host2.example.test` has no type", "line 3: `B` is no query type"];
    check_in(&room, &[&load[..], &["queries"]].concat(), 1, &texts);
    check_in(&room, &[&load[..], &["absent"]].concat(), 1, &["there is no query file `absent`"]);
    let texts = ["the query file `-` would be standard input", "write it into a file first"];
    check_in(&room, &[&load[..], &["-"]].concat(), 1, &texts);
    room.write("empty", "; nothing but a comment\n");
    check_in(&room, &[&load[..], &["empty"]].concat(), 1, &["holds no query"]);
}

#[test]
fn a_folder_that_is_no_experiment_cannot_be_resumed() {
    let room = Room::quiet();
    for arguments in [["run", "--resume", "."], ["run", "--resume", "absent"]] {
        let done = room.dnslab(&arguments);
        done.exits_with(2).errors(1).complains("is not a results directory");
    }
    let done = room.dnslab(&["report", "."]);
    done.exits_with(2).errors(1).complains("is not a results directory");
}

#[test]
fn results_of_a_newer_format_are_refused() {
    let room = Room::with_load();
    let results = room.short_results(1);
    valid_records(&results, 2);
    let path = results.path().to_str().expect("a temporary folder has a plain name");
    let files = [("runs/udp-1/record.json", RECORD_FORMAT), ("session.json", SESSION_FORMAT)];
    for (name, format) in files {
        let file = results.path().join(name);
        let text = std::fs::read_to_string(&file).unwrap();
        let newer = text.replacen(&format!("\"format\": {format},"), "\"format\": 7,", 1);
        assert!(text != newer, "{name} has no format");
        std::fs::write(&file, newer).unwrap();
        for arguments in [["report", path].as_slice(), &["run", "--resume", path]] {
            let done = room.dnslab(arguments).exits_with(1).errors(1);
            let done = done.complains(name).complains("has format 7");
            done.complains(&format!("this dnslab reads up to {format}: use a newer one"));
        }
    }
}
