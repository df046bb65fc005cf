//! Servers of other releases: fetched by `dnslab lab get`, compared by `dnslab run`.
//!
//! `./test` fetches the real ones once, into `target/tools/cache`. Failures of fetching are tested with our
//! own debootstrap, which mounts and lingers like the real one, but at once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use dnslab_lab::{ServerKind, find};
use rustix::process::Signal;

use crate::command::{Running, cache, guard, program};
use crate::evidence::{report_is_whole, valid_records};
use crate::processes::{kill, orphaned_groups, ports_are_free, processes_of, wait_for};
use crate::room::{Room, SHORT};

/// Mounts what debootstrap mounts, says so, and neither ends nor heeds SIGTERM.
const LINGERING: &str = r#"trap '' TERM
mkdir -p "$target/proc"
mount -t proc proc "$target/proc"
echo "I: Unpacking what never ends..."
sleep 1000 &
wait"#;

/// Fails as debootstrap does without such a mirror.
const FAILING: &str = r#"mkdir -p "$target/debootstrap"
echo "the last line of its own log" > "$target/debootstrap/debootstrap.log"
echo "E: Failed getting release file"
exit 1"#;

fn dnslab(cache: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).env("DNSLAB_CACHE", cache);
    command
}

/// Mounts that everybody sees.
fn mounts() -> String {
    fs::read_to_string("/proc/self/mounts").expect("Linux has it")
}

