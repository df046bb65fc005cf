//! What holds for every experiment and every text. Experiments are drawn from the keys, so that new keys are
//! covered.

use dnslab_settings::{
    Experiment, Key, Kind, Load, Problems, ServerKind, check_text, keys, render,
};
use dnslab_wire::Transport;
use dnslab_wire::units::duration;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

/// Each text is a value of some key.
const TEXTS: [&str; 25] = [
    "every=10s,length=200ms",
    "NXDOMAIN",
    "5ms",
    "uniform:1ms..9ms",
    "normal:5ms,1ms",
    "exponential:2ms",
    "log-normal:3ms,0.7",
    "1%",
    "127.0.0.1-127.0.0.9",
    "127.0.1.0/24",
    "10.0.0.0/8 by /24",
    "2001:db8::/56",
    "subnets.txt",
    "typical",
    "A:70,AAAA:25,HTTPS:5",
    "TYPE65280",
    "hmac-sha512:key.test:c2VjcmV0",
    "v-0",
    "v-1,v-0",
    "doq:30%,doh3:0.5%",
    "192.0.2.2,[2001:db8::2]:5300",
    "198.51.100.0/24, 2001:db8::53",
    "53, 5353",
    "-",
    "",
];

fn quoted(text: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    text.prop_map(|text| toml::Value::String(text).to_string()).boxed()
}

/// TOML values of a key.
fn values(kind: Kind) -> BoxedStrategy<String> {
    match kind {
        // Small ones are drawn as often as large ones.
        Kind::Count { least, most } => (least..=most, 0u32..64)
            .prop_map(move |(count, shift)| (count >> shift).max(least).to_string())
            .boxed(),
        Kind::Duration { least, most, whole_seconds } => {
            let unit_ns: u64 = if whole_seconds { 1_000_000_000 } else { 1 };
            let range = least.as_nanos() as u64 / unit_ns..=most.as_nanos() as u64 / unit_ns;
            let write = move |ns| duration::write(std::time::Duration::from_nanos(ns * unit_ns));
            let lengths = (range, 0u32..12).prop_map(move |(length, digits)| {
                let unit = 10u64.pow(digits);
                let rounded = length / unit * unit;
                write(if rounded * unit_ns < least.as_nanos() as u64 { length } else { rounded })
            });
            quoted(lengths)
        }
        Kind::Rate => prop_oneof![
            (1e-3..1e9).prop_map(|rate: f64| format!("{rate:?}")),
            (vec(1u32.., 1..5), 1u32..999)
                .prop_map(|(rates, ms)| format!("\"steps:{}/{ms}ms\"", join(&rates))),
            (1u32.., 1u32.., 1u32..999).prop_map(|(a, b, s)| format!("\"ramp:{a}..{b}/{s}s\"")),
        ]
        .boxed(),
        Kind::Factor => (1e-3..1e2).prop_map(|factor: f64| format!("{factor:?}")).boxed(),
        Kind::Share => prop_oneof![
            (0.0..=1.0).prop_map(|share: f64| format!("{share:?}")),
            (0.0..=100.0).prop_map(|percent: f64| format!("\"{percent}%\"")),
        ]
        .boxed(),
        Kind::Text => quoted(prop_oneof![any::<String>(), Just("v-0".to_owned())]),
        Kind::Parsed(read) => {
            let fits: Vec<String> =
                TEXTS.into_iter().filter(|text| read(text).is_ok()).map(str::to_owned).collect();
            assert!(!fits.is_empty(), "a kind of text has no example here");
            quoted(select(fits))
        }
        Kind::FolderName => quoted(prop_oneof!["[a-z0-9-]{1,64}", Just("v-0".to_owned())]),
        Kind::ZoneName => quoted(r"\.|[a-z0-9/_-]{1,20}(\.[a-z]{1,20}){0,3}".boxed()),
        Kind::DomainName => quoted("[a-z0-9_-]{1,20}(\\.[a-z]{1,20}){0,3}".boxed()),
        Kind::Choice(words) => quoted(select(words).prop_map(str::to_owned)),
        Kind::Words(words) => {
            let some = proptest::sample::subsequence(words, 1..=words.len()).prop_shuffle();
            some.prop_map(|words| format!("{words:?}")).boxed()
        }
        Kind::Cpus => proptest::collection::hash_set(0u32..8_192, 1..4)
            .prop_map(|cpus| format!("[{}]", join(&cpus.into_iter().collect::<Vec<_>>())))
            .boxed(),
        Kind::Path => quoted("/[a-z]{1,8}/[a-zA-Z0-9 \"'._-]{1,12}x".boxed()),
        Kind::Boolean => any::<bool>().prop_map(|value| value.to_string()).boxed(),
        Kind::Address => {
            let hosts = prop_oneof![
                any::<std::net::IpAddr>().prop_map(|address| address.to_string()),
                any::<std::net::SocketAddr>().prop_map(|address| address.to_string()),
                Just("127.0.0.1".to_owned()),
            ];
            quoted(hosts)
        }
        Kind::EdnsOptions => vec((any::<u16>(), vec(any::<u8>(), 0..9)), 1..3)
            .prop_map(|options| {
                let hex = |data: Vec<u8>| -> String {
                    data.into_iter().map(|octet| format!("{octet:02x}")).collect()
                };
                let texts = options.into_iter().map(|(code, data)| format!("{code}:{}", hex(data)));
                format!("{:?}", texts.collect::<Vec<_>>())
            })
            .boxed(),
        Kind::Padding => {
            prop_oneof![Just("true".to_owned()), (1u16..=4_096).prop_map(|size| size.to_string())]
                .boxed()
        }
        Kind::HttpPath => quoted("/[A-Za-z0-9._~/-]{0,20}".boxed()),
        Kind::Rounds => {
            let time = (1u32..=600_000).prop_map(|count| format!("\"{count}s\""));
            prop_oneof![(1u32..=5_000).prop_map(|count| count.to_string()), time].boxed()
        }
        Kind::CacheSize => prop_oneof![
            any::<bool>().prop_map(|value| value.to_string()),
            (1_u64..=1_000_000_000).prop_map(|count| count.to_string()),
            (1_u64..=1 << 20).prop_map(|count| format!("\"{count}MiB\"")),
            (1_u64..=1 << 10).prop_map(|count| format!("\" {count} GiB\"")),
        ]
        .boxed(),
    }
}

