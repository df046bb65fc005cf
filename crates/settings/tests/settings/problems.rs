//! Messages about wrong experiments.
//!
//! Each case is a small file with its overrides. Messages are snapshots, so that a changed word is looked at.

use dnslab_settings::{Origin, check_text, render};

fn check(name: &str, text: &str, sets: &[&str]) {
    let problems = check_text(text, sets).expect_err(name);
    let rendered = render(problems.as_slice(), text, "experiment.toml");
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, rendered);
    });
}

/// A right file, to put a fault below it.
const HEAD: &str = "name = \"x\"\n[[variant]]\nname = \"a\"\n";

fn top(lines: &str) -> String {
    format!("name = \"x\"\n{lines}\n[[variant]]\nname = \"a\"\n")
}

#[test]
fn everything_at_once() {
    let text = r#"name = "Encryption test"
baseline = "upd"
warm_up = "2s"

[server]
kind = "bnid"
zone = { name = "example.test", records = 0, tll = "1s" }

[load]
clinets = 4
outstanding = 100
rate = 50_000
duration = "10"
timeout = 2

[[variant]]
name = "udp"
load.transport = "upd"

[[variant]]
name = "udp"
repeat.runs = 3
"#;
    check("everything_at_once", text, &["load.clients=none", "repeet.runs=3"]);
}

#[test]
fn structure() {
    let cases: [(&str, String); 12] = [
        ("empty_file", String::new()),
        ("no_variant", "name = \"x\"\n".into()),
        ("no_variant_in_list", "name = \"x\"\nvariant = []\n".into()),
        ("variant_is_a_table", "name = \"x\"\n[variant]\nname = \"a\"\n".into()),
        ("variant_without_name", "name = \"x\"\n[[variant]]\nload.clients = 1\n".into()),
        ("variant_with_bad_name", "name = \"x\"\n[[variant]]\nname = \"BIND 9.18\"\n".into()),
        ("variant_named_by_number", "name = \"x\"\n[[variant]]\nname = 9\n".into()),
        ("two_variants_of_a_name", format!("{HEAD}[[variant]]\nname = \"a\"\n")),
        ("variants_instead_of_variant", "name = \"x\"\n[[variants]]\nname = \"a\"\n".into()),
        ("group_is_no_table", top("server = \"bind\"")),
        ("key_is_a_table", top("[load.clients]\nfew = 4")),
        ("no_such_baseline", top("baseline = \"dot\"")),
    ];
    for (name, text) in cases {
        check(name, &text, &[]);
    }
}

#[test]
fn compared_answers() {
    let two = "[[variant]]\nname = \"b\"\n";
    let open = "compare.answers = true\nload.rate = 100";
    let cases = [
        ("answers_of_a_closed_loop", top("compare.answers = true") + two),
        ("answers_of_one_variant", top(open)),
        ("answers_of_other_rates", top(open) + two + "load.rate = 200\n"),
        ("answers_of_other_names", top(open) + two + "server.zone.records = 10\n"),
        (
            "answers_of_a_capture_and_a_population",
            top("compare.answers = true\nload.capture = \"x\"")
                + two
                + "load.population = \"typical\"\n",
        ),
    ];
    for (name, text) in cases {
        check(name, &text, &[]);
    }
}

#[test]
fn what_does_not_change_the_queries_may_differ() {
    let text = top("compare.answers = true\nload.rate = 100\nserver.zone.ttl = \"5s\"")
        + "load.transport = \"dot\"\nload.padding = 128\n[[variant]]\nname = \"b\"\n\
           server.kind = \"bind\"\nload.connect = \"on-demand\"\nload.edns_payload = 1232\n";
    check_text(&text, &[]).unwrap_or_else(|problems| panic!("{problems:?}"));
}

#[track_caller]
fn check_many(text: &str, sets: &[&str], count: usize) {
    let problems = check_text(text, sets).expect_err("it was taken");
    let shown = problems.as_slice();
    assert_eq!(shown.len(), 101);
    let further = format!("{} further problems are not shown", count - 100);
    assert_eq!(shown[100].message, further);
    let rendered = render(shown, text, "experiment.toml");
    assert!(rendered.contains(&further), "{rendered}");
    assert!(rendered.len() < 100_000, "{} octets", rendered.len());
}

