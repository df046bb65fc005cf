//! Where the CPU time goes.

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{CostDifference, CostSummary, PartDifference, PartSet, VariantCost};
use dnslab_record::CostPart;

use crate::number;
use crate::table::Table;
use crate::variants::{grouped, listed};

/// Parts that a sentence names at most; further ones are on the page.
const MAX_PARTS: usize = 5;

/// A part below this share of a difference is not worth a word.
const LEAST: f64 = 0.02;

/// The name of a part at a column or a bar.
pub(crate) fn part_name(part: CostPart) -> &'static str {
    match part {
        CostPart::KernelNetwork => "kernel: network",
        CostPart::KernelRest => "kernel: rest",
        CostPart::Kernel => "kernel",
        CostPart::Tls => "TLS",
        CostPart::Crypto => "cryptography",
        CostPart::HttpQuic => "HTTP, QUIC",
        CostPart::EventLoop => "event loop",
        CostPart::DnsLogic => "DNS logic",
        CostPart::Memory => "memory",
        CostPart::Log => "log, files",
        CostPart::Rest => "not known",
    }
}

/// The name of parts inside a sentence.
fn set_name(set: PartSet) -> &'static str {
    match set {
        PartSet::KernelNetwork => "the kernel's network stack",
        PartSet::KernelRest => "the rest of the kernel",
        PartSet::Kernel => "the kernel",
        PartSet::TlsAndCrypto => "TLS and cryptography",
        PartSet::HttpQuic => "HTTP and QUIC",
        PartSet::EventLoop => "the event loop",
        PartSet::DnsLogic => "DNS logic",
        PartSet::Memory => "memory",
        PartSet::Log => "logs and files",
        PartSet::Rest => "parts that are not known",
    }
}

const HIDDEN: &str = "The kernel hides its symbols from perf, so it is one part: run dnslab as root, or \
                      `sysctl kernel.kptr_restrict=0`.";

/// A sentence for each certain difference, and one for each reason why servers were not sampled.
pub(crate) fn cpu_texts(cost: &CostSummary) -> Vec<String> {
    let certain = cost.differences.iter().filter(|difference| difference.is_certain);
    let is_hidden =
        cost.variants.iter().any(|variant| part_of(variant, CostPart::Kernel).is_some());
    let hidden = is_hidden.then(|| HIDDEN.to_owned());
    let alone = match &cost.variants[..] {
        [alone] => Some(whole_text(alone)),
        _ => None,
    };
    let texts = alone.into_iter().chain(certain.map(difference_text));
    texts.chain(hidden).chain(not_sampled(cost)).collect()
}

/// Where the CPU time of a variant goes that is compared with nothing.
fn whole_text(variant: &VariantCost) -> String {
    let whole = variant.cpu_per_query_ns.value;
    let ns = |set: PartSet| -> f64 {
        set.parts().iter().filter_map(|part| part_of(variant, *part)).map(|ns| ns.value).sum()
    };
    let mut parts: Vec<(PartSet, f64)> =
        PartSet::ALL.into_iter().map(|set| (set, ns(set))).collect();
    parts.retain(|(_, ns)| *ns > 0.0 && *ns >= LEAST * whole);
    parts.sort_by(|left, right| right.1.total_cmp(&left.1));
    let of_parts: Vec<String> = parts
        .iter()
        .take(MAX_PARTS)
        .map(|(set, ns)| format!("{} in {}", number::duration(*ns), set_name(*set)))
        .collect();
    let of_parts: Vec<&str> = of_parts.iter().map(String::as_str).collect();
    let whole = number::duration(whole);
    format!("Of the {whole} of CPU time for each query, the server spends {}.", listed(&of_parts))
}

