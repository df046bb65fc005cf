//! Which servers are installed, and what their versions can do.

use std::env;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use dnslab_settings::{CacheSize, CacheUnit, ServerKind};
use dnslab_wire::Transport;

use super::adapters::adapter;
use super::logging::Logging;
use super::spec::ServerSpec;
use super::version::Version;
use crate::asked::Question;
use crate::error::{LabError, NotInstalled, refused};
use crate::guarded::GuardProgram;
use crate::{cache, privileges};

/// Where servers are that are not in an ordinary user's PATH.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// A server that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Which server.
    pub kind: ServerKind,
    /// Its program.
    pub binary: PathBuf,
    /// Its version.
    pub version: Version,
}

/// What an experiment needs of a server; a version is judged by it before anything is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Over which clients ask it.
    pub transport: Transport,
    /// Over which it forwards; `None` if it answers from a zone or resolves by itself.
    pub upstream: Option<Transport>,
    /// It resolves by itself, beginning at root servers.
    pub resolves: bool,
    /// It validates what it is told.
    pub validates: bool,
    /// How much it keeps.
    pub cache: CacheSize,
    /// What it writes of each query.
    pub logging: Logging,
    /// It runs in a root folder of its own.
    pub is_in_root: bool,
}

impl Needs {
    /// One for each transport of a specification.
    pub(crate) fn of(spec: &ServerSpec) -> impl Iterator<Item = Self> {
        spec.transports.iter().map(|transport| Self {
            transport: *transport,
            upstream: spec.upstream.as_ref().map(|upstream| upstream.transport),
            resolves: spec.root_hints.is_some(),
            validates: spec.validates(),
            cache: spec.cache,
            logging: spec.logging.clone(),
            is_in_root: spec.root.is_some(),
        })
    }
}

impl Installed {
    /// Whether this version serves `transport`.
    ///
    /// # Errors
    /// When it does not: why, as a sentence.
    pub fn supports(&self, transport: Transport) -> Result<(), String> {
        adapter(self.kind).supports(&self.version, transport)
    }

    /// Whether it can be started as `spec` says.
    ///
    /// # Errors
    /// When it cannot: what and why, as a sentence.
    pub fn can_start(&self, spec: &ServerSpec) -> Result<(), String> {
        adapter(self.kind).takes(spec)?;
        Needs::of(spec).try_for_each(|needs| self.can(&needs))
    }

    /// Whether this version can do what is needed of it.
    ///
    /// # Errors
    /// When it cannot: what and why, as a sentence.
    pub fn can(&self, needs: &Needs) -> Result<(), String> {
        let adapter = adapter(self.kind);
        self.supports(needs.transport)?;
        if let Some(transport) = needs.upstream {
            adapter.forwards(&self.version, transport)?;
        }
        if needs.resolves {
            adapter.resolves(&self.version)?;
        }
        if needs.validates {
            adapter.validates(&self.version)?;
        }
        let title = adapter.title();
        let unit = self.kind.profile().cache_unit;
        match needs.cache {
            CacheSize::None if !adapter.runs_without_cache() => {
                return Err(format!("dnslab does not know how {title} runs without a cache"));
            }
            CacheSize::Entries(_) if unit != Some(CacheUnit::Entries) => {
                return Err(format!("{title} does not bound its cache by entries"));
            }
            CacheSize::Mebibytes(_) if unit != Some(CacheUnit::Memory) => {
                return Err(format!("{title} does not bound its cache by memory"));
            }
            _ => {}
        }
        adapter.logs(&self.version, &needs.logging)?;
        needs.logging.is_possible(needs.is_in_root)
    }
}

/// Finds the program of a server and asks it for its version, under `guard`. Without `binary` it is looked for in PATH, then
/// in the system's folders. The embedded server is the running program.
///
/// # Errors
/// When there is none (with the package to install), or it does not say its version.
pub fn find(
    kind: ServerKind,
    binary: Option<&Path>,
    guard: &GuardProgram,
) -> Result<Installed, LabError> {
    let binary = match (binary, kind) {
        (Some(path), _) => named_program(kind, path)?,
        (None, ServerKind::Embedded) => {
            let version = Version::find(env!("CARGO_PKG_VERSION")).expect("cargo checks versions");
            let this = Path::new("/proc/self/exe");
            let named = env::current_exe().map_err(refused("find", this))?;
            // A build or an upgrade has meanwhile removed this name or given it to another program. The
            // guard, which starts the server, is still this program.
            let is_there = named.exists();
            let binary = if is_there { named } else { this.to_owned() };
            return Ok(Installed { kind, binary, version });
        }
        (None, _) => search(kind)?,
    };
    let argument = adapter(kind).facts().version_argument;
    let user = privileges::to_ask_as(&binary, None);
    let question = Question::new(&binary, [argument]).by(user);
    let version = ask_version(&question, &binary, argument, guard)?;
    Ok(Installed { kind, binary, version })
}

/// The program that the user names: a path, or a name to be looked up. It is not run.
///
/// # Errors
/// When there is none.
pub fn named_program(kind: ServerKind, path: &Path) -> Result<PathBuf, LabError> {
    // As in a shell: a file of the working directory needs a `/` to be a path.
    if is_name(path) {
        let hint = "a program of the working directory is named with its folder: ./NAME";
        return look_up(path).ok_or_else(|| missing(kind, path, looked_in(), hint));
    }
    // The command runs in another folder, where a relative path would mean another file.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if is_executable(&absolute) {
        return Ok(absolute);
    }
    let folder = absolute.parent().unwrap_or(Path::new("/")).display().to_string();
    Err(missing(kind, path, vec![folder], "the file must exist and be executable"))
}

