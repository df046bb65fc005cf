//! Runs in alternation, and their samples.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use dnslab_wire::Transport;

use super::dnslab::{Dnslab, Length, Room};
use super::dnsperf::Dnsperf;
use super::figures::{Ratio, median};
use super::reflector::Reflector;
use super::sample::{Finding, Load, Mode, Sample};
use super::server::Server;
use super::table::Comparison;
use super::windows::judge;
use super::zone::ZoneFiles;
use crate::arguments::{Options, Work};
use crate::process::Stop;

const ATTEMPTS: u32 = 3;
/// Time for a server until its first right answer.
const READY: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options,
    pub(crate) stop: Stop,
    /// For everything that is written; removed at the end.
    pub(crate) folder: PathBuf,
    pub(crate) zone: ZoneFiles,
    /// CPU of the servers.
    pub(crate) server_cpu: usize,
    /// CPU of the load.
    pub(crate) load_cpu: usize,
    pub(crate) dnslab: Dnslab,
    pub(crate) peers: Vec<Dnsperf>,
    /// Runs that failed and were made again, one sentence each.
    pub(crate) repeated: RefCell<Vec<String>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Program<'a> {
    Dnslab(&'a Dnslab),
    Dnsperf(&'a Dnsperf),
}

impl Program<'_> {
    /// In samples and tables.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Dnslab(_) => "dnslab",
            Self::Dnsperf(peer) => &peer.name,
        }
    }
}

impl Bench<'_> {
    /// dnslab and its peers, in this order.
    ///
    /// # Errors
    /// When there is no peer.
    pub(crate) fn programs(&self) -> Result<Vec<Program<'_>>> {
        if self.peers.is_empty() {
            bail!("there is no dnsperf to measure against (on Debian: apt-get install dnsperf)");
        }
        let peers = self.peers.iter().map(Program::Dnsperf);
        Ok(std::iter::once(Program::Dnslab(&self.dnslab)).chain(peers).collect())
    }

    pub(crate) fn own(&self) -> Vec<Program<'_>> {
        vec![Program::Dnslab(&self.dnslab)]
    }

    pub(crate) fn room(&self) -> Room<'_> {
        Room {
            cpu: self.load_cpu,
            folder: &self.folder,
            queries: &self.zone.queries,
            stop: &self.stop,
        }
    }

    /// Applies every load with every program, as many times as asked for. Programs alternate within a load,
    /// and the order is reversed each time, so that what the machine does to one it does to all. A counting
    /// `reflector` judges the pacing.
    ///
    /// # Errors
    /// When a run fails, or a signal came.
    pub(crate) fn alternate(
        &self,
        loads: &[Load<'_>],
        programs: &[Program<'_>],
        reflector: Option<&Reflector>,
    ) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for round in 1..=self.options.rounds() {
            for load in loads {
                let turned = round % 2 == 0;
                for place in 0..programs.len() {
                    let place = if turned { programs.len() - 1 - place } else { place };
                    let program = programs[place];
                    self.stop.check()?;
                    let sample = self.insist(load, program, round, reflector)?;
                    eprintln!(
                        "{:8} {:34} round {round}: {:14} {:>9.0} qps, {:.2} us CPU/answer",
                        load.work.name(),
                        sample.case,
                        sample.program,
                        sample.finding.answered_qps,
                        sample.cpu_us_per_answer
                    );
                    samples.push(sample);
                }
            }
        }
        Ok(samples)
    }

    /// A failed run is made again, and noted. On a machine that is busy for a moment, a short run over UDP
    /// may lose its whole window and get no answer.
    fn insist(
        &self,
        load: &Load<'_>,
        program: Program<'_>,
        round: u32,
        reflector: Option<&Reflector>,
    ) -> Result<Sample> {
        let mut attempt = 1;
        loop {
            match self.sample(load, program, round, reflector) {
                Err(error) if attempt < ATTEMPTS && !self.stop.is_set() => {
                    attempt += 1;
                    let name = program.name();
                    let what = format!("{}: made a run of {name} again: {error:#}", load.case());
                    eprintln!("{what}");
                    self.repeated.borrow_mut().push(what);
                }
                done => return done,
            }
        }
    }

    fn sample(
        &self,
        load: &Load<'_>,
        program: Program<'_>,
        round: u32,
        reflector: Option<&Reflector>,
    ) -> Result<Sample> {
        let length = Length { duration: self.options.duration(), warm_up: self.options.warm_up() };
        let room = self.room();
        let before = reflector.map(Reflector::counts).transpose()?;
        let (finished, finding) = match program {
            Program::Dnslab(dnslab) => dnslab.load(load, length, &room)?,
            Program::Dnsperf(dnsperf) => dnsperf.load(load, length, &room)?,
        };
        let pacing = match (reflector, before, load.mode) {
            (Some(reflector), Some(before), Mode::Rate(rate)) => {
                let queries_of_ms = reflector.counts()?.since(&before)?;
                let judged = judge(&queries_of_ms, f64::from(rate));
                Some(judged.context("the reflector saw too few queries: raise --seconds")?)
            }
            _ => None,
        };
        let cpu_us = finished.ended.cpu.as_secs_f64() * 1e6;
        Ok(Sample {
            work: load.work,
            case: load.case(),
            program: program.name().to_owned(),
            round,
            cpu_us_per_answer: cpu_us / finding.answered as f64,
            finding,
            pacing,
        })
    }

    /// Waits until a server gives right answers over each of these transports. dnslab asks it, and judges.
    ///
    /// # Errors
    /// When the server ends, or does not answer in time.
    pub(crate) fn await_ready(&self, server: &mut Server, transports: &[Transport]) -> Result<()> {
        let tick = Duration::from_millis(50);
        let length = Length { duration: tick, warm_up: Duration::ZERO };
        let begun = Instant::now();
        for transport in transports {
            loop {
                server.check()?;
                let load = server.load(Work::Streams, *transport, 1, Mode::Window(1));
                match self.dnslab.load(&load, length, &self.room()) {
                    Ok(_) => break,
                    Err(error) if begun.elapsed() > READY => {
                        let context =
                            format!("{} over {}: not ready", server.name, transport.name());
                        return Err(error.context(context));
                    }
                    Err(_) => self.stop.check()?,
                }
                std::thread::sleep(tick);
            }
        }
        Ok(())
    }
}

