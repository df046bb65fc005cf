//! The picture of the differences: what people look at first.

use std::fmt::Write as _;

use dnslab_measure::Summary;
use dnslab_measure::statistics::{Comparison, Metric, Verdict};

use super::figures::colour_class;
use super::html::escape;
use crate::many::are_many;
use crate::number;
use crate::sentence::headline_metric;

/// Where things stand, in the picture's own coordinates; the style sheet scales them.
struct Layout {
    /// Class of the picture, by which the style sheet shows one layout only.
    class: &'static str,
    /// Its width.
    width: f64,
    /// Where the name of the metric stands, and which of its ends is there.
    metric: (f64, &'static str),
    /// Where the axis begins and ends.
    axis: (f64, f64),
    /// Right end of the figures.
    figure: f64,
    /// Left end of the words; `None` leaves them to the sentences.
    word: Option<f64>,
    /// Room above the first difference of a variant, where its name has a line of its own.
    name_line: f64,
    /// How many characters of a name there is room for.
    longest_name: usize,
}

/// For screens with room.
const BROAD: Layout = Layout {
    class: "broad",
    width: 860.0,
    metric: (236.0, "end"),
    axis: (250.0, 640.0),
    figure: 730.0,
    word: Some(748.0),
    name_line: 0.0,
    longest_name: 13,
};
/// The same for long names: each above its metrics.
const BROAD_LINES: Layout = Layout { name_line: ROW, longest_name: 60, ..BROAD };
/// The same for one metric: the name stands in its place.
const BROAD_NAMES: Layout = Layout { longest_name: 30, ..BROAD };
/// For telephones: names above the metrics, no words.
const NARROW: Layout = Layout {
    class: "narrow",
    width: 368.0,
    metric: (0.0, "start"),
    axis: (124.0, 302.0),
    figure: 368.0,
    word: None,
    name_line: ROW,
    longest_name: 44,
};
/// Height of one difference.
const ROW: f64 = 25.0;
/// Room above the first difference of a variant.
const GAP: f64 = 14.0;
/// Room for the labels of the axis.
const TOP: f64 = 22.0;

/// Every difference as a point with its interval on one axis, readable without script. Of many
/// variants only the metric that answers the question, and the others collapsed.
/// Differences without a bounded interval are left to the sentences.
pub(crate) fn section(summary: &Summary) -> String {
    let bounded =
        summary.comparisons.iter().filter(|comparison| comparison.difference.is_bounded());
    let drawn: Vec<&Comparison> = bounded.collect();
    if drawn.is_empty() {
        return String::new();
    }
    let is_other = |of: &&&Comparison| of.against != summary.baseline;
    let others: Vec<String> = drawn
        .iter()
        .filter(is_other)
        .map(|of| format!("{} from {}", escape(&of.variant), escape(&of.against)))
        .collect();
    let beside = match dedup(others).join(", ") {
        none if none.is_empty() => String::new(),
        some => format!(" Not from the baseline: {some}."),
    };
    let baseline = escape(&summary.baseline);
    let mut html = format!(
        "<section>\n<h2>Difference from {baseline}</h2>\n\
         <p class=\"hint\">Point: mean difference inside the rounds. Bar: 95\u{a0}% interval. \
         Hollow: no difference seen, or it cannot be told.{beside}</p>\n"
    );
    let metric = headline_metric(summary);
    let (first, others): (Vec<&Comparison>, Vec<&Comparison>) =
        drawn.iter().copied().partition(|comparison| comparison.metric == metric);
    if !are_many(summary) || first.is_empty() || others.is_empty() {
        html.push_str(&pictures(summary, &drawn));
    } else {
        let _ = writeln!(html, "<h3>{}</h3>", escape(metric_name(metric)));
        html.push_str(&picture(summary, &first, &BROAD_NAMES, true));
        html.push_str(&picture(summary, &first, &NARROW, true));
        let _ = write!(
            html,
            "<details><summary>every metric</summary>\n{}</details>\n",
            pictures(summary, &drawn)
        );
    }
    html.push_str("</section>\n");
    html
}

/// All differences in both layouts.
fn pictures(summary: &Summary, drawn: &[&Comparison]) -> String {
    let fits = |of: &&Comparison| of.variant.chars().count() <= BROAD.longest_name;
    let broad = if drawn.iter().all(fits) { &BROAD } else { &BROAD_LINES };
    picture(summary, drawn, broad, false) + &picture(summary, drawn, &NARROW, false)
}

/// The picture in one layout. Where all are of one metric its name is left away, and that of the
/// variant is in its place unless it has a line of its own.
fn picture(summary: &Summary, drawn: &[&Comparison], layout: &Layout, is_one: bool) -> String {
    let axis = Axis::of(drawn, layout);
    let mut rows = String::new();
    let mut y = TOP;
    let mut before = None;
    let gap = if is_one { GAP / 4.0 } else { GAP };
    for comparison in drawn {
        let first = before != Some(&comparison.variant);
        before = Some(&comparison.variant);
        let name = shortened(&comparison.variant, layout.longest_name);
        let has_line = !is_one || layout.name_line > 0.0;
        if first {
            y += gap + layout.name_line;
            let at = y - layout.name_line + ROW / 2.0;
            if has_line {
                push_text(&mut rows, "name", (0.0, at), "start", &name);
            }
        }
        let at = (layout.metric.0, y + ROW / 2.0);
        match (is_one, has_line) {
            (false, _) => {
                let metric = metric_name(comparison.metric);
                push_text(&mut rows, "metric", at, layout.metric.1, metric);
            }
            (true, false) => push_text(&mut rows, "name", at, layout.metric.1, &name),
            (true, true) => {}
        }
        push_difference(&mut rows, summary, comparison, y + ROW / 2.0, &axis);
        y += ROW;
    }
    format!(
        "<svg class=\"differences {}\" viewBox=\"0 0 {} {y}\" role=\"img\" \
         aria-label=\"Differences from the baseline with their intervals; the sentences below say \
         the same\">\n{}{rows}</svg>\n",
        layout.class,
        layout.width,
        axis.lines(&shortened(&summary.baseline, BROAD.longest_name), y)
    )
}

/// A logarithmic axis of ratios: half and double are equally far from the baseline.
struct Axis<'a> {
    /// Where it stands.
    layout: &'a Layout,
    /// The binary logarithm of the ratio at its left end.
    low: f64,
    /// The same at its right end.
    high: f64,
}

