//! What a run leaves in its folder. It must not be gigabytes.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use dnslab_lab::{DNSTAP_LOG, OWN_FILE, QUERY_LOG, QUERY_LOG_FOLDER, host, open_regular, users};

/// Octets of a query log that are kept: some hundred lines, to see what was written.
const KEPT: u64 = 64 * 1024;

/// Octets above which files are removed that can be made again or are useless in parts.
const LARGE: u64 = 4 * 1024 * 1024;

/// Octets. A disk with less room is full: the next write will be cut.
const ROOM: u64 = 1024 * 1024;

/// Shortens the query log. Removes its old files and its own folder, and large dnstap files and zones. The
/// record has their sizes, and `dnslab make zone` makes the same zone again.
///
/// What cannot be removed stays: it only takes disk space.
pub(super) fn clear(folder: &Path) {
    for path in files(folder) {
        if path.ends_with(QUERY_LOG_FOLDER) {
            bring_home(&path).ok();
            continue;
        }
        let size = path.symlink_metadata().map_or(0, |facts| facts.len());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_remade = name == DNSTAP_LOG
            || name.starts_with(OWN_FILE)
            || name.ends_with(".zone")
            || name.ends_with(".jnl");
        let is_old_log = name.strip_prefix(QUERY_LOG).is_some_and(|suffix| suffix.starts_with('.'));
        if name == QUERY_LOG && size > KEPT {
            shorten(&path).ok();
        } else if is_old_log || (is_remade && size > LARGE) {
            fs::remove_file(&path).ok();
        }
    }
}

/// Copies the beginning of a query log from its own folder into the server's, and removes that folder and its
/// link. The server may have written into both folders as another user, so a link that this process does not
/// own is not followed.
fn bring_home(link: &Path) -> io::Result<()> {
    if link.symlink_metadata()?.uid() != users::own() {
        return Err(io::Error::other("somebody else has put a link in the place of ours"));
    }
    let own = fs::read_link(link)?;
    let here = link.with_file_name(QUERY_LOG);
    let copied =
        open_regular(&own.join(QUERY_LOG), OpenOptions::new().read(true)).and_then(|log| {
            fs::remove_file(&here).ok();
            let mut new = OpenOptions::new().write(true).create_new(true).open(&here)?;
            io::copy(&mut log.take(KEPT), &mut new)?;
            shorten(&here)
        });
    fs::remove_dir_all(own)?;
    fs::remove_file(link)?;
    copied
}

pub(super) fn is_full(folder: &Path) -> bool {
    host::free_octets(folder).is_some_and(|octets| octets < ROOM)
}

/// The files in the folders of a run's servers.
fn files(folder: &Path) -> Vec<PathBuf> {
    let inside = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    inside(folder)
        .flat_map(|server| inside(&server.path()).map(|file| file.path()).collect::<Vec<_>>())
        .collect()
}

/// Keeps the whole lines among the first [`KEPT`] octets.
fn shorten(path: &Path) -> io::Result<()> {
    let mut kept = 0;
    let file = open_regular(path, OpenOptions::new().read(true).write(true))?;
    let mut reader = BufReader::new((&file).take(KEPT));
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        if line.ends_with(b"\n") {
            kept += line.len() as u64;
        }
        line.clear();
    }
    file.set_len(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_logs_and_zones_go_and_the_beginning_of_a_query_log_stays() {
        let folder = tempfile::tempdir().unwrap();
        let server = folder.path().join("server");
        fs::create_dir(&server).unwrap();
        let lines: String = (0..10_000).map(|line| format!("query {line:05}\n")).collect();
        fs::write(server.join(QUERY_LOG), &lines).unwrap();
        fs::write(server.join(DNSTAP_LOG), vec![0; 5_000_000]).unwrap();
        fs::write(server.join("a.zone"), vec![0; 5_000_000]).unwrap();
        fs::write(server.join("b.zone"), "small").unwrap();
        fs::write(server.join("server.log"), vec![0; 5_000_000]).unwrap();
        clear(folder.path());
        let kept = fs::read_to_string(server.join(QUERY_LOG)).unwrap();
        assert!(lines.starts_with(&kept) && kept.ends_with('\n'), "{kept}");
        assert!(kept.len() > 60_000 && kept.len() <= 65_536, "{}", kept.len());
        let exists = |name: &str| server.join(name).exists();
        assert!(
            !exists(DNSTAP_LOG) && !exists("a.zone") && exists("b.zone") && exists("server.log")
        );
    }

    #[test]
    fn old_logs_and_a_folder_of_their_own_go() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (server, own) = (folder.path().join("server"), other.path().join("own"));
        fs::create_dir(&server).unwrap();
        fs::create_dir(&own).unwrap();
        fs::write(server.join("query.log.0"), "an old one").unwrap();
        fs::write(server.join("query.logbook"), "another's").unwrap();
        let lines: String = (0..10_000).map(|line| format!("query {line:05}\n")).collect();
        fs::write(own.join(QUERY_LOG), &lines).unwrap();
        fs::write(own.join("query.log.0"), &lines).unwrap();
        std::os::unix::fs::symlink(&own, server.join(QUERY_LOG_FOLDER)).unwrap();
        clear(folder.path());
        let kept = fs::read_to_string(server.join(QUERY_LOG)).unwrap();
        assert!(lines.starts_with(&kept) && kept.ends_with('\n') && kept.len() > 60_000, "{kept}");
        let mut left: Vec<_> =
            fs::read_dir(&server).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [QUERY_LOG, "query.logbook"]);
        assert!(!own.exists());
    }

    #[test]
    fn a_link_in_the_place_of_a_log_leads_nowhere() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = folder.path().join("server");
        fs::create_dir(&server).unwrap();
        let (secret, large) = (other.path().join("secret"), "x\n".repeat(100_000));
        fs::write(&secret, &large).unwrap();
        std::os::unix::fs::symlink(&secret, server.join(QUERY_LOG)).unwrap();
        clear(folder.path());
        assert!(shorten(&server.join(QUERY_LOG)).is_err());
        assert_eq!(fs::read_to_string(&secret).unwrap(), large);
    }

    #[test]
    fn this_disk_is_not_full() {
        assert!(!is_full(tempfile::tempdir().unwrap().path()));
    }
}
