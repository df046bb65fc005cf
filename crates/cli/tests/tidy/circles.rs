//! Circles of files inside a crate: each of them can only be understood with all others.

use std::collections::{BTreeMap, BTreeSet};

/// A module as its path from the root of the crate, which is empty for the root itself.
type Module = Vec<String>;

/// Groups of files of a crate that name each other, each group sorted. The root is none of them: it names all.
///
/// A name that is handed on by `pub use` counts as that of the file where it is written.
pub(crate) fn circles(files: &BTreeMap<Module, String>) -> Vec<Vec<String>> {
    let texts: BTreeMap<&Module, String> =
        files.iter().map(|(module, text)| (module, without_tests(text))).collect();
    let handed_on = handed_on(&texts);
    let mut named: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, text) in texts.iter().filter(|(module, _)| !module.is_empty()) {
        let paths = names(text).into_iter().filter_map(|path| absolute(module, &path, files));
        let others = paths.filter_map(|path| file_of(&path, files, &handed_on));
        named
            .insert(module, others.filter(|other| other != *module && !other.is_empty()).collect());
    }
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        named.keys().map(|from| (*from, reached(from, &named))).collect();
    let mut groups: BTreeSet<Vec<String>> = BTreeSet::new();
    for (from, to) in &reached {
        let back = to.iter().filter(|other| reached[*other].contains(*from));
        let group: BTreeSet<String> = back.chain([from]).map(|module| module.join("::")).collect();
        if group.len() > 1 {
            groups.insert(group.into_iter().collect());
        }
    }
    groups.into_iter().collect()
}

/// All files that can be reached from one.
fn reached<'a>(
    from: &Module,
    named: &BTreeMap<&'a Module, BTreeSet<Module>>,
) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Module> = vec![from];
    while let Some(next) = open.pop() {
        for other in &named[next] {
            let (other, _) = named.get_key_value(other).expect("it is a file");
            if found.insert(*other) {
                open.push(other);
            }
        }
    }
    found
}

/// The text without comments and without its tests, which may name whatever they test.
fn without_tests(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// What each module hands on, by its name there, as a path from the root.
fn handed_on(texts: &BTreeMap<&Module, String>) -> BTreeMap<(Module, String), Module> {
    let mut all = BTreeMap::new();
    for (module, text) in texts {
        for statement in statements(text).filter(|statement| statement.is_public) {
            for path in statement.paths {
                let Some(name) = path.last().cloned() else { continue };
                let is_rooted = matches!(path[0].as_str(), "crate" | "self" | "super");
                let path = match is_rooted {
                    true => rooted(module, &path),
                    false => module.iter().cloned().chain(path).collect(),
                };
                all.insert(((*module).clone(), name), path);
            }
        }
    }
    all
}

struct Statement {
    is_public: bool,
    paths: Vec<Vec<String>>,
}

/// The `use` statements of a text.
fn statements(text: &str) -> impl Iterator<Item = Statement> + '_ {
    text.split(';').filter_map(|piece| {
        let at = piece.rfind("use ").filter(|at| {
            let before = piece[..*at].trim_end_matches(' ');
            before.is_empty() || before.ends_with(['\n', ')']) || before.ends_with("pub")
        })?;
        let line = piece[..at].rsplit('\n').next().unwrap_or_default();
        let mut paths = Vec::new();
        expand(&mut Vec::new(), &piece[at + 4..], &mut paths);
        Some(Statement { is_public: line.trim_start().starts_with("pub"), paths })
    })
}

/// Adds the paths of a tree: `a::{b, c::d}` has `a::b` and `a::c::d`.
fn expand(before: &mut Vec<String>, tree: &str, paths: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap_or_default();
        let path = before.iter().cloned().chain(parts(name)).collect::<Vec<_>>();
        paths.extend((!path.is_empty()).then_some(path));
        return;
    };
    let length = before.len();
    before.extend(parts(head));
    let (mut depth, mut start) = (0, 0);
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    for (at, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(before, &inner[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        expand(before, &inner[start..], paths);
    }
    before.truncate(length);
}

fn parts(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned)
}

