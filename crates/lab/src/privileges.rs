//! The user that a server runs as: where dnslab is root, one that may do nothing but serve.
//!
//! The stage that becomes the server gives up root as its last step, so a server needs no option for that. It
//! keeps one right if it has ports below 1024: to listen on them.

use std::ffi::OsStr;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::mount::MountFlags;
use rustix::thread::{CapabilitySet, CapabilitySets, Gid, Uid};
use serde::{Deserialize, Serialize};

use crate::file_system;
use crate::server::ServerSpec;
use crate::stage_error::{StageError, refused};
use crate::users::{self, User};

/// The first port that takes no right of its own, unless the kernel says another (ip(7)).
const FIRST_FREE_PORT: u16 = 1_024;

/// Where the kernel says it.
const FREE_PORTS: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// The users and groups that the user namespace of this process has (user_namespaces(7)).
const NAMESPACE_MAPS: [&str; 2] = ["/proc/self/uid_map", "/proc/self/gid_map"];

/// Whether a process of that namespace may leave its groups.
const NAMESPACE_GROUPS: &str = "/proc/self/setgroups";

/// What dnslab needs to run a server as another user and still see, end and clear away what it does
/// (capabilities(7)).
const NEEDED: [(CapabilitySet, &str); 6] = [
    (CapabilitySet::SETUID, "CAP_SETUID"),
    (CapabilitySet::SETGID, "CAP_SETGID"),
    (CapabilitySet::CHOWN, "CAP_CHOWN"),
    (CapabilitySet::KILL, "CAP_KILL"),
    (CapabilitySet::DAC_OVERRIDE, "CAP_DAC_OVERRIDE"),
    (CapabilitySet::SYS_PTRACE, "CAP_SYS_PTRACE"),
];

/// The program of this process, whatever its path has become.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The user that a process becomes before it is the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAs {
    /// The user. The process is in its first group and in no other.
    pub user: User,
    /// It may listen on ports that take a right of their own.
    pub low_ports: bool,
    /// The first folder above the working directory that this user may not enter. In mounts of the process's
    /// own it is covered by a folder that holds only the way to the working directory.
    pub closed: Option<PathBuf>,
    /// A folder elsewhere that it writes into.
    pub logs: Option<PathBuf>,
}

/// Why a server stays root, as a sentence for the record.
#[derive(Debug)]
pub(crate) struct StaysRoot(pub(crate) String);

/// Decides who the server of `spec` runs as. `program` is its path inside `root`, if it has one. Its files
/// are in `directory` (absolute, without symbolic links) and in `logs`. `None` if dnslab is an ordinary user:
/// its servers run as that user too.
pub(crate) fn decide(
    spec: &ServerSpec,
    program: &Path,
    root: Option<&Path>,
    (directory, logs): (&Path, Option<PathBuf>),
) -> Option<Result<RunAs, StaysRoot>> {
    let stay = |why: String| Some(Err(StaysRoot(format!("runs as root: {why}"))));
    if users::own() != 0 {
        return None;
    }
    let missing = lacking(&NEEDED);
    if !missing.is_empty() {
        return stay(format!("dnslab itself lacks {missing}"));
    }
    let user = User::unused();
    if let Some(why) = barred(spec, program, root, &user) {
        return stay(why);
    }
    // Inside a root folder the working directory has another path.
    let closed = if root.is_some() { None } else { closed_above(directory, &user) };
    if let Err(why) = can_live(&user, directory, closed.as_deref()) {
        return stay(why.to_string());
    }
    let text = fs::read_to_string(FREE_PORTS).unwrap_or_default();
    let first_free = text.trim().parse().unwrap_or(FIRST_FREE_PORT);
    let mut ports = spec.transports.iter().map(|transport| spec.ports.of(*transport));
    let low_ports = ports.any(|port| port < first_free);
    Some(Ok(RunAs { user, low_ports, closed, logs }))
}

