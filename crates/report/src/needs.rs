//! What a service needs at the rate and from the clients of a study: the sentence that its user takes along.

use dnslab_analysis::{Summary, VariantSummary};
use dnslab_record::{Metric, RunRecord};

use crate::answer::{LOST, answer, at, offered_qps};
use crate::screen::cell::{figure, per_second};
use crate::variants::listed;
use crate::{events, memory, number, searches};

/// Of more variants the table tells.
const MAX_VARIANTS: usize = 6;

/// What the variants need, where all were asked at one rate, then what differs between them.
pub(crate) fn headline(summary: &Summary, records: &[RunRecord]) -> String {
    let answer = answer(summary);
    if let Some(text) = events::sentence(summary).or_else(|| searches::sentence(summary)) {
        return format!("{text} {answer}");
    }
    let Some(needs) = needs(summary, records) else { return answer };
    // The rate stands in front of all of it.
    let at_rate = offered_qps(summary).map(|qps| at(number::queries_per_second(qps)));
    match at_rate.and_then(|at_rate| answer.strip_prefix(&at_rate)) {
        Some(rest) => format!("{needs} {}{}", rest[..1].to_uppercase(), &rest[1..]),
        None => format!("{needs} {answer}"),
    }
}

/// `At 30,000 queries/s from 20,000 clients dot takes 3.9 CPUs, 480 MiB and 420 handshakes/s.`, and what is not known;
/// `None` where rates or clients differ, and where no server was watched.
fn needs(summary: &Summary, records: &[RunRecord]) -> Option<String> {
    let qps = offered_qps(summary)?;
    let counted: Vec<&VariantSummary> =
        summary.variants.iter().filter(|variant| variant.valid_runs > 0).collect();
    if counted.len() > MAX_VARIANTS {
        return None;
    }
    // One query has no rate.
    if counted.iter().any(|variant| variant.outcomes.due <= u64::from(variant.valid_runs)) {
        return None;
    }
    let of_counted =
        |record: &&RunRecord| counted.iter().any(|variant| variant.name == record.variant);
    let mut clients = records.iter().filter(of_counted).map(|record| record.load.clients);
    let first = clients.next()?;
    if !clients.all(|clients| clients == first) {
        return None;
    }
    let (losing, bearing): (Vec<&VariantSummary>, Vec<&VariantSummary>) =
        counted.into_iter().partition(|variant| variant.outcomes.lost_share() >= LOST);
    let is_alone = summary.variants.len() == 1;
    let name = |variant: &'_ VariantSummary| match is_alone {
        true => "the server".to_owned(),
        false => variant.name.clone(),
    };
    let takes = |variant: &&VariantSummary| {
        let parts = parts(variant, qps);
        (!parts.is_empty()).then(|| format!("{} takes {}", name(variant), listed(&parts)))
    };
    let clauses: Vec<String> = bearing.iter().filter_map(takes).collect();
    let has_cpu =
        |variant: &VariantSummary| variant.metrics.contains_key(&Metric::ServerCpuPerQuery);
    if !bearing.iter().any(|variant| has_cpu(variant)) {
        return None;
    }
    let plural = if first == 1 { "" } else { "s" };
    let mut text = format!(
        "At {} queries/s from {} client{plural} {}.",
        number::qps(qps),
        number::count(first.into()),
        clauses.join("; ")
    );
    let has_memory = |variant: &VariantSummary| variant.peak_memory_octets.is_some();
    let without = |is_known: fn(&VariantSummary) -> bool| -> Vec<String> {
        let unknown = bearing.iter().filter(|variant| !is_known(variant));
        unknown.map(|variant| name(variant)).collect()
    };
    let unknown = [("CPUs", "are", without(has_cpu)), ("memory", "is", without(has_memory))];
    for (what, verb, names) in unknown {
        if !names.is_empty() {
            text.push_str(&format!(" The {what} of {} {verb} not known.", listed(&names)));
        }
    }
    if !losing.is_empty() {
        let names: Vec<String> = losing.iter().map(|variant| name(variant)).collect();
        let verb = if names.len() == 1 { "loses" } else { "lose" };
        let need = if names.len() == 1 { "it needs" } else { "they need" };
        text.push_str(&format!(
            " {} {verb} queries at this rate, so what {need} for all of them is not known.",
            listed(&names)
        ));
    }
    Some(text)
}

