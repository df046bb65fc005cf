//! `dnslab make`: what a measurement needs: a zone for an external server, and a population to be edited.

pub(crate) mod internet;

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use dnslab_traffic::population::Population;
use dnslab_traffic::{SyntheticZone, ZoneFormat};
use dnslab_wire::units::duration;

use crate::arguments::{Made, Make, MakePopulation, MakeZone, OutputFile, ZoneForm};
use crate::exit::{Exit, Failure};
use crate::output;

/// Records in one request to FreeIPA: few enough for an answer within seconds, many enough that the request
/// itself costs next to nothing.
const IPA_BATCH: NonZeroU32 = NonZeroU32::new(500).expect("500 is not 0");

pub(crate) fn make(arguments: Make) -> Result<Exit, Failure> {
    match arguments.made {
        Made::Zone(arguments) => make_zone(&arguments),
        Made::Internet(arguments) => internet::make_internet(&arguments),
        Made::Population(arguments) => make_population(&arguments),
    }
}

fn make_zone(arguments: &MakeZone) -> Result<Exit, Failure> {
    let ttl = duration::read(&arguments.ttl).map_err(|_| {
        let ttl = &arguments.ttl;
        Failure::bad_input(anyhow!(
            "`{ttl}` is no TTL: it is a number and a unit, such as 5s or 1h"
        ))
    })?;
    let zone = SyntheticZone::named(&arguments.name, arguments.records, ttl)
        .map_err(Failure::bad_input)?;
    let format = format(arguments)?;
    write_to(&arguments.output, |output| zone.write_as(&format, output))
}

fn make_population(arguments: &MakePopulation) -> Result<Exit, Failure> {
    let typical = Population::typical();
    let clients = arguments.clients.unwrap_or(typical.clients);
    let rate_qps = arguments.rate.unwrap_or_else(|| typical.rate_of(clients));
    let population = Population { clients, rate_qps, ..typical };
    write_to(&arguments.output, |output| {
        output.write_all(population.to_commented_toml().as_bytes())
    })
}

/// Writes what was made into the file, whole or not at all, or to the standard output.
pub(crate) fn write_to(
    OutputFile { output: file, force }: &OutputFile,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> Result<Exit, Failure> {
    let Some(path) = file else {
        output::write_plain(write);
        return Ok(Exit::Fine);
    };
    // The target of a link counts. A dangling link counts itself.
    let there = path.metadata().or_else(|_| path.symlink_metadata());
    match there.as_ref().map(fs::Metadata::file_type) {
        Ok(kind) if kind.is_dir() => {
            Err(Failure::bad_input(anyhow!("{} is a folder: name a file", path.display())))
        }
        // A device or a pipe cannot be replaced, and writing to it loses nothing.
        Ok(kind) if !kind.is_file() && !kind.is_symlink() => {
            let file = File::options().write(true).open(path);
            let written = file.and_then(|mut file| write(&mut file));
            end(written).with_context(|| cannot_write(path)).map_err(Failure::from)
        }
        Ok(_) if !force => Err(Failure::bad_input(anyhow!(
            "{} exists: name another file, or replace it with --force",
            path.display()
        ))),
        _ => {
            write_whole(path, *force, write).with_context(|| cannot_write(path))?;
            Ok(Exit::Fine)
        }
    }
}

/// The form with its options. An option of another form is an error.
fn format(arguments: &MakeZone) -> Result<ZoneFormat, Failure> {
    let MakeZone { format, suffix, server, batch, .. } = arguments;
    let only_for = |option: &str, forms: &str, is_given: bool, belongs: bool| {
        let message = || anyhow!("{option} is only for --format {forms}");
        if is_given && !belongs { Err(Failure::bad_input(message())) } else { Ok(()) }
    };
    only_for("--suffix", "ldif", suffix.is_some(), *format == ZoneForm::Ldif)?;
    only_for("--server", "nsupdate", server.is_some(), *format == ZoneForm::Nsupdate)?;
    let has_batch = matches!(format, ZoneForm::Ipa | ZoneForm::Nsupdate);
    only_for("--batch", "ipa and --format nsupdate", batch.is_some(), has_batch)?;
    Ok(match format {
        ZoneForm::Bind => ZoneFormat::MasterFile,
        ZoneForm::Ipa => ZoneFormat::IpaScript { batch: batch.unwrap_or(IPA_BATCH) },
        ZoneForm::Ldif => {
            let missing = || {
                let hint =
                    "--suffix dc=example,dc=test (FreeIPA has it in /etc/ipa/default.conf, basedn)";
                Failure::bad_input(anyhow!("--format ldif needs the directory's suffix: {hint}"))
            };
            ZoneFormat::Ldif { suffix: suffix.clone().ok_or_else(missing)? }
        }
        ZoneForm::Nsupdate => ZoneFormat::UpdateCommands { server: server.clone(), batch: *batch },
    })
}

/// A reader that has read enough and closes the pipe is no error.
fn end(written: io::Result<()>) -> io::Result<Exit> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(Exit::Fine),
    }
}

/// Writes beside the file, and moves it there when it is whole: a server would load half a zone without
/// complaint. Replaces an existing file only if `replaces` is set.
fn write_whole(
    path: &Path,
    replaces: bool,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // The link stays, and its target is replaced.
    let path = &fs::canonicalize(path).or_else(|_| std::path::absolute(path))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let beside = tempfile::Builder::new()
        .prefix(".dnslab-made-")
        // The user's umask applies: a server of another user must be able to read the file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    write(&mut beside.as_file())?;
    if replaces {
        beside.persist(path)?;
    } else {
        beside.persist_noclobber(path)?;
    }
    Ok(())
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
