//! Work on dnslab itself besides building and testing:
//!
//! - `cargo xtask versus`: benchmarks of the load engine against its peers (`evidence/BENCHMARKS.md`),
//! - `cargo xtask truth`: experiments whose truth is known (`evidence/TRUTH.md`),
//! - `cargo xtask matrix`: every server over every transport (`evidence/MATRIX.md`),
//! - `cargo xtask attack`: kills, full disks and oversized input (`evidence/ATTACKS.md`),
//! - `cargo xtask dist`: a static binary, and packages of it,
//! - `cargo xtask site`: the documents as pages for a browser.
//!
//! It uses dnslab through its command line, and starts everything else itself. No other crate depends on this
//! one.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod arguments;
mod attack;
mod dist;
mod machine;
mod matrix;
mod process;
mod site;
mod sys;
mod truth;
mod versus;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser as _;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Versus(options) => versus::versus(&options),
        Command::Matrix(options) => matrix::matrix(&options),
        Command::Attack(options) => attack::attack(&options),
        Command::Dist(options) => dist::dist(&options),
        Command::Site(options) => site::site(&options),
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
