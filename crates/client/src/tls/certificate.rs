//! Reads a server's certificate from its DER form (X.690; RFC 5280, section 4.1): the kind of key and of
//! signature, which decide what a handshake costs. rustls tells neither.

use dnslab_figures::CertificateFacts;
use rustls_pki_types::CertificateDer;

/// Tags of DER (X.690, section 8).
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// `[0]`, which holds the version.
const VERSION: u8 = 0xa0;

/// Object identifiers of parts of a name (RFC 5280, appendix A.1).
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];

/// Object identifiers (RFC 3279, RFC 5480, RFC 8410) with their names.
const NAMES: [(&[u8], &str); 12] = [
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01], "RSA"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b], "RSA with SHA-256"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c], "RSA with SHA-384"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d], "RSA with SHA-512"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a], "RSA-PSS"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], "ECDSA P-256"),
    (&[0x2b, 0x81, 0x04, 0x00, 0x22], "ECDSA P-384"),
    (&[0x2b, 0x81, 0x04, 0x00, 0x23], "ECDSA P-521"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02], "ECDSA with SHA-256"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03], "ECDSA with SHA-384"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04], "ECDSA with SHA-512"),
    (&[0x2b, 0x65, 0x70], "Ed25519"),
];

/// The facts of the certificates that a server sent, its own first. `None` if there is none, or if it cannot
/// be read.
pub(crate) fn facts(sent: &[CertificateDer<'_>]) -> Option<CertificateFacts> {
    let octets = sent.iter().map(|certificate| certificate.len() as u64).sum();
    Some(CertificateFacts { sent: sent.len() as u32, octets, ..read(sent.first()?)? })
}

/// True if a certificate says that it signed itself. Issuer and subject are the same, or there is no subject,
/// as in those that BIND makes for itself (`tls ephemeral`).
pub(super) fn is_self_issued(certificate: &[u8]) -> bool {
    names_of(certificate)
        .is_some_and(|Names { issuer, subject }| issuer == subject || subject.is_empty())
}

/// The signer's common name, or without one its organisation (RFC 5280, section 4.1.2.4).
pub(super) fn issuer_name(certificate: &[u8]) -> Option<String> {
    let issuer = names_of(certificate)?.issuer;
    part_of(issuer, COMMON_NAME).or_else(|| part_of(issuer, ORGANISATION))
}

/// The first part of this kind of a name.
fn part_of(name: &[u8], kind: &[u8]) -> Option<String> {
    let mut parts = Elements(name);
    std::iter::from_fn(|| parts.next()).find_map(|set| {
        let mut pair = Elements(Elements(set.content).expect(SEQUENCE)?);
        let is_kind = pair.expect(OBJECT_IDENTIFIER)? == kind;
        let text = pair.next().filter(|_| is_kind)?.content;
        Some(String::from_utf8_lossy(text).into_owned())
    })
}

/// The names in a certificate.
struct Names<'a> {
    issuer: &'a [u8],
    subject: &'a [u8],
}

fn names_of(certificate: &[u8]) -> Option<Names<'_>> {
    let mut body = Elements(Elements(Elements(certificate).expect(SEQUENCE)?).expect(SEQUENCE)?);
    if body.0.first() == Some(&VERSION) {
        body.next()?;
    }
    // Serial number, signature.
    body.next()?;
    body.next()?;
    let issuer = body.expect(SEQUENCE)?;
    // Validity.
    body.next()?;
    Some(Names { issuer, subject: body.expect(SEQUENCE)? })
}

