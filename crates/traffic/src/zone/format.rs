//! The forms in which a zone is written down.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroU32;

use super::directory_suffix::DirectorySuffix;
use super::synthetic::SyntheticZone;
use super::update_server::UpdateServer;
use super::{ipa_script, ldif, master_file, update_commands};

/// Octets that are kept before they are written; a Linux pipe holds as many.
const BUFFER: usize = 1 << 16;

/// A form in which a zone is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneFormat {
    /// A master file (RFC 1035, section 5), which any server reads.
    MasterFile,
    /// A shell script of `ipa` commands, for FreeIPA from 4.9.
    IpaScript {
        /// Most records in one request to the server; with one, each record is a command.
        batch: NonZeroU32,
    },
    /// LDIF (RFC 2849) with the entries that FreeIPA has for a zone in its directory.
    Ldif {
        /// The directory's suffix.
        suffix: DirectorySuffix,
    },
    /// Commands for `nsupdate`, which adds the records to a zone that is there (RFC 2136).
    UpdateCommands {
        /// The server that is asked, if it is not the one of the zone's SOA record.
        server: Option<UpdateServer>,
        /// Most records in one message; without it, as many as fit.
        batch: Option<NonZeroU32>,
    },
}

impl SyntheticZone {
    /// Writes a zone file (RFC 1035, section 5) that any server reads, in constant memory.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
        self.write_as(&ZoneFormat::MasterFile, writer)
    }

    /// Writes the zone in this form, in constant memory: through a buffer of 64 KiB, flushed at the end.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_as(&self, format: &ZoneFormat, writer: impl Write) -> io::Result<()> {
        let mut file = BufWriter::with_capacity(BUFFER, writer);
        match format {
            ZoneFormat::MasterFile => master_file::write(self, &mut file)?,
            ZoneFormat::IpaScript { batch } => ipa_script::write(self, *batch, &mut file)?,
            ZoneFormat::Ldif { suffix } => ldif::write(self, suffix, &mut file)?,
            ZoneFormat::UpdateCommands { server, batch } => {
                update_commands::write(self, server.as_ref(), *batch, &mut file)?;
            }
        }
        file.flush()
    }
}
