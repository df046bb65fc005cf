//! What holds for every experiment, and for every text.

mod topology;

use std::path::PathBuf;
use std::time::Duration;

use dnslab_experiment::{
    Alternate, BUILT_IN, CommonSettings, Expectation, Experiment, LoadSettings, Mode,
    ProcessSettings, Queries, Server, ServerSettings, Subnets, TlsChoice, Tsig, Variant,
    Verification, ZoneSettings, check_text, render,
};
use dnslab_lab::{
    CertificateKind, Identity, LogDestination, LogFile, LogPrefix, Logging, QueryLog, Rotation,
    ServerKind, Suffix, TimeForm,
};
use dnslab_load::{HttpSettings, Method, Quickack, ReceiveTime, Records, TlsGroup, TlsVersions};
use dnslab_measure::MAX_RUNS;
use dnslab_measure::statistics::Metric;
use dnslab_traffic::{
    ClientBehaviour, Connect, Delay, Loss, Pace, Quota, Rate, Selection, SlicePlan,
    SourceAddresses, Truncated,
};
use dnslab_wire::{Edns, EdnsOption, QueryOptions, Transport};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use topology::{fitting, topology};

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

/// CPU time of an answer.
pub(crate) fn busy() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0), 0..=1_000_000_000u64].prop_map(Duration::from_nanos)
}

/// A delay program, each form of it.
pub(crate) fn delay() -> impl Strategy<Value = Delay> {
    let length = || (0..=86_400_000_000_000u64).prop_map(Duration::from_nanos);
    let two = (length(), length());
    prop_oneof![
        Just(Delay::None),
        length().prop_map(Delay::Fixed),
        two.prop_map(|(one, other)| Delay::Uniform { from: one.min(other), to: one.max(other) }),
        (length(), length()).prop_map(|(mean, deviation)| Delay::Normal { mean, deviation }),
        length().prop_map(|mean| Delay::Exponential { mean }),
        (length(), 0.001..=10.0).prop_map(|(median, sigma)| Delay::LogNormal { median, sigma }),
    ]
}

/// A loss program.
pub(crate) fn loss() -> impl Strategy<Value = Loss> {
    (0.0..=1.0).prop_map(|share: f64| Loss::try_from(share).expect("it lies between 0 and 1"))
}

/// Any server.
fn server() -> impl Strategy<Value = Server> {
    let embedded = (process(), option::of(delay()), option::of(loss()), busy())
        .prop_map(|(process, delay, loss, busy)| Server::Embedded { process, delay, loss, busy });
    let started = ServerKind::ALL.into_iter().filter(|kind| *kind != ServerKind::Embedded);
    let software = prop::sample::select(started.collect::<Vec<_>>());
    let binary = prop_oneof![path(), "[a-z]{1,9}".prop_map(PathBuf::from)];
    let root = prop_oneof![path(), "[a-z0-9.-]{1,9}[a-z]".prop_map(PathBuf::from)];
    // A program of this system, a root folder, or neither.
    let program = prop_oneof![
        option::of(binary).prop_map(|binary| (binary, None)),
        root.prop_map(|root| (None, Some(root))),
    ];
    let installed = (software, process(), program, option::of(text())).prop_map(
        |(software, process, (binary, root), extra)| Server::Installed {
            software,
            process,
            binary,
            root,
            extra,
        },
    );
    let tls_name = option::of("[a-z0-9-]{1,20}(\\.[a-z]{1,20}){0,3}");
    let identity = prop_oneof![
        Just(Identity::Address),
        (1u32..=4_194_304).prop_map(Identity::Process),
        "[a-zA-Z0-9@.-]{1,20}".prop_map(Identity::Unit),
    ];
    let external = (any::<std::net::IpAddr>(), 1u16.., tls_name, identity).prop_map(
        |(address, port, tls_name, identity)| {
            let target = (address, port).into();
            Server::External { target, name: None, tls_name, identity }
        },
    );
    prop_oneof![embedded, installed, external]
}

