//! Writes a synthetic results directory and its report, to look at the page without a measurement:
//! `cargo run -p dnslab-report --example sample -- FOLDER`, with `open` after it for the sample of an
//! open loop, `capacity` for that of a search for the highest rate, `window` for a sweep of windows,
//! `chain` for forwarders in front of an upstream, `logs` for logs of queries, `sweep` for resolvers under
//! rising loads. Prints the path of the page.

use std::path::PathBuf;

use dnslab_report::write_report;

#[path = "../tests/sample/mod.rs"]
mod sample;

/// Writes the sample into the folder of the first argument, which must not exist yet.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder: PathBuf = arguments.next().ok_or("name a folder to create")?.into();
    let results = match arguments.next() {
        Some(kind) if kind == "open" => sample::open::write(&folder, 2_000_000_000)?,
        Some(kind) if kind == "capacity" => sample::capacity::write_rate(&folder)?,
        Some(kind) if kind == "window" => sample::capacity::write_window(&folder)?,
        Some(kind) if kind == "chain" => sample::chain::write(&folder)?,
        Some(kind) if kind == "logs" => sample::chain::write_logs(&folder)?,
        Some(kind) if kind == "sweep" => {
            let session = sample::sweep::session(3);
            sample::sweep::write(&folder, &session, &sample::sweep::records(&session))?
        }
        _ => sample::write(&folder)?,
    };
    println!("{}", write_report(&results)?.page.display());
    Ok(())
}
