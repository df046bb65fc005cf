//! What the page of a search for the capacity has in the place of variants and their charts.

use std::fmt::Write as _;

use dnslab_record::{Capacity, Sought};

use super::figures::push_place;
use super::html::{definitions, escape, prose};
use super::{Page, answer_html, remarks_html};
use crate::capacity::capacity_table;
use crate::number;
use crate::screen::notes::of_search;
use crate::words::capacity::capacity_answer;

pub(super) fn sections(page: &Page<'_>, capacity: &Capacity) -> String {
    let parts =
        [hero(page, capacity), charts(capacity), table(capacity), notes(page), method(capacity)];
    parts.concat()
}

/// What the screen says of the machine.
fn notes(page: &Page<'_>) -> String {
    let notes = of_search(page.session, page.summary, page.records);
    if notes.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section>\n<h2>Notes</h2>\n<ul class=\"notes\">\n");
    for note in notes {
        let _ = writeln!(html, "<li>{}</li>", prose(&note.text));
    }
    html.push_str("</ul>\n</section>\n");
    html
}

fn hero(page: &Page<'_>, capacity: &Capacity) -> String {
    let answer = capacity_answer(capacity);
    format!(
        "<section class=\"hero\">\n<p class=\"question\">{}</p>\n<h1>{}</h1>\n{}\
         <p class=\"scope\">{}</p>\n</section>\n",
        escape(&page.session.question),
        answer_html(&answer),
        remarks_html(&answer.remarks),
        escape(&scope(page, capacity))
    )
}

fn scope(page: &Page<'_>, capacity: &Capacity) -> String {
    let mut parts = vec![format!("{} steps", number::count(capacity.steps.len() as u64))];
    if let Some(first) = page.records.first() {
        parts.push(crate::transport_name(first.load.transport_name()).to_owned());
        let seconds = page.records.iter().map(|record| record.load.duration_ns as f64 / 1e9);
        let least = seconds.clone().fold(f64::MAX, f64::min);
        let most = seconds.fold(0.0, f64::max);
        parts.push(match least < most {
            true => format!("{least} to {most} s each"),
            false => format!("{most} s each"),
        });
    }
    parts.push(page.session.started.clone());
    parts.join(" \u{b7} ")
}

fn table(capacity: &Capacity) -> String {
    let table = capacity_table(capacity);
    let (title, last_is_text) = match capacity.sought {
        Sought::Rate(_) => ("Rates", true),
        Sought::Window(_) => ("Windows", false),
    };
    let mut html = format!(
        "<section>\n<h2>{title}</h2>\n<p class=\"hint\">{}</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n\
         <table class=\"capacity\">\n<thead><tr>",
        escape(&table.legend)
    );
    let is_text = |column: usize| last_is_text && column + 1 == table.header.len();
    for (column, heading) in table.header.iter().enumerate() {
        let class = if is_text(column) { " class=\"text\"" } else { "" };
        let _ = write!(html, "<th scope=\"col\"{class}>{}</th>", escape(heading));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let _ = match column {
                0 => write!(html, "<th scope=\"row\">{}</th>", escape(cell)),
                _ if is_text(column) => {
                    write!(html, "<td class=\"text\">{}</td>", escape(cell))
                }
                _ => write!(html, "<td>{}</td>", escape(cell)),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n</section>\n");
    html
}

fn charts(capacity: &Capacity) -> String {
    let mut measured = capacity.steps.iter().filter_map(|step| step.figures.as_ref()).peekable();
    if measured.peek().is_none() {
        return String::new();
    }
    let [(answered, of_answered), (latency, of_latency)] = match capacity.sought {
        Sought::Rate(_) => [
            (
                "Answered against offered",
                "Dashed: everything offered is answered. Shaded: the capacity with its interval.",
            ),
            (
                "Latency against offered rate",
                "Dashed in grey: the bounds of the objective. Logarithmic scale. A lost query counts with \
                 the time-out at least.",
            ),
        ],
        Sought::Window(_) => [
            (
                "Answered against window",
                "Queries outstanding over all clients, logarithmic scale. Shaded: the window to use.",
            ),
            ("Latency against window", "Both scales are logarithmic."),
        ],
    };
    let mut html = String::from(
        "<section class=\"charts\">\n<h2>Charts</h2>\n\
         <noscript><p>The charts need JavaScript; every figure behind them is in \
         <code>capacity.csv</code>.</p></noscript>\n\
         <p class=\"hint\">Each dot is a run that met everything, each cross one that did not; the \
         lines are means over the runs, the bands run from the smallest to the largest. Arrow keys \
         move along a chart.</p>\n",
    );
    push_place(&mut html, "capacity-answered", "full", answered, of_answered);
    if measured.any(|step| step.p50_ns.is_some()) {
        push_place(&mut html, "capacity-latency", "full", latency, of_latency);
    }
    html.push_str("</section>\n");
    html
}

fn method(capacity: &Capacity) -> String {
    let items: Vec<(&str, String)> = match &capacity.sought {
        Sought::Rate(search) => vec![
            (
                "Search",
                format!(
                    "Open loop from {} by factors of two until the objective is \
                     violated twice in a row; bisection until the bracket is within {}; then {} \
                     runs at each rate around the edge, in rounds of random order (seed {}).",
                    number::queries_per_second(search.from_qps),
                    number::size(search.tolerance),
                    search.repeats,
                    search.seed
                ),
            ),
            (
                "Capacity",
                "The rate that half of the undisturbed runs meet: the median of what the server \
                 does from run to run. The 95 % interval is that of its posterior distribution, \
                 given which runs met the objective at which rates; how much the capacity differs \
                 from run to run, and how often a disturbance spoils one, are found from the same \
                 runs."
                    .to_owned(),
            ),
            (
                "Met",
                "Besides the objective, at least 99 % of the due queries have to be sent and the \
                 server has to keep up: a backlog of answers after the window is a violation, \
                 since a longer run would show a growing latency."
                    .to_owned(),
            ),
        ],
        Sought::Window(sweep) => vec![
            (
                "Sweep",
                format!(
                    "Closed loop with 1, 2, 4, ... queries outstanding, spread over up to {} \
                     clients, until three doublings in a row gain less than 2 %; then every window \
                     again, {} runs in all, in rounds of random order (seed {}).",
                    sweep.clients, sweep.repeats, sweep.seed
                ),
            ),
            (
                "Window to use",
                "The smallest whose mean answered rate is within 2 % of the highest: a larger one \
                 only makes the queue longer."
                    .to_owned(),
            ),
        ],
    };
    format!("<section>\n<h2>How it was found</h2>\n{}</section>\n", definitions(items))
        .replace("<dl>", "<dl class=\"method\">")
}
