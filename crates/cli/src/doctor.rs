//! `dnslab doctor`: what would spoil a measurement on this machine, and whether its latencies can be trusted.

use anyhow::Context as _;
use dnslab_experiment::{CalibrationCheck, calibrate};
use dnslab_lab::doctor::{Diagnosis, Severity, examine};

use crate::arguments::Doctor;
use crate::exit::{Exit, Failure};
use crate::run::guard;

pub(crate) fn doctor(arguments: &Doctor) -> Result<Exit, Failure> {
    for finding in examine(&crate::run::guard()) {
        show(&finding);
    }
    if !arguments.calibrate {
        return Ok(Exit::Fine);
    }
    say!(
        "\ncalibration: what the responder was programmed to do must be measured; less than three minutes"
    );
    let folder = tempfile::Builder::new()
        .prefix("dnslab-calibration-")
        .tempdir()
        .context("cannot make a folder for the responder's files")?;
    let calibration = calibrate(&guard(), folder.path(), &mut show_check)?;
    if calibration.passed() {
        say!("calibration passed");
        return Ok(Exit::Fine);
    }
    say!("calibration failed: do not trust latencies measured on this machine as it is now");
    Ok(Exit::Invalid)
}

fn show(finding: &Diagnosis) {
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

fn show_check(check: &CalibrationCheck) {
    let mark = if check.passed { "true" } else { "OFF " };
    let CalibrationCheck { name, expected, measured, allowed, .. } = check;
    say!("{mark}  {name}: {measured}, expected {expected}, allowed {allowed}");
}
