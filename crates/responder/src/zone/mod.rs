//! Zones: read from a file or made, and looked up.

mod data;
mod denial;
mod draft;
mod load;
mod made;
mod zones;

pub use data::Zone;
pub(crate) use data::{AncestorNode, Lookup, NamedNode, Node, RrSet, suffixes};
pub use made::{NameLineError, NameList, NameListError, Signing};
pub use zones::{Role, Zones};
