//! The page: what was tried many times, and the tests of what one try shows.

use std::fmt::Write as _;

use super::disks::{self, Disk};
use super::kills::Kill;
use super::sizes::Size;
use crate::machine;

pub(super) struct Found {
    pub(super) kills: Vec<Kill>,
    pub(super) disks: Vec<Disk>,
    pub(super) sizes: Vec<Size>,
}

impl Found {
    pub(super) fn faults(&self) -> impl Iterator<Item = &String> {
        let kills = self.kills.iter().flat_map(|kill| &kill.faults);
        let disks = self.disks.iter().flat_map(|disk| &disk.faults);
        kills.chain(disks).chain(self.sizes.iter().flat_map(|size| &size.faults))
    }
}

/// Attacks, and the tests or fuzz targets that try each of them whenever the tests run.
const TESTS: [(&str, &[&str]); 28] = [
    (
        "a results directory with links, pipes, sockets and devices in the place of its files",
        &[
            "no_link_and_no_pipe_is_read",
            "nothing_is_written_through_a_link",
            "what_is_behind_a_server_s_link_is_not_shown",
            "the_report_of_a_stranger_s_directory_stays_inside_it",
        ],
    ),
    (
        "names in it that lead elsewhere (`..`, `/`)",
        &["a_name_leads_nowhere_else", "a_plan_that_contradicts_the_variants_is_refused"],
    ),
    (
        "files and lists larger than any of ours, histograms that unpack to gigabytes",
        &[
            "what_is_larger_than_ours_is_refused_with_its_size",
            "the_size_of_a_record_is_bounded",
            "lists_of_small_values_are_refused_before_they_are_read",
            "files_of_one_kind_share_what_may_be_read",
            "lists_of_a_record_are_bounded",
            "no_memory_is_taken_for_what_is_not_there",
        ],
    ),
    (
        "terminal controls, formulas, HTML in what is shown",
        &[
            "what_others_wrote_acts_on_no_terminal_and_in_no_spreadsheet",
            "names_from_outside_cannot_leave_their_place",
        ],
    ),
    (
        "an experiment of a stranger that names programs",
        &[
            "a_plan_runs_nothing_that_the_file_names",
            "a_file_of_another_user_is_run_only_when_told_to",
            "a_file_that_others_may_write_is_not_run",
            "whose_a_file_is_does_not_depend_on_the_way_to_it",
            "a_folder_of_results_of_another_user_is_not_resumed",
            "root_starts_no_server_where_others_may_swap_its_folder",
            "a_folder_of_somebody_else_ends_no_process_and_is_not_written",
            "nor_is_one_that_names_no_code",
        ],
    ),
    (
        "a session, a record, an experiment, a query file, a histogram of random octets",
        &["session", "record", "experiment_file", "query_file", "histogram"],
    ),
    (
        "a population of random octets, and a capture of them or of a flood of clients and names",
        &["population", "profile", "a_flood_of_clients_and_names_does_not_fill_the_memory"],
    ),
    (
        "two sessions in one results directory",
        &[
            "two_sessions_do_not_write_into_one_directory",
            "one_session_at_a_time",
            "what_a_kill_left_holds_nobody_up",
        ],
    ),
    (
        "a record that is cut short, or that of another run",
        &[
            "a_record_that_is_none_is_made_anew_by_the_commands_that_are_named",
            "a_record_in_another_run_s_place_is_refused_by_name",
        ],
    ),
    (
        "`kill -9` of dnslab, of it and its guard, Ctrl-C in any phase",
        &[
            "kill_leaves_no_server_and_loses_no_finished_run",
            "kill_of_command_and_guard_leaves_no_server_either",
            "a_second_signal_ends_it_at_once",
        ],
    ),
    (
        "a full disk, between runs, at the report, by a query log",
        &[
            "a_disk_that_fills_up_between_runs_keeps_the_finished_ones",
            "a_disk_without_room_for_the_report_keeps_all_runs",
            "a_disk_without_room_for_a_run_is_one_error",
            "a_query_log_that_fills_the_disk_fails_its_run_alone",
        ],
    ),
    (
        "a server that is stopped or dies under load",
        &[
            "a_stopped_server_makes_its_run_invalid",
            "where_servers_take_turns_only_the_silent_one_is_invalid",
            "a_foreign_server_that_dies_makes_the_load_invalid",
            "a_server_that_dies_in_the_middle_fails_one_run",
            "a_client_that_is_answered_no_more_is_counted",
        ],
    ),
    (
        "a server that loses most of the queries",
        &["a_run_that_loses_more_than_the_limit_is_invalid"],
    ),
    (
        "stray datagrams and passing failures at the first query",
        &["a_stray_datagram_and_a_passing_failure_end_nothing"],
    ),
    (
        "answers whose header promises what is not there",
        &[
            "a_header_that_promises_a_record_makes_no_run_valid",
            "a_header_that_promises_a_record_is_not_believed",
            "where_a_record_is_expected_an_alias_or_a_truncated_answer_is_none",
            "what_was_picked_stands_for_all_answers",
        ],
    ),
    (
        "answers of random octets, with names that loop",
        &[
            "names_that_are_none",
            "sections_that_are_not_there",
            "response",
            "response_options",
            "tsig",
        ],
    ),
    ("a server of HTTP/2 that sends anything", &["http2_client", "octets_that_are_no_http"]),
    (
        "a server of HTTP/3 that sends anything",
        &["http3_client", "broken_rules_end_the_connection"],
    ),
    (
        "a server of QUIC that sends anything",
        &["quic_client", "any_datagrams", "any_octets_on_the_streams"],
    ),
    (
        "HTTP errors that begin in the middle",
        &["errors_that_begin_in_the_middle", "dnsdist_refuses_what_is_beyond_a_rate"],
    ),
    (
        "a server that takes the connection and says or reads nothing",
        &[
            "a_server_that_accepts_and_says_nothing",
            "a_server_that_stops_reading_leaves_queries_unsent_and_memory_bounded",
        ],
    ),
    (
        "clients of `dnslab serve` that flood it: heads without an end, closed windows, unread answers, \
         requests that are given up",
        &[
            "heads_without_an_end",
            "bodies_without_an_end",
            "windows_that_stay_closed",
            "streams_that_are_given_up",
            "requests_that_are_given_up_while_answers_are_kept_back",
            "unread_answers",
            "requests_without_an_end",
            "answers_that_flow_control_keeps_back",
        ],
    ),
    (
        "thousands of such clients at once",
        &[
            "unread_answers_of_many_clients",
            "input_without_an_end_of_many_clients",
            "closed_windows_of_many_clients",
        ],
    ),
    ("delayed answers without a bound", &["delayed_answers", "input_after_the_last_query"]),
    (
        "clients of it that send anything",
        &["garbage_is_dropped", "http2_server", "http3_request", "quic_server"],
    ),
    (
        "settings that the built-in server would refuse, ports that are not there",
        &["what_the_embedded_server_would_refuse_is_refused_by_the_plan"],
    ),
    (
        "a server that reaches for root, for another server, or puts links into its folder",
        &[
            "servers_give_up_root",
            "nobody_has_the_number_of_a_server",
            "the_program_may_lie_where_only_root_may_go",
            "a_link_in_the_place_of_a_log_leads_nowhere",
            "links_and_pipes_are_not_opened",
        ],
    ),
    (
        "a program that does not say its version, counters without an end",
        &[
            "a_program_has_nothing_of_who_asks_it",
            "a_program_that_does_not_end_is_ended_with_all_of_it",
            "what_cannot_be_executed_and_what_says_no_version_is_told",
            "an_answer_without_end_is_given_up",
        ],
    ),
];

