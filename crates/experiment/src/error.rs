use std::io;
use std::path::PathBuf;

use dnslab_settings::{Problems, render};

use crate::file::Source;

/// Why there is no experiment to run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Neither a path nor the name of a built-in experiment.
    #[error("no built-in experiment is called `{name}`{}: there {}; a file is given by a path \
             with `/` or `.toml`", meant(suggestion.as_deref()), listed(known))]
    UnknownName {
        /// What was asked for.
        name: String,
        /// The built-in that was most likely meant.
        suggestion: Option<String>,
        /// All built-ins.
        known: Vec<String>,
    },
    /// The file cannot be read.
    #[error("cannot read the experiment file {}: {error}{}", path.display(), remedy(error, known))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
        /// All built-ins.
        known: Vec<String>,
    },
    /// The experiment is wrong; shown with the source.
    #[error("{}", render(problems.as_slice(), source_text.text.as_str(), &source_text.name))]
    Invalid {
        /// What is wrong.
        problems: Problems,
        /// The file as it was read.
        source_text: Source,
    },
}

fn meant(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

fn remedy(error: &io::Error, known: &[String]) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let list = listed(known);
            format!("; among the built-ins, which are given by their bare name, there {list}")
        }
        _ => String::new(),
    }
}

fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    format!("{are} {}", names.join(", "))
}
