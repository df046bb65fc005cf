//! The servers of a chain as a table, the same in Markdown and on the page.

use dnslab_analysis::{Reached, ServerFigures, Summary};
use dnslab_record::UNDER_TEST;

use crate::number::{self, NONE};
use crate::transport::transport_name;

pub(crate) const HEADER: [&str; 12] = [
    "variant",
    "server",
    "asked over",
    "qps",
    "mean latency",
    "CPU",
    "CPU/query",
    "peak memory",
    "connections",
    "full handshakes",
    "resumed handshakes",
    "queries per connection",
];

pub(crate) const LEGEND: &str = "Of the server under test, qps are the answered queries, and connections and handshakes are \
     those of the load. Of the others they are what each server counted: connections and \
     handshakes since it started, for a forwarder may connect when the chain is tried before the \
     load, and that trial counts too; after \"load:\" those from just before the load to just after \
     it. Mean latency of the others: how long the server before waited for them, where it counts \
     that. qps, latency, CPU and CPU/query: means over the valid runs, in the measured window. \
     Counts: sums of the valid runs.";

/// A cell with what is said beside its figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) figure: String,
    /// What is beside it; empty if nothing is.
    pub(crate) aside: String,
}

impl Cell {
    fn plain(figure: impl Into<String>) -> Self {
        Self { figure: figure.into(), aside: String::new() }
    }

    pub(crate) fn text(&self) -> String {
        match self.aside.as_str() {
            "" => self.figure.clone(),
            aside => format!("{} ({aside})", self.figure),
        }
    }
}

pub(crate) struct Row {
    pub(crate) place: usize,
    /// How many rows the variant has, in its first one; 0 in the others.
    pub(crate) span: usize,
    pub(crate) cells: Vec<Cell>,
}

pub(crate) fn rows(summary: &Summary) -> Vec<Row> {
    let mut rows = Vec::new();
    for (place, variant) in summary.variants.iter().enumerate() {
        for (at, server) in variant.chain.iter().enumerate() {
            let span = if at == 0 { variant.chain.len() } else { 0 };
            let mut row = vec![Cell::plain(variant.name.clone())];
            row.extend(cells(server));
            rows.push(Row { place, span, cells: row });
        }
    }
    rows
}

pub(crate) fn role_name(role: &str) -> &str {
    if role == UNDER_TEST { "under test" } else { role }
}

fn cells(server: &ServerFigures) -> Vec<Cell> {
    let figure = |text: Option<String>| Cell::plain(text.unwrap_or_else(|| NONE.to_owned()));
    let aside = match server.host.as_str() {
        "" => server.server.clone(),
        host => format!("{}, on {host}", server.server),
    };
    let count = |figure: fn(&Reached) -> Option<u64>| {
        both(figure(&server.since_start), figure(&server.during_load), number::count)
    };
    vec![
        Cell { figure: role_name(&server.role).to_owned(), aside },
        Cell::plain(transport_name(&server.transport)),
        figure(server.qps.map(number::qps)),
        figure(server.mean_latency_ns.map(number::duration)),
        figure(server.busy_share.map(|busy| number::percent(busy, 0))),
        figure(server.cpu_per_query_ns.map(number::duration)),
        figure(server.peak_memory_octets.map(number::octets)),
        count(|reached| reached.connections),
        count(|reached| reached.full_handshakes),
        count(|reached| reached.resumed_handshakes),
        both(
            server.since_start.queries_per_connection(),
            server.during_load.queries_per_connection(),
            number::three_digits,
        ),
    ]
}

/// A figure since the start of the server, and beside it that of the load where it is another one;
/// the latter alone where only that is known.
fn both<T: PartialEq + Copy>(
    since_start: Option<T>,
    during_load: Option<T>,
    write: impl Fn(T) -> String,
) -> Cell {
    match (since_start, during_load) {
        (None, None) => Cell::plain(NONE),
        (Some(one), None) | (None, Some(one)) => Cell::plain(write(one)),
        (Some(all), Some(load)) if all == load => Cell::plain(write(all)),
        (Some(all), Some(load)) => {
            Cell { figure: write(all), aside: format!("load: {}", write(load)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_load_did_stands_beside_what_all_did() {
        let text = |all, load| both(all, load, number::count).text();
        assert_eq!(text(Some(12), Some(10)), "12 (load: 10)");
        assert_eq!(text(Some(1), Some(0)), "1 (load: 0)");
        assert_eq!(text(Some(12), Some(12)), "12");
        assert_eq!(text(None, Some(4)), "4");
        assert_eq!(text(Some(4), None), "4");
        assert_eq!(text(None, None), "-");
    }

    #[test]
    fn a_server_that_tells_nothing_has_its_row() {
        let server = ServerFigures {
            role: "relay".to_owned(),
            server: "stubby 1.6".to_owned(),
            transport: "udp".to_owned(),
            busy_share: Some(0.254),
            ..ServerFigures::default()
        };
        let texts: Vec<String> = cells(&server).iter().map(Cell::text).collect();
        assert_eq!(texts[..5], ["relay (stubby 1.6)", "UDP", "-", "-", "25 %"]);
        assert!(texts[5..].iter().all(|text| text == "-"), "{texts:?}");
        assert_eq!(texts.len() + 1, HEADER.len());
    }
}
