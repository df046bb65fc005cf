//! What holds for every experiment, and for every text.

use std::path::PathBuf;
use std::time::Duration;

use dnslab_experiment::{
    BUILT_IN, Expectation, Experiment, LoadSettings, Mode, ProcessSettings, Queries, Server,
    ServerSettings, Software, Variant, Verification, ZoneSettings, check_text, render,
};
use dnslab_traffic::{Pace, Selection};
use dnslab_wire::{Edns, QueryOptions, Transport};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

/// Text that a key takes: anything but nothing.
fn text() -> impl Strategy<Value = String> {
    let fits = |text: &String| !text.trim().is_empty() && !text.contains('\0');
    any::<String>().prop_filter("says something", fits)
}

/// A path as a file has it.
fn path() -> impl Strategy<Value = PathBuf> {
    "/?[a-z]{1,8}/[a-zA-Z0-9 \"'._-]{1,12}x".prop_map(PathBuf::from)
}

/// A duration between the two, of any unit.
fn duration(least: Duration, most: Duration) -> impl Strategy<Value = Duration> {
    let units = vec![1, 1_000, 1_000_000, 1_000_000_000u64];
    (0..=(most - least).as_nanos() as u64, prop::sample::select(units))
        .prop_map(move |(ns, unit)| least + Duration::from_nanos(ns / unit * unit))
}

/// Different CPU numbers.
fn cpus() -> impl Strategy<Value = Vec<usize>> {
    btree_set(0usize..8_192, 0..4).prop_map(|cpus| cpus.into_iter().rev().collect())
}

/// Where and how a started server runs.
fn process() -> impl Strategy<Value = ProcessSettings> {
    let threads = option::of(1u32..=1_024);
    (any::<std::net::IpAddr>(), threads, cpus())
        .prop_map(|(address, threads, cpus)| ProcessSettings { address, threads, cpus })
}

/// Any server.
fn server() -> impl Strategy<Value = Server> {
    let embedded = (process(), option::of(text()), option::of(text()))
        .prop_map(|(process, delay, loss)| Server::Embedded { process, delay, loss });
    let software = prop::sample::select(&[Software::Bind, Software::Knot, Software::Nsd][..]);
    let binary = prop_oneof![path(), "[a-z]{1,9}".prop_map(PathBuf::from)];
    let installed = (software, process(), option::of(binary), option::of(text())).prop_map(
        |(software, process, binary, extra)| Server::Installed { software, process, binary, extra },
    );
    let tls_name = option::of("[a-z0-9-]{1,20}(\\.[a-z]{1,20}){0,3}");
    let external =
        (any::<std::net::IpAddr>(), 1u16.., tls_name).prop_map(|(address, port, tls_name)| {
            Server::External { target: (address, port).into(), tls_name }
        });
    prop_oneof![embedded, installed, external]
}

/// Any server on a transport, with the verification that fits both.
fn server_settings(transport: Transport) -> impl Strategy<Value = ServerSettings> {
    let zone = ("[a-z0-9_-]{1,20}(\\.[a-z]{1,20}){0,3}", 1u32..=10_000_000, 0u32..1 << 31)
        .prop_map(|(name, records, ttl_s)| ZoneSettings { name, records, ttl_s });
    (server(), option::of(path()), zone).prop_map(move |(server, authority, zone)| {
        let is_external = matches!(server, Server::External { .. });
        let verification = transport.is_encrypted().then_some(match authority {
            None => Verification::Off,
            Some(path) if is_external => Verification::Authority(path),
            Some(_) => Verification::RunAuthority,
        });
        ServerSettings { server, verification, zone }
    })
}

