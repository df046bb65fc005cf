//! Where experiments come from: built in, or a file.

use std::fs;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::path::Path;

use crate::check::{Experiment, PathRules, check};
use crate::error::ExperimentError;
use crate::keys::closest_word;

/// The experiments compiled in, by name, with the text of their file.
pub const BUILT_IN: [(&str, &str); 10] = [
    ("cost", include_str!("../../../../experiments/cost.toml")),
    ("encryption", include_str!("../../../../experiments/encryption.toml")),
    ("forwarders", include_str!("../../../../experiments/forwarders.toml")),
    ("forwarders-idle", include_str!("../../../../experiments/forwarders-idle.toml")),
    ("forwarding", include_str!("../../../../experiments/forwarding.toml")),
    ("idm", include_str!("../../../../experiments/idm.toml")),
    ("query-log-causes", include_str!("../../../../experiments/query-log-causes.toml")),
    ("query-logging", include_str!("../../../../experiments/query-logging.toml")),
    ("transports", include_str!("../../../../experiments/transports.toml")),
    ("waiting", include_str!("../../../../experiments/waiting.toml")),
];

/// The text of an experiment and what it is called in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path, or for a built-in its name in angle brackets.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The first address that this host knows for a name.
fn find_address(name: &str) -> Result<IpAddr, String> {
    let found = (name, 0).to_socket_addrs().map_err(|error| format!("`{name}`: {error}"))?.next();
    found.map(|address| address.ip()).ok_or_else(|| format!("`{name}` has no address"))
}

/// Finds and checks an experiment.
///
/// `name_or_path` is a built-in's name if it has neither a `/` nor the ending `.toml`, else the
/// path of a file. `sets` are overrides as `key=value`. Relative paths in a file start from the
/// file's folder, those in `sets` from the current folder; all come out absolute.
///
/// # Errors
/// When there is no such experiment, it cannot be read, or it is wrong.
pub fn load(name_or_path: &str, sets: &[String]) -> Result<(Experiment, Source), ExperimentError> {
    let is_path = name_or_path.contains('/') || name_or_path.ends_with(".toml");
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |error| ExperimentError::Unreadable { path, error, known: known_names() }
    };
    let current = std::env::current_dir().map_err(unreadable(Path::new(".")))?;
    let (source, folder) = if is_path {
        let path = Path::new(name_or_path);
        let text = fs::read_to_string(path).map_err(unreadable(path))?;
        let folder = current.join(path.parent().unwrap_or(Path::new("")));
        (Source { name: name_or_path.to_owned(), text }, folder)
    } else {
        (find_built_in(name_or_path)?, current.clone())
    };
    let paths = PathRules {
        file_folder: &folder,
        current_folder: &current,
        is_file: &|path: &Path| path.is_file(),
        find_root: &dnslab_lab::root::locate,
        find_address: &find_address,
    };
    match check(&source.text, sets, &paths) {
        Ok(experiment) => Ok((experiment, source)),
        Err(problems) => Err(ExperimentError::Invalid { problems, source_text: source }),
    }
}

/// The names of the built-ins.
fn known_names() -> Vec<String> {
    BUILT_IN.map(|(known, _)| known.to_owned()).to_vec()
}

/// The built-in of this name.
fn find_built_in(name: &str) -> Result<Source, ExperimentError> {
    match BUILT_IN.iter().find(|(known, _)| *known == name) {
        Some((known, text)) => Ok(Source { name: format!("<{known}>"), text: (*text).to_owned() }),
        None => Err(ExperimentError::UnknownName {
            name: name.to_owned(),
            suggestion: closest_word(name, BUILT_IN.map(|(known, _)| known)).map(str::to_owned),
            known: known_names(),
        }),
    }
}
