//! Pages and tables from a results directory, and from nothing else.
//!
//! The principal function is [`write_report`]: it reads the session, the records of the runs and
//! the servers' files, and writes the page, the summary, CSV files and a Markdown table beside
//! them. The same directory always gives the same bytes: nothing here reads a clock or draws at
//! random.
//!
//! ```no_run
//! use dnslab_measure::ResultsDirectory;
//! use dnslab_report::write_report;
//!
//! let results = ResultsDirectory::open("results/encryption".as_ref())?;
//! let paths = write_report(&results)?;
//! println!("{}", paths.page.display());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`answer`], [`sentences`] and [`table`] are the words and figures of the page for the terminal.
//!
//! The script and the style sheet of the page are made from `page/src` by `npm ci && npm run build`
//! in `page`, and committed in `page/dist`, so that building this crate needs no Node.js.
//!
//! This crate computes no statistics (that is `dnslab_measure::Summary`), sends nothing over a
//! network, and its page never loads anything.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod answer;
mod beforehand;
mod capacity;
mod chain;
mod chart;
mod counts;
mod csv;
mod doubt;
mod gate;
mod intervals;
mod markdown;
mod page;
mod screen;
mod server;
mod server_files;
mod table;
mod transport;
mod variants;
mod write;

pub use answer::more_rounds;
pub use beforehand::beforehand;
pub use capacity::{Answer, Part, capacity_answer, capacity_table, judged_text};
pub use dnslab_measure::number;
pub use doubt::{caveat_text, limit_name, limit_text, variant_caveat_text};
pub use gate::{gate_text, ruling_text};
pub use screen::{Line, Look, Piece, capacity_screen, screen};
pub use table::{Table, mark, table};
pub use transport::transport_name;
pub use write::{ReportError, ReportPaths, write_report};
