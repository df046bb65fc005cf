//! The LDIF in the directory server of FreeIPA (389 Directory Server), with the needed part of FreeIPA's
//! schema.
//!
//! The directory server knows only its system-wide folders, so it runs in namespaces: its files are in
//! memory, and its network is its own loopback. The kernel ends it with the script, whatever ends that.

use std::fs;
use std::process::Command;

use crate::command::{Done, Running, unshare};
use crate::room::Room;

/// The classes and attributes, with the object identifiers of FreeIPA's `60ipadns.ldif`.
const SCHEMA: &str = include_str!("../freeipa_dns_schema.ldif");

/// The entry above the zones that FreeIPA has once its DNS is set up.
const CONTAINER: &str = "dn: cn=dns,dc=example,dc=test\nobjectClass: nsContainer\ncn: dns\n";

/// For `dscreate`.
const INSTANCE: &str = "[general]
full_machine_name = localhost
strict_host_checking = False
selinux = False
[slapd]
instance_name = dnslab
port = 3890
root_password = secret-of-the-test
self_sign_cert = False
[backend-userroot]
suffix = dc=example,dc=test
create_suffix_entry = True
";

/// Starts the directory server, then runs the file `then`.
const SCRIPT: &str = r#"set -eu
mount -t proc proc /proc
ip link set lo up
mkdir own
mount -t tmpfs tmpfs own
for folder in /etc/dirsrv /etc/default /var/lib/dirsrv /var/log/dirsrv; do
    mkdir -p "own$folder"
    cp -a "$folder/." "own$folder"
    mount --bind "own$folder" "$folder"
done
cp freeipa.ldif /etc/dirsrv/schema/60ipadns.ldif
chmod 644 /etc/dirsrv/schema/60ipadns.ldif
mount -t tmpfs tmpfs /run
mkdir -p /run/dirsrv /run/lock/dirsrv
mount -t tmpfs tmpfs /dev/shm
# Without it, dscreate starts the server itself.
sed 's/^with_systemd *=.*/with_systemd = 0/' /usr/share/dirsrv/inf/defaults.inf > own/defaults.inf
mount --bind own/defaults.inf /usr/share/dirsrv/inf/defaults.inf
dscreate from-file instance.inf >&2
. ./then
"#;

/// Options of the client programs: name and password, over the own loopback.
const LDAP: &str = "-x -H ldap://127.0.0.1:3890 -D 'cn=Directory Manager' -w secret-of-the-test";

/// Runs `then` in a folder with the zone's LDIF, beside a directory server.
#[track_caller]
fn in_directory(zone: &str, records: &str, then: &str) -> Done {
    let room = Room::quiet();
    let make = ["make", "zone", zone, "--records", records, "--ttl", "7s", "--format", "ldif"];
    let rest = ["--suffix", "dc=example,dc=test", "--output", "zone.ldif"];
    room.dnslab(&[&make[..], &rest].concat()).exits_with(0);
    for (name, text) in [
        ("freeipa.ldif", SCHEMA),
        ("container.ldif", CONTAINER),
        ("instance.inf", INSTANCE),
        ("script", SCRIPT),
        ("then", &then.replace("LDAP", LDAP)),
    ] {
        fs::write(room.path().join(name), text).unwrap();
    }
    let mut command = unshare();
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "script"]);
    Running::start(command, room.path()).finish()
}

/// Every record is added, and is found by what bind-dyndb-ldap looks for.
#[test]
fn the_directory_takes_every_entry() {
    let then = r#"
ldapadd LDAP -f container.ldif > /dev/null
ldapadd LDAP -f zone.ldif > added
grep -c '^adding' added
count() { ldapsearch LDAP -LLL -o ldif-wrap=no -b cn=dns,dc=example,dc=test "$@" | grep -c '^dn: '; }
count '(objectClass=idnsZone)'
count '(&(objectClass=idnsRecord)(aRecord=10.*))'
count '(&(objectClass=idnsRecord)(aRecord=*)(dNSTTL=7))'
ldapsearch LDAP -LLL -o ldif-wrap=no -b cn=dns,dc=example,dc=test '(idnsName=host-001500)'
ldapsearch LDAP -LLL -o ldif-wrap=no -b cn=dns,dc=example,dc=test '(objectClass=idnsZone)'
"#;
    let done = in_directory("example.test", "1500", then).exits_with(0);
    let mut parts = done.stdout.splitn(5, '\n');
    // All are added; the zone, the hosts, and the hosts with their name server are found.
    let counts: Vec<&str> = parts.by_ref().take(4).collect();
    assert_eq!(counts, ["1502", "1", "1500", "1501"], "{done}");
    let entries = parts.next().unwrap_or_default();
    let base = "idnsname=example.test.,cn=dns,dc=example,dc=test";
    for line in [
        format!("dn: idnsname=host-001500,{base}"),
        "aRecord: 10.0.5.220".to_owned(),
        format!("dn: {base}"),
        "idnsZoneActive: TRUE".to_owned(),
        "idnsSOAmName: ns.example.test.".to_owned(),
        "idnsSOArName: hostmaster.example.test.".to_owned(),
        "idnsSOAminimum: 7".to_owned(),
        "nSRecord: ns.example.test.".to_owned(),
    ] {
        // An attribute's name has the case in which it was written, a class the case of the schema.
        let found = entries.lines().any(|attribute| attribute.eq_ignore_ascii_case(&line));
        assert!(found, "no `{line}`: {done}");
    }
}

/// Characters with a meaning in a distinguished name or in LDIF come back unchanged.
#[test]
fn odd_names_are_kept() {
    let then = r#"
ldapadd LDAP -f container.ldif > /dev/null
ldapadd LDAP -f zone.ldif > /dev/null
ldapsearch LDAP -LLL -o ldif-wrap=no -b cn=dns,dc=example,dc=test '(idnsName=*)' idnsName
"#;
    let label = "long-".repeat(12);
    let zone = format!(r#"<a,b\.c\;+"=\\d.{label}.{label}"#);
    let done = in_directory(&zone, "2", then).exits_with(0);
    let values: Vec<&str> =
        done.stdout.lines().filter_map(|line| line.strip_prefix("idnsName: ")).collect();
    assert_eq!(values, ["ns", "host-000001", "host-000002"], "{done}");
    // LDIF writes a value that begins with `<` in base64.
    let coded = done.stdout.lines().find_map(|line| line.strip_prefix("idnsName:: "));
    let shown = format!(r#"<a,b\.c\;+\"=\\d.{label}.{label}."#);
    assert_eq!(coded, Some(base64(&shown)).as_deref(), "{done}");
}

fn base64(text: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", "printf %s \"$0\" | base64 -w 0", text]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}
