//! dns-metrics, the JSON that tools of DNS-OARC have in common, of which dnsperf is one:
//! <https://github.com/DNS-OARC/dns-metrics>.
//!
//! A file is a sequence of objects, one after the other or in an array: a header, periodic statistics, and the
//! sum at the end. Each names its run (`runid`); statistics of threads name that too (`subid`).

use std::collections::BTreeMap;

use dnslab_figures::LatencyBucket;
use dnslab_record::{ImportedConnections, ImportedLatency};
use serde_json::{Map, Value};

use super::options::without_secrets;
use super::statistics::{ForeignInterval, ForeignRun, ForeignStatistics};
use super::{DnsperfOptions, ImportError};

/// Nanoseconds, in which the schema has times; headers may name another unit.
const PER_SECOND: u64 = 1_000_000_000;

/// The runs in a file, in the order in which they begin.
///
/// # Errors
/// As [`super::read`].
pub(super) fn read(octets: &[u8]) -> Result<Vec<ForeignRun>, ImportError> {
    let mut runs = Runs::default();
    let mut values = serde_json::Deserializer::from_slice(octets).into_iter::<Value>();
    let (mut line, mut counted) = (1, 0);
    loop {
        let rest = octets.get(values.byte_offset()..).unwrap_or_default();
        let blank = rest.iter().take_while(|octet| octet.is_ascii_whitespace()).count();
        let begin = octets.len() - rest.len() + blank;
        line += octets[counted..begin].iter().filter(|octet| **octet == b'\n').count();
        counted = begin;
        match values.next() {
            None => break,
            Some(Ok(Value::Array(all))) => {
                all.into_iter().try_for_each(|value| runs.take(line, value))?;
            }
            Some(Ok(value)) => runs.take(line, value)?,
            Some(Err(error)) => {
                return Err(ImportError::Json { line: error.line(), what: json_fault(&error) });
            }
        }
    }
    runs.0.into_iter().map(|(_, open)| open.finish()).collect()
}

/// The runs that are being read, by their names.
#[derive(Default)]
struct Runs(Vec<(String, Open)>);

impl Runs {
    /// Takes what begins in `line`.
    fn take(&mut self, line: usize, value: Value) -> Result<(), ImportError> {
        let Value::Object(map) = value else {
            let what = "an object of dns-metrics is expected".to_owned();
            return Err(ImportError::Json { line, what });
        };
        let object = Object { line, map };
        let id = object.id("runid")?.ok_or(ImportError::Cut { line, missing: "runid" })?;
        let place = self.0.iter().position(|(known, _)| *known == id);
        let place = match place {
            Some(place) => place,
            None if self.0.len() == super::MAX_RUNS => {
                let (found, most) = (super::MAX_RUNS + 1, super::MAX_RUNS);
                return Err(ImportError::TooMany { what: "runs", found, most });
            }
            None => {
                let run = ForeignRun { line, ..ForeignRun::default() };
                self.0.push((id, Open { run, ..Open::default() }));
                self.0.len() - 1
            }
        };
        let open = &mut self.0[place].1;
        match object.map.get("type").and_then(Value::as_str).unwrap_or_default() {
            "header" => open.header(&object),
            "stats_sum" => open.sum(&object),
            "stats_periodic" => open.period(&object),
            // Events, and what single tools add.
            _ => Ok(()),
        }
    }
}

/// The words of the parser without the place, which is told apart.
fn json_fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) if error.is_eof() => format!("the file is cut: {what}"),
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}

#[derive(Default)]
struct Open {
    run: ForeignRun,
    per_second: u64,
    /// Periods have answers alone.
    lacks_queries: bool,
    sums: Vec<(u64, u64, usize, ForeignStatistics)>,
    /// By the thread that they are of.
    periods: BTreeMap<String, Vec<(u64, u64, ForeignStatistics)>>,
}

