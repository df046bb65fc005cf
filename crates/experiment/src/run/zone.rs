//! The zone that a started server serves.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::atomic::AtomicBool;

use dnslab_lab::{ZoneFile, open_given, read_given, sign_zone};
use dnslab_settings::Zone;
use dnslab_traffic::{SyntheticZone, ZoneError, zone_file_apex};
use domain::base::Name;

use super::error::{QueriesError, TargetError};
use super::stoppable::Stoppable;

/// The zone that a started server serves.
pub(super) fn zone(settings: &Zone) -> Result<SyntheticZone, QueriesError> {
    let wrong = |reason: String| QueriesError::Zone { name: settings.name.clone(), reason };
    let name = Name::from_str(&settings.name)
        .map_err(|error: domain::base::name::FromStrError| wrong(error.to_string()))?;
    SyntheticZone::new(name, settings.records, settings.ttl)
        .map_err(|error: ZoneError| wrong(error.to_string()))
}

/// The type that a zone file has if it is signed, and hardly otherwise.
const RRSIG: &[u8] = b"RRSIG";

/// Octets of a zone file.
const MAX_FILE: u64 = 4 << 30;

/// Octets of a zone file before the SOA record that names the zone.
const MAX_HEAD: u64 = 1 << 20;

/// The text of a zone file.
pub(super) fn read_zone_file(path: &Path) -> Result<Vec<u8>, QueriesError> {
    read_given(path, MAX_FILE).map_err(QueriesError::unreadable("zone file", path))
}

/// The name of the zone in this file.
pub(crate) fn read_zone_name(path: &Path) -> Result<String, String> {
    let mut text = Vec::new();
    open_given(path)
        .and_then(|file| file.take(MAX_HEAD).read_to_end(&mut text))
        .map_err(|error| error.to_string())?;
    zone_file_apex(&text).map_err(|error| error.to_string())
}

/// The text of the zone with its keys and signatures.
pub(super) fn signed(settings: &Zone) -> Result<Vec<u8>, QueriesError> {
    let mut text = Vec::new();
    match &settings.file {
        Some(path) => text = read_zone_file(path)?,
        None => zone(settings)?.write_to(&mut text).expect("memory takes what is written"),
    }
    sign_zone(&settings.name, &text, settings.signed).map_err(QueriesError::Signing)
}

/// The zone that a server gets: signed, the user's file, or one that is written into the server's folder.
pub(super) fn served_zone(
    settings: &Zone,
    signed: Option<&[u8]>,
    directory: &Path,
    stop: &AtomicBool,
) -> Result<ZoneFile, TargetError> {
    let origin = settings.name.clone();
    let (path, is_signed) = match (signed, &settings.file) {
        (Some(text), _) => {
            (write(&origin, directory, stop, |writer| writer.write_all(text))?, true)
        }
        (None, Some(path)) => {
            let text = read_zone_file(path)?;
            (path.clone(), text.windows(RRSIG.len()).any(|word| word == RRSIG))
        }
        (None, None) => (write_zone(&zone(settings)?, &origin, directory, stop)?, false),
    };
    Ok(ZoneFile { origin, path, is_signed })
}

/// Writes the zone into the server's folder, and returns its path.
pub(super) fn write_zone(
    zone: &SyntheticZone,
    name: &str,
    directory: &Path,
    stop: &AtomicBool,
) -> Result<PathBuf, TargetError> {
    write(name, directory, stop, |writer| zone.write_to(writer))
}

fn write(
    name: &str,
    directory: &Path,
    stop: &AtomicBool,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<PathBuf, TargetError> {
    let path = directory.join(format!("{}.zone", name.replace('/', "_")));
    let written =
        fs::create_dir_all(directory).and_then(|()| File::create(&path)).and_then(|file| {
            let mut writer = BufWriter::new(Stoppable { inner: file, stop });
            text(&mut writer)?;
            writer.flush()
        });
    written.map_err(|source| TargetError::Io { path: path.clone(), source })?;
    Ok(path)
}
