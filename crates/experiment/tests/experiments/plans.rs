//! Experiments explained before they run.

use dnslab_experiment::{Plan, explain};
use dnslab_record::SkippedVariant;
use dnslab_settings::check_text;

#[test]
fn a_chain_is_explained() {
    let text = "name = \"x\"\nquestion = \"What does it cost?\"\nlab.hosts = \"namespaces\"\n\
                link.server.loss = \"1%\"\nlink.upstream = { delay = \"3ms\", jitter = \"1ms\", rate_mbit = 100 }\n\
                upstream = { kind = \"embedded\", delay = \"1ms\", signed = true, queries_per_connection = 200 }\n\
                load = { clients = 1, outstanding = 1, popular_names = 2_000, queries_in_all = 2_000 }\n\
                repeat.runs = 2\n\
                [[variant]]\nname = \"unbound\"\nserver = { kind = \"unbound\", dnssec = true }\n\
                [[variant]]\nname = \"stubby\"\nserver.kind = \"dnsmasq\"\nrelay.kind = \"stubby\"\n\
                upstream = { transport = \"dot\", tickets = false }\n\
                [[variant]]\nname = \"missing\"\nserver.kind = \"knot-resolver\"\n";
    let experiment = check_text(text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let reason =
        "Knot Resolver is not installed\n  hint:    apt-get install knot-resolver".to_owned();
    let skipped = [SkippedVariant { variant: "missing".to_owned(), reason }];
    let plan = Plan::new(&experiment, &skipped);
    insta::assert_snapshot!(
        explain(&experiment, &plan, &skipped, &|_| "1.2.3 at /usr/sbin".to_owned())
    );
}

fn estimated_s(lines: &str) -> u64 {
    let text = format!(
        "name = \"x\"\nload.duration = \"1h\"\nload.warm_up = \"0s\"\n{lines}\n\
         [[variant]]\nname = \"a\"\nrepeat.runs = 1\n"
    )
    .replace("repeat.runs = 1\n", "");
    let experiment = check_text(&text, &["repeat.runs=1"]).unwrap();
    Plan::new(&experiment, &[]).time.whole().as_secs()
}

#[test]
fn a_load_of_a_known_length_is_estimated_by_it() {
    assert!(estimated_s("") >= 3_600);
    // 1,000 queries, each after both ways of the link and 5 ms.
    let chain = "server.kind = \"unbound\"\nupstream.kind = \"embedded\"\nlab.hosts = \"auto\"\n\
                 link.upstream.delay = \"20ms\"\nload.clients = 1\nload.outstanding = 1";
    assert!((45..=50).contains(&estimated_s(&format!("{chain}\nload.queries_in_all = 1_000"))));
    assert!((10..=15).contains(&estimated_s("load.rate = 100\nload.queries_in_all = 1_000")));
    assert!(estimated_s("load.rate = 1\nload.queries_in_all = 100_000") >= 3_600);
}