/// Where the CPU time goes that a variant costs more or less than another one.
pub(crate) fn difference_text(pair: &CostDifference) -> String {
    let CostDifference { variant, against, ns, parts, .. } = pair;
    let more_or_less = if *ns > 0.0 { "more" } else { "less" };
    let whole = number::duration(ns.abs());
    let is_told = |part: &&PartDifference| {
        part.is_certain && part.part != PartSet::Rest && part.ns.value.abs() >= LEAST * ns.abs()
    };
    let shown: Vec<&PartDifference> = parts.iter().filter(is_told).take(MAX_PARTS).collect();
    let (along, against_it): (Vec<&PartDifference>, Vec<_>) =
        shown.into_iter().partition(|part| (part.ns.value > 0.0) == (*ns > 0.0));
    if along.is_empty() {
        return format!(
            "Where the {whole} go that {variant} costs {more_or_less} than {against} for each query, the \
             samples cannot tell."
        );
    }
    let part_text = |part: &&PartDifference| {
        format!("{} {}", number::duration(part.ns.value.abs()), set_name(part.part))
    };
    let mut along: Vec<String> = along.iter().map(part_text).collect();
    along[0] = along[0].replacen(" the ", " are the ", 1);
    if !along[0].contains(" are ") {
        let (figure, name) = split_figure(&along[0]);
        along[0] = format!("{figure} are {name}");
    }
    let along: Vec<&str> = along.iter().map(String::as_str).collect();
    let mut text = format!(
        "Of the {whole} that {variant} costs {more_or_less} than {against} for each query, {}",
        listed(&along)
    );
    if !against_it.is_empty() {
        let other = if *ns > 0.0 { "less" } else { "more" };
        let against_it: Vec<String> = against_it
            .iter()
            .map(|part| {
                format!(
                    "{} takes {} {other}",
                    set_name(part.part),
                    number::duration(part.ns.value.abs())
                )
            })
            .collect();
        let against_it: Vec<&str> = against_it.iter().map(String::as_str).collect();
        text.push_str(&format!("; {}", listed(&against_it)));
    }
    text + "."
}

/// A figure with its unit, and what follows.
fn split_figure(text: &str) -> (&str, &str) {
    let end = text.match_indices(' ').nth(1).map_or(text.len(), |(at, _)| at);
    (&text[..end], text[end..].trim_start())
}

/// Why variants were not sampled, a sentence for each reason.
fn not_sampled(cost: &CostSummary) -> Vec<String> {
    let reasons = cost.not_profiled.iter().map(|one| (&one.reason, one.variant.as_str()));
    let sentences = grouped(reasons).into_iter().map(|(reason, variants)| {
        let who = match cost.variants.is_empty() && variants.len() == cost.not_profiled.len() {
            true => "No server was".to_owned(),
            false if variants.len() == 1 => format!("{} was not", variants[0]),
            false => format!("{} were not", listed(&variants)),
        };
        format!("{who} sampled: {}.", reason.trim_end_matches('.'))
    });
    sentences.collect()
}

/// What sampling cost a variant: by how much rate and CPU time for each query differ from the runs that nobody
/// sampled.
pub(crate) fn sampling_cost(variant: &VariantCost) -> String {
    let [without, with] = variant.answered_qps;
    format!(
        "{} qps, {} CPU/query",
        relative(with, without),
        relative(variant.sampled_cpu_per_query_ns, variant.cpu_per_query_ns.value)
    )
}

fn relative(with: f64, without: f64) -> String {
    match without > 0.0 {
        true => number::change(with / without - 1.0),
        false => number::NONE.to_owned(),
    }
}

/// What the table says besides.
pub(crate) const LEGEND: &str = "CPU time of the server under test for each query. A part's time is its share of the \
    samples times the CPU time of the runs that nobody sampled, so the parts add up to that. After a plus-minus sign: \
    half the 95 % interval, of all parts of a variant at once (Goodman 1965), with the spread of the runs in it. \
    Sampling: what it changed in its own round.";

/// The parts of all variants that were sampled: a row for each, a column for each part that any of them has.
pub(crate) fn table(cost: &CostSummary) -> Table {
    let has =
        |part: &CostPart| cost.variants.iter().any(|variant| part_of(variant, *part).is_some());
    let parts: Vec<CostPart> = CostPart::ALL.into_iter().filter(has).collect();
    let heads = ["variant", "CPU/query"].into_iter();
    let heads = heads.chain(parts.iter().map(|part| part_name(*part)));
    let header = heads.chain(["samples", "sampling"]).map(str::to_owned).collect();
    let rows = cost.variants.iter().map(|variant| row(variant, &parts)).collect();
    Table { header, rows, legend: LEGEND.to_owned(), notes: Vec::new() }
}

