//! What was written for a key, and where.

use std::collections::BTreeMap;

use crate::kind::Value;
use crate::problem::Place;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// `None` if it could not be read, which is a problem already noted.
    pub(crate) value: Option<Value>,
    pub(crate) place: Place,
    pub(crate) layer: Layer,
}

impl Entry {
    /// `None` if it is no text, or could not be read.
    pub(crate) fn text(&self) -> Option<&str> {
        match self.value.as_ref()? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// `None` if it is no whole number, or could not be read.
    pub(crate) fn number(&self) -> Option<u32> {
        match self.value.as_ref()? {
            Value::Count(count) => u32::try_from(*count).ok(),
            _ => None,
        }
    }

    /// `None` if it is neither true nor false, or could not be read.
    pub(crate) fn boolean(&self) -> Option<bool> {
        match self.value.as_ref()? {
            Value::Boolean(boolean) => Some(*boolean),
            _ => None,
        }
    }
}

/// Where a value was written. A later layer wins over an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// At the top of the file, or by its own option.
    File,
    /// By `--set key=value`.
    CommandLine,
    /// In a `[[variant]]`.
    Variant,
    /// By `--set variant.NAME.key=value`, or by the program.
    VariantCommandLine,
}

/// By the path of their key.
pub(crate) type Entries = BTreeMap<&'static str, Entry>;
