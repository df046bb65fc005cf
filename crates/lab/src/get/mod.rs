//! Servers of other releases, fetched once into the cache: root folders made by debootstrap, and programs
//! built by Go.
//!
//! What is made has a temporary name until it is complete and its program has said its version; then it is
//! renamed. The tools run under a guard and with mounts of their own (debootstrap mounts `/proc` and `/sys`),
//! so whatever ends dnslab ends them too and leaves nothing mounted. A temporary folder may be left; the next
//! call removes it.

mod apt;
mod error;
mod place;
mod recipe;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::asked::Question;
use crate::cache::{Entry, EntryFacts};
use crate::ending::Ending;
use crate::file_system::FileSystem;
use crate::guarded::{GuardProgram, GuardSpec};
use crate::launch::Environment;
use crate::package::Remedy;
use crate::privileges::{self, RunAs, missing_rights};
use crate::process::RunningProcess;
use crate::root::Root;
use crate::running::log_tail;
use crate::server::{Version, look_up};
pub use error::GetError;
use place::Place;
pub use recipe::Recipe;
use recipe::Source;

/// How often the tool's end, its log and the wish to stop are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Time that an interrupted tool has to end. What it leaves is removed anyhow.
const GRACE: Duration = Duration::from_secs(1);

const SHOWN_LINES: usize = 10;

/// Where Debian's package `debian-archive-keyring` has the keys of all releases. Later releases use the
/// second name.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// Where debootstrap's own tools are, some of them outside an ordinary user's PATH.
const TOOLS_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The public log of the sums of modules.
const SUM_LOG: &str = "sum.golang.org";

/// No C compiler, and no module whose sum is not looked up.
const GO_SETTINGS: [&str; 5] =
    ["CGO_ENABLED=0", "GOFLAGS=", "GONOSUMDB=", "GOPRIVATE=", "GOINSECURE="];

/// Where Go's own archive is unpacked, for a Go that is not in PATH.
const GO_FOLDER: &str = "/usr/local/go/bin";

/// What is to be fetched, and how.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Which server.
    pub recipe: &'static Recipe,
    /// Folder of the cache; made if missing.
    pub cache: &'a Path,
    /// Debian mirror; `None` for the one that apt uses here.
    pub mirror: Option<&'a str>,
    /// The guard that the tools run under.
    pub guard: &'a GuardProgram,
    /// Set it to give up.
    pub stop: &'a AtomicBool,
}

struct Tool {
    command: Vec<String>,
    source: String,
    /// Where it runs. If it changes its user, that user has all of it meanwhile.
    directory: PathBuf,
    /// The user that it becomes; `None` for this process's user.
    run_as: Option<RunAs>,
}

/// Fetches a server into the cache, unless it is there. `progress` is told several times a second what is
/// being done.
///
/// # Errors
/// When a tool, a right or a key is missing, the tool fails (its log is kept), the version is another one, or
/// it was interrupted. Nothing half-made is left in its place.
pub fn get(request: &Request<'_>, progress: &mut dyn FnMut(&str)) -> Result<Entry, GetError> {
    let Request { recipe, cache, stop, .. } = *request;
    if let Some(entry) = crate::cache::read(cache, recipe.name()) {
        return Ok(entry);
    }
    // Before anything is written.
    check_tool(recipe)?;
    let place = Place::take(cache, recipe.name(), stop, progress)?;
    if let Some(entry) = place.entry() {
        return Ok(entry);
    }
    let tool = match recipe.source {
        Source::Debian { release, package } => debootstrap(request, release, package, &place)?,
        Source::Go { module, version } => go_install(module, version, &place)?,
    };
    run(request, &tool, &place, progress)?;
    progress("asking the program for its version");
    let version = version_of(recipe, &place, request.guard)?;
    place.clear_away_packages();
    let octets = place.octets();
    let facts =
        EntryFacts { version, program: recipe.program.path.into(), source: tool.source, octets };
    place.finish(&facts)
}

