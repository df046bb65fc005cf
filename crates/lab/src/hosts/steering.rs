//! On which CPUs the kernel handles what a host receives.
//!
//! A packet that crosses a link between namespaces, as one over loopback, is handled by the CPU that sent it, up to the
//! socket of its receiver: the server's receive path is charged to the client's CPU, and what the client receives to the
//! server's. With receive packet steering (RPS; "Scaling in the Linux Networking Stack" in the kernel's documentation) the
//! CPUs of the receiving host do that, as they do where each host is a machine.

use std::process::Command;

use super::ip::run_ip;
use super::line::Hosts;
use crate::error::LabError;
use crate::network::Visit;

/// Writes `$1` for each device but the loopback interface. `/sys` shows the devices of the namespace that mounts it.
const STEER: &str = "mount -t sysfs none /sys && for file in /sys/class/net/*/queues/rx-*/rps_cpus; do \
                     case $file in */net/lo/*) ;; *) echo $1 > $file || exit 1 ;; esac; done";

impl Hosts {
    /// Has the kernel handle what a host receives on these CPUs; nothing changes without any.
    ///
    /// # Errors
    /// When the system refuses, or the kernel was built without RPS.
    pub fn steer(&self, name: &'static str, cpus: &[usize]) -> Result<(), LabError> {
        let Some(host) = self.host(name).filter(|_| !cpus.is_empty()) else { return Ok(()) };
        let failed = |reason: String| LabError::Hosts {
            what: format!("steer what host {name} receives to its CPUs"),
            reason,
        };
        let _visit = Visit::to(&host.network).map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", STEER, "sh", &mask(cpus)]);
        run_ip(&mut command).map_err(failed)
    }
}

/// CPUs as the kernel reads them: groups of 32 bits in hexadecimal digits, the highest first, with commas between them.
fn mask(cpus: &[usize]) -> String {
    let groups = cpus.iter().max().map_or(0, |highest| highest / 32) + 1;
    let group = |number: usize| {
        let own = cpus.iter().filter(|cpu| *cpu / 32 == number);
        own.fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32))
    };
    let texts: Vec<String> =
        (0..groups).rev().map(|number| format!("{:08x}", group(number))).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_bits() {
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[1, 3]), "0000000a");
        assert_eq!(mask(&[0, 33]), "00000002,00000001");
    }
}
