//! One metric over many sessions: on the screen, as CSV, and as a page.

use dnslab_analysis::{History, WholeSession};
use dnslab_record::{Caveat, Metric, RunRecord, Session};
use dnslab_report::{history_csv, history_page, history_screen};

use crate::session_comparison::{EXPERIMENT, session, text};

/// Sessions of these relative speeds, a day apart, given in no order. From the `new`-th on the server is a new
/// one.
fn history(speeds: &[f64], new: usize) -> History {
    of_sessions(&sessions(speeds, new))
}

fn sessions(speeds: &[f64], new: usize) -> Vec<(Session, Vec<RunRecord>)> {
    let mut made: Vec<(Session, Vec<RunRecord>)> = (0..)
        .zip(speeds)
        .map(|(day, speed)| {
            let (mut facts, mut records) = session(3, *speed, 100 * day);
            facts.started = format!("2026-03-{:02}T03:04:05Z", day + 1);
            if day as usize >= new {
                for record in &mut records {
                    record.server.version = "9.20.0 (synthetic)".to_owned();
                }
            }
            (facts, records)
        })
        .collect();
    made.reverse();
    made
}

fn of_sessions(made: &[(Session, Vec<RunRecord>)]) -> History {
    let sessions: Vec<WholeSession<'_>> = made
        .iter()
        .map(|(session, records)| WholeSession { session, records, experiment: EXPERIMENT })
        .collect();
    History::of(Metric::AnsweredQps, &sessions)
}

#[test]
fn a_level_that_falls_is_named_with_what_changed_there() {
    let found = history(&[1.0, 1.0, 1.0, 1.0, 1.0, 0.8, 0.8, 0.8, 0.8], 5);
    for width in [80, 100] {
        let screen = history_screen(&found, width);
        for line in &screen {
            let columns: usize = line.iter().map(|piece| piece.text.chars().count()).sum();
            assert!(columns <= width, "wider than {width}: {line:?}");
        }
        insta::assert_snapshot!(format!("history-changed-{width}"), text(&screen));
    }
    insta::assert_snapshot!("history-changed-csv", history_csv(&found));
    let page = history_page(&found);
    assert_eq!(page.matches("session by session").count(), 3, "{page}");
    assert_eq!(page.matches("<circle ").count(), 27);
    assert_eq!(page.matches("stroke-dasharray=\"3 3\"").count(), 3);
    assert!(page.contains("script-src 'none'") && !page.contains("<script"), "{page}");
    assert!(page.contains("version was bind 9.18.0"), "{page}");
}

/// What other programs did to the machine is no change of the server.
#[test]
fn sessions_that_others_disturbed_have_no_change() {
    let speeds = [1.0, 1.0, 1.0, 1.0, 1.0, 0.8, 0.8, 0.8, 0.8];
    let mut made = sessions(&speeds, usize::MAX);
    for (_, records) in &mut made[..4] {
        records
            .iter_mut()
            .for_each(|run| run.caveats.push(Caveat::Steal { share: 0.3, host: String::new() }));
    }
    let found = of_sessions(&made);
    assert!(found.variants.iter().all(|variant| variant.changes.is_empty()));
    let screen = text(&history_screen(&found, 100));
    let said = "in 4 sessions other programs used the machine, so no change is looked for there.";
    assert!(screen.contains(said), "{screen}");
    made.iter_mut().flat_map(|(_, records)| records).for_each(|run| run.caveats.clear());
    assert!(of_sessions(&made).variants.iter().any(|variant| !variant.changes.is_empty()));
}

#[test]
fn the_axis_holds_every_interval() {
    let page = history_page(&history(&[1.0, 1.01, 0.99, 1.0, 1.02], usize::MAX));
    // Of each: the end below and the end above, in the coordinates of the picture, whose plot is from 24 to 160.
    let intervals: Vec<[f64; 2]> = page
        .split("<path class=\"interval\" d=\"M")
        .skip(1)
        .map(|path| {
            let (_, ends) = path.split('"').next().unwrap().split_once(' ').unwrap();
            let (low, high) = ends.split_once('V').unwrap();
            [low.parse().unwrap(), high.parse().unwrap()]
        })
        .collect();
    assert_eq!(intervals.len(), 3 * 5);
    for [low, high] in intervals {
        assert!(24.0 < high && high < low && low < 160.0, "cut: {high} to {low}");
    }
}

#[test]
fn a_level_that_stays_and_few_sessions_have_no_change() {
    for (name, speeds) in [("same", &[1.0; 7][..]), ("few", &[1.0, 0.5])] {
        let found = history(speeds, usize::MAX);
        assert!(found.variants.iter().all(|variant| variant.changes.is_empty()), "{name}");
        insta::assert_snapshot!(format!("history-{name}"), text(&history_screen(&found, 100)));
    }
    assert!(history_page(&history(&[1.0], 9)).contains("<svg "));
}
