//! Which functions of a server are which part of its CPU time.

use dnslab_record::CostPart;

/// Functions of libraries that are a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostRow {
    /// How the name of the file begins.
    pub(crate) library: &'static str,
    /// How the name of the function begins; any function if empty.
    pub(crate) symbols: &'static [&'static str],
    pub(crate) part: CostPart,
}

pub(crate) const fn library(library: &'static str, part: CostPart) -> CostRow {
    CostRow { library, symbols: &[], part }
}

pub(crate) const fn functions(
    library: &'static str,
    symbols: &'static [&'static str],
    part: CostPart,
) -> CostRow {
    CostRow { library, symbols, part }
}
