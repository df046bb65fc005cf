//! `dnslab profile`: the population behind a capture.

use dnslab_experiment::CaptureProfile;
use dnslab_measure::visible;
use dnslab_wire::units::{duration, number, share};

use crate::arguments::Profile;
use crate::exit::{Exit, Failure};
use crate::make;

pub(crate) fn profile(arguments: &Profile) -> Result<Exit, Failure> {
    let Profile { capture, output } = arguments;
    let found = CaptureProfile::find(capture).map_err(Failure::bad_input)?;
    let said = said(&found);
    for line in found.profile.population.summary().iter().chain([&String::new()]).chain(&said) {
        eprintln!("{}", visible(line));
    }
    // What is said here stays with the file. Lines of others cannot end a comment.
    let comments: String = said.iter().map(|line| format!("# {}\n", visible(line))).collect();
    let text = format!("{comments}\n{}", found.profile.population.to_commented_toml());
    make::write_to(output, |output| output.write_all(text.as_bytes()))
}

/// What to know about the profile, in lines.
fn said(found: &CaptureProfile) -> Vec<String> {
    let profile = &found.profile;
    let mut lines = vec![format!(
        "found from {} queries of {} clients in {}; of all queries {} were repetitions, which are left out",
        number::count(profile.queries),
        number::count(profile.clients_seen),
        duration::in_words(profile.length),
        share::rounded(profile.retransmitted_share),
    )];
    lines.extend(profile.notes.iter().map(|note| format!("note: {note}")));
    if !found.left_out.is_empty() {
        lines.push(format!("note: not read: {}", found.left_out));
    }
    lines.extend(
        found.cut.iter().map(|cut| format!("note: the capture was not read to its end: {cut}")),
    );
    lines
}
