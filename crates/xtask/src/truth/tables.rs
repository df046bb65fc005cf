//! The tables of the page, one for each kind of question.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::experiment::{PLANTED_DELAY_NS, PLANTED_LOSS};
use super::figures::{Share, clustered, mean, median};
use super::log::{Compared, Estimate, Played};
use super::plan::{KINDS, Kind};
pub(crate) use super::play::CPU;
use super::shown::{counts, percent, shown, shown_in};

const RATE: &str = "answered-qps";
/// At the common load.
pub(crate) const MEDIAN: &str = "latency-p50";
pub(crate) const MEMORY: &str = "peak-memory";
pub(crate) const EQUAL: [Kind; 2] = [Kind::Same, Kind::SameQuarter];
pub(crate) const COSTS: [Kind; 3] = [Kind::Cost3, Kind::Cost5, Kind::Cost10];
/// Kinds whose planted difference leaves the memory as it is. Delayed answers are held in memory, so
/// [`Kind::Delay`] is not among them.
pub(crate) const UNMOVED: [Kind; 4] = [Kind::Cost3, Kind::Cost5, Kind::Cost10, Kind::Loss];

pub(crate) fn of<'a>(played: &[&'a Played], kinds: &[Kind]) -> Vec<&'a Played> {
    played.iter().filter(|played| kinds.contains(&played.kind)).copied().collect()
}

/// Of one metric or of all.
fn differences<'a>(
    played: &'a [&Played],
    metric: Option<&'a str>,
) -> impl Iterator<Item = &'a Compared> {
    let all = played.iter().flat_map(|played| &played.comparisons);
    all.filter(move |compared| metric.is_none_or(|metric| compared.metric == metric))
}

/// Reports of equal variants that say that something differs.
pub(crate) fn false_marks(same: &[&Played]) -> Share {
    let reports = same.iter().filter(|played| played.failure.is_none());
    Share::of(reports.map(|played| played.comparisons.iter().any(Compared::is_mark)))
}

/// Of the reports of [`UNMOVED`] kinds that compare the memory, those that say that it differs.
pub(crate) fn marks_beside(unmoved: &[&Played]) -> Share {
    let memory =
        |played: &&&Played| played.comparisons.iter().any(|compared| compared.metric == MEMORY);
    let is_marked = |played: &&Played| is_marked(played, MEMORY);
    Share::of(unmoved.iter().filter(memory).map(is_marked))
}

fn is_marked(played: &Played, metric: &str) -> bool {
    played.comparisons.iter().any(|compared| compared.metric == metric && compared.is_mark())
}

/// Of each experiment, the intervals that hold 0, of one metric or of all.
pub(crate) fn holds_zero(same: &[&Played], metric: Option<&str>) -> Vec<Share> {
    let of_one = |played: &&Played| {
        Share::of(differences(&[*played], metric).map(|compared| compared.difference.holds(0.0)))
    };
    same.iter().map(of_one).collect()
}

/// Planted CPU time, difference of the CPU time per query, and its interval, all in ns.
fn planted_and_measured(played: &Played) -> Option<(f64, f64, Estimate)> {
    let cpu = played.comparisons.iter().find(|compared| compared.metric == CPU)?.absolute?;
    Some((played.busy_ns? as f64, cpu.value?, cpu))
}

/// Of each experiment, whether the interval of the CPU time per query holds the planted time.
pub(crate) fn holds_planted(costs: &[&Played]) -> Vec<Share> {
    let held =
        |played: &&Played| planted_and_measured(played).map(|(planted, _, cpu)| cpu.holds(planted));
    costs.iter().map(|played| Share::of(held(played))).collect()
}

/// Of each experiment, whether the interval of the CPU time per query holds what all others over its
/// transport measured: their part of the planted time (least squares through 0) times the time that was
/// planted here.
pub(crate) fn holds_others(costs: &[&Played]) -> Vec<Share> {
    costs.iter().map(|played| Share::of(others_hold(costs, played))).collect()
}

