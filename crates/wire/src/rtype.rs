//! Record types that octets are searched for (IANA DNS parameters; RFC 6895, section 3.1), from the table of
//! `domain`.

use domain::base::iana::Rtype;

/// Host address
pub const A: u16 = Rtype::A.to_int();
/// Authoritative server
pub const NS: u16 = Rtype::NS.to_int();
/// Alias
pub const CNAME: u16 = Rtype::CNAME.to_int();
/// Start of authority
pub const SOA: u16 = Rtype::SOA.to_int();
/// Host address, IPv6
pub const AAAA: u16 = Rtype::AAAA.to_int();
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
/// Transfer of a zone (RFC 5936)
pub const AXFR: u16 = Rtype::AXFR.to_int();
/// Incremental zone transfer; AXFR, MAILB and [`MAILA`] come after it
pub const IXFR: u16 = Rtype::IXFR.to_int();
/// Mail agents, obsolete
pub const MAILA: u16 = Rtype::MAILA.to_int();
/// All types
pub const ANY: u16 = Rtype::ANY.to_int();
