//! Pages and tables from a results directory, and from nothing else.
//!
//! The principal function is [`write_report`]: it reads the session, the records of the runs and
//! the servers' files, and writes the page, the summary, CSV files and a Markdown table beside
//! them. The same directory always gives the same bytes: nothing here reads a clock or draws at
//! random.
//!
//! ```no_run
//! use dnslab_results::ResultsDirectory;
//! use dnslab_report::write_report;
//!
//! let results = ResultsDirectory::open("results/encryption".as_ref())?;
//! let paths = write_report(&results)?;
//! println!("{}", paths.page.display());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All words are here: those of the page, of the terminal, and of what records hold as figures (doubts,
//! bottlenecks, reasons), in `words`.
//!
//! The script and the style sheet of the page are made from `page/src` by `npm ci && npm run build`
//! in `page`, and committed in `page/dist`, so that building this crate needs no Node.js.
//!
//! This crate computes no statistics (that is `dnslab_analysis::Summary`), sends nothing over a
//! network, and its page never loads anything.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod answer;
mod beforehand;
mod capacity;
mod chain;
mod chart;
mod counts;
mod csv;
mod dns_metrics;
mod gate;
mod history;
mod imported;
mod intervals;
mod junit;
mod markdown;
mod memory;
mod needs;
pub mod number;
mod page;
mod screen;
mod server;
mod server_files;
mod session_comparison;
mod summary_json;
mod sweep;
mod table;
mod transport;
mod variants;
mod windows;
mod words;
mod write;

pub use answer::more_rounds;
pub use beforehand::beforehand;
pub use capacity::capacity_table;
pub use dns_metrics::dns_metrics;
pub use gate::{overall_text, ruling_texts};
pub use history::history_csv;
pub use junit::session_comparison_junit;
pub use page::history_page;
pub use screen::{
    Line, Look, Piece, capacity_screen, history_screen, screen, session_comparison_screen,
};
pub use session_comparison::{machine_texts, session_comparison_json, session_comparison_markdown};
pub use summary_json::summary_schema;
pub use table::{Table, mark, table};
pub use transport::transport_name;
pub use words::answers::{answers_texts, class_name};
pub use words::bottleneck::{bottleneck_name, bottleneck_text};
pub use words::capacity::{Answer, Part, capacity_answer, judged_text};
pub use words::invalid::invalid_text;
pub use write::{ReportError, ReportPaths, write_report};