/// What is shown of many problems has bounds: a hundred and a sum, each of a few lines.
#[test]
fn shares_of_a_rate() {
    check("shares_without_a_length", &top("common.shares = \"10%,50%\""), &[]);
    for (name, shares) in [
        ("shares_beyond_the_rate", "50%,100%"),
        ("shares_in_disorder", "50%,10%"),
        ("shares_that_are_none", "10%,half"),
    ] {
        check(name, &top(&format!("common.duration = \"1s\"\ncommon.shares = \"{shares}\"")), &[]);
    }
}

#[test]
fn many_problems_are_counted_and_the_first_are_shown() {
    let lines =
        |count: usize, line: &dyn Fn(usize) -> String| -> String { (0..count).map(line).collect() };
    check_many(&format!("{}{HEAD}", lines(20_000, &|n| format!("k{n} = 1\n"))), &[], 20_000);
    let variants = lines(400, &|n| format!("[[variant]]\nname = \"v{n}\"\nx{n} = 1\n"));
    check_many(&format!("name = \"x\"\n{variants}"), &[], 400);
    let names = lines(999, &|n| format!("w{n},")) + "w999";
    let variants = lines(2, &|n| format!("[[variant]]\nname = \"v{n}\"\n"));
    let text = format!("name = \"x\"\n{variants}");
    // They are wrong at the top, and counted once.
    check_many(&text, &[&format!("compare.with={names}")], 1_000);
    let sets: Vec<String> = (0..5_000).map(|n| format!("load.clinets{n}=1")).collect();
    check_many(HEAD, &sets.iter().map(String::as_str).collect::<Vec<_>>(), 5_000);
    // One line, which is not repeated for each of them.
    let keys = lines(20_000, &|n| format!("k{n}=1,"));
    check_many(&format!("load = {{ {keys} clients = 1 }}\n{HEAD}"), &[], 20_000);
}

#[test]
fn places_in_one_text_share_it() {
    let set = format!("compare.with={}", "x,".repeat(50) + &"y".repeat(10_000));
    let problems = check_text(HEAD, &[&set]).expect_err("it was taken");
    let texts: Vec<&str> = problems
        .as_slice()
        .iter()
        .flat_map(|problem| &problem.marks)
        .filter_map(|mark| match &mark.place.origin {
            Origin::CommandLine(text) => Some(&**text),
            _ => None,
        })
        .collect();
    assert!(texts.len() > 1 && texts.iter().all(|text| std::ptr::eq(*text, texts[0])), "{texts:?}");
}

#[test]
fn more_names_than_there_can_be_variants_are_refused_at_once() {
    let set = format!("compare.with={}", "a,".repeat(50_000));
    let problems = check_text(HEAD, &[&set]).expect_err("it was taken");
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    let help = problem.help.as_deref().unwrap_or_default();
    assert!(help.contains("it names 50001 variants") && help.contains("at most 1000"), "{help}");
}

#[test]
fn nothing_runs_on_no_cpu() {
    for (text, set) in [("load.cpus = []", ""), ("", "load.cpus=[]"), ("", "server.cpus=")] {
        let sets: Vec<&str> = Some(set).into_iter().filter(|set| !set.is_empty()).collect();
        let problems = check_text(&top(text), &sets).expect_err("it was taken");
        let message = &problems.as_slice()[0].message;
        assert!(message.contains("is an empty list: nothing can run on no CPU"), "{message}");
    }
}

/// The help of the first says what is the most.
#[track_caller]
fn check_messages(text: &str, expected: &[&str]) {
    let problems = check_text(text, &[]).expect_err("it was taken");
    let found: Vec<&str> =
        problems.as_slice().iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(found, expected);
    let help = problems.as_slice()[0].help.as_deref().unwrap_or_default();
    assert!(help.starts_with("at most "), "{help}");
}

#[test]
fn more_than_a_report_can_hold_is_refused_with_its_number() {
    let variants = |count: usize| -> String {
        (0..count).map(|number| format!("[[variant]]\nname = \"v{number}\"\n")).collect()
    };
    let text = format!("name = \"x\"\n{}", variants(5_000));
    check_messages(&text, &["5000 variants are more than a report can tell apart"]);
    let text = format!("name = \"x\"\nrepeat.runs = 5_000\n{}", variants(3));
    check_messages(&text, &["15000 runs are more than a report can hold"]);
    let names: Vec<String> = (0..101).map(|number| format!("v{number}")).collect();
    let all = format!("name = \"x\"\ncompare.with = \"{}\"\n{}", names.join(","), variants(101));
    check_messages(&all, &["10100 pairs of variants are more than a report can compare"]);
}

