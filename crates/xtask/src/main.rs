//! What the workshop does beside building and testing: `cargo xtask versus`, the benchmark of the
//! load engine against its peers on this machine (`docs/BENCHMARKS.md` says what it measures), and
//! `cargo xtask truth`, experiments whose truth is known (`docs/TRUTH.md` says what they found).
//!
//! It uses dnslab as anybody would, through its command line, and starts everything else itself. No
//! other crate depends on this one.

mod arguments;
mod machine;
mod process;
mod sys;
mod truth;
mod versus;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Versus(options) => versus::versus(&options),
        Command::Truth(options) => truth::truth(&options).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
