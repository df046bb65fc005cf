//! Which library a running server has TLS from, and in which version: the cost of encryption is mostly the
//! cost of that library.
//!
//! Shared libraries are found among the files that the process has mapped, and not by asking the package
//! manager: a server from a root folder or a build of the user's own has its own. The version is the text
//! that the library itself carries.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::ServerKind;

/// File name of a library, file name of the library that has its version, and the words before the version.
const LIBRARIES: [(&str, &str, &str); 2] = [
    ("libssl.so", "libcrypto.so", "OpenSSL "),
    ("libgnutls.so", "libgnutls.so", "Enabled GnuTLS "),
];

/// The build information of a Go program begins with this (`debug/buildinfo`).
const GO_BUILD: &[u8] = b"\xff Go buildinf:";

const LOCK: &str = include_str!("../../../Cargo.lock");

/// Octets read at once, and the most octets of what is looked for.
const CHUNK: usize = 1 << 20;
const MAX_LENGTH: usize = 256;

/// Most octets of a file that are read; CoreDNS has 70 MB.
const MAX_COUNT: u64 = 1 << 30;

/// Name and version of the library that the process `pid` of such a server has TLS from, e.g.
/// `OpenSSL 3.0.17`; empty if it is unknown.
pub(crate) fn of(kind: ServerKind, pid: u32) -> String {
    match kind {
        ServerKind::Embedded => {
            format!("rustls {}, ring {}", locked("rustls", LOCK), locked("ring", LOCK))
        }
        ServerKind::CoreDns => {
            let version = File::open(format!("/proc/{pid}/exe"))
                .and_then(|file| find(file, GO_BUILD))
                .ok()
                .flatten()
                .and_then(|found| go_version(&found));
            version.map(|version| format!("crypto/tls of {version}")).unwrap_or_default()
        }
        _ => shared(pid),
    }
}

fn shared(pid: u32) -> String {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut found = Vec::new();
    for (sign, versioned, words) in LIBRARIES {
        // OpenSSL's cryptography alone is mapped for DNSSEC too.
        if mapped(&maps, sign).is_none() {
            continue;
        }
        let Some((range, path)) = mapped(&maps, versioned) else { continue };
        let version = open(pid, range, path)
            .and_then(|file| find(file, words.as_bytes()))
            .ok()
            .flatten()
            .and_then(|found| version(&found))
            .unwrap_or_default();
        let name = words.rsplit(' ').nth(1).unwrap_or_default();
        found.push(format!("{name} {version}").trim_end().to_owned());
    }
    found.join(", ")
}

/// Address range and path of the first mapped file whose name begins with `name` (proc_pid_maps(5)).
fn mapped<'a>(maps: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    maps.lines().find_map(|line| {
        let range = line.split(' ').next()?;
        let path = &line[line.find('/')?..];
        path.rsplit('/').next()?.starts_with(name).then_some((range, path))
    })
}

/// Opens a mapped file as the process has it, which takes privileges, or by its path.
fn open(pid: u32, range: &str, path: &str) -> io::Result<File> {
    let ways = [
        PathBuf::from(format!("/proc/{pid}/map_files/{range}")),
        PathBuf::from(format!("/proc/{pid}/root{path}")),
    ];
    let mut opened = ways.iter().map(|way| open_file(way));
    opened.find(Result::is_ok).unwrap_or_else(|| open_file(path.as_ref()))
}

/// Opens a regular file: the server may have put a pipe in the place of its library meanwhile.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let is_file = file.metadata()?.is_file();
    is_file.then_some(file).ok_or_else(|| io::Error::other("it is no regular file"))
}

/// What follows the first occurrence of `words` that has a version or a build after it, at most
/// [`MAX_LENGTH`] octets; `None` if there is none.
fn find(file: File, words: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut file = file.take(MAX_COUNT);
    let is_text = words != GO_BUILD;
    let mut window = Vec::with_capacity(CHUNK + 2 * MAX_LENGTH);
    loop {
        let came = (&mut file).take(CHUNK as u64).read_to_end(&mut window)?;
        let last = window.len().saturating_sub(words.len());
        for place in 0..=last {
            if window.get(place) != words.first() {
                continue;
            }
            let rest = &window[place..];
            // If the window cuts it short, the next window has it whole.
            if rest.len() < words.len() + MAX_LENGTH && came > 0 {
                break;
            }
            let Some(rest) = rest.strip_prefix(words) else { continue };
            if !is_text || rest.first().is_some_and(u8::is_ascii_digit) {
                return Ok(Some(rest[..rest.len().min(MAX_LENGTH)].to_vec()));
            }
        }
        if came == 0 {
            return Ok(None);
        }
        window.drain(..window.len().saturating_sub(words.len() + MAX_LENGTH));
    }
}

