//! How close to their schedules the open loops sent.

use std::fmt::Write as _;

use dnslab_analysis::Summary;
use dnslab_figures::{Histogram, PacingWindow};

use super::group::Grouping;
use super::html::escape;
use crate::number::{self, NONE};

pub(crate) fn section(summary: &Summary, grouping: &Grouping) -> String {
    let (mut lags, mut starts, mut errors) = (String::new(), String::new(), String::new());
    for (place, variant) in summary.variants.iter().enumerate() {
        let name =
            format!("<i class=\"key {}\"></i>{}", grouping.class(place), escape(&variant.name));
        if !variant.send_lag.is_empty() {
            lags.push_str(&row(&name, 1, &lag_cells(&variant.send_lag)));
        }
        if !variant.start_lag.is_empty() {
            starts.push_str(&row(&name, 1, &lag_cells(&variant.start_lag)));
        }
        let windows = variant.pacing.iter().flat_map(|pacing| &pacing.windows);
        let windows: Vec<_> = windows.filter(|window| window.windows > 0).collect();
        for (nth, window) in windows.iter().enumerate() {
            let name = if nth == 0 { name.as_str() } else { "" };
            errors.push_str(&row(name, windows.len(), &error_cells(window)));
        }
    }
    if lags.is_empty() && errors.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<section id=\"pacing\">\n<details><summary>Pacing: how close to its schedule the load was sent</summary>\n",
    );
    if !lags.is_empty() {
        html.push_str(
            "<p class=\"hint\">Send lag: how much later than due the queries left, over all valid \
             runs. It is a part of the latency.</p>\n",
        );
        html.push_str(&table("Send lag", &LAG_HEADER, &lags));
    }
    if !starts.is_empty() {
        html.push_str(
            "<p class=\"hint\">Start lag: how much later than due the clients turned to their queries. \
             Unlike the send lag, it has no time to connect in it.</p>\n",
        );
        html.push_str(&table("Start lag", &LAG_HEADER, &starts));
    }
    if !errors.is_empty() {
        html.push_str(
            "<p class=\"hint\">Pacing error: in windows of each width, the difference between the \
             queries sent and those due, as a share of those due. Counts and means are over the \
             windows of all valid runs; quantiles are those of the worst run. Where few are due in \
             a window, a single one that crosses its end is a large share.</p>\n",
        );
        let header = [
            "variant",
            "window",
            "windows",
            "due in each",
            "within 1 %",
            "mean error",
            "p50",
            "p99",
            "largest",
        ];
        html.push_str(&table("Pacing error", &header, &errors));
    }
    html.push_str("</details>\n</section>\n");
    html
}

const LAG_HEADER: [&str; 6] = ["variant", "p50", "p95", "p99", "p99.9", "largest"];

fn table(label: &str, header: &[&str], rows: &str) -> String {
    let header: String = header
        .iter()
        .map(|heading| format!("<th scope=\"col\">{}</th>", escape(heading)))
        .collect();
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n\
         <table class=\"figures\">\n<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table>\n</div>\n"
    )
}

/// One row. The first one of a variant has its name, over `rows` of them.
fn row(name: &str, rows: usize, cells: &[String]) -> String {
    let mut html = String::from("<tr>");
    if !name.is_empty() {
        let _ = write!(html, "<th scope=\"rowgroup\" rowspan=\"{rows}\">{name}</th>");
    }
    for cell in cells {
        let _ = write!(html, "<td>{}</td>", escape(cell));
    }
    html.push_str("</tr>\n");
    html
}

fn lag_cells(lag: &Histogram) -> Vec<String> {
    let write =
        |ns: Option<u64>| ns.map_or_else(|| NONE.to_owned(), |ns| number::duration(ns as f64));
    let mut cells: Vec<_> =
        [0.5, 0.95, 0.99, 0.999].map(|share| write(lag.quantile_ns(share))).to_vec();
    cells.push(write(lag.max_ns()));
    cells
}

fn error_cells(window: &PacingWindow) -> Vec<String> {
    let share = |share: Option<f64>| share.map_or_else(|| NONE.to_owned(), number::share);
    vec![
        width(window.width_ns),
        number::count(window.windows),
        window.mean_due().map_or_else(|| NONE.to_owned(), number::qps),
        share(window.share_within_1_percent()),
        number::share(window.mean_error),
        number::share(window.p50_error),
        number::share(window.p99_error),
        number::share(window.max_error),
    ]
}

/// A width that was chosen: digits that say nothing are left away.
fn width(ns: u64) -> String {
    match ns {
        ns if ns % 1_000_000_000 == 0 => format!("{} s", ns / 1_000_000_000),
        ns => format!("{} ms", ns / 1_000_000),
    }
}
