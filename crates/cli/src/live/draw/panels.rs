//! What is written around the charts: progress, outcomes, both sides, ended runs, keys and help.

use std::time::Duration;

use dnslab_record::LoadPart;
use dnslab_report::number;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget as _};

use super::paint::Paint;
use super::{Look, selected};
use crate::live::view::{Activity, LoadView, View};

/// Cells of the bar of progress.
const BAR: usize = 16;

/// What is measured, and how it is asked.
pub(super) fn heading<'a>(view: &'a View, look: &Look, width: u16) -> Line<'a> {
    let mut line = Line::styled(&*view.heading, look.paint.strong());
    add_how(&mut line, view, look, width);
    line
}

/// Adds how the load is asked, if there is room. Returns whether there is.
fn add_how(line: &mut Line<'_>, view: &View, look: &Look, width: u16) -> bool {
    let Some(load) = selected(view, look) else { return true };
    let how = format!("  {}", load.how);
    let fits = line.width() + how.chars().count() <= usize::from(width);
    if fits {
        line.spans.push(Span::styled(how, look.paint.dim()));
    }
    fits
}

/// Which run of how many, what it does, how far it is, and the time left.
pub(super) fn progress<'a>(view: &'a View, look: &Look, width: u16) -> Line<'a> {
    let mut parts: Vec<Span<'_>> = Vec::new();
    if let Some(round) = &view.round {
        let run = match round.count {
            // Nothing else is to come.
            Some(1) => String::new(),
            Some(count) => format!("[{}/{count}] {}: ", round.number, round.name),
            None => format!("{}: ", round.name),
        };
        parts.push(Span::raw(run));
    }
    match (&view.activity, selected(view, look)) {
        (Activity::Loading, Some(load)) => parts.extend(of_load(load, look)),
        (Activity::Trial, _) => {
            parts.push(Span::raw("a short trial, for the rate of the common load"));
        }
        (Activity::Comparing(variant, against), _) => {
            parts.push(Span::raw(format!("comparing the answers of {variant} and {against}")));
        }
        _ => parts.push(Span::raw("starting")),
    }
    if let Some(left) = view.left(look.now) {
        parts.push(Span::styled(format!(", about {} left", clock(left)), look.paint.strong()));
    }
    let mut line = Line::from(parts);
    if !add_how(&mut Line::raw(&*view.heading), view, look, width) {
        add_how(&mut line, view, look, width);
    }
    line
}

fn of_load<'a>(load: &LoadView, look: &Look) -> Vec<Span<'a>> {
    let (at, all) = load.progress(look.now);
    let what = match (load.part, load.is_warm_up) {
        (_, true) => "warm-up",
        (LoadPart::Main, false) => "measured",
        (LoadPart::Common, false) => "common load",
    };
    let share = at.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE);
    let filled = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    let bar = format!("{}{}", "━".repeat(filled), "─".repeat(BAR - filled));
    let length = clock(all);
    vec![Span::raw(format!("{what} {bar} {} of {length}", clock(at)))]
}

/// A time as a person says it: seconds, minutes, or hours and minutes.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        0..100 => format!("{seconds} s"),
        100..6_000 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// How the queries ended, and the response codes of the answers. What is zero is left out.
pub(super) fn outcomes(load: &LoadView, paint: Paint, area: Rect, buffer: &mut Buffer) {
    let counters = &load.counters;
    let outcomes = &counters.outcomes;
    let answers = &counters.answers;
    let mut rows: Vec<(String, u64, bool)> =
        vec![("answered".to_owned(), outcomes.answered, false)];
    let mut add = |name: &str, count: u64, is_bad: bool| {
        if count > 0 {
            rows.push((name.to_owned(), count, is_bad));
        }
    };
    add("timed out", outcomes.timed_out, true);
    add("not sent", outcomes.not_sent, true);
    add("connection lost", outcomes.connection_lost, true);
    add("malformed", outcomes.malformed, true);
    add("refused alone", outcomes.refused, true);
    let mut codes: Vec<_> = answers.rcodes.iter().collect();
    codes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    codes.into_iter().for_each(|(code, count)| add(code, *count, false));
    add("truncated", answers.truncated, false);
    add("wrong", answers.wrong, true);
    add("late", answers.late, true);
    add("in flight", load.in_flight, false);
    let left_out = rows.len().saturating_sub(usize::from(area.height.saturating_sub(1)));
    if left_out > 0 {
        rows.truncate(rows.len().saturating_sub(left_out + 1));
    }
    let title = Line::styled("Outcomes, codes", paint.strong());
    let of_due = |count: u64| count as f64 / outcomes.settled().max(1) as f64;
    let mut lines = vec![title];
    for (name, count, is_bad) in rows {
        let width = usize::from(area.width).saturating_sub(name.chars().count());
        let share = match name.as_str() {
            "in flight" => String::new(),
            _ => format!(" {:>8}", number::share(of_due(count))),
        };
        let both = format!("{}{share}", number::count(count));
        let figures = if both.len() < width { both } else { number::count(count) };
        let text = format!("{name}{figures:>width$}");
        lines.push(if is_bad { Line::styled(text, paint.bad()) } else { Line::raw(text) });
    }
    if left_out > 0 {
        lines.push(Line::styled(format!("and {} more", left_out + 1), paint.dim()));
    }
    Paragraph::new(lines).render(area, buffer);
}

