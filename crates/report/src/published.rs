//! What others published of such an experiment, beside what was measured here.

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{BesidePublished, Summary};
use dnslab_record::{Published, PublishedKind, Unit};

use crate::number::{self, NONE};
use crate::screen::cell;
use crate::words::metric::label;

pub(crate) const HEADER: [&str; 6] =
    ["figure", "published", "here", "difference", "what differs", "source"];

pub(crate) const LEGEND: &str = "Difference: from the nearest end of what was published, of that end; of a relative \
                                 difference in points. Nothing stands where this machine has no such figure, or only a \
                                 bound of it.";

/// A row for each published figure, in the order of the experiment.
pub(crate) fn rows(summary: &Summary) -> Vec<[String; 6]> {
    summary.published.iter().map(row).collect()
}

fn row(beside: &BesidePublished) -> [String; 6] {
    let BesidePublished { published, here, off } = beside;
    let Published { variant, figure, against, source, place, differs, .. } = published;
    let what = match against {
        Some(against) => format!("{variant} to {against}, {}", label(*figure)),
        None => format!("{variant}, {}", label(*figure)),
    };
    let source = match place.as_str() {
        "" => source.clone(),
        place => format!("{source}; {place}"),
    };
    [
        what,
        of_published(published),
        here.as_ref().map_or_else(|| NONE.to_owned(), |here| of_here(published, here)),
        off.map_or_else(|| NONE.to_owned(), |off| off_text(published, off)),
        differs.clone(),
        source,
    ]
}

fn of_published(published: &Published) -> String {
    let exact = |value: f64| Estimate { value, low: value, high: value };
    let text = |value: f64| match published.kind {
        PublishedKind::Figure => cell::figure(published.figure, &exact(value)),
        PublishedKind::Change => number::change(value),
        PublishedKind::Difference => signed(published, value),
    };
    match published.low == published.high {
        true => text(published.low),
        false => format!("{} to {}", text(published.low), text(published.high)),
    }
}

fn of_here(published: &Published, here: &Estimate) -> String {
    let half = here.half_width().unwrap_or(0.0);
    match (published.kind, published.figure.unit()) {
        (PublishedKind::Figure, _) => cell::figure(published.figure, here),
        (PublishedKind::Change, _) => cell::with_interval(here, half),
        (PublishedKind::Difference, Unit::Duration) => number::time_with_interval(here.value, half),
        (PublishedKind::Difference, _) => signed(published, here.value),
    }
}

fn off_text(published: &Published, off: f64) -> String {
    match published.kind {
        _ if off == 0.0 => "none".to_owned(),
        PublishedKind::Figure => number::change(off),
        // Adding zero takes the sign from a zero.
        PublishedKind::Change => format!("{:+.0} points", (100.0 * off).round() + 0.0),
        PublishedKind::Difference => signed(published, off),
    }
}

/// A difference in the unit of its figure.
fn signed(published: &Published, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    let size = Estimate { value: value.abs(), low: value.abs(), high: value.abs() };
    format!("{sign}{}", cell::figure(published.figure, &size))
}

#[cfg(test)]
mod tests {
    use dnslab_record::Metric;

    use super::*;

    fn beside(kind: PublishedKind, ends: [f64; 2], here: [f64; 3], off: f64) -> [String; 6] {
        let is_rate = kind != PublishedKind::Difference;
        let [value, low, high] = here;
        row(&BesidePublished {
            published: Published {
                variant: "tcp".to_owned(),
                figure: if is_rate { Metric::AnsweredQps } else { Metric::ServerCpuPerQuery },
                kind,
                low: ends[0],
                high: ends[1],
                against: (kind != PublishedKind::Figure).then(|| "udp".to_owned()),
                source: "a talk".to_owned(),
                place: "slide 3".to_owned(),
                differs: "two hosts".to_owned(),
            },
            here: Some(Estimate { value, low, high }),
            off: Some(off),
        })
    }

    #[test]
    fn published_and_own_figures_have_one_unit() {
        let rate = beside(
            PublishedKind::Figure,
            [60_000.0, 70_000.0],
            [97_000.0, 96_000.0, 98_000.0],
            0.386,
        );
        let [what, published, here, off, differs, source] = rate.each_ref().map(String::as_str);
        assert_eq!((what, published, here), ("tcp, answered qps", "60,000 to 70,000", "97,000"));
        assert_eq!((off, differs, source), ("+39 %", "two hosts", "a talk; slide 3"));
        let change = beside(PublishedKind::Change, [-0.2, -0.2], [-0.33, -0.36, -0.3], -0.13);
        assert_eq!(change[1..4], ["-20 %", "-33 ±3 %", "-13 points"]);
        let cost =
            beside(PublishedKind::Difference, [2_800.0; 2], [3_700.0, 3_500.0, 3_900.0], 900.0);
        assert_eq!(cost[1..4], ["+2.80 us", "+3.7 ±0.2 us", "+900 ns"]);
        let within = beside(
            PublishedKind::Figure,
            [60_000.0, 70_000.0],
            [65_000.0, 64_000.0, 66_000.0],
            0.0,
        );
        assert_eq!(within[3], "none");
    }
}
