//! Packages of a release, made twice, installed in fresh systems and removed again. The binary is that of the tests: that a
//! release builds a static one is shown where it is made.

mod beside;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use beside::dnslab;
use rustix::process::geteuid;

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {} {said}",
        String::from_utf8_lossy(&output.stdout)
    );
    output
}

/// Makes a release into a folder, and returns its files by their names.
fn release(folder: &Path, further: &[&Path]) -> BTreeMap<String, PathBuf> {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.arg("dist").arg("--dnslab").arg(dnslab()).arg("--folder").arg(folder).args(further);
    // Without it the time of the commit, which an unpacked archive does not know.
    xtask.env("SOURCE_DATE_EPOCH", "1700000000");
    run(&mut xtask);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    files.map(|entry| (entry.file_name().into_string().unwrap(), entry.path())).collect()
}

#[test]
fn packages_are_equal_whenever_they_are_made_and_leave_nothing() {
    assert!(geteuid().is_root(), "only root can install packages");
    let folder = tempfile::tempdir().unwrap();
    let [key, public] = ["key", "public"].map(|name| folder.path().join(name));
    run(Command::new("minisign").args(["-G", "-W", "-s"]).arg(&key).arg("-p").arg(&public));
    let one = release(&folder.path().join("one"), &[]);
    let other = release(&folder.path().join("other"), &[Path::new("--sign"), &key]);
    for (name, path) in &one {
        assert!(fs::read(path).unwrap() == fs::read(&other[name]).unwrap(), "{name} differs");
    }
    let ending = |end: &str| one.iter().find(|(name, _)| name.ends_with(end)).unwrap().1.as_path();
    check_sums(ending(".sha256"));
    let signed = folder.path().join("other").join(ending(".sha256").file_name().unwrap());
    let signature = format!("{}.minisig", signed.display());
    let mut verify = Command::new("minisign");
    run(verify.arg("-V").arg("-p").arg(&public).arg("-m").arg(&signed).args(["-x", &signature]));
    // Where `action.yml` and `templates/gate.yml` take it from.
    let archive = ending("-x86_64-linux.tar.gz");
    run(Command::new("tar").arg("-tzf").arg(archive).arg("./usr/bin/dnslab"));
    check_notices(ending(".cdx.json"));
    check_image(ending("-oci.tar"), &folder.path().join("image"));
    for suite in ["bookworm", "trixie"] {
        let root = folder.path().join(suite);
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", suite]).arg(&root);
        debootstrap.args(std::env::var_os("APT_MIRROR"));
        run(&mut debootstrap);
        check_debian(&root, ending(".deb"));
        if suite == "bookworm" {
            check_rpm(&root, ending(".rpm"));
        }
    }
}

fn check_sums(sums: &Path) {
    let mut check = Command::new("sha256sum");
    run(check.args(["--check", "--strict"]).arg(sums).current_dir(sums.parent().unwrap()));
}

fn check_notices(sbom: &Path) {
    let sbom: serde_json::Value = serde_json::from_str(&fs::read_to_string(sbom).unwrap()).unwrap();
    assert_eq!(sbom["bomFormat"], "CycloneDX");
    let names: BTreeSet<&str> = sbom["components"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|part| part["name"].as_str())
        .collect();
    assert!(names.contains("rustls") && names.contains("dnslab-wire"), "{names:?}");
    assert!(!sbom.to_string().contains(env!("CARGO_MANIFEST_DIR")));
}

fn check_image(archive: &Path, folder: &Path) {
    let layout = folder.join("layout");
    fs::create_dir_all(&layout).unwrap();
    run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&layout));
    let image = format!("{}:{}", layout.display(), env!("CARGO_PKG_VERSION"));
    let bundle = folder.join("bundle");
    run(Command::new("umoci").args(["unpack", "--image", &image]).arg(&bundle));
    let configuration = fs::read_to_string(bundle.join("config.json")).unwrap();
    let configuration: serde_json::Value = serde_json::from_str(&configuration).unwrap();
    let process = &configuration["process"];
    assert_eq!(
        (&process["args"][0], &process["user"]["uid"]),
        (&"/usr/bin/dnslab".into(), &65_532.into())
    );
    let root = bundle.join("rootfs");
    let files: Vec<PathBuf> =
        files(&root).into_iter().filter(|path| root.join(path).is_file()).collect();
    assert_eq!(files.len(), 2, "the binary and the authorities: {files:?}");
}