#[test]
fn values() {
    let cases = [
        ("count_of_zero", "load.clients = 0"),
        ("count_below_zero", "load.clients = -4"),
        ("count_in_quotes", "load.clients = \"4\""),
        ("count_with_fraction", "load.clients = 4.0"),
        ("rounds_of_no_time", "repeat.runs = \"10ms\""),
        ("rounds_in_quotes", "repeat.runs = \"7\""),
        ("rounds_with_fraction", "repeat.runs = 2.5"),
        ("rounds_of_strange_unit", "repeat.runs = \"a minute\""),
        ("duration_without_unit", "load.duration = 10"),
        ("duration_in_quotes_without_unit", "load.duration = \"10\""),
        ("duration_of_strange_unit", "load.duration = \"10 sec\""),
        ("duration_too_long", "load.timeout = \"5m\""),
        ("busy_for_too_long", "server.busy = \"2s\""),
        ("ttl_of_half_a_second", "server.zone.ttl = \"1500ms\""),
        ("rate_of_zero", "load.rate = 0"),
        ("share_without_percent", "expect.wrong_limit = 5"),
        ("share_above_the_whole", "repeat.margin = \"200%\""),
        ("share_of_nothing", "repeat.margin = \"much\""),
        ("word_with_a_slip", "server.kind = \"Bind\""),
        ("word_unknown", "load.transport = \"carrier pigeon\""),
        ("boolean_in_quotes", "load.dnssec_ok = \"true\""),
        ("cpu_twice", "load.cpus = [0, 1, 0]"),
        ("cpus_as_text", "load.cpus = \"0-3\""),
        ("address_is_a_name", "server.address = \"ns1.example\""),
        ("address_is_neither", "server.address = \"192.0.2\""),
        ("port_of_zero", "server.address = \"192.0.2.1:0\""),
        ("port_above_the_last", "server.address = \"[2001:db8::1]:65536\""),
        ("range_of_ports", "server.address = \"ns1.example:53-60\""),
        ("port_is_missing", "server.address = \"192.0.2.1:\""),
        ("zone_is_no_name", "server.zone.name = \"example..test\""),
        ("empty_text", "question = \"\""),
    ];
    for (name, lines) in cases {
        check(name, &top(lines), &[]);
    }
}

/// The words are those of `dnslab serve`, all at once.
#[test]
fn programs_of_the_embedded_server() {
    check(
        "programs_of_the_embedded_server",
        "name = \"x\"\n[server]\ndelay = \"xx\"\nloss = \"101%\"\n\
         [[variant]]\nname = \"a\"\nserver.delay = \"uniform:9ms..1ms\"\n\
         [[variant]]\nname = \"b\"\nserver.delay = \"5\"\nserver.loss = \"-1\"\n\
         [[variant]]\nname = \"c\"\nserver = { kind = \"dnsmasq\" }\n\
         upstream = { kind = \"embedded\", delay = \"25h\", loss = \"some\" }\n",
        &["variant.b.server.delay=gamma:1ms"],
    );
}

