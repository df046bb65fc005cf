//! The page `report.html`: one file that needs no network and, but for its charts, no script.

mod answers;
mod capacity;
mod chain;
mod connections;
mod counts;
mod cpu;
mod dashboard;
mod differences;
mod evidence;
mod figures;
mod first;
mod flame;
mod group;
mod history;
mod html;
mod method;
mod notes;
mod pacing;
mod picture;
mod pods;
mod pooled;
mod published;
mod scaling;
mod self_check;
mod shares;
mod shell;
mod sweep;
mod testbed;
mod windows;

use dnslab_analysis::Summary;
use dnslab_record::{Capacity, CpuProfiles, RunRecord, Session};
use html::{escape, escape_json};
use shell::shell;

use crate::capacity::CapacityChart;
use crate::chart::Charts;
use crate::gate::{overall_text, ruling_texts};
use crate::needs::headline;
use crate::number;
use crate::screen::conditions::{conditions, origin};
use crate::server_files::ServerFiles;
use crate::words::capacity::{Answer, Part};

pub use dashboard::dashboard_page;
pub(crate) use group::{COLOURS, Group, Grouping};
pub use history::history_page;
pub(crate) use html::collapsed_text;
pub use pooled::pooled_page;

/// The bundle that `npm run build` makes from `page/src`.
const SCRIPT: &str = include_str!("../../page/dist/page.js");
/// Hash of [`SCRIPT`] as a Content Security Policy source, made by the same build.
const SCRIPT_HASH: &str = include_str!("../../page/dist/page.js.sha256");
pub(crate) struct Page<'a> {
    pub(crate) session: &'a Session,
    pub(crate) records: &'a [RunRecord],
    pub(crate) summary: &'a Summary,
    /// The search that the runs are steps of, if they are.
    pub(crate) capacity: Option<&'a Capacity>,
    /// The samples of the servers, if they were taken.
    pub(crate) profiles: Option<&'a CpuProfiles>,
    pub(crate) grouping: Grouping,
    pub(crate) server_files: &'a ServerFiles,
}

impl Page<'_> {
    pub(crate) fn render(&self) -> String {
        let (content, data) = match self.capacity {
            Some(capacity) => (
                capacity::sections(self, capacity),
                serde_json::to_string(&CapacityChart::of(capacity)),
            ),
            None => {
                let charts = Charts::of(self.records, self.summary, &self.grouping);
                (self.content(&charts), serde_json::to_string(&charts))
            }
        };
        let data = data.expect("chart data has string keys only");
        let body = format!(
            "{top}<main>\n{content}{evidence}</main>\n\
             <footer>dnslab {version}</footer>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n\
             <script>{SCRIPT}</script>\n",
            top = self.top(),
            evidence = evidence::sections(self),
            version = escape(&self.session.dnslab),
            data = escape_json(&data),
        );
        let script_source = format!("'{}'", SCRIPT_HASH.trim());
        shell(&format!("{} - dnslab report", self.session.name), &script_source, &body)
    }

    fn content(&self, charts: &Charts) -> String {
        let Self { session, records, summary, grouping, .. } = self;
        [
            self.hero(),
            first::section(summary, grouping),
            sweep::section(summary),
            scaling::section(summary),
            differences::section(summary, grouping),
            published::section(summary),
            notes::section(session, summary),
            shares::section(self),
            windows::section(self, charts),
            cpu::section(summary.cpu.as_ref(), self.profiles),
            answers::section(&summary.answers),
            figures::charts(self, charts),
            chain::section(self),
            pods::section(self),
            figures::variants(summary, grouping),
            figures::outcomes(summary, grouping),
            connections::section(records, summary, grouping),
            counts::section(self),
            pacing::section(summary, grouping),
            method::section(session, records),
        ]
        .concat()
    }

    fn top(&self) -> String {
        format!(
            "<header data-origin=\"{}\"><p><b>dnslab</b> <span>{}</span></p>\
             <button type=\"button\" id=\"theme\" hidden>Dark</button></header>\n",
            escape(&origin(self.session, self.records)),
            escape(&self.session.name)
        )
    }

    fn hero(&self) -> String {
        let answer = headline(self.summary, self.records);
        // With many variants the sentence is set smaller, so that it stays on one screen.
        let size = match answer.len() {
            0..=90 => "",
            91..=240 => " class=\"long\"",
            _ => " class=\"longest\"",
        };
        format!(
            "<section class=\"hero\">\n{}<p class=\"question\">{}</p>\n<h1{size}>{}</h1>\n\
             <p class=\"scope\">{}</p>\n</section>\n",
            self.verdict(),
            escape(&self.session.question),
            escape(&answer),
            escape(&self.scope())
        )
    }

    /// What all limits say together, and each of them; nothing without a limit.
    fn verdict(&self) -> String {
        let Some(overall) = overall_text(self.summary) else { return String::new() };
        let item = |ruling: String| format!("<li>{}</li>\n", escape(&ruling));
        let rulings: String = ruling_texts(self.summary).into_iter().map(item).collect();
        let overall = escape(&overall);
        format!("<h2 id=\"verdict\">{overall}</h2>\n<ul class=\"notes\">\n{rulings}</ul>\n")
    }

    /// What was measured, in half a line: the conditions, runs, date. The window stands here because a
    /// closed-loop rate means nothing without it.
    fn scope(&self) -> String {
        let valid: u32 = self.summary.variants.iter().map(|variant| variant.valid_runs).sum();
        let planned =
            number::counted(self.session.plan.len() as u64, "planned run", "planned runs");
        let conditions = conditions(self.session, self.records);
        let runs = format!("{valid} of {planned} valid");
        [conditions, runs, self.session.started.clone()].join(" \u{b7} ")
    }
}

/// A whole page; `script_source` is a source of its Content Security Policy.
fn answer_html(answer: &Answer) -> String {
    let part = |part: &Part| match part {
        Part::Words(text) => escape(text),
        Part::Figure(text) => format!("<strong>{}</strong>", escape(text)),
        Part::Interval(text) => format!("<small>{}</small>", escape(text)),
    };
    answer.parts.iter().map(part).chain([".".to_owned()]).collect()
}

fn remarks_html(remarks: &str) -> String {
    let text = remarks.trim_start_matches([',', ';', ' ']);
    let mut letters = text.chars();
    match letters.next() {
        None => String::new(),
        Some(first) => format!(
            "<p class=\"remarks\">{}{}.</p>\n",
            escape(&first.to_uppercase().to_string()),
            escape(letters.as_str())
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page puts the bundle between tags as it is, so nothing in it may end them.
    #[test]
    fn the_bundle_stays_in_its_element() {
        assert!(!SCRIPT.to_lowercase().contains("</script"));
        assert!(!SCRIPT.contains("<!--"));
        assert!(!shell::STYLE.to_lowercase().contains("</style"));
    }
}
