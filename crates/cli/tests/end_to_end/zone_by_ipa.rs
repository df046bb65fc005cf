//! The script for FreeIPA, run by a real shell and a real Python, with a stand-in for `ipa`.
//!
//! No FreeIPA runs in a test. The stand-in follows FreeIPA's own sources in how `ipa console` runs a file
//! (`ipalib/cli.py`) and what `batch` returns (`ipaserver/plugins/batch.py`). It refuses options that `ipa`
//! 4.9 does not have. What only a FreeIPA can tell is in `docs/LABORATORY.md`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::command::{Done, Running};
use crate::room::Room;

/// Stands in for `ipa`: writes each command as a line to the file `asked`.
const IPA: &str = r#"#!/usr/bin/python3
import optparse, sys

OPTIONS = {
    'dnszone-add': ['name-server', 'skip-nameserver-check!', 'admin-email', 'refresh', 'retry',
                    'expire', 'minimum', 'ttl', 'default-ttl'],
    'dnsrecord-add': ['a-rec', 'ns-rec', 'ttl', 'force!'],
}

def note(*words):
    with open('asked', 'a') as asked:
        print(*words, file=asked)

class Commands:
    def batch(self, *methods):
        note('batch of', len(methods))
        results = []
        for method in methods:
            (zone, name), options = method['params']
            note(method['method'], zone, name, options['arecord'][0], options['dnsttl'])
            fails = name == 'host-000700'
            results.append({'error': 'no such luck' if fails else None})
        return {'count': len(results), 'results': results}

class Api:
    Command = Commands()

command, words = sys.argv[1], sys.argv[2:]
if command == 'console':
    local = dict(api=Api(), __builtins__=__builtins__)
    exec(compile(open(words[0]).read(), words[0], 'exec'), {}, local)
else:
    parser = optparse.OptionParser()
    for option in OPTIONS[command]:
        flag = option.endswith('!')
        parser.add_option('--' + option.rstrip('!'), action='store_true' if flag else 'store')
    options, names = parser.parse_args(words)
    given = ['%s=%s' % (key, value) for key, value in sorted(vars(options).items()) if value]
    note(command, *names, *given)
"#;

/// Makes a script and runs it. Returns how it ended, and what was asked of `ipa`.
#[track_caller]
fn run(zone: &str, records: &str, further: &[&str]) -> (Done, String) {
    let room = Room::quiet();
    let ipa = room.write("ipa", IPA);
    fs::set_permissions(ipa, Permissions::from_mode(0o755)).unwrap();
    let make = ["make", "zone", zone, "--records", records, "--ttl", "7s", "--format", "ipa"];
    room.dnslab(&[&make[..], &["--output", "script"], further].concat()).exits_with(0);
    let mut command = Command::new("sh");
    let path = std::env::var("PATH").unwrap_or_default();
    command.arg("script").env("PATH", format!("{}:{path}", room.path().display()));
    let done = Running::start(command, room.path()).finish();
    (done, fs::read_to_string(room.path().join("asked")).unwrap_or_default())
}

#[test]
fn records_go_in_batches() {
    let (done, asked) = run("example.test", "600", &["--batch", "250"]);
    done.exits_with(0).prints("600 records added");
    let lines: Vec<&str> = asked.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "dnszone-add example.test. admin_email=hostmaster.example.test. default_ttl=7 expire=86400 \
             minimum=7 name_server=ns.example.test. refresh=3600 retry=3600 \
             skip_nameserver_check=True ttl=7",
            "dnsrecord-add example.test. ns a_rec=192.0.2.53 ttl=7",
            "dnsrecord-add example.test. @ force=True ns_rec=ns.example.test.",
            "batch of 250",
            "dnsrecord_add example.test. host-000001 10.0.0.1 7",
        ],
        "{asked}"
    );
    assert_eq!(lines.last(), Some(&"dnsrecord_add example.test. host-000600 10.0.2.88 7"));
    assert_eq!(lines.len(), 3 + 3 + 600, "{asked}");
}

#[test]
fn a_batch_of_one_is_a_command() {
    let (done, asked) = run("example.test", "3", &["--batch", "1"]);
    done.exits_with(0);
    assert!(asked.ends_with("\ndnsrecord-add example.test. host-000003 a_rec=10.0.0.3 ttl=7\n"));
    assert_eq!(asked.lines().count(), 3 + 3, "{asked}");
}

#[test]
fn a_record_that_is_refused_ends_the_script() {
    let (done, asked) = run("example.test", "2000", &[]);
    done.exits_with(1).complains("host-000700: no such luck");
    assert_eq!(asked.lines().count(), 3 + 2 * 501, "{asked}");
}

#[test]
fn a_name_is_no_code() {
    let (done, asked) = run("a'`$x\"b.y", "3", &[]);
    done.exits_with(0);
    let last = asked.lines().last();
    assert_eq!(last, Some("dnsrecord_add a'`\\$x\\\"b.y. host-000003 10.0.0.3 7"), "{asked}");
}