#[test]
fn combinations() {
    let external = "server = { kind = \"external\", address = \"192.0.2.1\" }";
    let cases: [(&str, String); 24] = [
        ("connections_without_queries", "load = { outstanding = 2, connections = 3 }".into()),
        ("rate_after_the_end", "load.rate = \"steps:0,1000/60s\"".into()),
        (
            "early_data_by_post_of_a_mix",
            "load = { transport = \"dot\", mix = \"doh2:50%\", early_data = true }".into(),
        ),
        (
            "old_tls_over_quic_of_a_mix",
            "load = { transport = \"dot\", mix = \"doq:50%\", tls_versions = \"1.2\" }".into(),
        ),
        ("unreadable_outstanding", "load = { outstanding = \"x\", connections = 3 }".into()),
        ("rate_and_outstanding", "load.rate = 5\nload.outstanding = 6".into()),
        ("pace_without_rate", "load.pace = \"poisson\"".into()),
        ("delay_with_bind", "server = { kind = \"bind\", delay = \"5ms\" }".into()),
        ("busy_with_bind", "server = { kind = \"bind\", busy = \"200ns\" }".into()),
        ("extra_with_default_kind", "server.extra = \"recursion no;\"".into()),
        (
            "extra_with_external",
            "[server]\nkind = \"external\"\naddress = \"::1\"\nextra = \"x\"".into(),
        ),
        ("pid_with_bind", "server = { kind = \"bind\", pid = 7 }".into()),
        ("pid_and_unit", external.replace(" }", ", pid = 7, unit = \"named.service\" }")),
        ("pid_of_zero", external.replace(" }", ", pid = 0 }")),
        ("unit_is_a_path", external.replace(" }", ", unit = \"system.slice/named.service\" }")),
        ("external_without_address", "server.kind = \"external\"".into()),
        ("external_dot_unverified", format!("{external}\nload.transport = \"dot\"")),
        (
            "port_but_only_dot",
            format!(
                "{}\nload.transport = \"dot\"",
                external.replace(" }", ", port = 5300, insecure = true }")
            ),
        ),
        (
            "port_twice",
            "server = { kind = \"external\", address = \"[::1]:5300\", port = 53 }".into(),
        ),
        (
            "authority_and_insecure",
            format!(
                "{}\nload.transport = \"dot\"",
                external.replace(" }", ", authority = \"ca.pem\", insecure = true }")
            ),
        ),
        ("port_for_started_server", "server.address = \"127.0.0.1:5300\"".into()),
        ("more_workers_than_clients", "load = { clients = 2, workers = 3 }".into()),
        ("more_cpus_than_clients", "load = { clients = 4, cpus = [0, 1, 2, 3, 4] }".into()),
        ("workers_and_cpus_differ", "load = { workers = 3, cpus = [0, 1] }".into()),
    ];
    for (name, lines) in cases {
        check(name, &top(&lines), &[]);
    }
}

