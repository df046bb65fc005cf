//! Processes and their descendants, as `/proc` shows them.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// `root` and all its descendants that exist now, parents before children. Empty if `root` is gone. The walk
/// is not atomic: a child that is born meanwhile may be missed.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    if !Path::new(&format!("/proc/{root}")).exists() {
        return Vec::new();
    }
    let mut found = vec![root];
    found.extend(descendants(root));
    found
}

/// All descendants of `root`, without itself; zombies included.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    if kernel_lists_children() { by_children_files(root) } else { by_parents(root) }
}

/// The name of a process (`comm`, at most 15 octets), if it exists.
pub(crate) fn name(pid: u32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned())
}

pub(crate) fn all() -> Vec<u32> {
    numbers_in("/proc")
}

/// The names in a folder that are numbers: processes, threads, file descriptors.
pub(crate) fn numbers_in(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Fields of `/proc/PID/stat` from the third (state) on; the second, the name, may hold spaces
/// (proc_pid_stat(5)). Field n of the manual page is at index n - 3.
pub(crate) fn stat_fields(text: &str) -> Option<Vec<&str>> {
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_ascii_whitespace().collect())
}

/// True if the kernel has `/proc/PID/task/TID/children` (CONFIG_PROC_CHILDREN).
fn kernel_lists_children() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| Path::new("/proc/thread-self/children").exists())
}

fn by_children_files(root: u32) -> Vec<u32> {
    walk(root, |parent| {
        let folder = format!("/proc/{parent}/task");
        let threads = numbers_in(&folder).into_iter();
        let lists = threads
            .filter_map(|thread| fs::read_to_string(format!("{folder}/{thread}/children")).ok());
        let text = lists.collect::<Vec<_>>().join(" ");
        text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
    })
}

fn by_parents(root: u32) -> Vec<u32> {
    let parent_of = |pid: u32| -> Option<u32> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat_fields(&text)?.get(1)?.parse().ok()
    };
    let pairs: Vec<_> = all().into_iter().filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    walk(root, |parent| {
        pairs.iter().filter(|(_, its)| *its == parent).map(|(pid, _)| *pid).collect()
    })
}

/// All that `children` leads to from `root`, each once.
fn walk(root: u32, children: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let (mut found, mut next) = (Vec::new(), vec![root]);
    while let Some(parent) = next.pop() {
        for child in children(parent) {
            if !found.contains(&child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn both_walks_find_a_grandchild() {
        // The inner shell prints its id and waits for a line, so that both are there to be found.
        let mut child = Command::new("sh")
            .args(["-c", "sh -c 'echo $$; read line; :'; :"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let grandchild: u32 = line.trim().parse().unwrap();
        for walk in [by_children_files, by_parents] {
            assert_eq!(walk(child.id()), [grandchild]);
        }
        assert_eq!(tree(child.id()), [child.id(), grandchild]);
        assert_eq!(name(grandchild).as_deref(), Some("sh"));
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        child.wait().unwrap();
        assert!(tree(child.id()).is_empty());
    }

    #[test]
    fn a_name_may_hold_parentheses_and_spaces() {
        let fields = stat_fields("7 (a) b (c) S 1 7 7 0").unwrap();
        assert_eq!(fields[..2], ["S", "1"]);
        assert_eq!(stat_fields("no stat line"), None);
    }
}
