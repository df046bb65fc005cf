//! The answers of two servers to the same queries, compared.

use std::fs::{self, File};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dnslab_capture::{CaptureWriter, Captured};
use dnslab_lab::{ServerKind, find};
use dnslab_record::{AnswerComparison, ClassCount, DifferenceClass};
use dnslab_wire::{Query, QueryOptions, Transport};
use domain::base::Name;
use domain::base::iana::Rtype;

use crate::command::{Done, guard};
use crate::evidence::{records, report_is_whole};
use crate::replay::capture;
use crate::room::Room;
use crate::running_server::{RunningBind, zone};

fn replay(room: &Room, target: &str, other: &str, further: &[&str]) -> Done {
    let words = ["replay", "capture.pcap", target, "--compare-answers", other];
    room.dnslab(&[&words[..], further].concat())
}

/// The one comparison of the results. Its counts add up.
#[track_caller]
fn comparison(room: &Room) -> AnswerComparison {
    let mut all = room.results().answer_comparisons().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(all.len(), 1, "{all:?}");
    let one = all.remove(0);
    assert_eq!(one.same + one.neither + one.differing(), one.compared, "{one:?}");
    one
}

fn class(comparison: &AnswerComparison, class: DifferenceClass) -> ClassCount {
    let found = comparison.classes.iter().find(|count| count.class == class);
    *found.unwrap_or_else(|| panic!("no {class:?} in {comparison:?}"))
}

/// The classes without lost datagrams, of which a busy machine has some, and how many these were. They are not lost
/// again.
#[track_caller]
fn without_losses(comparison: &AnswerComparison) -> (Vec<ClassCount>, u64) {
    let (lost, others): (Vec<ClassCount>, Vec<ClassCount>) =
        comparison.classes.iter().partition(|count| count.class == DifferenceClass::NoAnswer);
    assert!(lost.iter().all(|count| count.again == 0), "{comparison:?}");
    (others, comparison.neither + lost.iter().map(|count| count.queries).sum::<u64>())
}

/// BIND at these addresses with its zone and with one that has another address of `host3`.
#[track_caller]
fn check_changed_record(address: &str, transport: &str) {
    let room = Room::with_load();
    capture(&room, 20, 4, 100_000_000);
    let changed = zone().replace("host3 A 192.0.2.7", "host3 A 192.0.2.8");
    let one = RunningBind::start_serving(&room.path().join("one"), address, &changed);
    let other = RunningBind::start(&room.path().join("other"), address);
    let further: &[&str] = match transport {
        "udp" => &[],
        _ => &["--transport", transport, "--insecure"],
    };
    let (target, reference) = (one.target(transport), other.target(transport));
    let done = replay(&room, &target, &reference, further).exits_with(5);
    let results = room.results();
    assert_eq!(records(&results).len(), 2, "{done}");
    let found = comparison(&room);
    assert_eq!((found.variant.as_str(), found.against.as_str()), ("target", "other"));
    let (classes, lost) = without_losses(&found);
    assert_eq!((found.compared, found.alone), (80, [0, 0]), "{found:?}");
    // Clients 3 and 13 ask for it four times each.
    let queries = class(&found, DifferenceClass::Answer).queries;
    assert!((8 - lost.min(7)..=8).contains(&queries), "{found:?}");
    assert_eq!(found.same + queries + lost, 80, "{found:?}");
    let expected = ClassCount {
        class: DifferenceClass::Answer,
        queries,
        questions: 1,
        again: queries,
        questions_again: 1,
        not_again: 0,
        questions_not_again: 0,
    };
    assert_eq!(classes, [expected]);
    let [example] = found.examples.as_slice() else { panic!("{:?}", found.examples) };
    assert_eq!(example.question, "host3.example.test. A");
    assert!(example.said.contains("192.0.2.8"), "{}", example.said);
    assert!(example.against_said.contains("192.0.2.7"), "{}", example.against_said);

    report_is_whole(&results, &["target", "other"]);
    let read = |name: &str| fs::read_to_string(results.path().join(name)).unwrap();
    let page = read("report.html");
    let title = format!("host3.example.test. A: answer section, {queries} time");
    assert!(page.contains(&title), "`{title}` is not on the page");
    let row = format!("target,other,1,80,answer,{queries},1,{queries},1,0,0");
    assert!(read("answers.csv").contains(&row), "{}", read("answers.csv"));
    assert!(read("summary.json").contains("\"class_again\": \"answer\""));
    if lost == 0 {
        let said = "target and other gave the same answer to 90.0 % of 80 queries. 8 differ (answer section 8). \
                    Asked again, all of them (1 question) differ again.";
        assert!(read("table.md").contains(said), "{}", read("table.md"));
        done.prints("target and other gave the same answer to 90.0 % of 80 queries.");
    }
    // From the results alone, the same again.
    fs::remove_file(results.path().join("report.html")).unwrap();
    let path = results.path().display().to_string();
    room.dnslab(&["report", &path]).exits_with(0).prints(&format!("answer section {queries}"));
    assert_eq!(read("report.html"), page);
}

