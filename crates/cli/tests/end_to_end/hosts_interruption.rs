//! A laboratory is interrupted in each of its phases: nothing of it is left, and the next run is whole.

use dnslab_results::ResultsDirectory;
use rustix::process::Signal;

use crate::command::Running;
use crate::evidence::{is_cut, is_intact, records, valid_records};
use crate::laboratory::{
    CHAIN, Gate, HOSTS, LIGHT, ONE, Traces, gate, marked, marked_processes, open, wait_at,
};
use crate::processes::wait_for;
use crate::room::{Room, folders};

/// What the laboratory is doing when it is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first namespace is there, and is being configured.
    Hosts,
    /// All hosts are there, and the upstream was started.
    Upstream,
    /// The upstream answers, and the relay was started.
    Relay,
    /// The relay answers, and the server under test was started.
    Server,
    /// Everything is under load.
    Load,
    /// The server under test was told to end. The others run.
    End,
}

impl Phase {
    const ALL: [Self; 6] =
        [Self::Hosts, Self::Upstream, Self::Relay, Self::Server, Self::Load, Self::End];

    /// Namespaces that exist in this phase.
    fn networks(self) -> usize {
        if self == Self::Hosts { 1 } else { 3 }
    }

    /// Makes the gate that holds the phase. Returns the lines for the experiment.
    fn arrange(self, room: &Room) -> String {
        let gated = |program: &str, when| gate(room, "gated", program, when).display().to_string();
        match self {
            Self::Hosts => {
                // `ip` is found by its name in PATH.
                gate(room, "ip", "/usr/sbin/ip", Gate::Start);
                String::new()
            }
            Self::Upstream => {
                format!("upstream.binary = {:?}\n", gated("/usr/sbin/named", Gate::Start))
            }
            Self::Relay => {
                format!("relay.binary = {:?}\n", gated("/usr/sbin/dnsmasq", Gate::Start))
            }
            Self::Server => {
                format!("server.binary = {:?}\n", gated("/usr/sbin/unbound", Gate::Start))
            }
            Self::End => format!("server.binary = {:?}\n", gated("/usr/sbin/unbound", Gate::End)),
            Self::Load => String::new(),
        }
    }

    fn gate(self) -> &'static str {
        if self == Self::Hosts { "ip" } else { "gated" }
    }

    #[track_caller]
    fn wait(self, room: &Room, running: &Running) {
        if self != Self::Load {
            return wait_at(room, self.gate(), running);
        }
        room.wait_for_load(running, |plan| plan.first());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As at a terminal: the whole job gets the signal.
    CtrlC,
    /// SIGTERM from another process.
    Terminate,
    Twice,
    /// SIGKILL, which it cannot notice.
    Kill,
}

impl Way {
    /// True if the command ends without waiting for anything.
    fn is_at_once(self) -> bool {
        matches!(self, Self::Twice | Self::Kill)
    }
}

/// Interrupts one experiment in `phase`, and then completes it.
#[track_caller]
fn check(phase: Phase, way: Way) {
    println!("{way:?} in {phase:?}");
    let room = Room::with_load();
    let long = if phase == Phase::Load { "load.duration = \"20s\"\n" } else { "" };
    let gated = phase.arrange(&room);
    room.experiment(&format!("{HOSTS}{CHAIN}{LIGHT}{gated}{ONE}{long}"));
    let mut running = marked(&room, &["run", "./experiment.toml"]);
    phase.wait(&room, &running);
    let traces = Traces::of(&room);
    assert_eq!(traces.networks(), phase.networks(), "{phase:?}{}", running.so_far());
    match way {
        Way::CtrlC => running.press_ctrl_c(),
        Way::Terminate => running.signal(Signal::TERM),
        Way::Twice => {
            // Two different signals: of two equal ones the kernel may deliver one.
            running.signal(Signal::INT);
            running.signal(Signal::TERM);
        }
        Way::Kill => running.signal(Signal::KILL),
    }
    // A guarded process must go although it waits. A tool that makes hosts ends by itself.
    if phase == Phase::Hosts || !way.is_at_once() {
        open(&room, phase.gate());
    }
    match way {
        Way::Kill => drop(running),
        Way::Twice => drop(running.finish().exits_with(130)),
        _ => {
            running.finish().exits_with(130).prints("to go on: dnslab run --resume");
        }
    }
    traces.are_gone(&room);
    let results = room.results();
    is_intact(&results);
    // Its load was whole. Whether its record reached the disk is a race with the signal.
    let is_over = phase == Phase::End;
    for record in records(&results) {
        assert!(
            is_cut(&record) || is_over,
            "{phase:?} {way:?}: not to be repeated: {:?}",
            record.status
        );
    }
    open(&room, phase.gate());
    go_on(&room, phase, &results);
}

