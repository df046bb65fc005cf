//! The key that signs every zone that dnslab makes up, as validating servers take it.
//!
//! It is a laboratory key: its private half is in the source of [`crate::ZoneKey`], so it proves nothing. It never
//! changes, so a server's configuration can name it before the responder starts.

/// A record of the root zone: key-signing and zone-signing at once (flags 257), ECDSA P-256 with SHA-256 (RFC
/// 6605). `trust-anchor:` of Unbound and `trust_anchors.add` of Knot Resolver take it.
pub const TRUST_ANCHOR_DNSKEY: &str = ". 3600 IN DNSKEY 257 3 13 KRujI8l2XntmIn7S01xv8jTef8/Fe0FK\
                                       dzsm1y+v93YYBR1WfmGWfX4rrmtRfV6PRhBj3zEMmlMpA7kCT8tgvw==";

/// That record's digest as a DS record, by SHA-256 (RFC 4509).
pub const TRUST_ANCHOR_DS: &str = ". 3600 IN DS 53229 13 2 \
                                   9A66D4F488953B61A7DC4EA2E7AE9B576A46A94BBB171AC8764087EC469A890E";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_have_it() {
        let servers = include_str!("../../../docs/SERVERS.md");
        for record in [TRUST_ANCHOR_DNSKEY, TRUST_ANCHOR_DS] {
            assert!(servers.lines().any(|line| line == record), "no `{record}`");
        }
    }
}
