//! One kind of doubt over the runs of a variant.

use dnslab_record::Caveat;
use serde::{Deserialize, Serialize};

/// One kind of doubt about the runs of a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VariantCaveat {
    /// The caveat with the worst figure of all valid runs.
    pub worst: Caveat,
    /// In how many of the valid runs there is one of its kind.
    pub runs: u32,
}
