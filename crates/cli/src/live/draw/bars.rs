//! The histogram of the latencies, both axes logarithmic: one query in a million must show.

use dnslab_report::number;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::Line;

use super::paint::Paint;
use super::short::short;
use crate::live::series::LatencyCounts;

/// Parts of a cell, from the lowest.
const BLOCKS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// The least that shows anything.
const MIN_WIDTH: u16 = 20;
const MIN_HEIGHT: u16 = 4;

/// A column has this length of the axis at least, as a power of ten: the latencies are not told apart further.
const LEAST_STEP: f64 = 0.025;

pub(super) struct Bars<'a> {
    pub(super) title: Line<'a>,
    pub(super) counts: &'a LatencyCounts,
    /// Latencies up to which each colour goes, nanoseconds.
    pub(super) quantiles_ns: [Option<u64>; 3],
}

impl Bars<'_> {
    pub(super) fn render(&self, area: Rect, buffer: &mut Buffer, paint: Paint) {
        if area.width < MIN_WIDTH || area.height < MIN_HEIGHT {
            return;
        }
        buffer.set_line(area.x, area.y, &self.title, area.width);
        let Some((shortest, longest)) = self.counts.range_ns() else { return };
        const LABELS: u16 = 6;
        let inner = Rect {
            x: area.x + LABELS,
            y: area.y + 1,
            width: area.width - LABELS,
            height: area.height - 2,
        };
        let columns = f64::from(inner.width);
        let (from, to) = (shortest.log10(), longest.log10());
        let step = ((to - from) / columns).max(LEAST_STEP);
        let start = |column: u16| 10_f64.powf(from + f64::from(column) * step);
        let counts: Vec<f64> = (0..inner.width)
            .map(|column| self.counts.between_ns(start(column), start(column + 1)))
            .collect();
        let most = counts.iter().copied().fold(1.0, f64::max);
        let height = |count: f64| (count + 1.0).log10() / (most + 1.0).log10();
        for (column, count) in (0..).zip(&counts) {
            let eighths = (height(*count) * f64::from(inner.height) * 8.0).ceil() as u16;
            let x = inner.x + column;
            let colour = self.colour((start(column) * start(column + 1)).sqrt(), paint);
            for row in 0..inner.height {
                let filled = eighths.saturating_sub(row * 8).min(8);
                if filled > 0 && *count >= 0.5 {
                    let block = BLOCKS[usize::from(filled) - 1];
                    buffer.set_string(x, inner.bottom() - 1 - row, block, colour);
                }
            }
        }
        let label = |text: String| format!("{text:>5}");
        buffer.set_string(area.x, inner.y, label(short(most)), paint.dim());
        if inner.height > 2 {
            buffer.set_string(area.x, inner.bottom() - 1, label("1".to_owned()), paint.dim());
        }
        let mut free_from = inner.x;
        let to = from + columns * step;
        for place in decades_between(from, to) {
            let text = number::as_set(10_f64.powf(place).round() as u64);
            let length = text.chars().count() as u16;
            let at = inner.x + (((place - from) / step).round() as u16).min(inner.width - 1);
            let column = at.saturating_sub(length / 2).max(free_from);
            if column + length <= area.right() {
                buffer.set_string(column, inner.bottom(), &text, paint.dim());
                free_from = column + length + 1;
            }
        }
    }

    fn colour(&self, ns: f64, paint: Paint) -> Color {
        let is_below = |quantile: &Option<u64>| quantile.is_some_and(|at| ns <= at as f64);
        let place = self.quantiles_ns.iter().position(is_below);
        paint.of_quantile(place.unwrap_or(self.quantiles_ns.len()))
    }
}

/// Powers of ten, and where there are few of them, twice and five times those, as exponents.
pub(super) fn decades_between(from: f64, to: f64) -> Vec<f64> {
    let units: &[f64] = if to - from > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = from.floor() as i32..=to.ceil() as i32;
    let marks =
        powers.flat_map(|power| units.iter().map(move |unit| f64::from(power) + unit.log10()));
    marks.filter(|at| (from - 1e-9..=to + 1e-9).contains(at)).collect()
}
