//! Whether hosts can be made here, found out by a try.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::ip::run_ip;
use crate::package::Remedy;

/// The device that TUN devices are made through, for links in user space.
const TUN: &str = "/dev/net/tun";

/// Whether this user can have hosts here; if not, why, as half a sentence with the remedy. The first call
/// tries it; later ones give the same answer.
///
/// # Errors
/// When network namespaces, links or TUN devices are not permitted, or a program for them is missing.
pub fn possible() -> Result<(), String> {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    ANSWER.get_or_init(attempt).clone()
}

/// Makes a namespace with a pair of devices, which goes away at once, and opens the device for links in user
/// space.
fn attempt() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("network namespaces take root's privileges: run dnslab as root".to_owned());
    }
    let iproute = Remedy::Package { debian: "iproute2", fedora: "iproute" };
    let util_linux = Remedy::Package { debian: "util-linux", fedora: "util-linux" };
    for (program, remedy) in [("ip", iproute), ("unshare", util_linux)] {
        // Both say their version to this option.
        if Command::new(program).arg("-V").output().is_err() {
            return Err(format!("`{program}` is missing: {}", remedy.text()));
        }
    }
    // In a container, root may lack either capability.
    let mut pair = Command::new("unshare");
    pair.args(["--net", "--", "ip", "link", "add", "name", "client", "type", "veth"]);
    pair.args(["peer", "name", "server"]);
    run_ip(&mut pair).map_err(|reason| {
        format!(
            "a network namespace and a link in it cannot be made ({reason}): in a container, give it \
             the capabilities SYS_ADMIN and NET_ADMIN"
        )
    })?;
    opens(Path::new(TUN))
}

/// Whether links in user space can have their devices.
fn opens(tun: &Path) -> Result<(), String> {
    let opened = OpenOptions::new().read(true).write(true).open(tun);
    opened.map(drop).map_err(|error| {
        let tun = tun.display();
        format!("{tun} cannot be opened ({error}): `modprobe tun`, or give it to the container")
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

    use super::*;

    fn attempt_without(capability: CapabilitySet) -> Result<(), String> {
        let lacking = move || {
            remove_capability_from_bounding_set(capability).unwrap();
            attempt()
        };
        thread::spawn(lacking).join().unwrap()
    }

    #[test]
    fn root_without_a_capability_cannot_make_hosts_and_is_told_why() {
        assert_eq!(attempt(), Ok(()));
        for capability in [CapabilitySet::SYS_ADMIN, CapabilitySet::NET_ADMIN] {
            let reason = attempt_without(capability).unwrap_err();
            assert!(reason.contains("not permitted"), "{reason}");
            assert!(reason.contains("SYS_ADMIN and NET_ADMIN"), "{reason}");
        }
        // Only that thread lacked it.
        assert_eq!(attempt(), Ok(()));
    }

    #[test]
    fn a_machine_without_tun_devices_is_told() {
        let reason = opens(Path::new("/dev/net/no-such-device")).unwrap_err();
        assert!(reason.contains("/dev/net/no-such-device cannot be opened"), "{reason}");
    }
}
