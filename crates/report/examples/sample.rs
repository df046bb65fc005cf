//! Writes a synthetic results directory and its report, to look at the page without a measurement:
//! `cargo run -p dnslab-report --example sample -- FOLDER`, with `open` after it for the sample of an
//! open loop, `capacity` for that of a search for the highest rate, `window` for a sweep of windows,
//! `chain` for forwarders in front of an upstream, `logs` for logs of queries, `sweep` for resolvers under
//! rising loads, `scaling` for a server with several numbers of threads, `import` for what dnsperf printed, `history` for nine sessions. Prints the path of the page.

use std::path::PathBuf;

use dnslab_analysis::{History, WholeSession};
use dnslab_import::{ImportFacts, ImportSource, read, results_of};
use dnslab_record::{Metric, RunRecord, Session};
use dnslab_report::{history_page, write_report};

#[path = "../tests/sample/mod.rs"]
mod sample;

/// Writes the sample into the folder of the first argument, which must not exist yet.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder: PathBuf = arguments.next().ok_or("name a folder to create")?.into();
    let results = match arguments.next() {
        Some(kind) if kind == "history" => {
            let page = folder.with_extension("html");
            std::fs::write(&page, history_page(&history()))?;
            println!("{}", page.display());
            return Ok(());
        }
        Some(kind) if kind == "import" => {
            let text = include_bytes!("../../import/tests/dnsperf/2.10-udp.txt");
            let source =
                |run| ImportSource { variant: "udp".to_owned(), file: "udp.txt".to_owned(), run };
            let sources = read(text)?.into_iter().map(source).collect();
            let (session, records) = results_of(ImportFacts::default(), sources);
            sample::sweep::write(&folder, &session, &records)?
        }
        Some(kind) if kind == "open" => sample::open::write(&folder, 2_000_000_000)?,
        Some(kind) if kind == "capacity" => sample::capacity::write_rate(&folder)?,
        Some(kind) if kind == "window" => sample::capacity::write_window(&folder)?,
        Some(kind) if kind == "chain" => sample::chain::write(&folder)?,
        Some(kind) if kind == "logs" => sample::chain::write_logs(&folder)?,
        Some(kind) if kind == "sweep" => {
            let session = sample::sweep::session(3);
            sample::sweep::write(&folder, &session, &sample::sweep::records(&session))?
        }
        Some(kind) if kind == "scaling" => {
            let session = sample::scaling::session(5);
            let records = sample::scaling::records(&session, &["threads-8"]);
            sample::sweep::write(&folder, &session, &records)?
        }
        _ => sample::write(&folder)?,
    };
    println!("{}", write_report(&results)?.page.display());
    Ok(())
}

/// The answered rate over nine days; from the sixth on it is lower.
fn history() -> History {
    let made: Vec<(Session, Vec<RunRecord>)> = (1..=9)
        .map(|day: u32| {
            let started = format!("2026-03-{day:02}T03:04:05Z");
            let session = Session { started, ..sample::session(3) };
            let mut records = Vec::new();
            for (position, case) in (0..).zip(&session.plan) {
                let behaviour = sample::Behaviour::of(case);
                let qps = behaviour.qps * if day < 6 { 1.0 } else { 0.9 };
                // Each day has noise of its own.
                let behaviour = sample::Behaviour { qps, ..*behaviour };
                let run =
                    sample::run(&behaviour, case.repetition, position + 100 * day, 1_000_000_000);
                records.push(RunRecord { position, ..run });
            }
            (session, records)
        })
        .collect();
    let sessions: Vec<WholeSession<'_>> = made
        .iter()
        .map(|(session, records)| WholeSession { session, records, experiment: EXPERIMENT })
        .collect();
    History::of(Metric::AnsweredQps, &sessions)
}

const EXPERIMENT: &str = "name = \"sample\"\n[[variant]]\nname = \"udp\"\n[[variant]]\nname = \"tcp\"\n\
    load.transport = \"tcp\"\n[[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n";
