//! The load of a variant, checked: what is sent, and when.

use dnslab_load::Mode;
use dnslab_traffic::{Pace, Rate, Selection, TypeMix};
use dnslab_wire::Transport;

use super::settings::{Exclusive, Settings};
use super::{Check, LoadSettings, Queries};
use crate::error::Problem;

/// Window of each client of a closed loop when none is written: a client that waits for its answer.
const DEFAULT_OUTSTANDING: u32 = 1;

impl Check<'_> {
    /// The load of a variant.
    pub(super) fn load(&mut self, settings: &mut Settings) -> LoadSettings {
        let transport = settings.text("load.transport").and_then(|text| text.parse().ok());
        let transport = transport.unwrap_or(Transport::Udp);
        if !settings.is_broken("load.transport") {
            self.note_fits(settings, transport);
        }
        let clients = settings.count("load.clients").unwrap_or(1);
        let behaviour = self.behaviour(settings, transport);
        let mode = self.mode(settings);
        self.streams_of_knot(settings, transport, &mode, &behaviour);
        let selection = match settings.text("load.selection").as_deref() {
            Some("uniform") => Selection::Uniform,
            _ => Selection::InOrder,
        };
        LoadSettings {
            transport,
            clients,
            mode,
            duration: settings.duration("load.duration"),
            most_queries: settings.large_count("load.queries_in_all"),
            warm_up: settings.duration("load.warm_up"),
            timeout: settings.duration("load.timeout"),
            workers: self.workers(settings, clients),
            cpus: settings.cpus("load.cpus"),
            queries: self.queries(settings),
            selection,
            options: self.query_options(settings, transport),
            horizon: settings.duration("load.horizon"),
            quickack: self.quickack(settings, transport, &behaviour),
            behaviour,
            sources: self.parsed(settings, "load.sources"),
            tls: self.tls(settings, transport),
            http: self.http(settings, transport),
            cookies: settings.is_true("load.cookies"),
            subnets: self.subnets(settings),
            tsig: self.tsig(settings),
            receive_time: self.receive_time(settings, transport),
        }
    }

    /// Closed or open loop.
    fn mode(&mut self, settings: &mut Settings) -> Mode {
        let has_rate = settings.place("load.rate").is_some();
        let exclusive = settings.exclusive("load.outstanding", "load.rate");
        let outstanding = settings.count("load.outstanding").unwrap_or(DEFAULT_OUTSTANDING);
        if let Exclusive::Both(window, rate) = &exclusive {
            let message = "`load.outstanding` and `load.rate` exclude each other";
            let problem = Problem::new(message, rate.mark("open loop"))
                .with(window.mark("closed loop"))
                .help(
                    "keep `outstanding` to send when an answer comes, or `rate` to send by the \
                     clock",
                );
            self.problems.push(problem);
        }
        if matches!(exclusive, Exclusive::Second | Exclusive::Both(..)) {
            let pace = match settings.text("load.pace").as_deref() {
                Some("poisson") => Pace::Poisson,
                _ => Pace::Constant,
            };
            return Mode::Open { rate: settings.rate("load.rate").unwrap_or(ANY_RATE), pace };
        }
        if has_rate {
            // The pace belongs to the rate that another layer displaced.
            settings.forget("load.pace");
        } else if let Some(pace) = settings.place("load.pace") {
            let message = "`load.pace` needs `load.rate`: a closed loop has no pace";
            self.problems.push(
                Problem::new(message, pace.mark("no rate to pace"))
                    .help("add for example `load.rate = 50_000`, or remove `load.pace`"),
            );
        }
        Mode::Closed { outstanding }
    }

    /// Worker threads: at most one per client, and one for each CPU that they are pinned to.
    fn workers(&mut self, settings: &Settings, clients: u32) -> Option<u32> {
        let paths = ["load.workers", "load.cpus", "load.clients"];
        let workers = settings.count("load.workers");
        let cpus = u32::try_from(settings.cpus("load.cpus").len()).unwrap_or(u32::MAX);
        let wanted = workers.or((cpus > 0).then_some(cpus));
        if paths.iter().any(|path| settings.is_broken(path)) {
            return wanted;
        }
        let [at_workers, at_cpus, at_clients] = paths.map(|path| settings.place(path));
        if let (Some(count), Some(place), Some(pinned)) = (workers, at_workers, at_cpus)
            && cpus > 0
            && cpus != count
        {
            let message = format!("{count} workers cannot be pinned to {cpus} CPUs, one for each");
            let problem = Problem::new(message, pinned.mark("the CPUs"))
                .with(place.mark("the workers"))
                .help("remove `load.workers`, or name one CPU for each");
            self.problems.push(problem);
        } else if let Some(count) = wanted
            && count > clients
            && let Some(place) = at_workers.or(at_cpus)
        {
            let message = format!("{count} workers for {clients} clients: some would have none");
            let problem = Problem::new(message, place.mark("the workers"))
                .help(format!("take at least {count} clients, or at most {clients} workers"));
            self.problems.push(match at_clients {
                Some(place) => problem.with(place.mark("the clients")),
                None => problem,
            });
        }
        wanted
    }

    /// What is asked: a file has types of its own.
    fn queries(&mut self, settings: &mut Settings) -> Queries {
        if let Exclusive::Both(file, names) =
            settings.exclusive("load.queries", "load.popular_names")
        {
            let message = "`load.queries` and `load.popular_names` exclude each other";
            let problem = Problem::new(message, names.mark("made-up names"));
            self.problems.push(problem.with(file.mark("a query file")).help("remove one of them"));
        }
        let file = self.file(settings, "load.queries", "query file");
        let types: Option<TypeMix> = self.parsed(settings, "load.types");
        match (file, settings.place("load.queries"), settings.place("load.types")) {
            (Some(file), Some(queries), Some(types)) => {
                let message = "`load.types` is for the names of the zone: a query file names the \
                               type of each query";
                self.problems.push(
                    Problem::new(message, types.mark("types"))
                        .with(queries.mark("a query file"))
                        .help("remove one of them"),
                );
                Queries::File(file)
            }
            (Some(file), ..) => Queries::File(file),
            (None, _, types_at) if let Some(count) = settings.count("load.popular_names") => {
                if let Some(place) = types_at {
                    let message = "`load.types` is for the names of the zone: popular names are asked \
                                   for their addresses, type A";
                    let problem = Problem::new(message, place.mark("types"));
                    self.problems.push(problem.help("remove it"));
                }
                Queries::Popular(count)
            }
            (None, ..) => Queries::Zone(types.unwrap_or_default()),
        }
    }
}

/// Stands in for a rate that is wrong.
const ANY_RATE: Rate = Rate::Constant(1.0);
