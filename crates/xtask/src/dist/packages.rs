//! Packages for distributions, and an archive for all others.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Release, done};

const SUMMARY: &str = "measures what a change to a DNS service costs";

const DESCRIPTION: &str =
    "dnslab starts real DNS servers, asks them over UDP, TCP, TLS, HTTPS and QUIC,
watches them, repeats in interleaved order, and says what a change costs, with
an interval and with what limited each measurement.";

/// Servers that dnslab starts where they are installed. They are suggested and not recommended: a package manager that
/// installs them would start a DNS service on this machine.
const SERVERS: [&str; 9] = [
    "bind9",
    "knot",
    "nsd",
    "unbound",
    "knot-resolver",
    "pdns-server",
    "pdns-recursor",
    "dnsdist",
    "linux-perf",
];

/// A tar archive of the tree, compressed.
pub(super) fn archive(release: &Release, tree: &Path) -> Result<PathBuf> {
    let path = release.file("-x86_64-linux.tar");
    release.tar(tree, &path)?;
    done(release.command("gzip").arg("-nf9").arg(&path))?;
    Ok(path.with_extension("tar.gz"))
}

/// For Debian and what comes of it (deb(5)).
pub(super) fn debian(release: &Release, tree: &Path) -> Result<PathBuf> {
    let root = release.scratch.path().join("deb");
    done(release.command("cp").arg("-a").arg(tree).arg(&root))?;
    fs::create_dir_all(root.join("DEBIAN"))?;
    let installed = kib_of(tree)?;
    let text: String = DESCRIPTION.lines().map(|line| format!(" {line}\n")).collect();
    let control = format!(
        "Package: dnslab\nVersion: {}\nArchitecture: amd64\nMaintainer: the dnslab team\nSection: net\n\
         Priority: optional\nInstalled-Size: {installed}\nSuggests: {}\nDescription: {SUMMARY}\n{text}",
        release.version,
        SERVERS.join(", "),
    );
    fs::write(root.join("DEBIAN/control"), control)?;
    let path = release.folder.join(format!("dnslab_{}_amd64.deb", release.version));
    let mut deb = release.command("dpkg-deb");
    done(deb.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&path))?;
    Ok(path)
}

/// Kibibytes that a tree takes, as Debian counts (Debian Policy, section 5.6.20).
fn kib_of(tree: &Path) -> Result<u64> {
    let mut kib = 0;
    for entry in fs::read_dir(tree)? {
        let entry = entry?;
        kib += match entry.file_type()?.is_dir() {
            true => 1 + kib_of(&entry.path())?,
            false => entry.metadata()?.len().div_ceil(1024),
        };
    }
    Ok(kib)
}

/// For Fedora and its like.
pub(super) fn rpm(release: &Release, tree: &Path) -> Result<PathBuf> {
    let top = release.scratch.path().join("rpm");
    fs::create_dir_all(&top)?;
    let specification = top.join("dnslab.spec");
    let text = format!(
        "Name: dnslab\nVersion: {version}\nRelease: 1\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\n\
         AutoReqProv: no\n%description\n{DESCRIPTION}\n\n%install\nmkdir -p %{{buildroot}}\ncp -a {tree}/. %{{buildroot}}/\n\n\
         %files\n%defattr(-,root,root,-)\n%dir /usr/share/zsh\n%dir /usr/share/zsh/site-functions\n\
         %dir /usr/share/fish\n%dir /usr/share/fish/vendor_completions.d\n/usr/bin/dnslab\n/usr/share/man/man1/dnslab*\n\
         /usr/share/bash-completion/completions/dnslab\n/usr/share/zsh/site-functions/_dnslab\n\
         /usr/share/fish/vendor_completions.d/dnslab.fish\n/usr/share/doc/dnslab\n",
        version = release.version,
        tree = tree.display(),
    );
    fs::write(&specification, text)?;
    let defined = [
        format!("_topdir {}", top.display()),
        format!("_rpmdir {}", top.display()),
        "_rpmfilename dnslab.rpm".to_owned(),
        "_buildhost dnslab".to_owned(),
        "use_source_date_epoch_as_buildtime 1".to_owned(),
        "clamp_mtime_to_source_date_epoch 1".to_owned(),
        "_binary_payload w9.xzdio".to_owned(),
        // The tree is as it is to be.
        "__os_install_post %{nil}".to_owned(),
        "_build_id_links none".to_owned(),
        "debug_package %{nil}".to_owned(),
    ];
    let mut rpmbuild = release.command("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target", "x86_64-linux"]);
    for definition in defined {
        rpmbuild.arg("--define").arg(definition);
    }
    done(rpmbuild.arg(&specification))?;
    let path = release.file("-1.x86_64.rpm");
    fs::copy(top.join("dnslab.rpm"), &path)?;
    Ok(path)
}
