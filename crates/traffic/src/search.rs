//! Search lists: which names a stub resolver asks for one name that an application gives it, one after the other until one
//! of them exists (resolv.conf(5), options `search` and `ndots`).

use crate::{NameList, TypeMix};

/// The search list of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchList {
    /// The domains, in their order.
    pub domains: NameList,
    /// A name with fewer dots is sought in the domains first, and one with as many or more as it stands.
    pub ndots: u32,
}

impl SearchList {
    /// The names that are asked for one name, in their order, as glibc does. A name that ends with a dot stands for itself
    /// alone.
    #[must_use]
    pub fn candidates(&self, name: &str) -> Vec<String> {
        if name.ends_with('.') {
            return vec![name.to_owned()];
        }
        let own = std::iter::once(name.to_owned());
        let sought = self.domains.0.iter().map(|domain| format!("{name}.{domain}"));
        let dots = name.matches('.').count();
        match dots >= self.ndots as usize {
            true => own.chain(sought).collect(),
            false => sought.chain(own).collect(),
        }
    }
}

/// Where the queries for names begin in a list that has all candidates of each name, and which of them follow another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    starts: Vec<u32>,
    goes_on: Vec<bool>,
}

impl Candidates {
    /// Of names that are each asked for each type, in the order of [`crate::QueryList::from_names`].
    #[must_use]
    pub fn of(names: &NameList, types: &TypeMix, search: &SearchList) -> Self {
        let mut own = Self::default();
        for name in &names.0 {
            let count = search.candidates(name).len();
            for _ in types.weights() {
                own.starts.push(own.goes_on.len() as u32);
                own.goes_on.extend((1..=count).map(|place| place < count));
            }
        }
        own
    }

    /// The places of the first candidates.
    #[must_use]
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The place of the query that follows one whose name does not exist.
    #[must_use]
    pub fn after(&self, query: u32) -> Option<u32> {
        let goes_on = self.goes_on.get(query as usize).copied().unwrap_or(false);
        goes_on.then(|| query + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ndots: u32) -> SearchList {
        SearchList { domains: "a.test,test".parse().unwrap(), ndots }
    }

    #[test]
    fn candidates_are_those_of_glibc() {
        let check = |ndots, name, expected: &[&str]| {
            assert_eq!(list(ndots).candidates(name), expected, "{ndots} {name}");
        };
        check(
            5,
            "www.example.com",
            &["www.example.com.a.test", "www.example.com.test", "www.example.com"],
        );
        check(
            2,
            "www.example.com",
            &["www.example.com", "www.example.com.a.test", "www.example.com.test"],
        );
        check(1, "db", &["db.a.test", "db.test", "db"]);
        check(5, "www.example.com.", &["www.example.com."]);
    }

    #[test]
    fn each_name_and_type_has_its_candidates() {
        let types: TypeMix = "A:1,AAAA:1".parse().unwrap();
        let found = Candidates::of(&"db,x.".parse().unwrap(), &types, &list(1));
        assert_eq!(found.starts(), [0, 3, 6, 7]);
        let after: Vec<_> = (0..9).map(|query| found.after(query)).collect();
        let (one, two) = ([Some(1), Some(2), None], [Some(4), Some(5), None]);
        assert_eq!(after, [&one[..], &two, &[None, None, None]].concat());
    }
}