fn others_hold(costs: &[&Played], played: &Played) -> Option<bool> {
    let (planted, _, cpu) = planted_and_measured(played)?;
    let (mut above, mut below) = (0.0, 0.0);
    for other in costs.iter().filter(|other| other.transport == played.transport) {
        if let Some((planted, measured, _)) = planted_and_measured(other)
            && !std::ptr::eq(*other, played)
        {
            above += measured * planted;
            below += planted * planted;
        }
    }
    (below > 0.0).then(|| cpu.holds(above / below * planted))
}

fn measured_part(costs: &[&Played]) -> String {
    let mut text = "\nA server that is busy for longer finds more queries at once when it reads, and saves \
                    the cost of some readings. So the CPU time per query grows by less than the planted \
                    time ([METHOD.md](../docs/METHOD.md), \"Planted differences\", has the count of the \
                    readings). What the other experiments over the same transport measured \
                    says whether the measurement repeats itself; an error that all of them have is not seen so:\n\n| transport | experiments | measured, of the planted time \
                    | 95 % interval | interval holds what the others measured | 95 % interval |\n\
                    | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for transport in ["udp", "tcp", "dot"] {
        let over = over(costs, transport);
        let parts: Vec<f64> = over
            .iter()
            .filter_map(|played| planted_and_measured(played))
            .map(|(planted, measured, _)| measured / planted)
            .collect();
        let Some((part, low, high)) = mean(&parts) else { continue };
        let _ = writeln!(
            text,
            "| {transport} | {} | {} | {} to {} | {} |",
            parts.len(),
            percent(part),
            percent(low),
            percent(high),
            held(&holds_others(&over))
        );
    }
    text
}

/// A planted difference was found in one of these metrics. Without a report it was not.
pub(crate) fn is_found(played: &Played, metrics: &[&str]) -> bool {
    has_verdict(played, "costs", metrics)
}

pub(crate) fn found(played: &[&Played], metrics: &[&str]) -> Share {
    Share::of(played.iter().map(|played| is_found(played, metrics)))
}

fn has_verdict(played: &Played, verdict: &str, metrics: &[&str]) -> bool {
    let mut comparisons = played.comparisons.iter();
    comparisons
        .any(|compared| compared.verdict == verdict && metrics.contains(&compared.metric.as_str()))
}

/// The median of half the width of the relative intervals.
fn width(played: &[&Played], metric: &str) -> String {
    let widths =
        differences(played, Some(metric)).filter_map(|compared| compared.difference.half_width());
    median(widths).map_or_else(|| "-".to_owned(), |width| format!("±{}", percent(width)))
}

/// Median and longest.
fn seconds(played: &[&Played]) -> String {
    let all = || played.iter().map(|played| played.seconds);
    match (median(all()), all().reduce(f64::max)) {
        (Some(median), Some(longest)) => format!("{median:.0} s, at most {longest:.0} s"),
        _ => "-".to_owned(),
    }
}

