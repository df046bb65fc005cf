//! Hosts that the tests make for themselves.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

use crate::command::{Guarded, unshare};
use crate::processes::wait_for;

/// A network namespace, whose loopback interface is up, and the process that holds it. Dropping it ends both.
pub(crate) struct Host(Guarded);

impl Host {
    #[track_caller]
    pub(crate) fn make() -> Self {
        Self::holding(unshare())
    }

    /// Another one, which the user of this one may change.
    #[track_caller]
    pub(crate) fn another(&self) -> Self {
        Self::holding(self.command("unshare"))
    }

    #[track_caller]
    fn holding(mut unshare: Command) -> Self {
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        unshare.args(["--net", "sleep", "3600"]).stdin(Stdio::null());
        let child =
            unshare.spawn().unwrap_or_else(|error| panic!("{error}: apt-get install util-linux"));
        let pid = child.id();
        let is_made = || {
            let namespace = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
            let program = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            (namespace != own && program.trim() == "sleep").then_some(())
        };
        wait_for("the namespace is made", || format!("{pid}"), is_made);
        let host = Self(Guarded(child));
        host.run("ip link set lo up");
        host
    }

    /// The process that holds it.
    pub(crate) fn pid(&self) -> u32 {
        self.0.0.id()
    }

    /// Begins a command on this host.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid().to_string(), "--net"]);
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg(program);
        command
    }

    #[track_caller]
    pub(crate) fn run(&self, script: &str) {
        let output = self.command("sh").args(["-c", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
    }
}
