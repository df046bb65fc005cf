//! The `dnslab` command: it reads arguments, calls the crates below, prints, and gives an exit code.
//!
//! Each subcommand is a function in the module of its name, called by `act`. The binary decides these things itself:
//!
//! - which experiment a command line describes (`load`, `replay`, `capacity`), from options that are keys;
//! - which exit code follows from runs, limits and compared answers (`exit`, `gate`);
//! - where results are, whether they stay (`kept`), and where a recording goes (`record`);
//! - what is shown while a load runs (`live`), and who else watches (`monitoring`).
//!
//! Modules, in the order of reading:
//!
//! - `arguments`, with the options of the keys, and answers to options of dnsperf.
//! - `run`: from plan to report, which `load`, `replay` and `capacity` share. `session`: what they have in common with
//!   other commands. `first_screen`: what is printed then.
//! - `exit`, `gate`, `output`, `terminal`, `signals`, `limits`: the process and its terminal.
//! - `live`: `form` decides between view, bar, lines and nothing. `view` is what is known, as values: fed with events
//!   and the time, and bounded by `series`. `bottleneck` has the rules of `dnslab_analysis` applied to what is known so
//!   far. `draw` makes a frame. `screen` has the thread that draws when no other has work for its CPU, and the one that
//!   hears `keys`. `held` takes the terminal, and gives it back whatever happens.
//! - `plan`, `report`, `export`, `compare`, `history`, `import`, `record`, `profile`, `make`, `serve`, `doctor`, `lab`,
//!   `monitoring_stack`, `dashboard`, `agent`, `man`: the other subcommands.
//! - `manual`, `remedies`: tests that follow each command of the documents, and each remedy that dnslab prints.
//!
//! What always holds:
//!
//! - Invariant: no figure of a report is computed here, and no difference is judged.
//! - Invariant: what commands print goes through `output`, which keeps its failures and makes text of others harmless.
//! - Invariant: whoever watches a load never waits for a terminal.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

/// Prints a line on the standard output ([`output::line`]).
macro_rules! say {
    () => { say!("") };
    ($($argument:tt)*) => { $crate::output::line(&format!($($argument)*)) };
}

/// Prints a line on the standard error ([`output::line_beside`]).
macro_rules! tell {
    ($($argument:tt)*) => { $crate::output::line_beside(&format!($($argument)*)) };
}

mod agent;
mod arguments;
mod capacity;
mod compare;
mod dashboard;
mod doctor;
mod exit;
mod export;
mod first_screen;
mod gate;
mod history;
mod import;
mod kept;
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
mod output;
mod plan;
mod pool;
mod profile;
mod record;
#[cfg(test)]
mod remedies;
mod replay;
mod report;
mod run;
mod serve;
mod session;
mod sessions;
mod signals;
mod terminal;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::process::ExitCode;

use arguments::Command;
use exit::{Exit, Failure};

fn main() -> ExitCode {
    signals::outlive_large_files();
    // The guard is another process, with private arguments.
    let words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "guard") {
        return dnslab_lab::guard::main(&words[2..]);
    }
    let words = arguments::with_json_forms(words);
    let command = match arguments::parse(&words) {
        Ok(arguments) => arguments.command.unwrap_or_default(),
        Err(refused) => return usage(&refused, &words),
    };
    limits::raise_open_files();
    let done = act(command);
    // A thread that ends late may still hold one.
    dnslab_lab::pods::remove_all();
    conclude(done)
}

/// Says why a command failed. What it printed may be lost: then it has failed, too.
fn conclude(done: Result<Exit, Failure>) -> ExitCode {
    let done = done.and_then(|exit| match output::lost() {
        None => Ok(exit),
        Some(error) => {
            Err(anyhow::Error::new(error).context("cannot write to the standard output").into())
        }
    });
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            terminal::error(&failure.error);
            failure.exit.into()
        }
    }
}

/// Prints help, the version, or what is wrong with the arguments.
fn usage(refused: &clap::Error, words: &[OsString]) -> ExitCode {
    if !refused.use_stderr() {
        output::write(|output| write!(output, "{}", refused.render().ansi()));
        return conclude(Ok(Exit::Fine));
    }
    match arguments::dnsperf::answer(words) {
        Some(answer) => tell!("{}", answer.trim_end()),
        None => {
            refused.print().ok();
        }
    }
    Exit::BadInput.into()
}

/// Whether a command sends load, or answers it.
fn waits_for_sockets(command: &Command) -> bool {
    matches!(
        command,
        Command::Run(_)
            | Command::Load(_)
            | Command::Replay(_)
            | Command::Capacity(_)
            | Command::Serve(_)
    )
}

fn act(command: Command) -> Result<Exit, Failure> {
    if waits_for_sockets(&command) {
        dnslab_socket::check_kernel().map_err(anyhow::Error::from)?;
    }
    match command {
        Command::Run(arguments) => run::run(&arguments),
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
        Command::Pool(arguments) => pool::pool(&arguments),
        Command::History(arguments) => history::history(&arguments),
        Command::Import(arguments) => import::import(arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Agent(arguments) => agent::agent(&arguments),
        Command::Lab(arguments) => lab::lab(&arguments),
        Command::Monitor(arguments) => monitoring_stack::monitor(&arguments),
        Command::Dashboard(arguments) => dashboard::dashboard(&arguments),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut arguments::program(), "dnslab", &mut text);
            output::write_plain(|output| output.write_all(&text));
            Ok(Exit::Fine)
        }
        Command::Man { folder } => man::man(&folder),
    }
}