/// Starts `dnslab lab get bind-9.16` in a room, with this script as debootstrap.
fn get(room: &Room, script: &str) -> Running {
    let bin = room.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    // Release, target and mirror follow the options.
    let head = "#!/bin/sh\nwhile [ \"${1#--}\" != \"$1\" ]; do shift; done\ntarget=$2\n";
    let path = bin.join("debootstrap");
    fs::write(&path, format!("{head}{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let before = std::env::var("PATH").unwrap();
    let mut command = dnslab(&room.path().join("cache"), &["lab", "get", "bind-9.16"]);
    command.env("PATH", format!("{}:{before}", bin.display()));
    Running::start(command, room.path())
}

/// Without locks.
fn in_cache(room: &Room) -> Vec<String> {
    let entries = fs::read_dir(room.path().join("cache")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| !name.ends_with(".lock")).collect()
}

/// Waits until the tool has mounted something, which nobody else may see.
fn wait_for_mount(room: &Room, running: &Running) {
    let mounted = || {
        let tools = processes_of(room.path()).into_iter();
        tools.filter_map(|(pid, _)| fs::read_to_string(format!("/proc/{pid}/mounts")).ok())
    };
    let is_there = |its: String| its.contains("/.bind-9.16.part-").then_some(());
    wait_for("something is mounted", || running.so_far(), || mounted().find_map(is_there));
    assert!(!mounts().contains(".bind-9.16.part-"), "it is mounted for everybody: {}", mounts());
}

#[test]
fn two_releases_of_bind_are_compared() {
    let (room, cache, before) = (Room::with_load(), cache(&["bind-9.16", "bind-9.20"]), mounts());
    let groups = orphaned_groups();
    let variants = "[[variant]]\nname = \"bind-9-16\"\nserver.root = \"bind-9.16\"\n\
                    [[variant]]\nname = \"bind-9-20\"\n";
    // One by its name, the other by its path.
    let path = cache.join("bind-9.20");
    let lines = format!(
        "repeat.runs = 2\nserver.kind = \"bind\"\n{SHORT}{variants}server.root = {:?}\n",
        path.display().to_string()
    );
    room.experiment(&lines);
    let running = Running::start(dnslab(&cache, &["run", "./experiment.toml"]), room.path());
    running.finish().exits_with(0).prints("4 runs of 2 variants");
    let results = room.results();
    let records = valid_records(&results, 4);
    for record in &records {
        let release = if record.variant == "bind-9-16" { "9.16." } else { "9.20." };
        assert!(record.server.version.starts_with(release), "{:?}", record.server);
        let root = format!(
            "runs by chroot in {}",
            cache.join(record.variant.replacen("-9-", "-9.", 1)).display()
        );
        assert!(
            record.server.notes.iter().any(|note| note.starts_with(&root)),
            "{:?}",
            record.server
        );
    }
    report_is_whole(&results, &["bind-9-16", "bind-9-20"]);
    assert!(processes_of(room.path()).is_empty(), "{:?}", processes_of(room.path()));
    assert_eq!(mounts(), before);
    assert_eq!(&orphaned_groups() - &groups, Default::default());
    ports_are_free(&records);
    // The plan says what a release does not serve; the rest runs.
    let dry =
        ["run", "./experiment.toml", "--dry-run", "--set", "variant.bind-9-20.load.transport=dot"];
    Running::start(dnslab(&cache, &dry), room.path()).finish().exits_with(0);
    let dot = [
        "run",
        "./experiment.toml",
        "--dry-run",
        "--set",
        "baseline=bind-9-20",
        "--set",
        "load.transport=dot",
    ];
    let done = Running::start(dnslab(&cache, &dot), room.path()).finish().exits_with(0);
    done.prints("has no DNS over TLS: it came with 9.18");
}

#[test]
fn a_root_that_is_not_there_is_an_error_of_the_file() {
    let room = Room::quiet();
    let empty = room.path().join("cache");
    for (root, message, help) in [
        ("bind-9.20", "there is no root folder `bind-9.20`", "dnslab lab get bind-9.20"),
        ("bind-4", "there is no root folder `bind-4`", "the names are bind-9.16, bind-9.20"),
        ("./absent", "/absent`", "the path is wrong"),
        ("/etc", "/etc is no root folder: it has no folder `dev`", "as debootstrap makes it"),
    ] {
        let lines = format!(
            "[[variant]]\nname = \"a\"\nserver = {{ kind = \"bind\", root = \"{root}\" }}\n"
        );
        room.experiment(&lines);
        let running = Running::start(dnslab(&empty, &["run", "./experiment.toml"]), room.path());
        let done = running.finish().exits_with(2).errors(1);
        done.complains(message).complains(help).complains("experiment.toml:4:");
    }
    assert!(room.results_so_far().is_none());
}

#[test]
fn the_example_of_the_document_is_right() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SERVERS.md");
    let text = fs::read_to_string(document).unwrap();
    let example = text.split("```toml\n").nth(1).and_then(|text| text.split_once("```"));
    let (example, _) = example.expect("there is an example");
    let room = Room::quiet();
    room.write("experiment.toml", example);
    let plan =
        dnslab(&cache(&["bind-9.16", "bind-9.20"]), &["run", "./experiment.toml", "--dry-run"]);
    let done = Running::start(plan, room.path()).finish().exits_with(0);
    done.prints("10 runs, about ");
}

#[test]
fn a_program_in_the_cache_is_found() {
    let room = Room::quiet();
    let cache = room.path().join("cache");
    let lines =
        "server = { kind = \"bind\", binary = \"named-of-mine\" }\n[[variant]]\nname = \"a\"\n";
    room.experiment(lines);
    let plan = || dnslab(&cache, &["run", "./experiment.toml", "--dry-run"]);
    let done = Running::start(plan(), room.path()).finish().exits_with(1);
    done.complains("no `named-of-mine` in");
    let named =
        find(ServerKind::Bind, None, &guard()).unwrap_or_else(|error| panic!("{error}")).binary;
    fs::create_dir_all(cache.join("named-of-mine")).unwrap();
    std::os::unix::fs::symlink(named, cache.join("named-of-mine/named-of-mine")).unwrap();
    Running::start(plan(), room.path()).finish().exits_with(0);
}

#[test]
fn what_nobody_can_get_is_bad_input() {
    let room = Room::quiet();
    let done = room.dnslab(&["lab", "get", "bind-8"]).exits_with(2).errors(1);
    done.complains("`bind-8` is nothing that dnslab can get").complains("bind-9.16, bind-9.20");
}

#[test]
fn ctrl_c_leaves_nothing_of_what_was_fetched() {
    for signal in [Signal::INT, Signal::TERM] {
        let (room, before, groups) = (Room::quiet(), mounts(), orphaned_groups());
        let mut running = get(&room, LINGERING);
        wait_for_mount(&room, &running);
        match signal {
            Signal::INT => running.press_ctrl_c(),
            other => running.signal(other),
        }
        let done =
            running.finish().exits_with(130).complains("was interrupted; nothing of it is left");
        // There is no terminal, so what is done is told in lines.
        done.complains("bind-9.16, ");
        assert!(processes_of(room.path()).is_empty(), "{:?}", processes_of(room.path()));
        assert_eq!(in_cache(&room), Vec::<String>::new());
        assert_eq!(mounts(), before);
        assert_eq!(&orphaned_groups() - &groups, Default::default());
    }
}

#[test]
fn what_a_killed_call_leaves_the_next_one_removes() {
    let (room, before) = (Room::quiet(), mounts());
    let running = get(&room, LINGERING);
    wait_for_mount(&room, &running);
    kill(running.pid());
    room.wait_for_silence();
    assert_eq!(mounts(), before);
    assert!(in_cache(&room).iter().any(|name| name.starts_with(".bind-9.16.part-")));
    get(&room, FAILING).finish().exits_with(1);
    assert_eq!(in_cache(&room), ["bind-9.16.log"]);
}

#[test]
fn a_failure_keeps_its_log_and_names_it() {
    let room = Room::quiet();
    let done = get(&room, FAILING).finish().exits_with(1).errors(1);
    let log = room.path().canonicalize().unwrap().join("cache/bind-9.16.log");
    let texts = ["exited with status 1", "E: Failed getting release file", "--mirror URL"];
    let done = texts.into_iter().fold(done, |done, text| done.complains(text));
    done.complains(&format!("  log:     {}, last lines:", log.display()));
    let content = fs::read_to_string(log).unwrap();
    assert!(content.ends_with("the last line of its own log\n"), "{content}");
    assert_eq!(in_cache(&room), ["bind-9.16.log"]);
}

#[test]
fn only_root_can_fetch_a_root() {
    let room = Room::quiet();
    let mut command = room.as_nobody();
    command.args(["lab", "get", "bind-9.16"]).env("DNSLAB_CACHE", room.path().join("cache"));
    let done = Running::start(command, room.path()).finish().exits_with(1).errors(1);
    done.complains("which only root may").complains("dnslab lab get bind-9.16");
    assert!(!room.path().join("cache").exists());
}

#[test]
fn the_list_shows_what_there_is_and_what_is_there() {
    let room = Room::quiet();
    let list = dnslab(&cache(&["bind-9.16", "bind-9.20"]), &["lab", "list"]);
    let done = Running::start(list, room.path()).finish().exits_with(0);
    let line = |name: &str| {
        let found = done.stdout.lines().find(|line| line.trim_start().starts_with(name));
        found.unwrap_or_else(|| panic!("no {name}: {done}")).to_owned()
    };
    let words: Vec<String> = line("bind-9.16").split_whitespace().map(str::to_owned).collect();
    assert!(words[1].parse::<u32>().is_ok_and(|size| size > 50) && words[2] == "MiB", "{done}");
    assert!(words[3].starts_with("9.16."), "{done}");
    assert!(line("coredns").contains("built by Go"), "{done}");
    let empty = dnslab(&room.path().join("cache"), &["lab", "list"]);
    let done = Running::start(empty, room.path()).finish().exits_with(0);
    done.prints("not there").prints(": 0 of them");
}
