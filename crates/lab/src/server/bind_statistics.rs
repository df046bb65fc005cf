//! BIND's statistics channel: JSON, or XML where BIND was built without a library for JSON (BIND 9
//! Administrator Reference Manual, "Monitoring the Name Server").

use std::collections::BTreeMap;
use std::net::SocketAddr;

use dnslab_record::counter;
use serde_json::Value;

use super::http;

/// The counters that are read: group, BIND's name, our name.
const COUNTS: [(Group, &str, &str); 21] = [
    (Group::Opcodes, "QUERY", counter::QUERIES),
    (Group::Server, "QryUDP", counter::QUERIES_UDP),
    // BIND counts TCP, TLS and HTTPS together.
    (Group::Server, "QryTCP", "QryTCP"),
    (Group::Server, "Response", counter::RESPONSES),
    (Group::Server, "TruncatedResp", "answers.truncated"),
    (Group::Server, "QrySERVFAIL", "answers.servfail"),
    (Group::Server, "QryDropped", "dropped"),
    (Group::Server, "QryRecursion", "QryRecursion"),
    (Group::Cache, "QueryHits", counter::CACHE_HITS),
    (Group::Cache, "QueryMisses", counter::CACHE_MISSES),
    (Group::Resolver, "Queryv4", "Queryv4"),
    (Group::Resolver, "Queryv6", "Queryv6"),
    (Group::Resolver, "Retry", "Retry"),
    (Group::Resolver, "QueryTimeout", counter::UPSTREAM_TIMEOUTS),
    (Group::Resolver, "QueryAbort", "QueryAbort"),
    // What a resolver is told by other servers, and what it finds of their signatures.
    (Group::Resolver, "Responsev4", "Responsev4"),
    (Group::Resolver, "Responsev6", "Responsev6"),
    (Group::Resolver, "SERVFAIL", "upstream.answers.servfail"),
    (Group::Resolver, "Truncated", "upstream.answers.truncated"),
    (Group::Resolver, "Lame", "upstream.answers.lame"),
    (Group::Resolver, "ValFail", "answers.bogus"),
];

/// The counters of dnstap: BIND's name, our name.
const DNSTAP: [(&str, &str); 2] =
    [("DNSTAPsuccess", counter::DNSTAP_MESSAGES), ("DNSTAPdropped", counter::DNSTAP_DROPPED)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Opcodes,
    Server,
    /// Of the view that every query is in.
    Resolver,
    /// Of that view.
    Cache,
    /// Present only where BIND writes dnstap.
    Dnstap,
}

/// Fails with half a sentence if the channel does not answer or cannot be read.
pub(super) fn read(address: SocketAddr) -> Result<BTreeMap<String, u64>, String> {
    match http::get(address, "/json/v1/server").map(|text| serde_json::from_str::<Value>(&text)) {
        Ok(Ok(json)) => Ok(counts(|group, name| in_json(&json, group, name))),
        // This build has no JSON.
        _ => {
            let xml = http::get(address, "/xml/v3/server")?;
            Ok(counts(|group, name| in_xml(&xml, group, name)))
        }
    }
}

/// The counters by their common names. BIND leaves zeros out of JSON.
fn counts(find: impl Fn(Group, &str) -> Option<u64>) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = COUNTS
        .iter()
        .map(|(group, name, common)| ((*common).to_owned(), find(*group, name).unwrap_or(0)))
        .collect();
    // BIND counts each family by itself.
    for (names, common) in [
        (["Queryv4", "Queryv6"], counter::UPSTREAM_QUERIES),
        (["Responsev4", "Responsev6"], "upstream.answers"),
    ] {
        let sum = names.into_iter().filter_map(|name| counts.remove(name)).sum();
        counts.insert(common.to_owned(), sum);
    }
    let dnstap = DNSTAP.map(|(name, common)| (common, find(Group::Dnstap, name)));
    // If one is present, the other is 0. If none is, there is no dnstap or no message yet.
    if dnstap.iter().any(|(_, count)| count.is_some()) {
        counts.extend(dnstap.map(|(common, count)| (common.to_owned(), count.unwrap_or(0))));
    }
    counts
}

/// In `/json/v1/server`.
fn in_json(json: &Value, group: Group, name: &str) -> Option<u64> {
    let resolver = &json["views"]["_default"]["resolver"];
    let group = match group {
        Group::Opcodes => &json["opcodes"],
        Group::Server => &json["nsstats"],
        Group::Resolver => &resolver["stats"],
        Group::Cache => &resolver["cachestats"],
        Group::Dnstap => &json["dnstapstats"],
    };
    group[name].as_u64()
}

