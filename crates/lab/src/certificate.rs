//! A certificate authority and a server certificate that live as long as one run.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// Name of the authority's certificate inside the folder.
pub const AUTHORITY: &str = "authority.pem";
/// Name of the server's certificate inside the folder.
pub const CERTIFICATE: &str = "server.pem";
/// Name of the server's private key inside the folder.
pub const KEY: &str = "server.key";
/// The DNS name in the server's certificate, beside its address; `.test` is never delegated
/// (RFC 6761, section 6.2).
pub const NAME: &str = "dnslab.test";

/// Where the files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate that clients must trust.
    pub authority: PathBuf,
    /// The server's certificate.
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

/// Makes an authority, and a certificate that it signs for `address` and [`NAME`] (P-256 keys, what
/// public authorities hand out to resolvers), and writes them into `folder`. The authority's key is
/// forgotten: nobody can sign with it again.
///
/// # Errors
/// When a file cannot be written.
pub fn create(folder: &Path, address: IpAddr) -> Result<CertificateFiles, CertificateError> {
    let pem = build(address).map_err(|source| CertificateError::Build { address, source })?;
    let write = |name: &str, content: &str, mode| {
        let path = folder.join(name);
        write_private(&path, content, mode)
            .map_err(|source| CertificateError::Write { path: path.clone(), source })?;
        Ok(path)
    };
    Ok(CertificateFiles {
        authority: write(AUTHORITY, &pem.authority, 0o644)?,
        certificate: write(CERTIFICATE, &pem.certificate, 0o644)?,
        key: write(KEY, &pem.key, 0o600)?,
    })
}

/// The three files' contents.
struct Pem {
    authority: String,
    certificate: String,
    key: String,
}

fn build(address: IpAddr) -> Result<Pem, rcgen::Error> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "dnslab authority of one run");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let authority_certificate = authority.self_signed(&authority_key)?;

    // rcgen makes an address of every name that reads as one.
    let mut server = CertificateParams::new(vec![address.to_string(), NAME.to_owned()])?;
    server.distinguished_name.push(DnType::CommonName, NAME);
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let server_key = KeyPair::generate()?;
    let issuer = Issuer::from_params(&authority, &authority_key);
    let certificate = server.signed_by(&server_key, &issuer)?;
    Ok(Pem {
        authority: authority_certificate.pem(),
        certificate: certificate.pem(),
        key: server_key.serialize_pem(),
    })
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
        let first = create(folder.path(), "::1".parse().unwrap()).unwrap();
        let before = fs::read_to_string(&first.key).unwrap();
        let files = create(folder.path(), "::1".parse().unwrap()).unwrap();
        assert_eq!(fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(fs::read_to_string(&files.key).unwrap(), before);
        for path in [&files.authority, &files.certificate] {
            assert!(fs::read_to_string(path).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
        }
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = create(Path::new("/nonexistent/x"), "::1".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/x/authority.pem"), "{error}");
    }
}
