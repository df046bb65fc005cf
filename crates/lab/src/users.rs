//! Users of a system: numbers that nobody has, for servers, and the names behind numbers.

use std::collections::HashSet;
use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

/// First number and count of the users that a service gets while it runs and no person has: 61184 to 65519,
/// systemd's range of dynamic users ("Users, Groups, UIDs and GIDs on systemd Systems").
const FIRST_UNUSED: u32 = 61_184;
const UNUSED: u32 = 65_520 - FIRST_UNUSED;

/// A user with their first group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The number of the user's first group.
    pub gid: u32,
}

impl User {
    /// A user that nobody is: no process runs as it, and the system has neither a user nor a group of its
    /// number. Two calls of one process return two users.
    pub(crate) fn unused() -> Self {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut taken: HashSet<u32> = users(&read("/etc/passwd")).map(|user| user.uid).collect();
        taken.extend(groups(&read("/etc/group")));
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        taken.extend(
            processes.filter_map(|process| process.metadata().ok()).map(|facts| facts.uid()),
        );
        loop {
            // Each process begins elsewhere, so that two that start at once do not meet.
            let call = CALLS.fetch_add(1, Ordering::Relaxed);
            let place = std::process::id().wrapping_mul(97).wrapping_add(call) % UNUSED;
            let number = FIRST_UNUSED + place;
            // If all are taken, the machine has thousands of such services: then any of them.
            if !taken.contains(&number) || call >= UNUSED {
                return Self { uid: number, gid: number };
            }
        }
    }
}

impl fmt::Display for User {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "user {}", self.uid)
    }
}

/// A line of passwd(5).
struct Named {
    name: String,
    uid: u32,
    gid: u32,
}

fn users(text: &str) -> impl Iterator<Item = Named> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let mut number = |skipped: usize| number(fields.nth(skipped)?);
        Some(Named { name, uid: number(1)?, gid: number(0)? })
    })
}

/// The numbers of all groups in group(5).
fn groups(text: &str) -> impl Iterator<Item = u32> {
    named_groups(text).map(|(_, gid)| gid)
}

/// Names and numbers of all groups in group(5).
fn named_groups(text: &str) -> impl Iterator<Item = (&str, u32)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        Some((fields.next()?, number(fields.nth(1)?)?))
    })
}

/// Name and number of a user: `mallory (1001)`; the number alone if it has no name.
#[must_use]
pub fn described(uid: u32) -> String {
    match name_of(uid) {
        Some(name) => format!("{name} ({uid})"),
        None => uid.to_string(),
    }
}

/// Name and number of a group, as [`described`] has them of a user.
#[must_use]
pub fn group_described(gid: u32) -> String {
    let text = fs::read_to_string("/etc/group").unwrap_or_default();
    let name = named_groups(&text).find(|(_, number)| *number == gid).map(|(name, _)| name);
    name.map_or_else(|| gid.to_string(), |name| format!("{name} ({gid})"))
}

/// The number of a user or group in decimal digits. 4294967295 is nobody's: system calls take it for "no change"
/// (chown(2)).
fn number(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|octet| octet.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number != u32::MAX)
}

/// The user of this name or number; `None` if the system has none.
#[must_use]
pub fn find(text: &str) -> Option<User> {
    let number = number(text);
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = users(&passwd).find(|user| user.name == text || Some(user.uid) == number);
    let found = found.map(|user| User { uid: user.uid, gid: user.gid });
    // A number that has no name is a user all the same.
    found.or_else(|| number.map(|number| User { uid: number, gid: number }))
}

/// The number of the group of this name or number; `None` if the system has none.
#[must_use]
pub fn find_group(text: &str) -> Option<u32> {
    let number = number(text);
    let group = fs::read_to_string("/etc/group").unwrap_or_default();
    let found = named_groups(&group).find(|(name, _)| *name == text).map(|(_, gid)| gid);
    found.or(number)
}

pub(crate) fn name_of(uid: u32) -> Option<String> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    users(&text).find(|user| user.uid == uid).map(|user| user.name)
}

/// Whether a group is a user's own: it is the user's first group, no other user's, and lists no other member
/// (passwd(5), group(5)). Many distributions make one for each user and then let the group write.
#[must_use]
pub fn is_alone_in(uid: u32, gid: u32) -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    is_alone(&read("/etc/passwd"), &read("/etc/group"), uid, gid)
}

fn is_alone(passwd: &str, group: &str, uid: u32, gid: u32) -> bool {
    let firsts: Vec<Named> = users(passwd).filter(|user| user.gid == gid).collect();
    let [own] = firsts.as_slice() else { return false };
    let members = group.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(gid)).then(|| fields.get(3).copied().unwrap_or_default())
    });
    let mut members = members.flat_map(|members| members.split(','));
    own.uid == uid && members.all(|member| member.is_empty() || member == own.name)
}

/// Name (or number) of the user that a process runs as; `None` if there is no such process.
pub(crate) fn of_process(pid: u32) -> Option<String> {
    let uid = number_of_process(pid)?;
    Some(name_of(uid).unwrap_or_else(|| uid.to_string()))
}

