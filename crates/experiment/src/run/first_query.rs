//! The first query to a server that runs already, as the clients of the load send it. It shows what is wrong with the
//! server, its certificate or the queries before the first run.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dnslab_agent::{Agents, Link};
use dnslab_load::{AskError, Asker, Endpoint, Job};
use dnslab_settings::{Host, RightCodes, Variant};
use dnslab_traffic::Truncated;
use dnslab_wire::{Query, QueryOptions, Response, ResponseOptions, Transport, check_answer, rcode};

use super::error::{FirstQueryError, WrongAnswer};
use super::queries::Asked;
use super::validity::expected;
use super::ways::Ways;

/// Tries of a query over UDP, where a datagram may be lost, and of a query that failed as if the server was
/// starting.
const TRIES: u32 = 3;

/// Time between two tries on a server that may be starting.
const PAUSE: Duration = Duration::from_millis(500);

/// Queries of the list that are tried while answers are wrong: a list may begin with a name that does not
/// exist.
const QUERIES: u32 = 10;

/// Unanswered queries after which the server counts as silent. One may be for a name whose own servers are
/// silent.
const SILENT: usize = 3;

/// Asks the servers of a variant that run already the first queries of its load, over each of its transports. If
/// clients know further servers, one that answers is enough. Servers that are started for a run are not asked: they
/// were ready when they answered rightly.
///
/// A wrong answer is no error if the load accepts any.
///
/// # Errors
/// When there is no answer, or only wrong ones to several queries of the load.
pub(super) fn ask_first(
    variant: &Variant,
    asked: &Asked,
    agents: &Agents,
) -> Result<(), FirstQueryError> {
    let Some(ways) = Ways::to_running(variant)? else { return Ok(()) };
    let job = ways.job(variant, asked)?;
    for from in from(variant, agents)? {
        let asking = Asking { job: &job, from: &from };
        for transport in variant.load.transports() {
            let ask = |server| First { variant, asking, transport, server }.ask();
            let first = ask(0);
            if first.is_err() && !(1..ways.servers()).any(|further| ask(further).is_ok()) {
                return first;
            }
        }
    }
    Ok(())
}

/// Another address of the server's name that answers the first query of the load, where the first one gave no answer.
pub(super) fn answering_address(
    variant: &Variant,
    error: &FirstQueryError,
    asked: &Asked,
    agents: &Agents,
) -> Option<IpAddr> {
    let FirstQueryError::Ask(error) = error else { return None };
    if !error.is_of_exchange() {
        return None;
    }
    let name = variant.host_name.as_deref()?;
    let first = variant.server.address.ip();
    // Those of the sources' family, since the others were checked against it.
    let may_be = |address: &IpAddr| {
        let sources = variant.load.sources.as_ref();
        sources.is_none_or(|sources| sources.is_ipv4() == address.is_ipv4()) && *address != first
    };
    let others = (name, 0).to_socket_addrs().ok()?.map(|address| address.ip()).filter(may_be);
    others.into_iter().find(|other| {
        let mut variant = variant.clone();
        variant.server.address.host = Host::Address(*other);
        ask_first(&variant, asked, agents).is_ok()
    })
}

/// Those who ask: the hosts of the load.
fn from(variant: &Variant, agents: &Agents) -> Result<Vec<Arc<Link>>, AskError> {
    let Some(hosts) = &variant.load.hosts else { return Ok(vec![Arc::clone(agents.own())]) };
    let links = hosts.0.iter().map(|host| {
        let link = agents.link(host);
        link.map_err(|error| AskError::not_asked(host.name.clone(), error.to_string()))
    });
    links.collect()
}

/// A load whose queries are asked one by one.
#[derive(Clone, Copy)]
struct Asking<'a> {
    job: &'a Job,
    /// The host that asks.
    from: &'a Link,
}

/// The first queries of a load to one of its servers over one of its transports.
struct First<'a> {
    variant: &'a Variant,
    asking: Asking<'a>,
    transport: Transport,
    server: u8,
}

