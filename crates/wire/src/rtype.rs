//! Record types that octets are searched for, or written with (IANA DNS parameters; RFC 6895, section 3.1), from the table
//! of `domain`.

use domain::base::iana::Rtype;

/// Host address
pub const A: u16 = Rtype::A.to_int();
/// Authoritative server
pub const NS: u16 = Rtype::NS.to_int();
/// Alias
pub const CNAME: u16 = Rtype::CNAME.to_int();
/// Start of authority
pub const SOA: u16 = Rtype::SOA.to_int();
/// The name of an address
pub const PTR: u16 = Rtype::PTR.to_int();
/// Mail exchange
pub const MX: u16 = Rtype::MX.to_int();
/// Text
pub const TXT: u16 = Rtype::TXT.to_int();
/// Host address, IPv6
pub const AAAA: u16 = Rtype::AAAA.to_int();
/// The server of a service (RFC 2782)
pub const SRV: u16 = Rtype::SRV.to_int();
/// Alias for all names below (RFC 6672)
pub const DNAME: u16 = Rtype::DNAME.to_int();
/// EDNS (RFC 6891)
pub const OPT: u16 = Rtype::OPT.to_int();
/// Delegation signer: lives on the parent's side of a zone cut
pub const DS: u16 = Rtype::DS.to_int();
/// Signature over an RRset
pub const RRSIG: u16 = Rtype::RRSIG.to_int();
/// The next name, and the types that a name has
pub const NSEC: u16 = Rtype::NSEC.to_int();
/// The public key of a zone (RFC 4034)
pub const DNSKEY: u16 = Rtype::DNSKEY.to_int();
/// The next hash of a name, and the types that a name has (RFC 5155)
pub const NSEC3: u16 = Rtype::NSEC3.to_int();
/// How the names of a zone are hashed (RFC 5155)
pub const NSEC3PARAM: u16 = Rtype::NSEC3PARAM.to_int();
/// How a web site is reached (RFC 9460)
pub const HTTPS: u16 = Rtype::HTTPS.to_int();
/// Transfer of a zone (RFC 5936)
pub const AXFR: u16 = Rtype::AXFR.to_int();
/// Incremental zone transfer; AXFR, MAILB and [`MAILA`] come after it
pub const IXFR: u16 = Rtype::IXFR.to_int();
/// Mail agents, obsolete
pub const MAILA: u16 = Rtype::MAILA.to_int();
/// All types
pub const ANY: u16 = Rtype::ANY.to_int();
/// Authorities that may issue certificates (RFC 8659)
pub const CAA: u16 = Rtype::CAA.to_int();

/// True for a type whose answer is a stream of messages (RFC 5936, RFC 1995).
#[must_use]
pub const fn is_transfer(rtype: u16) -> bool {
    matches!(rtype, AXFR | IXFR)
}
