//! What is read of captures: `count_queries FILE...` prints a line for each of them: queries, name of the file, and what
//! was left out.

use std::fs::File;

use dnslab_capture::{CaptureError, CaptureOptions, CaptureReader};

fn main() {
    for path in std::env::args().skip(1) {
        match count(&path) {
            Ok((queries, left_out)) => println!("{queries}\t{path}\t{left_out}"),
            Err(error) => println!("0\t{path}\t{error}"),
        }
    }
}

fn count(path: &str) -> Result<(u64, String), CaptureError> {
    let file = File::open(path).map_err(|source| CaptureError::Read { packets: 0, source })?;
    // As a replay reads it.
    let options = CaptureOptions { skips_repeats: true, ..CaptureOptions::default() };
    let mut reader = CaptureReader::new(file, options)?;
    let end = loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    let counts = reader.counts();
    let left_out = counts.left_out().into_iter().map(|(reason, count)| format!("{count} {reason}"));
    let segments = (counts.segments > 0).then(|| format!("{} further segments", counts.segments));
    let parts: Vec<String> = left_out.chain(segments).chain(end).collect();
    Ok((counts.queries, parts.join("; ")))
}
