//! A chart of lines over time, without a frame: each row and column is a figure that could not be shown otherwise.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::Widget as _;
use ratatui::widgets::canvas::{Canvas, Line as Segment, Points};

use super::paint::Paint;

/// Places on an axis with what is written there.
pub(super) type Ticks = Vec<(f64, String)>;

pub(super) struct Curve {
    /// Stands at its end; empty for a line that is dotted and has no name.
    pub(super) name: String,
    pub(super) colour: Color,
    /// In the order of x.
    pub(super) points: Vec<(f64, f64)>,
}

pub(super) struct Plot<'a> {
    pub(super) title: Line<'a>,
    pub(super) x: [f64; 2],
    pub(super) x_ticks: Ticks,
    pub(super) y: [f64; 2],
    pub(super) y_ticks: Ticks,
    pub(super) curves: Vec<Curve>,
    /// Where something begins on the x axis.
    pub(super) mark: Option<f64>,
}

/// The least that shows anything.
const MIN_WIDTH: u16 = 20;
const MIN_HEIGHT: u16 = 4;

/// Names of curves are cut to so many columns.
const MAX_NAME: usize = 12;

impl Plot<'_> {
    pub(super) fn render(self, area: Rect, buffer: &mut Buffer, paint: Paint) {
        if area.width < MIN_WIDTH || area.height < MIN_HEIGHT {
            return;
        }
        buffer.set_line(area.x, area.y, &self.title, area.width);
        let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) as u16;
        let left = width(&mut self.y_ticks.iter().map(|(_, text)| text.chars().count())) + 1;
        let name = |curve: &Curve| curve.name.chars().count().min(MAX_NAME);
        let right = width(&mut self.curves.iter().map(name));
        let right = if right > 0 { right + 1 } else { 0 };
        let inner = Rect {
            x: area.x + left,
            y: area.y + 1,
            width: area.width.saturating_sub(left + right),
            height: area.height - 2,
        };
        if inner.width < MIN_WIDTH / 2 {
            return;
        }
        self.draw_ticks(area, inner, buffer, paint);
        let canvas = Canvas::default().marker(Marker::Braille).x_bounds(self.x).y_bounds(self.y);
        let paint_curves = canvas.paint(|context| {
            for curve in &self.curves {
                if curve.name.is_empty() {
                    context.draw(&Points { coords: &curve.points, color: curve.colour });
                    continue;
                }
                for pair in curve.points.windows(2) {
                    let [(x1, y1), (x2, y2)] = [pair[0], pair[1]];
                    context.draw(&Segment { x1, y1, x2, y2, color: curve.colour });
                }
                if let [only] = curve.points[..] {
                    context.draw(&Points { coords: &[only], color: curve.colour });
                }
            }
        });
        paint_curves.render(inner, buffer);
        self.draw_names(inner, right, buffer);
    }

    /// The row of a height.
    fn row(&self, inner: Rect, y: f64) -> u16 {
        let [from, to] = self.y;
        let share = ((to - y) / (to - from)).clamp(0.0, 1.0);
        inner.y + dot(share, inner.height * DOTS.1) / DOTS.1
    }

    fn column(&self, inner: Rect, x: f64) -> u16 {
        let [from, to] = self.x;
        let share = ((x - from) / (to - from)).clamp(0.0, 1.0);
        inner.x + dot(share, inner.width * DOTS.0) / DOTS.0
    }

    fn draw_ticks(&self, area: Rect, inner: Rect, buffer: &mut Buffer, paint: Paint) {
        if let Some(at) = self.mark.filter(|at| *at > self.x[0] && *at < self.x[1]) {
            let column = self.column(inner, at);
            for row in inner.top()..inner.bottom() {
                buffer.set_string(column, row, "┊", paint.dim());
            }
        }
        // Of two on one row the higher one stays: it is drawn last.
        for (at, text) in &self.y_ticks {
            let row = self.row(inner, *at);
            let dots = "┈".repeat(inner.width.into());
            buffer.set_string(inner.x, row, dots, paint.dim());
            let free = usize::from(inner.x - area.x - 1);
            buffer.set_string(area.x, row, format!("{text:>free$}"), paint.dim());
        }
        let row = inner.bottom();
        let mut free_from = area.x;
        for (at, text) in &self.x_ticks {
            let length = text.chars().count() as u16;
            let column = self.column(inner, *at).saturating_sub(length / 2).max(free_from);
            if column + length <= area.right() {
                buffer.set_string(column, row, text, paint.dim());
                free_from = column + length + 1;
            }
        }
    }

    /// Each at the end of its curve, or on the next row that is free, in the order of the curves.
    fn draw_names(&self, inner: Rect, width: u16, buffer: &mut Buffer) {
        let end = |curve: &Curve| curve.points.last().map(|(_, y)| *y);
        let named = self.curves.iter().filter(|curve| !curve.name.is_empty());
        let mut named: Vec<_> = named.filter_map(|curve| Some((curve, end(curve)?))).collect();
        named.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        named.truncate(inner.height.into());
        let mut rows: Vec<u16> = Vec::new();
        for (_, y) in &named {
            let free_from = rows.last().map_or(inner.top(), |above| above + 1);
            rows.push(self.row(inner, *y).max(free_from));
        }
        let mut free_to = inner.bottom();
        for row in rows.iter_mut().rev() {
            *row = (*row).min(free_to - 1);
            free_to = *row;
        }
        let limit = usize::from(width.saturating_sub(1));
        for ((curve, _), row) in named.iter().zip(rows) {
            buffer.set_stringn(inner.right() + 1, row, &curve.name, limit, curve.colour);
        }
    }
}