#[test]
fn loads() {
    let external = "server = { kind = \"external\", address = \"192.0.2.1\", insecure = true }";
    let cases: [(&str, String); 53] = [
        ("rate_of_no_form", "load.rate = \"steps:10,20\"".into()),
        ("rate_of_nothing", "load.rate = \"ramp:0..0/5s\"".into()),
        ("option_without_code", "load.edns_options = [\"c0ffee\"]".into()),
        ("options_as_text", "load.edns_options = \"65001:c0ffee\"".into()),
        ("option_twice", "load.edns_options = [\"10:00\"]\nload.cookies = true".into()),
        ("padding_as_text", "load.padding = \"128\"".into()),
        ("padding_in_the_clear", "load.padding = true".into()),
        ("keepalive_over_udp", "load.keepalive = true".into()),
        (
            "truncated_over_tcp",
            "load = { transport = \"tcp\", truncated = \"ask-over-tcp\" }".into(),
        ),
        (
            "kernel_time_over_tcp",
            "load = { transport = \"tcp\", receive_time = \"kernel\" }".into(),
        ),
        ("http_method_over_tls", "load = { transport = \"dot\", http_method = \"get\" }".into()),
        ("path_with_variable", "load = { transport = \"doh2\", http_path = \"/q{?dns}\" }".into()),
        ("path_without_slash", "load = { transport = \"doh2\", http_path = \"dns\" }".into()),
        ("resumption_in_the_clear", "load.resumption = false".into()),
        ("old_tls_over_quic", "load = { transport = \"doq\", tls_versions = \"1.2\" }".into()),
        (
            "early_data_with_old_tls",
            "load = { transport = \"dot\", tls_versions = \"1.2\", early_data = true }".into(),
        ),
        (
            "early_data_without_tickets",
            "load = { transport = \"dot\", resumption = false, early_data = true }".into(),
        ),
        ("early_data_by_post", "load = { transport = \"doh3\", early_data = true }".into()),
        (
            "early_data_by_post_when_asked_for",
            "load = { transport = \"doh2\", http_method = \"post\", early_data = true }".into(),
        ),
        ("sources_of_no_form", "load.sources = \"localhost\"".into()),
        (
            "sources_of_another_family",
            "server.address = \"::1\"\nload.sources = \"127.0.1.0/24\"".into(),
        ),
        (
            "further_servers_in_a_closed_loop",
            "server = { kind = \"external\", address = \"192.0.2.1\", further = \"192.0.2.2\" }".into(),
        ),
        (
            "further_servers_by_name",
            "server = { kind = \"external\", address = \"192.0.2.1\", further = \"ns2\" }\nload.rate = 10"
                .into(),
        ),
        (
            "further_servers_of_another_family",
            "server = { kind = \"external\", address = \"127.0.0.1\", further = \"::1\" }\n\
             load = { rate = 10, sources = \"127.0.1.0/24\" }"
                .into(),
        ),
        ("backoff_of_one_attempt", "load.backoff = 2".into()),
        ("order_of_one_server", "load.server_order = \"rotate\"".into()),
        ("attempts_without_end", "load = { attempts = 10, backoff = 2, timeout = \"1s\" }".into()),
        ("loopback_sources_far_away", format!("{external}\nload.sources = \"127.0.1.0/24\"")),
        ("types_of_a_file", "load = { queries = \"names.txt\", types = \"A\" }".into()),
        ("types_of_no_form", "load.types = \"A:0,AAAA\"".into()),
        ("time_window_of_no_form", "load.windows = \"cold:0..60s\"".into()),
        (
            "time_windows_after_the_end",
            "load.duration = \"3s\"\nload.windows = \"a:0s..3s,b:2s..4s,c:5s..7s\"".into(),
        ),
        ("subnets_of_no_form", "load.client_subnets = \"10.0.0.0/8 by /4\"".into()),
        ("quickack_over_udp", "load.quickack = \"always\"".into()),
        ("quota_of_nothing", "load.connection_quota = \"exact\"".into()),
        ("records_over_http", "load = { transport = \"doh2\", tls_records = \"shared\" }".into()),
        (
            "shared_records_to_nsd",
            "server.kind = \"nsd\"\nload = { transport = \"dot\", tls_records = \"shared\" }".into(),
        ),
        (
            "many_streams_of_knot",
            "server.kind = \"knot\"\nload = { transport = \"doq\", outstanding = 20, connections = 2 }".into(),
        ),
        ("groups_in_the_clear", "load.tls_groups = [\"x25519\"]".into()),
        ("groups_as_text", "load = { transport = \"dot\", tls_groups = \"x25519\" }".into()),
        (
            "group_twice",
            "load = { transport = \"dot\", tls_groups = [\"x25519\", \"x25519\"] }".into(),
        ),
        (
            "hybrid_group_with_old_tls",
            "load = { transport = \"dot\", tls_versions = \"1.2\", tls_groups = [\"x25519mlkem768\"] }"
                .into(),
        ),
        (
            "certificate_of_external",
            format!(
                "{}\nload.transport = \"dot\"",
                external.replace(" }", ", certificate = \"chain\" }")
            ),
        ),
        ("population_of_nothing", "load.population = \"\"".into()),
        (
            "population_and_capture",
            "load = { population = \"typical\", capture = \"monday.pcap\" }".into(),
        ),
        (
            "pace_of_a_population",
            "load = { population = \"typical\", rate = 10, pace = \"poisson\" }".into(),
        ),
        (
            "edns_of_a_population",
            "load = { population = \"typical\", dnssec_ok = true, outstanding = 3 }".into(),
        ),
        (
            "steps_of_a_population",
            "load = { population = \"typical\", rate = \"steps:10,20/5s\" }".into(),
        ),
        ("padding_of_a_capture", "load = { capture = \"a\", padding = true }".into()),
        (
            "ports_of_captured_servers",
            "load = { capture = \"a\", capture_server = \"192.0.2.53:5353\", capture_ports = \"53\" }".into(),
        ),
        ("captured_servers", "load = { capture = \"a\", capture_server = \"ns1\", capture_ports = \"0\" }".into()),
        ("captured_servers_without_a_capture", "load = { capture_server = \"192.0.2.53\" }".into()),
        ("signatures_on_embedded", "load.tsig_file = \"key.txt\"".into()),
    ];
    for (name, lines) in cases {
        check(name, &top(&lines), &[]);
    }
}

/// A key above the variants must be used by one of them. A key in a variant must be used by that variant.
#[test]
fn transports_without_it() {
    let dot = "[[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n";
    let own = format!("{HEAD}load.padding = true\n{dot}");
    check("padding_in_a_variant_in_the_clear", &own, &[]);
    let sets = ["load.http_path=/q", "load.tls_versions=1.3", "variant.a.load.resumption=false"];
    check("sets_that_no_transport_uses", &format!("{HEAD}{dot}"), &sets);
}

