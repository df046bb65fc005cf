//! The binary: static, with a list of its dependencies inside, and without its debug information, which is a file beside it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{Release, done, said};

/// The compiler of releases. Another one makes other octets.
pub(super) const TOOLCHAIN: &str = "1.95.0";

pub(super) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds it. Paths of this machine are in none of its octets.
pub(super) fn binary(release: &Release) -> Result<PathBuf> {
    let compiler = said(Command::new("rustc").arg("--version"))?;
    if compiler.split(' ').nth(1) != Some(TOOLCHAIN) {
        let found = compiler.trim();
        bail!(
            "releases are made by rustc {TOOLCHAIN}, and this is {found}: rustup toolchain install {TOOLCHAIN}"
        );
    }
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    let system = said(Command::new("rustc").args(["--print", "sysroot"]))?;
    let paths = [
        (release.root.display().to_string(), "/dnslab"),
        (home.display().to_string(), "/cargo"),
        (format!("{}/lib/rustlib/src/rust", system.trim()), "/rust"),
    ];
    let remapped = paths.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    let static_ = "-Ctarget-feature=+crt-static".to_owned();
    let flags: Vec<String> = std::iter::once(static_).chain(remapped).collect();
    let mapped = paths.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
    let target_folder = release.scratch.path().join("target");
    let mut cargo = release.command("cargo");
    cargo
        .current_dir(&release.root)
        .args(["auditable", "build", "--profile", "dist", "--locked", "--package", "dnslab-cli"])
        .args(["--target", TARGET, "--target-dir"])
        .arg(&target_folder)
        // Words that are separated by this need no quotes.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env("CFLAGS", mapped.collect::<Vec<_>>().join(" "));
    let status = cargo.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the binary was not built");
    }
    Ok(target_folder.join(TARGET).join("dist/dnslab"))
}

/// Divides a binary into itself and its debug information, and returns the path of the first.
pub(super) fn stripped(release: &Release, binary: &Path) -> Result<PathBuf> {
    let (own, debug) = (release.scratch.path().join("dnslab"), release.file(".debug"));
    fs::copy(binary, &own).with_context(|| format!("cannot copy {}", binary.display()))?;
    done(release.command("objcopy").arg("--only-keep-debug").arg(&own).arg(&debug))?;
    let link = format!("--add-gnu-debuglink={}", debug.display());
    done(release.command("objcopy").arg("--strip-all").arg(link).arg(&own))?;
    Ok(own)
}

/// Why there is no binary for aarch64.
pub(super) fn lacks_aarch64() -> String {
    const OTHER: &str = "aarch64-unknown-linux-gnu";
    let folder = said(Command::new("rustc").args(["--print", "target-libdir", "--target", OTHER]));
    let has_library = folder.is_ok_and(|folder| Path::new(folder.trim()).is_dir());
    match has_library {
        true => "it is not tried on such a machine".to_owned(),
        false => format!("this toolchain has no standard library of {OTHER}"),
    }
}
