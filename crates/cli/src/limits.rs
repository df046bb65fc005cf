use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the number of open files to the system's limit: every simulated client holds a socket. A refusal is
/// no error: whoever needs more files reports it.
pub(crate) fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).ok();
}