fn join(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Servers at the front, with what each of them needs.
fn fronts() -> impl Strategy<Value = String> {
    let kinds = ServerKind::ALL.into_iter().flat_map(|kind| {
        let upstreams: &[&str] = if kind.serves_zones() { &[] } else { &["embedded", "knot"] };
        let alone = format!("server.kind = \"{kind}\"\n");
        match upstreams {
            [] => vec![alone],
            all => all
                .iter()
                .map(|upstream| format!("{alone}upstream.kind = \"{upstream}\"\n"))
                .collect(),
        }
    });
    let resolvers = ServerKind::ALL.into_iter().filter(|kind| kind.resolves()).flat_map(|kind| {
        let alone = format!("server.kind = \"{kind}\"\n");
        [
            format!(
                "{alone}upstream.kind = \"internet\"\nlab.hosts = \"namespaces\"\n\
                 load.popular_names = 9\n"
            ),
            format!("{alone}upstream.kind = \"live\"\nload.queries = \"names.txt\"\n"),
        ]
    });
    let forwarders = ServerKind::ALL.into_iter().filter(|kind| kind.forwards());
    let forwarders = forwarders.flat_map(|kind| {
        let external = format!(
            "server.kind = \"{kind}\"\nupstream.kind = \"external\"\nupstream.address = \"192.0.2.7\"\n"
        );
        let tls = "upstream.transport = \"dot\"\nupstream.tls_name = \"dns.example\"\n";
        [format!("{external}{tls}"), external]
    });
    let external =
        "server.kind = \"external\"\nserver.address = \"192.0.2.7\"\nserver.insecure = true\n";
    let with_event = format!("{external}load.duration = \"604800s\"\nevent.command = \"true\"\n");
    let external = [external.to_owned(), with_event];
    select(kinds.chain(resolvers).chain(forwarders).chain(external).collect::<Vec<_>>())
}

fn entry(keys: Vec<&'static Key>) -> impl Strategy<Value = (&'static Key, String)> {
    select(keys).prop_flat_map(|key| (Just(key), values(key.kind)))
}

fn files() -> impl Strategy<Value = String> {
    grown(vec(entry(keys().collect()), 0..40))
}

/// Adds key after key, above the variants or in one of them, as long as all fits together.
fn grown(
    entries: impl Strategy<Value = Vec<(&'static Key, String)>>,
) -> impl Strategy<Value = String> {
    let variants = vec((fronts(), select(Transport::ALL.to_vec())), 1..4);
    let places = vec(any::<Index>(), 50);
    (variants, entries, places).prop_map(|(variants, entries, places)| {
        // The first part stands above the variants.
        let mut parts = vec![vec!["name = \"any\"".to_owned()]];
        parts.extend(variants.into_iter().enumerate().map(|(at, (front, transport))| {
            let lines = format!("name = \"v-{at}\"\n{front}load.transport = \"{transport}\"");
            lines.lines().map(str::to_owned).collect()
        }));
        let text = |parts: &[Vec<String>]| {
            parts.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n[[variant]]\n")
        };
        for ((key, value), at) in entries.into_iter().zip(places) {
            let at = at.index(parts.len());
            let begin = format!("{} = ", key.path);
            if parts[at].iter().any(|line| line.starts_with(&begin)) {
                continue;
            }
            parts[at].push(begin + &value);
            if check_text(&text(&parts), &[]).is_err() {
                parts[at].pop();
            }
        }
        text(&parts)
    })
}

/// Whatever the text, the check ends with an experiment or with problems that can be shown. An experiment
/// that is written and read again is the same.
fn check_any(text: &str, sets: &[String]) -> Result<Experiment, Problems> {
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let checked = check_text(text, &sets);
    match &checked {
        Ok(experiment) => {
            // The secret of a key is not written out, so this one cannot be read again.
            if experiment.variants.iter().all(|variant| variant.load.tsig.is_none()) {
                let written = experiment.to_toml();
                assert_eq!(check_text(&written, &[]).as_ref(), Ok(experiment), "{text}\n{written}");
                for load in experiment.variants.iter().map(|variant| &variant.load) {
                    let sent = Load { hosts: None, ..load.clone() };
                    assert_eq!(Load::of_toml(&load.to_toml()).as_ref(), Ok(&sent), "{text}");
                }
            }
        }
        Err(problems) => {
            assert!(!problems.as_slice().is_empty());
            assert!(!render(problems.as_slice(), text, "experiment.toml").is_empty());
            for problem in problems.as_slice() {
                let lines = text.matches('\n').count() + 1;
                assert!(problem.line(text).is_none_or(|line| (1..=lines).contains(&line)));
            }
        }
    }
    checked
}

/// `what_was_written_is_read` covers every key.
#[test]
fn each_key_is_in_some_experiment() {
    let mut runner = TestRunner::deterministic();
    for key in keys() {
        // The key, and others that it may need.
        let entries = (vec(entry(keys().collect()), 0..10), vec(entry(vec![key]), 20));
        let files = grown(entries.prop_map(|(others, tries)| [others, tries].concat()));
        let begin = format!("{} = ", key.path);
        let is_in = |text: &String| text.lines().any(|line| line.starts_with(&begin));
        let mut drawn = (0..5_000).map(|_| files.new_tree(&mut runner).unwrap().current());
        assert!(drawn.any(|text| is_in(&text)), "in no experiment: {}", key.path);
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read(text in files()) {
        prop_assert!(check_any(&text, &[]).is_ok(), "{}", text);
    }

    #[test]
    fn any_text_is_checked(text in any::<String>(), sets in vec(any::<String>(), 0..3)) {
        check_any(&text, &sets).ok();
    }

    /// Texts that are nearly experiments go deeper than noise.
    #[test]
    fn any_slip_is_checked(
        slips in vec((any::<Index>(), 0usize..12, "[ -~\n\u{e9}]{0,6}"), 1..5),
        sets in vec("(variant\\.(udp|x)\\.)?(load|server|repeat)\\.(rate|cpus|kind|runs|padding|edns_options|sources|tsig|types)=.{0,6}", 0..3),
    ) {
        let whole = include_str!("../../../../experiments/transports.toml");
        let mut text: Vec<char> = whole.chars().collect();
        for (at, length, instead) in slips {
            let from = at.index(text.len());
            let to = (from + length).min(text.len());
            text.splice(from..to, instead.chars());
        }
        check_any(&text.into_iter().collect::<String>(), &sets).ok();
    }

    #[test]
    fn any_value_is_checked(
        entries in vec((any::<Index>(), "[ -~\n\u{e9}]{0,9}|-?[0-9]{1,25}|\"[^\"\n\\\\]{0,9}\""), 0..6),
    ) {
        let known: Vec<&Key> = keys().collect();
        let mut text = String::from("[[variant]]\nname = \"a\"\n");
        for (key, value) in entries {
            text.push_str(&format!("{} = {value}\n", key.get(&known).path));
        }
        check_any(&text, &[]).ok();
    }
}
