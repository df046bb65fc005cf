//! The files of a package, as they lie in a system.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::{Release, done, notices, said};

/// Completions by their shells, where Debian and Fedora look for them.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/dnslab"),
    ("zsh", "usr/share/zsh/site-functions/_dnslab"),
    ("fish", "usr/share/fish/vendor_completions.d/dnslab.fish"),
];

/// The root of the files. Man pages and completions are those that the binary writes.
pub(super) fn stage(release: &Release, binary: &Path, sbom: &Path) -> Result<PathBuf> {
    let root = release.scratch.path().join("tree");
    copy(binary, &root.join("usr/bin/dnslab"), 0o755)?;
    let manual = root.join("usr/share/man/man1");
    fs::create_dir_all(&manual)?;
    done(release.command(&binary.display().to_string()).arg("man").arg(&manual))?;
    let mut pages: Vec<PathBuf> =
        fs::read_dir(&manual)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    pages.sort_unstable();
    done(release.command("gzip").arg("-n9").args(pages))?;
    for (shell, path) in COMPLETIONS {
        let mut completions = release.command(&binary.display().to_string());
        write(&root.join(path), &said(completions.args(["completions", shell]))?)?;
    }
    let documents = root.join("usr/share/doc/dnslab");
    for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&release.root.join(name), &documents.join(name), 0o644)?;
    }
    copy(sbom, &documents.join("dnslab.cdx.json"), 0o644)?;
    write(&documents.join("copyright"), &notices::licences(release)?)?;
    done(release.command("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root))?;
    Ok(root)
}

fn write(path: &Path, text: &str) -> Result<()> {
    path.parent().map(fs::create_dir_all).transpose()?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

pub(super) fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    to.parent().map(fs::create_dir_all).transpose()?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}
