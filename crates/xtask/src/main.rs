//! What the workshop does beside building and testing: `cargo xtask versus`, the benchmark of the
//! load engine against its peers on this machine (`docs/BENCHMARKS.md` says what it measures),
//! `cargo xtask truth`, experiments whose truth is known (`docs/TRUTH.md` says what they found),
//! `cargo xtask matrix`, every server over every transport (`docs/MATRIX.md` has the table), and
//! `cargo xtask attack`, kills, full disks and what is too much (`docs/ATTACKS.md`).
//!
//! It uses dnslab as anybody would, through its command line, and starts everything else itself. No
//! other crate depends on this one.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod arguments;
mod attack;
mod machine;
mod matrix;
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
        Command::Matrix(options) => matrix::matrix(&options),
        Command::Attack(options) => attack::attack(&options),
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
