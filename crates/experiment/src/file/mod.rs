//! Where experiments come from, and whose they are.

mod built_in;
mod owner;
mod source;

pub use built_in::{BUILT_IN, Changes, Here, LinkError, find_link, load, load_changed};
pub(crate) use built_in::{MANIFESTS, Purpose, load_file};
pub use owner::{Untrusted, doubt_of_results};
pub use source::Source;
