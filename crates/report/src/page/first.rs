//! The charts of the first view: what the study asks for, and the percentiles of all variants.

use std::borrow::Cow;
use std::fmt::Write as _;

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{Summary, VariantSummary};
use dnslab_record::Metric;

use super::group::Grouping;
use super::html::escape;
use super::picture::{Ticks, push_text, short_count, shortened, trimmed};
use crate::answer::headline_metric;
use crate::number::{self, NONE};
use crate::variants::{is_at_least, shown};
use crate::words::metric::words;
use crate::words::{TIME_OUT, time_out};

/// Where things stand in the coordinates of a picture; the style sheet scales it.
struct Layout {
    /// Class of the picture, by which the style sheet shows one layout only.
    class: &'static str,
    width: f64,
    longest_name: usize,
}

/// Beside each other on screens, below each other on telephones.
const LAYOUTS: [Layout; 2] = [
    Layout { class: "broad", width: 524.0, longest_name: 24 },
    Layout { class: "narrow", width: 368.0, longest_name: 17 },
];
const LETTER: f64 = 7.4;
const GAP: f64 = 8.0;
const AXIS: f64 = 22.0;

/// Both charts; nothing if no variant has a run that counts.
pub(crate) fn section(summary: &Summary, grouping: &Grouping) -> String {
    let metric = headline_metric(summary);
    let is_measured = |variant: &VariantSummary| {
        let variant = shown(variant);
        variant.metrics.keys().any(|key| *key == metric || key.is_latency())
            || !variant.time_outs.is_empty()
    };
    if !summary.variants.iter().any(is_measured) {
        return String::new();
    }
    let common = summary.variants.iter().find_map(|variant| variant.common_rate_qps);
    let title = words(metric).first_chart.unwrap_or(words(metric).label);
    let text = if summary.has_imported() {
        "As the load generator counted them. Line: 95 % interval."
    } else if summary.has_open_loop() || common.is_some() && metric.is_latency() {
        "All variants at the rate that was set. Line: 95 % interval."
    } else if summary.variants.iter().any(VariantSummary::asks_one_by_one) {
        "One query after another. Line: 95 % interval."
    } else {
        "As many queries as each variant answers. Line: 95 % interval."
    };
    let at = match common {
        Some(qps) => format!("All variants at {}. ", number::queries_per_second(qps)),
        None => String::new(),
    };
    let percentiles = format!("{at}Dot: p50. Bar: p95. Ring: p99. The axis is logarithmic.");
    let mut html = String::from("<section class=\"first\">\n");
    let bars = |layout| bars(summary, grouping, metric, layout);
    let spans = |layout| spans(summary, grouping, layout);
    // What another tool measured has no quantiles, unless it printed a histogram.
    let has = |metric: &Metric| {
        summary.variants.iter().map(shown).any(|variant| {
            variant.metrics.contains_key(metric) || variant.time_outs(*metric).is_some()
        })
    };
    if has(&metric) {
        push_figure(&mut html, "first-answer", title, text, &bars);
    }
    if QUANTILES.iter().any(has) {
        push_figure(&mut html, "first-percentiles", "Latency: p50, p95, p99", &percentiles, &spans);
    }
    html.push_str("</section>\n");
    html
}

