//! Zone files as BIND reads them: each record that BIND serves of a file, `dnslab serve` serves of it.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

use dnslab_lab::ports;

use crate::processes::wait_for;
use crate::room::Room;
use crate::running_server::named;

const BEGIN: &str = "$TTL 1h\n@ IN SOA ns hostmaster ( 2024010101 3h ; refresh\n 30M 2w 1D )\n \
    IN NS ns\nns IN A 192.0.2.1\n";

/// Every type that BIND knows by name, and the forms that some of them have.
const TYPES: &str = r#"
spf SPF "v=spf1 -all" more
kx ( 5m KX ; a comment
  10
  ns )
 IN 10m TXT "the owner of before"
px PX 10 a b.
af AFSDB 1 ns
rt RT 5 ns
x25 X25 311061700956
isdn ISDN "150862028003217" "004"
isdn2 ISDN 150862028003217
gpos GPOS -32.6882 116.8652 10.0
uri URI 10 1 "https://x.example/a\"b\\c"
loc LOC 52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m
loc2 LOC 42 N 71 W 0
loc3 LOC 42 21 54.5 N 71 06 18 W -24m 30m
loc4 LOC 42 21 54.5 S 71 06 18 W 4000000.55m 0.30m 20000000.00m
apl APL 1:192.168.32.0/21 !1:192.168.38.0/28 2:ff00::/8
aplempty APL
cert CERT PGP 0 0 AQIDBA==
cert2 CERT 1 12345 RSASHA256 AQID BA==
smimea SMIMEA 3 0 0 aa bb
hip HIP 2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc5EMzxTs9LBPCIkOFH8cIvM4p rvs.example. rvs2
nid NID 10 0014:4fff:ff20:ee64
l32 L32 10 10.1.2.0
l64 L64 10 2001:0DB8:1140:1000
lp LP 10 l64
eui48 EUI48 00-00-5e-00-53-2a
eui64 EUI64 00-00-5e-ef-10-00-00-2a
csync CSYNC 66 3 A NS AAAA CAA
dlv DLV 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118
ta TA 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118
talink TALINK a b
ninfo NINFO "zs" b
rkey RKEY 0 0 1 AQIDBA==
key KEY 256 3 5 AQIDBA==
dhcid DHCID AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=
avc AVC "app-name:WOLFGANG"
resinfo RESINFO qnamemin
wallet WALLET BTC x
nsap NSAP 0x47.0005.80.005a00.0000.0001.e133.ffffff000161.00
nsapptr NSAP-PTR ns
amt0 AMTRELAY 0 1 0 .
amt1 AMTRELAY 10 0 1 192.0.2.1
amt2 AMTRELAY 10 0 2 2001:db8::1
amt3 AMTRELAY 10 1 3 ns
sink SINK 1 0 0
ipseck IPSECKEY 10 1 2 192.0.2.38 AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ==
ipseck3 IPSECKEY 10 3 2 ns AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ==
unk TYPE65280 \# 4 0A000001
known A \# 4 0A000001
knownmx MX \# 3 000a 00
knownspf SPF \# 2 0161
caa CAA 0 issue "ca.example"
svcb SVCB 1 . alpn=h2,h3 port=8443
https HTTPS 1 . alpn="h2"
hinfo HINFO PC "x y"
minfo MINFO a b
rp RP mail.example.org. txt
naptr NAPTR 100 50 "s" "http+I2L" "" _x._tcp
sshfp SSHFP 2 1 123456789abcdef67890123456789abcdef67890
tlsa TLSA 3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
openpgp OPENPGPKEY AQIDBA==
dsync DSYNC CDS NOTIFY 5300 ns
$ORIGIN below
kx KX 10 ns
 KX 20 @
"#;

const UNITS: &str = "a 1w2d3h4m5s A 192.0.2.1\nb IN 30M A 192.0.2.2\n1h 2H IN A 192.0.2.3\n\
    c 4294967295 A 192.0.2.4\n$ttl 2D\nd A 192.0.2.5\n 7 TXT x\ne A 192.0.2.6\n";

const GENERATED: &str = r#"$GENERATE 1-3 a$ A 10.0.0.$
$GENERATE 0-10/5 b${1,3,d} 7m IN MX "10 mail$"
$GENERATE 10-11 c${0,4,x} CNAME x${-5,0,X}.y
$GENERATE 1-2 i$ TXT "a b$"
$GENERATE 9-10 $$j$\$ CNAME x${0,3,o}.y
$GENERATE 7-7 @ TXT x$
$GENERATE 300-301 ${0,8,n}e PTR h$
$GENERATE 300-301 ${0,5,N}.f PTR h$
$GENERATE 300-300 ${0,0,n}.g PTR h$
$GENERATE 1-2 k$ KX "1 x$"
"#;