#[test]
fn one_changed_record_is_found_over_udp() {
    check_changed_record("127.0.0.1", "udp");
    check_changed_record("::1", "udp");
}

#[test]
fn one_changed_record_is_found_over_tls() {
    check_changed_record("127.0.0.1", "dot");
    check_changed_record("::1", "dot");
}

#[test]
fn a_server_agrees_with_itself() {
    let room = Room::with_load();
    capture(&room, 20, 4, 100_000_000);
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    let target = bind.target("udp");
    let done = replay(&room, &target, &target, &["--transport", "tcp"]).exits_with(0);
    done.prints("target and other gave the same answer to all 80 queries.");
    let found = comparison(&room);
    assert_eq!((found.compared, found.same), (80, 80));
}

/// 100 addresses of `host3` do not fit into 512 octets. Over TCP they do, and one of them is another.
#[test]
fn truncated_answers_are_compared_by_what_tcp_brings() {
    let room = Room::with_load();
    capture(&room, 10, 2, 100_000_000);
    let with = |last: &str| {
        let many: String = (0..99).map(|n| format!("host3 A 192.0.3.{n}\n")).collect();
        zone().replace("host3 A 192.0.2.7\n", &format!("{many}host3 A {last}\n"))
    };
    let start = |name: &str, last: &str| {
        RunningBind::start_serving(&room.path().join(name), "127.0.0.1", &with(last))
    };
    let (one, other) = (start("one", "192.0.3.100"), start("other", "192.0.3.101"));
    let (target, reference) = (one.target("udp"), other.target("udp"));
    replay(&room, &target, &reference, &["--truncated", "ask-over-tcp"]).exits_with(5);
    let found = comparison(&room);
    let (_, lost) = without_losses(&found);
    let again = class(&found, DifferenceClass::Answer).again;
    assert!(again == 2 || again == 1 && lost > 0, "{found:?}");
    assert!(found.examples[0].said.contains("192.0.3.100"), "{}", found.examples[0].said);
}

/// Servers of one experiment, started by dnslab, on the same zone.
#[track_caller]
fn check_agreement(address: &str, transport: &str, with_bind: &[&str]) {
    let room = Room::with_load();
    room.experiment(&format!(
        "repeat.runs = 1\ncompare.answers = true\nserver.address = \"{address}\"\n\
         load.transport = \"{transport}\"\nload.rate = 1000\nload.clients = 10\n\
         load.duration = \"600ms\"\nload.warm_up = \"200ms\"\nload.types = \"A:50,AAAA:30,MX:20\"\n\
         load.edns_payload = 1232\nload.workers = 1\n\
         [[variant]]\nname = \"bind\"\nserver.kind = \"bind\"\n\
         [[variant]]\nname = \"knot\"\nserver.kind = \"knot\"\n\
         [[variant]]\nname = \"nsd\"\nserver.kind = \"nsd\"\n"
    ));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let all = room.results().answer_comparisons().unwrap();
    let compared: Vec<&str> = all.iter().map(|comparison| comparison.variant.as_str()).collect();
    assert_eq!(compared, with_bind, "{done}");
    assert!(all.iter().all(|comparison| comparison.against == "bind"), "{done}");
    for found in &all {
        assert_eq!(found.alone, [0, 0], "{found:?}");
        // 800 and those of the uncounted end of a turn.
        assert!((800..900).contains(&found.compared), "{found:?}");
        let (classes, lost) = without_losses(found);
        assert_eq!((found.same + lost, classes), (found.compared, Vec::new()), "{found:?}");
        assert!(found.same >= 400, "{found:?}");
    }
    let path = room.results().path().join("asked-again");
    assert!(!path.exists(), "the folder of the servers that were asked again is left");
}