/// False marks, coverage, and width against time.
pub(crate) fn same(played: &[&Played]) -> String {
    let lengths = EQUAL.map(|kind| (kind, of(played, &[kind])));
    let mut text = "\n## Equal variants\n\nThree variants, `a`, `b` and `c`, that differ in nothing: \
                    all over UDP, all over TCP or all over DoT, in turn. A false mark is a \"costs\" or \
                    a \"gains\" anywhere in the report.\n\n"
        .to_owned();
    text += "| length | reports | with a false mark | 95 % interval |\n| --- | --- | --- | --- |\n";
    for (kind, of_kind) in &lengths {
        let count = format!("{} of {}", of_kind.len(), kind.target());
        let _ = writeln!(text, "| {} | {count} | {} |", kind.name(), shown(false_marks(of_kind)));
    }
    let both = of(played, &EQUAL);
    let mut metrics: Vec<&str> = Vec::new();
    for comparison in differences(&both, None) {
        if !metrics.contains(&comparison.metric.as_str()) {
            metrics.push(&comparison.metric);
        }
    }
    text += "\nThe true difference is 0. A 95 % interval should hold it in 95 of 100:\n\n\
             | metric | intervals that hold 0 | 95 % interval |\n| --- | --- | --- |\n";
    for metric in metrics {
        let _ = writeln!(text, "| {metric} | {} |", held(&holds_zero(&both, Some(metric))));
    }
    text += "\nWidth against time (medians; the width is that of the 95 % interval of the relative \
             difference):\n\n| length | transport | time | answered rate | CPU time per query | median \
             latency |\n| --- | --- | --- | --- | --- | --- |\n";
    for (kind, of_kind) in &lengths {
        for transport in ["udp", "tcp", "dot"] {
            let over = over(of_kind, transport);
            if over.is_empty() {
                continue;
            }
            let [rate, cpu, latency] = [RATE, CPU, MEDIAN].map(|metric| width(&over, metric));
            let (length, time) = (kind.name(), seconds(&over));
            let _ =
                writeln!(text, "| {length} | {transport} | {time} | {rate} | {cpu} | {latency} |");
        }
    }
    text
}

/// Two cells of a table, for a share of intervals given for each experiment.
fn held(experiments: &[Share]) -> String {
    shown_in(Share::total(experiments), clustered(experiments))
}

pub(crate) fn costs(played: &[&Played]) -> String {
    let mut text =
        "\n## A known cost of CPU time\n\nThe server of one variant is busy for a known time \
                    with each answer (`server.busy`), about this much of what an answer costs it \
                    otherwise, over UDP, TCP and DoT in turn. Found: the report says \"costs\"; an \
                    experiment without a report has found nothing. The interval is that of the CPU \
                    time per query in ns, and should hold the planted time.\n\n"
            .to_owned();
    text += "| planted | experiments | found in CPU time per query | 95 % interval | found there or in \
             the answered rate | 95 % interval | \"equal within\" said of CPU time | interval holds \
             the planted time | 95 % interval | width | time |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for kind in COSTS {
        let of_kind = of(played, &[kind]);
        let none =
            of_kind.iter().filter(|played| has_verdict(played, "equal-within", &[CPU])).count();
        let _ = writeln!(
            text,
            "| {} | {} of {} | {} | {} | {none} | {} | {} | {} |",
            kind.name(),
            of_kind.len(),
            kind.target(),
            shown(found(&of_kind, &[CPU])),
            shown(found(&of_kind, &[CPU, RATE])),
            held(&holds_planted(&of_kind)),
            width(&of_kind, CPU),
            seconds(&of_kind)
        );
    }
    let costs = of(played, &COSTS);
    let gains = Share::of(costs.iter().map(|played| has_verdict(played, "gains", &[CPU, RATE])));
    let _ = writeln!(
        text,
        "\nIn {}, the report called the planted cost a gain in the CPU time or in the answered rate. Over UDP \
         the load generator is the bottleneck of both variants, so the rate is compared with none.",
        counts(gains)
    );
    text + &measured_part(&costs)
}

/// The figures that are told apart, the headline of a closed loop first.
const FIGURES: [(&str, &str); 5] = [
    (CPU, "CPU time per query"),
    (RATE, "answered rate"),
    (MEDIAN, "median latency"),
    ("latency-p99", "p99"),
    (MEMORY, "memory"),
];

/// What each figure finds by itself, and where each says that equal variants are equal.
pub(crate) fn by_figure(played: &[&Played]) -> String {
    let headings = FIGURES.map(|(_, name)| name).join(" | ");
    let mut text = format!(
        "\n## What each figure finds\n\nThe answer of a report begins with the CPU time per query. Planted CPU time, \
         found by it and by each other figure alone; and of equal variants, comparisons of which the report says that \
         they are equal within the margin.\n\n| planted | over | experiments | {headings} |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for kind in COSTS {
        for transport in ["udp", "tcp", "dot"] {
            let over = over(&of(played, &[kind]), transport);
            let cells = FIGURES.map(|(metric, _)| counts(found(&over, &[metric])));
            push_row(&mut text, [kind.name(), transport], over.len(), &cells);
        }
    }
    for kind in EQUAL {
        for transport in ["udp", "tcp", "dot"] {
            let over = over(&of(played, &[kind]), transport);
            let cells = FIGURES.map(|(metric, _)| counts(equal(&over, metric)));
            push_row(&mut text, [kind.name(), transport], over.len(), &cells);
        }
    }
    text
}

