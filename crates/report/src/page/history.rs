//! The page of a metric over many sessions. It has no script.

use std::fmt::Write as _;

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{History, VariantHistory};

use super::group::COLOURS;
use super::html::{escape, wide_table};
use super::picture::push_text;
use super::shell::shell;
use crate::history::{LEGEND, answer, began, notes, point_text, servers, table};
use crate::screen::cell::figure;
use crate::table::Table;
use crate::words::metric::noun;
use crate::words::session_comparison::difference;

/// Size of a picture, and of what is around it.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 30.0;

/// The page of a history, in one file.
#[must_use]
pub fn history_page(history: &History) -> String {
    let noun = noun(history.metric);
    let mut body = format!(
        "<header><p><b>dnslab</b> <span>history</span></p></header>\n<main>\n\
         <section class=\"hero\">\n<p class=\"question\">How did {} change over {} sessions?</p>\n\
         <h1 class=\"long\">{}</h1>\n</section>\n",
        escape(noun),
        history.sessions.len(),
        escape(&answer(history))
    );
    let notes = notes(history);
    if !notes.is_empty() {
        body.push_str("<section>\n<h2>Changes</h2>\n<ul>\n");
        for note in notes {
            let _ = writeln!(body, "<li>{}</li>", escape(&note));
        }
        body.push_str("</ul>\n</section>\n");
    }
    for (nth, variant) in history.variants.iter().enumerate() {
        push_picture(&mut body, history, variant, nth % COLOURS);
    }
    let Table { header, rows, .. } = table(history);
    let sessions = wide_table("Sessions", "figures", &header, &rows);
    let _ = write!(body, "<section>\n<h2>Sessions</h2>\n{sessions}</section>\n");
    let _ = write!(body, "</main>\n<footer>{}</footer>\n", escape(LEGEND));
    shell(&format!("{noun} over time - dnslab"), "'none'", &body)
}

/// The sessions from left to right at equal distances: a point with its interval for each, a line for each
/// level, and a word where one begins. The axis begins where the intervals do.
fn push_picture(body: &mut String, history: &History, variant: &VariantHistory, slot: usize) {
    let ends = |Estimate { value, low, high }: Estimate| [value, low, high];
    let figures = variant.points.iter().flat_map(|point| ends(point.value));
    let figures = figures.filter(|figure| figure.is_finite());
    let (least, most) = figures
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    // A tenth of the middle at least, so that noise does not look like a change.
    let room = ((most - least) * 0.1).max((most + least) * 0.025);
    let (least, most) = ((least - room).max(0.0), most + room);
    let steps = history.sessions.len().saturating_sub(1).max(1) as f64;
    let scale = Scale { steps, least, most };
    let name = escape(&variant.variant);
    let _ = write!(
        body,
        "<section>\n<h2>{name}</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\">\n\
         <svg class=\"picture history\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{} of {name}, session by session\">\n",
        escape(noun(history.metric))
    );
    for share in [0.0, 0.5, 1.0] {
        let value = least + share * (most - least);
        // No more digits than the picture shows.
        let half = (most - least) / 10.0;
        let rounded = Estimate { value, low: value - half, high: value + half };
        let _ = write!(
            body,
            "<path class=\"mark\" d=\"M{LEFT} {y:.1}H{}\"/>",
            WIDTH - RIGHT,
            y = scale.y(value)
        );
        push_text(
            body,
            "end",
            LEFT - 8.0,
            scale.y(value),
            "end",
            &figure(history.metric, &rounded),
        );
    }
    push_levels(body, variant, &scale);
    let _ = writeln!(body, "<g class=\"v{slot}\">");
    for point in &variant.points {
        let session = &history.sessions[point.session];
        let (at, value) = (scale.x(point.session), &point.value);
        let text =
            format!("{}: {}, {}", began(session), point_text(history, point), servers(session));
        if value.is_bounded() {
            let (low, high) = (scale.y(value.low), scale.y(value.high));
            let _ = write!(body, "<path class=\"interval\" d=\"M{at:.1} {low:.1}V{high:.1}\"/>");
        }
        let _ = writeln!(
            body,
            "<circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}</title></circle>",
            scale.y(value.value),
            escape(&text)
        );
    }
    body.push_str("</g>\n");
    for (place, anchor) in [(0, "start"), (history.sessions.len() - 1, "end")] {
        let day: String = began(&history.sessions[place]).chars().take(10).collect();
        push_text(body, "end", scale.x(place), HEIGHT - BOTTOM + 18.0, anchor, &day);
        if history.sessions.len() == 1 {
            break;
        }
    }
    body.push_str("</svg>\n</div>\n</section>\n");
}

/// Where a picture has its sessions and its values.
struct Scale {
    /// From the first session to the last.
    steps: f64,
    least: f64,
    most: f64,
}

impl Scale {
    fn x(&self, session: usize) -> f64 {
        LEFT + 12.0 + session as f64 / self.steps * (WIDTH - LEFT - RIGHT - 24.0)
    }

    fn y(&self, value: f64) -> f64 {
        let &Self { least, most, .. } = self;
        let share = (value.clamp(least, most) - least) / (most - least).max(f64::MIN_POSITIVE);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }
}

fn push_levels(body: &mut String, variant: &VariantHistory, scale: &Scale) {
    let borders: Vec<usize> = std::iter::once(0)
        .chain(variant.changes.iter().map(|change| change.at))
        .chain([variant.points.len()])
        .collect();
    for ends in borders.windows(2) {
        let points = &variant.points[ends[0]..ends[1]];
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        // As the change between two levels is one of logarithms.
        let logarithms = points.iter().map(|point| point.value.value.max(f64::MIN_POSITIVE).ln());
        let mean = (logarithms.sum::<f64>() / points.len() as f64).exp();
        let _ = write!(
            body,
            "<path class=\"zero\" d=\"M{:.1} {:.1}H{:.1}\" stroke-width=\"2\"/>",
            scale.x(first.session) - 8.0,
            scale.y(mean),
            scale.x(last.session) + 8.0
        );
    }
    for change in &variant.changes {
        let [before, after] =
            [change.at - 1, change.at].map(|point| scale.x(variant.points[point].session));
        let at = (before + after) / 2.0;
        let _ = write!(
            body,
            "<path class=\"zero\" d=\"M{at:.1} {TOP}V{:.1}\" stroke-dasharray=\"3 3\"/>",
            HEIGHT - BOTTOM
        );
        push_text(body, "", at, TOP - 12.0, "middle", &difference(&change.difference));
    }
}
