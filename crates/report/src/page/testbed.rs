//! The hosts of a run in a line, with the links between them.

use std::fmt::Write as _;

use dnslab_record::{LinkFacts, RunRecord, TestbedFacts};

use super::html::escape;
use crate::chain::role_name;
use crate::number;

const HOST: f64 = 210.0;
const LINE: f64 = 17.0;
const ROOM: f64 = 10.0;

struct Place {
    /// From the clients to the end of the chain.
    hosts: Vec<Host>,
    /// The links, one fewer than hosts; none on the loopback interface.
    links: Vec<LinkFacts>,
    /// Whether each host is a network namespace.
    namespaces: bool,
    variants: Vec<String>,
}

struct Host {
    name: String,
    /// What runs there.
    roles: Vec<Role>,
}

struct Role {
    /// The role; empty for the load generator.
    name: String,
    kinds: Vec<String>,
    variants: usize,
}

/// A picture of each laboratory in which a chain ran, and what is to be said of it.
pub(crate) fn pictures(records: &[&RunRecord]) -> String {
    let places = places(records);
    let mut html = String::new();
    for (number, place) in places.iter().enumerate() {
        if places.len() > 1 {
            let _ = writeln!(html, "<h3>{}</h3>", escape(&place.variants.join(", ")));
        }
        for (class, is_broad) in [("broad", true), ("narrow", false)] {
            html.push_str(&picture(place, &format!("hosts-{number}-{class}"), class, is_broad));
        }
        if !place.namespaces {
            html.push_str(
                "<p class=\"hint\">All of it ran on the loopback interface of one host: no link had \
                 a delay. Delays, where there are any, were inside the responder.</p>\n",
            );
        }
    }
    html
}

/// The distinct lines of hosts, each with its variants, in the order of the records.
fn places(records: &[&RunRecord]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for record in records.iter().filter(|record| !record.watched.chain.is_empty()) {
        let new = Place::of(record);
        let known = places.iter_mut().find(|place| place.is_like(&new));
        match known {
            None => places.push(new),
            Some(place) if place.variants.contains(&record.variant) => {}
            Some(place) => {
                place.variants.push(record.variant.clone());
                place.add_servers(new.hosts);
            }
        }
    }
    places
}

impl Place {
    /// Where a run took place. Without a laboratory in the record, the hosts are those that the chain
    /// names.
    fn of(record: &RunRecord) -> Self {
        let testbed = record.testbed.as_ref();
        let names: Vec<String> = match testbed {
            Some(testbed) => testbed.hosts.iter().map(|host| host.name.clone()).collect(),
            None => vec!["client".to_owned(), "server".to_owned()],
        };
        let mut hosts: Vec<Host> =
            names.into_iter().map(|name| Host { name, roles: Vec::new() }).collect();
        for part in &record.watched.chain {
            let role = Role::of(&part.role, &part.server.kind);
            match hosts.iter_mut().find(|host| host.name == part.host) {
                Some(host) => host.roles.push(role),
                None => hosts.push(Host { name: part.host.clone(), roles: vec![role] }),
            }
        }
        let under_test = Role::of(role_name(dnslab_record::UNDER_TEST), &record.server.kind);
        let own = [Role::of("", "load generator"), under_test];
        for (host, role) in hosts.iter_mut().zip(own) {
            host.roles.insert(0, role);
        }
        Self {
            hosts,
            links: testbed.map(links).unwrap_or_default(),
            namespaces: testbed.is_some_and(|testbed| testbed.namespaces),
            variants: vec![record.variant.clone()],
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.namespaces == other.namespaces
            && self.links == other.links
            && self
                .hosts
                .iter()
                .map(|host| &host.name)
                .eq(other.hosts.iter().map(|host| &host.name))
    }

    fn add_servers(&mut self, hosts: Vec<Host>) {
        for (own, more) in self.hosts.iter_mut().zip(hosts) {
            for role in more.roles {
                match own.roles.iter_mut().find(|known| known.name == role.name) {
                    None => own.roles.push(role),
                    Some(known) => known.add(role),
                }
            }
        }
    }

    /// What stands in a host below its name, in lines that fit into it.
    fn lines(&self, roles: &[Role]) -> Vec<String> {
        const MAX_LENGTH: usize = 28;
        let mut lines: Vec<String> = Vec::new();
        for role in roles {
            let mut line = String::new();
            for word in role.text(self.variants.len()).split(' ') {
                if !line.is_empty() && line.chars().count() + word.chars().count() >= MAX_LENGTH {
                    lines.push(std::mem::take(&mut line));
                }
                let space = if line.is_empty() { "" } else { " " };
                line.push_str(&format!("{space}{word}"));
            }
            lines.push(line);
        }
        lines
    }
}

impl Role {
    fn of(name: &str, kind: &str) -> Self {
        Self { name: name.to_owned(), kinds: vec![kind.to_owned()], variants: 1 }
    }

    fn add(&mut self, other: Self) {
        self.variants += other.variants;
        let new: Vec<String> =
            other.kinds.into_iter().filter(|kind| !self.kinds.contains(kind)).collect();
        self.kinds.extend(new);
    }