/// Any query log.
fn query_log() -> impl Strategy<Value = QueryLog> {
    let suffix = prop::sample::select(&[Suffix::Increment, Suffix::Timestamp][..]);
    let rotation = (1u32..=1_000_000, 1u32..=10_000, suffix)
        .prop_map(|(size_mib, versions, suffix)| Rotation { size_mib, versions, suffix });
    let file = (option::of(path()), any::<bool>(), option::of(rotation))
        .prop_map(|(folder, is_buffered, rotation)| LogFile { folder, is_buffered, rotation });
    let to = prop_oneof![
        file.prop_map(LogDestination::File),
        Just(LogDestination::Syslog),
        Just(LogDestination::StandardError),
        Just(LogDestination::Null),
    ];
    let forms = ["none", "local", "iso8601", "iso8601-utc"].map(TimeForm::of);
    let print = (prop::sample::select(forms.to_vec()), any::<[bool; 2]>())
        .prop_map(|(time, [category, severity])| LogPrefix { time, category, severity });
    (to, print).prop_map(|(to, print)| QueryLog { to, print })
}

/// Any server on a transport, with the verification that fits both.
fn server_settings(transport: Transport) -> impl Strategy<Value = ServerSettings> {
    let zone = ("[a-z0-9_-]{1,20}(\\.[a-z]{1,20}){0,3}", 1u32..=10_000_000, 0u32..1 << 31)
        .prop_map(|(name, records, ttl_s)| ZoneSettings { name, records, ttl_s });
    let certificate = prop::sample::select(&CertificateKind::ALL[..]);
    let further = (any::<[bool; 4]>(), option::of(query_log()), zone, certificate);
    (server(), option::of(path()), further).prop_map(move |(server, authority, further)| {
        let (flags, query_log, zone, certificate) = further;
        let is_external = matches!(server, Server::External { .. });
        let verification = transport.is_encrypted().then_some(match authority {
            None => Verification::Off,
            Some(path) if is_external => Verification::Authority(path),
            Some(_) => Verification::RunAuthority,
        });
        let [dnstap, dnssec, without_cache, watch] = flags;
        let is_installed = matches!(server, Server::Installed { .. });
        let logging = match is_installed {
            true => Logging { query_log, dnstap },
            false => Logging::default(),
        };
        let forwards = matches!(&server, Server::Installed { software, .. } if software.forwards());
        let without_cache = forwards && without_cache;
        ServerSettings {
            server,
            certificate: match is_external || verification.is_none() {
                true => CertificateKind::default(),
                false => certificate,
            },
            verification,
            zone,
            logging,
            dnssec: is_installed && dnssec,
            without_cache,
            watch,
        }
    })
}

/// When a load sends.
fn mode() -> impl Strategy<Value = Mode> {
    let pace = prop::sample::select(&[Pace::Constant, Pace::Poisson][..]);
    let qps = || 1e-3..1e9f64;
    let length = || duration(Duration::from_nanos(1), Duration::from_secs(3_600));
    let rate = prop_oneof![
        qps().prop_map(Rate::Constant),
        (vec(qps(), 1..5), length()).prop_map(|(rates, every)| Rate::Steps { rates, every }),
        (qps(), qps(), length()).prop_map(|(from, to, over)| Rate::Ramp { from, to, over }),
    ];
    prop_oneof![
        (1u32..=65_535).prop_map(|outstanding| Mode::Closed { outstanding }),
        (rate, pace).prop_map(|(rate, pace)| Mode::Open { rate, pace }),
    ]
}

/// An OPT record as it may be sent over a transport. Options that have keys of their own are left to
/// those.
fn edns(transport: Transport) -> impl Strategy<Value = Edns> {
    let option =
        (100u16.., vec(any::<u8>(), 0..9)).prop_map(|(code, data)| EdnsOption { code, data });
    (512u16.., any::<bool>(), vec(option, 0..3), option::of(1u16..=4_096), any::<bool>()).prop_map(
        move |(payload_size, dnssec_ok, options, padding, keepalive)| {
            Edns { payload_size, dnssec_ok, options, padding, keepalive }.for_transport(transport)
        },
    )
}

