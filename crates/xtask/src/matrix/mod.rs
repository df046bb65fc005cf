//! `cargo xtask matrix`: every server over every transport that it has, and foreign clients of `dnslab
//! serve`. It compares the counts of both sides: sent, answered, and counted by the server itself.

mod clients;
mod dnsproxy;
mod room;
mod servers;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::arguments::MatrixOptions;
use crate::machine;
use crate::process::{Stop, publish, scratch};
use crate::versus::dnslab::Dnslab;
use room::{Room, Window};
use servers::subjects;
use table::Row;

const PAGE: &str = "MATRIX.md";

/// One query for each client, as most clients have. Then a window within the nine streams that Knot DNS
/// answers over QUIC, its queue of ten connections, and the 150 queries that dnsmasq takes at once. Then so
/// many sockets at once that they test the buffer of a server's UDP socket.
const WINDOWS: [Window; 3] = [
    Window { clients: 100, outstanding: 1 },
    Window { clients: 10, outstanding: 9 },
    Window { clients: 200, outstanding: 2 },
];

/// Asks every server, and writes the table. Returns whether every cell is right: nothing lost, nothing wrong,
/// and equal counts on both sides.
///
/// # Errors
/// When dnslab cannot be run, or a file cannot be written.
pub(crate) fn matrix(options: &MatrixOptions) -> Result<bool> {
    let stop = Stop::listen()?;
    let scratch = scratch("matrix")?;
    let dnslab = Dnslab::find(options.dnslab.as_deref())?;
    // It is started from another folder.
    let whole = |path: &PathBuf| {
        path.canonicalize().with_context(|| format!("--dnsproxy: no program at {}", path.display()))
    };
    let dnsproxy = options.dnsproxy.as_ref().map(whole).transpose()?;
    let (duration, warm_up) = if options.smoke { (300, 500) } else { (1_000, 3_000) };
    let [duration, warm_up] = [duration, warm_up].map(Duration::from_millis);
    let room = Room { dnslab: &dnslab, folder: scratch.path(), duration, warm_up, stop: &stop };
    let is_asked =
        |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let windows = if options.smoke { &WINDOWS[1..2] } else { &WINDOWS[..] };
    let mut rows = Vec::new();
    let mut take = |found: Vec<Row>| {
        found.iter().for_each(|row| println!("{}", row.line()));
        rows.extend(found);
    };
    for window in windows {
        for subject in subjects().iter().filter(|subject| is_asked(&subject.name())) {
            stop.check()?;
            take(servers::ask(subject, *window, &room)?);
        }
        if let Some(program) = dnsproxy.as_deref().filter(|_| is_asked(dnsproxy::NAME)) {
            stop.check()?;
            take(dnsproxy::ask(program, *window, &room)?);
        }
        if is_asked(clients::NAME) {
            take(clients::ask(*window, &room)?);
        }
    }
    let is_right = rows.iter().all(Row::is_right);
    let page = table::page(&rows, &machine::section(&dnslab.version));
    if options.folder.is_none() {
        // Below the rows that were printed as they came.
        println!();
    }
    publish(&page, options.folder.as_deref(), PAGE)?;
    Ok(is_right)
}
