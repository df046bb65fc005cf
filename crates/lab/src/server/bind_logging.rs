//! The query log of BIND: its statement and its note. Options: BIND 9 Administrator Reference Manual, chapter
//! 8, "logging Block".

use dnslab_settings::{LogSuffix, TimeForm};

use super::logging::{LogDestination, LogFile, Logging, QUERY_LOG, QueryLog, Rotation};
use super::version::Version;

/// Whether this version writes such a query log; if not, why, as a sentence.
pub(super) fn is_known(version: &Version, logging: &Logging) -> Result<(), String> {
    let rotation = logging.query_log.as_ref().and_then(rotation);
    let is_by_time = rotation.is_some_and(|rotation| rotation.suffix == LogSuffix::Timestamp);
    let form = logging.query_log.as_ref().map_or(TimeForm::None, |log| log.print.time);
    let missing = match form {
        _ if version.is_at_least(9, 12) => return Ok(()),
        _ if is_by_time => "names no old logs by time".to_owned(),
        TimeForm::Iso8601 | TimeForm::Iso8601Utc => format!("prints no time as {form}"),
        TimeForm::Local | TimeForm::None => return Ok(()),
    };
    Err(format!("BIND {version} {missing}: it came with 9.12"))
}

pub(super) fn statement(log: &QueryLog) -> String {
    let destination = match &log.to {
        LogDestination::Syslog => "syslog daemon;".to_owned(),
        LogDestination::StandardError => "stderr;".to_owned(),
        LogDestination::Null => "null;".to_owned(),
        LogDestination::File(file) => {
            let path = log.file().expect("a log in a file has one");
            let rotation = file.rotation.as_ref().map(rotation_options).unwrap_or_default();
            let buffered = if file.is_buffered { " buffered yes;" } else { "" };
            format!("file \"{}\"{rotation};{buffered}", path.display())
        }
    };
    // `yes` means `local` since 9.12; older versions know nothing else.
    let time = match log.print.time {
        TimeForm::None => None,
        TimeForm::Local => Some("yes"),
        form => Some(form.name()),
    };
    let is_on = |is_on: bool| is_on.then_some("yes");
    let prefix = [
        ("time", time),
        ("category", is_on(log.print.category)),
        ("severity", is_on(log.print.severity)),
    ];
    let prefix: String = prefix
        .into_iter()
        .filter_map(|(what, how)| how.map(|how| format!(" print-{what} {how};")))
        .collect();
    format!(
        "logging {{\n    channel queries {{ {destination} severity info;{prefix} }};\n    category \
         queries {{ queries; }};\n}};\n"
    )
}

fn rotation_options(rotation: &Rotation) -> String {
    let Rotation { size_mib, versions, suffix } = rotation;
    let suffix = match suffix {
        LogSuffix::Increment => "",
        LogSuffix::Timestamp => " suffix timestamp",
    };
    format!(" versions {versions} size {size_mib}m{suffix}")
}

fn rotation(log: &QueryLog) -> Option<Rotation> {
    match &log.to {
        LogDestination::File(LogFile { rotation, .. }) => *rotation,
        _ => None,
    }
}

pub(super) fn note(log: &QueryLog) -> String {
    let destination = match &log.to {
        LogDestination::Syslog => {
            "to syslog, facility daemon: the daemon that reads them is not among the figures of the \
             server, and what it writes is not counted as octets of log"
                .to_owned()
        }
        LogDestination::StandardError => format!(
            "to standard error, a pipe that dnslab's guard reads into the file {QUERY_LOG}: the reader is \
             not among the figures of the server"
        ),
        LogDestination::Null => {
            "to the channel null: each line is formatted, and then dropped".to_owned()
        }
        LogDestination::File(file) => {
            let place = match &file.folder {
                Some(folder) => format!("a file in {}", folder.display()),
                None => format!("the file {QUERY_LOG}"),
            };
            let how = match file.is_buffered {
                true => "written when the buffer is full (buffered yes; default no)",
                false => "written after each line (buffered no, the default)",
            };
            let rotation = match file.rotation {
                Some(Rotation { size_mib, versions, .. }) => {
                    format!("a new file after {size_mib} MiB, {versions} old ones are kept")
                }
                None => "one file without a limit (the default)".to_owned(),
            };
            format!("into {place}, {how}, {rotation}")
        }
    };
    let print = &log.print;
    let time = (print.time != TimeForm::None).then(|| format!("time ({})", print.time));
    let others = [(print.category, "category"), (print.severity, "severity")];
    let others =
        others.into_iter().filter(|(is_on, _)| *is_on).map(|(_, category)| category.to_owned());
    let parts: Vec<String> = time.into_iter().chain(others).collect();
    let before = if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") };
    format!(
        "queries are logged (querylog) {destination}; before each message: {before}; all threads share \
         one lock, which is held while a line is formatted and written (isc_log_doit in BIND's \
         lib/isc/log.c)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::LogPrefix;

    #[test]
    fn each_destination_and_form_of_the_query_log() {
        let rotation = |suffix| Some(Rotation { size_mib: 100, versions: 5, suffix });
        let file = |is_buffered, rotation, folder: Option<&str>| {
            let folder = folder.map(Into::into);
            LogDestination::File(LogFile { folder, is_buffered, rotation })
        };
        let cases = [
            (file(false, None, None), "file \"query.log\"; severity info; print-time yes;"),
            (
                file(true, rotation(LogSuffix::Increment), None),
                "file \"query.log\" versions 5 size 100m; buffered yes; severity info; print-time yes;",
            ),
            (
                file(false, rotation(LogSuffix::Timestamp), Some("/srv/slow")),
                "file \"query-log/query.log\" versions 5 size 100m suffix timestamp; severity info; \
                 print-time yes;",
            ),
            (LogDestination::Syslog, "syslog daemon; severity info; print-time yes;"),
            (LogDestination::StandardError, "stderr; severity info; print-time yes;"),
            (LogDestination::Null, "null; severity info; print-time yes;"),
        ];
        for (to, expected) in cases {
            let text = statement(&QueryLog { to, ..QueryLog::default() });
            assert!(text.contains(&format!("channel queries {{ {expected} }};")), "{text}");
        }
        let print = LogPrefix { time: TimeForm::None, category: true, severity: true };
        let text = statement(&QueryLog { print, ..QueryLog::default() });
        assert!(
            text.contains("severity info; print-category yes; print-severity yes; }"),
            "{text}"
        );
        let print = LogPrefix { time: TimeForm::Iso8601Utc, category: false, severity: false };
        let utc = QueryLog { print, ..QueryLog::default() };
        assert!(statement(&utc).contains("severity info; print-time iso8601-utc; }"));
        let old = Version { text: "9.11.1".to_owned(), numbers: [9, 11, 1] };
        let to = file(false, rotation(LogSuffix::Timestamp), None);
        let query_log = Some(QueryLog { to, ..QueryLog::default() });
        assert_eq!(
            is_known(&old, &Logging { query_log, dnstap: false }).unwrap_err(),
            "BIND 9.11.1 names no old logs by time: it came with 9.12"
        );
        assert_eq!(
            is_known(&old, &Logging { query_log: Some(utc), dnstap: false }).unwrap_err(),
            "BIND 9.11.1 prints no time as iso8601-utc: it came with 9.12"
        );
        assert!(is_known(&old, &Logging::default()).is_ok());
    }
}
