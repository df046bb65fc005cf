//! Writes a synthetic results directory and its report, to look at the page without a measurement:
//! `cargo run -p dnslab-report --example sample -- FOLDER`. Prints the path of the page.

use std::path::PathBuf;

use dnslab_report::write_report;

#[path = "../tests/sample/mod.rs"]
mod sample;

/// Writes the sample into the folder of the first argument, which must not exist yet.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder: PathBuf = std::env::args_os().nth(1).ok_or("name a folder to create")?.into();
    let results = sample::write(&folder)?;
    println!("{}", write_report(&results)?.page.display());
    Ok(())
}
