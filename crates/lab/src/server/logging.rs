//! What a server writes of each query, and where.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use dnslab_settings::{LogSuffix, TimeForm};

/// What a server writes of each query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logging {
    /// A line for each query; `None` for none.
    pub query_log: Option<QueryLog>,
    /// dnstap messages of queries and answers into the file [`DNSTAP_LOG`] of its folder.
    pub dnstap: bool,
}

/// A line for each query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryLog {
    /// Where it goes.
    pub to: LogDestination,
    /// What precedes the message.
    pub print: LogPrefix,
}

/// Where the lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogDestination {
    /// The file [`QUERY_LOG`] of the server's folder, or of a folder of its own.
    File(LogFile),
    /// syslog(3), which writes to [`SYSLOG_SOCKET`].
    Syslog,
    /// Standard error, a pipe that the guard reads into the file [`QUERY_LOG`] of the server's folder.
    StandardError,
    /// Nowhere: the line is formatted and dropped.
    Null,
}

/// How the file of a query log is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFile {
    /// An existing folder for the file, e.g. on another disk; `None` for the server's own.
    pub folder: Option<PathBuf>,
    /// The server writes when its buffer is full, not after each line.
    pub is_buffered: bool,
    /// When a new file begins; `None` for never.
    pub rotation: Option<Rotation>,
}

/// When a new file begins, and what happens to the old ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Size at which a new file begins, in units of 1,048,576 octets; at least 1.
    pub size_mib: u32,
    /// Old files that are kept, at least 1.
    pub versions: u32,
    /// How old files are named.
    pub suffix: LogSuffix,
}

/// What precedes the message of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPrefix {
    /// How the time is written.
    pub time: TimeForm,
    /// The category, `queries`.
    pub category: bool,
    /// The severity, `info`.
    pub severity: bool,
}

impl Default for LogPrefix {
    /// Only the local time.
    fn default() -> Self {
        Self { time: TimeForm::Local, category: false, severity: false }
    }
}

impl Default for QueryLog {
    /// A file in the server's folder with the time, written after each line and never rotated.
    fn default() -> Self {
        Self { to: LogDestination::File(LogFile::default()), print: LogPrefix::default() }
    }
}

/// Name of the query log in its folder. Names of its old files begin with it.
pub const QUERY_LOG: &str = "query.log";

/// Name of the symbolic link in the server's folder to the query log's own folder.
pub const QUERY_LOG_FOLDER: &str = "query-log";

/// Name of the dnstap file inside the server's folder (frame streams, dnstap.proto).
pub const DNSTAP_LOG: &str = "dnstap.fstrm";

/// Where syslog(3) writes, whether a daemon listens there or not.
pub const SYSLOG_SOCKET: &str = "/dev/log";

impl Logging {
    /// The files that are written, relative to the server's folder.
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let query_log = self.query_log.as_ref().and_then(QueryLog::file);
        query_log.into_iter().chain(self.dnstap.then(|| PathBuf::from(DNSTAP_LOG)))
    }

    /// The folder of the query log, if it is not the server's own.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match &self.query_log.as_ref()?.to {
            LogDestination::File(file) => file.folder.as_deref(),
            _ => None,
        }
    }

    /// The file in the server's folder that its standard error goes to, through a pipe.
    pub(crate) fn standard_error(&self) -> Option<&'static str> {
        let query_log = self.query_log.as_ref()?;
        (query_log.to == LogDestination::StandardError).then_some(QUERY_LOG)
    }

    /// Whether this machine has what the logs need, for a server in a root folder of its own (`is_in_root`)
    /// or in the system's; if not, what is missing and what to do about it.
    pub(crate) fn is_possible(&self, is_in_root: bool) -> Result<(), String> {
        match self.query_log.as_ref().map(|log| &log.to) {
            Some(LogDestination::Syslog) => syslog_is_read(Path::new(SYSLOG_SOCKET), is_in_root),
            Some(LogDestination::File(LogFile { folder: Some(folder), .. })) => {
                folder_is_there(folder, is_in_root)
            }
            _ => Ok(()),
        }
    }
}

