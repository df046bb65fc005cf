//! Where experiments come from: built in, or a file.

use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use dnslab_lab::Given;
use dnslab_settings::{Chosen, Document, Experiment, Machine, PathKind, Problems, closest_word};
use dnslab_traffic::population::Population;

use crate::error::ExperimentError;
use crate::file::owner::{self, Untrusted};
use crate::file::source::Source;
use crate::run::population::read_population;
use crate::run::zone::read_zone_name;

/// The built-in experiments: name and text of the file.
pub const BUILT_IN: [(&str, &str); 19] = [
    ("cluster-dns", include_str!("../../../../experiments/cluster-dns.toml")),
    ("coredns-restart", include_str!("../../../../experiments/coredns-restart.toml")),
    ("coredns-sockets", include_str!("../../../../experiments/coredns-sockets.toml")),
    ("cost", include_str!("../../../../experiments/cost.toml")),
    ("encryption", include_str!("../../../../experiments/encryption.toml")),
    ("forwarders", include_str!("../../../../experiments/forwarders.toml")),
    ("forwarders-idle", include_str!("../../../../experiments/forwarders-idle.toml")),
    ("forwarding", include_str!("../../../../experiments/forwarding.toml")),
    ("idm", include_str!("../../../../experiments/idm.toml")),
    ("kubernetes-forwarding", include_str!("../../../../experiments/kubernetes-forwarding.toml")),
    ("ndots", include_str!("../../../../experiments/ndots.toml")),
    ("node-cache", include_str!("../../../../experiments/node-cache.toml")),
    ("node-cache-restart", include_str!("../../../../experiments/node-cache-restart.toml")),
    ("query-log-causes", include_str!("../../../../experiments/query-log-causes.toml")),
    ("query-logging", include_str!("../../../../experiments/query-logging.toml")),
    ("resolvers", include_str!("../../../../experiments/resolvers.toml")),
    ("scaling", include_str!("../../../../experiments/scaling.toml")),
    ("transports", include_str!("../../../../experiments/transports.toml")),
    ("waiting", include_str!("../../../../experiments/waiting.toml")),
];

/// The manifests of servers in a cluster: name and text.
pub(crate) const MANIFESTS: [(&str, &str); 3] = [
    ("autopath", include_str!("../../../../kubernetes/servers/autopath.yaml")),
    ("coredns", include_str!("../../../../kubernetes/servers/coredns.yaml")),
    ("node-cache", include_str!("../../../../kubernetes/servers/node-cache.yaml")),
];

/// Octets of an experiment file: enough for a thousand variants that each override many keys.
const MAX_SIZE: u64 = 16 << 20;

/// This machine, as the check asks it.
#[derive(Clone, Debug)]
pub struct Here {
    file_folder: PathBuf,
    current_folder: PathBuf,
}

impl Here {
    /// For an experiment file in this folder, which is absolute or starts from the current folder.
    ///
    /// # Errors
    /// When there is no current folder.
    pub fn with_file_in(folder: &Path) -> io::Result<Self> {
        let current_folder = std::env::current_dir()?;
        Ok(Self { file_folder: current_folder.join(folder), current_folder })
    }
}

impl Machine for Here {
    fn file_folder(&self) -> &Path {
        &self.file_folder
    }

    fn current_folder(&self) -> &Path {
        &self.current_folder
    }

    fn kind_of(&self, path: &Path) -> PathKind {
        match path.metadata().map(|facts| facts.file_type()) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => PathKind::Forbidden,
            Err(_) => PathKind::Missing,
            Ok(kind) if kind.is_file() => PathKind::File,
            Ok(kind) if kind.is_dir() => PathKind::Folder,
            Ok(kind) if kind.is_fifo() => PathKind::Pipe,
            Ok(_) => PathKind::Device,
        }
    }

    fn read_zone_name(&self, path: &Path) -> Result<String, String> {
        read_zone_name(path)
    }

    fn read_population(&self, path: &Path) -> Result<Population, String> {
        read_population(path).map_err(|error| error.to_string())
    }

    fn find_root(&self, root: &Path) -> Result<(), (String, String)> {
        let Err(error) = dnslab_lab::root::locate(root) else { return Ok(()) };
        Err((error.to_string(), error.hint().unwrap_or_default().to_owned()))
    }

    fn find_link(&self, address: Ipv6Addr, name: &str) -> Result<u32, String> {
        find_link(address, name).map_err(|error| error.to_string())
    }

    fn find_address(&self, name: &str) -> Result<IpAddr, String> {
        let found = (name, 0).to_socket_addrs().map_err(|error| format!("`{name}`: {error}"))?;
        let first = found.map(|address| address.ip()).next();
        first.ok_or_else(|| format!("`{name}` has no address"))
    }
}

/// Why an address has no link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// No interface has this name or number.
    #[error("this host has no interface `{0}`")]
    NoInterface(String),
    /// Only link-local addresses have one.
    #[error("only a link-local address, such as fe80::1, has a link, and `{0}` is none")]
    NotLinkLocal(Ipv6Addr),
}

