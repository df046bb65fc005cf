//! In which settings two experiments differ.

use std::collections::BTreeMap;

use crate::entry::Entries;
use crate::experiment::keys;
use crate::{Document, Key};

/// Keys of the experiment as a whole that change no figure: what it is called, what it asks, and how often.
const WITHOUT_EFFECT: [&str; 11] = [
    "name",
    "question",
    "baseline",
    "answered_by",
    "repeat.runs",
    "repeat.until",
    "repeat.sessions",
    "repeat.session_pause",
    "repeat.pause",
    "repeat.margin",
    "compare.with",
];

/// A key that two experiments have different values of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// The variants in question; none if it is a key of the experiment as a whole.
    pub variants: Vec<String>,
    /// The key, e.g. `load.clients`.
    pub key: &'static str,
    /// The value of the first experiment as TOML; `None` if it has none.
    pub then: Option<String>,
    /// That of the second one.
    pub now: Option<String>,
}

/// What the second experiment has otherwise than the first one, in the variants that both have, in the order
/// of the reference. A key that is not written has its default. Keys that change no figure are left out, and
/// so is what cannot be read.
#[must_use]
pub fn differences(then: &Document, now: &Document) -> Vec<SettingChange> {
    let mut found: Vec<SettingChange> = Vec::new();
    for key in keys().filter(|key| !WITHOUT_EFFECT.contains(&key.path)) {
        if !key.is_overridable() {
            let (then, now) = (value(key, [&then.entries]), value(key, [&now.entries]));
            let change = SettingChange { variants: Vec::new(), key: key.path, then, now };
            note(&mut found, change);
            continue;
        }
        let of_now: BTreeMap<&str, &Entries> = by_name(now).collect();
        for (name, own) in by_name(then) {
            let Some(other) = of_now.get(name) else { continue };
            let change = SettingChange {
                variants: vec![name.to_owned()],
                key: key.path,
                then: value(key, [own, &then.entries]),
                now: value(key, [other, &now.entries]),
            };
            note(&mut found, change);
        }
    }
    found
}

/// Adds a change, if it is one; to one that is known, its variants alone.
fn note(found: &mut Vec<SettingChange>, change: SettingChange) {
    if change.then == change.now {
        return;
    }
    let known = found.iter_mut().find(|known| {
        (known.key, &known.then, &known.now) == (change.key, &change.then, &change.now)
    });
    match known {
        Some(known) => known.variants.extend(change.variants),
        None => found.push(change),
    }
}

fn by_name(document: &Document) -> impl Iterator<Item = (&str, &Entries)> {
    document
        .variants
        .iter()
        .filter_map(|variant| Some((variant.name.as_deref()?, &variant.entries)))
}

/// The value of the first of these layers that has one, or the default, as TOML.
fn value<const N: usize>(key: &'static Key, layers: [&Entries; N]) -> Option<String> {
    let written = layers.into_iter().find_map(|entries| entries.get(key.path));
    match written {
        Some(entry) => entry.value.as_ref().map(|value| key.kind.write(value)),
        None => key.default_value().map(|value| key.kind.write(&value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: &str = "name = \"x\"\nload.clients = 10\nrepeat.runs = 3\n\
        [[variant]]\nname = \"udp\"\n[[variant]]\nname = \"tcp\"\nload.transport = \"tcp\"\n";

    /// The differences of a text from [`THEN`], a line for each.
    fn lines(now: &str) -> Vec<String> {
        let read = |text: &str| Document::of_file(text).unwrap();
        differences(&read(THEN), &read(now)).into_iter().map(line).collect()
    }

    fn line(change: SettingChange) -> String {
        let [then, now] = [change.then, change.now].map(|value| value.unwrap_or("-".to_owned()));
        format!("{} {}: {then} {now}", change.variants.join(","), change.key)
    }

    #[test]
    fn each_key_that_differs_is_named_once() {
        assert_eq!(lines(THEN), [""; 0]);
        let change = |from: &str, to: &str| lines(&THEN.replace(from, to));
        assert_eq!(change("clients = 10", "clients = 20"), ["udp,tcp load.clients: 10 20"]);

        assert_eq!(
            change("transport = \"tcp\"", "transport = \"dot\""),
            ["tcp load.transport: \"tcp\" \"dot\""]
        );
        // A default is a value, whether it is written or not.
        assert_eq!(change("name = \"udp\"\n", "name = \"udp\"\nload.warm_up = \"2s\"\n"), [""; 0]);
        assert_eq!(
            change("name = \"udp\"\n", "name = \"udp\"\nserver.busy = \"1us\"\n"),
            ["udp server.busy: \"0s\" \"1us\""]
        );
        assert_eq!(
            change("runs = 3", "runs = 3\nrepeat.slice = \"20ms\""),
            [" repeat.slice: \"50ms\" \"20ms\""]
        );
        // How often and under which name changes no figure; a variant that is gone has none.
        assert_eq!(change("runs = 3", "runs = 30"), [""; 0]);
        assert_eq!(change("\"x\"", "\"y\""), [""; 0]);
        assert_eq!(change("name = \"tcp\"", "name = \"other\""), [""; 0]);
    }
}
