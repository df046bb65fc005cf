//! Durations, shares, numbers of octets, and plain numbers as text: one reader and one writer for each.
//!
//! A value is written in one of two ways. `write` is exact, for files and options, and `read` reads it back:
//! `1500us`, `0.1%`, `2GiB`. `rounded` is for people: `1.50 ms`, `0.1 %`, `2.00 GiB`.

pub mod duration;
pub mod number;
pub mod octets;
pub mod share;
mod time_units;

/// How the limit on open files of a process becomes at least `files`, as the end of a sentence.
#[must_use]
pub fn raised_file_limit(files: u64) -> String {
    format!(
        "raise the limit to {files}: `ulimit -n {files}` in the shell that starts it (as root beyond the hard limit), \
         `LimitNOFILE={files}` in its unit of systemd"
    )
}

/// How a process gets another thread or process when the system gives it none, as the end of a sentence.
#[must_use]
pub fn raised_thread_limit() -> &'static str {
    "end other processes of this user, or raise the limit on processes and threads: `ulimit -u` in the shell that starts \
     it, `TasksMax` in its unit of systemd, `pids.max` of its container"
}

/// The number before one of these units, which are tried in order, and the unit's length.
fn split<'a>(text: &'a str, units: &[(&str, u64)]) -> Option<(&'a str, u64)> {
    let text = text.trim();
    units.iter().find_map(|(unit, length)| Some((text.strip_suffix(unit)?.trim_end(), *length)))
}

/// A value in the largest of these units of which there is at least one, or in the first.
fn in_largest(value: f64, units: &[(&str, u64)]) -> String {
    let is_one = |(_, length): &&(&str, u64)| value >= *length as f64;
    let (unit, length) = units.iter().rev().find(is_one).unwrap_or(&units[0]);
    format!("{}{unit}", number::write(value / *length as f64))
}