/// What clients do with their connections.
fn behaviour(transport: Transport) -> impl Strategy<Value = ClientBehaviour> {
    let idle = option::of(duration(Duration::from_millis(1), Duration::from_secs(86_400)));
    let choices =
        (prop::sample::select(&Connect::ALL[..]), prop::sample::select(&Truncated::ALL[..]));
    (1u32..=1_000, option::of((1u32.., any::<bool>())), idle, choices).prop_map(
        move |(connections, quota, idle, (connect, truncated))| {
            let queries_per_connection = quota
                .map(|(mean, exact)| if exact { Quota::Exact(mean) } else { Quota::Random(mean) });
            let is_udp = transport == Transport::Udp;
            let truncated = if is_udp { truncated } else { Truncated::Count };
            ClientBehaviour { connections, queries_per_connection, idle, connect, truncated }
        },
    )
}

/// Key exchange groups of which TLS 1.2 can use one.
fn groups() -> impl Strategy<Value = Vec<TlsGroup>> {
    let chosen = prop::sample::subsequence(&TlsGroup::ALL[..], 1..=4).prop_shuffle();
    chosen.prop_map(|mut groups| {
        if groups.iter().all(|group| group.is_hybrid()) {
            groups.push(TlsGroup::X25519);
        }
        groups
    })
}

/// What clients make of TLS and HTTP, where a transport has them.
fn tls_and_http(transport: Transport) -> impl Strategy<Value = (TlsChoice, HttpSettings)> {
    let versions = prop::sample::select(&TlsVersions::ALL[..]);
    let method = prop::sample::select(&[Method::Get, Method::Post][..]);
    let words = (prop::sample::select(&Records::ALL[..]), groups());
    (versions, any::<bool>(), any::<bool>(), method, words, "/[A-Za-z0-9._~/-]{0,20}").prop_map(
        move |(versions, resumption, early_data, method, (records, groups), path)| {
            let is_old = versions == TlsVersions::V12;
            let versions = if is_old && transport.is_quic() { TlsVersions::Both } else { versions };
            let may_replay = !transport.is_http() || method == Method::Get;
            let early_data = early_data && may_replay && resumption && versions != TlsVersions::V12;
            let is_dot = transport == Transport::Dot;
            let records = if is_dot { records } else { Records::PerQuery };
            let tls = TlsChoice { versions, resumption, early_data, records, groups };
            let http = HttpSettings { method, path };
            (
                if transport.is_encrypted() { tls } else { TlsChoice::default() },
                if transport.is_http() { http } else { HttpSettings::default() },
            )
        },
    )
}

/// Client subnets, and a file with a key; what is written here with its secret is not written out.
fn identities() -> impl Strategy<Value = (bool, Option<Subnets>, Option<Tsig>)> {
    let written = prop::sample::select(&["10.0.0.0/8 by /24", "192.0.2.0/24", "2001:db8::/56"][..])
        .prop_map(|text| Subnets::Written(text.parse().expect("the text is a constant")));
    let subnets = prop_oneof![written, path().prop_map(Subnets::File)];
    (any::<bool>(), option::of(subnets), option::of(path().prop_map(Tsig::File)))
}

