//! A map that forgets what was not used for long.

use std::collections::HashMap;
use std::hash::Hash;

/// A map of two generations. What is used moves to the young one. When that is full it becomes the old one, and
/// the old one is given up. So a map of `limit` holds `2 * limit` entries at most, and no entry costs more
/// than moving it once for each generation.
#[derive(Debug)]
pub(crate) struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Hash + Eq, V> Generations<K, V> {
    pub(crate) fn new() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }

    /// Entries used since the last turn.
    pub(crate) fn young(&self) -> usize {
        self.young.len()
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<&mut V> {
        if !self.old.is_empty()
            && let Some((key, value)) = self.old.remove_entry(key)
        {
            self.young.insert(key, value);
        }
        self.young.get_mut(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.young.remove(key).or_else(|| self.old.remove(key))
    }

    /// Makes the young generation the old one, and gives up the old one.
    #[must_use]
    pub(crate) fn turn(&mut self) -> HashMap<K, V> {
        std::mem::replace(&mut self.old, std::mem::take(&mut self.young))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays() {
        let mut map = Generations::new();
        map.insert(1, "a");
        map.insert(2, "b");
        assert!(map.turn().is_empty());
        assert_eq!(map.get(&1), Some(&mut "a"));
        assert_eq!(map.young(), 1);
        assert_eq!(map.turn().into_iter().collect::<Vec<_>>(), [(2, "b")]);
        assert_eq!(map.get(&2), None);
        map.insert(1, "c");
        assert_eq!(map.turn().len(), 0);
        assert_eq!(map.remove(&1), Some("c"));
        assert!(map.turn().is_empty() && map.turn().is_empty());
    }
}
