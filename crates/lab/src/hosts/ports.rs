//! The ports that programs of a host are given.

use std::fs;
use std::io;
use std::path::Path;

use crate::LabError;
use crate::network::Visit;

/// First and last port for sockets that ask for none, in the namespace of the reading thread (ip(7)).
const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Gives the host at `network` the range of this machine. A new namespace has the kernel's default, but a
/// load is checked against the machine's range: how many sockets it may have, or that the range must be
/// widened.
pub(super) fn share(network: &Path) -> Result<(), LabError> {
    let share = || -> io::Result<()> {
        let range = fs::read(RANGE)?;
        let _visit = Visit::to(network)?;
        fs::write(RANGE, range)
    };
    share().map_err(|error| LabError::Hosts {
        what: format!("give a host the ports of this machine ({RANGE})"),
        reason: error.to_string(),
    })
}
