//! The query log of BIND, at each destination.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use dnslab_lab::{
    LogDestination, LogFile, Logging, QUERY_LOG, QueryLog, SYSLOG_SOCKET, ServerKind,
};
use dnslab_wire::Transport;

use crate::support::{ask, refused, spec, started, wait_until};

const LINE: &str = "query: alf.example.test IN A";

/// Gives `look` the server's folder and the number of queries that it answered, after it has ended.
fn logged(to: LogDestination, look: impl FnOnce(&Path, usize)) {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(ServerKind::Bind, folder.path(), "127.0.0.1", &[Transport::Udp]);
    spec.logging.query_log = Some(QueryLog { to, ..QueryLog::default() });
    let server = started(&spec, folder.path());
    let address = server.address(Transport::Udp).unwrap();
    for _ in 0..10 {
        ask(folder.path(), Transport::Udp, address).unwrap();
    }
    let counted = server.count().unwrap().finish(std::time::Instant::now());
    let counted = counted.total(dnslab_record::counter::QUERIES).unwrap();
    server.stop().unwrap();
    look(&spec.directory, usize::try_from(counted).unwrap());
}

fn queries(file: &Path) -> usize {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter(|line| line.contains(LINE)).count()
}

#[test]
fn standard_error_is_read_to_its_end() {
    logged(LogDestination::StandardError, |folder, asked| {
        assert_eq!(queries(&folder.join(QUERY_LOG)), asked);
        assert_eq!(queries(&folder.join("server.log")), 0);
    });
}

#[test]
fn a_buffer_is_written_when_the_server_ends() {
    let file = LogFile { is_buffered: true, ..LogFile::default() };
    logged(LogDestination::File(file), |folder, asked| {
        assert_eq!(queries(&folder.join(QUERY_LOG)), asked);
    });
}

#[test]
fn a_log_in_a_folder_of_its_own() {
    let other = tempfile::tempdir().unwrap();
    let file = LogFile { folder: Some(other.path().to_owned()), ..LogFile::default() };
    logged(LogDestination::File(file), |folder, asked| {
        assert!(!folder.join(QUERY_LOG).exists());
        let own = fs::read_link(folder.join("query-log")).unwrap();
        assert!(own.starts_with(other.path()), "{own:?}");
        assert_eq!(queries(&own.join(QUERY_LOG)), asked);
    });
}

#[test]
fn the_channel_null_writes_nothing() {
    logged(LogDestination::Null, |folder, _| {
        assert!(!folder.join(QUERY_LOG).exists());
        assert_eq!(queries(&folder.join("server.log")), 0);
    });
}

struct Rsyslogd {
    child: Child,
}

impl Rsyslogd {
    /// Listens at [`SYSLOG_SOCKET`] and writes to the file `messages` in `folder`.
    fn start(folder: &Path) -> Self {
        let configuration = folder.join("rsyslog.conf");
        let text = format!(
            "module(load=\"imuxsock\" SysSock.Name=\"{SYSLOG_SOCKET}\")\n*.* {}\n",
            folder.join("messages").display()
        );
        fs::write(&configuration, text).unwrap();
        let child = Command::new("/usr/sbin/rsyslogd")
            .args(["-n", "-f"])
            .arg(&configuration)
            .arg("-i")
            .arg(folder.join("rsyslog.pid"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("rsyslogd: {error}: apt-get install rsyslog"));
        Self { child }
    }
}

impl Drop for Rsyslogd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        fs::remove_file(SYSLOG_SOCKET).ok();
    }
}

/// Without a daemon the server is not started; with one, each query arrives there.
#[test]
fn syslog_needs_somebody_who_reads() {
    let logging = Logging {
        query_log: Some(QueryLog { to: LogDestination::Syslog, ..QueryLog::default() }),
        dnstap: false,
    };
    if Path::new(SYSLOG_SOCKET).exists() {
        // The machine's own daemon may write anywhere.
        logged(LogDestination::Syslog, |folder, _| assert!(!folder.join(QUERY_LOG).exists()));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut unread = spec(ServerKind::Bind, folder.path(), "127.0.0.1", &[Transport::Udp]);
    unread.logging = logging;
    let error = refused(&unread);
    let text = error.to_string();
    assert!(text.contains("no syslog daemon reads /dev/log") && text.contains("hint:"), "{text}");
    let daemon = Rsyslogd::start(folder.path());
    wait_until("the syslog daemon listens", || Path::new(SYSLOG_SOCKET).exists());
    logged(LogDestination::Syslog, |_, asked| {
        wait_until("the syslog daemon has written each query", || {
            queries(&folder.path().join("messages")) == asked
        });
    });
    drop(daemon);
}