/// Any load on a transport.
fn load(transport: Transport) -> impl Strategy<Value = LoadSettings> {
    let pace = prop::sample::select(&[Pace::Constant, Pace::Poisson][..]);
    let mode = prop_oneof![
        (1u32..=65_535).prop_map(|outstanding| Mode::Closed { outstanding }),
        (1e-3..1e9f64, pace).prop_map(|(rate_qps, pace)| Mode::Open { rate_qps, pace }),
    ];
    let (ms, week) = (Duration::from_millis(1), Duration::from_secs(7 * 24 * 3_600));
    let times = (
        duration(ms, week),
        duration(Duration::ZERO, week),
        duration(ms, Duration::from_secs(100)),
        duration(Duration::ZERO, Duration::from_secs(1)),
    );
    let edns = (512u16.., any::<bool>())
        .prop_map(|(payload_size, dnssec_ok)| Edns { payload_size, dnssec_ok });
    let options = (any::<bool>(), option::of(edns))
        .prop_map(|(recursion_desired, edns)| QueryOptions { recursion_desired, edns });
    let queries = prop_oneof![Just(Queries::Zone), path().prop_map(Queries::File)];
    let selection = prop::sample::select(&[Selection::InOrder, Selection::Uniform][..]);
    let threads = (1_024u32..=1_000_000, option::of(1u32..=1_024), cpus());
    (mode, times, threads, queries, selection, options).prop_map(
        move |(mode, times, threads, queries, selection, options)| {
            let (duration, warm_up, timeout, horizon) = times;
            let (clients, workers, cpus) = threads;
            let pinned = (!cpus.is_empty()).then_some(cpus.len() as u32);
            let workers = pinned.or(workers);
            LoadSettings {
                transport,
                clients,
                mode,
                duration,
                warm_up,
                timeout,
                workers,
                cpus,
                queries,
                selection,
                options,
                horizon,
            }
        },
    )
}

/// Any variant, without its name.
fn variant() -> impl Strategy<Value = Variant> {
    let expect = (0u8..=10, 0.0..=1.0f64)
        .prop_map(|(rcode, wrong_limit)| Expectation { rcode, wrong_limit });
    prop::sample::select(&Transport::ALL[..]).prop_flat_map(move |transport| {
        (server_settings(transport), load(transport), expect.clone()).prop_map(
            |(server, load, expect)| Variant { name: String::new(), server, load, expect },
        )
    })
}

/// Any experiment; some variants are twins, so that they share settings.
fn experiment() -> impl Strategy<Value = Experiment> {
    let whole = ("[a-z0-9-]{1,64}", text(), 0.0..=1.0f64, 1u32..=10_000, 0..=i64::MAX as u64);
    (whole, vec((variant(), 1usize..3), 1..4), any::<prop::sample::Index>()).prop_map(
        |((name, question, margin, runs, seed), variants, baseline)| {
            let mut variants: Vec<Variant> = variants
                .into_iter()
                .flat_map(|(variant, twins)| std::iter::repeat_n(variant, twins))
                .collect();
            for (at, variant) in variants.iter_mut().enumerate() {
                variant.name = format!("v-{at}");
            }
            let baseline = baseline.get(&variants).name.clone();
            Experiment { name, question, baseline, margin, runs, seed, variants }
        },
    )
}

/// Whatever the text, the check ends with an experiment or with problems that can be shown; and an
/// experiment is the same after it was written and read.
fn check_any(text: &str, sets: &[String]) {
    match check_text(text, sets) {
        Ok(experiment) => {
            assert_eq!(check_text(&experiment.to_toml(), &[]).as_ref(), Ok(&experiment));
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
}

proptest! {
    #[test]
    fn what_was_written_is_read(experiment in experiment()) {
        let text = experiment.to_toml();
        let read = check_text(&text, &[]);
        prop_assert_eq!(read.as_ref(), Ok(&experiment), "{}", text);
    }

    #[test]
    fn any_text_is_checked(text in any::<String>(), sets in vec(any::<String>(), 0..3)) {
        check_any(&text, &sets);
    }

    /// Texts that nearly are experiments go deeper than noise does.
    #[test]
    fn any_slip_is_checked(
        slips in vec((any::<prop::sample::Index>(), 0usize..12, "[ -~\n\u{e9}]{0,6}"), 1..5),
        sets in vec("(variant\\.(udp|x)\\.)?(load|server|repeat)\\.(rate|cpus|kind|runs)=.{0,6}", 0..3),
    ) {
        let mut text: Vec<char> = BUILT_IN[0].1.chars().collect();
        for (at, length, instead) in slips {
            let from = at.index(text.len());
            let to = (from + length).min(text.len());
            text.splice(from..to, instead.chars());
        }
        check_any(&text.into_iter().collect::<String>(), &sets);
    }

    /// Files of known keys with strange values.
    #[test]
    fn any_value_is_checked(
        entries in vec((0usize..39, "[ -~\n\u{e9}]{0,9}|-?[0-9]{1,25}|\"[^\"\n\\\\]{0,9}\""), 0..6),
    ) {
        let mut text = String::from("[[variant]]\nname = \"a\"\n");
        for (key, value) in entries {
            let keys = dnslab_experiment::KEYS;
            text.push_str(&format!("{} = {value}\n", keys[key % keys.len()].path));
        }
        check_any(&text, &[]);
    }
}
