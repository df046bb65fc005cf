//! Shares found in a sample are those of the file.

use domain::base::iana::Rtype;

use super::{Asker, internet};
use crate::model::{Fault, Internet, Zone};

const SAMPLE: u64 = 20_000;

/// Six standard deviations of a share in a sample of that size, and a little for a share of zero.
#[track_caller]
fn check(what: &str, hits: usize, all: usize, share: f64) {
    let found = hits as f64 / all as f64;
    let bound = 6.0 * (share * (1.0 - share) / all as f64).sqrt() + 1e-9;
    assert!((found - share).abs() <= bound, "{what}: {found} of {all}, not {share}");
}

fn count(internet: &Internet, is_it: impl Fn(&Internet, u64) -> bool) -> usize {
    (0..SAMPLE).filter(|domain| is_it(internet, *domain)).count()
}

#[test]
fn zones_have_the_faults_of_the_file() {
    let internet = internet(
        "seed = 21\n[faults]\nlame = 0.1\ndead = 0.2\nslow = 0.05\nedns_formerr = 0.04\n\
         edns_ignored = 0.03\nwhole = 0.25\n[operators]\nown_names = 0.4\n\
         servers_per_zone = [[2, 3], [4, 1]]\n[dnssec]\ntop_level = 1\ndomains = 0.3\nexpired = 0.1\n",
    );
    let all = SAMPLE as usize;
    let of_fault =
        |fault: Fault| count(&internet, |internet, domain| internet.fault(domain) == fault);
    check("lame", of_fault(Fault::Lame), all, 0.1);
    check("dead", of_fault(Fault::Dead), all, 0.2);
    check("slow", of_fault(Fault::Slow), all, 0.05);
    let signed = count(&internet, |internet, domain| {
        internet.is_signed(Zone::Hosted { domain, region: None })
    });
    check("signed", signed, all, 0.3);
    // Signed zones have servers with EDNS.
    check("FORMERR", of_fault(Fault::EdnsFormErr), all - signed, 0.04);
    check("ignored", of_fault(Fault::EdnsIgnored), all - signed, 0.03);
    let own = count(&internet, |internet, domain| internet.hosting(domain, None).own_names);
    check("own names", own, all, 0.4);
    let four = count(&internet, |internet, domain| internet.hosting(domain, None).count == 4);
    check("four servers", four, all, 0.25);
    let whole = count(&internet, |internet, domain| internet.is_out_of_order(domain, None));
    check("out of order", whole, all, 0.3 * 0.25);
    let expired = count(&internet, |internet, domain| {
        internet.is_expired(Zone::Hosted { domain, region: None })
    });
    check("expired", expired, all, 0.1);
    let com = internet.top_level(b"com").unwrap();
    check(
        "com",
        count(&internet, |internet, domain| internet.registry_of(domain) == com),
        all,
        0.41,
    );
    // Half of the zones are with the first sqrt(2,000).
    let few = count(&internet, |internet, domain| internet.hosting(domain, None).operator < 44);
    check("large operators", few, all, (45_f64).ln() / (2001_f64).ln());
}

#[test]
fn keys_have_the_algorithms_of_the_file() {
    let internet = internet(
        "seed = 23\n[dnssec]\nroot_algorithm = 15\ntop_level_algorithms = [[8, 1], [13, 3]]\n\
         algorithms = [[8, 3], [13, 5], [15, 2]]\n",
    );
    let number = |zone| internet.algorithm(zone) as u8;
    assert_eq!(number(Zone::Root), 15);
    let tops = internet.top_level_count;
    let with =
        |wanted| (0..tops as u32).filter(|top| number(Zone::Registry(*top)) == wanted).count();
    check("RSA", with(8), tops, 0.25);
    check("ECDSA", with(13), tops, 0.75);
    for (wanted, share) in [(8, 0.3), (13, 0.5), (15, 0.2)] {
        let found =
            count(&internet, |_, domain| number(Zone::Hosted { domain, region: None }) == wanted);
        check("domains", found, SAMPLE as usize, share);
    }
}

