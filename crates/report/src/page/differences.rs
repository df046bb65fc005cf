//! The picture of the differences: what people look at first.

use std::fmt::Write as _;

use dnslab_analysis::Summary;
use dnslab_analysis::statistics::{Comparison, Estimate, Verdict};

use super::group::Grouping;
use super::html::escape;
use super::picture::{push_text, shortened};
use crate::answer::{are_many, controls, headline_metric};
use crate::intervals::{in_time, signed_interval};
use crate::number::{self, NONE};
use crate::screen::cell::{self, unseen};
use crate::words::metric::label;

/// Where things stand, in the picture's own coordinates; the style sheet scales them.
struct Layout {
    /// Class of the picture, by which the style sheet shows one layout only.
    class: &'static str,
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
    longest_name: usize,
}

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
/// Broad, for long names: each above its metrics.
const BROAD_LINES: Layout = Layout { name_line: ROW, longest_name: 60, ..BROAD };
/// Broad, for one metric: the name stands in its place.
const BROAD_NAMES: Layout = Layout { longest_name: 28, ..BROAD };
/// Broad, for names that say what a variant is compared with.
const BROAD_LONG_NAMES: Layout =
    Layout { metric: (350.0, "end"), axis: (364.0, 640.0), longest_name: 42, ..BROAD };
/// For telephones: names above the metrics, no words.
const NARROW: Layout = Layout {
    class: "narrow",
    width: 368.0,
    metric: (0.0, "start"),
    axis: (124.0, 284.0),
    figure: 368.0,
    word: None,
    name_line: ROW,
    longest_name: 42,
};
/// Differences up to this factor have their place on the axis.
const MAX_COUNT: f64 = 32.0;
/// Intervals are drawn to this factor beyond the differences.
const BEYOND: f64 = 2.0;
/// Narrow, for one metric of variants with names that fit beside the axis.
const NARROW_NAMES: Layout =
    Layout { axis: (140.0, 284.0), name_line: 0.0, longest_name: 17, ..NARROW };
const ROW: f64 = 25.0;
const GAP: f64 = 14.0;
const TOP: f64 = 22.0;

/// Every difference as a point with its interval on one axis, readable without script. Of many
/// variants only the metric that answers the question, and the others collapsed.
pub(crate) fn section(summary: &Summary, grouping: &Grouping) -> String {
    let finite = |comparison: &&Comparison| comparison.difference.value.is_finite();
    let drawn: Vec<&Comparison> = summary.comparisons.iter().filter(finite).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let from = escape(reference(&drawn).unwrap_or(EACH));
    let mut html = String::from("<section id=\"differences\">\n");
    let caption = |title: &str, text: &str| {
        format!(
            "<figure class=\"drawn\">\n<figcaption><h2>{title}</h2><p>{text}</p></figcaption>\n"
        )
    };
    let mut text = "Mean difference inside the rounds, with its 95\u{a0}% interval; the axis is logarithmic. Arrow: \
         the interval goes on. Hollow: not certain, or equal within the margin."
        .to_owned();
    let controls = controls(summary);
    if !controls.is_empty() {
        let _ = write!(text, " Control: {}.", escape(&controls));
    }
    let text = text.as_str();
    let metric = headline_metric(summary);
    let (first, others): (Vec<&Comparison>, Vec<&Comparison>) =
        drawn.iter().copied().partition(|comparison| comparison.metric == metric);
    if !are_many(summary) || first.is_empty() || others.is_empty() {
        html.push_str(&caption(&format!("Difference from {from}"), text));
        html.push_str(&pictures(summary, grouping, &drawn));
        html.push_str("</figure>\n");
    } else {
        let title = format!("Difference from {from}: {}", escape(label(metric)));
        html.push_str(&caption(&title, text));
        let reference = reference(&drawn);
        let longest = first
            .iter()
            .map(|comparison| name_of(comparison, reference).chars().count())
            .max()
            .unwrap_or(0);
        let fits = |layout: &Layout| longest <= layout.longest_name;
        let broad = if fits(&BROAD_NAMES) { &BROAD_NAMES } else { &BROAD_LONG_NAMES };
        let narrow = if fits(&NARROW_NAMES) { &NARROW_NAMES } else { &NARROW };
        html.push_str(&picture(summary, grouping, &first, reference, broad, true));
        html.push_str(&picture(summary, grouping, &first, reference, narrow, true));
        let _ = write!(
            html,
            "</figure>\n<details><summary>Every metric</summary>\n<figure class=\"drawn\">\n\
             <figcaption><h3>Difference from {from}</h3></figcaption>\n{}</figure>\n</details>\n",
            pictures(summary, grouping, &drawn)
        );
    }
    let _ = write!(
        html,
        "<details><summary>Every difference as a table</summary>\n{}</details>\n",
        table(summary, grouping, &summary.comparisons)
    );
    html.push_str("</section>\n");
    html
}

