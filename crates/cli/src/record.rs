//! `dnslab record`: dnstap from a live socket into a file. `replay` and `profile` take a socket, too.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fmt, thread};

use anyhow::{Context as _, anyhow};
use dnslab_capture::CaptureOptions;
use dnslab_lab::dnstap_socket::{
    DnstapAddress, DnstapSocket, ReceiveUntil, Received, Reception, SocketAccess,
};
use dnslab_record::visible_lines;
use dnslab_wire::units::{duration, number, octets};
use indicatif::ProgressBar;
use rustix::fs::OFlags;
use rustix::io::Errno;
use tempfile::NamedTempFile;

use crate::arguments::{Output, Record, SocketOptions};
use crate::exit::{Exit, Failure};
use crate::{signals, terminal};

/// How often to look for a reader of a pipe.
const LOOK: Duration = Duration::from_millis(50);

/// Connections whose beginning and end are told one by one. Of more, the sums are enough.
const TOLD: u32 = 10;

pub(crate) fn record(arguments: &Record) -> Result<Exit, Failure> {
    let Record { socket, file, access, duration, queries, force, quiet } = arguments;
    let until = ReceiveUntil { duration: *duration, queries: *queries };
    let stop = signals::stop_flag().context("cannot listen to signals")?;
    let live = Live::open(socket, access, *quiet)?;
    let output = create(file, *force, &stop)?;
    let received = live.receive(output, (until, CaptureOptions::default()), &stop)?;
    live.conclude(&received, file.display())?;
    Ok(Exit::Fine)
}

