//! A certificate authority and a server certificate that live as long as one run.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use dnslab_settings::CertificateKind;
use getrandom::SysRng;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_RSA_SHA256,
};
use rsa::RsaPrivateKey;
use rsa::pkcs8::EncodePrivateKey as _;
use rsa::rand_core::UnwrapErr;

/// Name of the authority's certificate inside the folder.
pub const AUTHORITY: &str = "authority.pem";
/// Name of the server's certificate inside the folder.
pub const CERTIFICATE: &str = "server.pem";
/// Name of the server's private key inside the folder.
pub const KEY: &str = "server.key";
/// The DNS name in the server's certificate, besides its address. `.test` is never delegated (RFC 6761,
/// section 6.2).
pub const NAME: &str = "dnslab.test";

/// Where distributions keep the certificates of the authorities that they trust, as one PEM file.
const OF_SYSTEMS: [&str; 4] = [
    // Debian, Ubuntu, Arch, Alpine.
    "/etc/ssl/certs/ca-certificates.crt",
    // Fedora and its relatives.
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    // openSUSE.
    "/etc/ssl/ca-bundle.pem",
];

/// The file of the authorities that this system trusts; `None` if there is none.
#[must_use]
pub fn of_system() -> Option<PathBuf> {
    OF_SYSTEMS.into_iter().map(PathBuf::from).find(|path| path.is_file())
}

fn new_key(kind: CertificateKind) -> Result<KeyPair, rcgen::Error> {
    match kind {
        CertificateKind::EcdsaP256 | CertificateKind::Chain => KeyPair::generate(),
        CertificateKind::Rsa2048 => {
            // ring signs with RSA keys, but makes none.
            let key = RsaPrivateKey::new(&mut UnwrapErr(SysRng), 2_048)
                .map_err(|_| rcgen::Error::KeyGenerationUnavailable)?;
            let octets = key.to_pkcs8_der().map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
            let octets = octets.as_bytes().into();
            KeyPair::from_pkcs8_der_and_sign_algo(&octets, &PKCS_RSA_SHA256)
        }
    }
}

/// Paths of the files of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate that clients must trust.
    pub authority: PathBuf,
    /// The server's certificate, followed by that of the intermediate authority if there is one.
    pub certificate: PathBuf,
    /// The server's private key (PKCS #8), readable by its owner only.
    pub key: PathBuf,
}

/// Why the files could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The certificate could not be built.
    #[error("cannot make a certificate for {address}: {source}")]
    Build {
        /// The address.
        address: IpAddr,
        /// What is wrong.
        source: rcgen::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Makes an authority and a server certificate of this kind, signed by it for `address` and [`NAME`], and
/// writes them into `folder`. The keys of the authorities are forgotten, so nobody can sign with them again.
///
/// # Errors
/// When a file cannot be written.
pub fn create(
    folder: &Path,
    address: IpAddr,
    kind: CertificateKind,
) -> Result<CertificateFiles, CertificateError> {
    let pem = build(address, kind).map_err(|source| CertificateError::Build { address, source })?;
    Ok(CertificateFiles {
        authority: write(folder.join(AUTHORITY), &pem.authority, 0o644)?,
        certificate: write(folder.join(CERTIFICATE), &pem.certificate, 0o644)?,
        key: write(folder.join(KEY), &pem.key, 0o600)?,
    })
}

fn write(path: PathBuf, content: &str, mode: u32) -> Result<PathBuf, CertificateError> {
    match write_private(&path, content, mode) {
        Ok(()) => Ok(path),
        Err(source) => Err(CertificateError::Write { path, source }),
    }
}

struct Pem {
    authority: String,
    certificate: String,
    key: String,
}

fn build(address: IpAddr, kind: CertificateKind) -> Result<Pem, rcgen::Error> {
    let has_intermediate = kind == CertificateKind::Chain;
    let root = authority("dnslab authority of one run", u8::from(has_intermediate));
    let root_key = new_key(kind)?;
    let root_certificate = root.self_signed(&root_key)?;
    let mut issuer = Issuer::from_params(&root, &root_key);
    let mut sent = String::new();
    let (intermediate, intermediate_key);
    if has_intermediate {
        intermediate = authority("dnslab intermediate authority of one run", 0);
        intermediate_key = new_key(kind)?;
        sent = intermediate.signed_by(&intermediate_key, &issuer)?.pem();
        issuer = Issuer::from_params(&intermediate, &intermediate_key);
    }

    // rcgen makes an address of every name that reads as one.
    let mut server = CertificateParams::new(vec![address.to_string(), NAME.to_owned()])?;
    server.distinguished_name.push(DnType::CommonName, NAME);
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let server_key = new_key(kind)?;
    sent.insert_str(0, &server.signed_by(&server_key, &issuer)?.pem());
    Ok(Pem {
        authority: root_certificate.pem(),
        certificate: sent,
        key: server_key.serialize_pem(),
    })
}

/// An authority with at most `between` further authorities between it and the servers.
fn authority(name: &str, between: u8) -> CertificateParams {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(between));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.use_authority_key_identifier_extension = between == 0;
    authority
}

/// Writes a file that has its mode from the first moment.
fn write_private(path: &Path, content: &str, mode: u32) -> io::Result<()> {
    // An older file would keep its own mode.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_are_there_and_the_key_is_private() {
        let folder = tempfile::tempdir().unwrap();
        // Twice: a folder that has them already gets new ones.
        let create = |kind| create(folder.path(), "::1".parse().unwrap(), kind).unwrap();
        let first = create(CertificateKind::EcdsaP256);
        let before = fs::read_to_string(&first.key).unwrap();
        let files = create(CertificateKind::EcdsaP256);
        assert_eq!(fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(fs::read_to_string(&files.key).unwrap(), before);
        for path in [&files.authority, &files.certificate] {
            assert!(fs::read_to_string(path).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
        }
        for kind in CertificateKind::ALL {
            let sent = fs::read_to_string(create(kind).certificate).unwrap();
            let sent = sent.matches("BEGIN CERTIFICATE").count();
            assert_eq!(sent, if kind == CertificateKind::Chain { 2 } else { 1 }, "{kind}");
            assert_eq!(kind.name().parse(), Ok(kind));
        }
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error =
            create(Path::new("/nonexistent/x"), "::1".parse().unwrap(), CertificateKind::Chain);
        let error = error.unwrap_err();
        assert!(error.to_string().contains("/nonexistent/x/authority.pem"), "{error}");
    }
}
