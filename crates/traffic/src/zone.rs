//! A zone made to be asked.

mod directory_suffix;
mod format;
mod ipa_script;
mod ldif;
mod master_file;
mod synthetic;
mod text;
mod update_commands;
mod update_server;

pub use directory_suffix::{DirectorySuffix, DirectorySuffixError};
pub use format::ZoneFormat;
pub use synthetic::{SyntheticZone, ZoneError};
pub use update_server::{UpdateServer, UpdateServerError};
