//! How fast a population is played and profiled on one core, and what a client takes in memory:
//! `cargo run --release -p dnslab-traffic --example population [CLIENTS [QUERIES_PER_SECOND [SECONDS]]]`

use std::time::{Duration, Instant};

use dnslab_traffic::SyntheticZone;
use dnslab_traffic::population::{Population, PopulationLoad, Profiler, ProfilerLimits, ZoneNames};
use dnslab_wire::Transport;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |at: usize, default: f64| {
        std::env::args().nth(at).map_or(Ok(default), |text| text.parse::<f64>())
    };
    let (clients, rate_qps, seconds) =
        (argument(1, 1_000_000.0)? as u32, argument(2, 100_000.0)?, argument(3, 30.0)?);
    let population = Population { clients, rate_qps, ..Population::typical() };
    let zone = SyntheticZone::named("example.", 1_000_000, Duration::from_secs(1))?;
    let load = PopulationLoad::of(&population, Duration::from_secs_f64(seconds), 1);
    println!("{population}\n");

    let names = ZoneNames::new(&zone)?;
    let (begin, mut queries) = (Instant::now(), None);
    let memory = allocation_counter::measure(|| queries = Some(population.queries(&load, names)));
    let queries = queries.expect("they were made");
    println!(
        "begin    {:.2?}, {:.1} octets for each client",
        begin.elapsed(),
        memory.bytes_current as f64 / f64::from(clients)
    );

    let begin = Instant::now();
    let (mut count, mut octets) = (0_u64, 0);
    for sent in queries.clone() {
        count += 1;
        octets += sent.query.octets().len();
    }
    let per_second = count as f64 / begin.elapsed().as_secs_f64();
    println!(
        "play     {count} queries, {octets} octets, {:.2} million queries per second",
        per_second / 1e6
    );

    let sent: Vec<_> = queries.take(2_000_000).collect();
    let begin = Instant::now();
    let mut profiler = Profiler::new(ProfilerLimits::default());
    let memory = allocation_counter::measure(|| {
        for (id, sent) in (0_u64..).zip(&sent) {
            let mut message = sent.query.octets().to_vec();
            message[..2].copy_from_slice(&(id as u16).to_be_bytes());
            profiler.observe(sent.due_ns, sent.client, &message, Transport::Udp);
        }
    });
    let per_second = sent.len() as f64 / begin.elapsed().as_secs_f64();
    let taken = memory.bytes_current as f64 / 1e6;
    println!("profile  {:.2} million queries per second, {taken:.0} MB", per_second / 1e6);
    let begin = Instant::now();
    let profile = profiler.finish()?;
    println!("fit      {:.2?}\n\n{}", begin.elapsed(), profile.population);
    for note in &profile.notes {
        println!("{note}");
    }
    Ok(())
}
