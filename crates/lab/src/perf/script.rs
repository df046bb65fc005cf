//! The text of `perf script --fields=pid,tid,time,ip,sym,dso --ns --show-lost-events`.
//!
//! A sample is a line of process and time, then a line for each frame, the innermost first, then an empty line. A line of
//! a frame begins with a tab.
//!
//! ```text
//!  4737/4737    583.057552839:
//!     ffffffff81b6ff6f tcp_sendmsg ([kernel.kallsyms])
//!         7f3a5c0d1234 EVP_EncryptUpdate (/usr/lib/x86_64-linux-gnu/libcrypto.so.3)
//!
//! ```
//!
//! Names come from files that servers have mapped, so they may hold anything. A line that is none of these is left
//! out.

use std::io::{self, BufRead};

/// Octets of a line that are read; the rest is dropped. A frame with a path and a generic name has some hundreds.
const MAX_LINE: usize = 4_096;

/// Frames of a sample that are read. The kernel records 127 by default (kernel.perf_event_max_stack).
const MAX_FRAMES: usize = 256;

/// One function on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// True if the address is one of the kernel.
    pub(super) is_kernel: bool,
    /// Empty if perf does not know it.
    pub(super) symbol: String,
    /// Name of the file without its folder; empty if perf does not know it.
    pub(super) library: String,
}

pub(super) enum Found<'a> {
    Sample {
        /// On the clock of the recording, nanoseconds.
        at_ns: u64,
        /// The innermost first.
        frames: &'a [Frame],
    },
    /// So many samples were lost.
    Lost(u64),
}