#[test]
fn keys_of_tsig() {
    let bind = |lines: &str| top(&format!("server.kind = \"bind\"\n{lines}"));
    let both = "load = { tsig = \"a.key:c2VjcmV0\", tsig_file = \"key.txt\" }";
    let cases: [(&str, String, &[&str]); 4] = [
        ("tsig_twice", bind(both), &[]),
        ("tsig_of_no_form", bind("load.tsig = \"c2VjcmV0\""), &[]),
        ("tsig_of_unknown_algorithm", bind(""), &["load.tsig=md5:a.key:c2VjcmV0"]),
        ("tsig_without_its_secret", bind("load.tsig = \"hmac-sha256:a:<secret not kept>\""), &[]),
    ];
    for (name, text, sets) in cases {
        check(name, &text, sets);
    }
}

#[test]
fn overrides() {
    let two = format!("{HEAD}load.transport = \"udp\"\nload.outstanding = 7\n");
    let cases: [(&str, &[&str]); 9] = [
        ("set_without_value", &["load.clients"]),
        ("set_of_nothing", &[""]),
        ("set_of_unknown_key", &["load.clinets=4"]),
        ("set_of_wrong_value", &["load.duration=10"]),
        ("set_in_unknown_variant", &["variant.b.load.clients=4"]),
        ("set_of_whole_in_variant", &["variant.a.repeat.runs=4"]),
        ("set_without_effect", &["load.transport=dot"]),
        ("set_of_rate_without_effect", &["load.rate=1000"]),
        ("set_of_both", &["variant.a.load.rate=1000", "variant.a.load.outstanding=5"]),
    ];
    for (name, sets) in cases {
        check(name, &two, sets);
    }
}

#[test]
fn no_toml() {
    let cases = [
        ("bare_duration", "name = \"x\"\n[load]\nduration = 10s\n"),
        ("bare_word", "name = \"x\"\nserver.kind = bind\n"),
        ("open_string", "name = \"x\n[[variant]]\n"),
        ("key_twice", "name = \"x\"\nname = \"y\"\n"),
        ("stray_bracket", "name = \"x\"\n[[variant]\nname = \"a\"\n"),
    ];
    for (name, text) in cases {
        check(name, text, &[]);
    }
}

#[test]
fn lines_are_counted() {
    let text = "name = \"x\"\n\nlaod.x = 1\n[[variant]]\nname = \"a\"\nload.clients = 0\n";
    let problems = check_text(text, &["x=1"]).unwrap_err();
    let lines: Vec<_> = problems.as_slice().iter().map(|problem| problem.line(text)).collect();
    assert_eq!(lines, [Some(3), Some(6), None]);
}

#[test]
fn colour_is_only_colour() {
    let text = top("load.clients = 0");
    let problems = check_text(&text, &[]).unwrap_err();
    let plain = render(problems.as_slice(), &text, "x.toml");
    let styled = dnslab_settings::render_styled(problems.as_slice(), &text, "x.toml");
    assert!(!plain.contains('\u{1b}') && styled.contains('\u{1b}'));
}

#[test]
fn what_was_published() {
    let whole = "figure = \"qps\"\nvalue = \"-20%\"\nsource = \"a talk\"\n";
    let cases = [
        ("published_of_nobody", format!("{HEAD}[[published]]\nvariant = \"b\"\n{whole}")),
        ("published_as_a_table", format!("{HEAD}[published]\nvariant = \"a\"\n{whole}")),
        (
            "published_without_all",
            format!("{HEAD}[[published]]\nvariant = \"a\"\nunit = \"qps\"\n"),
        ),
        // Without `against` it is no difference.
        ("published_value", format!("{HEAD}[[published]]\nvariant = \"a\"\n{whole}")),
        (
            "published_difference",
            format!(
                "{HEAD}[[published]]\nvariant = \"a\"\nagainst = \"a\"\nfigure = \"p50\"\nvalue = \"3\"\n\
                 source = \"a talk\"\n"
            ),
        ),
    ];
    for (name, text) in cases {
        check(name, &text, &[]);
    }
}
