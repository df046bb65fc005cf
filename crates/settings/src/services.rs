//! Services of a cluster.

use std::fmt;
use std::str::FromStr;

/// A Service of a cluster that runs already.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServicePlace {
    /// The context of kubectl(1); `None` for the current one.
    pub context: Option<String>,
    /// Its namespace; `None` for that of the context.
    pub namespace: Option<String>,
    /// Its name there.
    pub name: String,
}

/// A text that names no Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoServicePlace;

impl fmt::Display for NoServicePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("write `NAME`, or `NAMESPACE/NAME`: \"kube-system/kube-dns\"")
    }
}

impl std::error::Error for NoServicePlace {}

/// Octets of a name at most (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 63;

/// Whether a text can name an object (RFC 1123, section 2.1).
pub(crate) fn is_label(text: &str) -> bool {
    let is_inner = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().last()];
    text.len() <= MAX_NAME
        && ends.iter().all(|end| end.is_some_and(is_inner))
        && text.bytes().all(|octet| is_inner(octet) || octet == b'-')
}

impl FromStr for ServicePlace {
    type Err = NoServicePlace;

    fn from_str(text: &str) -> Result<Self, NoServicePlace> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        if !namespace.is_none_or(is_label) || !is_label(name) {
            return Err(NoServicePlace);
        }
        let namespace = namespace.map(str::to_owned);
        Ok(Self { context: None, namespace, name: name.to_owned() })
    }
}

impl fmt::Display for ServicePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{namespace}/{}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}