/// Tells everything that is found.
///
/// # Errors
/// When the text cannot be read.
pub(super) fn read(mut text: impl BufRead, found: &mut dyn FnMut(Found<'_>)) -> io::Result<()> {
    let mut line = Vec::new();
    let mut sample: Option<u64> = None;
    let mut frames: Vec<Frame> = Vec::new();
    loop {
        let is_over = !read_line(&mut text, &mut line)?;
        let written = String::from_utf8_lossy(&line);
        let written = written.as_ref();
        // A frame begins with a tab, which no other line does.
        if let Some(frame) = written.strip_prefix('\t').filter(|_| !is_over) {
            if let Some(frame) = frame_of(frame).filter(|_| frames.len() < MAX_FRAMES) {
                frames.push(frame);
            }
            continue;
        }
        if let Some(at_ns) = sample.take() {
            found(Found::Sample { at_ns, frames: &frames });
        }
        frames.clear();
        if is_over {
            return Ok(());
        }
        match lost(written) {
            Some(count) => found(Found::Lost(count)),
            None => sample = time_of(written),
        }
    }
}

/// Reads a line without its end, as far as [`MAX_LINE`]; false at the end of the text.
fn read_line(text: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut has_any = false;
    loop {
        let read = text.fill_buf()?;
        if read.is_empty() {
            return Ok(has_any);
        }
        has_any = true;
        let end = read.iter().position(|octet| *octet == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        let room = MAX_LINE.saturating_sub(line.len()).min(part.len());
        line.extend_from_slice(&part[..room]);
        let taken = end.map_or(read.len(), |end| end + 1);
        text.consume(taken);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// The time of a sample's first line: ` 4737/4737    583.057552839: `.
fn time_of(line: &str) -> Option<u64> {
    let (process, rest) = line.trim().split_once(char::is_whitespace)?;
    let (pid, thread) = process.split_once('/')?;
    // The idle task of a CPU has -1 here.
    pid.parse::<i64>().ok()?;
    thread.parse::<i64>().ok()?;
    let (seconds, fraction) = rest.trim().strip_suffix(':')?.split_once('.')?;
    let is_number = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    if fraction.len() != 9 || !is_number(fraction) || !is_number(seconds) {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction.parse().ok()?)
}

/// How many samples were lost: `PERF_RECORD_LOST lost 12`.
fn lost(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("PERF_RECORD_LOST")?;
    rest.split_whitespace().last()?.parse().ok()
}

/// A frame without its tab: address, symbol, file in parentheses.
fn frame_of(line: &str) -> Option<Frame> {
    let (address, rest) = line.trim_start().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim_end().strip_suffix(')')?;
    // Names may hold parentheses too, so the last ones count. A file that was replaced has two words.
    let rest = rest.strip_suffix(" (deleted)").unwrap_or(rest);
    let (symbol, file) = rest.rsplit_once(" (").or_else(|| Some(("", rest.strip_prefix('(')?)))?;
    let known = |text: &str| if text == "[unknown]" { String::new() } else { text.to_owned() };
    Some(Frame {
        // The upper half of the addresses is the kernel's, on all processors that dnslab runs on.
        is_kernel: address >> 63 == 1,
        symbol: known(symbol.trim()),
        library: known(file.rsplit('/').next().unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &[u8]) -> (Vec<(u64, Vec<Frame>)>, u64) {
        let (mut samples, mut count) = (Vec::new(), 0);
        read(text, &mut |found| match found {
            Found::Sample { at_ns, frames } => samples.push((at_ns, frames.to_vec())),
            Found::Lost(lost) => count += lost,
        })
        .unwrap();
        (samples, count)
    }

    fn frame(is_kernel: bool, symbol: &str, library: &str) -> Frame {
        Frame { is_kernel, symbol: symbol.to_owned(), library: library.to_owned() }
    }

    /// As perf 6.1 writes it.
    const TEXT: &str = " 4737/4738    583.057552839: \n\
        \tffffffff81b6ff6f tcp_sendmsg ([kernel.kallsyms])\n\
        \t    7f3a5c0d1234 [unknown] (/usr/lib/x86_64-linux-gnu/libc.so.6)\n\
        \t    55d0a0001234 <a::B<u8> as c::D>::e(int) (/opt/my server (deleted))\n\
        \n\
         4737/4738    583.059527260: \n\
        \n\
         4737/4738    583.06: PERF_RECORD_LOST lost 12\n\
           -1/-1      584.000000001: \n\
        \t               0 [unknown] ([unknown])\n";

    #[test]
    fn samples_are_read() {
        let (samples, lost) = all(TEXT.as_bytes());
        assert_eq!(lost, 12);
        let times: Vec<u64> = samples.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [583_057_552_839, 583_059_527_260, 584_000_000_001]);
        assert_eq!(
            samples[0].1,
            [
                frame(true, "tcp_sendmsg", "[kernel.kallsyms]"),
                frame(false, "", "libc.so.6"),
                frame(false, "<a::B<u8> as c::D>::e(int)", "my server"),
            ]
        );
        assert_eq!(samples[1].1, []);
        assert_eq!(samples[2].1, [frame(false, "", "")]);
    }

    #[test]
    fn what_is_no_sample_is_left_out() {
        for text in [
            "",
            "\n\n",
            "\tffffffff81b6ff6f tcp_sendmsg ([kernel.kallsyms])\n",
            "named 4737/4737 583.057552839: \n",
            " 1/1 583.0575528391: \n",
            " 1/1 99999999999999999999.000000000: \n",
            " 1/1 18446744073709551615.000000000: \n",
            " 1/1 -1.000000000: \n",
            " 1/x 1.000000000: \n",
        ] {
            assert_eq!(all(text.as_bytes()), (Vec::new(), 0), "{text:?}");
        }
        for line in ["zz f (l)", "1", "1 f", "1 f l)", ""] {
            assert_eq!(frame_of(line), None, "{line}");
        }
    }

    #[test]
    fn long_lines_and_deep_stacks_are_cut() {
        let name = "x".repeat(1_000_000);
        let frames = format!("\t1 {name} (lib)\n\t1 f (lib)\n");
        let text = format!(" 1/1 1.000000000: \n{}", frames.repeat(1_000));
        let (samples, _) = all(text.as_bytes());
        // What is cut has no file, so it is no frame.
        assert_eq!(samples[0].1.len(), MAX_FRAMES);
        assert!(samples[0].1.iter().all(|frame| frame.symbol == "f"));
    }

    proptest! {
        #[test]
        fn anything_may_come(octets in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            all(&octets);
        }

        /// Lines that are nearly right, in any order.
        #[test]
        fn pieces_may_come_in_any_order(order in proptest::collection::vec(0..10_usize, 0..60)) {
            let lines: Vec<&str> = TEXT.lines().collect();
            let text: String =
                order.iter().filter_map(|at| lines.get(*at)).map(|line| format!("{line}\n")).collect();
            let (samples, _) = all(text.as_bytes());
            let heads = order.iter().filter(|at| [0, 5, 8].contains(*at)).count();
            prop_assert_eq!(samples.len(), heads);
        }
    }
}
