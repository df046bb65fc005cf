//! A link in user space: a process that carries packets between the TUN devices of two hosts.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::alarm::Alarm;
use super::link_settings::LinkSettings;
use super::queue::Queue;
use crate::network::Visit;
use crate::sys;

/// First argument of the guard program when it is this process.
pub(crate) const LINK: &str = "link";

/// Longest packet that a host sends into a TUN device: 1,500 octets by default, a jumbo frame at most.
const MAX_LENGTH: usize = 9_216;

/// Packets taken from one side before the other has its turn.
const BATCH: usize = 64;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LinkSpec {
    /// The network namespaces of both hosts, and the names of their devices.
    pub(crate) ends: [(PathBuf, String); 2],
    pub(crate) settings: LinkSettings,
    /// Decides with the direction which packets are lost, and how late each is.
    pub(crate) seed: u64,
}

/// The whole life of the process; it ends when it is killed, or when a device goes away.
pub(crate) fn carry(spec: &OsStr) -> ExitCode {
    let failure = match spec.to_str().map(serde_json::from_str::<LinkSpec>) {
        Some(Ok(spec)) => match run(&spec) {
            Ok(never) => match never {},
            Err(error) => error.to_string(),
        },
        _ => "the link's specification is unreadable".to_owned(),
    };
    eprintln!("dnslab: link: {failure}");
    ExitCode::FAILURE
}

/// Opens the device of this name in a network namespace, without waiting for packets.
fn open(network: &Path, name: &str) -> io::Result<File> {
    let _visit = Visit::to(network)?;
    let device = sys::open_tun(name)?;
    rustix::io::ioctl_fionbio(&device, true)?;
    Ok(device)
}

fn run(spec: &LinkSpec) -> io::Result<std::convert::Infallible> {
    let [(one_network, one), (other_network, other)] = &spec.ends;
    let mut devices = [open(one_network, one)?, open(other_network, other)?];
    // A link that waits for a CPU adds to its delay. Without the permission the link is worse, which its test
    // shows, but not wrong.
    if let Err(error) = sys::run_first() {
        eprintln!("dnslab: link: no priority over other processes: {error}");
    }
    set_current_timer_slack(NonZeroU64::new(1)).ok();
    let mut queues = [0, 1].map(|way| Queue::new(spec.settings.clone(), spec.seed ^ way));
    let mut buffer = vec![0; MAX_LENGTH];
    let mut alarm = Alarm::default();
    loop {
        wait(&devices, &queues, &mut alarm)?;
        for way in [0, 1] {
            take(&mut devices[way], &mut queues[way], &mut buffer)?;
            deliver(&mut devices[1 - way], &mut queues[way])?;
        }
    }
}

fn wait(devices: &[File; 2], queues: &[Queue; 2], alarm: &mut Alarm) -> io::Result<()> {
    let next = queues.iter().filter_map(Queue::next_at).min().map(|at| alarm.set_for(at));
    let pause = next.map(|at| Duration::from_nanos(at.saturating_sub(now_ns())));
    let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
    let mut ready = devices.each_ref().map(|device| PollFd::new(device, PollFlags::IN));
    let slept = pause.is_none_or(|pause| pause != Timespec::default());
    match poll(&mut ready, pause.as_ref()) {
        Ok(0) if slept => alarm.rang(next.unwrap_or_default(), now_ns()),
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_gone = ready.iter().any(|end| end.revents().contains(PollFlags::ERR));
    if is_gone { Err(io::Error::other("a device is gone")) } else { Ok(()) }
}

fn take(device: &mut File, queue: &mut Queue, buffer: &mut [u8]) -> io::Result<()> {
    for _ in 0..BATCH {
        match device.read(buffer) {
            Ok(count) => queue.push(now_ns(), buffer[..count].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn deliver(device: &mut File, queue: &mut Queue) -> io::Result<()> {
    while let Some(packet) = queue.pop(now_ns()) {
        match device.write(&packet) {
            // A device that is not up yet, or has no memory left, loses it as a real one would.
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => return Err(error),
            Err(_) => {}
        }
    }
    Ok(())
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