fn check_tool(recipe: &Recipe) -> Result<(), GetError> {
    match recipe.source {
        Source::Debian { .. } => {
            if find_tool("debootstrap").is_none() {
                let hint = Remedy::Package { debian: "debootstrap", fedora: "debootstrap" }.text();
                return Err(GetError::NoTool { name: recipe.name(), tool: "debootstrap", hint });
            }
            let missing = missing_rights();
            if !missing.is_empty() || !rustix::process::geteuid().is_root() {
                return Err(GetError::NotPrivileged { name: recipe.name() });
            }
            keyring().map(|_| ())
        }
        Source::Go { .. } if find_tool("go").is_none() => {
            let hint =
                "install Go 1.26 or later from https://go.dev/dl and put it in PATH".to_owned();
            Err(GetError::NoTool { name: recipe.name(), tool: "go", hint })
        }
        Source::Go { .. } => Ok(()),
    }
}

/// In PATH, or where Go usually is.
fn find_tool(name: &str) -> Option<PathBuf> {
    let in_folder = || Some(Path::new(GO_FOLDER).join(name)).filter(|path| path.exists());
    look_up(name.as_ref()).or_else(in_folder)
}

/// The keys that releases are signed with. Without them debootstrap would go on and verify nothing.
fn keyring() -> Result<&'static str, GetError> {
    let found = KEYRINGS.into_iter().find(|path| Path::new(path).exists());
    found.ok_or(GetError::NoKeyring { looked_for: KEYRINGS[0] })
}

fn debootstrap(
    request: &Request<'_>,
    release: &str,
    package: &str,
    place: &Place,
) -> Result<Tool, GetError> {
    let mirror = request.mirror.map_or_else(apt::mirror, str::to_owned);
    // The packages' scripts get this PATH too: programs that a user's PATH finds first must not run there.
    let mut command = vec!["env".to_owned(), "LC_ALL=C".to_owned(), format!("PATH={TOOLS_PATH}")];
    if let (None, Some(proxy)) = (std::env::var_os("http_proxy"), apt::proxy()) {
        command.push(format!("http_proxy={proxy}"));
    }
    let tool = find_tool("debootstrap").unwrap_or_else(|| "debootstrap".into());
    command.extend([
        text(&tool)?,
        "--variant=minbase".to_owned(),
        format!("--include={package}"),
        format!("--keyring={}", keyring()?),
        "--force-check-gpg".to_owned(),
        release.to_owned(),
        text(place.folder())?,
        mirror.clone(),
    ]);
    Ok(Tool {
        command,
        source: format!("{package} of Debian {release}, {mirror}"),
        directory: request.cache.to_owned(),
        run_as: None,
    })
}

/// Builds a program from its module and all that it needs, whose sums Go holds against the public log of sums
/// (<https://go.dev/ref/mod#checksum-database>) whatever the environment says. No compiler but Go's own runs, and as
/// root's build it is that of a user who has nothing else.
fn go_install(module: &str, version: &str, place: &Place) -> Result<Tool, GetError> {
    let folder = text(place.folder())?;
    // What an interrupted build leaves goes away with the place.
    let scratch = text(&place.make_folder("tmp")?)?;
    let tool = find_tool("go").unwrap_or_else(|| "go".into());
    let what = format!("{module}@{version}");
    let mut command =
        vec!["env".to_owned(), format!("GOBIN={folder}"), format!("GOTMPDIR={scratch}")];
    command.extend(GO_SETTINGS.map(str::to_owned));
    if std::env::var("GOSUMDB").is_ok_and(|log| !log.starts_with(SUM_LOG)) {
        command.push(format!("GOSUMDB={SUM_LOG}"));
    }
    let run_as = privileges::of_daemon(&tool, place.folder()).and_then(Result::ok);
    if run_as.is_some() {
        // It may neither read nor write root's.
        command
            .extend(["HOME", "GOPATH", "GOCACHE"].map(|name| format!("{name}={scratch}/{name}")));
        command.push("GOFLAGS=-modcacherw".to_owned());
    }
    command.extend([text(&tool)?, "install".to_owned(), "-trimpath".to_owned(), what.clone()]);
    Ok(Tool { command, source: what, directory: place.folder().to_owned(), run_as })
}