impl First<'_> {
    fn ask(&self) -> Result<(), FirstQueryError> {
        let variant = self.variant;
        // What clients with queries of their own may be told is not known.
        let any_will_do = variant.expect.wrong_limit >= 1.0
            || variant.right_codes() == RightCodes::Any
            || variant.load.mode.is_played();
        let places = places(self.asking.job);
        let mut first = None;
        let mut pauses = 1..TRIES;
        let mut silence = Silence::default();
        for (client, place) in (0..).zip(&places) {
            let query = self.asking.job.queries.get(*place);
            let asker = self.asker(client);
            let found = loop {
                let answer = silence.ask(self.asking, asker, query);
                let found = answer.map(|answer| answer.map(|answer| wrong(variant, &answer)));
                if !is_transient(&found) || pauses.next().is_none() {
                    break found?;
                }
                thread::sleep(PAUSE);
            };
            match found {
                Some(Some(found)) if !any_will_do => {
                    first.get_or_insert_with(|| {
                        (query.to_string(), self.explained(found, asker, query))
                    });
                }
                None => {}
                Some(_) => return Ok(()),
            }
        }
        silence.ends()?;
        let Some((query, found)) = first else { return Ok(()) };
        let right = expected(variant);
        let record = if right.answers > 0 { " and a record" } else { "" };
        Err(FirstQueryError::Wrong {
            target: target(self.asking.job, self.asker(0)),
            transport: self.transport,
            query,
            found,
            expected: format!("{}{record}", right.codes),
            asked: places.len(),
        })
    }

    fn asker(&self, number: u32) -> Asker {
        let clients = self.asking.job.settings.clients.max(1);
        Asker { client: number % clients, transport: self.transport, server: self.server }
    }

    /// A wrong code, by its reason if that is the OPT record of the query: without it the answer is right.
    fn explained(&self, found: WrongAnswer, asker: Asker, query: &Query) -> WrongAnswer {
        let WrongAnswer::Code(code @ (rcode::FORMERR | rcode::NOTIMP | rcode::BADVERS)) = found
        else {
            return found;
        };
        let job = self.asking.job.clone().with(|load| {
            load.cookies = false;
            load.client_subnets = None;
            load.padding = 0;
        });
        let recursion_desired = query.octets()[2] & 1 != 0;
        let options = QueryOptions { recursion_desired, edns: None };
        let plain = Query::new(&query.name(), query.rtype(), &options);
        let asking = Asking { job: &job, ..self.asking };
        let answer = plain.ok().and_then(|plain| answer(asking, asker, &plain, 1).ok());
        let is_right = answer.is_some_and(|answer| wrong(self.variant, &answer).is_none());
        if is_right { WrongAnswer::Edns(code) } else { found }
    }
}

/// Where queries of this asker go.
fn target(job: &Job, asker: Asker) -> SocketAddr {
    let is_asked = |(transport, _): &(Transport, SocketAddr)| *transport == asker.transport;
    let way = |endpoint: &Endpoint| (endpoint.transport, endpoint.target);
    let known = match usize::from(asker.server).checked_sub(1) {
        None => job.others.iter().map(way).find(is_asked),
        Some(place) => job.further.get(place).into_iter().flatten().map(way).find(is_asked),
    };
    known.map_or(job.target, |(_, target)| target)
}

/// Checks that a server of a load answers some query of it over its first transport, whatever the answer.
///
/// # Errors
/// When it does not answer.
pub(super) fn is_answered(
    (job, variant): (&Job, &Variant),
    server: u8,
    agents: &Agents,
) -> Result<(), AskError> {
    for from in from(variant, agents)? {
        is_answered_to(Asking { job, from: &from }, server)?;
    }
    Ok(())
}

fn is_answered_to(asking: Asking<'_>, server: u8) -> Result<(), AskError> {
    let job = asking.job;
    let mut silence = Silence::default();
    for (number, place) in (0..).zip(places(job)) {
        let client = number % job.settings.clients.max(1);
        let asker = Asker { client, transport: job.settings.transport, server };
        if silence.ask(asking, asker, job.queries.get(place))?.is_some() {
            return Ok(());
        }
    }
    silence.ends()
}