impl<'a> Axis<'a> {
    /// An axis on which all intervals and the baseline have their place.
    fn of(drawn: &[&Comparison], layout: &'a Layout) -> Self {
        let ends = || drawn.iter().flat_map(|of| [of.difference.low, of.difference.high]);
        let low = ends().map(ratio_log).fold(-0.08, f64::min);
        let high = ends().map(ratio_log).fold(0.08, f64::max);
        let room = (high - low) * 0.05;
        Self { layout, low: low - room, high: high + room }
    }

    /// The place of a relative difference.
    fn x(&self, difference: f64) -> f64 {
        let share = (ratio_log(difference) - self.low) / (self.high - self.low);
        let (left, right) = self.layout.axis;
        left + share * (right - left)
    }

    /// The line of the baseline, and lines with their labels to read the others by.
    fn lines(&self, baseline: &str, height: f64) -> String {
        // From fine to coarse; the first that leaves room between the labels is taken.
        const CHOICES: [&[f64]; 6] = [
            &[-0.1, -0.05, 0.05, 0.1],
            &[-0.5, -0.3, -0.2, -0.1, 0.1, 0.2, 0.3, 0.5],
            &[-0.75, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0],
            &[-0.75, -0.5, -0.3, 0.5, 1.0, 2.0],
            &[-0.9, -0.5, 1.0, 4.0, 9.0],
            &[-0.99, -0.9, 9.0, 99.0],
        ];
        const LEAST_GAP: f64 = 52.0;
        // Of a letter, about.
        const WIDTH: f64 = 7.5;
        let zero = self.x(0.0);
        let inside = |marks: &[f64]| -> Vec<f64> {
            let fits = |mark: &&f64| (self.low..=self.high).contains(&ratio_log(**mark));
            marks.iter().filter(fits).copied().collect()
        };
        let roomy = |marks: &Vec<f64>| {
            let mut places: Vec<f64> =
                marks.iter().chain([&0.0]).map(|&mark| self.x(mark)).collect();
            places.sort_by(f64::total_cmp);
            // The name of the baseline is longer than the other labels.
            let beside = (LEAST_GAP + WIDTH * baseline.chars().count() as f64) / 2.0;
            places.windows(2).all(|pair| {
                let least = if pair.contains(&zero) { beside.max(LEAST_GAP) } else { LEAST_GAP };
                pair[1] - pair[0] >= least
            })
        };
        let marks = CHOICES.iter().map(|marks| inside(marks)).find(roomy).unwrap_or_default();
        let mut html = String::new();
        let mut push = |class: &str, at: f64, label: &str| {
            let _ = writeln!(
                html,
                "<line class=\"{class}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" \
                 y2=\"{height}\"/><text class=\"end\" x=\"{at:.1}\" y=\"14\" \
                 text-anchor=\"middle\">{label}</text>"
            );
        };
        for mark in marks {
            // Multiples are whole numbers here, and short.
            let label = match mark {
                multiple if multiple >= number::TIMES_FROM => format!("x {:.0}", 1.0 + multiple),
                percent => number::change(percent),
            };
            push("mark", self.x(mark), &escape(&label));
        }
        push("zero", zero, &escape(baseline));
        html
    }
}

