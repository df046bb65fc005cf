//! What there is to get, and how each is made.

/// How one server is fetched.
#[derive(Debug, PartialEq, Eq)]
pub struct Recipe {
    name: &'static str,
    pub(super) source: Source,
    pub(super) program: Program,
}

/// Where it comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A package of a Debian release, with all that it needs, as a root folder.
    Debian {
        /// The release's code name.
        release: &'static str,
        /// The package; behind commas, those that provide what it needs under other names, which
        /// debootstrap does not find by itself.
        package: &'static str,
    },
    /// A program that the Go toolchain builds.
    Go {
        /// The module.
        module: &'static str,
        /// Its version.
        version: &'static str,
    },
}

/// The program that shows that all is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// Its path inside the folder.
    pub(super) path: &'static str,
    /// The argument that makes it say its version.
    pub(super) version_argument: &'static str,
}

/// The release that is stable while this is written.
const STABLE: &str = "trixie";

/// A server of a Debian release.
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

/// All of them. The number behind the last hyphen is the version that must come of it.
static ALL: [Recipe; 7] = [
    debian("bind-9.16", "bullseye", "bind9", "usr/sbin/named", "-v"),
    debian("bind-9.20", STABLE, "bind9", "usr/sbin/named", "-v"),
    debian("knot-3.4", STABLE, "knot", "usr/sbin/knotd", "-V"),
    debian("unbound-1.22", STABLE, "unbound", "usr/sbin/unbound", "-V"),
    debian("knot-resolver-5.7", STABLE, "knot-resolver", "usr/sbin/kresd", "-V"),
    debian("dnsdist-1.9", STABLE, "dnsdist,libre2-11", "usr/bin/dnsdist", "--version"),
    Recipe {
        name: "coredns",
        // The version that the tests build, too.
        source: Source::Go { module: "github.com/coredns/coredns", version: "v1.15.0" },
        program: Program { path: "coredns", version_argument: "-version" },
    },
];

impl Recipe {
    /// All of them, in the order in which they are listed.
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

    /// True if a root folder is made, which `server.root` takes; else it is a program.
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

    /// The numbers that its version must begin with; none where the recipe itself pins it.
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
