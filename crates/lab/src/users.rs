//! Users of a system: those that packages make for their servers, and the names behind numbers.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The user of whoever has no user of their own, in every Linux distribution.
const NOBODY: &str = "nobody";

/// The numbers of `nobody` where no file of users names it.
const NOBODY_NUMBER: u32 = 65_534;

/// A user with their first group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The name.
    pub name: String,
    /// The user's number.
    pub uid: u32,
    /// The number of the user's first group.
    pub gid: u32,
}

impl User {
    /// The first of `names` that the system with this root folder knows, else `nobody`; never one with
    /// the rights of root.
    pub(crate) fn first_of(names: &[&str], root: &Path) -> Self {
        let text = fs::read_to_string(root.join("etc/passwd")).unwrap_or_default();
        let known = names.iter().chain([&NOBODY]).find_map(|name| find(&text, name));
        let nobody = || Self { name: NOBODY.to_owned(), uid: NOBODY_NUMBER, gid: NOBODY_NUMBER };
        known.unwrap_or_else(nobody)
    }
}

/// The user of this name in the text of a passwd(5), unless it is root by another name.
fn find(text: &str, name: &str) -> Option<User> {
    users(text).find(|user| user.name == name && user.uid != 0)
}

/// All users of a passwd(5).
fn users(text: &str) -> impl Iterator<Item = User> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let mut number = |skipped: usize| fields.nth(skipped)?.parse().ok();
        Some(User { name, uid: number(1)?, gid: number(0)? })
    })
}

/// The name behind the number of a user, with the number: `mallory (1001)`; the number alone where nobody
/// has a name for it.
#[must_use]
pub fn described(uid: u32) -> String {
    match name_of(uid) {
        Some(name) => format!("{name} ({uid})"),
        None => uid.to_string(),
    }
}

/// The name behind the number of a user of this system.
pub(crate) fn name_of(uid: u32) -> Option<String> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    users(&text).find(|user| user.uid == uid).map(|user| user.name)
}

/// Whether a group is a user's own, as many distributions make one for each user and then let it write: it is
/// the user's first group, no other user's, and lists no other member (passwd(5), group(5)).
#[must_use]
pub fn is_alone_in(uid: u32, gid: u32) -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    is_alone(&read("/etc/passwd"), &read("/etc/group"), uid, gid)
}

fn is_alone(passwd: &str, group: &str, uid: u32, gid: u32) -> bool {
    let firsts: Vec<User> = users(passwd).filter(|user| user.gid == gid).collect();
    let [own] = firsts.as_slice() else { return false };
    let members = group.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(gid)).then(|| fields.get(3).copied().unwrap_or_default())
    });
    let mut members = members.flat_map(|members| members.split(','));
    own.uid == uid && members.all(|member| member.is_empty() || member == own.name)
}

/// The name of the user that a process is, or the number; `None` if it is not there.
pub(crate) fn of_process(pid: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    // The real one, then the effective one (proc_pid_status(5)).
    let uid: u32 = numbers.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(name_of(uid).unwrap_or_else(|| uid.to_string()))
}

/// The number of the user that this process is.
#[must_use]
pub fn own() -> u32 {
    rustix::process::geteuid().as_raw()
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
    fn packaged_users_come_before_nobody_and_root_never_comes() {
        let text = "root:x:0:0:root:/root:/bin/sh\nbroken\ntoor:x:0:7::/:/bin/sh\n\
                    nobody:x:65534:65533::/:/bin/false\nbind:x:105:108::/var/cache/bind:/bin/false\n";
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("etc")).unwrap();
        fs::write(folder.path().join("etc/passwd"), text).unwrap();
        let check = |names: &[&str], name: &str, uid: u32, gid: u32| {
            let expected = User { name: name.to_owned(), uid, gid };
            assert_eq!(User::first_of(names, folder.path()), expected, "{names:?}");
        };
        check(&["bind"], "bind", 105, 108);
        check(&["named", "bind"], "bind", 105, 108);
        check(&["toor", "root"], "nobody", 65_534, 65_533);
        check(&[], "nobody", 65_534, 65_533);
        let nowhere = User::first_of(&["bind"], Path::new("/nonexistent"));
        assert_eq!((nowhere.name.as_str(), nowhere.uid), ("nobody", 65_534));
        assert_eq!(described(0), "root (0)");
        assert_eq!(described(4_000_000_000), "4000000000");
    }
}
