//! `dnslab make internet`: what a resolver and its clients need to know of an internet.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use dnslab_internet::Internet;
use dnslab_lab::read_given_text;

use crate::arguments::MakeInternet;
use crate::exit::{Exit, Failure};

/// The files that are written.
const FILES: [&str; 5] = ["root.hints", "root.zone", "trust-anchor.key", "bind.keys", "names"];

/// Reads the description of an internet.
pub(crate) fn read(path: &Path) -> anyhow::Result<Internet> {
    let cannot = || format!("cannot read the internet of {}", path.display());
    /// Octets: more than a description with all its keys has.
    const MOST: u64 = 2 << 20;
    let text = read_given_text(path, MOST).with_context(cannot)?;
    Internet::parse(&text).with_context(cannot)
}

pub(super) fn make_internet(arguments: &MakeInternet) -> Result<Exit, Failure> {
    let internet = read(&arguments.hierarchy).map_err(Failure::bad_input)?;
    let folder = &arguments.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if let Some(there) = FILES.map(|name| folder.join(name)).iter().find(|path| path.exists())
        && !arguments.force
    {
        return Err(Failure::bad_input(anyhow!(
            "{} exists: name another folder, or replace its files with --force",
            there.display()
        )));
    }
    for name in FILES {
        let path = folder.join(name);
        let written = write(&internet, name, arguments.names, &path);
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(Exit::Fine)
}

fn write(internet: &Internet, name: &str, names: u64, path: &Path) -> io::Result<()> {
    let anchor = internet.trust_anchor();
    let text = match name {
        "root.hints" => internet.root_hints(),
        "root.zone" => internet.root_zone(),
        "trust-anchor.key" => {
            anchor.map(|anchor| format!("{}\n", anchor.dnskey)).unwrap_or_default()
        }
        // The data of the record, with the key in quotes.
        "bind.keys" => anchor.map(|anchor| bind_keys(&anchor.dnskey)).unwrap_or_default(),
        _ => {
            let mut file = BufWriter::new(File::create(path)?);
            (0..names).try_for_each(|i| writeln!(file, "{} A", internet.name(i)))?;
            return file.flush();
        }
    };
    fs::write(path, text)
}

/// For `include` in named.conf, and for `delv -a`.
fn bind_keys(dnskey: &str) -> String {
    let mut words = dnskey.split(' ').skip(4);
    let mut word = || words.next().unwrap_or_default();
    let (flags, protocol, algorithm, key) = (word(), word(), word(), word());
    format!("trust-anchors {{ . static-key {flags} {protocol} {algorithm} \"{key}\"; }};\n")
}