fn row(cost: &VariantCost, parts: &[CostPart]) -> Vec<String> {
    let cell = |part: &CostPart| match part_of(cost, *part) {
        Some(ns) => with_half_width(ns),
        None => "0".to_owned(),
    };
    let mut samples = number::count(cost.samples);
    if cost.lost > 0 {
        samples.push_str(&format!(" ({} lost)", number::count(cost.lost)));
    }
    let first = [cost.variant.clone(), with_half_width(cost.cpu_per_query_ns)];
    let cells = first.into_iter().chain(parts.iter().map(cell));
    cells.chain([samples, sampling_cost(cost)]).collect()
}

pub(crate) fn part_of(variant: &VariantCost, part: CostPart) -> Option<Estimate> {
    variant.parts.iter().find(|cost| cost.part == part).map(|cost| cost.ns)
}

fn with_half_width(ns: Estimate) -> String {
    let value = number::duration(ns.value);
    match ns.half_width() {
        Some(half) => format!("{value} \u{b1} {}", number::duration(half)),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use dnslab_record::NotProfiled;

    use super::*;

    fn part(part: PartSet, us: f64, is_certain: bool) -> PartDifference {
        let value = us * 1e3;
        PartDifference { part, ns: Estimate { value, low: value, high: value }, is_certain }
    }

    fn difference(us: f64, parts: Vec<PartDifference>) -> CostDifference {
        CostDifference {
            variant: "dot".to_owned(),
            against: "udp".to_owned(),
            ns: us * 1e3,
            is_certain: true,
            parts,
        }
    }

    #[track_caller]
    fn check(us: f64, parts: Vec<PartDifference>, expected: &str) {
        assert_eq!(difference_text(&difference(us, parts)), expected);
    }

    #[test]
    fn a_difference_is_told_by_its_certain_parts() {
        use PartSet::{DnsLogic, EventLoop, KernelNetwork, Memory, Rest, TlsAndCrypto};
        check(
            6.5,
            vec![
                part(KernelNetwork, 4.9, true),
                part(TlsAndCrypto, 1.7, true),
                part(EventLoop, 0.4, false),
                part(Rest, 0.3, true),
            ],
            "Of the 6.50 us that dot costs more than udp for each query, 4.90 us are the kernel's network stack \
             and 1.70 us TLS and cryptography.",
        );
        check(
            2.0,
            vec![
                part(TlsAndCrypto, 2.5, true),
                part(DnsLogic, -0.5, true),
                part(Memory, 0.01, true),
            ],
            "Of the 2.00 us that dot costs more than udp for each query, 2.50 us are TLS and cryptography; DNS \
             logic takes 500 ns less.",
        );
        check(
            -2.0,
            vec![part(EventLoop, -1.0, true), part(KernelNetwork, 0.2, true)],
            "Of the 2.00 us that dot costs less than udp for each query, 1.00 us are the event loop; the kernel's \
             network stack takes 200 ns more.",
        );
        check(
            0.3,
            vec![part(EventLoop, 0.3, false)],
            "Where the 300 ns go that dot costs more than udp for each query, the samples cannot tell.",
        );
    }

    #[test]
    fn what_was_not_sampled_has_its_reason() {
        let failed = |variant: &str, reason: &str| NotProfiled {
            variant: variant.to_owned(),
            reason: reason.to_owned(),
        };
        let mut cost = CostSummary {
            not_profiled: vec![
                failed("udp", "perf is not installed"),
                failed("dot", "perf is not installed"),
            ],
            ..CostSummary::default()
        };
        assert_eq!(cpu_texts(&cost), ["No server was sampled: perf is not installed."]);
        cost.not_profiled[1].reason = "it failed.".to_owned();
        assert_eq!(
            cpu_texts(&cost),
            ["udp was not sampled: perf is not installed.", "dot was not sampled: it failed."]
        );
        // A difference that the runs leave open is told by none.
        cost.not_profiled.clear();
        cost.differences = vec![CostDifference { is_certain: false, ..difference(1.0, vec![]) }];
        assert_eq!(cpu_texts(&cost), [""; 0]);
    }
}
