//! The report of a server with several numbers of threads.

use dnslab_record::RunRecord;
use serde_json::Value;

use super::{between, report_of, sample};

/// Page, `summary.json` and `table.md` of five rounds, in which the load generator was the bottleneck of `limited`.
fn study(limited: &[&str]) -> (String, Value, String) {
    let session = sample::scaling::session(5);
    files(&sample::scaling::records(&session, limited))
}

fn files(records: &[RunRecord]) -> (String, Value, String) {
    let [page, summary, _, _, table] = report_of(&sample::scaling::session(5), records);
    (page, serde_json::from_str(&summary).unwrap(), table)
}

fn holds(estimate: &Value, truth: f64) -> bool {
    let end = |name: &str| estimate[name].as_f64().unwrap();
    (end("low")..=end("high")).contains(&truth)
}

#[test]
fn the_law_is_found_and_predicts_the_number_that_was_held_out() {
    let (page, summary, table) = study(&[]);
    let line = &summary["scaling"][0];
    assert!(holds(&line["law"]["contention"], 0.06), "{line}");
    assert!(holds(&line["law"]["coherency"], 0.004), "{line}");
    let held_out = &line["held_out"];
    assert_eq!(held_out["threads"], 8);
    assert!(holds(&held_out["error"], 0.0), "{held_out}");
    assert!(line["points"][0]["efficiency"].is_null());
    // 1 / (1 + 0.06 * 7 + 0.004 * 56)
    assert!(holds(&line["points"][5]["efficiency"], 0.608), "{line}");
    let section = between(&page, "<section class=\"charts\" id=\"scaling\">", "</section>");
    let words: Vec<&str> = section
        .lines()
        .filter(|line| line.starts_with("<ul>") || line.starts_with("<li>"))
        .collect();
    insta::assert_snapshot!(words.join("\n"));
    let answer = summary["answer"].as_str().unwrap();
    assert!(answer.starts_with("8 threads answer "), "{answer}");
    assert!(answer.contains(" contention ") && !answer.contains("threads-4"), "{answer}");
    let table = between(&table, "**Over the threads**\n\n", "\n\n");
    insta::assert_snapshot!(table);
}

#[test]
fn what_the_generator_bounded_is_left_out_of_the_law() {
    let (page, summary, _) = study(&["threads-8"]);
    let line = &summary["scaling"][0];
    assert_eq!(line["points"][5]["left_out"], "generator");
    assert!(line["points"][5]["efficiency"].is_null());
    assert_eq!(line["held_out"]["threads"], 6);
    assert!(holds(&line["law"]["contention"], 0.06), "{line}");
    let left_out =
        "Left out: threads-8 (the load generator was the bottleneck, so more could be answered).";
    assert!(page.contains(left_out));
    let answer = summary["answer"].as_str().unwrap();
    assert!(answer.starts_with("6 threads answer "), "{answer}");
}

#[test]
fn too_few_numbers_of_threads_have_no_law() {
    let limited = ["threads-3", "threads-4", "threads-6", "threads-8"];
    let (page, summary, _) = study(&limited);
    let line = &summary["scaling"][0];
    assert!(line["law"].is_null() && line["held_out"].is_null(), "{line}");
    assert!(page.contains("No scalability law: 2 numbers of threads count, and it takes 3."));
    let (_, summary, _) = study(&[&limited[..], &["threads-2"]].concat());
    let answer = summary["answer"].as_str().unwrap();
    assert!(answer.starts_with("No scalability law: one number of threads counts"), "{answer}");
}

#[test]
fn threads_without_a_cpu_each_are_named() {
    let session = sample::scaling::session(5);
    let mut records = sample::scaling::records(&session, &[]);
    assert!(!files(&records).0.contains("more threads than CPUs"));
    records.iter_mut().for_each(|record| record.server.cpus.truncate(4));
    let (page, ..) = files(&records);
    assert!(page.contains("threads-6 and threads-8 have more threads than CPUs."));
}

#[test]
fn a_report_without_such_servers_says_nothing_of_them() {
    let session = sample::session(2);
    let [page, summary, ..] = report_of(&session, &super::runs_of(&session));
    assert!(!page.contains("id=\"scaling\"") && !summary.contains("\"scaling\""));
}