fn missing(kind: ServerKind, path: &Path, looked_in: Vec<String>, hint: &str) -> LabError {
    LabError::NotInstalled(NotInstalled {
        kind: kind.name(),
        program: path.display().to_string(),
        looked_in,
        hint: hint.to_owned(),
    })
}

fn is_name(path: &Path) -> bool {
    !path.as_os_str().as_encoded_bytes().contains(&b'/')
}

/// Whether a server's program is where [`find`] looks for it. Nothing is run.
#[must_use]
pub fn is_installed(kind: ServerKind) -> bool {
    kind == ServerKind::Embedded || look_up(kind.profile().program.as_ref()).is_some()
}

pub(crate) fn looked_in() -> Vec<String> {
    ["PATH"].into_iter().chain(SYSTEM_FOLDERS).map(str::to_owned).collect()
}

fn search(kind: ServerKind) -> Result<PathBuf, LabError> {
    let (program, remedy) = (kind.profile().program, adapter(kind).facts().remedy);
    look_up(program.as_ref()).ok_or_else(|| {
        LabError::NotInstalled(NotInstalled {
            kind: kind.name(),
            program: program.to_owned(),
            looked_in: looked_in(),
            hint: remedy.text(),
        })
    })
}

/// Looks in PATH, the system's folders, and what the cache has under this name.
pub(crate) fn look_up(name: &Path) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(SYSTEM_FOLDERS.map(PathBuf::from));
    let folders = folders.chain(cache::folder().map(|cache| cache.join(name)));
    folders.map(|folder| folder.join(name)).find(|file| is_executable(file))
}

pub(crate) fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

/// Asks a program for its version, which NSD writes to standard error and the others to standard output. The question
/// ends with `argument`.
pub(crate) fn ask_version(
    question: &Question,
    binary: &Path,
    argument: &str,
    guard: &GuardProgram,
) -> Result<Version, LabError> {
    let unknown = |reason| LabError::Version { binary: binary.to_owned(), reason };
    let said = question.ask(guard).map_err(|error| unknown(error.to_string()))?;
    let text = said.output + &said.error;
    Version::find(&text).ok_or_else(|| {
        unknown(format!("`{argument}` printed `{}`", text.lines().next().unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_say_them() {
        let cases = [
            ("BIND 9.18.49-1~deb12u3-Debian (Extended Support Version) <id:>", [9, 18, 49]),
            ("knotd (Knot DNS), version 3.2.6", [3, 2, 6]),
            ("NSD version 4.6.1\nWritten by NLnet Labs.\n", [4, 6, 1]),
            ("Knot DNS, version 3.5.dev.1730000000.abc", [3, 5, 0]),
            ("dnslab v0.1.0", [0, 1, 0]),
            ("CoreDNS-1.15.0\nlinux/amd64, go1.26.8, ", [1, 15, 0]),
            ("Nov 21 07:34:27 PowerDNS Recursor 4.8.8 (C) 2001-2022 PowerDNS.COM BV", [4, 8, 8]),
            ("Dnsmasq version 2.90  Copyright (c) 2000-2024 Simon Kelley", [2, 90, 0]),
            ("Knot Resolver, version 5.6.0", [5, 6, 0]),
            ("dnsdist 1.7.3 (Lua 5.1.4 [LuaJIT 2.1.0-beta3])", [1, 7, 3]),
        ];
        for (output, numbers) in cases {
            assert_eq!(Version::find(output).unwrap().numbers, numbers, "{output}");
        }
        assert_eq!(Version::find("no number, 7 alone"), None);
        assert_eq!(Version::find(cases[0].0).unwrap().text, "9.18.49-1~deb12u3-Debian");
    }

    #[test]
    fn what_a_version_serves_is_known() {
        let cases = [
            (ServerKind::Bind, "9.16.50", Transport::Dot, false),
            (ServerKind::Bind, "9.18.49", Transport::Dot, true),
            (ServerKind::Bind, "9.16.50", Transport::Tcp, true),
            (ServerKind::Knot, "3.2.6", Transport::Dot, false),
            (ServerKind::Knot, "3.2.6", Transport::Udp, true),
            (ServerKind::Knot, "3.4.0", Transport::Dot, true),
            (ServerKind::Nsd, "4.6.1", Transport::Dot, true),
            (ServerKind::Nsd, "4.1.27", Transport::Dot, false),
            (ServerKind::Embedded, "0.1.0", Transport::Dot, true),
        ];
        for (kind, version, transport, expected) in cases {
            let version = Version::find(version).unwrap();
            let installed = Installed { kind, binary: PathBuf::new(), version };
            assert_eq!(installed.supports(transport).is_ok(), expected, "{installed:?}");
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let guard = GuardProgram { path: "/nonexistent/guard".into(), arguments: Vec::new() };
        let error = find(ServerKind::Bind, Some("/nonexistent/named".as_ref()), &guard);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no `/nonexistent/named` in /nonexistent"), "{error}");
    }
}
