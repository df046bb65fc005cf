//! What one core of each generator carries over each transport, with `dnslab serve` on the other core.
//! dnsperf has no QUIC.

use anyhow::{Context as _, Result};
use dnslab_wire::Transport;

use crate::arguments::Work;
use crate::versus::Outcome;
use crate::versus::bench::{Bench, Program, answered, figures, limits, median_of};
use crate::versus::figures::Ratio;
use crate::versus::sample::{Load, Mode, Sample};
use crate::versus::server;
use crate::versus::table::GeneratorRow;

const CLIENTS: u32 = 100;
/// Outstanding queries of each client: alone on its connection, and with others.
const OUTSTANDING: [u32; 2] = [1, 10];

/// A peer puts queries that it sends together into one TLS record, so dnslab is measured both ways.
pub(crate) fn generator(bench: &Bench<'_>) -> Result<Outcome> {
    let listens: Vec<_> = [Transport::Dot, Transport::Doh2, Transport::Doq, Transport::Doh3]
        .into_iter()
        .filter_map(|transport| {
            bench.dnslab.listen_option(transport).map(|option| (transport, option))
        })
        .collect();
    let path = &bench.dnslab.path;
    let mut server =
        server::responder(&bench.folder, &bench.zone, bench.server_cpu, path, &listens)?;
    bench.await_ready(&mut server, &Transport::ALL)?;
    let windows = if bench.options.smoke { &OUTSTANDING[1..] } else { &OUTSTANDING[..] };
    let mut outcome = Outcome::default();
    for transport in Transport::ALL {
        for outstanding in windows {
            let mode = Mode::Window(CLIENTS * outstanding);
            let load = server.load(Work::Generator, transport, CLIENTS, mode);
            let programs = if transport.is_quic() { bench.own() } else { bench.programs()? };
            measure(bench, &load, &programs, &mut outcome)?;
            if transport == Transport::Dot && *outstanding > 1 {
                let load = Load { shared_records: true, ..load };
                measure(bench, &load, &bench.programs()?, &mut outcome)?;
            }
        }
    }
    Ok(outcome)
}

fn measure(
    bench: &Bench<'_>,
    load: &Load<'_>,
    programs: &[Program<'_>],
    outcome: &mut Outcome,
) -> Result<()> {
    let samples = bench.alternate(std::slice::from_ref(load), programs, None)?;
    for program in programs {
        outcome.generators.push(row(&samples, load.case(), program.name())?);
    }
    outcome.samples.extend(samples);
    Ok(())
}

/// All rounds of one program.
fn row(samples: &[Sample], case: String, program: &str) -> Result<GeneratorRow> {
    let ratio = (program != "dnslab")
        .then(|| -> Result<Ratio> {
            let ours = figures(samples, &case, "dnslab", answered)?;
            let theirs = figures(samples, &case, program, answered)?;
            Ratio::new(&ours, &theirs).with_context(|| format!("no ratio for {case}"))
        })
        .transpose()?;
    let of_program = samples.iter().filter(|sample| sample.program == program);
    let lost = |sample: &Sample| {
        sample.finding.lost as f64 / (sample.finding.answered + sample.finding.lost) as f64
    };
    Ok(GeneratorRow {
        answered_qps: median_of(samples, &case, program, answered)?,
        // If each answer took it as long in the window as in the whole run.
        busy_share: median_of(samples, &case, program, |sample| {
            Some(sample.finding.answered_qps * sample.cpu_us_per_answer / 1e6)
        })?,
        ratio,
        lost: of_program.map(lost).fold(0.0, f64::max),
        limits: limits(samples, &case, program),
        program: program.to_owned(),
        case,
    })
}
