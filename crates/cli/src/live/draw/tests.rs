//! Frames as snapshots, and every size of a terminal.

use std::time::Duration;

use super::*;
use dnslab_record::{LoadMode, OpenPace};
use dnslab_traffic::Pace;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use crate::live::told::{Told, case, closed, kind, told};
use crate::live::view::{Estimate, Model};

/// One load, in its seventh second.
fn one() -> View {
    one_of(&told("load", 70, 203_000))
}

/// One load that has told this.
fn one_of(load: &Told) -> View {
    let question = "What does 127.0.0.1:5300 answer under this load?";
    let estimate = Estimate { runs: 1, all: Duration::from_millis(12_400) };
    let mut model = Model::of_kinds(question, vec![kind("load", closed())], estimate);
    model.round_begins(&[case("load", 1)], (1, 1), Duration::ZERO);
    load.feed(&mut model, Duration::ZERO);
    model.view()
}

/// Three that take turns, in their second round.
fn round() -> View {
    let kinds = ["udp", "tcp", "dot"].map(|name| kind(name, closed()));
    let estimate = Estimate { runs: 9, all: Duration::from_secs(3 * 40) };
    let mut model = Model::of_kinds("What does encrypting DNS cost?", kinds.to_vec(), estimate);
    let cases = |repetition| ["udp", "tcp", "dot"].map(|name| case(name, repetition));
    model.round_begins(&cases(1), (1, 9), Duration::ZERO);
    for (place, name) in ["udp", "tcp", "dot"].iter().enumerate() {
        let line = format!(
            "[{}/9] {name}, run 1: 147,000 qps, p99 1.0 ms, lost 0 %, bottleneck: server CPU",
            place + 1
        );
        model.ended(&line, true);
    }
    model.ended("[4/9] dot, run 1: INVALID: 3 % of the answers are wrong", false);
    let began = Duration::from_secs(36);
    model.round_begins(&cases(2), (4, 9), began);
    told("udp", 70, 147_000).feed(&mut model, began);
    Told { lost: 40, ..told("tcp", 70, 98_000) }.feed(&mut model, began);
    Told { busy: 700, ..told("dot", 70, 75_000) }.feed(&mut model, began);
    model.view()
}

/// A step of a search.
fn search() -> View {
    let mut model = Model::of_search("looking for the highest rate with p99<10ms");
    for number in 1..9 {
        model.ended(&format!("[{number:>3}] ramp    {number:>6}000 qps: met"), true);
    }
    let mode = LoadMode::Open { rate_qps: 64_000.0, pace: OpenPace::constant(Pace::Constant) };
    let began = Duration::from_secs(40);
    let name = "64,000 qps";
    model.step_begins("step 9, ramp, 64,000 qps".to_owned(), 9, kind(name, mode), began);
    Told { name, ..told("", 30, 64_000) }.feed(&mut model, began);
    model.view()
}

fn look(now: u64) -> Look {
    Look {
        now: Duration::from_secs(now),
        is_paused: false,
        has_help: false,
        selected: 0,
        is_leaving: false,
        paint: Paint { has_colour: false },
    }
}

fn frame(view: &View, look: &Look, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, look)).unwrap();
    terminal
}

/// The text of a frame, without spaces at the ends of lines.
fn text(view: &View, look: &Look, width: u16, height: u16) -> String {
    let terminal = frame(view, look, width, height);
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned() + "\n").collect()
}

macro_rules! snapshot {
    ($name:literal, $text:expr) => {
        insta::with_settings!({ snapshot_path => "snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $text);
        });
    };
}

#[test]
fn one_load() {
    snapshot!("one_load_80x24", text(&one(), &look(7), 80, 24));
    snapshot!("one_load_120x40", text(&one(), &look(7), 120, 40));
    snapshot!("one_load_60x20", text(&one(), &look(7), 60, 20));
    snapshot!("one_load_60x40", text(&one(), &look(7), 60, 40));
}

#[test]
fn loads_that_take_turns() {
    snapshot!("round_80x24", text(&round(), &look(43), 80, 24));
    snapshot!("round_120x40", text(&round(), &Look { selected: 1, ..look(43) }, 120, 40));
    snapshot!("round_60x20", text(&round(), &look(43), 60, 20));
}

#[test]
fn a_search() {
    snapshot!("search_80x24", text(&search(), &look(43), 80, 24));
}

/// The narrow column shortens a line, and cuts none.
#[test]
fn what_the_server_dropped() {
    let view = one_of(&Told { lost: 40, ..told("load", 70, 203_000) });
    let narrow = text(&view, &look(7), 80, 24);
    assert!(narrow.contains("2,000 UDP drops\n"), "{narrow}");
    let wide = text(&view, &look(7), 120, 40);
    assert!(wide.contains("2,000 dropped at its socket\n"), "{wide}");
}

/// As in the result: what the warm-up lost is none of the window's, though it is noticed there.
#[test]
fn losses_of_the_warm_up_are_not_those_of_the_window() {
    let view = one_of(&Told { lost_before: 500, ..told("load", 35, 20_000) });
    let text = text(&view, &look(4), 80, 24);
    let row = text.lines().find(|line| line.starts_with("so far")).expect("there is one");
    assert!(row.contains(" 0 % "), "{text}");
}

#[test]
fn help_and_pause() {
    let help = Look { has_help: true, is_paused: true, ..look(7) };
    snapshot!("help_80x24", text(&one(), &help, 80, 24));
    let leaving = text(&one(), &Look { is_leaving: true, ..look(7) }, 80, 24);
    assert!(leaving.contains("Leaving: the run ends"), "{leaving}");
}

#[test]
fn before_the_first_interval() {
    let estimate = Estimate { runs: 1, all: Duration::from_millis(12_400) };
    let mut model = Model::of_kinds("What does it answer?", vec![kind("load", closed())], estimate);
    let nothing = text(&model.view(), &look(0), 80, 24);
    assert!(nothing.contains("starting"), "{nothing}");
    model.round_begins(&[case("load", 1)], (1, 1), Duration::ZERO);
    let begun = text(&model.view(), &look(1), 80, 24);
    assert!(begun.contains("starting, about 11 s left"), "{begun}");
}

fn coloured_cells(has_colour: bool) -> usize {
    let look = Look { paint: Paint { has_colour }, ..look(43) };
    let terminal = frame(&round(), &look, 80, 24);
    let cells = terminal.backend().buffer().content().iter();
    cells.filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
}

#[test]
fn colours_are_there_if_they_are_wanted() {
    assert_eq!(coloured_cells(false), 0);
    assert!(coloured_cells(true) > 50, "{}", coloured_cells(true));
}

#[test]
fn a_terminal_of_any_size_shows_what_fits() {
    for view in [one(), round(), search()] {
        for width in 1..=130 {
            for height in [1, 2, 3, 5, 8, 13, 14, 15, 19, 20, 24, 33, 34, 50] {
                let look = Look { has_help: width % 2 == 0, selected: 7, ..look(43) };
                frame(&view, &look, width, height);
            }
        }
    }
    let small = text(&one(), &look(7), 30, 6);
    assert!(small.contains("queries/s") && small.contains("last second"), "{small}");
}

#[test]
fn numbers_are_short() {
    let check = |number, expected: &str| assert_eq!(short(number), expected);
    check(0.0, "0");
    check(999.0, "999");
    check(1_000.0, "1k");
    check(1_490.0, "1.5k");
    check(147_300.0, "147k");
    check(999_600.0, "1M");
    check(12_345_678.0, "12M");
}