impl Open {
    fn header(&mut self, object: &Object) -> Result<(), ImportError> {
        let text =
            |key: &str| object.map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        self.run.generator = text("generator");
        self.run.version = text("generator_version");
        self.per_second = object.count("time_units_per_sec")?.unwrap_or(PER_SECOND);
        if self.per_second == 0 || self.per_second > PER_SECOND {
            return Err(object.wrong("time_units_per_sec"));
        }
        let words: Vec<String> = match object.map.get("generator_params") {
            Some(Value::Array(words)) => {
                words.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect()
            }
            _ => Vec::new(),
        };
        let words = without_secrets(&words);
        if !words.is_empty() {
            // Some have their own name as the first word, and dnsperf has not.
            let is_named = !words[0].starts_with('-');
            self.run.options = DnsperfOptions::read(&words[usize::from(is_named)..]);
            let name = (!is_named).then(|| self.run.generator.clone());
            self.run.command = name.into_iter().chain(words).collect();
        }
        Ok(())
    }

    fn sum(&mut self, object: &Object) -> Result<(), ImportError> {
        let (since, until, counted) = self.statistics(object)?;
        self.sums.push((since, until, object.line, counted));
        if let Some(Value::Object(map)) = object.map.get("conn_info") {
            let info = Object { line: object.line, map: map.clone() };
            if let Some(opened) = info.count("handshakes")? {
                let failed = info.count("handshakes_failed")?.unwrap_or(0);
                let own = self.run.connections.get_or_insert_with(ImportedConnections::default);
                let add = |sum: &mut Option<u64>, more: u64| {
                    *sum = Some(sum.unwrap_or(0).saturating_add(more));
                };
                add(&mut own.opened, opened);
                add(&mut own.attempted, opened.saturating_add(failed));
            }
        }
        Ok(())
    }

    fn period(&mut self, object: &Object) -> Result<(), ImportError> {
        let statistics = self.statistics(object)?;
        self.lacks_queries |= !object.map.contains_key("queries");
        let thread = match object.id("subid")? {
            Some(thread) => thread,
            None => object.id("threadid")?.unwrap_or_default(),
        };
        let own = self.periods.entry(thread).or_default();
        own.push(statistics);
        super::check_intervals(own.len())
    }

