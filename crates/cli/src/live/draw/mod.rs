//! Draws a frame: what matters to an operator first, then how it came to that.

mod bars;
mod paint;
mod panels;
mod plot;
mod short;
mod table;

use std::time::Duration;

use dnslab_record::LoadPart;
use dnslab_report::number;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _, Wrap};

pub(crate) use paint::Paint;

use bars::{Bars, decades_between};
use plot::{Curve, Plot, Ticks, linear_ticks, time_ticks};
use short::short;

use super::bottleneck::in_words;
use super::series::{Point, QUANTILE_NAMES};
use super::view::{LoadView, View};

/// How a frame is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Time since the session began.
    pub(crate) now: Duration,
    /// The view stands still, and the load does not.
    pub(crate) is_paused: bool,
    pub(crate) has_help: bool,
    /// Number of the load whose latencies are shown.
    pub(crate) selected: usize,
    /// The load has been told to end.
    pub(crate) is_leaving: bool,
    pub(crate) paint: Paint,
}

/// From this height on more ended runs are shown.
const TALL: u16 = 34;

/// Rows for charts from which on CPU use and memory have one.
const WITH_USE: u16 = 22;

/// Rows from which on outcomes and both sides have one where charts stand one below the other.
const WITH_OUTCOMES: u16 = 20;

/// Below this width charts stand one below the other.
const WIDE: u16 = 76;

/// Below this height there are no charts.
const MIN_CHARTS: u16 = 14;

pub(crate) fn draw(frame: &mut Frame<'_>, view: &View, look: &Look) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    if area.width == 0 || area.height == 0 {
        return;
    }
    let has_log = view.is_search || view.round.as_ref().is_some_and(|round| round.count != Some(1));
    let bottleneck = bottleneck(view, look);
    let bottleneck_lines =
        if area.height >= 20 { wrapped(&bottleneck, area.width).min(2) } else { 1 };
    let log = match (has_log, area.height) {
        (false, _) | (_, ..20) => 0,
        (true, 20..TALL) => 3,
        (true, _) => 6,
    };
    let rows = table::height(view);
    let [heading, progress, figures, limit, charts, ended, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(rows),
        Constraint::Length(bottleneck_lines),
        Constraint::Fill(1),
        Constraint::Length(log),
        Constraint::Length(1),
    ])
    .areas(area);
    panels::heading(view, look, heading.width).render(heading, buffer);
    panels::progress(view, look, progress.width).render(progress, buffer);
    table::render(view, look, figures, buffer);
    Paragraph::new(bottleneck).wrap(Wrap { trim: true }).render(limit, buffer);
    if area.height >= MIN_CHARTS {
        draw_charts(view, look, charts, buffer);
    }
    panels::ended(view, look, ended, buffer);
    panels::keys(view, look, keys.width).render(keys, buffer);
    if look.has_help {
        panels::help(area, buffer, look.paint);
    }
}

/// Rows that a line takes if it is wrapped between words.
fn wrapped(line: &Line<'_>, width: u16) -> u16 {
    (line.width() as u16).div_ceil(width.max(1)).max(1)
}

fn bottleneck<'a>(view: &'a View, look: &Look) -> Line<'a> {
    let Some(load) = selected(view, look) else { return Line::default() };
    let text = match &load.bottleneck {
        Some(bottleneck) => in_words(bottleneck),
        None if load.part == LoadPart::Common => {
            "not looked for at the common rate, at which latencies are compared".to_owned()
        }
        None => "too early to tell".to_owned(),
    };
    let whose = of_whom(view, load);
    Line::from(vec![
        Span::styled(format!("Bottleneck{whose} so far: "), look.paint.strong()),
        Span::raw(text),
    ])
}

fn selected<'a>(view: &'a View, look: &Look) -> Option<&'a LoadView> {
    view.loads.get(look.selected % view.loads.len().max(1))
}