/// The file of a recording. It holds what people asked, so only its owner may read it.
fn create(path: &Path, force: bool, stop: &AtomicBool) -> Result<File, Failure> {
    let mut options = File::options();
    options.write(true).mode(0o600);
    match fs::metadata(path).map(|facts| facts.file_type()) {
        Ok(kind) if kind.is_dir() => {
            return Err(Failure::bad_input(anyhow!("{} is a folder: name a file", path.display())));
        }
        Ok(kind) if kind.is_file() && !force => {
            return Err(Failure::bad_input(anyhow!(
                "{} exists: name another file, or replace it with --force",
                path.display()
            )));
        }
        // A link may lead anywhere.
        Ok(kind) if kind.is_file() => {
            options.truncate(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        }
        Ok(kind) if kind.is_fifo() => return open_pipe(path, stop),
        // A device.
        Ok(_) => &mut options,
        Err(_) => options.create_new(true),
    };
    let cannot = || format!("cannot write {}", path.display());
    let file = options.open(path).with_context(cannot)?;
    let is_regular = file.metadata().is_ok_and(|facts| facts.is_file());
    if is_regular {
        // One that is replaced had a mode of its own.
        file.set_permissions(Permissions::from_mode(0o600)).with_context(cannot)?;
    }
    Ok(file)
}

/// Opens a pipe as soon as somebody reads from it.
fn open_pipe(path: &Path, stop: &AtomicBool) -> Result<File, Failure> {
    let mut options = File::options();
    options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let cannot = || format!("cannot write {}", path.display());
    loop {
        match options.open(path) {
            Ok(file) => {
                // From here on a reader that is slow is waited for.
                rustix::fs::fcntl_setfl(&file, OFlags::WRONLY).with_context(cannot)?;
                return Ok(file);
            }
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {}
            Err(error) => return Err(anyhow!(error).context(cannot()).into()),
        }
        if was_interrupted(stop) {
            let error = anyhow!("interrupted: nobody reads from the pipe {}", path.display());
            return Err(Failure { exit: Exit::Interrupted, error });
        }
        thread::sleep(LOOK);
    }
}

/// Makes an empty file for a recording, in a folder that is made if it is missing. It is removed unless it is kept.
pub(crate) fn create_in(folder: &Path) -> Result<NamedTempFile, Failure> {
    let cannot = || format!("cannot make a file in {}", folder.display());
    let folder = std::path::absolute(folder).context("there is no current folder")?;
    fs::create_dir_all(&folder).with_context(cannot)?;
    let file = tempfile::Builder::new().prefix("recording-").suffix(".dnstap").tempfile_in(folder);
    Ok(file.with_context(cannot)?)
}

/// A socket that is listened at, and what is told of it.
pub(crate) struct Live {
    socket: DnstapSocket,
    is_quiet: bool,
}

impl Live {
    pub(crate) fn open(
        address: &DnstapAddress,
        access: &SocketOptions,
        is_quiet: bool,
    ) -> Result<Self, Failure> {
        let mode = access.socket_mode.unwrap_or(SocketAccess::MODE);
        let access = SocketAccess { owner: access.socket_owner, mode };
        let socket = DnstapSocket::listen(address, access)?;
        Ok(Self { socket, is_quiet })
    }

    /// Receives into the file, which is whole then, and says on the way what it waits for and what comes.
    pub(crate) fn receive(
        &self,
        file: File,
        (until, options): (ReceiveUntil, CaptureOptions),
        stop: &AtomicBool,
    ) -> Result<Received, Failure> {
        let ends = match (until.duration, until.queries) {
            (None, None) => "Ctrl-C ends it".to_owned(),
            (Some(length), None) => {
                format!("it ends {} after the first message", duration::in_words(length))
            }
            (None, Some(most)) => format!("it ends after {} queries", number::count(most)),
            (Some(length), Some(most)) => format!(
                "it ends {} after the first message, or after {} queries",
                duration::in_words(length),
                number::count(most)
            ),
        };
        self.tell(&format!(
            "waiting for servers that send dnstap to {}; {} may connect; {ends}",
            self.socket.address(),
            self.socket.who_may_connect()
        ));
        let output = Output { quiet: self.is_quiet, ..Output::default() };
        let bar = terminal::bar(ProgressBar::new_spinner(), output);
        let mut telling = Telling { live: self, bar: &bar, lines: 0 };
        let mut observe = |event: Reception<'_>| telling.observe(event);
        let received = self.socket.receive(file, (until, options), stop, &mut observe);
        bar.finish_and_clear();
        Ok(received?)
    }

    /// Says what came into the file.
    ///
    /// # Errors
    /// When nothing came.
    pub(crate) fn conclude(
        &self,
        received: &Received,
        file: impl fmt::Display,
    ) -> Result<(), Failure> {
        for refused in &received.refused {
            let count = number::count(refused.count);
            self.tell(&format!("connections sent away: {count}: {}", refused.example));
        }
        let counts = &received.counts;
        let reasons = counts.left_out().into_iter();
        let reasons = reasons.map(|(reason, count)| format!("{} ({reason})", number::count(count)));
        let reasons: Vec<String> = reasons.collect();
        if !reasons.is_empty() {
            self.tell(&format!("messages that are no queries of clients: {}", reasons.join(", ")));
        }
        if counts.packets == 0 {
            return Err(anyhow!(
                "no message came to {}: switch dnstap on in the server, and let it send there (docs/REPLAY.md)",
                self.socket.address()
            )
            .into());
        }
        self.tell(&format!("{} in {file}", what_came(received)));
        Ok(())
    }

    fn tell(&self, line: &str) {
        if !self.is_quiet {
            tell!("{line}");
        }
    }
}

/// What is said while messages come.
struct Telling<'a> {
    live: &'a Live,
    bar: &'a ProgressBar,
    lines: u32,
}

impl Telling<'_> {
    fn observe(&mut self, event: Reception<'_>) {
        match event {
            Reception::Begins => self.tell("a server has begun to send"),
            Reception::Ends { in_order: true } => self.tell("a server has ended its stream"),
            Reception::Ends { in_order: false } => {
                self.tell("a connection has ended without the end of its stream");
            }
            Reception::Refused(refusal) => self.tell(&format!("sent a connection away: {refusal}")),
            Reception::Tick(received) => {
                self.bar.set_message(what_came(received));
                self.bar.tick();
            }
        }
    }

    /// Above the bar, if that is shown.
    fn tell(&mut self, line: &str) {
        self.lines += 1;
        let line = match self.lines {
            ..=TOLD => line,
            lines if lines == TOLD + 1 => "and so on: the sums follow",
            _ => return,
        };
        match self.bar.is_hidden() {
            true => self.live.tell(line),
            false => self.bar.println(visible_lines(line)),
        }
    }
}

fn what_came(received: &Received) -> String {
    format!(
        "{} with {} in {}, {}",
        number::counted(received.counts.packets, "message", "messages"),
        number::counted(received.counts.queries, "query", "queries"),
        duration::rounded(received.lasted.as_nanos() as f64),
        octets::rounded(received.octets),
    )
}

/// Whether Ctrl-C ended it.
pub(crate) fn was_interrupted(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}
