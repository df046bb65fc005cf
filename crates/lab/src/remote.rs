//! How dnslab is started on another host: as the program at the other end of two pipes.
//!
//! The program that reaches the host is the user's own `ssh`, with the user's configuration, keys and known hosts. Its
//! words are made here, and none of them reaches a shell but the path of dnslab, which has letters, digits and `/._+-`
//! only.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// How a host is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// It is this one: a child of this process.
    Here,
    /// By ssh(1), with a name from its configuration, a host name or an address, and perhaps a user before it.
    Ssh(String),
}

/// What ssh is told beside the host. A connection that is dead is noticed after 20 s, and nobody is asked for a password.
/// The user's configuration holds but for what would lead elsewhere than to the agent, what a server needs not, and what
/// would end other connections with this one. A link that the load fills drops other packets first.
const SSH: [&str; 11] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "ControlMaster=no",
    "RemoteCommand=none",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "IPQoS=af21",
];

const LOOK: Duration = Duration::from_millis(5);

/// A program at the other end of two pipes.
#[derive(Debug)]
pub struct Remote {
    child: Child,
    /// The command line.
    pub command: Vec<String>,
}

/// Its ends of the pipes.
#[derive(Debug)]
pub struct RemotePipes {
    /// What it reads.
    pub input: ChildStdin,
    /// What it says.
    pub output: ChildStdout,
    /// What it, or what leads to it, says beside that.
    pub error: ChildStderr,
}

/// True for a path that means the same to each shell.
#[must_use]
pub fn is_plain_path(path: &Path) -> bool {
    let is_plain = |octet: &u8| octet.is_ascii_alphanumeric() || b"/._+-".contains(octet);
    let text = path.to_str().unwrap_or_default();
    !text.is_empty() && !text.starts_with('-') && text.as_bytes().iter().all(is_plain)
}

/// The command line that starts `program` as an agent on a host.
#[must_use]
pub fn command_line(reach: &Reach, program: &Path) -> Vec<String> {
    let program = program.display().to_string();
    let words: Vec<String> = match reach {
        Reach::Here => vec![program],
        Reach::Ssh(destination) => {
            let options = SSH.iter().flat_map(|option| ["-o".to_owned(), (*option).to_owned()]);
            let ssh = ["ssh".to_owned(), "-T".to_owned()].into_iter().chain(options);
            ssh.chain(["--".to_owned(), destination.clone(), program]).collect()
        }
    };
    words.into_iter().chain(["agent".to_owned()]).collect()
}

impl Remote {
    /// Starts it. It has a process group of its own: Ctrl-C at the terminal is for whoever has started it.
    ///
    /// # Errors
    /// When the program cannot be executed, or its path could mean something to a shell.
    pub fn start(reach: &Reach, program: &Path) -> io::Result<(Self, RemotePipes)> {
        if *reach != Reach::Here && !is_plain_path(program) {
            let why = "the path of dnslab on a host has letters, digits and /._+- only";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let words = command_line(reach, program);
        let mut command = Command::new(PathBuf::from(&words[0]));
        command.args(&words[1..]).process_group(0);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let ((input, output), error) = pipes.expect("all three are pipes");
        Ok((Self { child, command: words }, RemotePipes { input, output, error }))
    }

    /// Waits for its end, and kills it when the time is over. What it had started ends by itself: it reads the other end
    /// of a pipe that is closed by then.
    pub fn end(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK),
                Ok(None) | Err(_) => break,
            }
        }
        // Whoever leads there for ssh is in its group.
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
        self.child.wait().ok()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_path_can_mean_something_to_a_shell() {
        let check = |path: &str| is_plain_path(Path::new(path));
        assert!(check("dnslab") && check("/opt/dns-lab_2/bin/dnslab+1.0"));
        for path in ["", "-oProxyCommand=x", "a b", "a;b", "$(a)", "~/dnslab", "a\nb", "a'b"] {
            assert!(!check(path), "{path}");
        }
        let refused = Remote::start(&Reach::Ssh("host".to_owned()), Path::new("a;b"));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_destination_is_no_option_of_ssh() {
        let words = command_line(&Reach::Ssh("-oProxyCommand=x".to_owned()), Path::new("dnslab"));
        let place = words.iter().position(|word| word == "--").unwrap();
        assert_eq!(words[place + 1..], ["-oProxyCommand=x", "dnslab", "agent"]);
    }

    #[test]
    fn one_that_does_not_end_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("never");
        std::fs::write(&script, "#!/bin/sh\nexec sleep 600\n").unwrap();
        std::process::Command::new("chmod").arg("755").arg(&script).status().unwrap();
        let (mut remote, _pipes) = Remote::start(&Reach::Here, &script).unwrap();
        let status = remote.end(Duration::from_millis(20)).unwrap();
        assert!(!status.success(), "{status}");
    }
}