/// The number of the interface on whose link an address of this host or of a neighbour is meant, by its name or number.
///
/// # Errors
/// When there is none, or the address is that of no link.
pub fn find_link(address: Ipv6Addr, name: &str) -> Result<u32, LinkError> {
    let mut found = (format!("{address}%{name}"), 0).to_socket_addrs().ok().into_iter().flatten();
    match found.next() {
        Some(SocketAddr::V6(found)) if found.scope_id() != 0 => Ok(found.scope_id()),
        _ if address.is_unicast_link_local() => Err(LinkError::NoInterface(name.to_owned())),
        _ => Err(LinkError::NotLinkLocal(address)),
    }
}

/// Finds and checks an experiment.
///
/// `name_or_path` is the name of a built-in if it has neither a `/` nor the ending `.toml`; otherwise the
/// path of a file. `sets` are overrides as `key=value`. Relative paths in a file start from the folder of the
/// file itself, whatever links lead to it. Those in `sets` start from the current folder. All come out
/// absolute.
///
/// # Errors
/// When there is no such experiment, it cannot be read, or it is wrong.
pub fn load(name_or_path: &str, sets: &[String]) -> Result<(Experiment, Source), ExperimentError> {
    load_changed(name_or_path, &Changes { sets, ..Changes::default() })
}

/// What the command line changes in an experiment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes<'a> {
    /// Overrides as `key=value`.
    pub sets: &'a [String],
    /// Which variants are made.
    pub chosen: Chosen<'a>,
    /// Program of the server that each variant is compared with itself on ([`Document::against`]).
    pub against: Option<&'a str>,
}

/// [`load`] with all that the command line can change.
///
/// # Errors
/// As [`load`].
pub fn load_changed(
    name_or_path: &str,
    changes: &Changes<'_>,
) -> Result<(Experiment, Source), ExperimentError> {
    let is_path = name_or_path.contains('/') || name_or_path.ends_with(".toml");
    if !is_path {
        let source = find_built_in(name_or_path)?;
        return Ok((check_source(&source, Path::new(""), changes)?, source));
    }
    let path = Path::new(name_or_path);
    let file = Given::open(path).map_err(unreadable(path))?;
    load_file(path, file, changes, Purpose::Begin)
}

/// What an experiment is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A session begins, with results where the user wants them. The owner of the file matters if it names
    /// code.
    Begin,
    /// A session is resumed, with results beside the file. Their owner always matters: servers are started in
    /// their folders.
    Resume,
}

/// Reads and checks an experiment as [`load`] does. The file was opened once, by this path, so that text and
/// owner are of one file even if another takes its place meanwhile.
pub(crate) fn load_file(
    path: &Path,
    mut file: Given,
    changes: &Changes<'_>,
    purpose: Purpose,
) -> Result<(Experiment, Source), ExperimentError> {
    let text = read(&mut file).map_err(unreadable(path))?;
    // A text that is not TOML names nothing. The check below reports it.
    let keys = document(&text, changes).map(|document| document.code_keys()).unwrap_or_default();
    let place = owner::place(file.file());
    let matters = !keys.is_empty() || purpose == Purpose::Resume;
    let doubt = if matters { owner::doubt(file.file(), place.as_deref()) } else { None };
    // Of results it is the folder that matters.
    let what = if keys.is_empty() { path.parent().unwrap_or(path) } else { path };
    let untrusted = doubt.map(|doubt| Box::new(Untrusted { path: what.to_owned(), keys, doubt }));
    let source = Source { name: path.to_string_lossy().into_owned(), text, untrusted };
    // A pipe has no folder: relative paths start where the user is.
    let folder = place.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    Ok((check_source(&source, folder, changes)?, source))
}

fn read(file: &mut Given) -> io::Result<String> {
    let mut text = String::new();
    let length = file.take(MAX_SIZE + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_SIZE {
        return Err(io::Error::other(format!("it has more than {MAX_SIZE} octets")));
    }
    Ok(text)
}

fn check_source(
    source: &Source,
    folder: &Path,
    changes: &Changes<'_>,
) -> Result<Experiment, ExperimentError> {
    let here = Here::with_file_in(folder).map_err(unreadable(Path::new(".")))?;
    let check =
        || -> Result<Experiment, Problems> { document(&source.text, changes)?.check(&here) };
    check().map_err(|problems| ExperimentError::Invalid { problems, source_text: source.clone() })
}

fn document(text: &str, changes: &Changes<'_>) -> Result<Document, Problems> {
    let mut document = Document::of_file(text)?;
    changes.sets.iter().for_each(|set| document.set(set));
    document.choose(&changes.chosen);
    if let Some(binary) = changes.against {
        document.against(binary);
    }
    Ok(document)
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> ExperimentError {
    let path = path.to_owned();
    move |error| ExperimentError::Unreadable { path, error, known: known_names() }
}

fn known_names() -> Vec<String> {
    BUILT_IN.map(|(known, _)| known.to_owned()).to_vec()
}

fn find_built_in(name: &str) -> Result<Source, ExperimentError> {
    match BUILT_IN.iter().find(|(known, _)| *known == name) {
        Some((known, text)) => {
            Ok(Source { name: format!("<{known}>"), text: (*text).to_owned(), untrusted: None })
        }
        None => Err(ExperimentError::UnknownName {
            name: name.to_owned(),
            suggestion: closest_word(name, BUILT_IN.map(|(known, _)| known)).map(str::to_owned),
            known: known_names(),
        }),
    }
}
