//! System calls without a safe wrapper in our dependencies: wait4(2) for the CPU time and memory of one
//! child, and bpf(2) for the counts of the reflector. This is the only `unsafe` of this crate.
#![expect(unsafe_code, reason = "wait4 and bpf have no safe wrapper in libc, rustix or std")]

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

/// How a child ended. CPU time and memory include the children that it waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// User and system, to the microsecond.
    pub(crate) cpu: Duration,
    /// The largest memory of one of these processes, octets.
    pub(crate) memory: u64,
}

/// Collects the child `pid` if it has ended, without waiting.
///
/// # Errors
/// When there is no such child (any more).
pub(crate) fn collect(pid: u32) -> io::Result<Option<Ended>> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to memory of the right type that lives through the call.
    let collected = unsafe { libc::wait4(pid, &mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match collected {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => {
            // SAFETY: zeroed is a valid rusage (numbers only), and the kernel has filled it.
            let usage = unsafe { usage.assume_init() };
            let cpu = duration(usage.ru_utime) + duration(usage.ru_stime);
            // In kibibytes (getrusage(2)).
            let memory = u64::try_from(usage.ru_maxrss).unwrap_or(0) << 10;
            Ok(Some(Ended { status: ExitStatus::from_raw(status), cpu, memory }))
        }
    }
}

/// CPU times are never negative.
fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// Commands of bpf(2), from `enum bpf_cmd` of linux/bpf.h.
#[derive(Clone, Copy)]
enum BpfCommand {
    /// `BPF_MAP_LOOKUP_ELEM`
    LookUpElement = 1,
    /// `BPF_PROG_GET_FD_BY_ID`
    ProgramById = 13,
    /// `BPF_MAP_GET_FD_BY_ID`
    MapById = 14,
    /// `BPF_OBJ_GET_INFO_BY_FD`
    InformationByDescriptor = 15,
}

/// `union bpf_attr` for `BPF_PROG_GET_FD_BY_ID` and `BPF_MAP_GET_FD_BY_ID`.
#[repr(C)]
struct ById {
    /// Of the program or map.
    id: u32,
    /// Not used here.
    next_id: u32,
    /// Zero: to read and write.
    open_flags: u32,
}

/// `union bpf_attr` for `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct ByDescriptor {
    /// Of the program.
    descriptor: u32,
    /// Octets at `information`.
    length: u32,
    /// Address of a [`ProgramInformation`].
    information: u64,
}

/// `union bpf_attr` for `BPF_MAP_LOOKUP_ELEM`.
#[repr(C)]
struct LookUp {
    /// Descriptor of the map.
    map: u32,
    /// Zero; the addresses are aligned.
    padding: u32,
    /// Address of the key.
    key: u64,
    /// Address of the value.
    value: u64,
    /// Zero: no lock.
    flags: u64,
}

/// The beginning of `struct bpf_prog_info`; the kernel fills as much as it is given. The lengths of
/// the two programs stay zero, so that it does not write them.
#[repr(C)]
#[derive(Default)]
struct ProgramInformation {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    jited_length: u32,
    translated_length: u32,
    jited: u64,
    translated: u64,
    load_time: u64,
    created_by: u32,
    /// Room at `maps`; then how many maps there are.
    map_count: u32,
    /// Address of the maps' ids, 4 octets each.
    maps: u64,
}

/// Calls bpf(2).
///
/// # Safety
/// `attributes` is the form that belongs to `command`, and each address in it is that of memory
/// which lives through the call, as large as the kernel will read or write there.
unsafe fn bpf<Attributes>(
    command: BpfCommand,
    attributes: &mut Attributes,
) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads `size_of::<Attributes>()` octets from the pointer; the rest is the
    // caller's promise.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_long,
            std::ptr::from_mut(attributes),
            mem::size_of::<Attributes>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn open(command: BpfCommand, id: u32) -> io::Result<OwnedFd> {
    let mut attributes = ById { id, next_id: 0, open_flags: 0 };
    // SAFETY: the form belongs to both commands that this function is called with; no addresses.
    let descriptor = unsafe { bpf(command, &mut attributes)? };
    let descriptor = i32::try_from(descriptor).map_err(io::Error::other)?;
    // SAFETY: the call gave us a new descriptor, which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// With values of 64 bits.
#[derive(Debug)]
pub(crate) struct BpfArray(OwnedFd);

impl BpfArray {
    /// The only map of the program with this id.
    ///
    /// # Errors
    /// When there is no such program, it has another number of maps than one, or the right to look
    /// (`CAP_SYS_ADMIN`) is missing.
    pub(crate) fn of_program(id: u32) -> io::Result<Self> {
        let program = open(BpfCommand::ProgramById, id)?;
        let mut map_id = 0_u32;
        let mut information = ProgramInformation {
            map_count: 1,
            maps: std::ptr::from_mut(&mut map_id).expose_provenance() as u64,
            ..ProgramInformation::default()
        };
        let mut attributes = ByDescriptor {
            descriptor: program.as_raw_fd().unsigned_abs(),
            length: mem::size_of::<ProgramInformation>() as u32,
            information: std::ptr::from_mut(&mut information).expose_provenance() as u64,
        };
        // SAFETY: the form belongs to the command; `information` is as long as stated, and has room
        // for the one map id that it says it has room for.
        unsafe { bpf(BpfCommand::InformationByDescriptor, &mut attributes)? };
        if information.map_count != 1 {
            let count = information.map_count;
            return Err(io::Error::other(format!("program {id} has {count} maps, not one")));
        }
        Ok(Self(open(BpfCommand::MapById, map_id)?))
    }
    /// # Errors
    /// When the map is shorter than that.
    pub(crate) fn read(&self, length: u32) -> io::Result<Vec<u64>> {
        (0..length).map(|key| self.get(key)).collect()
    }

    fn get(&self, mut key: u32) -> io::Result<u64> {
        let mut value = 0_u64;
        let mut attributes = LookUp {
            map: self.0.as_raw_fd().unsigned_abs(),
            padding: 0,
            key: std::ptr::from_mut(&mut key).expose_provenance() as u64,
            value: std::ptr::from_mut(&mut value).expose_provenance() as u64,
            flags: 0,
        };
        // SAFETY: the form belongs to the command; keys of an array are 4 octets long, and the
        // values of the only map that is opened here, the reflector's, are 8.
        unsafe { bpf(BpfCommand::LookUpElement, &mut attributes)? };
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn the_cpu_time_of_one_child_is_told() {
        let spin = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 7";
        let mut child = Command::new("sh").args(["-c", spin]).spawn().unwrap();
        let ended = loop {
            if let Some(ended) = collect(child.id()).unwrap() {
                break ended;
            }
            thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(ended.status.code(), Some(7));
        assert!(ended.cpu > Duration::ZERO);
        assert!(child.wait().is_err(), "it was collected already");
    }

    #[test]
    fn a_missing_program_is_an_error() {
        assert!(BpfArray::of_program(u32::MAX).is_err());
    }
}
