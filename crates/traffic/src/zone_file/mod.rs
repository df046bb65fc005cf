//! Zone files (RFC 1035, section 5): read record by record, and what a client can ask of one.

mod entries;
mod error;
mod further_types;
mod questions;

pub use entries::read_zone_file;
pub use error::ZoneFileError;
pub use questions::zone_file_apex;
pub(crate) use questions::{Question, questions};