/// What the server and the load use.
pub(super) fn sides(load: &LoadView, paint: Paint, area: Rect, buffer: &mut Buffer) {
    let mut lines = vec![Line::styled("Server, generator", paint.strong())];
    let fits = |text: &str| text.chars().count() <= usize::from(area.width);
    let now = load.now.as_ref();
    // A load that waits for its turn has no share.
    let (server, generator) = now.map_or((None, None), |now| (now.server_cpu, now.load_cpu));
    let cpus = load.server.map_or(0, |server| server.cpus);
    lines.push(gauge("server", server, of_cpus(server, cpus), area.width));
    lines.push(gauge("generator", generator, of_cpus(generator, 1), area.width));
    if let Some(server) = load.server {
        let (memory, peak) = (server.memory_octets, load.peak_memory_octets);
        let memory = format!("memory {}", number::octets(memory));
        let both = format!("{memory}, peak {}", number::octets(peak));
        lines.push(Line::raw(if fits(&both) { both } else { memory }));
        if load.server_drops > 0 {
            let drops = number::count(load.server_drops);
            let long = format!("{drops} dropped at its socket");
            let drops = if fits(&long) { long } else { format!("{drops} UDP drops") };
            lines.push(Line::styled(drops, paint.bad()));
        }
    }
    if load.is_stream {
        let open = number::count(load.open_connections);
        lines.push(Line::raw(format!("{open} connections open")));
        let connections = &load.counters.connections;
        if connections.failed > 0 {
            let failed = format!("{} attempts failed", number::count(connections.failed));
            lines.push(Line::styled(failed, paint.bad()));
        }
        let (full, resumed) = (connections.full_handshakes, connections.resumed_handshakes);
        if full + resumed > 0 {
            let (full, resumed) = (number::count(full), number::count(resumed));
            let both = format!("TLS {full} full, {resumed} resumed");
            match fits(&both) {
                true => lines.push(Line::raw(both)),
                false => lines.extend(
                    [format!("TLS full {full}"), format!("resumed  {resumed}")].map(Line::raw),
                ),
            }
        }
    }
    Paragraph::new(lines).render(area, buffer);
}

fn gauge(name: &str, share: Option<f64>, text: String, width: u16) -> Line<'static> {
    let Some(share) = share else { return Line::raw(format!("{name:<9} {text}")) };
    let cells = usize::from(width).saturating_sub(22).min(12);
    let filled = (share.clamp(0.0, 1.0) * cells as f64).round() as usize;
    let bar = format!("{}{}", "█".repeat(filled), "·".repeat(cells - filled));
    let space = if cells > 0 { " " } else { "" };
    Line::raw(format!("{name:<9}{space}{bar} {:>5}{text}", number::percent(share, 0)))
}

fn of_cpus(share: Option<f64>, cpus: usize) -> String {
    match (share, cpus) {
        (_, 0) => "not watched".to_owned(),
        (None, _) => "-".to_owned(),
        (Some(_), 1) => " CPU".to_owned(),
        (Some(_), cpus) => format!(" of {cpus}"),
    }
}

/// The latest runs that are over, or steps of a search.
pub(super) fn ended(view: &View, look: &Look, area: Rect, buffer: &mut Buffer) {
    let hidden = view.ended.len().saturating_sub(area.height.into());
    let lines = view.ended.iter().skip(hidden).map(|ended| {
        let text = &*ended.text;
        if ended.is_valid { Line::raw(text) } else { Line::styled(text, look.paint.bad()) }
    });
    Paragraph::new(lines.collect::<Vec<_>>()).render(area, buffer);
}

/// The keys, or what one of them has done.
pub(super) fn keys<'a>(view: &View, look: &Look, width: u16) -> Line<'a> {
    if look.is_leaving {
        let text =
            "Leaving: the run ends, then what was measured is reported. Ctrl-C ends at once.";
        return Line::styled(text, look.paint.strong());
    }
    let mut keys = vec![("p", if look.is_paused { "go on" } else { "pause the view" })];
    if view.loads.len() > 1 {
        keys.push(("Tab", "next variant"));
    }
    keys.extend([("q", "leave early, with a report"), ("?", "help")]);
    let mut spans = Vec::new();
    if look.is_paused {
        spans.push(Span::styled("PAUSED, the load goes on  ", look.paint.bad()));
    }
    for (key, what) in keys {
        let what = if width < 60 { what.split([' ', ',']).next().unwrap_or(what) } else { what };
        spans.push(Span::styled(key, look.paint.strong()));
        spans.push(Span::styled(format!(" {what}   "), look.paint.dim()));
    }
    Line::from(spans)
}

const HELP: &str = "\
p      pause the view; the load goes on
Tab    show the latencies of the next variant
q      leave early: the run ends, and what was
       measured is reported, as after Ctrl-C
Ctrl-C the same; a second one ends at once
?      this help

Latency counts from the instant at which a query
was due; a lost one counts with its time-out.
The dashed line ends the warm-up, which does
not count. The server's CPU is a share of all its
CPUs, the generator's what its busiest worker
uses of one.";

pub(super) fn help(area: Rect, buffer: &mut Buffer, paint: Paint) {
    let lines: Vec<Line<'_>> = HELP.lines().map(Line::raw).collect();
    let width = HELP.lines().map(|line| line.chars().count()).max().unwrap_or(0) as u16 + 4;
    let height = lines.len() as u16 + 2;
    let (width, height) = (width.min(area.width), height.min(area.height));
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    Clear.render(place, buffer);
    let frame = Block::bordered().title(Span::styled(" Keys ", paint.strong()));
    let inner = frame.inner(place);
    frame.render(place, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(1), ..inner };
    Paragraph::new(lines).render(inner, buffer);
}