/// Any load on a transport.
fn load(transport: Transport) -> impl Strategy<Value = LoadSettings> {
    let (ms, week) = (Duration::from_millis(1), Duration::from_secs(7 * 24 * 3_600));
    let times = (
        (duration(ms, week), option::of(1u64..=i64::MAX as u64)),
        duration(Duration::ZERO, week),
        duration(ms, Duration::from_secs(100)),
        duration(Duration::ZERO, Duration::from_secs(1)),
    );
    let mixes = prop::sample::select(&["A", "A:70,AAAA:25,HTTPS:5", "TYPE65280"][..])
        .prop_map(|text| Queries::Zone(text.parse().expect("the text is a constant")));
    let popular = (1u32..=100_000).prop_map(Queries::Popular);
    let queries = prop_oneof![mixes, path().prop_map(Queries::File), popular];
    let selection = prop::sample::select(&[Selection::InOrder, Selection::Uniform][..]);
    let receive_time = prop::sample::select(&ReceiveTime::ALL[..]);
    let threads = (1_024u32..=1_000_000, option::of(1u32..=1_024), cpus());
    let quickack =
        proptest::sample::select(vec![Quickack::Never, Quickack::OpenLoop, Quickack::Always]);
    let clocks = (receive_time, quickack);
    let asked = (queries, selection, any::<bool>(), option::of(edns(transport)), clocks);
    let clients = (behaviour(transport), tls_and_http(transport), identities());
    (mode(), times, threads, asked, clients).prop_map(
        move |(mode, times, threads, asked, (behaviour, (tls, http), identities))| {
            let ((duration, most_queries), warm_up, timeout, horizon) = times;
            let (clients, workers, cpus) = threads;
            let pinned = (!cpus.is_empty()).then_some(cpus.len() as u32);
            let (queries, selection, recursion_desired, edns, (receive_time, quickack)) = asked;
            let asks_again = behaviour.truncated == Truncated::AskOverTcp;
            let (cookies, subnets, tsig) = identities;
            // Cookies and subnets live in an OPT record.
            let needs_edns = cookies || subnets.is_some();
            let edns = edns.or(needs_edns.then(Edns::default));
            let is_udp = transport == Transport::Udp;
            LoadSettings {
                transport,
                clients,
                mode,
                duration,
                most_queries,
                warm_up,
                timeout,
                workers: pinned.or(workers),
                cpus,
                queries,
                selection,
                options: QueryOptions { recursion_desired, edns },
                horizon,
                behaviour,
                sources: None,
                tls,
                http,
                cookies,
                subnets,
                tsig,
                receive_time: if is_udp { receive_time } else { ReceiveTime::User },
                quickack: match transport.runs_over_tcp() || asks_again {
                    true => quickack,
                    false => Quickack::Never,
                },
            }
        },
    )
}

/// Addresses of the family of the server, and no loopback addresses if it has none.
fn sources(server: &Server) -> SourceAddresses {
    let target = match server {
        Server::External { target, .. } => target.ip(),
        Server::Embedded { process, .. } | Server::Installed { process, .. } => process.address,
    };
    let text =
        if target.is_ipv4() { "192.0.2.0/28,198.51.100.7" } else { "2001:db8::1-2001:db8::9" };
    text.parse().expect("the text is a constant")
}

/// Any variant, without its name.
fn variant() -> impl Strategy<Value = Variant> {
    let expect =
        (0u8..=10, 0.0..=1.0f64, 0.0..=1.0f64).prop_map(|(rcode, wrong_limit, lost_limit)| {
            Expectation { rcode, wrong_limit, lost_limit }
        });
    prop::sample::select(&Transport::ALL[..]).prop_flat_map(move |transport| {
        // Boxed: by value they are larger than the stack of a test.
        let asked = (load(transport).boxed(), topology().boxed());
        (server_settings(transport).boxed(), asked, expect.clone(), any::<bool>()).prop_map(
            move |(mut server, (mut load, topology), expect, has_sources)| {
                load.sources = has_sources.then(|| sources(&server.server));
                // It signs nothing.
                if matches!(server.server, Server::Embedded { .. }) {
                    load.tsig = None;
                }
                if server.kind() == Some(ServerKind::Nsd) {
                    load.tls.records = Records::PerQuery;
                }
                // More queries at a time on one connection it does not answer over QUIC.
                if let Mode::Closed { outstanding } = &mut load.mode
                    && server.kind() == Some(ServerKind::Knot)
                    && transport == Transport::Doq
                {
                    *outstanding = (*outstanding).min(9);
                }
                let mut topology = topology;
                // What forwards must have somebody to ask; what does not, may.
                let may_stand_alone = server.kind().is_none_or(ServerKind::serves_zones);
                if may_stand_alone && has_sources {
                    topology.chain.clear();
                }
                let topology = fitting(topology, &mut server, &mut load.queries);
                let compared_with = None;
                Variant { name: String::new(), server, topology, load, expect, compared_with }
            },
        )
    })
}