/// The paths that a text names: those that it uses, and those that begin with `crate::` or `super::`.
fn names(text: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> =
        statements(text).flat_map(|statement| statement.paths).collect();
    for beginning in ["crate::", "super::"] {
        for (at, _) in text.match_indices(beginning) {
            let is_word = |character: char| character.is_alphanumeric() || "_:".contains(character);
            let rest = &text[at..];
            let end = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
            // Behind the others a tree begins, which its statement has.
            let is_whole = !rest[..end].ends_with(':');
            all.extend(is_whole.then(|| parts(&rest[..end]).collect()));
        }
    }
    all
}

/// A path that begins with `crate`, `self` or `super`, from the root.
fn rooted(module: &Module, path: &[String]) -> Module {
    let mut base = module.clone();
    let mut rest = path;
    while let Some(first) = rest.first() {
        match first.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => drop(base.pop()),
            _ => break,
        }
        rest = &rest[1..];
    }
    base.into_iter().chain(rest.iter().cloned()).collect()
}

/// `None` for a path into another crate.
fn absolute(module: &Module, path: &[String], files: &BTreeMap<Module, String>) -> Option<Module> {
    match path.first()?.as_str() {
        "crate" | "self" | "super" => Some(rooted(module, path)),
        first => {
            let child: Module = module.iter().cloned().chain([first.to_owned()]).collect();
            let is_child = files.contains_key(&child);
            is_child.then(|| module.iter().cloned().chain(path.iter().cloned()).collect())
        }
    }
}

/// The file where what has this path is written.
fn file_of(
    path: &[String],
    files: &BTreeMap<Module, String>,
    handed_on: &BTreeMap<(Module, String), Module>,
) -> Option<Module> {
    let mut path = path.to_vec();
    for _ in 0..8 {
        let length = (0..=path.len()).rev().find(|length| files.contains_key(&path[..*length]))?;
        let module = path[..length].to_vec();
        let Some(name) = path.get(length) else { return Some(module) };
        match handed_on.get(&(module.clone(), name.clone())) {
            Some(written) if *written != path => {
                path = written.iter().chain(&path[length + 1..]).cloned().collect();
            }
            _ => return Some(module),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&[&str]]) {
        let module = |path: &str| parts(path).collect::<Module>();
        let files = files.iter().map(|(path, text)| (module(path), (*text).to_owned())).collect();
        assert_eq!(circles(&files), expected);
    }

    #[test]
    fn circles_are_found() {
        let root = ("", "mod a; mod b;\npub use a::A;\npub use b::B;\n");
        check(&[root, ("a", "use crate::b::B;"), ("b", "struct B;")], &[]);
        check(&[root, ("a", "use crate::b::B;"), ("b", "fn b(a: crate::a::A) {}")], &[&["a", "b"]]);
        // By a name that the root hands on, in a tree, and in a comment or a test, where it does no harm.
        check(&[root, ("a", "use crate::{B};"), ("b", "use super::A;")], &[&["a", "b"]]);
        let tests =
            "// crate::a::A\nstruct B;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
        check(&[root, ("a", "use crate::b::B;"), ("b", tests)], &[]);
    }

    #[test]
    fn a_child_may_name_its_siblings_and_not_its_parent() {
        let root = ("", "mod a;");
        let parent = ("a", "mod b;\nmod c;\nuse b::B;\nfn f() {}\npub(crate) use c::C;");
        check(&[root, parent, ("a::b", "use super::c::C;"), ("a::c", "")], &[]);
        // What the parent hands on is the sibling's.
        check(&[root, parent, ("a::b", "use super::C;"), ("a::c", "")], &[]);
        check(&[root, parent, ("a::b", "use super::{C, c::D};"), ("a::c", "")], &[]);
        check(&[root, parent, ("a::b", "use super::f;"), ("a::c", "")], &[&["a", "a::b"]]);
    }
}