/// Number of the user that a process runs as; `None` if there is no such process.
pub(crate) fn number_of_process(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    // The real one, then the effective one (proc_pid_status(5)).
    numbers.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The number of the user that this process runs as.
#[must_use]
pub fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The bits that let the group and everybody write (chmod(2)).
const GROUP_MAY_WRITE: u32 = 0o020;
const ALL_MAY_WRITE: u32 = 0o002;

/// The bit that keeps strangers from replacing what is in a folder that they may write (unlink(2)).
const STICKY: u32 = 0o1000;

/// Users who can run something as this process's user anyway.
#[derive(Clone, Copy, Debug)]
pub struct Trusted {
    own: u32,
    /// Who became root by sudo(8) to run this process.
    caller: Option<u32>,
    /// The owner of `/`: root, by whatever number a user namespace shows it (user_namespaces(7)).
    root: u32,
}

impl Trusted {
    /// Those that this process trusts.
    #[must_use]
    pub fn of_this_process() -> Self {
        let own = own();
        let caller = std::env::var("SUDO_UID").ok().filter(|_| own == 0);
        Self {
            own,
            caller: caller.and_then(|caller| number(&caller)),
            root: fs::metadata("/").map_or(0, |facts| facts.uid()),
        }
    }

    fn has(&self, user: u32) -> bool {
        [Some(self.own), Some(0), self.caller].contains(&Some(user))
    }

    /// Why somebody else may have written a file, or what is in a folder, as half a sentence in which it is called
    /// `what`. `None` if only this user, or one who can be this user, may write it. `facts` are `None` if the system does
    /// not give them.
    #[must_use]
    pub fn doubt_of(&self, what: &str, facts: Option<&Metadata>) -> Option<String> {
        let Some(facts) = facts else { return Some(unknown(what)) };
        self.doubt(what, facts, self.has(facts.uid()))
    }

    /// Why somebody else may replace what is in `folder` (absolute, without symbolic links), or one of the folders above
    /// it, as half a sentence that names the folder after `title`. `None` if nobody can. In a sticky folder strangers may
    /// add files, but not replace this user's.
    #[must_use]
    pub fn doubt_of_folders(&self, folder: &Path, title: &str) -> Option<String> {
        folder.ancestors().find_map(|folder| {
            let what = format!("{title}{}", folder.display());
            let Ok(facts) = fs::metadata(folder) else { return Some(unknown(&what)) };
            let is_trusted = self.has(facts.uid()) || facts.uid() == self.root;
            let is_sticky = facts.mode() & STICKY != 0;
            if is_sticky && is_trusted { None } else { self.doubt(&what, &facts, is_trusted) }
        })
    }

    fn doubt(&self, what: &str, facts: &Metadata, is_trusted: bool) -> Option<String> {
        let mode = facts.mode();
        if !is_trusted {
            let (owner, own) = (described(facts.uid()), described(self.own));
            return Some(format!("{what} belongs to the user {owner}, not to {own}"));
        }
        if mode & ALL_MAY_WRITE != 0 {
            return Some(format!("everybody may write {what}"));
        }
        let is_shared = mode & GROUP_MAY_WRITE != 0 && !is_alone_in(facts.uid(), facts.gid());
        is_shared.then(|| format!("the group {} may write {what}", facts.gid()))
    }
}

fn unknown(what: &str) -> String {
    format!("the system does not say whose {what} is")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_one_is_the_users_own() {
        let passwd = "ann:x:1000:1000::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\n\
                      eve:x:1002:1001::/:/bin/sh\n";
        let check = |group: &str, uid, gid| is_alone(passwd, group, uid, gid);
        assert!(check("ann:x:1000:\n", 1000, 1000));
        assert!(check("ann:x:1000:ann\nstaff:x:50:bob\n", 1000, 1000));
        assert!(!check("ann:x:1000:bob\n", 1000, 1000));
        assert!(!check("bob:x:1001:\n", 1001, 1001), "eve is in it too");
        assert!(!check("staff:x:50:\n", 1000, 50));
    }

    #[test]
    fn nobody_has_the_number_of_a_server() {
        let users: Vec<User> = (0..100).map(|_| User::unused()).collect();
        let numbers: HashSet<u32> = users.iter().map(|user| user.uid).collect();
        assert_eq!(numbers.len(), users.len());
        for number in numbers {
            assert!((61_184..=65_519).contains(&number) && name_of(number).is_none(), "{number}");
        }
    }

    #[test]
    fn numbers_are_shown_with_their_names() {
        assert_eq!(described(0), "root (0)");
        assert_eq!(described(4_000_000_000), "4000000000");
    }

    #[test]
    fn what_system_calls_take_for_no_change_is_nobody() {
        assert_eq!(find("4294967294"), Some(User { uid: 4_294_967_294, gid: 4_294_967_294 }));
        assert_eq!(find_group("4294967294"), Some(4_294_967_294));
        for wrong in ["4294967295", "4294967296", "-1", "+1", ""] {
            assert_eq!((find(wrong), find_group(wrong)), (None, None), "`{wrong}`");
        }
        assert_eq!(users("x:x:4294967295:0::/:/bin/sh\n").count(), 0);
        assert_eq!(groups("x:x:4294967295:\n").count(), 0);
    }
}