fn text(path: &Path) -> Result<String, GetError> {
    let text = path.to_str().ok_or_else(|| GetError::NotUtf8 { path: path.to_owned() })?;
    Ok(text.to_owned())
}

fn run(
    request: &Request<'_>,
    tool: &Tool,
    place: &Place,
    progress: &mut dyn FnMut(&str),
) -> Result<(), GetError> {
    let log = place.log().to_owned();
    let mut spec = GuardSpec::new(tool.command.clone(), tool.directory.clone(), log);
    spec.run_as = tool.run_as.clone();
    spec.environment = Environment::Whole;
    // A build as an ordinary user mounts nothing.
    if missing_rights().is_empty() {
        spec.file_system = FileSystem::OwnMounts;
    }
    let process = RunningProcess::start(request.guard, &spec)?;
    let report = loop {
        if let Some(report) = process.exited() {
            break report;
        }
        if request.stop.load(Ordering::Relaxed) {
            process.stop(GRACE);
            place.remove_log();
            return Err(GetError::Interrupted { name: request.recipe.name() });
        }
        let line = log_tail(place.log(), 1).ok().and_then(|mut lines| lines.pop());
        let line = line.unwrap_or_else(|| format!("making {}", tool.source));
        progress(line.strip_prefix("I: ").unwrap_or(&line));
        thread::sleep(LOOK_EVERY);
    };
    match report.ending {
        Ending::Exited(0) => Ok(()),
        ending => Err(failed(request.recipe, ending, tool, place)),
    }
}

/// Appends debootstrap's own log to that of the tool, before its folder goes.
fn failed(recipe: &Recipe, ending: Ending, tool: &Tool, place: &Place) -> GetError {
    if let Ok(inner) = fs::read(place.folder().join("debootstrap/debootstrap.log")) {
        place.append_to_log(&inner);
    }
    GetError::Failed {
        name: recipe.name(),
        ending,
        command: tool.command.clone(),
        log: place.log().to_owned(),
        log_tail: log_tail(place.log(), SHOWN_LINES).unwrap_or_default(),
        hint: match recipe.source {
            Source::Debian { .. } => {
                "where the mirror is the reason, `--mirror URL` names another: releases that are no \
                 longer supported move to http://archive.debian.org/debian"
            }
            Source::Go { .. } => "can the Go module proxy be reached (`go env GOPROXY`)?",
        },
    }
}

/// Asks the new program for its version, which proves that it is complete.
fn version_of(recipe: &Recipe, place: &Place, guard: &GuardProgram) -> Result<String, GetError> {
    let (path, argument) = (recipe.program.path, recipe.program.version_argument);
    if let Source::Go { version, .. } = recipe.source {
        let program = place.folder().join(path);
        // CoreDNS says `CoreDNS-1.15.0`, of which only Go's own version could be read.
        let user = privileges::to_ask_as(&program, None);
        let said = Question::new(&program, [argument]).by(user).ask(guard);
        let fine = said.is_ok_and(|said| said.succeeded);
        let version = version.trim_start_matches('v').to_owned();
        return if fine { Ok(version) } else { Err(GetError::NotWhole { program }) };
    }
    let root = Root::open(place.folder()).map_err(crate::LabError::from)?;
    let version = root.ask_version(&Path::new("/").join(path), argument, guard)?;
    match recipe.expected_version() {
        Some(expected) if !is_of(&version, expected) => {
            Err(GetError::OtherVersion { name: recipe.name(), found: version.text })
        }
        _ => Ok(version.text),
    }
}

/// True if `version` begins with the numbers of `expected`.
fn is_of(version: &Version, expected: &str) -> bool {
    let expected = expected.split('.').map(|number| number.parse().ok());
    expected.zip(version.numbers).all(|(expected, number)| expected == Some(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_told() {
        let version = Version { text: "9.20.11".to_owned(), numbers: [9, 20, 11] };
        assert!(is_of(&version, "9.20"));
        assert!(!is_of(&version, "9.2"));
        assert!(!is_of(&version, "9.16"));
    }

    #[test]
    fn tools_that_are_not_there_are_not_found() {
        assert!(find_tool("debootstrap-of-nobody").is_none());
        assert!(find_tool("sh").is_some());
    }
}