/// The SOA record alone has the name of the zone, and there is no TTL but its own minimum.
const BARE: &str = "example.org. IN SOA ns hostmaster ( 1 10800 1800 1209600 86400 )\n\
    example.org. IN NS ns\nns.example.org. 5 IN A 192.0.2.1\nwww AAAA 2001:db8::1\n";

/// What `named-compilezone` understands of a file: a name and a type a line.
fn listed(folder: &Path, zone: &str) -> BTreeSet<String> {
    let output = Command::new("named-compilezone")
        .args(["-i", "none", "-k", "ignore", "-f", "text", "-F", "text", "-s", "full"])
        .args(["-o", "-", zone, zone])
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("named-compilezone: {error}: apt-get install bind9-utils"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{zone}: {text}");
    let question = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.get(2) == Some(&"IN")).then(|| format!("{} {}", words[0], words[3]))
    };
    text.lines().filter_map(question).collect()
}

/// All records of these questions, with their data in the form of the wire.
fn asked(folder: &Path, server: SocketAddr, questions: &BTreeSet<String>) -> Vec<String> {
    let list: Vec<&str> = questions.iter().map(String::as_str).collect();
    fs::write(folder.join("questions"), list.join("\n") + "\n").unwrap();
    let output = Command::new("dig")
        .args([format!("@{}", server.ip()), "-p".to_owned(), server.port().to_string()])
        .args(["+norecurse", "+noall", "+answer", "+unknownformat", "-f", "questions"])
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("dig: {error}: apt-get install bind9-dnsutils"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let in_one_line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut records: Vec<String> =
        text.lines().map(in_one_line).filter(|line| !line.is_empty()).collect();
    records.sort();
    records
}

#[test]
fn records_are_those_of_bind() {
    let room = Room::quiet();
    let folder = room.path();
    let free = || {
        let port = ports::free(Ipv4Addr::LOCALHOST.into()).expect("loopback has free ports").plain;
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    };
    let zones = [
        ("types.test", format!("{BEGIN}{TYPES}")),
        ("units.test", format!("{BEGIN}{UNITS}")),
        ("generated.test", format!("{BEGIN}{GENERATED}")),
        ("example.org", BARE.to_owned()),
    ];
    let mut statements = String::new();
    for (name, text) in &zones {
        room.write(name, text);
        statements.push_str(&format!("zone \"{name}\" {{ type primary; file \"{name}\"; }};\n"));
    }
    let bind = free();
    let configuration = format!(
        "options {{ directory \".\"; pid-file \"named.pid\"; session-keyfile \"session.key\"; recursion no;
             managed-keys-directory \".\"; dnssec-validation no; check-names primary ignore; check-integrity no;
             listen-on-v6 {{ none; }}; listen-on port {} {{ {}; }}; }};
         controls {{ }};
         {statements}",
        bind.port(),
        bind.ip(),
    );
    let _named = named(folder, &configuration);
    let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    for (name, _) in &zones {
        let questions = listed(folder, name);
        let one = BTreeSet::from([format!("{name} SOA")]);
        wait_for("named answers", log, || (asked(folder, bind, &one).len() == 1).then_some(()));
        let expected = asked(folder, bind, &questions);
        assert!(expected.len() >= questions.len(), "{name}: {expected:#?}");

        let own = free();
        let (listen, origin) = (own.to_string(), ["--origin", name]);
        // That of the last one is the owner of its SOA record.
        let origin = if *name == "example.org" { &[][..] } else { &origin };
        let running =
            room.start(&[&["serve", "--zone", name, "--listen", &listen], origin].concat());
        let is_ready = || running.stderr().contains("serving ").then_some(());
        wait_for("it serves", || running.so_far(), is_ready);
        assert_eq!(asked(folder, own, &questions), expected, "{name}");
    }
}

#[track_caller]
fn check_fault(line: &str, expected: &str) {
    let room = Room::quiet();
    room.write("zone", &format!("{BEGIN}{line}\n"));
    let done = room.dnslab(&["serve", "--zone", "zone", "--origin", "x", "--listen", "[::1]:0"]);
    done.exits_with(2).errors(1).complains("zone file: line 6: ").complains(expected);
}

#[test]
fn faults_name_the_word() {
    check_fault("a 1y A 192.0.2.1", "`1y` is no TTL");
    check_fault(
        "$TTL soon",
        "`soon` is no TTL: write seconds, or numbers with the units s, m, h, d and w",
    );
    check_fault("a BOGUS 1", "`BOGUS` is no record type that is known: write TYPE and its number");
    check_fault("a NXT x A", "the data of `NXT` are read as");
    check_fault("a KX ten ns", "KX: `ten` is not a number of 16 bits");
    check_fault("$GENERATE 3-1 a$ A 192.0.2.$", "$GENERATE is followed by a range such as 1-10");
    check_fault("$GENERATE 1-3 a$ A 192.0.2.${0,0,z}", "write `$` or `${OFFSET,WIDTH,BASE}`");
}