fn draw_charts(view: &View, look: &Look, area: Rect, buffer: &mut Buffer) {
    let Some(load) = selected(view, look) else { return };
    let gap = |areas: [Rect; 2]| {
        let [left, right] = areas;
        (Rect { width: left.width.saturating_sub(2), ..left }, right)
    };
    if area.width < WIDE {
        let rest = if area.height >= WITH_OUTCOMES { 7 } else { 0 };
        let [above, middle, below] =
            Layout::vertical([Constraint::Fill(1), Constraint::Fill(1), Constraint::Length(rest)])
                .areas(area);
        rate(view, look, above.width).render(above, buffer, look.paint);
        latency(view, load, look, middle).render(middle, buffer, look.paint);
        draw_sums(load, look, below, buffer);
        return;
    }
    let third = if area.height >= WITH_USE { Constraint::Fill(3) } else { Constraint::Length(0) };
    let [above, middle, below] =
        Layout::vertical([Constraint::Fill(5), third, Constraint::Fill(4)]).areas(area);
    let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]);
    let (left, right) = gap(halves.areas(above));
    rate(view, look, left.width).render(left, buffer, look.paint);
    latency(view, load, look, right).render(right, buffer, look.paint);
    if middle.height > 0 {
        let (left, right) = gap(halves.areas(middle));
        cpu(load, look, left.width).render(left, buffer, look.paint);
        memory(load, look, right).render(right, buffer, look.paint);
    }
    let (left, right) = gap(halves.areas(below));
    let whose = of_whom(view, load);
    let bars = Bars {
        title: Line::from(vec![
            Span::styled(format!("Latency histogram{whose}"), look.paint.strong()),
            Span::styled(format!(", {}", part_of(load)), look.paint.dim()),
        ]),
        counts: &load.counts,
        quantiles_ns: load.so_far.as_ref().map_or([None; 3], |figures| figures.quantiles_ns),
    };
    bars.render(left, buffer, look.paint);
    draw_sums(load, look, right, buffer);
}

fn draw_sums(load: &LoadView, look: &Look, area: Rect, buffer: &mut Buffer) {
    let [outcomes, sides] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
    let outcomes = Rect { width: outcomes.width.saturating_sub(1), ..outcomes };
    panels::outcomes(load, look.paint, outcomes, buffer);
    panels::sides(load, look.paint, sides, buffer);
}

/// ` of tcp` where there are several.
fn of_whom(view: &View, load: &LoadView) -> String {
    if view.loads.len() > 1 { format!(" of {}", load.name) } else { String::new() }
}

/// Which part of the load the sums are of.
fn part_of(load: &LoadView) -> &'static str {
    if load.is_warm_up { "in the warm-up" } else { "so far" }
}

/// The time axis: the whole load, or if it is long, the time that has passed.
fn time_axis(load: &LoadView, now: Duration, columns: u16) -> ([f64; 2], Ticks) {
    const LONG: f64 = 60.0;
    let (at, all) = load.progress(now);
    let (at, all) = (at.as_secs_f64(), all.as_secs_f64().max(0.1));
    // It grows by a quarter, so that it does not move with each frame.
    let mut length = LONG;
    while length < at {
        length *= 1.25;
    }
    let length = if all > LONG { length.min(all) } else { all };
    ([0.0, length], time_ticks(length, columns))
}

fn mark(load: &LoadView) -> Option<f64> {
    (load.window_ns.start > 0).then(|| load.window_ns.start as f64 / 1e9)
}

fn curve(name: &str, colour: ratatui::style::Color, points: Vec<(f64, f64)>) -> Curve {
    Curve { name: name.to_owned(), colour, points }
}

fn rate<'a>(view: &View, look: &Look, columns: u16) -> Plot<'a> {
    let first = &view.loads[look.selected % view.loads.len()];
    let (x, x_ticks) = time_axis(first, look.now, columns);
    let mut curves = Vec::new();
    for (place, load) in view.loads.iter().enumerate() {
        let answered = load.points.iter().map(|point| (point.at_seconds(), point.answered_qps()));
        let name = if view.loads.len() > 1 { &*load.name } else { "now" };
        if load.is_paced && place == look.selected % view.loads.len() {
            let due = load.points.iter().map(|point| (point.at_seconds(), point.due_qps()));
            curves.push(curve("", ratatui::style::Color::Reset, due.collect()));
        }
        curves.push(curve(name, look.paint.of_load(place), answered.collect()));
    }
    if view.loads.len() == 1 {
        for curve in &mut curves {
            if let (false, Some((_, last))) = (curve.name.is_empty(), curve.points.last()) {
                curve.name = short(*last);
            }
        }
    }
    let values = curves.iter().flat_map(|curve| curve.points.iter().map(|(_, y)| *y));
    let highest = values.fold(1.0, f64::max) * 1.05;
    let paced = if first.is_paced { " (dotted: due)" } else { "" };
    Plot {
        title: Line::from(vec![
            Span::styled("Answered queries/s", look.paint.strong()),
            Span::styled(paced, look.paint.dim()),
        ]),
        x,
        x_ticks,
        y: [0.0, highest],
        y_ticks: linear_ticks(highest, 3, short),
        curves,
        mark: mark(first),
    }
}

