//! The site, made with a report that was just measured, and every page of it opened in a browser.

mod beside;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use beside::dnslab;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A dnslab whose runs are short.
fn short(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("short");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = run ] && set -- \"$@\" --only udp,tcp --set repeat.runs=2 --set load.duration=200ms \
         --set load.warm_up=50ms --set common.duration=0s\nexec {} \"$@\"\n",
        dnslab().display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn every_page_of_the_site_is_whole() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("site");
    let mut site = Command::new(env!("CARGO_BIN_EXE_xtask"));
    site.arg("site").arg("--dnslab").arg(short(scratch.path())).arg("--folder").arg(&folder);
    let made = site.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let page = root().join("crates/report/page");
    assert!(page.join("node_modules").exists(), "npm ci in {}", page.display());
    let mut node = Command::new("node");
    node.args(["--test", "test/site.test.mjs"]).current_dir(page).env("DNSLAB_SITE", &folder);
    let checked = node.output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    // A second one does not remove what is there.
    let again = site.output().unwrap();
    let complaint = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && complaint.contains("is not empty"), "{complaint}");
}
