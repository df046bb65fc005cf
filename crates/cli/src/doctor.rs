//! `dnslab doctor`: what would spoil a measurement here, and whether the ruler is true.

use anyhow::Context as _;
use dnslab_experiment::{RulerCheck, calibrate};
use dnslab_lab::doctor::{Finding, Severity, examine};

use crate::arguments::Doctor;
use crate::exit::{Exit, Failure};
use crate::run::guard;

/// Examines the machine, and with `--calibrate` the ruler.
pub(crate) fn doctor(arguments: &Doctor) -> Result<Exit, Failure> {
    for finding in examine() {
        show(&finding);
    }
    if !arguments.calibrate {
        return Ok(Exit::Fine);
    }
    say!(
        "\nthe ruler: what the responder plays must come out as it went in; less than three minutes"
    );
    let folder = tempfile::Builder::new()
        .prefix("dnslab-ruler-")
        .tempdir()
        .context("cannot make a folder for the responder's files")?;
    let calibration = calibrate(&guard(), folder.path(), &mut show_check)?;
    if calibration.passed() {
        say!("the ruler is true");
        return Ok(Exit::Fine);
    }
    say!("the ruler is off: do not trust latencies measured on this machine as it is now");
    Ok(Exit::Invalid)
}

fn show(finding: &Finding) {
    let mark = match finding.severity {
        Severity::Good => "good  ",
        Severity::Note => "note  ",
        Severity::Spoils => "SPOILS",
    };
    say!("{mark}  {}: {}", finding.subject, finding.found);
    if finding.severity != Severity::Good {
        say!("        why:    {}", finding.why);
        say!("        remedy: {}", finding.remedy);
    }
}

fn show_check(check: &RulerCheck) {
    let mark = if check.passed { "true" } else { "OFF " };
    let RulerCheck { name, expected, measured, allowed, .. } = check;
    say!("{mark}  {name}: {measured}, expected {expected}, allowed {allowed}");
}
