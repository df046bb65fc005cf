//! What is said of the dependencies: a list in CycloneDX, and their licences.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::build::{TARGET, TOOLCHAIN};
use super::{Release, done, said};

/// How cargo-cyclonedx is told to name its files, and what it makes of that.
const NAME: &str = "dnslab.cdx";
const MADE: &str = "dnslab.cdx.json";

/// The software bill of materials (CycloneDX, JSON).
pub(super) fn sbom(release: &Release) -> Result<PathBuf> {
    let manifest = release.root.join("crates/cli/Cargo.toml");
    let mut cyclonedx = release.command("cargo");
    cyclonedx.args(["cyclonedx", "--format", "json", "--spec-version", "1.5", "--manifest-path"]);
    cyclonedx.arg(&manifest).args(["--override-filename", NAME, "--quiet"]);
    done(cyclonedx.args(["--target", TARGET]))?;
    let to = release.file(".cdx.json");
    // The folder of this machine is in it.
    let own = release.root.display().to_string();
    let text = fs::read_to_string(release.root.join("crates/cli").join(MADE))?;
    fs::write(&to, text.replace(&own, "/dnslab"))?;
    // One lies beside each crate of the workspace.
    for crate_folder in fs::read_dir(release.root.join("crates"))? {
        let made = crate_folder?.path().join(MADE);
        if made.exists() {
            fs::remove_file(made)?;
        }
    }
    Ok(to)
}

/// Names that licence files begin with.
const LICENCES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"];

/// The licences of all that is in the binary: each text once, with those that it is of.
pub(super) fn licences(release: &Release) -> Result<String> {
    let mut cargo = release.command("cargo");
    cargo.current_dir(&release.root).args(["metadata", "--format-version", "1", "--locked"]);
    let facts = said(cargo.args(["--filter-platform", TARGET]))?;
    let facts: Value = serde_json::from_str(&facts).context("cargo metadata is no JSON")?;
    let mut tree = release.command("cargo");
    tree.current_dir(&release.root).args([
        "tree",
        "--locked",
        "--package",
        "dnslab-cli",
        "--prefix",
        "none",
    ]);
    let tree = said(tree.args(["--edges", "normal", "--target", TARGET]))?;
    let used: Vec<Vec<&str>> = tree.lines().map(|line| line.split(' ').take(2).collect()).collect();
    let mut lines = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in facts["packages"].as_array().into_iter().flatten() {
        let field = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let (name, version) = (field("name"), format!("v{}", field("version")));
        let is_used = used.iter().any(|words| words[..] == [name.as_str(), version.as_str()]);
        if !is_used || package["source"].is_null() {
            continue;
        }
        let named = format!("{name} {version}");
        lines.push_str(&format!("{named}: {}, {}\n", field("license"), field("repository")));
        for text in texts_of(Path::new(&field("manifest_path")))? {
            texts.entry(text).or_default().push(named.clone());
        }
    }
    let mut all = format!(
        "dnslab is under the licences MIT or Apache-2.0, at your choice. It has in it:\n\n{lines}{}",
        linked(release)?
    );
    texts.entry(c_library_licence()?).or_default().push("the GNU C Library".to_owned());
    for (text, packages) in texts {
        all.push_str(&format!("\n\n==== {}\n\n{}\n", packages.join(", "), text.trim_end()));
    }
    Ok(all)
}

/// What the linker puts into the binary besides packages of cargo.
fn linked(release: &Release) -> Result<String> {
    let glibc = said(release.command("getconf").arg("GNU_LIBC_VERSION"))?;
    Ok(format!(
        "the Rust standard library {TOOLCHAIN}: MIT OR Apache-2.0, https://github.com/rust-lang/rust\n\
         the GNU C Library, {}: LGPL-2.1-or-later, https://www.gnu.org/software/libc. To link another one, build dnslab from \
         its source.\n",
        glibc.trim()
    ))
}

/// The licence of the C library, as Debian has it.
fn c_library_licence() -> Result<String> {
    const PATH: &str = "/usr/share/doc/libc6/copyright";
    fs::read_to_string(PATH).with_context(|| format!("cannot read {PATH}: dist needs Debian"))
}

fn texts_of(manifest: &Path) -> Result<Vec<String>> {
    let folder = manifest.parent().context("a manifest is in a folder")?;
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file() && LICENCES.iter().any(|start| name.starts_with(start))
    });
    paths.sort_unstable();
    paths.iter().map(|path| Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())).collect()
}
