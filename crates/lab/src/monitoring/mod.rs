//! The monitoring stack: a Prometheus that takes what dnslab measures, with exporters of BIND and of this machine.
//!
//! Its processes live on when the command that starts them has ended (`daemon`), in a folder that says which they are.
//! So any later call finds them, and ends these and no others.

pub(crate) mod daemon;
mod parts;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::iter;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use dnslab_wire::Transport;
use rustix::fs::FlockOperation;

pub use daemon::Ended;
pub use parts::{Part, SCRAPE_SECONDS, StackSettings};

use crate::ending::Ending;
use crate::error::{Exited, LabError, NotInstalled, NotReady, refused};
use crate::guarded::GuardProgram;
use crate::ports;
use crate::privileges::{self, StaysRoot};
use crate::regular::open_regular;
use crate::running::log_tail;
use crate::server::{http, look_up, looked_in};
use crate::sockets::{self, Owner};
use crate::users::{self, Trusted};
use daemon::{DaemonRecord, DaemonSpec};

/// File that says with which settings the stack was started last. A folder with it is a stack's.
const SETTINGS: &str = "monitor.json";

/// One call at a time has it.
const LOCK: &str = "lock";

/// How long a part may take until it answers. A busy machine and a large store take their time.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often to ask.
const LOOK: Duration = Duration::from_millis(50);

/// How long a part may take to end: Prometheus writes what it has in memory.
const GRACE: Duration = Duration::from_secs(30);

/// Lines of a log in an error.
const TAIL: usize = 5;

/// Why a stack cannot be started, looked at or stopped.
#[derive(Debug, thiserror::Error)]
pub enum MonitoringError {
    /// The folder is somebody else's.
    #[error(
        "{} is not empty, and no folder of `dnslab monitor`\n  hint:    name another one with --folder; it may not exist \
         yet", .0.display()
    )]
    Foreign(PathBuf),
    /// Somebody else says what is in the folder.
    #[error(
        "the folder {} is not safe, because {doubt}: its files say which processes to end, and where to write\n  \
         hint:    name a folder of your own, in one of your own, with --folder", folder.display()
    )]
    NotOwn {
        /// The folder.
        folder: PathBuf,
        /// Which folder is somebody else's or may be written by others, as half a sentence.
        doubt: String,
    },
    /// Another call works there.
    #[error("another `dnslab monitor` is at work in {}\n  hint:    wait until it has ended", .0.display())]
    Busy(PathBuf),
    /// A port has an owner.
    #[error(
        "cannot start {} on {address}: another process owns the port: {owner}\n  hint:    choose another one with {} \
         PORT, or end that process", part.title(), part.option()
    )]
    PortTaken {
        /// What was to listen there.
        part: Part,
        /// Where.
        address: SocketAddr,
        /// Who does.
        owner: Owner,
    },
    /// What is common to all processes.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A process does not end.
    #[error("cannot end {} (process {pid}): {source}", part.title())]
    Stays {
        /// Which.
        part: Part,
        /// Its number.
        pid: u32,
        /// What the system says.
        source: io::Error,
    },
}

/// How a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs, as this process.
    Up(u32),
    /// It does not run.
    Down,
    /// It does not run, and is not installed.
    NotInstalled,
}

/// A stack as it is now.
#[derive(Debug)]
pub struct Stack {
    /// Its folder, absolute.
    pub folder: PathBuf,
    /// Those with which it was started.
    pub settings: StackSettings,
    /// How each part is.
    pub parts: Vec<(Part, State)>,
}

/// A stack that is up.
#[derive(Debug)]
pub struct Raised {
    /// All that is installed runs.
    pub stack: Stack,
    /// What was started now; empty if all of it ran before.
    pub started: Vec<Part>,
    /// Why a part runs as root, as a sentence for each.
    pub remarks: Vec<String>,
}

impl Stack {
    /// Starts what does not run yet, and waits until it is ready. What runs keeps the settings of its start.
    /// `program` becomes the processes.
    ///
    /// # Errors
    /// When Prometheus is not installed, a port is taken, a part ends or is not ready in time, or the folder cannot be
    /// used. What was started is ended then.
    pub fn up(
        folder: &Path,
        settings: &StackSettings,
        program: &GuardProgram,
    ) -> Result<Raised, MonitoringError> {
        fs::create_dir_all(folder).map_err(refused("create", folder))?;
        let place = Place::take(folder)?;
        let running = |part: &Part| matches!(place.state(*part), State::Up(_));
        let is_any_up = Part::ALL.iter().any(running);
        let settings = match place.settings().filter(|_| is_any_up) {
            Some(its) => its,
            None => settings.clone(),
        };
        place.write_settings(&settings)?;
        let installed = installed()?;
        let missing: Vec<&(Part, PathBuf)> =
            installed.iter().filter(|(part, _)| !running(part)).collect();
        for (part, _) in &missing {
            check_port(*part, settings.address(*part))?;
        }
        let mut starting = Starting { place: &place, children: Vec::new(), remarks: Vec::new() };
        let begun = missing
            .iter()
            .try_for_each(|(part, path)| starting.start(*part, path, program, &settings));
        if let Err(error) = begun.and_then(|()| starting.wait(&settings)) {
            starting.undo();
            return Err(error);
        }
        let Starting { children, remarks, .. } = starting;
        let started = children.iter().map(|(part, _)| *part).collect();
        Ok(Raised { stack: place.stack(settings), started, remarks })
    }

