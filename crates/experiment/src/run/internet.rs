//! The private Internet that a server resolves in, as its description says.

use std::path::Path;
use std::sync::Arc;

use dnslab_internet::Internet;
use dnslab_lab::read_given_text;
use dnslab_settings::{Upstream, UpstreamChoice, Variant};
use dnslab_traffic::QueryList;
use dnslab_wire::QueryOptions;

use super::error::{InternetError, QueriesError};

/// Octets of a description: more than one with all its keys has.
const MAX_FILE: u64 = 2 << 20;

/// A private Internet and the text that describes it.
pub(super) struct PrivateInternet {
    pub(super) description: String,
    pub(super) internet: Arc<Internet>,
}

impl PrivateInternet {
    /// `None` if the variant's server does not resolve in one.
    pub(super) fn of(upstream: &Upstream) -> Result<Option<Self>, InternetError> {
        if upstream.kind != Some(UpstreamChoice::Internet) {
            return Ok(None);
        }
        // What a description leaves out has its default.
        let (description, path) = match &upstream.hierarchy {
            None => (String::new(), Path::new("that is built in")),
            Some(path) => {
                let unreadable = |source| InternetError::Unreadable { path: path.clone(), source };
                (read_given_text(path, MAX_FILE).map_err(unreadable)?, path.as_path())
            }
        };
        let wrong = |source| InternetError::Wrong { path: path.to_owned(), source };
        let internet = Arc::new(Internet::parse(&description).map_err(wrong)?);
        Ok(Some(Self { description, internet }))
    }

    /// The networks of its servers, e.g. `198.18.0.0/15`.
    pub(super) fn networks(&self) -> Vec<String> {
        self.internet.networks().map(|network| network.to_string()).collect()
    }

    /// The DS record of its root.
    ///
    /// # Errors
    /// When nothing is signed.
    pub(super) fn trust_anchor(&self) -> Result<String, InternetError> {
        self.internet.trust_anchor().map(|anchor| anchor.ds).ok_or(InternetError::Unsigned)
    }

    /// What keeps a variant from its private Internet, if it has one.
    pub(super) fn lacking(variant: &Variant) -> Option<String> {
        let is_told = |internet: Self| match variant.server.dnssec {
            true => internet.trust_anchor().map(drop),
            false => Ok(()),
        };
        let found = Self::of(&variant.upstream).and_then(|made| made.map_or(Ok(()), is_told));
        found.err().map(|error| error.to_string())
    }

    /// Queries for the addresses of its most popular names.
    pub(super) fn popular(
        &self,
        count: u32,
        options: &QueryOptions,
    ) -> Result<QueryList, QueriesError> {
        let lines = (0..u64::from(count)).map(|i| format!("{} A\n", self.internet.name(i)));
        let text: String = lines.collect();
        Ok(QueryList::from_text(text.as_bytes(), "the private Internet", options)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn upstream(text: Option<&str>, folder: &Path) -> Upstream {
        let path = folder.join("internet.toml");
        if let Some(text) = text {
            fs::write(&path, text).unwrap();
        }
        Upstream {
            kind: Some(UpstreamChoice::Internet),
            hierarchy: text.map(|_| path),
            ..Upstream::default()
        }
    }

    #[test]
    fn a_description_is_read_or_its_fault_told() {
        let folder = tempfile::tempdir().unwrap();
        let internet = |text| PrivateInternet::of(&upstream(text, folder.path()));
        let built_in = internet(None).unwrap().unwrap();
        assert_eq!(built_in.networks(), dnslab_lab::hosts::INTERNET);
        assert!(built_in.trust_anchor().unwrap().contains(" DS "));
        let small = internet(Some("[dnssec]\nroot = false\n")).unwrap().unwrap();
        assert!(matches!(small.trust_anchor(), Err(InternetError::Unsigned)));
        let error = internet(Some("sed = 7\n")).err().unwrap().to_string();
        assert!(error.starts_with("the hierarchy /") && error.contains("sed"), "{error}");
        fs::remove_file(folder.path().join("internet.toml")).unwrap();
        let gone =
            Upstream { hierarchy: Some("/nowhere/h".into()), ..upstream(None, folder.path()) };
        let error = PrivateInternet::of(&gone).err().unwrap().to_string();
        assert!(error.starts_with("cannot read the hierarchy /nowhere/h: "), "{error}");
        assert!(PrivateInternet::of(&Upstream::default()).unwrap().is_none());
    }

    #[test]
    fn popular_names_are_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let internet = PrivateInternet::of(&upstream(None, folder.path())).unwrap().unwrap();
        let list = internet.popular(20, &QueryOptions::default()).unwrap();
        assert_eq!(list.len(), 20);
        let first = internet.internet.name(0).to_string();
        let asked = list.get(0).to_string();
        assert!(asked.starts_with(first.trim_end_matches('.')), "{asked}, not {first}");
    }
}