impl QueryLog {
    /// Path of its file, relative to the server's folder; `None` if it goes elsewhere.
    pub(super) fn file(&self) -> Option<PathBuf> {
        match &self.to {
            LogDestination::File(LogFile { folder: Some(_), .. }) => {
                Some(Path::new(QUERY_LOG_FOLDER).join(QUERY_LOG))
            }
            LogDestination::File(_) | LogDestination::StandardError => Some(QUERY_LOG.into()),
            LogDestination::Syslog | LogDestination::Null => None,
        }
    }
}

/// Refuses a query log to syslog that nobody would read: its messages would be dropped at nearly no cost, and
/// the figure would be that of no log.
fn syslog_is_read(socket: &Path, is_in_root: bool) -> Result<(), String> {
    let path = socket.display();
    let connected = UnixDatagram::unbound().and_then(|client| client.connect(socket));
    connected.map_err(|error: io::Error| {
        format!(
            "no syslog daemon reads {path} ({error}): a query log to syslog would be dropped, and cost \
             nearly nothing\n  hint:    start one, e.g. `apt-get install rsyslog` and `rsyslogd`"
        )
    })?;
    // systemd's link leads to /run, and a root folder has its own /run.
    if is_in_root && socket.is_symlink() {
        return Err(format!(
            "{path} is a symbolic link, which leads nowhere from inside a root folder: use the \
             system's own server, or a syslog daemon that has its socket at {path} itself"
        ));
    }
    Ok(())
}

fn folder_is_there(folder: &Path, is_in_root: bool) -> Result<(), String> {
    let path = folder.display();
    if is_in_root {
        return Err(format!(
            "a server in a root folder does not see {path}: the query log of such a server stays in the \
             run's folder (`--results` names another disk)"
        ));
    }
    if !folder.is_dir() {
        return Err(format!(
            "there is no folder {path} for the query log (`server.log.folder`)\n  hint:    make it, or \
             mount the disk"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syslog_without_a_reader_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("log");
        let refused = |is_in_root| syslog_is_read(&socket, is_in_root).unwrap_err();
        assert!(refused(false).contains("No such file"), "{}", refused(false));
        let reader = UnixDatagram::bind(&socket).unwrap();
        assert_eq!(syslog_is_read(&socket, true), Ok(()));
        // The file of a daemon that has ended stays.
        drop(reader);
        assert!(refused(false).contains("refused"), "{}", refused(false));
        let (other, link) = (folder.path().join("daemon"), folder.path().join("link"));
        let _reader = UnixDatagram::bind(&other).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert_eq!(syslog_is_read(&link, false), Ok(()));
        assert!(syslog_is_read(&link, true).unwrap_err().contains("symbolic link"));
    }

    #[test]
    fn a_folder_for_the_log_must_be_seen() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(folder_is_there(folder.path(), false), Ok(()));
        assert!(folder_is_there(folder.path(), true).unwrap_err().contains("does not see"));
        let absent = folder_is_there(&folder.path().join("disk"), false).unwrap_err();
        assert!(absent.contains("there is no folder") && absent.contains("hint:"), "{absent}");
    }

    #[test]
    fn the_files_are_those_that_are_written() {
        let files = |to: LogDestination, dnstap| -> Vec<String> {
            let query_log = Some(QueryLog { to, ..QueryLog::default() });
            let files = Logging { query_log, dnstap };
            files.files().map(|path| path.display().to_string()).collect()
        };
        let elsewhere = LogFile { folder: Some("/srv".into()), ..LogFile::default() };
        assert_eq!(files(LogDestination::File(LogFile::default()), false), ["query.log"]);
        assert_eq!(
            files(LogDestination::File(elsewhere), true),
            ["query-log/query.log", "dnstap.fstrm"]
        );
        assert_eq!(files(LogDestination::StandardError, false), ["query.log"]);
        assert!(files(LogDestination::Syslog, false).is_empty());
        assert_eq!(files(LogDestination::Null, true), ["dnstap.fstrm"]);
    }
}
