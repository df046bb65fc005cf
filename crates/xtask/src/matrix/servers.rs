//! The servers that dnslab starts, each over every transport of the installed version.

use std::time::Duration;

use anyhow::Result;
use dnslab_analysis::Agreement;
use dnslab_lab::ServerKind;
use dnslab_record::{RunRecord, RunStatus};
use dnslab_report::invalid_text;
use dnslab_results::ResultsDirectory;
use dnslab_wire::Transport;

use super::room::{Room, Window};
use super::table::{Cell, Counts, Row};
use crate::process::{Finished, run};
use crate::versus::dnslab::only_folder;

/// Time to start and stop the servers of all transports.
const SLACK: Duration = Duration::from_secs(240);

/// Why dnsmasq loses queries over TCP (`TCP_MAX_QUERIES` in its config.h).
const DNSMASQ_OVER_TCP: &str = "it has a process for each connection, which ends after 100 queries with what is \
                                outstanding";

/// Why servers lose queries over UDP, and so do those that forward over UDP. The kernel books some 1,024
/// octets for a small query, and a socket has 212,992 (`net.core.rmem_default`) unless its server asks for
/// more.
const FULL_BUFFER: &str = "a socket buffer of 212,992 octets holds some 200 queries; what is not answered was \
                           not counted";

/// Why Knot loses queries over QUIC with that buffer, and not with one of 8 MiB. It then no longer answers a
/// new connection, whatever its client sends again.
const FULL_BUFFER_OF_QUIC: &str = "a socket buffer of 212,992 octets holds some 200 packets, and a new connection of \
                                   which it drops some is not answered";

/// Queries outstanding together that the buffer of a socket may not hold.
const BUFFERED: u32 = 200;

/// Why this server is not asked over this transport by so many clients; `None` if it takes them.
fn too_many(
    name: &str,
    transport: Transport,
    Window { clients, outstanding }: Window,
) -> Option<&'static str> {
    match transport {
        _ if name != ServerKind::Dnsmasq.name() => None,
        // `FTABSIZ` in its config.h, `--dns-forward-max`.
        Transport::Udp if clients * outstanding > 150 => {
            Some("it forwards 150 queries at a time, and answers REFUSED to more")
        }
        // `TCP_BACKLOG` in its config.h.
        Transport::Tcp if clients > 32 => Some(
            "32 connections may wait until it has forked a process for each: of more clients, some have to wait \
                  for seconds",
        ),
        _ => None,
    }
}

/// Why this server loses queries over this transport with so many outstanding; `None` if it should not.
fn loses(name: &str, transport: Transport, together: u32) -> Option<&'static str> {
    let is = |kind: ServerKind| name == kind.name();
    match transport {
        Transport::Tcp if is(ServerKind::Dnsmasq) => Some(DNSMASQ_OVER_TCP),
        Transport::Udp if !is(ServerKind::Embedded) && together > BUFFERED => Some(FULL_BUFFER),
        Transport::Doq if name.starts_with(ServerKind::Knot.name()) && together > BUFFERED => {
            Some(FULL_BUFFER_OF_QUIC)
        }
        _ if is(ServerKind::Dnsdist) && together > BUFFERED => Some(FULL_BUFFER),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    kind: ServerKind,
    /// The root folder that it runs in; `None` for the installed server.
    root: Option<&'static str>,
}

/// Servers of other releases.
const ROOTS: [Subject; 3] = [
    Subject { kind: ServerKind::Bind, root: Some("bind-9.16") },
    Subject { kind: ServerKind::Bind, root: Some("bind-9.20") },
    Subject { kind: ServerKind::Knot, root: Some("knot-3.4") },
];

/// Every kind of server as it is installed, each with its other releases: those with a zone, and those that forward to
/// `dnslab serve`.
pub(super) fn subjects() -> Vec<Subject> {
    let of_kind = |kind: ServerKind| {
        let roots = ROOTS.into_iter().filter(move |subject| subject.kind == kind);
        std::iter::once(Subject { kind, root: None }).chain(roots)
    };
    ServerKind::ALL.into_iter().flat_map(of_kind).collect()
}

impl Subject {
    /// The name of its root folder, or of its kind.
    pub(super) fn name(&self) -> String {
        self.root.unwrap_or(self.kind.name()).to_owned()
    }