/// The version at the beginning: letters, digits, hyphens and dots, at least one dot.
fn version(found: &[u8]) -> Option<String> {
    let is_part = |octet: &&u8| octet.is_ascii_alphanumeric() || b".-".contains(octet);
    let text: String = found.iter().take_while(is_part).map(|octet| char::from(*octet)).collect();
    text.contains('.').then_some(text)
}

/// The version of Go after [`GO_BUILD`]: a string with its length before it, 32 octets from the beginning of
/// the build information, since Go 1.18.
fn go_version(found: &[u8]) -> Option<String> {
    let text = found.get(32 - GO_BUILD.len()..)?;
    let (length, text) = text.split_first()?;
    let text = std::str::from_utf8(text.get(..usize::from(*length))?).ok()?;
    text.starts_with("go1").then(|| text.split(' ').next().unwrap_or(text).to_owned())
}

fn locked<'a>(package: &str, lock: &'a str) -> &'a str {
    let name = format!("\nname = \"{package}\"\nversion = \"");
    let version = lock.split_once(&name).and_then(|(_, rest)| rest.split('"').next());
    version.unwrap_or("of unknown version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (found, expected) in [
            ("3.0.17 1 Jul 2025\0", Some("3.0.17")),
            ("1.1.1w  11 Sep 2023", Some("1.1.1w")),
            ("3.6.0-beta1 9", Some("3.6.0-beta1")),
            ("3 ", None),
        ] {
            assert_eq!(version(found.as_bytes()).as_deref(), expected, "{found}");
        }
        let lock = "[[package]]\nname = \"ring\"\nversion = \"0.17.14\"\nsource";
        assert_eq!(locked("ring", lock), "0.17.14");
        assert!(locked("rustls", LOCK).starts_with("0."));
    }

    #[test]
    fn the_build_of_a_go_program_is_read() {
        let mut found = b"\x08\x02".to_vec();
        found.resize(32 - GO_BUILD.len(), 0);
        found.extend_from_slice(b"\x08go1.25.3rest");
        assert_eq!(go_version(&found).as_deref(), Some("go1.25.3"));
        assert_eq!(go_version(b"\x08\x02"), None);
    }

    #[test]
    fn words_are_found_across_reads() {
        use std::io::Write as _;
        for before in [0, 1, CHUNK - MAX_LENGTH - 20, CHUNK - 9, CHUNK - 1, CHUNK, 2 * CHUNK - 3] {
            let mut file = tempfile::tempfile().unwrap();
            let filler: Vec<u8> = b"OpenSSL x".iter().copied().cycle().take(before).collect();
            file.write_all(&filler).unwrap();
            file.write_all(b"OpenSSL 3.0.17 1 Jul 2025\0").unwrap();
            io::Seek::rewind(&mut file).unwrap();
            let found = find(file, b"OpenSSL ").unwrap().unwrap();
            assert_eq!(version(&found).as_deref(), Some("3.0.17"), "{before}");
        }
        let empty = tempfile::tempfile().unwrap();
        assert_eq!(find(empty, b"OpenSSL ").unwrap(), None);
    }

    #[test]
    fn mappings_are_found_by_the_name_of_their_file() {
        let maps = "7f00-7f10 r--p 00000000 fe:00 1  /usr/lib/libcrypto.so.3\n\
                    7f20-7f30 r-xp 00000000 00:00 0 \n\
                    7f40-7f50 r--p 00000000 fe:00 2    /usr/lib/x y/libssl.so.3 (deleted)\n";
        assert_eq!(mapped(maps, "libssl.so").unwrap().0, "7f40-7f50");
        assert_eq!(mapped(maps, "libcrypto.so"), Some(("7f00-7f10", "/usr/lib/libcrypto.so.3")));
        assert_eq!(mapped(maps, "libgnutls.so"), None);
    }
}
