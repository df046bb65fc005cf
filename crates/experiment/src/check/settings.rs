//! The entries of one variant, layer on layer, read as the types that the check needs.

use std::cmp::Ordering;
use std::time::Duration;

use dnslab_traffic::Rate;
use dnslab_wire::EdnsOption;

use crate::error::Place;
use crate::file::{Entries, Entry, Host, Value, preset};
use crate::keys;

/// The entries that hold for one variant.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The innermost entry of each key that was written.
    entries: Entries,
}

/// Which of two keys that exclude each other holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Exclusive {
    /// Neither was written.
    Neither,
    /// The first.
    First,
    /// The second.
    Second,
    /// Both in the same place; the two places.
    Both(Place, Place),
}

impl Settings {
    /// The entries of the experiment under those of a variant.
    pub(super) fn new(experiment: &Entries, variant: &Entries) -> Self {
        let mut entries = experiment.clone();
        for (path, entry) in variant {
            entries.insert(path, entry.clone());
        }
        Self { entries }
    }

    /// True if what was written for the key is what holds without it.
    pub(super) fn is_preset(&self, path: &str) -> bool {
        let written = self.entry(path).and_then(|entry| entry.value.as_ref());
        written.is_some() && written.cloned() == keys::find(path).and_then(preset)
    }

    /// Where the key was written, if it was.
    pub(super) fn place(&self, path: &str) -> Option<&Place> {
        self.entry(path).map(|entry| &entry.place)
    }

    /// The entry of the key, if it was written.
    pub(super) fn entry(&self, path: &str) -> Option<&Entry> {
        debug_assert!(keys::find(path).is_some(), "`{path}` is not in the table of keys");
        self.entries.get(path)
    }

    /// Every entry that holds.
    pub(super) fn holding(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Decides between two keys that exclude each other: the later layer wins, and the loser is
    /// forgotten.
    pub(super) fn exclusive(&mut self, first: &'static str, second: &'static str) -> Exclusive {
        let chosen = self.ranked(first, second);
        match chosen {
            Exclusive::First => self.forget(second),
            Exclusive::Second => self.forget(first),
            Exclusive::Neither | Exclusive::Both(..) => {}
        }
        chosen
    }

    /// Which of two keys was written in the later layer.
    pub(super) fn ranked(&self, first: &str, second: &str) -> Exclusive {
        match (self.entry(first), self.entry(second)) {
            (None, None) => Exclusive::Neither,
            (Some(_), None) => Exclusive::First,
            (None, Some(_)) => Exclusive::Second,
            (Some(a), Some(b)) => match a.layer.cmp(&b.layer) {
                Ordering::Greater => Exclusive::First,
                Ordering::Less => Exclusive::Second,
                Ordering::Equal => Exclusive::Both(a.place.clone(), b.place.clone()),
            },
        }
    }

    /// Forgets what was written for a key.
    pub(super) fn forget(&mut self, path: &str) {
        self.entries.remove(path);
    }

    /// True if what was written for the key could not be read.
    pub(super) fn is_broken(&self, path: &str) -> bool {
        self.entry(path).is_some_and(|entry| entry.value.is_none())
    }

    /// The value that was written, or the preset. `None` if there is neither, or if what was
    /// written could not be read.
    fn value(&self, path: &str) -> Option<Value> {
        match self.entry(path) {
            Some(Entry { value: Some(value), .. }) => Some(value.clone()),
            // Stands in for a value that is wrong, so that the other keys can still be checked.
            _ => preset(keys::find(path)?),
        }
    }

    /// A count, if there is one.
    pub(super) fn count(&self, path: &str) -> Option<u32> {
        match self.value(path)? {
            Value::Count(count) => u32::try_from(count).ok(),
            _ => None,
        }
    }

    /// A count that may exceed 32 bits, if there is one.
    pub(super) fn large_count(&self, path: &str) -> Option<u64> {
        match self.value(path)? {
            Value::Count(count) => Some(count),
            _ => None,
        }
    }

    /// A port, if there is one.
    pub(super) fn port(&self, path: &str) -> Option<u16> {
        self.count(path).and_then(|port| u16::try_from(port).ok())
    }

    /// A duration; zero if there is none, which the table of keys rules out.
    pub(super) fn duration(&self, path: &str) -> Duration {
        match self.value(path) {
            Some(Value::Duration(duration)) => duration,
            _ => Duration::ZERO,
        }
    }

    /// A duration, if one was written and could be read.
    pub(super) fn written_duration(&self, path: &str) -> Option<Duration> {
        match self.value(path) {
            Some(Value::Duration(duration)) => Some(duration),
            _ => None,
        }
    }

    /// A rate, if there is one.
    pub(super) fn rate(&self, path: &str) -> Option<Rate> {
        match self.value(path)? {
            Value::Rate(rate) => Some(rate),
            _ => None,
        }
    }

    /// EDNS options; none if there is no list.
    pub(super) fn edns_options(&self, path: &str) -> Vec<EdnsOption> {
        match self.value(path) {
            Some(Value::EdnsOptions(options)) => options,
            _ => Vec::new(),
        }
    }

    /// A share, if there is one.
    pub(super) fn number(&self, path: &str) -> Option<f64> {
        match self.value(path)? {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Text, if there is any.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        match self.value(path)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Words; none if there is no list.
    pub(super) fn words(&self, path: &str) -> Vec<String> {
        match self.value(path) {
            Some(Value::Words(words)) => words,
            _ => Vec::new(),
        }
    }

    /// CPU numbers; none if there is no list.
    pub(super) fn cpus(&self, path: &str) -> Vec<usize> {
        match self.value(path) {
            Some(Value::Cpus(cpus)) => cpus,
            _ => Vec::new(),
        }
    }

    /// True if `true` was written, or is the preset.
    pub(super) fn is_true(&self, path: &str) -> bool {
        matches!(self.value(path), Some(Value::Boolean(true)))
    }

    /// An address and its port, if there is one.
    pub(super) fn address(&self, path: &str) -> Option<(Host, Option<u16>)> {
        match self.value(path)? {
            Value::Address(address, port) => Some((address, port)),
            _ => None,
        }
    }
}
