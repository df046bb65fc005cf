//! Services that a domain may have.

/// Services over TCP that a domain may have, with their ports: those that programs for mail and calendars look
/// for (RFC 6186, RFC 6764, RFC 8314).
pub(crate) const SERVICES: [(&str, u16); 5] = [
    ("_autodiscover", 443),
    ("_caldavs", 443),
    ("_carddavs", 443),
    ("_imaps", 993),
    ("_submissions", 465),
];