/// Servers that others wrote: false marks of equal variants, and planted CPU time that each figure finds.
pub(crate) fn real_servers(played: &[&Played]) -> String {
    let mut text = "\n## Servers of others\n\nThe same with BIND and NSD. CPU time is planted by a library that is \
                    loaded before the C library (LD_PRELOAD) and keeps the server busy before each message that it \
                    sends. Its loop is counted, as that of `server.busy` is.\n\n\
                    | experiments | over | played | reports with a false mark | found in CPU time per query | \
                    found in the answered rate | \"equal within\" said of CPU time | measured, of the planted time |\n\
                    | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for kind in [Kind::SameBind, Kind::SameNsd, Kind::Cost5Bind, Kind::Cost5Nsd] {
        for transport in ["udp", "tcp", "dot"] {
            let over = over(&of(played, &[kind]), transport);
            let is_cost = kind.cost().is_some();
            let parts: Vec<f64> = over
                .iter()
                .filter_map(|played| planted_and_measured(played))
                .map(|(planted, measured, _)| measured / planted)
                .collect();
            let part = mean(&parts).map_or_else(|| "-".to_owned(), |(part, ..)| percent(part));
            let cells = match is_cost {
                true => [
                    "-".to_owned(),
                    counts(found(&over, &[CPU])),
                    counts(found(&over, &[RATE])),
                    "-".to_owned(),
                    part,
                ],
                false => [
                    counts(false_marks(&over)),
                    "-".to_owned(),
                    "-".to_owned(),
                    counts(equal(&over, CPU)),
                    "-".to_owned(),
                ],
            };
            push_row(&mut text, [kind.name(), transport], over.len(), &cells);
        }
    }
    text
}

fn push_row(text: &mut String, [kind, transport]: [&str; 2], count: usize, cells: &[String]) {
    if count > 0 {
        let _ = writeln!(text, "| {kind} | {transport} | {count} | {} |", cells.join(" | "));
    }
}

fn over<'a>(played: &[&'a Played], transport: &str) -> Vec<&'a Played> {
    played.iter().filter(|played| played.transport == transport).copied().collect()
}

/// Comparisons of a metric that are called equal within the margin.
fn equal(same: &[&Played], metric: &str) -> Share {
    Share::of(differences(same, Some(metric)).map(|compared| compared.verdict == "equal-within"))
}

