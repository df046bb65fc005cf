//! How dnslab is started on another host: as the program at the other end of two pipes.
//!
//! The program that reaches the host is the user's own `ssh`, with the user's configuration, keys and known hosts. Its
//! words are made here, and none of them reaches a shell but the path of dnslab, which has letters, digits and `/._+-`
//! only.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use dnslab_settings::{HostAt, HostPlace};
use rustix::process::{Pid, Signal};

use crate::network::Visit;
use crate::pods::{Owner, PROGRAM, PodHost};

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
    /// The pod that it is in, which goes with it.
    pod: Option<PodHost>,
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

/// This program, even if its file was replaced meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// How the name of a folder begins that the program is copied to.
pub const COPIED: &str = "dnslab-copy-";

/// What a host says on a line of its own before the program is copied there.
pub const COPY_MARK: &str = "dnslab-copy";

/// What a shell does that copies the program of so many octets into a folder, and becomes it. A folder in which nothing is
/// executed, or without room for it, is passed over. What is left of an attempt that fails is removed; the program
/// removes its folder itself. All of it is in single quotes, in which neither csh(1) nor fish(1) reads any of it.
fn copying(octets: u64) -> String {
    let statements = [
        r##"umask 022"##.to_owned(),
        r##"for d in "$TMPDIR" /tmp /var/tmp "$XDG_RUNTIME_DIR" /dev/shm "$HOME""##.to_owned(),
        r##"do [ -d "$d" ] || continue"##.to_owned(),
        // What was left by a host that was switched off.
        format!(
            r##"find "$d" -maxdepth 1 -type d -name "{COPIED}*" -mmin +1440 -exec rm -rf {{}} + 2> /dev/null"##
        ),
        format!(r##"f=$(mktemp -d "$d/{COPIED}XXXXXXXX" 2> /dev/null) || continue"##),
        r##"trap "rm -rf \"\$f\"" 0 1 2 13 15"##.to_owned(),
        format!(
            r##"{{ chmod 755 "$f" && printf "#\041/bin/sh\nexit 0\n" > "$f/dnslab" && chmod 755 "$f/dnslab" && "$f/dnslab" && head -c {octets} /dev/zero > "$f/dnslab"; }} 2> /dev/null || {{ rm -rf "$f"; continue; }}"##
        ),
        format!("echo {COPY_MARK}"),
        format!(r##"head -c {octets} > "$f/dnslab""##),
        format!(r##"[ $(wc -c < "$f/dnslab") -eq {octets} ] || exit 1"##),
        r##""$f/dnslab" --version > /dev/null || exit 1"##.to_owned(),
        r##"exec "$f/dnslab" agent --copied"##.to_owned(),
        "done".to_owned(),
        format!(
            r##"echo "no folder there has room for {octets} octets and executes programs" >&2"##
        ),
        "exit 1".to_owned(),
    ];
    format!("exec sh -c '{}'", statements.join("; "))
}

/// The command line that starts dnslab as an agent on a host.
///
/// # Errors
/// When the program is to be copied there, and cannot be read.
pub fn command_line(host: &HostPlace) -> io::Result<Vec<String>> {
    let own = |word: &str| word.to_owned();
    let HostPlace { at, program, .. } = host;
    let agent = |program: &Path| vec![program.display().to_string(), own("agent")];
    Ok(match at {
        HostAt::Here | HostAt::Namespace(_) => {
            agent(program.as_deref().unwrap_or(Path::new(OWN_PROGRAM)))
        }
        HostAt::Ssh(destination) => {
            let there = match host.is_copied() {
                false => agent(host.program()),
                true => vec![copying(Path::new(OWN_PROGRAM).metadata()?.len())],
            };
            let options = SSH.iter().flat_map(|option| [own("-o"), own(option)]);
            let ssh = [own("ssh"), own("-T")].into_iter().chain(options);
            ssh.chain([own("--"), destination.clone()]).chain(there).collect()
        }
        // Its name is known when it is made.
        HostAt::Kubernetes => {
            ["kubectl", "exec", "-i", "POD", "--", PROGRAM, "agent"].map(own).to_vec()
        }
    })
}

/// Copies the running program.
///
/// # Errors
/// When it cannot be read, or nobody reads it there.
pub fn copy_program(to: &mut impl Write) -> io::Result<()> {
    io::copy(&mut File::open(OWN_PROGRAM)?, to)?;
    to.flush()
}

impl Remote {
    /// Starts it. It has a process group of its own: Ctrl-C at the terminal is for whoever has started it.
    ///
    /// # Errors
    /// When the program cannot be executed, its path could mean something to a shell, or the host is a network namespace
    /// that is not there or may not be entered.
    pub fn start(host: &HostPlace) -> io::Result<(Self, RemotePipes)> {
        if matches!(host.at, HostAt::Ssh(_)) && !is_plain_path(host.program()) {
            let why = "the path of dnslab on a host has letters, digits and /._+- only";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let pod = match host.at {
            HostAt::Kubernetes => Some(PodHost::make(host)?),
            HostAt::Here | HostAt::Namespace(_) | HostAt::Ssh(_) => None,
        };
        let words =
            pod.as_ref().map_or_else(|| command_line(host), |pod| Ok(pod.command_line()))?;
        // A child begins where the thread is that starts it.
        let _visit = match &host.at {
            HostAt::Namespace(path) => {
                let refused = |error: io::Error| {
                    let why = format!("the network namespace {}: {error}", path.display());
                    io::Error::new(error.kind(), why)
                };
                Some(Visit::to(path).map_err(refused)?)
            }
            HostAt::Here | HostAt::Ssh(_) | HostAt::Kubernetes => None,
        };
        let mut command = Command::new(PathBuf::from(&words[0]));
        command.args(&words[1..]).process_group(0);
        if matches!(host.at, HostAt::Here | HostAt::Namespace(_)) {
            // They are of the login of this process, and an agent takes them for its own.
            command.env_remove("SSH_ORIGINAL_COMMAND").env_remove("SSH_CONNECTION");
        }
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let ((input, output), error) = pipes.expect("all three are pipes");
        Ok((Self { child, pod, command: words }, RemotePipes { input, output, error }))
    }

    /// The Job of its pod, if it is in one.
    #[must_use]
    pub fn job(&self) -> Option<&Owner> {
        self.pod.as_ref().map(PodHost::job)
    }

    /// Kills it and whoever leads there for it, if it has not ended. Whoever writes to it is told so.
    pub fn kill(&mut self) {
        if let (Ok(None), Some(group)) =
            (self.child.try_wait(), Pid::from_raw(self.child.id().cast_signed()))
        {
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
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
        self.kill();
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

    fn host(text: &str, program: Option<&Path>) -> HostPlace {
        HostPlace { program: program.map(Into::into), ..text.parse().unwrap() }
    }

    #[test]
    fn nothing_of_a_path_can_mean_something_to_a_shell() {
        let check = |path: &str| is_plain_path(Path::new(path));
        assert!(check("dnslab") && check("/opt/dns-lab_2/bin/dnslab+1.0"));
        for path in ["", "-oProxyCommand=x", "a b", "a;b", "$(a)", "~/dnslab", "a\nb", "a'b"] {
            assert!(!check(path), "{path}");
        }
        let refused = Remote::start(&host("ns1", Some(Path::new("a;b"))));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_destination_is_no_option_of_ssh() {
        let at = HostAt::Ssh("-oProxyCommand=x".to_owned());
        let words = command_line(&HostPlace { at, ..host("ns1", None) }).unwrap();
        let place = words.iter().position(|word| word == "--").unwrap();
        assert_eq!(words[place + 1..], ["-oProxyCommand=x", "dnslab", "agent"]);
    }

    #[test]
    fn what_copies_is_one_word_of_any_shell() {
        let script = copying(7);
        let inside = script.strip_prefix("exec sh -c '").and_then(|rest| rest.strip_suffix('\''));
        assert!(!inside.unwrap().contains(['\'', '!', '\n']), "{script}");
        let status = Command::new("sh").args(["-n", "-c", inside.unwrap()]).status().unwrap();
        assert!(status.success());
    }

    #[test]
    fn one_that_does_not_end_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("never");
        std::fs::write(&script, "#!/bin/sh\nexec sleep 600\n").unwrap();
        std::process::Command::new("chmod").arg("755").arg(&script).status().unwrap();
        let (mut remote, _pipes) = Remote::start(&host("here", Some(&script))).unwrap();
        let status = remote.end(Duration::from_millis(20)).unwrap();
        assert!(!status.success(), "{status}");
    }
}