    /// The role and its servers, and whether not all variants have one.
    fn text(&self, variants: usize) -> String {
        let kinds = self.kinds.join(", ");
        let some = if self.variants < variants { " (in some)" } else { "" };
        match self.name.as_str() {
            "" => kinds,
            name => format!("{name}: {kinds}{some}"),
        }
    }
}

/// The links in the order of the hosts; none if that is not a line.
fn links(testbed: &TestbedFacts) -> Vec<LinkFacts> {
    let neighbours = testbed.hosts.windows(2);
    let link = |pair: &[dnslab_record::HostFacts]| {
        let is_it = |link: &&LinkFacts| link.from == pair[0].name && link.to == pair[1].name;
        testbed.links.iter().find(is_it).cloned()
    };
    neighbours.map(link).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// What a link does, in short lines: time, then loss and rate, then what carries the packets.
pub(super) fn link_lines(link: Option<&LinkFacts>) -> Vec<String> {
    let Some(link) = link else { return vec!["loopback".to_owned()] };
    let time = match (link.delay_ns, link.jitter_ns) {
        (0, 0) => "no delay".to_owned(),
        (delay, 0) => number::as_set(delay),
        (delay, jitter) => {
            format!("{} \u{b1} {}", number::as_set(delay), number::as_set(jitter))
        }
    };
    let mut rest = Vec::new();
    if link.loss > 0.0 {
        rest.push(format!("{} lost", number::share(link.loss)));
    }
    if let Some(rate) = link.rate_bps {
        rest.push(number::bits_per_second(rate));
    }
    let lines = [time, rest.join(", "), link.carrier.clone()];
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

/// The line of hosts as a sentence, for those who do not see it.
fn description(place: &Place) -> String {
    let mut text = String::new();
    for (at, host) in place.hosts.iter().enumerate() {
        if at > 0 {
            let link = link_lines(place.links.get(at - 1)).join(", ");
            let _ = write!(text, "; then by a link ({link}) ");
        }
        let roles: Vec<String> =
            host.roles.iter().map(|role| role.text(place.variants.len())).collect();
        let _ = write!(text, "host {} with {}", host.name, roles.join(" and "));
    }
    text.push_str(". Delay and loss are those of one direction.");
    text
}

fn picture(place: &Place, id: &str, class: &str, is_broad: bool) -> String {
    const GAP: f64 = 180.0;
    const DROP: f64 = 66.0;
    let inside: Vec<Vec<String>> =
        place.hosts.iter().map(|host| place.lines(&host.roles)).collect();
    let lines = inside.iter().map(Vec::len).max().unwrap_or(0);
    let tall = |servers: usize| (servers + 1) as f64 * LINE + 2.0 * ROOM;
    let hosts = place.hosts.len() as f64;
    let mut html = String::new();
    let mut y = 1.0;
    for (at, (host, servers)) in place.hosts.iter().zip(&inside).enumerate() {
        let own = tall(if is_broad { lines } else { servers.len() });
        let x = if is_broad { 1.0 + at as f64 * (HOST + GAP) } else { 1.0 };
        if at > 0 {
            // From left to right the first line stands above the link, the others below it; from top
            // to bottom all beside it.
            let (from, to, anchor, text, rest) = if is_broad {
                let middle = y + own / 2.0;
                let text = (x - GAP / 2.0, middle - 8.0);
                ((x - GAP, middle), (x, middle), "middle", text, 8.0)
            } else {
                let text = (x + 46.0, y - DROP / 2.0 - 12.0);
                ((x + 30.0, y - DROP), (x + 30.0, y), "start", text, 0.0)
            };
            push_link(&mut html, from, to);
            let lines = link_lines(place.links.get(at - 1));
            for (line, words) in lines.iter().enumerate() {
                let (class, more) = if line == 0 { ("link", 0.0) } else { ("quiet", rest) };
                let down = text.1 + line as f64 * LINE + more;
                push_text(&mut html, anchor, text.0, down, class, words);
            }
        }
        let _ = write!(
            html,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{HOST}\" height=\"{own:.1}\" rx=\"6\"/>"
        );
        let texts = std::iter::once(("name", &host.name))
            .chain(servers.iter().map(|server| ("quiet", server)));
        for (line, (class, text)) in texts.enumerate() {
            let down = y + ROOM + (line as f64 + 0.75) * LINE;
            push_text(&mut html, "start", x + 12.0, down, class, text);
        }
        if !is_broad {
            y += own + DROP;
        }
    }
    let (width, height) = if is_broad {
        (hosts * HOST + (hosts - 1.0) * GAP + 2.0, tall(lines) + 2.0)
    } else {
        (HOST + 102.0, y - DROP + 1.0)
    };
    format!(
        "<svg class=\"hosts {class}\" width=\"{width:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-text\">\n<title id=\"{id}-title\">The hosts of the \
         chain</title>\n<desc id=\"{id}-text\">{}</desc>\n{html}\n</svg>\n",
        escape(&description(place))
    )
}

fn push_link(html: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = write!(
        html,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn push_text(html: &mut String, anchor: &str, x: f64, y: f64, class: &str, text: &str) {
    let _ = write!(
        html,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(text)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(delay_ns: u64, jitter_ns: u64, loss: f64, rate_bps: Option<u64>) -> LinkFacts {
        LinkFacts {
            from: "client".to_owned(),
            to: "server".to_owned(),
            delay_ns,
            jitter_ns,
            loss,
            rate_bps,
            carrier: "netem".to_owned(),
            cpus: Vec::new(),
            seed: None,
        }
    }

    #[test]
    fn a_link_is_told_in_short_lines() {
        let lines = |link: LinkFacts| link_lines(Some(&link)).join(" | ");
        assert_eq!(lines(link(0, 0, 0.0, None)), "no delay | netem");
        assert_eq!(lines(link(10_000_000, 0, 0.0, None)), "10 ms | netem");
        assert_eq!(
            lines(link(10_000_000, 500_000, 0.01, Some(100_000_000))),
            "10 ms \u{b1} 500 us | 1 % lost, 100 Mbit/s | netem"
        );
        assert_eq!(link_lines(None), ["loopback"]);
    }
}