    fn keys(&self) -> String {
        let root = self.root.map_or(String::new(), |root| format!("root = \"{root}\"\n"));
        let upstream =
            if self.kind.serves_zones() { "" } else { "[upstream]\nkind = \"embedded\"\n" };
        format!("[server]\nkind = \"{}\"\n{root}{upstream}", self.kind.name())
    }
}

/// Asks a server over all transports, one after the other.
///
/// # Errors
/// When dnslab cannot be started, or its results cannot be read.
pub(super) fn ask(subject: &Subject, window: Window, room: &Room<'_>) -> Result<Vec<Row>> {
    rows(&subject.name(), &subject.keys(), window, room)
}

/// Asks the server with these keys over all transports.
///
/// # Errors
/// When dnslab cannot be started, or its results cannot be read.
pub(super) fn rows(name: &str, keys: &str, window: Window, room: &Room<'_>) -> Result<Vec<Row>> {
    let Window { clients, outstanding } = window;
    let [duration, warm_up] = [room.duration, room.warm_up].map(|length| length.as_millis());
    let mut file = format!(
        "name = \"matrix\"\nquestion = \"Does every server answer over every transport?\"\n\
         {keys}[load]\nclients = {clients}\noutstanding = {outstanding}\n\
         duration = \"{duration}ms\"\nwarm_up = \"{warm_up}ms\"\ntimeout = \"2s\"\n\
         [repeat]\nruns = 1\nalternate = \"runs\"\n"
    );
    for transport in Transport::ALL {
        file += &format!("[[variant]]\nname = \"{transport}\"\nload.transport = \"{transport}\"\n");
    }
    let (finished, results) = experiment(&file, room)?;
    let row = |server: &str, transport, cell| {
        let loses = loses(name, transport, clients * outstanding);
        let (server, window) = (server.to_owned(), (clients, outstanding));
        Row { server, transport, window, loses, cell }
    };
    let Some(results) = results else {
        // No transport could run, or the first of them could not.
        let why = Cell::Failed(finished.tail());
        return Ok(vec![row(name, Transport::Udp, why)]);
    };
    let session = results.session()?;
    let records = results.runs()?;
    let version = records.first().map_or("", |record| record.server.version.as_str());
    let server = format!("{name} {}", version.split(['-', ' ', '+']).next().unwrap_or_default());
    let found = Transport::ALL.into_iter().map(|transport| {
        let is_over = |variant: &str| variant == transport.name();
        let skipped = session.skipped.iter().find(|skipped| is_over(&skipped.variant));
        let too_many = too_many(name, transport, window);
        let cell = match (records.iter().find(|record| is_over(&record.variant)), skipped, too_many)
        {
            (Some(_), _, Some(why)) => Cell::NotServed(why.to_owned()),
            (Some(record), _, None) => cell(record),
            (None, Some(skipped), _) => Cell::NotServed(skipped.reason.clone()),
            (None, None, _) => Cell::Failed(finished.tail()),
        };
        row(server.trim(), transport, cell)
    });
    Ok(found.collect())
}

/// Returns what dnslab wrote, and its results if there are any.
fn experiment(file: &str, room: &Room<'_>) -> Result<(Finished, Option<ResultsDirectory>)> {
    let (mut command, results) = room.dnslab.experiment(file, room.folder)?;
    let finished = run(&mut command, room.folder, SLACK, room.stop)?;
    let directory = only_folder(&results).map(|path| ResultsDirectory::open(&path)).transpose()?;
    Ok((finished, directory))
}

fn cell(record: &RunRecord) -> Cell {
    let measured = match (&record.status, &record.measured) {
        (RunStatus::Failed { reason, .. }, _) => return Cell::Failed(reason.clone()),
        (RunStatus::Invalid { reason }, _) => return Cell::Failed(invalid_text(reason)),
        (RunStatus::Valid, None) => return Cell::Failed("nothing was measured".to_owned()),
        (RunStatus::Valid, Some(measured)) => measured,
    };
    let both = [&measured.warm_up, &measured.counters];
    let sum = |count: fn(&dnslab_figures::Counters) -> u64| both.into_iter().map(count).sum();
    Cell::Asked(Counts {
        sent: sum(|counters| counters.sent),
        answered: sum(|counters| counters.outcomes.answered),
        lost: sum(|counters| counters.outcomes.lost()),
        wrong: sum(|counters| {
            counters.answers.wrong + counters.answers.malformed + counters.answers.bad_signature
        }),
        counted: record
            .observation()
            .and_then(|run| Agreement::of(&run))
            .map(|agreement| agreement.counted),
    })
}