pub(super) fn page(found: &Found, version: &str) -> String {
    let faults = found.faults().count();
    let mut page = format!(
        "# Attacks\n\n<!-- Written by `cargo xtask attack`. Changes by hand are lost. -->\n\n\
         dnslab is killed, gets disks that fill up, and is asked for too much, many times each.\n\n\
         {faults} faults were found.\n\n{}\n## `kill -9` at {} instants\n\n\
         An experiment of four runs is killed, at instants spread over its length. Nothing may be left \
         running, `dnslab run --resume` must complete it, and no finished record may change.\n\n\
         | server | killed after | runs that were over | survived |\n| --- | --- | --- | --- |\n",
        machine::section(version),
        found.kills.len()
    );
    for Kill { kind, after, finished, faults } in &found.kills {
        let finished = finished.map_or("no results yet".to_owned(), |count| count.to_string());
        let mark = mark(faults);
        writeln!(page, "| {kind} | {:.2} s | {finished} | {mark} |", after.as_secs_f64()).ok();
    }
    write!(
        page,
        "\n## Disks that fill up\n\nThe same experiment on {} disks, from one with hardly any room to one with \
         enough. There must be one error with its cause, and `dnslab report` must report what was \
         finished.\n\n| size of the disk | full at | runs that were over | survived |\n\
         | --- | --- | --- | --- |\n",
        found.disks.len()
    )
    .ok();
    for Disk { size, refused, finished, faults } in &found.disks {
        let refused = refused.as_deref().unwrap_or("-");
        writeln!(page, "| {} KiB | {refused} | {finished} | {} |", size / 1_024, mark(faults)).ok();
    }
    let counts = disks::by_file(&found.disks);
    let counts: Vec<String> =
        counts.iter().map(|(name, count)| format!("`{name}` {count}")).collect();
    write!(
        page,
        "\nFiles that did not fit, and how often: {}.\n\n## What is large\n\n\
         | what | took | CPU | memory | ended |\n| --- | --- | --- | --- | --- |\n",
        counts.join(", ")
    )
    .ok();
    for Size { what, took, ended, is_refused, faults } in &found.sizes {
        let verdict = match (faults.is_empty(), is_refused) {
            (false, _) => "**not as it should**",
            (true, true) => "refused, with the bound",
            (true, false) => "done",
        };
        let (took, cpu) = (took.as_secs_f64(), ended.cpu.as_secs_f64());
        let memory = ended.memory >> 20;
        writeln!(page, "| {what} | {took:.2} s | {cpu:.2} s | {memory} MiB | {verdict} |").ok();
    }
    page.push_str(
        "\n## What the tests try\n\nEach of these is a test that `./test` runs, or a fuzz target.\n\n\
         | attack | tests and fuzz targets |\n| --- | --- |\n",
    );
    for (attack, tests) in TESTS {
        let tests: Vec<String> = tests.iter().map(|name| format!("`{name}`")).collect();
        writeln!(page, "| {attack} | {} |", tests.join(", ")).ok();
    }
    page
}

fn mark(faults: &[String]) -> String {
    if faults.is_empty() { "yes".to_owned() } else { format!("**no**: {}", faults.join("; ")) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn sources(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !["node_modules", "target", "corpus"].contains(&name) {
                sources(&path, text);
            } else if name.ends_with(".rs") {
                text.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }

    #[test]
    fn every_test_that_is_named_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut text = String::new();
        sources(&root.join("crates"), &mut text);
        for (attack, tests) in TESTS {
            for name in tests {
                let is_test = text.contains(&format!("fn {name}("));
                let target = root.join(format!("fuzz/fuzz_targets/{name}.rs"));
                assert!(is_test || target.is_file(), "{attack}: there is no {name}");
            }
        }
    }
}
