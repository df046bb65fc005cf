//! The zone that a started server serves.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::atomic::AtomicBool;

use dnslab_settings::Zone;
use dnslab_traffic::{SyntheticZone, ZoneError};
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

/// Writes the zone into the server's folder, and returns its path.
pub(super) fn write_zone(
    zone: &SyntheticZone,
    name: &str,
    directory: &Path,
    stop: &AtomicBool,
) -> Result<PathBuf, TargetError> {
    let path = directory.join(format!("{name}.zone"));
    let written =
        fs::create_dir_all(directory).and_then(|()| File::create(&path)).and_then(|file| {
            let mut writer = BufWriter::new(Stoppable { inner: file, stop });
            zone.write_to(&mut writer)?;
            writer.flush()
        });
    written.map_err(|source| TargetError::Io { path: path.clone(), source })?;
    Ok(path)
}