/// Columns and rows of dots in a cell (Braille).
const DOTS: (u16, u16) = (2, 4);

/// The dot at a share of so many dots, as curves have it.
fn dot(share: f64, dots: u16) -> u16 {
    (share * f64::from(dots.saturating_sub(1))).round() as u16
}

/// Steps of one, two and five up to `highest`, at most `count` of them, with the text of each.
pub(super) fn linear_ticks(highest: f64, count: u16, text: impl Fn(f64) -> String) -> Ticks {
    let raw = (highest / f64::from(count.max(1))).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|unit| unit * power);
    let step = step.into_iter().find(|step| *step >= raw * 0.999).unwrap_or(10.0 * power);
    (0..=u32::from(count))
        .map(|place| f64::from(place) * step)
        .take_while(|at| *at <= highest * 1.001)
        .map(|at| (at, text(at)))
        .collect()
}

/// Seconds between the marks of a time axis.
const TIME_STEPS: [f64; 21] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0,
    3_600.0, 7_200.0, 14_400.0, 28_800.0, 86_400.0, 172_800.0,
];

/// Marks of a time axis from zero on, in seconds.
pub(super) fn time_ticks(length: f64, columns: u16) -> Ticks {
    let count = f64::from((columns / 10).clamp(2, 8));
    let step = TIME_STEPS.into_iter().find(|step| length / step <= count).unwrap_or(length / count);
    let marks = (0..).map(|place| f64::from(place) * step);
    marks.take_while(|at| *at <= length * 1.001).map(|at| (at, time(at))).collect()
}

fn time(seconds: f64) -> String {
    let whole = |number: f64, unit: &str| {
        let text = format!("{number:.1}");
        format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
    };
    match seconds {
        _ if seconds <= 0.0 => "0".to_owned(),
        _ if seconds < 60.0 => whole(seconds, "s"),
        _ if seconds < 3_600.0 => whole(seconds / 60.0, "min"),
        _ => whole(seconds / 3_600.0, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: Ticks) -> String {
        ticks.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn marks_are_round_numbers() {
        let count = |at: f64| at.to_string();
        assert_eq!(texts(linear_ticks(147_000.0, 3, count)), "0, 50000, 100000");
        assert_eq!(texts(linear_ticks(9.0, 5, count)), "0, 2, 4, 6, 8");
        assert_eq!(texts(time_ticks(10.0, 40)), "0, 5 s, 10 s");
        assert_eq!(texts(time_ticks(0.4, 40)), "0, 0.1 s, 0.2 s, 0.3 s, 0.4 s");
        assert_eq!(texts(time_ticks(150.0, 60)), "0, 30 s, 1 min, 1.5 min, 2 min, 2.5 min");
        assert_eq!(texts(time_ticks(86_400.0, 40)), "0, 8 h, 16 h, 24 h");
    }
}
