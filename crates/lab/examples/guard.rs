//! The smallest program that can be its own guard: the tests of `dnslab_lab` start it, and it shows what a
//! binary has to do. Besides `guard` it has these subcommands:
//!
//! - `hold DIRECTORY COMMAND...`: starts a command under a guard, prints its id, waits for ever;
//! - `hold-in-root ROOT DIRECTORY COMMAND...`: the same in a root folder;
//! - `find-in-root ROOT`: prints the version of BIND in a root folder;
//! - `find PROGRAM`: prints the version that PROGRAM says when it is asked as NSD is;
//! - `spin THREADS`: keeps that many threads busy, each replaced by a new one every 50 ms;
//! - `linger`: ignores SIGTERM, and so does a child that it starts; each prints its id.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use dnslab_lab::{
    FileSystem, GuardProgram, GuardSpec, Installed, LabError, RunningProcess, ServerKind, find,
    find_in_root, guard,
};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match words.as_slice() {
        ["guard", ..] => guard::main(&arguments[1..]),
        ["hold", directory, command @ ..] => hold(directory, command, FileSystem::Shared),
        ["hold-in-root", root, directory, command @ ..] => {
            hold(directory, command, FileSystem::Root(root.into()))
        }
        ["find-in-root", root] => {
            print_version(find_in_root(ServerKind::Bind, root.as_ref(), &own_guard()))
        }
        ["find", program] => {
            print_version(find(ServerKind::Nsd, Some(program.as_ref()), &own_guard()))
        }
        ["spin", threads] => spin(threads.parse().expect("THREADS is a number")),
        ["linger"] => linger(true),
        ["linger-alone"] => linger(false),
        _ => {
            eprintln!("usage: guard [guard | hold DIRECTORY COMMAND... | spin THREADS | linger]");
            ExitCode::FAILURE
        }
    }
}

fn print_version(found: Result<Installed, LabError>) -> ExitCode {
    match found {
        Ok(found) => {
            println!("{}", found.version);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn own_guard() -> GuardProgram {
    GuardProgram::this_program(["guard"])
}

/// Prints the process id of `command` under a guard, and waits to be killed.
fn hold(directory: &str, command: &[&str], file_system: FileSystem) -> ExitCode {
    let command = command.iter().map(|&word| word.to_owned()).collect();
    let directory = PathBuf::from(directory);
    let log = directory.join("server.log");
    let spec = GuardSpec { file_system, ..GuardSpec::new(command, directory, log) };
    match RunningProcess::start(&own_guard(), &spec) {
        Ok(process) => {
            println!("{}", process.pid());
            loop {
                thread::park();
            }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The threads end and are replaced, so that a sampler which forgets the time of ended threads is found out.
fn spin(threads: usize) -> ExitCode {
    let mut workers: Vec<thread::JoinHandle<()>> = Vec::new();
    loop {
        while workers.len() < threads {
            workers.push(thread::spawn(|| {
                let end = Instant::now() + Duration::from_millis(50);
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }));
        }
        workers.remove(0).join().expect("a worker only counts time");
    }
}

/// Does not end on SIGTERM, and with `child` a second process does not either.
fn linger(child: bool) -> ExitCode {
    let ignored = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, ignored)
        .expect("SIGTERM has a handler");
    if child {
        let own = std::env::current_exe().expect("a running program has a file");
        let mut child = std::process::Command::new(own).arg("linger-alone").spawn();
        let child = child.as_mut().expect("this program runs already");
        println!("{}", std::process::id());
        child.wait().expect("it is our child");
    }
    println!("{}", std::process::id());
    loop {
        thread::sleep(Duration::from_secs(60));
    }
}