fn latency<'a>(view: &View, load: &LoadView, look: &Look, area: Rect) -> Plot<'a> {
    let (x, x_ticks) = time_axis(load, look.now, area.width);
    let at = |point: &Point, place: usize| {
        let ns = point.quantiles_ns[place]?.max(1);
        Some((point.at_seconds(), (ns as f64).log10()))
    };
    let curves = [2, 1, 0].map(|place| {
        let points = load.points.iter().filter_map(|point| at(point, place)).collect();
        curve(QUANTILE_NAMES[place], look.paint.of_quantile(place), points)
    });
    let values = || curves.iter().flat_map(|curve| curve.points.iter().map(|(_, y)| *y));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let (low, high) = if low > high { (4.0, 6.0) } else { (low, high) };
    let (low, high) = (low - 0.1, (high + 0.1).max(low + 0.8));
    let text = |at: f64| number::as_set(10_f64.powf(at).round() as u64);
    let ticks = decades_between(low, high).into_iter().map(|at| (at, text(at)));
    let whole = |at: f64| (at - at.round()).abs() < 1e-9;
    // Where rows are few, powers of ten alone.
    let is_tall = area.height >= 9;
    let ticks: Ticks = ticks.filter(|(at, _)| is_tall || whole(*at)).collect();
    let ticks = if ticks.is_empty() {
        decades_between(low, high).into_iter().map(|at| (at, text(at))).collect()
    } else {
        ticks
    };
    let whose = of_whom(view, load);
    Plot {
        title: Line::from(vec![
            Span::styled(format!("Latency{whose}"), look.paint.strong()),
            Span::styled(", logarithmic", look.paint.dim()),
        ]),
        x,
        x_ticks,
        y: [low, high],
        y_ticks: ticks,
        curves: curves.into(),
        mark: mark(load),
    }
}

fn cpu<'a>(load: &LoadView, look: &Look, columns: u16) -> Plot<'a> {
    let (x, x_ticks) = time_axis(load, look.now, columns);
    let points = |value: fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
        load.points.iter().filter_map(|point| Some((point.at_seconds(), value(point)?))).collect()
    };
    let server = points(|point| point.server_cpu.value());
    let generator = points(Point::load_cpu);
    Plot {
        title: Line::from(vec![
            Span::styled("CPU use", look.paint.strong()),
            Span::styled(", as a share of the CPUs of each", look.paint.dim()),
        ]),
        x,
        x_ticks,
        y: [0.0, 1.0],
        y_ticks: linear_ticks(1.0, 2, |at| number::percent(at, 0)),
        curves: vec![
            curve("generator", look.paint.of_load(1), generator),
            curve("server", look.paint.of_load(0), server),
        ],
        mark: mark(load),
    }
}

fn memory<'a>(load: &LoadView, look: &Look, area: Rect) -> Plot<'a> {
    let (x, x_ticks) = time_axis(load, look.now, area.width);
    let at = |point: &Point| Some((point.at_seconds(), point.memory_octets? as f64));
    let points: Vec<(f64, f64)> = load.points.iter().filter_map(at).collect();
    let highest = points.iter().map(|(_, y)| *y).fold(1.0, f64::max) * 1.2;
    let mut y_ticks = vec![(0.0, "0".to_owned())];
    if !points.is_empty() {
        y_ticks.push((highest / 1.2, number::octets((highest / 1.2) as u64)));
    }
    Plot {
        title: Line::styled("Memory of the server", look.paint.strong()),
        x,
        x_ticks,
        y: [0.0, highest],
        y_ticks,
        curves: vec![curve("server", look.paint.of_load(0), points)],
        mark: mark(load),
    }
}

#[cfg(test)]
mod tests;
