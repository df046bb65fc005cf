//! Programs that are asked something and end by themselves: a server's version, its counters.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::users::User;

/// CoreDNS takes a second to say its version when all CPUs are busy.
const PATIENCE: Duration = Duration::from_secs(10);

/// Octets read of each output: `knotc -f stats` writes some kilobytes.
const MAX_COUNT: u64 = 1 << 20;

/// How often a program whose outputs are closed is asked whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct Said {
    /// It exited with status 0.
    pub(crate) succeeded: bool,
    /// At most [`MAX_COUNT`] octets of its standard output.
    pub(crate) output: String,
    /// Its standard error, likewise.
    pub(crate) error: String,
}

/// Runs a program without input, as `user` or as this process's user. A program that is late is killed with
/// all that it has started in its process group. Fails if it cannot be executed or is late.
pub(crate) fn ask(mut command: Command, user: Option<&User>) -> io::Result<Said> {
    ask_within(&mut command, user, PATIENCE)
}

fn ask_within(command: &mut Command, user: Option<&User>, patience: Duration) -> io::Result<Said> {
    if let Some(user) = user {
        // Root that changes its user so leaves its other groups too.
        command.uid(user.uid).gid(user.gid);
    }
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.process_group(0).spawn()?;
    let deadline = Instant::now() + patience;
    let outputs = (child.stdout.take().map(read), child.stderr.take().map(read));
    let said = collect(&mut child, outputs, deadline);
    if said.is_err() {
        // Not waited for yet, so its number is still its own.
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
        child.wait().ok();
    }
    said
}

/// The text comes when the output ends or exceeds [`MAX_COUNT`].
fn read(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut octets = Vec::new();
        output.take(MAX_COUNT).read_to_end(&mut octets).ok();
        sender.send(String::from_utf8_lossy(&octets).into_owned()).ok();
    });
    receiver
}

fn collect(
    child: &mut Child,
    (output, error): (Option<Receiver<String>>, Option<Receiver<String>>),
    deadline: Instant,
) -> io::Result<Said> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "it does not end by itself");
    let text = |receiver: Option<Receiver<String>>| {
        let Some(receiver) = receiver else { return Ok(String::new()) };
        let left = deadline.saturating_duration_since(Instant::now());
        receiver.recv_timeout(left).map_err(|_| late())
    };
    let (output, error) = (text(output)?, text(error)?);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Said { succeeded: status.success(), output, error });
        }
        if Instant::now() >= deadline {
            return Err(late());
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_outputs_and_the_status_are_known() {
        let said = ask(shell("echo out; echo err >&2"), None).unwrap();
        assert_eq!((said.output.as_str(), said.error.as_str()), ("out\n", "err\n"));
        assert!(said.succeeded);
        assert!(!ask(shell("exit 3"), None).unwrap().succeeded);
        assert!(ask(Command::new("/nonexistent"), None).is_err());
    }

    #[test]
    fn who_does_not_end_is_killed() {
        for script in ["sleep 1000", "exec >&- 2>&-; sleep 1000", "sleep 1000 & exit"] {
            let error = ask_within(&mut shell(script), None, Duration::from_millis(200));
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::TimedOut, "{script}");
        }
    }

    #[test]
    fn who_says_too_much_is_cut() {
        let said = ask(shell("head -c 3000000 /dev/zero; true"), None).unwrap();
        assert_eq!(said.output.len() as u64, MAX_COUNT);
    }

    #[test]
    fn root_asks_as_somebody_else() {
        if crate::users::own() != 0 {
            println!("not root: who can be nobody else");
            return;
        }
        let user = User::unused();
        let said = ask(shell("id -u; id -g; id -G"), Some(&user)).unwrap();
        assert_eq!(said.output, format!("{0}\n{1}\n{1}\n", user.uid, user.gid));
    }
}
