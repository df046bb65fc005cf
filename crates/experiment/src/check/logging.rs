//! What the server of a variant writes of each query.

use std::path::PathBuf;

use dnslab_lab::{
    LogDestination, LogFile, LogPrefix, Logging, QueryLog, Rotation, Suffix, TimeForm,
};

use super::Check;
use super::settings::{Exclusive, Settings};
use crate::error::Problem;

/// Keys that say how a file is written.
const OF_A_FILE: [&str; 5] = [
    "server.log.folder",
    "server.log.size_mib",
    "server.log.versions",
    "server.log.suffix",
    "server.log.buffered",
];

/// Those of them that say what becomes of old files.
const OF_OLD_FILES: [&str; 2] = ["server.log.versions", "server.log.suffix"];

/// Keys that say what stands before each line.
const OF_A_LINE: [&str; 3] =
    ["server.log.print_time", "server.log.print_category", "server.log.print_severity"];

impl Check<'_> {
    /// The logs of a variant's server.
    pub(super) fn logging(&mut self, settings: &mut Settings) -> Logging {
        let written = settings.exclusive("server.query_log", "server.log.to");
        if let Exclusive::Both(at_switch, at_destination) = written {
            let message = "`server.query_log` and `server.log.to` say the same";
            let problem = Problem::new(message, at_switch.mark("into a file, or not at all"))
                .with(at_destination.mark("where to"));
            self.problems.push(problem.help("remove `server.query_log`"));
        }
        let is_short = settings.is_true("server.query_log");
        let word = settings.text("server.log.to").unwrap_or_default();
        let to = match word.as_str() {
            "file" => Some(LogDestination::File(self.log_file(settings))),
            "syslog" => Some(LogDestination::Syslog),
            "stderr" => Some(LogDestination::StandardError),
            "null" => Some(LogDestination::Null),
            _ if is_short => Some(LogDestination::File(self.log_file(settings))),
            _ => None,
        };
        self.note_log_keys(settings, to.as_ref());
        let print = LogPrefix {
            time: settings.text("server.log.print_time").and_then(|word| TimeForm::of(&word)),
            category: settings.is_true("server.log.print_category"),
            severity: settings.is_true("server.log.print_severity"),
        };
        Logging {
            query_log: to.map(|to| QueryLog { to, print }),
            dnstap: settings.is_true("server.dnstap"),
        }
    }

    /// How the file is written.
    fn log_file(&self, settings: &Settings) -> LogFile {
        let suffix = match settings.text("server.log.suffix").as_deref() {
            Some("timestamp") => Suffix::Timestamp,
            _ => Suffix::Increment,
        };
        let rotation = settings.count("server.log.size_mib").map(|size_mib| Rotation {
            size_mib,
            versions: settings.count("server.log.versions").unwrap_or(1),
            suffix,
        });
        LogFile {
            folder: self.log_folder(settings),
            is_buffered: settings.is_true("server.log.buffered"),
            rotation,
        }
    }

    /// The folder of the file. Whether it is there is asked when the plan is made: a variant whose disk is
    /// missing is left out.
    fn log_folder(&self, settings: &Settings) -> Option<PathBuf> {
        let place = settings.place("server.log.folder")?;
        Some(self.folder_of(place).join(settings.text("server.log.folder")?))
    }

    /// Notes which keys of the query log mean something for where it goes.
    fn note_log_keys(&mut self, settings: &Settings, to: Option<&LogDestination>) {
        let file = match to {
            Some(LogDestination::File(file)) => Some(file),
            _ => None,
        };
        let is_rotated = file.is_some_and(|file| file.rotation.is_some());
        for path in OF_A_FILE.into_iter().chain(OF_A_LINE) {
            let says_nothing = settings.is_preset(path) || settings.is_broken(path);
            let Some(place) = settings.place(path).filter(|_| !says_nothing) else { continue };
            let (is_used, why, help) = if OF_OLD_FILES.contains(&path) {
                (is_rotated, "no file is rotated", "add `server.log.size_mib`, or remove it")
            } else if OF_A_FILE.contains(&path) {
                (file.is_some(), "no query log goes into a file", "add `server.log.to = \"file\"`")
            } else {
                (to.is_some(), "there is no query log", "add `server.log.to`, or remove it")
            };
            let message = format!("`{path}` has no effect: {why}");
            self.note_use(&place.clone(), is_used, message, help);
        }
    }
}
