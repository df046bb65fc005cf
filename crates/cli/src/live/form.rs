//! Which form of the live view a command has.

use std::io::{self, IsTerminal as _};

use anyhow::anyhow;
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

use crate::arguments::{Output, Watch};
use crate::exit::Failure;
use crate::output;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The whole terminal.
    Screen,
    /// One line at its end.
    Bar,
    /// A line for each second and each run.
    Lines,
    Nothing,
}

/// Columns and rows from which on the view is the default: below, charts say less than a line does.
const LEAST: (u16, u16) = (80, 24);

/// What is known of the terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings {
    /// Standard error goes to a terminal that can place text, and whose keys come to this process.
    has_screen: bool,
    /// Standard output goes to a terminal too, so nobody else writes on it.
    is_alone: bool,
    /// Columns and rows.
    size: (u16, u16),
}

impl Surroundings {
    pub(super) fn find() -> Self {
        let error = io::stderr();
        let is_terminal = error.is_terminal();
        let is_dumb = std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
        // A process in the background that changes the terminal is stopped.
        let is_foreground = tcgetpgrp(&error).is_ok_and(|group| group == getpgrp());
        let size = tcgetwinsize(&error).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        Self {
            has_screen: is_terminal && !is_dumb && is_foreground,
            is_alone: output::is_terminal(),
            size,
        }
    }
}

impl Form {
    /// # Errors
    /// When a view is asked for where none is possible.
    pub(super) fn choose(
        watch: Watch,
        output: Output,
        around: Surroundings,
    ) -> Result<Self, Failure> {
        if watch.live {
            return if around.has_screen {
                Ok(Self::Screen)
            } else {
                Err(Failure::bad_input(anyhow!(
                    "--live needs a terminal in the foreground, with TERM set to what it is\n  hint:    leave it out, or \
                     use --plain for a line each second"
                )))
            };
        }
        Ok(match around {
            _ if output.is_quiet() => Self::Nothing,
            _ if watch.plain => Self::Lines,
            Surroundings { has_screen: true, is_alone: true, size, .. }
                if size.0 >= LEAST.0 && size.1 >= LEAST.1 =>
            {
                Self::Screen
            }
            Surroundings { has_screen: true, .. } => Self::Bar,
            _ => Self::Lines,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::JsonForm;

    const TERMINAL: Surroundings =
        Surroundings { has_screen: true, is_alone: true, size: (80, 24) };
    const NONE: Surroundings = Surroundings { has_screen: false, is_alone: false, size: (0, 0) };

    fn form(options: &str, around: Surroundings) -> Option<Form> {
        let has = |option: &str| options.split(' ').any(|word| word == option);
        let watch = Watch { live: has("live"), plain: has("plain") };
        let json = has("json").then_some(JsonForm::Summary);
        let output = Output { quiet: has("quiet"), json, ..Output::default() };
        Form::choose(watch, output, around).ok()
    }

    #[test]
    fn the_terminal_decides_unless_an_option_does() {
        assert_eq!(form("", TERMINAL), Some(Form::Screen));
        assert_eq!(form("", Surroundings { size: (79, 24), ..TERMINAL }), Some(Form::Bar));
        assert_eq!(form("", Surroundings { size: (80, 23), ..TERMINAL }), Some(Form::Bar));
        // Its output goes to a file or through a pipe.
        assert_eq!(form("", Surroundings { is_alone: false, ..TERMINAL }), Some(Form::Bar));
        // TERM=dumb, or in the background.
        assert_eq!(form("", Surroundings { has_screen: false, ..TERMINAL }), Some(Form::Lines));
        assert_eq!(form("", NONE), Some(Form::Lines));
        assert_eq!(form("plain", TERMINAL), Some(Form::Lines));
        assert_eq!(form("live", Surroundings { size: (40, 10), ..TERMINAL }), Some(Form::Screen));
        assert_eq!(form("live", NONE), None);
        for option in ["quiet", "json", "json plain"] {
            assert_eq!(form(option, TERMINAL), Some(Form::Nothing), "{option}");
            assert_eq!(form(option, NONE), Some(Form::Nothing), "{option}");
        }
        assert_eq!(form("json live", TERMINAL), Some(Form::Screen));
    }
}