/// The facts of one certificate: its key and its signature.
fn read(certificate: &[u8]) -> Option<CertificateFacts> {
    let mut certificate = Elements(Elements(certificate).expect(SEQUENCE)?);
    let mut body = Elements(certificate.expect(SEQUENCE)?);
    let signature = Elements(certificate.expect(SEQUENCE)?).expect(OBJECT_IDENTIFIER)?;
    if body.0.first() == Some(&VERSION) {
        body.next()?;
    }
    // Serial number, signature, issuer, validity, subject.
    for _ in 0..5 {
        body.next()?;
    }
    let mut key = Elements(body.expect(SEQUENCE)?);
    let mut algorithm = Elements(key.expect(SEQUENCE)?);
    let kind = algorithm.expect(OBJECT_IDENTIFIER)?;
    // For elliptic curves the curve is the parameter of one common algorithm.
    let key_kind = name(algorithm.expect(OBJECT_IDENTIFIER).unwrap_or(kind));
    // The first octet counts unused bits, of which keys have none.
    let octets = key.expect(BIT_STRING)?.get(1..)?;
    let bits = match key_kind.as_str() {
        "RSA" => {
            let modulus = Elements(Elements(octets).expect(SEQUENCE)?).expect(INTEGER)?;
            let zeros = modulus.iter().take_while(|octet| **octet == 0).count();
            (modulus.len() - zeros) * 8 - modulus.get(zeros)?.leading_zeros() as usize
        }
        "ECDSA P-256" | "Ed25519" => 256,
        "ECDSA P-384" => 384,
        "ECDSA P-521" => 521,
        _ => 0,
    };
    Some(CertificateFacts {
        key: key_kind,
        key_bits: u32::try_from(bits).ok()?,
        signature: name(signature),
        ..CertificateFacts::default()
    })
}

/// Hexadecimal octets if it is unknown.
fn name(identifier: &[u8]) -> String {
    match NAMES.iter().find(|(known, _)| *known == identifier) {
        Some((_, name)) => (*name).to_owned(),
        None => identifier.iter().map(|octet| format!("{octet:02x}")).collect(),
    }
}

/// Elements of ASN.1 in a row.
struct Elements<'a>(&'a [u8]);

struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

impl<'a> Elements<'a> {
    /// `None` at the end, or if the next element is cut short.
    fn next(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        // X.690, section 8.1.3: a short length, or the number of octets of the length.
        let (length, rest) = match usize::from(first) {
            short @ 0..=0x7f => (short, rest),
            long @ 0x81..=0x84 => {
                let (octets, rest) = rest.split_at_checked(long - 0x80)?;
                (octets.iter().fold(0, |sum, octet| sum << 8 | usize::from(*octet)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Element { tag, content })
    }

    /// The content of the next element, if it has this tag.
    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|element| element.tag == tag).map(|element| element.content)
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn made(algorithm: &'static rcgen::SignatureAlgorithm) -> CertificateDer<'static> {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(vec!["ns.example".to_owned()]).unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn kinds_of_keys_and_signatures() {
        for (algorithm, key, bits, signature) in [
            (&rcgen::PKCS_ECDSA_P256_SHA256, "ECDSA P-256", 256, "ECDSA with SHA-256"),
            (&rcgen::PKCS_ECDSA_P384_SHA384, "ECDSA P-384", 384, "ECDSA with SHA-384"),
            (&rcgen::PKCS_ED25519, "Ed25519", 256, "Ed25519"),
        ] {
            let one = made(algorithm);
            let facts = facts(&[one.clone(), one.clone()]).unwrap();
            assert_eq!((facts.key.as_str(), facts.key_bits), (key, bits));
            assert_eq!((facts.signature.as_str(), facts.sent), (signature, 2));
            assert_eq!(facts.octets, 2 * one.len() as u64);
        }
    }

    #[test]
    fn what_is_no_certificate_is_unknown() {
        assert_eq!(facts(&[]), None);
        let whole = made(&rcgen::PKCS_ECDSA_P256_SHA256);
        for length in 0..whole.len() {
            assert_eq!(facts(&[CertificateDer::from(&whole[..length])]), None, "{length}");
        }
        // Hostile octets must not bring it down.
        for place in 0..whole.len() {
            for octet in [0, 0x80, 0x84, 0xff] {
                let mut changed = whole.to_vec();
                changed[place] = octet;
                let _ = facts(&[CertificateDer::from(changed)]);
            }
        }
    }
}