/// One figure of a case and a program, round by round.
///
/// # Errors
/// When there is none.
pub(crate) fn figures(
    samples: &[Sample],
    case: &str,
    program: &str,
    figure: impl Fn(&Sample) -> Option<f64>,
) -> Result<Vec<f64>> {
    let wanted = samples.iter().filter(|sample| sample.case == case && sample.program == program);
    let found: Option<Vec<f64>> = wanted.map(figure).collect();
    found
        .filter(|values| !values.is_empty())
        .ok_or_else(|| anyhow!("{program} left no such figure for {case}"))
}

/// The most common figure.
pub(crate) fn answered(sample: &Sample) -> Option<f64> {
    Some(sample.finding.answered_qps)
}

/// What held dnslab or a peer back in the rounds of a case, each once.
pub(crate) fn limits(samples: &[Sample], case: &str, program: &str) -> String {
    let of_it = samples.iter().filter(|sample| sample.case == case && sample.program == program);
    let limits: BTreeSet<&str> =
        of_it.filter_map(|sample| sample.finding.limit.as_deref()).collect();
    limits.into_iter().collect::<Vec<_>>().join(", ")
}

/// Compares a named figure of dnslab in the first case with that of `peer` in the second, without an aim.
/// `None` if they have no ratio.
///
/// # Errors
/// When there is none.
pub(crate) fn compare(
    work: Work,
    samples: &[Sample],
    cases: (&str, &str),
    peer: &str,
    (name, figure): (&'static str, fn(&Sample) -> Option<f64>),
) -> Result<Option<Comparison>> {
    let ours = figures(samples, cases.0, "dnslab", figure)?;
    let theirs = figures(samples, cases.1, peer, figure)?;
    let Some(ratio) = Ratio::new(&ours, &theirs) else { return Ok(None) };
    Ok(Some(Comparison {
        work,
        case: cases.0.to_owned(),
        figure: name,
        ours: ("dnslab".to_owned(), median_of(samples, cases.0, "dnslab", figure)?),
        theirs: (peer.to_owned(), median_of(samples, cases.1, peer, figure)?),
        ratio,
        lost: lost(samples, cases, peer)?,
        aim: None,
        beside: None,
    }))
}

/// Shares of the queries without an answer in the worst round: of dnslab in the first case, of `program` in
/// the second.
///
/// # Errors
/// When there is none.
fn lost(samples: &[Sample], cases: (&str, &str), program: &str) -> Result<(f64, f64)> {
    let share = |sample: &Sample| {
        let Finding { answered, lost, .. } = sample.finding;
        Some(lost as f64 / (answered + lost).max(1) as f64)
    };
    let worst = |case, program| -> Result<f64> {
        Ok(figures(samples, case, program, share)?.into_iter().fold(0.0, f64::max))
    };
    Ok((worst(cases.0, "dnslab")?, worst(cases.1, program)?))
}

/// The median of [`figures`].
///
/// # Errors
/// When there is none.
pub(crate) fn median_of(
    samples: &[Sample],
    case: &str,
    program: &str,
    figure: impl Fn(&Sample) -> Option<f64>,
) -> Result<f64> {
    let values = figures(samples, case, program, figure)?;
    median(values).ok_or_else(|| anyhow!("{program} left no such figure for {case}"))
}
