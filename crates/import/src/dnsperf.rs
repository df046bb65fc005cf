//! What dnsperf prints: a head, perhaps intervals (`-S`), and the statistics.
//!
//! Read are the forms of dnsperf 2.0 to 2.14: intervals as a line with a time and a rate, or, with
//! `verbose-interval-stats`, as statistics of their own; `latency-histogram`; connections that are counted by
//! reconnections (to 2.13) or by attempts. Lines between these (warnings, each query with `-v`) are skipped.

use dnslab_figures::LatencyBucket;
use dnslab_record::{ImportedConnections, ImportedLatency};
use dnslab_wire::rcode;

use super::options::{seconds_ns, without_secrets};
use super::statistics::{ForeignInterval, ForeignRun, ForeignStatistics};
use super::{DnsperfOptions, ImportError};

/// Length of an interval of which nothing is known, nanoseconds.
const USUAL_INTERVAL_NS: u64 = 1_000_000_000;

/// The runs in a text.
///
/// # Errors
/// As [`super::read`].
pub(super) fn read(text: &str) -> Result<Vec<ForeignRun>, ImportError> {
    let mut reader = Reader::default();
    for (place, line) in text.lines().enumerate() {
        reader.line = place + 1;
        reader.take(line.trim_end())?;
    }
    // A cut inside of a number is not seen otherwise.
    if !reader.runs.is_empty() && !text.ends_with('\n') {
        return Err(ImportError::NoLineBreak { line: reader.line });
    }
    reader.end_run()?;
    Ok(reader.runs.into_iter().map(|run| run.run).collect())
}

/// Where a line stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    Interval,
    Totals,
    Connections,
    /// What is not read.
    Further,
}

#[derive(Default)]
struct Reader {
    line: usize,
    part: Part,
    /// The last one may not be at its end.
    runs: Vec<Open>,
}

/// A run that is being read.
#[derive(Default)]
struct Open {
    run: ForeignRun,
    /// A time and a rate, for each line of an interval: nanoseconds since 1970, queries per second.
    rates: Vec<(u64, f64)>,
    block: Option<Block>,
    has_totals: bool,
    is_ended: bool,
}

/// Statistics that are being read.
struct Block {
    line: usize,
    counted: ForeignStatistics,
    /// Which of [`REQUIRED`] came.
    came: [bool; REQUIRED.len()],
    has_stddev: bool,
    /// Answers a second, as printed.
    qps: f64,
}

/// What all statistics have, in this order.
const REQUIRED: [&str; 7] = [
    "Queries sent",
    "Queries completed",
    "Queries lost",
    "Response codes",
    "Run time (s)",
    "Queries per second",
    "Average Latency (s)",
];

