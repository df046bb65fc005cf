//! How a program is installed where it is missing.

use std::fs;
use std::sync::OnceLock;

/// How to get a program that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// A package has it.
    Package {
        /// Its name in Debian, Ubuntu, and what is made of them; several are separated by spaces.
        debian: &'static str,
        /// Its name in Fedora, Red Hat Enterprise Linux with EPEL, and what is made of them.
        fedora: &'static str,
    },
    /// No package has it.
    Other(&'static str),
}

/// A way to install packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    Apt,
    Dnf,
}

impl Remedy {
    /// As a text for this system; for all systems that are known where this one is not.
    pub(crate) fn text(self) -> String {
        static MANAGER: OnceLock<Option<Manager>> = OnceLock::new();
        // os-release(5): the second one is for systems without the first.
        let read = || {
            let text = fs::read_to_string("/etc/os-release")
                .or_else(|_| fs::read_to_string("/usr/lib/os-release"));
            manager(&text.unwrap_or_default())
        };
        self.text_by(*MANAGER.get_or_init(read))
    }

    fn text_by(self, manager: Option<Manager>) -> String {
        let (debian, fedora) = match self {
            Self::Package { debian, fedora } => (debian, fedora),
            Self::Other(text) => return text.to_owned(),
        };
        match manager {
            Some(Manager::Apt) => format!("apt-get install {debian}"),
            Some(Manager::Dnf) => format!("dnf install {fedora}"),
            None => {
                format!("on Debian: apt-get install {debian}; on Fedora: dnf install {fedora}")
            }
        }
    }
}

/// The package manager of a system with this os-release(5): by its name, and those of the systems that it is like.
fn manager(os_release: &str) -> Option<Manager> {
    let value_of = |name: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches(['"', '\'']).split_whitespace()
    };
    value_of("ID").chain(value_of("ID_LIKE")).find_map(|name| match name {
        "debian" | "ubuntu" => Some(Manager::Apt),
        "fedora" | "rhel" | "centos" => Some(Manager::Dnf),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_own_package_manager_is_named() {
        let bind = Remedy::Package { debian: "bind9", fedora: "bind" };
        for (os_release, expected) in [
            (
                "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n",
                "apt-get install bind9",
            ),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "apt-get install bind9"),
            ("NAME=\"Fedora Linux\"\nID=fedora\n", "dnf install bind"),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf install bind"),
            ("ID=arch\n", "on Debian: apt-get install bind9; on Fedora: dnf install bind"),
            ("", "on Debian: apt-get install bind9; on Fedora: dnf install bind"),
        ] {
            assert_eq!(bind.text_by(manager(os_release)), expected, "{os_release}");
        }
    }
}
