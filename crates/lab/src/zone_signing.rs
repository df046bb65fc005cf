//! Zones signed before a server gets them (RFC 4035), by the programs of BIND.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use dnslab_settings::ZoneSigning;

use crate::error::LabError;
use crate::package::Remedy;

const REMEDY: Remedy = Remedy::Package { debian: "bind9-utils", fedora: "bind-dnssec-utils" };

/// Octets of what a program said that stand in an error.
const MAX_SAID: usize = 1_000;

/// Signs the zone in `text` (RFC 1035, section 5), for 30 days from an hour ago. Returns it with its keys, NSEC records
/// and signatures. The keys are made anew, and are gone afterwards.
///
/// The time goes into the signatures, one for each RRset: about 0.1 ms of a CPU with ECDSA, 1 ms with RSA.
///
/// # Errors
/// When the programs are missing, or refuse the zone.
pub fn sign_zone(name: &str, text: &[u8], signing: ZoneSigning) -> Result<Vec<u8>, LabError> {
    let refused = |reason: String| LabError::Signing { name: name.to_owned(), reason };
    let Some(algorithm) = algorithm(signing) else { return Ok(text.to_vec()) };
    let of_system = |error: io::Error| refused(error.to_string());
    let folder = tempfile::Builder::new().prefix("dnslab-zone-").tempdir().map_err(of_system)?;
    fs::write(folder.path().join("zone"), text).map_err(of_system)?;
    for kind in [&[][..], &["-f", "KSK"]] {
        let words = [&["-q", "-a"], algorithm, kind, &[name]].concat();
        run("dnssec-keygen", &words, folder.path()).map_err(refused)?;
    }
    // -S takes all keys of the folder; -P: the server under test reads the zone anyway.
    let words = ["-S", "-P", "-o", name, "-f", "signed", "zone"];
    run("dnssec-signzone", &words, folder.path()).map_err(refused)?;
    fs::read(folder.path().join("signed")).map_err(of_system)
}

/// The words of dnssec-keygen(1); `None` for a zone that stays as it is.
fn algorithm(signing: ZoneSigning) -> Option<&'static [&'static str]> {
    match signing {
        ZoneSigning::No => None,
        ZoneSigning::EcdsaP256 => Some(&["ECDSAP256SHA256"]),
        ZoneSigning::Rsa2048 => Some(&["RSASHA256", "-b", "2048"]),
    }
}

/// Runs a program to its end in this folder. Fails with what it said.
fn run(program: &str, words: &[&str], folder: &Path) -> Result<(), String> {
    let output = Command::new(program).args(words).current_dir(folder).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{program} is not installed\n  hint:    {}", REMEDY.text())
        }
        _ => format!("{program}: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let said: String = said.chars().take(MAX_SAID).collect();
    Err(format!("{program} ended with {}: {said}", output.status))
}
