//! Pages and tables from a results directory, and from nothing else.
//!
//! The principal function is [`write_report`]. It writes the page, the summary, CSV files and a Markdown table.
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
//! Modules, in the order of reading:
//!
//! - `write`: what is written. `answer`, `needs`: the sentences that answer the question.
//! - `screen`: the first screen, of which the terminal prints the lines and `table.md` has the parts (`markdown`).
//! - `table`, `variants`, `chain`, `windows`, `shares`, `sweep`, `scaling`, `counts`, `memory`, `published`: tables and their
//!   parts. [`number`]: digits.
//! - `words`: the words for what records hold as figures, one exhaustive match for each enum.
//! - `page`: the HTML. `chart`: what its script draws. Scripts and style sheet are made of `page/src`, in `page`
//!   (`npm ci`, then `npm run build`), and committed in `page/dist`, so that the build needs no Node.js.
//! - `page::dashboard`: the page that draws the dashboards of `grafana`.
//! - `csv`, `summary_json`, `dns_metrics`, `junit`: files for programs.
//! - `capacity`, `session_comparison`, `history`, `pooled`, `gate`, `imported`: what further commands show.
//!
//! What always holds:
//!
//! - Invariant: the same directory gives the same bytes. Nothing here reads a clock or draws at random.
//! - Invariant: no statistics are computed here. `dnslab_analysis` has them.
//! - Invariant: it opens no file but through `dnslab_results`, and a page of results never loads anything. That
//!   of the dashboards asks one Prometheus.
//! - Invariant: all words about results are here: those of the page, of the terminal, and of each doubt and reason.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod answer;
mod beforehand;
mod capacity;
mod chain;
mod chart;
mod counts;
mod csv;
mod dns_metrics;
mod events;
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
mod pods;
mod pooled;
mod published;
mod scaling;
mod screen;
mod searches;
mod server;
mod server_files;
mod session_comparison;
mod shares;
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
pub use markdown::session_comparison_markdown;
pub use page::{dashboard_page, history_page, pooled_page};
pub use pooled::pooled_json;
pub use screen::{
    Line, Look, Piece, Terminal, capacity_screen, history_screen, pooled_screen, screen,
    session_comparison_screen,
};
pub use session_comparison::{machine_texts, session_comparison_json};
pub use summary_json::summary_schema;
pub use table::{Table, mark, table};
pub use transport::transport_name;
pub use words::answers::{answers_texts, class_name};
pub use words::bottleneck::{bottleneck_name, bottleneck_text};
pub use words::capacity::{Answer, Part, capacity_answer, judged_text};
pub use words::invalid::invalid_text;
pub use write::{ReportError, ReportPaths, write_report};