/// Decides who a process that lives on runs as; `None` if dnslab is an ordinary user. It writes into `directory`
/// (absolute, without symbolic links) alone.
pub(crate) fn of_daemon(program: &Path, directory: &Path) -> Option<Result<RunAs, StaysRoot>> {
    if users::own() != 0 {
        return None;
    }
    let user = User::unused();
    let closed = closed_above(directory, &user);
    let possible = match (lacking(&NEEDED), may_run(program, None, &user)) {
        (missing, _) if !missing.is_empty() => Err(Unfit::Rights(missing)),
        (_, false) => Err(Unfit::Program { user: user.clone(), program: program.to_owned() }),
        _ => can_live(&user, directory, closed.as_deref()),
    };
    Some(match possible {
        Ok(()) => Ok(RunAs { user, low_ports: false, closed, logs: None }),
        Err(why) => Err(StaysRoot(format!("runs as root: {why}"))),
    })
}

/// Why a user cannot be a server's.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error("dnslab itself lacks {0}")]
    Rights(String),
    #[error("its {user} may not execute {}", program.display())]
    Program { user: User, program: PathBuf },
    #[error("its {user} may not enter {}, and covering that takes {missing}", closed.display())]
    Closed { user: User, closed: PathBuf, missing: String },
    #[error("this user namespace has no user {uid} with the group {gid}")]
    Unmapped { uid: u32, gid: u32 },
    #[error("this user namespace lets nobody leave their groups")]
    Groups,
    #[error("its {user} cannot have {}: {source}", folder.display())]
    Folder { user: User, folder: PathBuf, source: io::Error },
}

/// Whether this process may become a user that has `directory`, of which the user may not enter `closed`; if not, why.
fn can_live(user: &User, directory: &Path, closed: Option<&Path>) -> Result<(), Unfit> {
    let missing = missing_rights();
    if let Some(closed) = closed.filter(|_| !missing.is_empty()) {
        return Err(Unfit::Closed { user: user.clone(), closed: closed.to_owned(), missing });
    }
    can_become(user).and_then(|()| can_have(user, directory))
}

/// The user that asks a program for its version: an unused one, if dnslab is root and that user may execute
/// the program. `program` is its path inside `root`, if it has one.
pub(crate) fn to_ask_as(program: &Path, root: Option<&Path>) -> Option<User> {
    if users::own() != 0 || !lacking(&NEEDED).is_empty() {
        return None;
    }
    let user = User::unused();
    (may_run(program, root, &user) && can_become(&user).is_ok()).then_some(user)
}

/// Whether this process may become a user; if not, why. A container often has only one user.
fn can_become(user: &User) -> Result<(), Unfit> {
    let User { uid, gid } = user;
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let has = |(path, number): (&str, u32)| is_mapped(&read(path), number);
    if !NAMESPACE_MAPS.into_iter().zip([*uid, *gid]).all(has) {
        return Err(Unfit::Unmapped { uid: *uid, gid: *gid });
    }
    if read(NAMESPACE_GROUPS).trim() == "deny" {
        return Err(Unfit::Groups);
    }
    Ok(())
}

/// A folder that is given away to see whether that works.
const TRIAL: &str = "owner.trial";

/// Whether a user can be given what is in a folder; if not, why. A shared file system may refuse it.
fn can_have(user: &User, directory: &Path) -> Result<(), Unfit> {
    let trial = directory.join(TRIAL);
    let tried = fs::create_dir(&trial).and_then(|()| {
        let tried = own(&open_folder(&trial)?, Path::new(""), user);
        fs::remove_dir(&trial)?;
        tried
    });
    tried.map_err(|source| Unfit::Folder {
        user: user.clone(),
        folder: directory.to_owned(),
        source,
    })
}

/// Mounts an empty folder over one that may not be entered, with the working directory at its place in it.
fn cover(closed: &Path) -> io::Result<()> {
    let here = std::env::current_dir()?;
    rustix::mount::mount("tmpfs", closed, "tmpfs", MountFlags::empty(), c"mode=755")?;
    // Whatever the umask of this process takes away (umask(2)).
    let below = here.strip_prefix(closed).unwrap_or(Path::new(""));
    let mut folder = closed.to_owned();
    for part in below {
        folder.push(part);
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
    }
    // The working directory is still the folder below the cover.
    rustix::mount::mount_bind(".", &here)?;
    Ok(rustix::process::chdir(&here)?)
}

