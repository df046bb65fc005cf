//! What the workshop does beside building and testing: `cargo xtask versus`, the benchmark of the
//! load engine against its peers on this machine. `docs/BENCHMARKS.md` says what it measures.
//!
//! It uses dnslab as anybody would, through its command line, and starts everything else itself. No
//! other crate depends on this one.

mod arguments;
mod sys;
mod versus;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    let Arguments { command: Command::Versus(options) } = Arguments::parse();
    match versus::versus(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
