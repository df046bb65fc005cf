//! The `dnslab` command: reads arguments, calls, maps errors to exit codes.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

/// Prints a line. A reader that goes away (`dnslab run | head`) is no reason to lose an experiment. Text of
/// others in the line cannot control the terminal.
macro_rules! say {
    () => { say!("") };
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($argument)*);
        writeln!(std::io::stdout(), "{}", dnslab_measure::visible_lines(&text)).ok();
    }};
}

mod arguments;
mod capacity;
mod compare;
mod doctor;
mod exit;
mod export;
mod first_screen;
mod gate;
mod history;
mod import;
mod lab;
mod limits;
mod live;
mod load;
mod make;
mod man;
#[cfg(test)]
mod manual;
mod monitoring;
mod monitoring_stack;
mod plan;
mod profile;
mod record;
mod replay;
mod report;
mod run;
mod serve;
mod signals;
mod terminal;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use arguments::{Arguments, Command};
use exit::{Exit, Failure};

fn main() -> ExitCode {
    // The guard is another process, with private arguments.
    let words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "guard") {
        return dnslab_lab::guard::main(&words[2..]);
    }
    let words = arguments::with_json_forms(words);
    let command = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments.command.unwrap_or_default(),
        Err(refused) => return usage(&refused, &words),
    };
    limits::raise_open_files();
    match act(command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            terminal::error(&failure.error);
            failure.exit.into()
        }
    }
}

/// Prints help, the version, or what is wrong with the arguments. In a gate these must not look like a verdict.
fn usage(refused: &clap::Error, words: &[OsString]) -> ExitCode {
    refused.print().ok();
    let is_against = |word: &OsString| word.to_string_lossy().starts_with("--against");
    let is_gate =
        words.get(1).is_some_and(|word| word == "compare") || words.iter().any(is_against);
    match refused.use_stderr() {
        false => Exit::Fine.into(),
        true if is_gate => Exit::NoVerdict.into(),
        true => Exit::BadInput.into(),
    }
}

fn act(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Plan(arguments) => plan::plan(&arguments),
        Command::Load(arguments) => load::load(arguments),
        Command::Replay(arguments) => replay::replay(&arguments),
        Command::Capacity(arguments) => capacity::capacity(arguments),
        Command::Serve(arguments) => serve::serve(*arguments),
        Command::Record(arguments) => record::record(&arguments),
        Command::Profile(arguments) => profile::profile(&arguments),
        Command::Make(arguments) => make::make(arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::History(arguments) => history::history(&arguments),
        Command::Import(arguments) => import::import(arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Lab(arguments) => lab::lab(&arguments),
        Command::Monitor(arguments) => monitoring_stack::monitor(&arguments),
        Command::Completions { shell } => {
            let output = &mut std::io::stdout();
            clap_complete::generate(shell, &mut Arguments::command(), "dnslab", output);
            Ok(Exit::Fine)
        }
        Command::Man { folder } => man::man(&folder),
    }
}