/// Durations of so many milliseconds.
fn range_of(milliseconds: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    milliseconds.prop_map(Duration::from_millis)
}

/// Any experiment; some variants are twins, so that they share settings.
fn experiment() -> impl Strategy<Value = Experiment> {
    let whole = ("[a-z0-9-]{1,64}", text(), 0.0..=1.0f64, 1u32..=5_000, 0..=i64::MAX as u64);
    let rounds = (
        prop::sample::select(vec![Alternate::Auto, Alternate::Slices, Alternate::Runs]),
        (range_of(5..60_000), 0.0..1.0f64),
        prop::option::of((
            prop::option::of(1u32..1_000_000_000),
            range_of(1..604_800_000),
            range_of(0..604_800_000),
        )),
    );
    let variants = vec((variant(), 1usize..3), 1..4);
    let answered_by = prop::option::of(prop::sample::select(Metric::ALL.to_vec()));
    (whole, rounds, variants, (any::<prop::sample::Index>(), answered_by)).prop_map(
        |((name, question, margin, runs, seed), rounds, variants, (baseline, answered_by))| {
            let (alternate, (slice, share), common) = rounds;
            // In whole milliseconds, and less than the slice.
            let lead = (slice.as_millis() as f64 * share).min(30_000.0) as u64;
            let lead = Duration::from_millis(lead);
            let slices = SlicePlan { slice, lead, tail: Duration::ZERO, mirrored: true };
            let common = common.map(|(rate_qps, duration, warm_up)| CommonSettings {
                rate_qps,
                duration,
                warm_up,
            });
            let mut variants: Vec<Variant> = variants
                .into_iter()
                .flat_map(|(variant, twins)| std::iter::repeat_n(variant, twins))
                .collect();
            for (at, variant) in variants.iter_mut().enumerate() {
                variant.name = format!("v-{at}");
            }
            // A report holds no more.
            let runs = runs.min(MAX_RUNS as u32 / variants.len() as u32);
            let baseline = baseline.get(&variants).name.clone();
            // Every other variant is compared with the first as well as with the baseline.
            let first = variants[0].name.clone();
            for variant in variants.iter_mut().skip(1).step_by(2) {
                let mut names = vec![first.clone(), baseline.clone()];
                names.retain(|name| *name != variant.name);
                // With itself alone is with none.
                variant.compared_with = Some(names);
            }
            Experiment {
                name,
                question,
                baseline,
                answered_by,
                margin,
                runs,
                seed,
                alternate,
                slices,
                common,
                variants,
            }
        },
    )
}

/// Whatever the text, the check ends with an experiment or with problems that can be shown; and an
/// experiment is the same after it was written and read.
fn check_any(text: &str, sets: &[String]) {
    match check_text(text, sets) {
        Ok(experiment) => {
            // The secret of a key is not written out, so the experiment cannot be read again.
            let is_secret = |it: &Variant| matches!(it.load.tsig, Some(Tsig::Written(_)));
            if !experiment.variants.iter().any(is_secret) {
                assert_eq!(check_text(&experiment.to_toml(), &[]).as_ref(), Ok(&experiment));
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
        sets in vec("(variant\\.(udp|x)\\.)?(load|server|repeat)\\.(rate|cpus|kind|runs|padding|edns_options|sources|tsig|types)=.{0,6}", 0..3),
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
        entries in vec((any::<prop::sample::Index>(), "[ -~\n\u{e9}]{0,9}|-?[0-9]{1,25}|\"[^\"\n\\\\]{0,9}\""), 0..6),
    ) {
        let mut text = String::from("[[variant]]\nname = \"a\"\n");
        for (key, value) in entries {
            let keys = dnslab_experiment::KEYS;
            text.push_str(&format!("{} = {value}\n", key.get(keys).path));
        }
        check_any(&text, &[]);
    }
}
