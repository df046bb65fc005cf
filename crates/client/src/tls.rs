//! TLS of a load: whom to trust, which name to ask for, what of earlier connections is used again.

pub(crate) mod alpn;
mod certificate;
mod client;
mod error;
mod fault;
mod session;
mod settings;
#[cfg(test)]
mod tests;
mod tickets;
mod verification;

pub(crate) use certificate::facts as certificate_facts;
pub use client::ClientTls;
pub use error::TlsSettingsError;
pub use fault::{CertificateFault, FaultWatch};
pub(crate) use session::TlsSession;
pub use settings::{TlsSettings, offered_names};
pub(crate) use tickets::TicketStore;
pub use verification::Verification;