fn push_figure(
    html: &mut String,
    id: &str,
    title: &str,
    text: &str,
    picture: &dyn Fn(&'static Layout) -> String,
) {
    let _ = writeln!(
        html,
        "<figure class=\"drawn\" id=\"{id}\">\n<figcaption><h3>{}</h3><p>{}</p></figcaption>\n{}\
         </figure>",
        escape(title),
        escape(text),
        LAYOUTS.iter().map(picture).collect::<String>()
    );
}

struct Rows {
    /// Place in the summary and height of the middle.
    rows: Vec<(usize, f64)>,
    height: f64,
    end: f64,
}

impl Rows {
    fn of(grouping: &Grouping) -> Self {
        let count = grouping.in_order().count();
        let height = match count {
            0..=4 => 42.0,
            5..=7 => 34.0,
            8..=12 => 23.0,
            _ => 16.0,
        };
        let mut y = 4.0;
        let rows = grouping.in_order().enumerate().map(|(nth, (place, is_first))| {
            y += if is_first && nth > 0 { GAP } else { 0.0 };
            y += height;
            (place, y - height / 2.0)
        });
        let rows: Vec<_> = rows.collect();
        let end = rows.last().map_or(y, |(_, middle)| middle + height / 2.0) + 4.0;
        Self { rows, height, end }
    }
}

fn names_width(summary: &Summary, layout: &Layout) -> f64 {
    let names = summary.variants.iter().map(|variant| shown(variant).name.chars().count());
    let longest = names.max().unwrap_or(0);
    longest.min(layout.longest_name) as f64 * (LETTER + 0.6) + 10.0
}

fn bars(summary: &Summary, grouping: &Grouping, metric: Metric, layout: &Layout) -> String {
    let rows = Rows::of(grouping);
    let variants: Vec<Cow<'_, VariantSummary>> = summary.variants.iter().map(shown).collect();
    let estimate = |place: usize| variants[place].metrics.get(&metric);
    let write = |value: f64| match metric {
        Metric::AnsweredQps => number::qps(value),
        _ => number::duration(value),
    };
    let is_bound =
        |place: usize| metric == Metric::AnsweredQps && is_at_least(&summary.variants[place]);
    let figures = |place: usize| {
        let at_least = if is_bound(place) { "at least " } else { "" };
        estimate(place).map(|found| at_least.to_owned() + &with_half_width(found, &write))
    };
    let widest =
        (0..summary.variants.len()).filter_map(figures).map(|text| text.chars().count()).max();
    let (left, right) =
        (names_width(summary, layout), layout.width - widest.unwrap_or(0) as f64 * LETTER - 6.0);
    let most = (0..summary.variants.len())
        .filter_map(estimate)
        .map(
            |found| {
                if found.is_bounded() { found.high.min(1.5 * found.value) } else { found.value }
            },
        )
        .fold(0.0, f64::max);
    let ticks = Ticks::linear(most, 4);
    let end = most.max(f64::MIN_POSITIVE) * 1.03;
    let x = |value: f64| left + (value / end).clamp(0.0, 1.0) * (right - left);
    let mut svg = String::new();
    let label = |value: f64| match metric {
        Metric::AnsweredQps => short_count(value),
        _ if value == 0.0 => "0".to_owned(),
        _ => trimmed(&number::duration(value)),
    };
    push_axis(&mut svg, &ticks.places, &x, &label, rows.end);
    for &(place, y) in &rows.rows {
        push_name(&mut svg, summary, place, layout, y);
        let Some(found) = estimate(place) else {
            let time_outs = variants[place].time_outs(metric);
            let text = time_outs.map(|found| time_out(found, "rounds"));
            let text = text.unwrap_or_else(|| "not measured".to_owned());
            push_text(&mut svg, "metric", left + 4.0, y, "start", &text);
            continue;
        };
        let thick = (rows.height * 0.56).min(20.0);
        let _ = write!(
            svg,
            "<g class=\"{}\"><title>{}</title><rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
             height=\"{thick:.1}\" rx=\"2\"/>",
            grouping.class(place),
            escape(&told(&variants[place].name, found, is_bound(place), &write)),
            y - thick / 2.0,
            x(found.value) - left
        );
        if found.is_bounded() {
            let (low, high, cap) = (x(found.low), x(found.high), thick * 0.28);
            // An interval that leaves the axis ends in an arrow.
            let upper = match found.high > end {
                true => format!("M{:.1} {:.1}l5 {cap:.1}l-5 {cap:.1}", high - 5.0, y - cap),
                false => format!("M{high:.1} {:.1}v{:.1}", y - cap, 2.0 * cap),
            };
            let _ = write!(
                svg,
                "<path class=\"whisker\" d=\"M{low:.1} {y:.1}H{high:.1}M{low:.1} {:.1}v{:.1}{upper}\"/>",
                y - cap,
                2.0 * cap
            );
        }
        svg.push_str("</g>");
        push_text(&mut svg, "figure", layout.width, y, "end", &figures(place).unwrap_or_default());
        svg.push('\n');
    }
    wrapped(
        layout,
        rows.end + AXIS,
        "Bars with intervals; the table below has the same figures",
        &svg,
    )
}

/// The figure with half the width of its interval as a share of it: `148,210 ± 1.2 %`.
fn with_half_width(found: &Estimate, write: &dyn Fn(f64) -> String) -> String {
    let half = (found.high - found.low) / 2.0 / found.value.abs().max(f64::MIN_POSITIVE);
    match found.is_bounded() && half.is_finite() {
        true if half > 1.0 => format!("{} \u{b1} > 100 %", write(found.value)),
        true => format!("{} \u{b1} {}", write(found.value), number::size(half)),
        false => write(found.value),
    }
}

fn told(name: &str, found: &Estimate, is_bound: bool, write: &dyn Fn(f64) -> String) -> String {
    match found.is_bounded() {
        _ if is_bound => format!(
            "{name}: at least {}, the load generator was the bottleneck",
            write(found.value)
        ),
        true => format!(
            "{name}: {}, 95 % interval {} to {}",
            write(found.value),
            write(found.low),
            write(found.high)
        ),
        false => format!("{name}: {}, too few runs for an interval", write(found.value)),
    }
}

/// Figures in a row, each in its own unit, which stands once for those that share it: `1.20 · 4.80 · 9.10 ms`,
/// `0.81 · 2.10 ms · 1.30 s`.
fn in_a_row(figures: &[String]) -> String {
    let unit = |place: usize| figures.get(place)?.split_once(' ').map(|(_, unit)| unit);
    let texts = figures.iter().enumerate().map(|(place, figure)| match figure.split_once(' ') {
        Some((number, own)) if unit(place + 1) == Some(own) => number,
        _ => figure,
    });
    texts.collect::<Vec<&str>>().join(" \u{b7} ")
}

const QUANTILES: [Metric; 3] = [Metric::LatencyP50, Metric::LatencyP95, Metric::LatencyP99];

fn quantiles(variant: &VariantSummary) -> String {
    let text = |metric| match (variant.metrics.get(&metric), variant.time_outs(metric)) {
        (Some(found), _) => number::duration(found.value),
        (None, Some(_)) => TIME_OUT.to_owned(),
        (None, None) => NONE.to_owned(),
    };
    in_a_row(&QUANTILES.map(text))
}

fn spans(summary: &Summary, grouping: &Grouping, layout: &Layout) -> String {
    let rows = Rows::of(grouping);
    let variants: Vec<Cow<'_, VariantSummary>> = summary.variants.iter().map(shown).collect();
    let quantiles_of = |place: usize| {
        QUANTILES.map(|metric| {
            variants[place].metrics.get(&metric).map(|quantiles_of| quantiles_of.value)
        })
    };
    let all =
        || (0..summary.variants.len()).flat_map(quantiles_of).flatten().filter(|ns| *ns > 0.0);
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let widest = variants.iter().map(|variant| quantiles(variant).chars().count()).max();
    let (left, right) = (
        names_width(summary, layout) + 6.0,
        layout.width - widest.unwrap_or(0) as f64 * LETTER - 14.0,
    );
    let (low, high) = match least.is_finite() {
        true => (least.log10() - 0.04, most.log10().max(least.log10() + 0.1) + 0.04),
        false => (0.0, 1.0),
    };
    let x = |ns: f64| left + (ns.log10() - low) / (high - low) * (right - left);
    let mut svg = String::new();
    let label = |ns: f64| trimmed(&number::duration(ns));
    let room = ((right - left) / 56.0).floor().max(2.0) as usize;
    push_axis(&mut svg, &Ticks::logarithmic(low, high, room).places, &x, &label, rows.end);
    for &(place, y) in &rows.rows {
        push_name(&mut svg, summary, place, layout, y);
        let [p50, p95, p99] = quantiles_of(place);
        let known: Vec<f64> = [p50, p95, p99].into_iter().flatten().map(x).collect();
        let (Some(first), Some(last)) = (known.first(), known.last()) else {
            push_text(&mut svg, "metric", left + 4.0, y, "start", "not measured");
            continue;
        };
        let radius = (rows.height * 0.2).clamp(3.0, 5.0);
        let _ = write!(
            svg,
            "<g class=\"{}\"><path d=\"M{first:.1} {y:.1}H{last:.1}\"/>",
            grouping.class(place)
        );
        if let Some(p50) = p50 {
            let _ = write!(svg, "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"/>", x(p50));
        }
        if let Some(p95) = p95 {
            let (at, half) = (x(p95), radius + 1.0);
            let _ = write!(svg, "<path d=\"M{at:.1} {:.1}v{:.1}\"/>", y - half, 2.0 * half);
        }
        if let Some(p99) = p99 {
            let _ = write!(
                svg,
                "<circle class=\"ring\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"/>",
                x(p99)
            );
        }
        svg.push_str("</g>");
        push_text(&mut svg, "figure", layout.width, y, "end", &quantiles(&variants[place]));
        svg.push('\n');
    }
    let described = "p50, p95 and p99 of each variant; the table below has the same figures";
    wrapped(layout, rows.end + AXIS, described, &svg)
}

fn push_name(svg: &mut String, summary: &Summary, place: usize, layout: &Layout, y: f64) {
    let name = shortened(&shown(&summary.variants[place]).name, layout.longest_name);
    push_text(svg, "name", 0.0, y, "start", &name);
}

fn push_axis(
    svg: &mut String,
    ticks: &[f64],
    x: &dyn Fn(f64) -> f64,
    label: &dyn Fn(f64) -> String,
    end: f64,
) {
    // A label that would touch the one before it is left out, with its line.
    let mut taken = f64::NEG_INFINITY;
    for &tick in ticks {
        let at = x(tick);
        let half = label(tick).chars().count() as f64 * LETTER / 2.0;
        if at - half < taken {
            continue;
        }
        taken = at + half + 6.0;
        let _ = write!(
            svg,
            "<line class=\"mark\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"{end:.1}\"/>"
        );
        push_text(svg, "end", at, end + 9.0, "middle", &label(tick));
    }
    svg.push('\n');
}

fn wrapped(layout: &Layout, height: f64, described: &str, content: &str) -> String {
    format!(
        "<svg class=\"picture {}\" viewBox=\"0 0 {} {height:.0}\" role=\"img\" \
         aria-label=\"{described}\">\n{content}</svg>\n",
        layout.class, layout.width
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_units_of_its_own_figures() {
        let row = |ns: [f64; 3]| in_a_row(&ns.map(number::duration));
        assert_eq!(row([61e3, 84e3, 310e3]), "61.0 \u{b7} 84.0 \u{b7} 310 us");
        // It was "0.0610 · 310 · 1200" where another variant was slow.
        assert_eq!(row([61e3, 310e6, 1.2e9]), "61.0 us \u{b7} 310 ms \u{b7} 1.20 s");
        let late = ["2.00 ms", "5.00 ms", TIME_OUT].map(str::to_owned);
        assert_eq!(in_a_row(&late), format!("2.00 \u{b7} 5.00 ms \u{b7} {TIME_OUT}"));
    }
}