/// What the differences are from, where each variant is compared with another one.
const EACH: &str = "what each is compared with";

/// What all of these are compared with, if it is one variant.
fn reference<'a>(compared: &[&'a Comparison]) -> Option<&'a str> {
    let first = compared.first()?.against.as_str();
    compared.iter().all(|comparison| comparison.against == first).then_some(first)
}

/// A table for each part of the runs with its title; none of a part in which nothing is compared.
pub(super) fn titled_tables<'a>(
    summary: &Summary,
    grouping: &Grouping,
    parts: impl Iterator<Item = (String, &'a [Comparison])>,
) -> String {
    let tables = parts.filter(|(_, comparisons)| !comparisons.is_empty());
    tables
        .map(|(title, comparisons)| {
            format!("<h3>{}</h3>\n{}", escape(&title), table(summary, grouping, comparisons))
        })
        .collect()
}

fn table(summary: &Summary, grouping: &Grouping, comparisons: &[Comparison]) -> String {
    let reference = reference(&comparisons.iter().collect::<Vec<_>>());
    let difference = match reference {
        Some(name) => format!("difference from {name}"),
        None => "difference".to_owned(),
    };
    let header: String =
        ["variant", "metric", &difference, "95 % interval", "as time", "", "rounds"]
            .iter()
            .map(|heading| format!("<th scope=\"col\">{}</th>", escape(heading)))
            .collect();
    let mut html = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Differences\">\n\
         <table class=\"figures words\">\n<thead><tr>{header}</tr></thead>\n<tbody>\n"
    );
    for comparison in comparisons {
        let Comparison { variant, against, metric, difference, absolute, verdict, rounds, .. } =
            comparison;
        let place = summary.variants.iter().position(|known| known.name == *variant);
        let name = match reference {
            Some(_) => escape(variant),
            None => format!("{} <small>from {}</small>", escape(variant), escape(against)),
        };
        let interval = match difference.is_bounded() {
            true => signed_interval(difference),
            false => "too few runs".to_owned(),
        };
        let more = match verdict {
            Verdict::CannotTell { more_runs: Some(more) } => {
                format!("; about {more} more would do")
            }
            _ => String::new(),
        };
        let _ = write!(
            html,
            "<tr><th scope=\"row\"><i class=\"key {}\"></i>{name}</th>",
            grouping.class(place.unwrap_or(0))
        );
        for cell in [
            label(*metric).to_owned(),
            number::change(difference.value),
            interval,
            in_time(*metric, absolute.as_ref()).unwrap_or_else(|| NONE.to_owned()),
            words(verdict, difference),
            format!("{rounds}{more}"),
        ] {
            let _ = write!(html, "<td>{}</td>", escape(&cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
    html
}

/// What a difference means, in two or three words.
fn word(verdict: &Verdict, difference: &Estimate) -> String {
    match verdict {
        Verdict::Costs => "worse".to_owned(),
        Verdict::Gains => "better".to_owned(),
        Verdict::EqualWithin { margin } => format!("equal within {}", number::size(*margin)),
        Verdict::CannotTell { .. } => match unseen(difference) {
            Some(most) if most >= cell::HARDLY_MEASURED => "hardly measured".to_owned(),
            Some(_) => "not seen".to_owned(),
            None => "not certain".to_owned(),
        },
        Verdict::Control => "control".to_owned(),
    }
}

/// A verdict with its figures.
fn words(verdict: &Verdict, difference: &Estimate) -> String {
    let word = word(verdict, difference);
    match (verdict, unseen(difference)) {
        (Verdict::CannotTell { .. }, Some(most)) if most < cell::HARDLY_MEASURED => {
            format!("{word}; more than {} is unlikely", number::largest(most))
        }
        _ => word,
    }
}

fn pictures(summary: &Summary, grouping: &Grouping, drawn: &[&Comparison]) -> String {
    let reference = reference(drawn);
    let fits = |comparison: &&Comparison| {
        name_of(comparison, reference).chars().count() <= BROAD.longest_name
    };
    let broad = if drawn.iter().all(fits) { &BROAD } else { &BROAD_LINES };
    picture(summary, grouping, drawn, reference, broad, false)
        + &picture(summary, grouping, drawn, reference, &NARROW, false)
}

/// The name of a variant, with what it is compared with unless all are compared with one `reference`.
fn name_of(comparison: &Comparison, reference: Option<&str>) -> String {
    match reference {
        Some(_) => comparison.variant.clone(),
        None => format!("{} from {}", comparison.variant, comparison.against),
    }
}

/// The picture in one layout. Where all are of one metric its name is left away, and that of the
/// variant is in its place unless it has a line of its own.
fn picture(
    summary: &Summary,
    grouping: &Grouping,
    drawn: &[&Comparison],
    reference: Option<&str>,
    layout: &Layout,
    is_one: bool,
) -> String {
    let axis = Axis::of(drawn, layout);
    let mut rows = String::new();
    let mut y = TOP;
    let mut before = None;
    let gap = if is_one { GAP / 4.0 } else { GAP };
    for comparison in drawn {
        let compared = (&comparison.variant, &comparison.against);
        let first = before != Some(compared);
        before = Some(compared);
        let name = shortened(&name_of(comparison, reference), layout.longest_name);
        let has_line = !is_one || layout.name_line > 0.0;
        if first {
            y += gap + layout.name_line;
            let at = y - layout.name_line + ROW / 2.0;
            if has_line {
                push_text(&mut rows, "name", 0.0, at, "start", &name);
            }
        }
        let (x, anchor) = layout.metric;
        let middle = y + ROW / 2.0;
        match (is_one, has_line) {
            (false, _) => {
                push_text(&mut rows, "metric", x, middle, anchor, label(comparison.metric));
            }
            (true, false) => push_text(&mut rows, "name", x, middle, anchor, &name),
            (true, true) => {}
        }
        let place = summary.variants.iter().position(|known| known.name == comparison.variant);
        let class = grouping.class(place.unwrap_or(0));
        push_difference(&mut rows, &class, comparison, middle, &axis);
        y += ROW;
    }
    format!(
        "<svg class=\"picture differences {}\" viewBox=\"0 0 {} {y}\" role=\"img\" \
         aria-label=\"Differences with their intervals; the table below has the same \
         figures\">\n{}{rows}</svg>\n",
        layout.class,
        layout.width,
        axis.lines(&shortened(reference.unwrap_or("0 %"), BROAD.longest_name), y)
    )
}

/// A logarithmic axis of ratios: half and double are equally far from the reference.
struct Axis<'a> {
    layout: &'a Layout,
    /// The binary logarithm of the ratio at its left end.
    low: f64,
    /// The binary logarithm of the ratio at its right end.
    high: f64,
}

impl<'a> Axis<'a> {
    /// An axis on which the reference and all differences have their place, as far as they are within a
    /// factor of [`MAX_COUNT`]; of intervals what is within a factor of [`BEYOND`] of any difference.
    fn of(drawn: &[&Comparison], layout: &'a Layout) -> Self {
        let most = MAX_COUNT.log2();
        let values = || {
            drawn.iter().map(|comparison| ratio_log(comparison.difference.value).clamp(-most, most))
        };
        let (least, largest) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
        let (least, largest) = (least - BEYOND.log2(), largest + BEYOND.log2());
        let bounded = || drawn.iter().filter(|comparison| comparison.difference.is_bounded());
        let low = bounded()
            .map(|comparison| ratio_log(comparison.difference.low))
            .fold(-0.08, f64::min)
            .max(least);
        let high =
            bounded().map(|comparison| ratio_log(comparison.difference.high)).fold(0.08, f64::max);
        let high = high.min(largest);
        let (low, high) =
            (low.min(values().fold(0.0, f64::min)), high.max(values().fold(0.0, f64::max)));
        let room = (high - low) * 0.05;
        Self { layout, low: low - room, high: high + room }
    }

    fn place(&self, difference: f64) -> Place {
        let (left, right) = self.layout.axis;
        let x = self.x(difference);
        Place { x: x.clamp(left, right), is_beyond: !(left - 0.5..=right + 0.5).contains(&x) }
    }

    fn x(&self, difference: f64) -> f64 {
        let share = (ratio_log(difference) - self.low) / (self.high - self.low);
        let (left, right) = self.layout.axis;
        left + share * (right - left)
    }

    /// The line of no difference, and lines with their labels to read the others by.
    fn lines(&self, zero_label: &str, height: f64) -> String {
        // From fine to coarse; the first that leaves room between the labels is taken.
        const CHOICES: [&[f64]; 7] = [
            &[-0.1, -0.05, 0.05, 0.1],
            &[-0.5, -0.3, -0.2, -0.1, 0.1, 0.2, 0.3, 0.5],
            &[-0.75, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0],
            &[-0.75, -0.5, -0.3, 0.5, 1.0, 2.0],
            &[-0.9, -0.5, 1.0, 4.0, 9.0],
            &[-0.9, 3.0, 29.0],
            &[-0.99, -0.9, 9.0, 99.0],
        ];
        let inside = |marks: &[f64]| -> Vec<f64> {
            let fits = |mark: &&f64| (self.low..=self.high).contains(&ratio_log(**mark));
            marks.iter().filter(fits).copied().collect()
        };
        let mut choices = CHOICES.iter().map(|marks| inside(marks));
        let marks = choices.find(|marks| self.has_room(marks, zero_label)).unwrap_or_default();
        let mut html = String::new();
        for mark in marks {
            // Multiples are whole numbers here, and short.
            let label = match mark {
                multiple if multiple >= number::TIMES_FROM => format!("{:.0} x", 1.0 + multiple),
                percent => number::change(percent),
            };
            push_line(&mut html, "mark", self.x(mark), height, &label);
        }
        push_line(&mut html, "zero", self.x(0.0), height, zero_label);
        html
    }

    /// Whether the labels of these lines and that of the line of no difference do not touch.
    fn has_room(&self, marks: &[f64], zero_label: &str) -> bool {
        const LEAST_GAP: f64 = 52.0;
        // Of a letter, about.
        const WIDTH: f64 = 7.5;
        let zero = self.x(0.0);
        let mut places: Vec<f64> = marks.iter().map(|&mark| self.x(mark)).chain([zero]).collect();
        places.sort_by(f64::total_cmp);
        // The name of the reference is longer than the other labels.
        let beside = (LEAST_GAP + WIDTH * zero_label.chars().count() as f64) / 2.0;
        places.windows(2).all(|pair| {
            let least = if pair.contains(&zero) { beside.max(LEAST_GAP) } else { LEAST_GAP };
            pair[1] - pair[0] >= least
        })
    }
}

fn push_line(html: &mut String, class: &str, x: f64, height: f64, label: &str) {
    let _ = writeln!(
        html,
        "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{height}\"/>\
         <text class=\"end\" x=\"{x:.1}\" y=\"14\" text-anchor=\"middle\">{}</text>",
        escape(label)
    );
}

/// Where a difference is drawn.
struct Place {
    x: f64,
    /// The axis ends before it.
    is_beyond: bool,
}

impl Place {
    /// The end of an interval: a bar, or an arrow if it goes on. `inward` points to the other end.
    fn cap(&self, y: f64, inward: f64) -> String {
        let (x, inner) = (self.x, self.x + inward);
        match self.is_beyond {
            true => format!("M{inner:.1} {:.1}L{x:.1} {y:.1}L{inner:.1} {:.1}", y - 5.0, y + 5.0),
            false => format!("M{x:.1} {:.1}v10", y - 5.0),
        }
    }
}

/// The binary logarithm of the ratio to the reference; cut where nobody tells ratios apart.
fn ratio_log(difference: f64) -> f64 {
    (1.0 + difference).clamp(1e-6, 1e6).log2()
}

/// One difference at height `y`: interval, point, figure and word. What the axis does not reach ends
/// in an arrow.
fn push_difference(
    html: &mut String,
    class: &str,
    comparison: &Comparison,
    y: f64,
    axis: &Axis<'_>,
) {
    let Comparison { difference, verdict, .. } = comparison;
    let hollow = match verdict {
        Verdict::Costs | Verdict::Gains => "",
        Verdict::EqualWithin { .. } | Verdict::CannotTell { .. } | Verdict::Control => " hollow",
    };
    let layout = axis.layout;
    let _ =
        write!(html, "<g class=\"{class}{hollow}\"><title>{}</title>", escape(&told(comparison)));
    // Too few runs have no interval: the point stands alone.
    if difference.is_bounded() {
        let (low, high) = (axis.place(difference.low), axis.place(difference.high));
        let _ = write!(
            html,
            "<path d=\"M{:.1} {y:.1}H{:.1}{}{}\"/>",
            low.x,
            high.x,
            low.cap(y, 6.0),
            high.cap(y, -6.0)
        );
    }
    // A difference beyond the axis is told by its figure.
    let Place { x, is_beyond } = axis.place(difference.value);
    if !is_beyond {
        let _ = write!(html, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>");
    }
    html.push_str("</g>");
    push_text(html, "figure", layout.figure, y, "end", &number::change(difference.value));
    if let Some(x) = layout.word {
        push_text(html, "metric", x, y, "start", &word(verdict, difference));
    }
    html.push('\n');
}

fn told(comparison: &Comparison) -> String {
    let Comparison { variant, against, metric, difference, absolute, .. } = comparison;
    let interval = match difference.is_bounded() {
        true => format!("95 % interval {}", signed_interval(difference)),
        false => "too few runs for an interval".to_owned(),
    };
    let time =
        in_time(*metric, absolute.as_ref()).map(|text| format!("; {text}")).unwrap_or_default();
    let change = number::change(difference.value);
    format!("{variant} against {against}, {}: {change}, {interval}{time}", label(*metric))
}

#[cfg(test)]
mod tests {
    use dnslab_record::Metric;

    use super::*;

    fn comparison(value: f64, low: f64, high: f64) -> Comparison {
        Comparison {
            variant: "dot".to_owned(),
            against: "udp".to_owned(),
            absolute: None,
            rounds: 3,
            floor: 0.0,
            metric: Metric::LatencyP99,
            difference: Estimate { value, low, high },
            verdict: Verdict::CannotTell { more_runs: None },
        }
    }

    fn drawn(value: f64, low: f64, high: f64) -> String {
        let (this, other) = (comparison(value, low, high), comparison(0.0, -0.1, 0.1));
        let axis = Axis::of(&[&this, &other], &BROAD);
        let mut html = String::new();
        push_difference(&mut html, "v1", &this, 100.0, &axis);
        html
    }

    /// The left and the right end of what is drawn in the axis' own direction.
    fn ends(html: &str) -> (f64, f64) {
        let path = html.split("d=\"M").nth(1).unwrap();
        let (low, rest) = path.split_once(' ').unwrap();
        let high = rest.split_once('H').unwrap().1.split_once('M').unwrap().0;
        (low.parse().unwrap(), high.parse().unwrap())
    }

    #[test]
    fn an_interval_that_leaves_the_axis_ends_in_an_arrow() {
        // The answer that was told to an operator: "-100 % to 131408 times".
        let html = drawn(0.5, -0.9999, 131_407.0);
        let (left, right) = BROAD.axis;
        assert_eq!(ends(&html), (left, right));
        assert_eq!(html.matches('L').count(), 4, "an arrow at each end: {html}");
        assert!(html.contains("<circle"), "{html}");
        // No text is where the axis is.
        for text in html.split("<text ").skip(1) {
            let x: f64 =
                text.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
            assert!(x > right, "{text}");
        }
    }

    #[test]
    fn an_interval_on_the_axis_has_caps() {
        let html = drawn(0.5, 0.4, 0.6);
        let (low, high) = ends(&html);
        assert!(low > BROAD.axis.0 && high < BROAD.axis.1 && low < high);
        assert_eq!((html.matches('L').count(), html.matches("v10").count()), (0, 2), "{html}");
    }

    #[test]
    fn what_has_no_interval_is_a_point_and_what_is_far_away_an_arrow() {
        let html = drawn(0.2, f64::NEG_INFINITY, f64::INFINITY);
        assert!(!html.contains("<path") && html.contains("<circle"), "{html}");
        assert!(html.contains("too few runs"), "{html}");
        let html = drawn(9_999.0, 9_000.0, 11_000.0);
        assert!(!html.contains("<circle") && html.contains("10000 x"), "{html}");
    }
}