/// Whether a user namespace with this map has a number. A line has the first number inside, the first one
/// outside, and how many. Without a map there are no namespaces.
fn is_mapped(map: &str, number: u32) -> bool {
    let holds = |line: &str| {
        let mut fields = line.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
        let (first, count) = (fields.next()??, fields.nth(1)??);
        Some((first..first.saturating_add(count)).contains(&number.into()))
    };
    map.is_empty() || map.lines().any(|line| holds(line) == Some(true))
}

/// Why this user cannot be the server, if so: it may not execute the program or not enter the folder of the
/// query log.
fn barred(spec: &ServerSpec, program: &Path, root: Option<&Path>, user: &User) -> Option<String> {
    if !may_run(program, root, user) {
        return Some(format!("its {user} may not execute {}", outside(program, root).display()));
    }
    let logs = spec.logging.folder()?.canonicalize().ok()?;
    let closed = closed_above(&logs.join("any"), user)?;
    Some(format!("its {user} may not enter {}, where its query log is", closed.display()))
}

fn outside(program: &Path, root: Option<&Path>) -> PathBuf {
    match root {
        Some(root) => root.join(program.strip_prefix("/").unwrap_or(program)),
        None => program.to_owned(),
    }
}

/// Whether a user may execute a program and enter all folders above it.
fn may_run(program: &Path, root: Option<&Path>, user: &User) -> bool {
    let there = outside(program, root);
    let Ok(facts) = fs::metadata(&there) else { return false };
    may_execute(&facts, user)
        && match root {
            Some(root) => may_enter(root, user),
            // dnslab itself is executed again without its path.
            None if is_this_program(&facts) => true,
            None => there.canonicalize().is_ok_and(|path| closed_above(&path, user).is_none()),
        }
}

/// The folder nearest to `/` above `path` that a user may not enter.
fn closed_above(path: &Path, user: &User) -> Option<PathBuf> {
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.into_iter().rev().find(|folder| !may_enter(folder, user)).map(Path::to_owned)
}

fn may_enter(folder: &Path, user: &User) -> bool {
    fs::metadata(folder).is_ok_and(|facts| may_execute(&facts, user))
}

/// Whether the mode of a file or folder lets a user execute or enter it (path_resolution(7)).
fn may_execute(facts: &Metadata, user: &User) -> bool {
    let bit = match facts {
        facts if facts.uid() == user.uid => 0o100,
        facts if facts.gid() == user.gid => 0o010,
        _ => 0o001,
    };
    facts.permissions().mode() & bit != 0
}

fn is_this_program(facts: &Metadata) -> bool {
    let own = fs::metadata(OWN_PROGRAM);
    own.is_ok_and(|own| (own.dev(), own.ino()) == (facts.dev(), facts.ino()))
}

/// The path by which to execute `program`. If it is this process's own, that is one which works for a user
/// who may not enter its folder.
pub(crate) fn executed(program: &OsStr) -> &OsStr {
    let is_own = fs::metadata(program).is_ok_and(|facts| is_this_program(&facts));
    if is_own { OsStr::new(OWN_PROGRAM) } else { program }
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, FOLDER, Mode::empty())?)
}

/// Opens that folder, whatever a stranger puts in its place meanwhile; a symbolic link is refused.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Makes a user the owner of `name` in an open folder, or of the folder itself if the name is empty. Follows
/// no link.
fn own(folder: &impl AsFd, name: &Path, user: &User) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    Ok(rustix::fs::chownat(folder, name, Some(uid), Some(gid), flags)?)
}

/// Gives a folder and all that is in it to a user. A link keeps its owner, so that a link of its maker can be
/// told from one that the user put in its place. A file with a second name keeps its owner too: that name may
/// be in anybody's folder.
fn give(path: &Path, user: &User) -> io::Result<()> {
    give_open(&open_folder(path)?, user)
}

fn give_open(folder: &OwnedFd, user: &User) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if matches!(name.as_bytes(), b"." | b"..") {
            continue;
        }
        let facts = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(facts.st_mode) {
            FileType::Symlink => {}
            FileType::Directory => {
                give_open(&rustix::fs::openat(folder, name, FOLDER, Mode::empty())?, user)?;
            }
            _ if facts.st_nlink > 1 => {}
            _ => own(folder, Path::new(name), user)?,
        }
    }
    own(folder, Path::new(""), user)
}