pub(crate) fn planted(played: &[&Played]) -> String {
    let (delay, loss) = (of(played, &[Kind::Delay]), of(played, &[Kind::Loss]));
    let medians: Vec<&Compared> = differences(&delay, Some(MEDIAN)).collect();
    let held = |comparison: &&Compared| Some(comparison.absolute?.holds(PLANTED_DELAY_NS));
    let latency = Share::of(medians.iter().filter_map(held));
    let value = median(medians.iter().filter_map(|comparison| comparison.absolute?.value));
    let value = value.map_or_else(|| "-".to_owned(), |ns| format!("{:.1} us", ns / 1e3));
    let lost = |played: &&Played| played.lost.map(|[part, total]| Share { part, of: total });
    let shares: Vec<Share> = loss.iter().filter_map(lost).collect();
    let holds = |share: &Share| {
        let (low, high) = share.interval();
        (low..=high).contains(&PLANTED_LOSS)
    };
    let is_seen = |share: Share| holds(&share) && share.interval().0 > PLANTED_LOSS / 2.0;
    let seen = Share::of(loss.iter().map(|played| lost(played).is_some_and(is_seen)));
    let all = Share::total(&shares);
    let lost =
        if all.of == 0 { "-".into() } else { dnslab_wire::units::share::percent(all.value(), 3) };
    let mut text = "\n## A known latency, a known loss\n\nLatency: `server.delay` of 200 us against \
                    100 us, both with the timer's own lateness, so the medians at the common load \
                    differ by 100 us. Loss: `server.loss` of 0.5 % in an open loop of 20,000 queries \
                    per second; its interval is that of a share of so many queries. It is found if \
                    this interval holds 0.5 % and is all above 0.25 %.\n\n"
        .to_owned();
    text += "| planted | experiments | measured | found | 95 % interval | interval holds the truth | \
             95 % interval |\n| --- | --- | --- | --- | --- | --- | --- |\n";
    let _ = writeln!(
        text,
        "| 0.1 ms later | {} of {} | {value} (median) | {} | {} |",
        delay.len(),
        Kind::Delay.target(),
        shown(found(&delay, &[MEDIAN])),
        shown(latency)
    );
    let _ = writeln!(
        text,
        "| 0.5 % of the answers lost | {} of {} | {lost} (all together) | {} | {} |",
        loss.len(),
        Kind::Loss.target(),
        shown(seen),
        shown(Share::of(shares.iter().map(holds)))
    );
    text
}

pub(crate) fn limits(played: &[&Played]) -> String {
    let mut text =
        "\n## A known bottleneck\n\nShort experiments of two runs each, with a bottleneck that is known \
                    ([METHOD.md](../docs/METHOD.md), \"Planted differences\"). The network \
                    loses 5 % of the packets between two hosts, which are network namespaces and \
                    take root's privileges.\n\n"
            .to_owned();
    text += "| bottleneck | runs that name it | 95 % interval | named instead |\n";
    text += "| --- | --- | --- | --- |\n";
    for (kind, limit) in KINDS.iter().filter_map(|(kind, ..)| Some((*kind, kind.limit()?))) {
        let of_kind = of(played, &[kind]);
        let named = || of_kind.iter().flat_map(|played| &played.limits);
        let mut others: BTreeMap<&str, u32> = BTreeMap::new();
        for other in named().filter(|other| *other != limit) {
            *others.entry(other).or_default() += 1;
        }
        let others: Vec<String> =
            others.iter().map(|(name, count)| format!("{name} ({count})")).collect();
        let others = if others.is_empty() { "-".to_owned() } else { others.join(", ") };
        let right =
            |played: &&Played| Share::of(played.limits.iter().map(|played| played == limit));
        let right: Vec<Share> = of_kind.iter().map(right).collect();
        let _ = writeln!(text, "| {} | {} | {others} |", kind.name(), held(&right));
    }
    text
}

pub(crate) fn position(played: &[&Played]) -> String {
    let same = of(played, &EQUAL);
    let mut text =
        "\n## Does the place in the file matter?\n\nThe mean difference of `b` and of `c` \
                    from `a` in the answered rate, over all experiments with equal variants. Its \
                    interval must hold 0.\n\n"
            .to_owned();
    text += "| variant | experiments | mean difference | 95 % interval | |\n";
    text += "| --- | --- | --- | --- | --- |\n";
    for variant in ["b", "c"] {
        let rates =
            differences(&same, Some(RATE)).filter(|comparison| comparison.variant == variant);
        let values: Vec<f64> = rates.filter_map(|comparison| comparison.difference.value).collect();
        let found = mean(&values).map_or_else(
            || "- | - | too few experiments".to_owned(),
            |(mean, low, high)| {
                let holds =
                    if low <= 0.0 && 0.0 <= high { "holds 0" } else { "**does not hold 0**" };
                let [mean, low, high] =
                    [mean, low, high].map(|share| format!("{:+.2} %", share * 100.0));
                format!("{mean} | {low} to {high} | {holds}")
            },
        );
        let _ = writeln!(text, "| `{variant}` | {} | {found} |", values.len());
    }
    text
}