/// In `/xml/v3/server`, which BIND writes without white space between its tags.
fn in_xml(xml: &str, group: Group, name: &str) -> Option<u64> {
    let (scope, kind) = match group {
        Group::Opcodes => (xml, "opcode"),
        Group::Server => (xml, "nsstat"),
        Group::Dnstap => (xml, "dnstap"),
        Group::Resolver => (between(xml, "<view name=\"_default\">", "</view>")?, "resstats"),
        Group::Cache => (between(xml, "<view name=\"_default\">", "</view>")?, "cachestats"),
    };
    let counters = between(scope, &format!("<counters type=\"{kind}\">"), "</counters>")?;
    between(counters, &format!("<counter name=\"{name}\">"), "</counter>")?.parse().ok()
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    rest.split_once(end).map(|(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dnstap_is_counted_where_it_is_written() {
        let counts = |json: serde_json::Value| {
            let counts = counts(|group, name| in_json(&json, group, name));
            [counter::DNSTAP_MESSAGES, counter::DNSTAP_DROPPED]
                .map(|name| counts.get(name).copied())
        };
        let written = serde_json::json!({ "dnstapstats": { "DNSTAPsuccess": 5 } });
        assert_eq!(counts(written), [Some(5), Some(0)]);
        let dropped = serde_json::json!({ "dnstapstats": { "DNSTAPdropped": 2 } });
        assert_eq!(counts(dropped), [Some(0), Some(2)]);
        assert_eq!(counts(serde_json::json!({ "nsstats": {} })), [None, None]);
    }

    #[test]
    fn json_and_xml_say_the_same() {
        let json = serde_json::json!({
            "opcodes": { "QUERY": 7 },
            "nsstats": { "QryUDP": 4, "QryTCP": 3, "Response": 7 },
            "dnstapstats": { "DNSTAPsuccess": 12, "DNSTAPdropped": 2 },
            "views": {
                "_bind": { "resolver": { "stats": { "Queryv4": 99 } } },
                "_default": { "resolver": {
                    "stats": { "Queryv4": 4, "Queryv6": 1, "Responsev4": 3, "Responsev6": 1, "ValFail": 1 },
                    "cachestats": { "QueryHits": 3, "QueryMisses": 4 },
                } },
            },
        });
        let xml = "<server><counters type=\"opcode\"><counter name=\"QUERY\">7</counter></counters>\
                   <counters type=\"nsstat\"><counter name=\"QryUDP\">4</counter>\
                   <counter name=\"QryTCP\">3</counter><counter name=\"Response\">7</counter>\
                   </counters><counters type=\"dnstap\">\
                   <counter name=\"DNSTAPsuccess\">12</counter>\
                   <counter name=\"DNSTAPdropped\">2</counter></counters></server><views><view name=\"_default\">\
                   <counters type=\"resstats\"><counter name=\"Queryv4\">4</counter>\
                   <counter name=\"Queryv6\">1</counter>\
                   <counter name=\"Responsev4\">3</counter>\
                   <counter name=\"Responsev6\">1</counter>\
                   <counter name=\"ValFail\">1</counter></counters><counters type=\"cachestats\">\
                   <counter name=\"QueryHits\">3</counter><counter name=\"QueryMisses\">4</counter>\
                   </counters></view><view name=\"_bind\"><counters type=\"resstats\">\
                   <counter name=\"Queryv4\">99</counter></counters></view></views>";
        let counts_of_json = counts(|group, name| in_json(&json, group, name));
        assert_eq!(counts_of_json, counts(|group, name| in_xml(xml, group, name)));
        assert_eq!(counts_of_json.get(counter::QUERIES), Some(&7));
        assert_eq!(counts_of_json.get(counter::CACHE_HITS), Some(&3));
        assert_eq!(counts_of_json.get(counter::UPSTREAM_QUERIES), Some(&5));
        assert_eq!(counts_of_json.get(counter::UPSTREAM_TIMEOUTS), Some(&0));
        assert_eq!(counts_of_json.get("upstream.answers"), Some(&4));
        assert_eq!(counts_of_json.get("answers.bogus"), Some(&1));
        assert_eq!(counts_of_json.get(counter::DNSTAP_MESSAGES), Some(&12));
        assert_eq!(counts_of_json.get(counter::DNSTAP_DROPPED), Some(&2));
    }
}