    /// How it is; `None` if there never was one in this folder.
    #[must_use]
    pub fn status(folder: &Path) -> Option<Self> {
        let place = Place { folder: folder.canonicalize().ok()?, _lock: None };
        Some(place.stack(place.settings()?))
    }

    /// Ends what runs, and says how each part ended. The data stays. `None` if there never was one in this folder.
    ///
    /// # Errors
    /// When another call is at work there, or a process does not end.
    pub fn down(folder: &Path) -> Result<Option<Vec<(Part, Ended)>>, MonitoringError> {
        if !folder.join(SETTINGS).exists() {
            return Ok(None);
        }
        let place = Place::take(folder)?;
        let mut ended = Vec::new();
        // Prometheus first: it would note that the others are gone.
        for part in Part::ALL {
            if let Some(how) = place.end(part)? {
                ended.push((part, how));
            }
        }
        Ok(Some(ended))
    }

    /// Where its Prometheus keeps what it stores.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.join(Part::Prometheus.name()).join(parts::DATA)
    }
}

/// The installed parts with their programs. Prometheus must be among them.
fn installed() -> Result<Vec<(Part, PathBuf)>, MonitoringError> {
    let found = |part: Part| Some((part, look_up(part.program().as_ref())?));
    let parts: Vec<(Part, PathBuf)> = Part::ALL.into_iter().filter_map(found).collect();
    if parts.first().is_some_and(|(part, _)| *part == Part::Prometheus) {
        return Ok(parts);
    }
    Err(LabError::NotInstalled(NotInstalled {
        kind: Part::Prometheus.title(),
        program: Part::Prometheus.program().to_owned(),
        looked_in: looked_in(),
        hint: Part::Prometheus.remedy().to_owned(),
    })
    .into())
}

fn check_port(part: Part, address: SocketAddr) -> Result<(), MonitoringError> {
    match ports::check(Transport::Tcp, address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let owner = sockets::owner(Transport::Tcp, address).unwrap_or(Owner { process: None });
            Err(MonitoringError::PortTaken { part, address, owner })
        }
        Err(source) => Err(LabError::Specification {
            field: part.option(),
            value: address.port().to_string(),
            reason: source.to_string(),
        }
        .into()),
        Ok(()) => Ok(()),
    }
}

/// The folder of a stack, held by this call.
struct Place {
    /// Absolute, without symbolic links.
    folder: PathBuf,
    _lock: Option<File>,
}

impl Place {
    /// Takes a folder that exists.
    fn take(folder: &Path) -> Result<Self, MonitoringError> {
        let folder = folder.canonicalize().map_err(refused("find", folder))?;
        let trusted = Trusted::of_this_process();
        // In the folder itself a stranger must not even add files: they say what to do.
        let own = trusted.doubt_of(&folder.display().to_string(), folder.metadata().ok().as_ref());
        if let Some(doubt) = own.or_else(|| trusted.doubt_of_folders(&folder, "")) {
            return Err(MonitoringError::NotOwn { folder, doubt });
        }
        let path = folder.join(LOCK);
        let mut entries = fs::read_dir(&folder).map_err(refused("read", &folder))?.flatten();
        let is_new = entries.all(|entry| entry.file_name() == LOCK);
        if !folder.join(SETTINGS).exists() && !is_new {
            return Err(MonitoringError::Foreign(folder));
        }
        let mut how = OpenOptions::new();
        let lock = open_regular(&path, how.create(true).write(true).truncate(true));
        let lock = lock.map_err(refused("create", &path))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { folder, _lock: Some(lock) }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(MonitoringError::Busy(folder)),
            Err(error) => Err(refused("lock", &path)(error.into()).into()),
        }
    }

    fn settings(&self) -> Option<StackSettings> {
        serde_json::from_str(&fs::read_to_string(self.folder.join(SETTINGS)).ok()?).ok()
    }

    /// Whole or not at all.
    fn write_settings(&self, settings: &StackSettings) -> Result<(), LabError> {
        let path = self.folder.join(SETTINGS);
        let part = path.with_extension("part");
        let text = serde_json::to_string_pretty(settings).expect("its keys are text");
        fs::write(&part, text + "\n")
            .and_then(|()| fs::rename(&part, &path))
            .map_err(refused("write", &path))
    }

    fn record_path(&self, part: Part) -> PathBuf {
        self.folder.join(part.name()).with_extension("process")
    }

    fn record(&self, part: Part) -> Option<DaemonRecord> {
        daemon::recorded(&self.record_path(part))
    }

    /// Its working directory.
    fn directory(&self, part: Part) -> PathBuf {
        self.folder.join(part.name())
    }

    fn log(&self, part: Part) -> PathBuf {
        self.directory(part).join("log")
    }

    fn state(&self, part: Part) -> State {
        match self.record(part) {
            Some(record) if record.id.is_alive() => State::Up(record.id.pid),
            _ if look_up(part.program().as_ref()).is_none() => State::NotInstalled,
            _ => State::Down,
        }
    }

    fn stack(&self, settings: StackSettings) -> Stack {
        let parts = Part::ALL.into_iter().map(|part| (part, self.state(part))).collect();
        Stack { folder: self.folder.clone(), settings, parts }
    }

    /// Ends a part, if there is a record of it, and removes the record. A process of another user than the part's is none
    /// of the stack's, whatever the record says.
    fn end(&self, part: Part) -> Result<Option<Ended>, MonitoringError> {
        let Some(record) = self.record(part) else { return Ok(None) };
        let pid = record.id.pid;
        let user = record.run_as.as_ref().map_or(users::own(), |run_as| run_as.user.uid);
        let ended = match users::number_of_process(pid) {
            Some(number) if number != user => Ok(Ended::Before),
            _ => record.id.end(GRACE),
        };
        let ended = ended.map_err(|source| MonitoringError::Stays { part, pid, source })?;
        if let Some(run_as) = &record.run_as {
            run_as.take_back(&self.directory(part));
        }
        let path = self.record_path(part);
        fs::remove_file(&path).map_err(refused("remove", &path))?;
        Ok(Some(ended))
    }
}

