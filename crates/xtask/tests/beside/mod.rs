//! The program that is packaged and measured.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The dnslab beside this crate's program. It is built if it is not there, as in `cargo test -p xtask`.
pub(crate) fn dnslab() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("dnslab");
    if !path.exists() {
        let mut command = Command::new(env!("CARGO"));
        command.args(["build", "--package", "dnslab-cli"]);
        assert!(command.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
    }
    path
}
