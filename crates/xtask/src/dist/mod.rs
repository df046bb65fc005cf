//! What is given to people who do not build: one static binary, and packages of it.
//!
//! A [`Release`] is what all parts have in common. `build` makes the binary, `notices` what is said of its dependencies,
//! `tree` the files as they lie in a system, `packages` and `image` what carries them there. Other people's programs write
//! each format; here they are told what is in it. All times are that of the commit, so two releases of one commit are equal
//! octet for octet (`SOURCE_DATE_EPOCH`, <https://reproducible-builds.org/specs/source-date-epoch/>).

mod build;
mod image;
mod notices;
mod packages;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::arguments::DistOptions;

/// A program that a release is made by.
struct Tool {
    name: &'static str,
    /// How it is had.
    remedy: &'static str,
}

const fn tool(name: &'static str, remedy: &'static str) -> Tool {
    Tool { name, remedy }
}

const TOOLS: [Tool; 7] = [
    tool("cargo-cyclonedx", "cargo install --locked cargo-cyclonedx@0.5.9"),
    tool("objcopy", "apt-get install binutils"),
    tool("tar", "apt-get install tar"),
    tool("gzip", "apt-get install gzip"),
    tool("dpkg-deb", "apt-get install dpkg"),
    tool("rpmbuild", "apt-get install rpm"),
    tool("umoci", "apt-get install umoci"),
];
const AUDITABLE: Tool = tool("cargo-auditable", "cargo install --locked cargo-auditable@0.7.7");
const MINISIGN: Tool = tool("minisign", "apt-get install minisign");

/// What all parts of a release have in common.
struct Release {
    version: String,
    /// Seconds since 1970 in UTC: the time of all files.
    epoch: u64,
    /// Of the workspace.
    root: PathBuf,
    /// Where the release is made.
    folder: PathBuf,
    /// What is not given away.
    scratch: tempfile::TempDir,
}

impl Release {
    fn of(options: &DistOptions) -> Result<Self> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => {
                said(Command::new("git").current_dir(&root).args(["log", "-1", "--format=%ct"]))?
            }
        };
        let epoch = epoch.trim().parse();
        let epoch = epoch.context("SOURCE_DATE_EPOCH is no number of seconds")?;
        let folder = options.folder.clone();
        let folder = folder.unwrap_or_else(|| root.join("target/release-files"));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
        Ok(Self { version, epoch, root, folder, scratch })
    }

    /// A file of the release, whose name ends so.
    fn file(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("dnslab-{}{ending}", self.version))
    }

    /// A command whose times are that of the release.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("SOURCE_DATE_EPOCH", self.epoch.to_string())
            .env("LC_ALL", "C")
            .env("TZ", "UTC");
        command
    }

    /// A folder as a tar archive: sorted, of root, and of the time of the release.
    fn tar(&self, folder: &Path, to: &Path) -> Result<()> {
        let mtime = format!("--mtime=@{}", self.epoch);
        let owner = ["--owner=0", "--group=0", "--numeric-owner", "--sort=name", "--format=gnu"];
        let mut tar = self.command("tar");
        done(tar.args(owner).arg(mtime).arg("-cf").arg(to).arg("-C").arg(folder).arg("."))
    }
}

/// Makes a release. False never: what is wrong is an error.
pub(crate) fn dist(options: &DistOptions) -> Result<bool> {
    let mut tools: Vec<&Tool> = TOOLS.iter().collect();
    tools.extend(options.dnslab.is_none().then_some(&AUDITABLE));
    tools.extend(options.sign.as_ref().map(|_| &MINISIGN));
    check(&tools)?;
    let release = Release::of(options)?;
    if options.sign.is_some() && options.dnslab.is_none() {
        check_source(&release)?;
    }
    let binary = match &options.dnslab {
        Some(binary) => binary.clone(),
        None => build::binary(&release)?,
    };
    let binary = build::stripped(&release, &binary)?;
    let sbom = notices::sbom(&release)?;
    let tree = tree::stage(&release, &binary, &sbom)?;
    let mut files = vec![release.file(".debug"), sbom];
    files.push(packages::archive(&release, &tree)?);
    files.push(packages::debian(&release, &tree)?);
    files.push(packages::rpm(&release, &tree)?);
    files.push(image::image(&release, &binary)?);
    files.extend(sums(&release, &files, options.sign.as_deref())?);
    for file in &files {
        let octets = fs::metadata(file)?.len();
        println!("{:>12}  {}", octets, file.display());
    }
    println!("no release for aarch64: {}", build::lacks_aarch64());
    Ok(true)
}

/// The digests of all files, and their signature if there is a key.
fn sums(release: &Release, files: &[PathBuf], key: Option<&Path>) -> Result<Vec<PathBuf>> {
    let names = files.iter().filter_map(|file| file.file_name());
    let mut digests = release.command("sha256sum");
    let text = said(digests.current_dir(&release.folder).args(names))?;
    let path = release.file(".sha256");
    fs::write(&path, text)?;
    let signature = release.file(".sha256.minisig");
    // One that an earlier release left is of other digests.
    if signature.exists() {
        fs::remove_file(&signature)?;
    }
    let Some(key) = key else { return Ok(vec![path]) };
    // It asks for the password of the key at the terminal.
    let mut minisign = Command::new(MINISIGN.name);
    minisign.arg("-S").arg("-s").arg(key).arg("-m").arg(&path).arg("-x").arg(&signature);
    let comment = format!("dnslab {}", release.version);
    let status = minisign.args(["-t", &comment]).status().context("cannot start minisign")?;
    if !status.success() {
        bail!("minisign has not signed {}", path.display());
    }
    Ok(vec![path, signature])
}

/// # Errors
/// When what is to be signed is not what a commit has, or the version is not yet released.
fn check_source(release: &Release) -> Result<()> {
    let mut status = Command::new("git");
    let changes = said(status.current_dir(&release.root).args(["status", "--porcelain"]))?;
    if let Some(first) = changes.lines().next() {
        bail!("`{}` is not committed: a release is that of a commit", first.trim());
    }
    let changelog = fs::read_to_string(release.root.join("CHANGELOG.md"))?;
    let heading = changelog.lines().find(|line| line.starts_with("## ")).unwrap_or_default();
    if heading.ends_with("not yet released") || heading == "## Unreleased" {
        bail!("CHANGELOG.md says `{heading}`: write the day of the release");
    }
    Ok(())
}

/// # Errors
/// When a program is missing, with how each is had.
fn check(tools: &[&Tool]) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |tool: &&&Tool| std::env::split_paths(&path).any(|at| at.join(tool.name).is_file());
    let missing: Vec<String> = tools
        .iter()
        .filter(|tool| !is_there(tool))
        .map(|tool| format!("{} is missing: {}", tool.name, tool.remedy))
        .collect();
    if missing.is_empty() { Ok(()) } else { bail!("{}", missing.join("\n       ")) }
}

/// Waits for a program.
///
/// # Errors
/// When it fails, with the end of what it said.
fn done(command: &mut Command) -> Result<()> {
    said(command).map(drop)
}

/// What a program says.
///
/// # Errors
/// When it fails, with the end of what it said.
fn said(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = error.lines().collect();
        bail!("{name} failed: {}", lines[lines.len().saturating_sub(8)..].join("\n"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
