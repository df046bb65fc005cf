//! The zone that a started server serves.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::atomic::AtomicBool;

use dnslab_lab::{
    POLICY_NAME, PolicyZone, Signatures, ZoneFile, open_given, read_given, sign_zone,
};
use dnslab_settings::{Zone, ZoneSigning};
use dnslab_traffic::{SyntheticZone, ZoneError, ZoneFileError, zone_file_apex};
use domain::base::Name;
use domain::base::ToName as _;
use domain::base::iana::Rtype;
use domain::rdata::ZoneRecordData;

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

/// A zone of a file, or one that is signed.
#[derive(Debug)]
pub(super) struct OwnZone {
    /// Its text, if it is no file.
    signed: Option<Vec<u8>>,
    is_signed: bool,
    /// The data of its NSEC3PARAM record (RFC 5155, section 4.3), if it has one.
    nsec3: Option<String>,
}

impl OwnZone {
    /// Reads the file, and signs the zone if that is wanted.
    pub(super) fn of(settings: &Zone) -> Result<Self, QueriesError> {
        let (name, signing) = (&settings.name, settings.signed);
        let sign = |text: &[u8]| sign_zone(name, text, signing).map_err(QueriesError::Signing);
        let Some(path) = &settings.file else {
            let mut text = Vec::new();
            zone(settings)?.write_to(&mut text).expect("memory takes what is written");
            return Ok(Self { signed: Some(sign(&text)?), is_signed: true, nsec3: None });
        };
        let text = read_zone_file(path)?;
        let (mut is_signed, mut nsec3) = (false, None);
        let read = dnslab_traffic::read_zone_file(&text, Some(name), |record, _| {
            match record.rtype() {
                Rtype::RRSIG => is_signed = true,
                Rtype::NSEC3PARAM => nsec3 = Some(record.data().to_string()),
                _ => {}
            }
            Ok::<_, ZoneFileError>(ControlFlow::Continue(()))
        });
        read.map_err(|source| QueriesError::ZoneFile { path: path.clone(), source })?;
        if signing == ZoneSigning::No {
            return Ok(Self { signed: None, is_signed, nsec3 });
        }
        if is_signed {
            let source = ZoneFileError::Zone(
                "it has signatures already, which would stay beside new ones: remove `server.zone.signed`, or write the \
                 zone without RRSIG, NSEC, NSEC3 and DNSKEY records",
            );
            return Err(QueriesError::ZoneFile { path: path.clone(), source });
        }
        Ok(Self { signed: Some(sign(&text)?), is_signed: true, nsec3: None })
    }
}

/// The zone that a server gets: signed, the user's file, or one that is written into the server's folder.
pub(super) fn served_zone(
    settings: &Zone,
    own: Option<&OwnZone>,
    directory: &Path,
    stop: &AtomicBool,
) -> Result<ZoneFile, TargetError> {
    let origin = settings.name.clone();
    let signed = own.and_then(|own| own.signed.as_deref());
    let path = match (signed, &settings.file) {
        (Some(text), _) => write(&origin, directory, stop, |writer| writer.write_all(text))?,
        (None, Some(path)) => path.clone(),
        (None, None) => write_zone(&zone(settings)?, &origin, directory, stop)?,
    };
    let signatures = own.filter(|own| own.is_signed);
    let signatures = signatures.map(|own| Signatures { nsec3: own.nsec3.clone() });
    Ok(ZoneFile { origin, path, signatures })
}

/// The policy zone of this file, by the name of its SOA record or, if that is relative, one of dnslab's, and a name that it
/// denies.
pub(super) fn policy_zone(path: &Path) -> Result<PolicyZone, QueriesError> {
    let text = read_given(path, MAX_FILE).map_err(QueriesError::unreadable("policy zone", path))?;
    let wrong = |source| QueriesError::ZoneFile { path: path.to_owned(), source };
    let apex = zone_file_apex(&text).unwrap_or_else(|_| POLICY_NAME.to_owned());
    let suffix = format!(".{}", apex.to_ascii_lowercase());
    let (mut has_soa, mut denied) = (false, None);
    dnslab_traffic::read_zone_file(&text, Some(&apex), |record, _| {
        has_soa |= record.rtype() == Rtype::SOA;
        let owner = record.owner().to_string().to_ascii_lowercase();
        let denies = match record.data() {
            ZoneRecordData::Cname(alias) => alias.cname().to_vec().is_root(),
            _ => false,
        };
        if let Some(name) = owner.strip_suffix(&suffix)
            && denied.is_none()
            && denies
            && !name.starts_with("*.")
            && !name.split('.').any(|label| label.starts_with("rpz-"))
        {
            denied = Some(name.to_owned());
        }
        Ok::<_, ZoneFileError>(ControlFlow::Continue(()))
    })
    .map_err(wrong)?;
    if !has_soa {
        return Err(wrong(ZoneFileError::NO_SOA));
    }
    Ok(PolicyZone { name: apex, path: path.to_owned(), denied })
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