/// What is known of a variant's needs at a rate, in queries per second.
fn parts(variant: &VariantSummary, qps: f64) -> Vec<String> {
    let at_rate = |metric: Metric, factor: f64| {
        variant.metrics.get(&metric).map(|figure| per_second(figure, factor))
    };
    let cpus = at_rate(Metric::ServerCpuPerQuery, qps / 1e9).map(|cpus| format!("{cpus} CPUs"));
    // The figure of the table; of a server that ran before its largest.
    let memory = match variant.metrics.get(&Metric::PeakMemory) {
        Some(octets) => Some(figure(Metric::PeakMemory, octets)),
        None => variant.peak_memory_octets.and_then(|_| memory::peak(variant)),
    };
    let handshakes = at_rate(Metric::HandshakesPerQuery, qps);
    let handshakes = handshakes.map(|number| format!("{number} handshakes/s"));
    [cpus, memory, handshakes].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use dnslab_analysis::VariantCaveat;
    use dnslab_analysis::statistics::Estimate;
    use dnslab_figures::Outcomes;
    use dnslab_record::{Caveat, LoadMode, OpenPace};
    use dnslab_traffic::Pace;

    fn variant(name: &str, metrics: &[(Metric, f64)], memory: Option<u64>) -> VariantSummary {
        let estimate = |value: f64| Estimate { value, low: 0.96 * value, high: 1.04 * value };
        let metrics: BTreeMap<Metric, Estimate> =
            metrics.iter().map(|(metric, value)| (*metric, estimate(*value))).collect();
        VariantSummary {
            name: name.to_owned(),
            valid_runs: 2,
            mode: Some(LoadMode::Open {
                rate_qps: 30_000.0,
                pace: OpenPace::constant(Pace::Poisson),
            }),
            outcomes: Outcomes { due: 1_000, answered: 1_000, ..Outcomes::default() },
            metrics,
            peak_memory_octets: memory,
            ..VariantSummary::default()
        }
    }

    fn record(variant: &str, clients: u32) -> RunRecord {
        let text = include_str!("../tests/samples/v1/runs/udp-1/record.json");
        let record: RunRecord = serde_json::from_str(text).unwrap();
        let load = dnslab_record::LoadFacts { clients, ..record.load };
        RunRecord { variant: variant.to_owned(), load, ..record }
    }

    fn said(variants: Vec<VariantSummary>, clients: &[u32]) -> Option<String> {
        let records: Vec<RunRecord> = variants
            .iter()
            .zip(clients)
            .map(|(variant, clients)| record(&variant.name, *clients))
            .collect();
        let summary = Summary { variants, ..summary() };
        needs(&summary, &records)
    }

    fn summary() -> Summary {
        Summary { baseline: "udp".to_owned(), ..Summary::default() }
    }

    const CPU: Metric = Metric::ServerCpuPerQuery;

    fn dot() -> VariantSummary {
        let metrics = [(CPU, 130_000.0), (Metric::HandshakesPerQuery, 0.014)];
        variant("dot", &metrics, Some(480 << 20))
    }

    #[test]
    fn what_a_service_needs_is_one_sentence() {
        assert_eq!(
            said(vec![variant("udp", &[(CPU, 30_000.0)], Some(38 << 20)), dot()], &[20_000; 2])
                .unwrap(),
            "At 30,000 queries/s from 20,000 clients udp takes 0.90 CPUs and 38.0 MiB; dot takes 3.90 \
             CPUs, 480 MiB and 420 handshakes/s."
        );
        assert_eq!(
            said(vec![VariantSummary { name: "load".to_owned(), ..dot() }], &[1]).unwrap(),
            "At 30,000 queries/s from 1 client the server takes 3.90 CPUs, 480 MiB and 420 handshakes/s."
        );
    }

    #[test]
    fn one_server_has_its_rate_once() {
        let p99 = (Metric::LatencyP99, 1e6);
        let alone = variant("load", &[(CPU, 30_000.0), p99], Some(38 << 20));
        let summary = Summary { variants: vec![alone], ..summary() };
        assert_eq!(
            headline(&summary, &[record("load", 100)]),
            "At 30,000 queries/s from 100 clients the server takes 0.90 CPUs and 38.0 MiB. P99 1.00 ms, 0 % \
             lost."
        );
    }

    #[test]
    fn what_is_not_known_is_left_out_and_said() {
        let kept = VariantCaveat { worst: Caveat::MemoryKept, runs: 2 };
        let udp =
            VariantSummary { caveats: vec![kept], ..variant("udp", &[(CPU, 30_000.0)], None) };
        let lossy = VariantSummary {
            outcomes: Outcomes { due: 1_000, answered: 900, timed_out: 100, ..Outcomes::default() },
            ..variant("tcp", &[(CPU, 30_000.0)], Some(1 << 20))
        };
        assert_eq!(
            said(vec![udp, lossy, dot()], &[20_000; 3]).unwrap(),
            "At 30,000 queries/s from 20,000 clients udp takes 0.90 CPUs; dot takes 3.90 CPUs, 480 MiB and \
             420 handshakes/s. The memory of udp is not known. tcp loses queries at this rate, so what it \
             needs for all of them is not known."
        );
    }

    #[test]
    fn without_one_rate_or_one_number_of_clients_there_is_no_sentence() {
        let udp = || variant("udp", &[(CPU, 30_000.0)], Some(38 << 20));
        assert_eq!(said(vec![udp(), dot()], &[20_000, 10_000]), None);
        let mode = Some(LoadMode::Closed { outstanding: 10 });
        assert_eq!(said(vec![udp(), VariantSummary { mode, ..dot() }], &[20_000; 2]), None);
        assert_eq!(said(vec![variant("udp", &[], None)], &[20_000]), None);
        assert_eq!(said(vec![udp(); MAX_VARIANTS + 1], &[1; MAX_VARIANTS + 1]), None);
    }
}
