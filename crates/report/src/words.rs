//! The words for what `measure` has as figures: caveats, bottlenecks, findings, reasons, compared answers.

pub(crate) mod answers;
pub(crate) mod bottleneck;
pub(crate) mod capacity;
pub(crate) mod caveat;
pub(crate) mod cpu;
pub(crate) mod invalid;
pub(crate) mod self_check;
mod server_options;
pub(crate) mod session_comparison;
#[cfg(test)]
mod tests;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) what: String,
    /// How much of it; empty if there is no figure.
    pub(crate) figure: String,
    /// What can be done, a sentence without its full stop; empty if nothing needs to be.
    pub(crate) remedy: String,
}

impl Remark {
    pub(crate) fn new(
        what: impl Into<String>,
        figure: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), figure: figure.into(), remedy: remedy.into() }
    }

    /// The whole as sentences: what with its figure, then the remedy.
    pub(crate) fn text(&self) -> String {
        let figure = match self.figure.as_str() {
            "" => String::new(),
            figure => format!(" ({figure})"),
        };
        let remedy = match self.remedy.as_str() {
            "" => String::new(),
            remedy => format!(" {remedy}."),
        };
        format!("{}{figure}.{remedy}", self.what)
    }
}

/// The remedy for a generator that is short of CPU time, without a full stop.
fn add_worker(workers: Option<u32>) -> String {
    let number = workers.map_or_else(|| "N".to_owned(), |it| it.saturating_add(1).to_string());
    format!("Add a worker with a CPU of its own (`--set load.workers={number}`)")
}