impl Reader {
    fn take(&mut self, line: &str) -> Result<(), ImportError> {
        if line == "DNS Performance Testing Tool" {
            self.end_run()?;
            self.begin();
        } else if line == "DNS Resolution Performance Testing Tool" {
            return Err(ImportError::OtherTool { line: self.line, tool: "resperf" });
        } else if let Some(version) = line.strip_prefix("Version ").filter(|_| self.is_in_head()) {
            version.trim().clone_into(&mut self.open().version);
        } else if let Some(status) = line.strip_prefix("[Status] ") {
            self.status(status)?;
        } else if self.runs.is_empty() {
            // Whatever was printed before.
        } else if line == "Interval Statistics:" {
            self.begin_block(Part::Interval)?;
        } else if line == "Statistics:" {
            self.begin_block(Part::Totals)?;
        } else if line == "Connection Statistics:" {
            self.end_block()?;
            self.part = Part::Connections;
        } else if line.ends_with("statistics:") {
            self.end_block()?;
            self.part = Part::Further;
        } else if let Some(rate) = self.rate(line) {
            self.end_block()?;
            let rates = &mut self.last().rates;
            rates.push(rate);
            super::check_intervals(rates.len())?;
        } else if let Some(figure) = line.strip_prefix("  ") {
            match self.part {
                Part::Interval | Part::Totals => self.figure(figure)?,
                Part::Connections => self.connections(figure)?,
                Part::Head | Part::Further => {}
            }
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.part = Part::Head;
        let run = ForeignRun {
            line: self.line,
            generator: "dnsperf".to_owned(),
            ..ForeignRun::default()
        };
        self.runs.push(Open { run, ..Open::default() });
    }

    /// The run that is being read.
    fn last(&mut self) -> &mut Open {
        if self.runs.is_empty() {
            self.begin();
        }
        self.runs.last_mut().expect("one was begun")
    }

    fn open(&mut self) -> &mut ForeignRun {
        &mut self.last().run
    }

    /// True before the first line of the status of the run.
    fn is_in_head(&self) -> bool {
        self.runs.last().is_some_and(|last| last.run.command.is_empty() && !last.has_totals)
    }

    fn status(&mut self, status: &str) -> Result<(), ImportError> {
        if let Some(command) = status.strip_prefix("Command line: ") {
            // A run without its title: somebody cut it off.
            if !self.is_in_head() {
                self.end_run()?;
                self.begin();
            }
            let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            if words.first().is_some_and(|word| word.rsplit('/').next() == Some("resperf")) {
                return Err(ImportError::OtherTool { line: self.line, tool: "resperf" });
            }
            let run = self.open();
            run.command = without_secrets(&words);
            run.options = DnsperfOptions::read(run.command.get(1..).unwrap_or_default());
        } else if let Some(sending) = status.strip_prefix("Sending ") {
            let target = sending.split_once("(to ").map(|(_, target)| target.trim_end_matches(')'));
            target.unwrap_or_default().clone_into(&mut self.open().target);
        } else if let Some(at) = status.strip_prefix("Started at: ") {
            self.open().started_local = local_time(at).unwrap_or_default();
        } else if let Some(complete) = status.strip_prefix("Testing complete (") {
            self.end_block()?;
            self.part = Part::Head;
            let last = self.last();
            complete.trim_end_matches(')').clone_into(&mut last.run.ended);
            last.is_ended = true;
        }
        Ok(())
    }

    /// The line of an interval: `1795570587.008517: 5000.434430`.
    fn rate(&self, line: &str) -> Option<(u64, f64)> {
        let (time, qps) = line.split_once(": ")?;
        let is_one = self.runs.last().is_some_and(|last| !last.is_ended && !last.has_totals);
        let qps: f64 = qps.trim().parse().ok().filter(|qps: &f64| (0.0..1e12).contains(qps))?;
        is_one.then_some((seconds_ns(time)?, qps))
    }

    fn begin_block(&mut self, part: Part) -> Result<(), ImportError> {
        self.end_block()?;
        self.part = part;
        let line = self.line;
        let counted = ForeignStatistics::default();
        let came = [false; REQUIRED.len()];
        self.last().block = Some(Block { line, counted, came, has_stddev: false, qps: 0.0 });
        Ok(())
    }

    fn figure(&mut self, text: &str) -> Result<(), ImportError> {
        let line = self.line;
        let Some(block) = self.last().block.as_mut() else { return Ok(()) };
        if is_bucket(text) {
            let key = "Latency bucket (s)";
            let unread = || ImportError::Value { line, key, found: text.to_owned() };
            block.counted.buckets.push(bucket(text).ok_or_else(unread)?);
            return Ok(());
        }
        let Some((key, value)) = text.split_once(':') else { return Ok(()) };
        // Dynamic updates (`-u`) are counted as queries are.
        let key = key.trim().replace("Updates", "Queries");
        let value = value.trim();
        let place = REQUIRED.iter().position(|required| *required == key);
        let key = match place {
            Some(place) => REQUIRED[place],
            None => match key.as_str() {
                "Queries interrupted" => "Queries interrupted",
                "Unexpected IDs" => "Unexpected IDs",
                "Average packet size" => "Average packet size",
                "Latency StdDev (s)" => "Latency StdDev (s)",
                // Of a later dnsperf.
                _ => return Ok(()),
            },
        };
        let wrong = || ImportError::Value { line, key, found: value.to_owned() };
        let count = || leading_count(value).ok_or_else(wrong);
        let counted = &mut block.counted;
        match key {
            "Queries sent" => counted.sent = count()?,
            "Queries completed" => counted.completed = count()?,
            "Queries lost" => counted.lost = count()?,
            "Queries interrupted" => counted.interrupted = count()?,
            "Unexpected IDs" => counted.unexpected = Some(count()?),
            "Response codes" => {
                for code in value.split(", ").filter(|code| !code.is_empty()) {
                    let (name, number) = code.split_once(' ').ok_or_else(wrong)?;
                    let number = leading_count(number).ok_or_else(wrong)?;
                    counted.rcodes.insert(code_name(name), number);
                }
            }
            "Average packet size" => {
                let number = |part: &str, name: &str| -> Option<u64> {
                    part.trim().strip_prefix(name)?.trim().parse().ok()
                };
                let (request, response) = value.split_once(',').ok_or_else(wrong)?;
                let lengths = number(request, "request").zip(number(response, "response"));
                counted.mean_octets = Some(lengths.ok_or_else(wrong)?);
            }
            "Run time (s)" => counted.length_ns = seconds_ns(value).ok_or_else(wrong)?,
            "Queries per second" => {
                let qps = value.parse().ok().filter(|qps: &f64| qps.is_finite() && *qps >= 0.0);
                block.qps = qps.ok_or_else(wrong)?;
            }
            "Average Latency (s)" => counted.latency = Some(latency(value).ok_or_else(wrong)?),
            "Latency StdDev (s)" => {
                let stddev = seconds(value).ok_or_else(wrong)?;
                if let Some(latency) = &mut counted.latency {
                    latency.stddev_ns = stddev;
                }
                block.has_stddev = true;
            }
            _ => {}
        }
        if let Some(place) = place {
            block.came[place] = true;
        }
        Ok(())
    }

    fn connections(&mut self, text: &str) -> Result<(), ImportError> {
        let line = self.line;
        let Some((key, value)) = text.split_once(':') else { return Ok(()) };
        let value = value.trim();
        let last = self.last();
        // Those of intervals are in the sums at the end.
        if !last.has_totals {
            return Ok(());
        }
        let wrong = |key| ImportError::Value { line, key, found: value.to_owned() };
        let own = last.run.connections.get_or_insert_with(ImportedConnections::default);
        match key.trim() {
            "Reconnections" => {
                let count = leading_count(value).ok_or_else(|| wrong("Reconnections"))?;
                own.reconnected = Some(count);
            }
            "Connection attempts" => {
                let wrong = || wrong("Connection attempts");
                let (attempted, opened) = value.split_once('(').ok_or_else(wrong)?;
                own.attempted = Some(leading_count(attempted).ok_or_else(wrong)?);
                own.opened = Some(leading_count(opened).ok_or_else(wrong)?);
            }
            "Average Latency (s)" => {
                own.latency = Some(latency(value).ok_or_else(|| wrong("Average Latency (s)"))?);
            }
            "Latency StdDev (s)" => {
                let stddev = seconds(value).ok_or_else(|| wrong("Latency StdDev (s)"))?;
                if let Some(latency) = &mut own.latency {
                    latency.stddev_ns = stddev;
                }
            }
            // dnsperf 2.14 prints the histogram of the queries again, as that of the connections.
            _ => {}
        }
        Ok(())
    }

    /// Ends the statistics that are being read, if there are any.
    fn end_block(&mut self) -> Result<(), ImportError> {
        let part = self.part;
        let Some(last) = self.runs.last_mut() else { return Ok(()) };
        let Some(block) = last.block.take() else { return Ok(()) };
        let Block { line, mut counted, came, has_stddev, qps } = block;
        if let Some(missing) = came.iter().position(|came| !came) {
            return Err(ImportError::Cut { line, missing: REQUIRED[missing] });
        }
        // Both follow where there are two answers.
        let lacks_histogram = last.run.options.has_histogram && counted.buckets.is_empty();
        for (is_missing, missing) in
            [(!has_stddev, "Latency StdDev (s)"), (lacks_histogram, "Latency bucket (s)")]
        {
            if is_missing && counted.completed > 1 {
                return Err(ImportError::Cut { line, missing });
            }
        }
        if counted.completed == 0 {
            counted.latency = None;
        }
        match part {
            Part::Interval => {
                // The run time of an interval is that since the beginning of the run.
                let before = last.run.intervals.last();
                let at_ns = before.map_or(0, |interval| {
                    interval.at_ns.saturating_add(interval.counted.length_ns)
                });
                counted.length_ns = counted.length_ns.saturating_sub(at_ns);
                last.run.intervals.push(ForeignInterval { at_ns, counted });
                last.run.has_whole_intervals = true;
                super::check_intervals(last.run.intervals.len())?;
            }
            _ => {
                counted.check(line)?;
                counted.check_rate(line, qps)?;
                last.run.totals = counted;
                last.has_totals = true;
            }
        }
        Ok(())
    }

    fn end_run(&mut self) -> Result<(), ImportError> {
        self.end_block()?;
        self.part = Part::Head;
        let Some(last) = self.runs.last_mut() else { return Ok(()) };
        if !last.has_totals {
            return Err(ImportError::NoStatistics { line: last.run.line });
        }
        last.finish();
        Ok(())
    }
}

impl Open {
    /// Makes intervals of the lines with rates, and adds what came after the last of them.
    fn finish(&mut self) {
        let run = &mut self.run;
        if run.target.is_empty() {
            run.target = run.options.target();
        }
        let rates = std::mem::take(&mut self.rates);
        if let Some((first_ns, _)) = rates.first()
            && run.intervals.is_empty()
        {
            let step = rates.get(1).map(|(second_ns, _)| second_ns.saturating_sub(*first_ns));
            let length_ns = run.options.interval_ns.or(step).unwrap_or(USUAL_INTERVAL_NS);
            run.started_ns = Some(first_ns.saturating_sub(length_ns));
            let mut from_ns = first_ns.saturating_sub(length_ns);
            let start_ns = from_ns;
            let mut is_first_known = true;
            for (to_ns, qps) in &rates {
                let length_ns = to_ns.saturating_sub(from_ns);
                // A rate is the number of answers in that time, with six digits.
                let answers = qps * length_ns as f64 / 1e9;
                let is_first = from_ns == start_ns;
                let completed = match (is_first, answers) {
                    // dnsperf 2.10 divides the first number by the seconds since 1970. No interval has less than one
                    // answer, but more than none. Of one digit or none the rate would be a guess, and so would what
                    // is left for the time after the last interval.
                    (true, 0.0..0.5) if is_divided(&run.version, *qps) && *qps < TWO_DIGITS => {
                        is_first_known = false;
                        from_ns = from_ns.max(*to_ns);
                        continue;
                    }
                    (true, 0.0..0.5) => {
                        let all = (qps * *to_ns as f64 / 1e9).round() as u64;
                        let others = rates.iter().skip(1).zip(&rates);
                        let others = others.map(|((to, qps), (from, _))| {
                            (qps * to.saturating_sub(*from) as f64 / 1e9).round() as u64
                        });
                        // It has few digits.
                        let others = others.fold(0, u64::saturating_add);
                        all.min(run.totals.completed.saturating_sub(others))
                    }
                    (_, answers) => answers.round() as u64,
                };
                let counted =
                    ForeignStatistics { length_ns, completed, ..ForeignStatistics::default() };
                run.intervals.push(ForeignInterval { at_ns: from_ns - start_ns, counted });
                from_ns = from_ns.max(*to_ns);
            }
            if !is_first_known {
                return;
            }
        }
        run.add_rest();
    }
}

/// The least first rate of dnsperf 2.10 that has two digits: it prints six after the point.
const TWO_DIGITS: f64 = 9.5e-6;

/// Whether the first rate is one that was divided by the seconds since 1970. One of 0 may be no answer at all, in other
/// versions than 2.10.
fn is_divided(version: &str, qps: f64) -> bool {
    qps > 0.0 || version.starts_with("2.10")
}

impl ForeignRun {
    /// Adds the time after the last interval, for which dnsperf prints nothing, so that intervals add up to
    /// the whole.
    fn add_rest(&mut self) {
        let Some(last) = self.intervals.last() else { return };
        let at_ns = last.at_ns.saturating_add(last.counted.length_ns);
        let length_ns = self.totals.length_ns.saturating_sub(at_ns);
        let parts = || self.intervals.iter().map(|interval| &interval.counted);
        let rest = |count: fn(&ForeignStatistics) -> u64| {
            parts().map(count).fold(count(&self.totals), u64::saturating_sub)
        };
        let completed = rest(|counted| counted.completed);
        if length_ns == 0 && completed == 0 {
            return;
        }
        let mut counted =
            ForeignStatistics { length_ns, completed, ..ForeignStatistics::default() };
        if self.has_whole_intervals {
            (counted.sent, counted.lost) =
                (rest(|counted| counted.sent), rest(|counted| counted.lost));
            for (code, count) in &self.totals.rcodes {
                let counts = parts().filter_map(|part| part.rcodes.get(code)).copied();
                let rest = counts.fold(*count, u64::saturating_sub);
                if rest > 0 {
                    counted.rcodes.insert(code.clone(), rest);
                }
            }
        }
        self.intervals.push(ForeignInterval { at_ns, counted });
    }
}

/// The number at the beginning: `15000 (99.95%)`.
fn leading_count(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok().filter(|count| *count <= super::MAX_COUNT)
}

/// A code in the words of dnslab: dnsperf has numbers for those that it does not know, `rcode11`.
fn code_name(name: &str) -> String {
    match name.strip_prefix("rcode").and_then(|number| number.parse().ok()) {
        Some(number) => rcode::rcode_name(number).into_owned(),
        None => name.to_owned(),
    }
}

/// A latency with its bounds, where there are any: `0.000040 (min 0.000013, max 0.004303)`.
fn latency(text: &str) -> Option<ImportedLatency> {
    let (mean, bounds) = text.split_once('(').unwrap_or((text, ""));
    let mean_ns = seconds_ns(mean.trim())? as f64;
    if bounds.is_empty() {
        return Some(ImportedLatency { mean_ns, ..ImportedLatency::default() });
    }
    let (min, max) = bounds.trim().strip_suffix(')')?.split_once(',')?;
    let bound = |text: &str, name: &str| seconds_ns(text.trim().strip_prefix(name)?.trim());
    Some(ImportedLatency {
        mean_ns,
        min_ns: Some(bound(min, "min")?),
        max_ns: Some(bound(max, "max")?),
        stddev_ns: None,
    })
}

/// Seconds as nanoseconds, `None` inside for what is no number: the root of a negative rounding error.
fn seconds(text: &str) -> Option<Option<f64>> {
    let seconds: f64 = text.parse().ok()?;
    Some(Some(seconds * 1e9).filter(|ns| ns.is_finite() && *ns >= 0.0))
}

fn is_bucket(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit()) && text.contains(" - ")
}

/// A bucket of a histogram, `0.000064 - 0.000065:  24`. dnsperf counts whole microseconds, so the upper bound lasts to
/// the next one.
fn bucket(text: &str) -> Option<LatencyBucket> {
    let (from, rest) = text.split_once(" - ")?;
    let (to, count) = rest.split_once(':')?;
    let (from_ns, to_ns) = (seconds_ns(from)?, seconds_ns(to)?.checked_add(1_000)?);
    let count = leading_count(count)?;
    (from_ns < to_ns).then_some(LatencyBucket { from_ns, to_ns, count })
}

/// A time as ctime(3) has it, `Wed Nov 25 01:36:25 2026`, as `2026-11-25T01:36:25`.
fn local_time(text: &str) -> Option<String> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, month, day, time, year] = words.as_slice() else { return None };
    let month = MONTHS.iter().position(|known| known == month)? + 1;
    let (day, year): (u8, u16) = (day.parse().ok()?, year.parse().ok()?);
    let is_time =
        time.len() == 8 && time.bytes().all(|octet| octet.is_ascii_digit() || octet == b':');
    is_time.then(|| format!("{year:04}-{month:02}-{day:02}T{time}"))
}
