//! The devices at the ends of a link, and their addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::thread;
use std::time::Instant;

use super::host::{Host, PATIENCE, PAUSE};
use super::ip::ip;
use crate::error::LabError;
use crate::network::Visit;

/// Gives the ends of a link these addresses.
pub(super) fn configure(
    pair: [&Host; 2],
    devices: [&str; 2],
    addresses: [IpAddr; 2],
) -> Result<(), LabError> {
    for end in [0, 1] {
        let (address, device) = (addresses[end], devices[end]);
        // Without duplicate address detection, which would make the address wait for a second.
        let how = if address.is_ipv6() { "/126 nodad" } else { "/30" };
        let (length, option) = how.split_once(' ').unwrap_or((how, ""));
        let lines = [
            format!("addr add {address}{length} dev {device} {option}"),
            format!("link set {device} up"),
        ];
        ip(&pair[end].network, &lines, None)?;
    }
    Ok(())
}

/// The address of one end (1 or 2) of a link: 10.53.LINK.END, or fd53::LINK:END (RFC 4193).
pub(super) fn address(link: usize, end: u8, ipv6: bool) -> IpAddr {
    let link = u8::try_from(link + 1).unwrap_or(u8::MAX);
    if ipv6 {
        Ipv6Addr::new(0xfd53, 0, 0, link.into(), 0, 0, 0, end.into()).into()
    } else {
        Ipv4Addr::new(10, 53, link, end).into()
    }
}

pub(super) fn veth(pair: [&Host; 2], devices: [&str; 2]) -> Result<(), LabError> {
    let peer = pair[1].holder.pid();
    let line =
        format!("link add name {} type veth peer name {} netns {peer}", devices[0], devices[1]);
    ip(&pair[0].network, &[line], None)
}

pub(super) fn wait_for_carrier(host: &Host, device: &str) -> Result<(), LabError> {
    let failed = |reason: String| LabError::Hosts {
        what: format!("join host {} by its device {device}", host.name),
        reason,
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let output = {
            let _visit = Visit::to(&host.network).map_err(|error| failed(error.to_string()))?;
            Command::new("ip").args(["-o", "link", "show", "dev", device]).output()
        };
        let output = output.map_err(|error| failed(error.to_string()))?;
        if String::from_utf8_lossy(&output.stdout).contains("LOWER_UP") {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(failed("it has no carrier after 10 s".to_owned()));
        }
        thread::sleep(PAUSE);
    }
}