/// Parts that are being started.
struct Starting<'a> {
    place: &'a Place,
    children: Vec<(Part, (Child, Vec<String>))>,
    remarks: Vec<String>,
}

impl Starting<'_> {
    fn start(
        &mut self,
        part: Part,
        path: &Path,
        program: &GuardProgram,
        settings: &StackSettings,
    ) -> Result<(), MonitoringError> {
        // What is left of one that has ended by itself.
        self.place.end(part)?;
        let directory = self.place.directory(part);
        fs::create_dir_all(&directory).map_err(refused("create", &directory))?;
        if part == Part::Prometheus {
            let path = directory.join(parts::CONFIGURATION);
            // The folder is the program's own: what it made of the file must lead nowhere else.
            let mut how = OpenOptions::new();
            let file = open_regular(&path, how.create(true).write(true).truncate(true));
            file.and_then(|mut file| file.write_all(parts::configuration(settings).as_bytes()))
                .map_err(refused("write", &path))?;
        }
        let run_as = match privileges::of_daemon(path, &directory) {
            Some(Err(StaysRoot(why))) => {
                self.remarks.push(format!("{} {why}", part.title()));
                None
            }
            Some(Ok(run_as)) => Some(run_as),
            None => None,
        };
        let arguments = part.arguments(settings);
        let words = arguments.iter().map(OsString::from);
        let spec = DaemonSpec {
            command: iter::once(path.into()).chain(words).collect(),
            log: self.place.log(part),
            record: self.place.record_path(part),
            directory,
            run_as,
        };
        let child = daemon::start(program, &spec).map_err(refused("start", path))?;
        let shown = iter::once(path.display().to_string()).chain(arguments).collect();
        self.children.push((part, (child, shown)));
        Ok(())
    }

    /// Waits until all of them answer.
    fn wait(&mut self, settings: &StackSettings) -> Result<(), MonitoringError> {
        let begin = Instant::now();
        for (part, (child, command)) in &mut self.children {
            let log = self.place.log(*part);
            let tail = || log_tail(&log, TAIL).unwrap_or_default();
            let (kind, address) = (part.title(), settings.address(*part));
            loop {
                if let Some(status) = child.try_wait().map_err(refused("watch", &log))? {
                    let ending = match (status.code(), status.signal()) {
                        (Some(code), _) => Ending::Exited(code),
                        (None, signal) => signal.map_or(Ending::Unknown, Ending::Signaled),
                    };
                    let exited = Exited {
                        kind,
                        ending,
                        command: command.clone(),
                        log_tail: tail(),
                        log,
                        hint: None,
                    };
                    return Err(LabError::Exited(Box::new(exited)).into());
                }
                let Err(missing) = http::body(address, part.ready_path()) else { break };
                if begin.elapsed() > PATIENCE {
                    let not_ready = NotReady {
                        kind,
                        waited: begin.elapsed(),
                        missing: vec![missing],
                        command: command.clone(),
                        log_tail: tail(),
                        log,
                        hint: None,
                    };
                    return Err(LabError::NotReady(Box::new(not_ready)).into());
                }
                thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    /// Ends all of them.
    fn undo(self) {
        for (part, (mut child, _)) in self.children {
            // Before it has a record, it is our child alone.
            if self.place.record(part).is_none() {
                child.kill().ok();
            }
            self.place.end(part).ok();
            child.wait().ok();
        }
    }
}
