//! The load of a variant, checked.

use dnslab_load::Mode;
use dnslab_traffic::{Pace, Selection};
use dnslab_wire::{Edns, QueryOptions, Transport};

use super::settings::{Exclusive, Settings};
use super::{Check, LoadSettings, Queries};
use crate::error::Problem;

/// Window of a closed loop when none is written: what dnsperf keeps outstanding.
const DEFAULT_OUTSTANDING: u32 = 100;

/// UDP payload size when only the DO bit is asked for, octets: the largest that crosses nearly
/// every path unfragmented (DNS flag day 2020).
const DEFAULT_PAYLOAD: u16 = 1232;

impl Check<'_> {
    /// The load of a variant.
    pub(super) fn load(&mut self, settings: &mut Settings) -> LoadSettings {
        let transport = settings.text("load.transport").and_then(|text| text.parse().ok());
        let clients = settings.count("load.clients").unwrap_or(1);
        let selection = match settings.text("load.selection").as_deref() {
            Some("uniform") => Selection::Uniform,
            _ => Selection::InOrder,
        };
        let file = self.file(settings, "load.queries", "query file");
        LoadSettings {
            transport: transport.unwrap_or(Transport::Udp),
            clients,
            mode: self.mode(settings),
            duration: settings.duration("load.duration"),
            warm_up: settings.duration("load.warm_up"),
            timeout: settings.duration("load.timeout"),
            workers: self.workers(settings, clients),
            cpus: settings.cpus("load.cpus"),
            queries: file.map_or(Queries::Zone, Queries::File),
            selection,
            options: options(settings),
            horizon: settings.duration("load.horizon"),
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
            return Mode::Open { rate_qps: settings.number("load.rate").unwrap_or(1.0), pace };
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
}

/// Flags and EDNS of the queries. The DO bit lives in the OPT record (RFC 3225), so that asking
/// for it asks for one.
fn options(settings: &Settings) -> QueryOptions {
    let dnssec_ok = settings.is_true("load.dnssec_ok");
    let payload_size = settings.port("load.edns_payload");
    let edns = (dnssec_ok || payload_size.is_some())
        .then(|| Edns { payload_size: payload_size.unwrap_or(DEFAULT_PAYLOAD), dnssec_ok });
    QueryOptions { recursion_desired: settings.is_true("load.recursion_desired"), edns }
}
