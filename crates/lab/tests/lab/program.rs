//! The program that guards servers and carries links.

use std::path::{Path, PathBuf};

use dnslab_lab::GuardProgram;

pub(crate) fn program() -> PathBuf {
    let own = std::env::current_exe().expect("a test has a file");
    let folder = own.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    let program = folder.join("examples/guard");
    assert!(program.exists(), "build {} with `cargo build --example guard`", program.display());
    program
}

pub(crate) fn guard() -> GuardProgram {
    GuardProgram { path: program(), arguments: vec!["guard".into()] }
}