/// All that is below a folder.
fn files(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let facts = path.symlink_metadata().unwrap();
            if facts.is_dir() && facts.dev() == root.metadata().unwrap().dev() {
                folders.push(path.clone());
            }
            found.insert(path.strip_prefix(root).unwrap().to_owned());
        }
    }
    found
}

/// A script in another root, as a user.
#[track_caller]
fn inside(root: &Path, user: &str, script: &str) -> String {
    let mut chroot = Command::new("chroot");
    chroot.arg(format!("--userspec={user}")).arg(root).args(["/bin/sh", "-ec", script]);
    chroot.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/tmp");
    String::from_utf8(run(&mut chroot).stdout).unwrap()
}

/// What an ordinary user does with what is installed.
fn check_use(root: &Path) {
    let version = inside(root, "nobody:nogroup", "dnslab --version");
    assert_eq!(version.trim(), format!("dnslab {}", env!("CARGO_PKG_VERSION")));
    let run = "cd /tmp && dnslab run --only udp,tcp --set repeat.runs=1 --set load.duration=200ms \
               --set load.warm_up=50ms --set common.duration=0s --results made > said; rm -rf made";
    let mounted = ["mount", "umount"].map(|word| {
        let mut command = Command::new(word);
        if word == "mount" {
            command.args(["-t", "proc", "proc"]);
        }
        command.arg(root.join("proc"));
        command
    });
    let [mut mount, mut unmount] = mounted;
    run_between(&mut mount, &mut unmount, || inside(root, "nobody:nogroup", run));
    assert!(fs::read_to_string(root.join("tmp/said")).unwrap().contains("report: made"));
    fs::remove_file(root.join("tmp/said")).unwrap();
    inside(root, "root:root", "bash -nc '. /usr/share/bash-completion/completions/dnslab'");
    let page = inside(root, "root:root", "gzip -dc /usr/share/man/man1/dnslab-run.1.gz");
    assert!(page.starts_with(".ie") || page.contains(".TH"), "{page}");
    // What the linker puts in is no package of cargo.
    let licences = inside(root, "root:root", "cat /usr/share/doc/dnslab/copyright");
    for text in
        ["the GNU C Library, glibc 2", "GNU Lesser", "the Rust standard library 1", "ring v"]
    {
        assert!(licences.contains(text), "{text}");
    }
}

fn run_between(mount: &mut Command, unmount: &mut Command, act: impl FnOnce() -> String) {
    run(mount);
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
    run(unmount);
    if let Err(panic) = done {
        std::panic::resume_unwind(panic);
    }
}

fn check_debian(root: &Path, package: &Path) {
    fs::copy(package, root.join("tmp/dnslab.deb")).unwrap();
    let before = files(root);
    // Debian's images for containers leave documents and man pages out; this one does not.
    inside(root, "root:root", "dpkg --install /tmp/dnslab.deb");
    check_use(root);
    inside(root, "root:root", "dpkg --purge dnslab");
    check_left(root, &before);
    fs::remove_file(root.join("tmp/dnslab.deb")).unwrap();
}

fn check_rpm(root: &Path, package: &Path) {
    let before = files(root);
    rpm(root, &["--install", &package.display().to_string()]);
    check_use(root);
    rpm(root, &["--erase", "dnslab"]);
    fs::remove_dir_all(root.join("var/lib/rpm-tests")).unwrap();
    check_left(root, &before);
}

/// With a database of its own: that of Debian has no packages of this kind.
fn rpm(root: &Path, words: &[&str]) {
    let mut rpm = Command::new("rpm");
    rpm.arg("--root").arg(root).args(["--dbpath", "/var/lib/rpm-tests", "--nodeps"]);
    run(rpm.args(words));
}

#[track_caller]
fn check_left(root: &Path, before: &BTreeSet<PathBuf>) {
    let is_own =
        |path: &&PathBuf| !path.starts_with("var/lib/dpkg") && !path.starts_with("var/log");
    let after = files(root);
    let left: Vec<&PathBuf> = after.difference(before).filter(is_own).collect();
    assert!(left.is_empty(), "{left:?}");
}