#[test]
fn answers_have_the_shares_of_the_file() {
    let internet = internet(
        "seed = 22\ndomains = 1_000_000\n[faults]\nlame = 0\ndead = 0\nedns_formerr = 0\nedns_ignored = 0\n\
         [names]\nper_domain = 2\nabsent = 0\nalias = 0.3\nalias_inside = 1\nalias_length = [[1, 1]]\n\
         ipv6 = 0.4\naddresses = [[1, 3], [3, 1]]\nttl = [[60, 1], [600, 3]]\ntruncated = 0.05\n\
         deep = 0\nmail = 0.6\ntext = [[0, 1], [50, 1]]\n[dnssec]\nroot = false\n",
    );
    let mut asker = Asker::new(&internet);
    let (mut aliases, mut hosts, mut ipv6, mut three, mut short, mut truncated) =
        (0, 0, 0, 0, 0, 0);
    let (mut mail, mut text) = (0, 0);
    let sample = 3_000;
    for domain in 0..sample {
        let hosting = internet.hosting(domain, None);
        let (address, _) = internet.addresses(internet.slot(&hosting, 0));
        let name = internet.name(domain * 2 + 1).to_string();
        let octets = super::query(&name, Rtype::A, super::dnssec_ok());
        let over_udp = asker.send(address, &octets, crate::Carrier::Datagram).unwrap();
        truncated += usize::from(over_udp.is_truncated);
        let answer = asker.ask(address, &name, Rtype::A).unwrap();
        let found = answer.of("answer", Rtype::A);
        if !answer.of("answer", Rtype::CNAME).is_empty() {
            aliases += 1;
        } else {
            hosts += 1;
            three += usize::from(found.len() == 3);
            short += usize::from(found[0].ttl == 60);
            let answer = asker.ask(address, &name, Rtype::AAAA).unwrap();
            ipv6 += usize::from(!answer.of("answer", Rtype::AAAA).is_empty());
        }
        let apex = internet.name(domain * 2).to_string();
        let mx = asker.ask(address, &apex, Rtype::MX).unwrap();
        mail += usize::from(!mx.of("answer", Rtype::MX).is_empty());
        let txt = asker.ask(address, &apex, Rtype::TXT).unwrap();
        text += usize::from(!txt.of("answer", Rtype::TXT).is_empty());
    }
    let sample = sample as usize;
    check("alias", aliases, sample, 0.3);
    check("truncated", truncated, sample, 0.05);
    check("IPv6", ipv6, hosts, 0.4);
    check("three addresses", three, hosts, 0.25);
    check("short TTL", short, hosts, 0.25);
    check("mail", mail, sample, 0.6);
    check("text", text, sample, 0.5);
}

#[test]
fn names_have_the_shares_of_the_file() {
    let internet =
        internet("seed = 23\n[names]\nabsent = 0.2\nabsent_hosts = 0.5\nabsent_top_level = 0.3\n");
    let all = SAMPLE as usize;
    let names: Vec<String> = (0..SAMPLE).map(|i| internet.name(i).to_string()).collect();
    let absent = (0..SAMPLE).filter(|i| !internet.exists(*i)).count();
    check("absent", absent, all, 0.2);
    let stray = (0..all).filter(|i| {
        let top = names[*i].trim_end_matches('.').rsplit('.').next().unwrap();
        internet.top_level(top.as_bytes()).is_none()
    });
    check("below no top-level domain", stray.count(), absent, 0.3);
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), all);
}

#[test]
fn round_trips_have_the_median_of_the_file() {
    let internet = internet(
        "seed = 24\n[path]\nmedian = \"30ms\"\nsigma = 0.9\njitter = 0.1\nloss = \"1%\"\n",
    );
    let mut round_trips: Vec<_> = (0..1_000)
        .map(|operator| {
            let server = internet.numbered_server(operator, 0).unwrap();
            let conduct = internet.conduct(internet.addresses(server).0).unwrap();
            assert_eq!((conduct.is_silent, conduct.loss), (false, 0.01));
            conduct.round_trip
        })
        .collect();
    round_trips.sort_unstable();
    // The standard deviation of a median of 1,000 draws is 0.9 * 1.25 / sqrt(1,000) = 3.6 %.
    let median_ms = round_trips[500].as_secs_f64() * 1e3;
    assert!((24.0..38.0).contains(&median_ms), "{median_ms}");
    let upper_ms = round_trips[841].as_secs_f64() * 1e3;
    assert!((60.0..91.0).contains(&upper_ms), "{upper_ms}: 30 ms times e^0.9 is 74 ms");
    let dead = internet.numbered_server(0, 8).unwrap();
    assert!(internet.conduct(internet.addresses(dead).0).unwrap().is_silent);
    assert_eq!(internet.conduct("192.0.2.1".parse().unwrap()), None);
    assert_eq!(internet.conduct("198.18.0.0".parse().unwrap()), None);
    assert_eq!(internet.conduct("198.19.255.255".parse().unwrap()), None);
}
