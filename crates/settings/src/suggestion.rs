//! What a user most likely meant by an unknown word, if it is a slip of the fingers. A word that looks alike
//! but means something else (`load.pcap`, `load.pace`) puzzles more than it helps.

use crate::key::Key;
use crate::problem::MAX_SHOWN;

/// Words of the field. A user who writes one of them means it, even if a key is spelled much like it.
const FIELD_WORDS: [&str; 33] = [
    "a", "aaaa", "cache", "core", "cpu", "doh", "doq", "dot", "file", "host", "http", "key", "log",
    "loss", "mode", "name", "path", "pcap", "pod", "port", "qps", "quic", "rate", "rcode", "size",
    "soa", "tcp", "time", "tls", "trace", "ttl", "type", "udp",
];

/// Length from which two slips still count as slips.
const LONG: usize = 7;

/// Length of the shortest word that may have a slip in it.
const SHORT: usize = 3;

/// The right last part in a wrong group: worse than any slip.
const OTHER_GROUP: usize = 6;

/// How many slips lie between a word and a known one; `None` if they are two words.
///
/// A slip is a letter too many, a letter too few, another letter, or two swapped letters. Case, `-` and `_`
/// do not count.
fn slips(written: &str, known: &str) -> Option<usize> {
    let plain = |word: &str| word.to_lowercase().replace(['-', '_'], "");
    let (written, known) = (plain(written), plain(known));
    if written == known {
        return Some(0);
    }
    // The same word, perhaps in the plural or with a version.
    let is_longer = known.starts_with(&written) || written.starts_with(&known);
    if FIELD_WORDS.contains(&written.as_str()) && !is_longer {
        return None;
    }
    let most = match known.chars().count() {
        0..SHORT => 0,
        SHORT..LONG => 1,
        _ => 2,
    };
    // As many letters as one has more are slips, and the distance of a long word takes long.
    if written.chars().count().abs_diff(known.chars().count()) > most {
        return None;
    }
    let slips = strsim::osa_distance(&written, &known);
    (slips <= most).then_some(slips)
}

/// The word of `words` that a user who wrote `word` most likely meant.
#[must_use]
pub fn closest_word<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = words.into_iter().filter_map(|known| Some((slips(word, known)?, known)));
    near.min_by_key(|(slips, _)| *slips).map(|(_, known)| known)
}

/// The name that a user who wrote `name` most likely meant. `found` is how many problems there were before: of many, no
/// more than are shown need a suggestion.
pub(crate) fn near<'a>(name: &str, names: &'a [impl AsRef<str>], found: usize) -> Option<&'a str> {
    if found < MAX_SHOWN { closest_word(name, names.iter().map(AsRef::as_ref)) } else { None }
}

/// The first of these names, and how many more there are.
pub(crate) fn listed(names: &[impl AsRef<str>]) -> String {
    /// More would push the reason off the screen.
    const MAX_LISTED: usize = 20;
    let first: Vec<&str> = names.iter().take(MAX_LISTED).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(MAX_LISTED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The key that a user who wrote `path` most likely meant. There is a slip in its last part or in its group,
/// or the last part is right and its group is missing or wrong.
pub(crate) fn closest_key(
    path: &str,
    keys: impl Iterator<Item = &'static Key>,
) -> Option<&'static Key> {
    let near = keys.filter_map(|key| Some((distance(path, key.path)?, key)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, key)| key)
}

/// How far the path of a key is from one that was written; `None` if nobody can have meant it.
fn distance(path: &str, known: &str) -> Option<usize> {
    let ((group, last), (known_group, known_last)) = (split(path), split(known));
    let Some(of_last) = slips(last, known_last) else {
        // `load.zone` for a key of `server.zone`: the first of them has the least distance.
        let is_group = !group.is_empty() && is_end_of(last, known_group);
        return is_group.then_some(OTHER_GROUP + 1);
    };
    let of_group = match path_slips(group, known_group) {
        Some(slips) => slips,
        // `zone.ttl` for `server.zone.ttl`.
        None if is_end_of(group, known_group) => 1,
        None if of_last == 0 => OTHER_GROUP,
        None => return None,
    };
    Some(of_group + of_last)
}

/// The table of keys that a user who wrote a table at `path` most likely meant.
pub(crate) fn closest_group(
    path: &str,
    keys: impl Iterator<Item = &'static Key>,
) -> Option<&'static str> {
    let groups = keys.filter_map(|key| Some(key.path.rsplit_once('.')?.0));
    let near = groups.filter_map(|group| Some((path_slips(path, group)?, group)));
    near.min_by_key(|(slips, _)| *slips).map(|(_, group)| group)
}

/// The group may be empty.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// `None` if the paths have different numbers of parts.
fn path_slips(written: &str, known: &str) -> Option<usize> {
    let (written, known) = (written.split('.'), known.split('.'));
    if written.clone().count() != known.clone().count() {
        return None;
    }
    written.zip(known).map(|(written, known)| slips(written, known)).sum()
}

fn is_end_of(group: &str, known: &str) -> bool {
    group.is_empty() || known.strip_suffix(group).is_some_and(|before| before.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;

    #[test]
    fn slips_find_their_key() {
        let check = |written: &str, meant: Option<&str>| {
            assert_eq!(closest_key(written, keys()).map(|key| key.path), meant, "for `{written}`");
        };
        check("load.clinets", Some("load.clients"));
        check("load.client", Some("load.clients"));
        check("clients", Some("load.clients"));
        check("load.warmup", Some("load.warm_up"));
        check("load.warm-up", Some("load.warm_up"));
        check("laod.duration", Some("load.duration"));
        check("server.zone.record", Some("server.zone.records"));
        check("load.zone", Some("server.zone.name"));
        check("server.delai", Some("server.delay"));
        check("runs", Some("repeat.runs"));
        check("zone.ttl", Some("server.zone.ttl"));
        check("load.kind", Some("server.kind"));
    }

    #[test]
    fn other_words_find_no_key() {
        for written in [
            "xyzzy",
            "load.pcap",
            "load.time",
            "load.trace",
            "load.colour",
            "load.percentile",
            "server.pod",
            "server.container",
        ] {
            assert_eq!(closest_key(written, keys()).map(|key| key.path), None, "for `{written}`");
        }
    }

    #[test]
    fn slips_find_their_word() {
        let check = |written: &str, meant: Option<&str>| {
            let found = closest_word(written, ["udp", "tcp", "dot", "doh2"]);
            assert_eq!(found, meant, "for `{written}`");
        };
        check("upd", Some("udp"));
        check("UDP", Some("udp"));
        check("doh", Some("doh2"));
        check("DoH-2", Some("doh2"));
        // This is another transport, not a slip.
        check("doq", None);
        check("https", None);
        assert_eq!(closest_group("laod", keys()), Some("load"));
        assert_eq!(closest_group("sever.zone", keys()), Some("server.zone"));
        assert_eq!(closest_group("xyzzy", keys()), None);
        assert_eq!(closest_word("encrypton", ["encryption", "forwarding"]), Some("encryption"));
    }
}