/// The queries that are asked, spread over the list.
fn places(job: &Job) -> Vec<u32> {
    let queries = u64::from(job.queries.len());
    let spread = |number: u32| u64::from(number) * queries / u64::from(QUERIES);
    let mut places: Vec<u32> =
        (0..QUERIES).filter_map(|number| u32::try_from(spread(number)).ok()).collect();
    places.dedup();
    places
}

/// The queries that a server has left unanswered.
#[derive(Default)]
struct Silence {
    queries: usize,
    first: Option<AskError>,
}

impl Silence {
    /// The answer to a query; `None` for the first unanswered queries.
    ///
    /// # Errors
    /// When the query fails in another way, or too many queries had no answer.
    fn ask(
        &mut self,
        asking: Asking<'_>,
        asker: Asker,
        query: &Query,
    ) -> Result<Option<Vec<u8>>, AskError> {
        let tries = if self.first.is_none() { TRIES } else { 1 };
        match answer(asking, asker, query, tries) {
            Ok(answer) => {
                self.first = None;
                Ok(Some(answer))
            }
            Err(error) if error.is_silence() => {
                self.queries += 1;
                let first = self.first.take().unwrap_or(error);
                if self.queries >= SILENT {
                    return Err(first);
                }
                self.first = Some(first);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// # Errors
    /// When no query had an answer.
    fn ends(self) -> Result<(), AskError> {
        self.first.map_or(Ok(()), Err)
    }
}

/// Whether this may change in a moment, as [`AskError::is_transient`] says. A
/// recursive resolver that cannot reach its servers yet answers SERVFAIL (RFC 9520, section 2). A
/// certificate, a refusal or a missing name will not change.
fn is_transient(found: &Result<Option<Option<WrongAnswer>>, AskError>) -> bool {
    match found {
        Ok(wrong) => *wrong == Some(Some(WrongAnswer::Code(rcode::SERVFAIL))),
        Err(error) => error.is_transient(),
    }
}

/// Over UDP the query is sent up to `max_tries` times. A truncated answer is asked for over TCP if the clients of the
/// load do so.
fn answer(
    asking: Asking<'_>,
    asker: Asker,
    query: &Query,
    max_tries: u32,
) -> Result<Vec<u8>, AskError> {
    let job = asking.job;
    let timeout = job.settings.timeout.max(Duration::from_millis(100));
    let is_truncated =
        |octets: &Vec<u8>| Response::parse(octets).is_ok_and(|response| response.truncated);
    let is_udp = asker.transport == Transport::Udp;
    let mut tries = 1;
    loop {
        match asking.from.ask(job, asker, query, timeout) {
            Err(error) if error.is_silence() && is_udp && tries < max_tries => tries += 1,
            Ok(octets)
                if is_udp
                    && job.settings.truncated == Truncated::AskOverTcp
                    && is_truncated(&octets) =>
            {
                let over_tcp = Asker { transport: Transport::Tcp, ..asker };
                return asking.from.ask(job, over_tcp, query, timeout);
            }
            result => return result,
        }
    }
}

/// What a wrong answer is instead. `None` for a right answer, for a truncated one, and for one that asks for
/// a cookie (RFC 7873, section 5.2.3).
fn wrong(variant: &Variant, answer: &[u8]) -> Option<WrongAnswer> {
    let response = match Response::parse(answer) {
        Ok(response) => response,
        Err(fault) => return Some(WrongAnswer::Fault(fault.into())),
    };
    let options = ResponseOptions::read(answer);
    let rcode = options.map_or(u16::from(response.rcode), |options| options.rcode);
    if response.truncated || rcode == rcode::BADCOOKIE {
        return None;
    }
    let right = expected(variant);
    if !right.codes.has(rcode) {
        return Some(WrongAnswer::Code(rcode));
    }
    if response.answers < right.answers {
        return Some(WrongAnswer::NoRecord(rcode));
    }
    check_answer(answer).err().map(WrongAnswer::Fault)
}