/// The binary logarithm of the ratio to the baseline; a difference of -100 % is cut at -99 %.
fn ratio_log(difference: f64) -> f64 {
    (1.0 + difference).max(0.01).log2()
}

/// One difference at height `y`: interval, point, figure and word.
fn push_difference(
    html: &mut String,
    summary: &Summary,
    comparison: &Comparison,
    y: f64,
    axis: &Axis<'_>,
) {
    let Comparison { variant, difference, verdict, .. } = comparison;
    let place = summary.variants.iter().position(|known| known.name == *variant);
    let class = colour_class(place.unwrap_or(0));
    let (word, hollow) = match verdict {
        Verdict::Costs => ("costs", ""),
        Verdict::Gains => ("gains", ""),
        Verdict::NoDifferenceSeen => ("no difference", " hollow"),
        Verdict::CannotTell { .. } => ("cannot tell", " hollow"),
    };
    let layout = axis.layout;
    let (low, high) = (axis.x(difference.low), axis.x(difference.high));
    let _ = write!(
        html,
        "<g class=\"{class}{hollow}\"><line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{y:.1}\" \
         y2=\"{y:.1}\"/><path d=\"M{low:.1} {:.1}v10M{high:.1} {:.1}v10\"/>\
         <circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"/></g>",
        y - 5.0,
        y - 5.0,
        axis.x(difference.value)
    );
    push_text(html, "figure", (layout.figure, y), "end", &number::change(difference.value));
    if let Some(x) = layout.word {
        push_text(html, "metric", (x, y), "start", word);
    }
    html.push('\n');
}

/// A text whose middle line is at the height of the point.
fn push_text(html: &mut String, class: &str, (x, y): (f64, f64), anchor: &str, text: &str) {
    let _ = write!(
        html,
        "<text class=\"{class}\" x=\"{x}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
        y + 4.5,
        escape(text)
    );
}

/// A name cut to so many characters.
fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['\u{2026}']).collect()
}

/// The first of each, in order.
fn dedup(names: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    for name in names {
        if !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept
}

/// A metric in one or two words.
fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::AnsweredQps => "answered qps",
        Metric::LatencyMean => "mean latency",
        Metric::LatencyP50 => "p50 latency",
        Metric::LatencyP95 => "p95 latency",
        Metric::LatencyP99 => "p99 latency",
        Metric::ServerCpuPerQuery => "server CPU/query",
        Metric::LogOctetsPerQuery => "log/query",
        Metric::PeakMemory => "memory",
        Metric::HandshakesPerQuery => "handshakes/query",
    }
}
