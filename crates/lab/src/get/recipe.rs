//! What there is to get, and how each is made.

/// How one server is fetched.
#[derive(Debug, PartialEq, Eq)]
pub struct Recipe {
    name: &'static str,
    pub(super) source: Source,
    pub(super) program: Program,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A package of a Debian release, with all that it needs, as a root folder.
    Debian {
        release: &'static str,
        /// The package. After commas: packages that provide what it needs under other names, which
        /// debootstrap does not find by itself.
        package: &'static str,
    },
    /// A program that the Go toolchain builds.
    Go {
        module: &'static str,
        /// E.g. `v1.15.0`.
        version: &'static str,
    },
}

/// The program whose version shows that all is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// Inside the folder.
    pub(super) path: &'static str,
    pub(super) version_argument: &'static str,
}

/// The Debian release that is stable while this is written.
const STABLE: &str = "trixie";

const fn debian(
    name: &'static str,
    release: &'static str,
    package: &'static str,
    path: &'static str,
    version_argument: &'static str,
) -> Recipe {
    let program = Program { path, version_argument };
    Recipe { name, source: Source::Debian { release, package }, program }
}

/// The number after the last hyphen is the version that the server must have.
static ALL: [Recipe; 7] = [
    debian("bind-9.16", "bullseye", "bind9", "usr/sbin/named", "-v"),
    debian("bind-9.20", STABLE, "bind9", "usr/sbin/named", "-v"),
    debian("knot-3.4", STABLE, "knot", "usr/sbin/knotd", "-V"),
    debian("unbound-1.22", STABLE, "unbound", "usr/sbin/unbound", "-V"),
    debian("knot-resolver-5.7", STABLE, "knot-resolver", "usr/sbin/kresd", "-V"),
    debian("dnsdist-1.9", STABLE, "dnsdist,libre2-11", "usr/bin/dnsdist", "--version"),
    Recipe {
        name: "coredns",
        // The tests build this version too.
        source: Source::Go { module: "github.com/coredns/coredns", version: "v1.15.0" },
        program: Program { path: "coredns", version_argument: "-version" },
    },
];

impl Recipe {
    /// In the order in which they are listed.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        ALL.iter()
    }

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::all().find(|recipe| recipe.name == name)
    }

    /// Its name in the cache.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True if it makes a root folder, which `server.root` takes; false if it builds a program.
    #[must_use]
    pub fn is_root(&self) -> bool {
        matches!(self.source, Source::Debian { .. })
    }

    /// Where it comes from, for people.
    #[must_use]
    pub fn origin(&self) -> String {
        match self.source {
            Source::Debian { release, package } => {
                let package = package.split(',').next().unwrap_or(package);
                format!("package {package} of Debian {release}")
            }
            Source::Go { module, version } => format!("{module}@{version}, built by Go"),
        }
    }

    /// The numbers that its version must begin with; `None` where the recipe pins the version.
    pub(super) fn expected_version(&self) -> Option<&'static str> {
        match self.source {
            Source::Debian { .. } => self.name.rsplit_once('-').map(|(_, version)| version),
            Source::Go { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_says_which_version_comes_of_it() {
        for recipe in Recipe::all() {
            assert_eq!(Recipe::find(recipe.name()), Some(recipe));
            let expected = recipe.expected_version();
            assert_eq!(expected.is_some(), recipe.is_root(), "{recipe:?}");
            let is_number = |text: &str| text.split('.').all(|part| part.parse::<u32>().is_ok());
            assert!(expected.is_none_or(is_number), "{recipe:?}");
        }
        assert_eq!(Recipe::find("bind-8"), None);
    }
}