impl RunAs {
    /// The user alone: no ports, and no folder of its own.
    pub(crate) fn only(user: User) -> Self {
        Self { user, low_ports: false, closed: None, logs: None }
    }

    /// Gives what the server writes to the user: its working directory with all that is in it, and the folder
    /// elsewhere.
    pub(crate) fn hand_over(&self, directory: &Path) -> io::Result<()> {
        let mut folders = [Some(directory), self.logs.as_deref()].into_iter().flatten();
        folders.try_for_each(|folder| give(folder, &self.user))
    }

    /// Takes it all back when nothing of the user runs any more: a later server may have the same user.
    pub(crate) fn take_back(&self, directory: &Path) {
        let own = User { uid: users::own(), gid: rustix::process::getegid().as_raw() };
        for folder in [Some(directory), self.logs.as_deref()].into_iter().flatten() {
            give(folder, &own).ok();
        }
    }

    /// Makes the way to the working directory passable, in mounts of this process's own.
    pub(crate) fn uncover(&self) -> Result<(), StageError> {
        let Some(closed) = &self.closed else { return Ok(()) };
        file_system::own_mounts()?;
        cover(closed).map_err(|source| StageError::Cover {
            closed: closed.clone(),
            user: self.user.clone(),
            source,
        })
    }

    /// Becomes the user, for good. This process must have one thread.
    pub(crate) fn give_up_root(&self) -> Result<(), StageError> {
        self.change().map_err(refused(format!("become {}", self.user)))
    }

    fn change(&self) -> rustix::io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.user.uid), Gid::from_raw(self.user.gid));
        // No program that it executes gives it rights again, be it setuid or have capabilities of its own.
        rustix::thread::set_no_new_privs(true)?;
        let kept = match self.low_ports {
            true => CapabilitySet::NET_BIND_SERVICE,
            false => CapabilitySet::empty(),
        };
        bound(kept)?;
        rustix::thread::set_keep_capabilities(self.low_ports)?;
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: kept };
        rustix::thread::set_capabilities(None, sets)?;
        if self.low_ports {
            // A program that knows nothing of capabilities keeps the ambient ones.
            rustix::thread::configure_capability_in_ambient_set(kept, true)?;
        }
        Ok(())
    }
}

/// Takes every capability but those that are kept out of the set that executed programs may get theirs from
/// (capabilities(7)). A process that may not do that leaves the set as it is: `no_new_privs` holds without it.
fn bound(kept: CapabilitySet) -> rustix::io::Result<()> {
    for capability in CapabilitySet::all().difference(kept).iter() {
        // An error means that this kernel does not know the capability.
        if rustix::thread::capability_is_in_bounding_set(capability) != Ok(true) {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Err(rustix::io::Errno::PERM) => return Ok(()),
            removed => removed?,
        }
    }
    Ok(())
}

/// The capabilities that a chroot with mounts of its own takes and this process lacks, by the kernel's names;
/// empty if none (capabilities(7)).
pub(crate) fn missing_rights() -> String {
    let needed = [
        (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
        (CapabilitySet::SYS_CHROOT, "CAP_SYS_CHROOT"),
    ];
    lacking(&needed)
}

/// Which of these this process lacks, by the kernel's names; empty if none.
pub(crate) fn lacking(needed: &[(CapabilitySet, &str)]) -> String {
    let sets = rustix::thread::capabilities(None);
    let has = sets.map_or(CapabilitySet::empty(), |sets| sets.effective);
    let missing = needed.iter().filter(|(one, _)| !has.contains(*one)).map(|(_, name)| *name);
    missing.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_the_users_of_its_map() {
        let all = "         0          0 4294967295\n";
        let one = "         0       1000          1\n";
        let rootless = "0 1000 1\n1 100000 65536\n";
        assert!(is_mapped(all, 0) && is_mapped(all, 65_534) && is_mapped("", 7));
        assert!(is_mapped(one, 0) && !is_mapped(one, 1) && !is_mapped(one, 1_000));
        assert!(is_mapped(rootless, 65_534) && !is_mapped(rootless, 65_537));
        assert!(!is_mapped("broken", 0));
    }
}