#[test]
fn bind_knot_and_nsd_agree_on_a_zone() {
    check_agreement("127.0.0.1", "udp", &["knot", "nsd"]);
    check_agreement("::1", "udp", &["knot", "nsd"]);
    // The Knot DNS of Debian 12 has no TLS.
    let knot = find(ServerKind::Knot, None, &guard()).unwrap_or_else(|error| panic!("{error}"));
    let over_tls =
        if knot.supports(Transport::Dot).is_ok() { &["knot", "nsd"][..] } else { &["nsd"] };
    check_agreement("127.0.0.1", "dot", over_tls);
    check_agreement("::1", "dot", over_tls);
}

/// Servers that are started are asked again, too: here for names that one of them does not have.
#[test]
fn started_servers_are_asked_again() {
    let room = Room::with_load();
    let names: String = (1..=10).map(|n| format!("host-{n:06}.example.test A\n")).collect();
    room.write("queries", &names);
    room.experiment(
        "repeat.runs = 2\ncompare.answers = true\nexpect.wrong_limit = \"100%\"\n\
         [load]\nqueries = \"queries\"\nrate = 500\nduration = \"400ms\"\nwarm_up = \"200ms\"\nworkers = 1\n\
         [[variant]]\nname = \"ten\"\nserver = { kind = \"bind\", zone = { records = 10 } }\n\
         [[variant]]\nname = \"five\"\nserver = { kind = \"nsd\", zone = { records = 5 } }\n",
    );
    room.dnslab(&["run", "./experiment.toml"]).exits_with(5);
    let all = room.results().answer_comparisons().unwrap();
    assert_eq!(all.iter().map(|comparison| comparison.repetition).collect::<Vec<_>>(), [1, 2]);
    for found in &all {
        let code = class(found, DifferenceClass::Code);
        let (classes, lost) = without_losses(found);
        assert_eq!(classes, [code]);
        assert_eq!(code.queries + found.same + lost, found.compared, "{found:?}");
        assert!(code.queries.abs_diff(found.same) <= 10 + lost, "{found:?}");
        assert_eq!((code.questions, code.questions_again), (5, 5), "{found:?}");
        assert_eq!(code.again, code.queries, "{found:?}");
        let example = &found.examples[0];
        assert!(example.said.contains("NXDOMAIN"), "{}", example.said);
        assert!(example.against_said.contains("NOERROR"), "{}", example.against_said);
    }
}

/// Answers over UDP as a test wants them. `None` is no answer.
struct Scripted {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scripted {
    fn start(answer: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (address, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut query = [0; 1_500];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut query) else { continue };
                if let Some(answer) = answer(&query[..length]) {
                    socket.send_to(&answer, from).unwrap();
                }
            }
        });
        Self { address, stop, thread: Some(thread) }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// An answer with one TXT record of this text.
fn with_text(query: &[u8], text: &[u8]) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[2] = 0x84;
    answer[7] = 1;
    answer.extend(b"\xc0\x0c\0\x10\0\x01\0\0\0\x3c\0");
    answer.extend([text.len() as u8 + 1, text.len() as u8]);
    answer.extend(text);
    answer
}

