//! Zones signed by the programs of BIND.

use dnslab_lab::sign_zone;
use dnslab_settings::ZoneSigning;

const ZONE: &str = "$TTL 60\n@ SOA ns host 1 60 60 60 60\n@ NS ns\nns A 192.0.2.1\n";

#[test]
fn a_zone_has_signatures_of_its_algorithm() {
    for (signing, algorithm) in [(ZoneSigning::EcdsaP256, 13), (ZoneSigning::Rsa2048, 8)] {
        let signed = sign_zone("example.test", ZONE.as_bytes(), signing).unwrap();
        let signed = String::from_utf8(signed).unwrap();
        let count = |rtype: &str| signed.matches(rtype).count();
        assert_eq!((count("DNSKEY\t25"), count("NSEC\t")), (2, 2), "{signed}");
        assert!(signed.contains(&format!("RRSIG\tSOA {algorithm} 2 60 ")), "{signed}");
    }
    let same = sign_zone("example.test", ZONE.as_bytes(), ZoneSigning::No).unwrap();
    assert_eq!(same, ZONE.as_bytes());
}

#[test]
fn what_is_no_zone_is_said_by_whom() {
    let error = sign_zone("example.test", b"@ 60 A 192.0.2.1\n", ZoneSigning::EcdsaP256);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("cannot sign the zone example.test: dnssec-signzone"), "{error}");
}