/// Completes what was interrupted.
#[track_caller]
fn go_on(room: &Room, phase: Phase, results: &ResultsDirectory) {
    let path = results.path().to_str().expect("a temporary folder has a plain name");
    let arguments = match phase {
        // That load would last long.
        Phase::Load => {
            let short = "variant.chain.load.duration=300ms";
            vec!["run", "./experiment.toml", "--results", "again", "--set", short]
        }
        _ => vec!["run", "--resume", path],
    };
    let running = marked(room, &arguments);
    running.finish().exits_with(0);
    if phase == Phase::Load {
        let again = folders(&room.path().join("again"));
        valid_records(&ResultsDirectory::open(&again[0]).expect("it is there"), 1);
    } else {
        valid_records(results, 1);
    }
    Traces::of(room).are_gone(room);
}

#[test]
fn ctrl_c_in_any_phase_leaves_nothing() {
    Phase::ALL.into_iter().for_each(|phase| check(phase, Way::CtrlC));
}

#[test]
fn a_signal_to_end_in_any_phase_leaves_nothing() {
    Phase::ALL.into_iter().for_each(|phase| check(phase, Way::Terminate));
}

#[test]
fn a_second_signal_in_any_phase_leaves_nothing() {
    Phase::ALL.into_iter().for_each(|phase| check(phase, Way::Twice));
}

#[test]
fn a_kill_in_any_phase_leaves_nothing() {
    Phase::ALL.into_iter().for_each(|phase| check(phase, Way::Kill));
}

/// Leaves a laboratory up, with its hosts by name.
#[track_caller]
fn keep(room: &Room) -> (Running, Traces) {
    room.experiment(&format!("{HOSTS}{CHAIN}{LIGHT}{ONE}"));
    let running = marked(room, &["run", "./experiment.toml", "--keep=chain"]);
    let is_up = || running.so_far().contains("the servers of chain are up").then_some(());
    wait_for("the laboratory is up", || running.so_far(), is_up);
    let traces = Traces::of(room);
    assert_eq!((traces.networks(), traces.names().len()), (3, 3), "{}", running.so_far());
    (running, traces)
}

#[test]
fn a_laboratory_that_was_left_up_goes_with_its_names() {
    let room = Room::with_load();
    let (mut running, traces) = keep(&room);
    running.press_ctrl_c();
    running.finish().exits_with(0);
    traces.are_gone(&room);
}

/// After a kill nobody removes the names. The next session that makes hosts does.
#[test]
fn names_that_a_kill_left_are_gone_with_the_next_laboratory() {
    let room = Room::with_load();
    let (mut running, traces) = keep(&room);
    running.signal(Signal::KILL);
    drop(running);
    let left = || format!("{:?}", marked_processes(&room));
    wait_for("no process is left", left, || marked_processes(&room).is_empty().then_some(()));
    let long = ["--set", "load.duration=2s"];
    let next =
        marked(&room, &[&["run", "./experiment.toml", "--results", "again"], &long[..]].concat());
    next.finish().exits_with(0);
    traces.are_gone(&room);
}