/// A name, a text and an answer that would act on a terminal, a page or a spreadsheet.
#[test]
fn hostile_answers_are_shown_and_have_no_effect() {
    const NAME: &[u8] = b"</pre><script>alert(1)</script>\x1b[2J";
    const TEXT: &[u8] = b"</pre></details><img src=x onerror=alert(2)>\x1b[31m\xe2\x80\xae=1+1";
    const ERROR: &[u8] = b"</pre><script>alert(3)</script>\x1b[2J\xe2\x80\xae";
    let room = Room::with_load();
    let path = room.path().join("capture.pcap");
    let mut writer = CaptureWriter::pcap(File::create(&path).unwrap()).unwrap();
    let wire = [&[NAME.len() as u8], NAME, b"\x04test\0"].concat();
    let hostile = Name::from_octets(wire).unwrap();
    let silent: Name<Vec<u8>> = "silent.test".parse().unwrap();
    let broken: Name<Vec<u8>> = "broken.test".parse().unwrap();
    for (n, name) in (0u64..).zip([&hostile, &hostile, &silent, &broken, &hostile]) {
        let query = Query::new(name, Rtype::TXT, &QueryOptions::default()).unwrap();
        let captured = Captured {
            at_ns: 1_700_000_000_000_000_000 + n * 10_000_000,
            client: SocketAddr::from(([10, 0, 0, 1], 4_000)),
            server: SocketAddr::from(([192, 0, 2, 53], 53)),
            transport: Transport::Udp,
            message: query.octets(),
        };
        writer.write(&captured).unwrap();
    }
    writer.finish().unwrap();
    let is = |query: &[u8], label: &[u8]| query[13..].starts_with(label);
    let strange = Scripted::start(move |query| match query {
        query if is(query, b"silent") => None,
        // One record fewer than the header counts.
        query if is(query, b"broken") => {
            let mut answer = with_text(query, b"fine");
            answer[7] = 2;
            Some(answer)
        }
        query => {
            let mut answer = with_text(query, TEXT);
            // An extended error (RFC 8914), whose text dnslab shows as it is.
            answer[11] = 1;
            answer.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 6 + ERROR.len() as u8, 0, 15]);
            answer.extend([0, 2 + ERROR.len() as u8, 0, 0]);
            answer.extend(ERROR);
            Some(answer)
        }
    });
    let plain = Scripted::start(|query| Some(with_text(query, b"fine")));
    let (target, other) = (strange.address.to_string(), plain.address.to_string());
    // A run with so many malformed answers is invalid. Its answers are compared all the same.
    let done = replay(&room, &target, &other, &["--timeout", "300ms"]).exits_with(3);
    let found = comparison(&room);
    let again = |difference| class(&found, difference).again;
    assert_eq!((found.compared, found.same), (5, 0), "{found:?}");
    assert_eq!(again(DifferenceClass::Answer), 3, "{found:?}");
    assert_eq!(again(DifferenceClass::NoAnswer), 1, "{found:?}");
    assert_eq!(again(DifferenceClass::Malformed), 1, "{found:?}");
    assert!(!done.stdout.contains('\x1b') && !done.stderr.contains("\x1b[2J"), "{done}");
    let results = room.results();
    for name in ["report.html", "summary.json", "answers.csv", "table.md"] {
        let text = fs::read_to_string(results.path().join(name)).unwrap();
        assert!(!text.contains(['\x1b', '\u{202e}']), "{name}");
        if name == "report.html" {
            assert!(!text.contains("<script>alert") && !text.contains("<img"), "{name}");
            assert!(text.contains("&lt;script>alert(1)") && text.contains("onerror"), "{name}");
            assert!(text.contains("&lt;script>alert(3)") && text.contains("\\u{1b}[2J"), "{name}");
            assert!(text.contains("no answer from one side") && text.contains(";; malformed"));
        }
    }
}

#[test]
fn wrong_command_lines_say_what_is_wrong() {
    let room = Room::quiet();
    capture(&room, 2, 2, 10_000_000);
    let done = replay(&room, "127.0.0.1:1", "127.0.0.1:port", &[]).exits_with(2);
    done.complains("`port` in `127.0.0.1:port` is no port");
    let done = replay(&room, "127.0.0.1:1", "127.0.0.1:2", &["--transport", "dot"]).exits_with(2);
    done.complains("the certificate of 127.0.0.1:2 cannot be verified");
}
