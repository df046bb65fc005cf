//! Colours and emphasis. Nothing is told by a colour alone.

use ratatui::style::{Color, Modifier, Style};

/// How a terminal may be painted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    /// Without it there are bold and dim text only (`NO_COLOR`).
    pub(crate) has_colour: bool,
}

/// Colours of the loads that run together, of the sixteen that every terminal has and that its theme chooses.
const OF_LOADS: [Color; 6] =
    [Color::Cyan, Color::Yellow, Color::Magenta, Color::Green, Color::Blue, Color::Red];

/// Colours of the quantiles, and of what is above the last of them.
const OF_QUANTILES: [Color; 4] = [Color::Green, Color::Yellow, Color::Magenta, Color::Red];

impl Paint {
    fn colour(self, colour: Color) -> Color {
        if self.has_colour { colour } else { Color::Reset }
    }

    pub(super) fn of_load(self, place: usize) -> Color {
        self.colour(OF_LOADS[place % OF_LOADS.len()])
    }

    pub(super) fn of_quantile(self, place: usize) -> Color {
        self.colour(OF_QUANTILES[place % OF_QUANTILES.len()])
    }

    pub(super) fn bad(self) -> Style {
        Style::new().fg(self.colour(Color::Red)).add_modifier(Modifier::BOLD)
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}