    /// When the statistics begin and end, nanoseconds since 1970, and what they count.
    fn statistics(&self, object: &Object) -> Result<(u64, u64, ForeignStatistics), ImportError> {
        let per_second = if self.per_second == 0 { PER_SECOND } else { self.per_second };
        // The unit is a divisor of a second for all tools that there are.
        let ns = |key, units: u64| {
            let ns = u128::from(units) * u128::from(PER_SECOND) / u128::from(per_second);
            u64::try_from(ns).map_err(|_| object.wrong(key))
        };
        let needed = |key: &'static str| {
            object.count(key)?.ok_or(ImportError::Cut { line: object.line, missing: key })
        };
        let (since, until) = (ns("since", needed("since")?)?, ns("until", needed("until")?)?);
        if until < since {
            return Err(object.wrong("until"));
        }
        let queries = |key: &'static str| {
            object.queries(key)?.ok_or(ImportError::Cut { line: object.line, missing: key })
        };
        // dnsperf's own text has intervals with answers alone, and what was exported of it.
        let is_period = object.map.get("type").and_then(Value::as_str) == Some("stats_periodic");
        let mut counted = ForeignStatistics {
            length_ns: until - since,
            sent: match is_period {
                true => object.queries("queries")?.unwrap_or(0),
                false => queries("queries")?,
            },
            completed: queries("responses")?,
            interrupted: object.queries("interrupted")?.unwrap_or(0),
            unexpected: object.queries("unexpected")?,
            ..ForeignStatistics::default()
        };
        // A tool that does not wait for answers counts no time-outs.
        let unanswered = counted.sent.saturating_sub(counted.completed);
        counted.lost = match object.queries("timeouts")? {
            Some(timeouts) => timeouts,
            None => unanswered.saturating_sub(counted.interrupted),
        };
        if let Some(Value::Object(codes)) = object.map.get("response_rcodes") {
            for (code, value) in codes {
                let number = value.as_u64().filter(|number| *number <= super::MAX_COUNT);
                let number = number.ok_or_else(|| object.wrong("response_rcodes"))?;
                counted.rcodes.insert(code.clone(), number);
            }
        }
        let Some(Value::Object(map)) = object.map.get("response_latency") else {
            return Ok((since, until, counted));
        };
        let object = Object { line: object.line, map: map.clone() };
        let time = |key: &'static str| object.count(key)?.map(|units| ns(key, units)).transpose();
        if counted.completed > 0
            && let Some(mean_ns) = time("avg")?
        {
            counted.latency = Some(ImportedLatency {
                mean_ns: mean_ns as f64,
                min_ns: time("min")?,
                max_ns: time("max")?,
                stddev_ns: time("stddev")?.map(|ns| ns as f64),
            });
        }
        if let Some(Value::Array(buckets)) = map.get("buckets") {
            // The upper bound is the last unit of the bucket.
            let unit_ns = PER_SECOND.div_ceil(per_second);
            for bucket in buckets {
                let wrong = || object.wrong("buckets");
                let [from, to, count] = bucket.as_array().map_or(&[][..], Vec::as_slice) else {
                    return Err(wrong());
                };
                let number = |value: &Value| value.as_u64().ok_or_else(wrong);
                let from_ns = ns("buckets", number(from)?)?;
                let to_ns = ns("buckets", number(to)?)?.saturating_add(unit_ns);
                if to_ns <= from_ns {
                    return Err(wrong());
                }
                let count = Some(number(count)?).filter(|count| *count <= super::MAX_COUNT);
                let count = count.ok_or_else(wrong)?;
                counted.buckets.push(LatencyBucket { from_ns, to_ns, count });
            }
        }
        Ok((since, until, counted))
    }

    /// One run of all threads.
    fn finish(self) -> Result<ForeignRun, ImportError> {
        let Self { mut run, sums, periods, lacks_queries, .. } = self;
        let start_ns = sums.iter().map(|(since, ..)| *since).min();
        let end_ns = sums.iter().map(|(_, until, ..)| *until).max();
        let Some((start_ns, end_ns)) = start_ns.zip(end_ns) else {
            return Err(ImportError::NoStatistics { line: run.line });
        };
        for (_, _, line, counted) in &sums {
            // What other tools count by code, and in buckets, may be more than first answers.
            counted.check_outcomes(*line)?;
            run.totals.add(counted);
        }
        run.totals.length_ns = end_ns - start_ns;
        let all: u64 =
            run.totals.buckets.iter().fold(0, |all, bucket| all.saturating_add(bucket.count));
        if run.totals.length_ns > super::MAX_NS || all > super::MAX_COUNT {
            return Err(ImportError::TooMuch { line: run.line });
        }
        run.started_ns = Some(start_ns);
        run.target = run.options.target();
        if run.command.is_empty() {
            // Without its options nothing is known of where it went.
            run.target.clear();
        }
        // The nth period of each thread is the same time.
        let longest = periods.values().map(Vec::len).max().unwrap_or(0);
        for place in 0..longest {
            let all = || periods.values().filter_map(|period| period.get(place));
            let since = all().map(|(since, ..)| *since).min().unwrap_or(start_ns);
            let until = all().map(|(_, until, _)| *until).max().unwrap_or(since);
            let mut counted = ForeignStatistics::default();
            all().for_each(|(.., statistics)| counted.add(statistics));
            counted.length_ns = until - since;
            let at_ns = since.saturating_sub(start_ns);
            run.intervals.push(ForeignInterval { at_ns, counted });
        }
        run.intervals.sort_by_key(|interval| interval.at_ns);
        run.has_whole_intervals = !run.intervals.is_empty() && !lacks_queries;
        Ok(run)
    }
}

struct Object {
    line: usize,
    map: Map<String, Value>,
}

impl Object {
    fn wrong(&self, key: &'static str) -> ImportError {
        let found = self.map.get(key).map(Value::to_string).unwrap_or_default();
        let found = found.chars().take(100).collect();
        ImportError::Value { line: self.line, key, found }
    }

    /// A number of queries.
    fn queries(&self, key: &'static str) -> Result<Option<u64>, ImportError> {
        match self.count(key)? {
            Some(count) if count > super::MAX_COUNT => Err(self.wrong(key)),
            count => Ok(count),
        }
    }

    /// A number without a sign.
    fn count(&self, key: &'static str) -> Result<Option<u64>, ImportError> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| self.wrong(key)),
        }
    }

    /// A name, which some tools have as a number.
    fn id(&self, key: &'static str) -> Result<Option<String>, ImportError> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(id)) => Ok(Some(id.clone())),
            Some(Value::Number(id)) => Ok(Some(id.to_string())),
            Some(_) => Err(self.wrong(key)),
        }
    }
}
