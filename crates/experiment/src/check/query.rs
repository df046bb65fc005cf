//! What queries carry beside their question, checked.

use std::net::IpAddr;

use dnslab_wire::{Edns, EdnsOption, QueryOptions, Transport};

use super::settings::{Exclusive, Settings};
use super::{Check, LoadSettings, ServerSettings, Subnets, Tsig};
use crate::error::Problem;

/// EDNS options that a key of their own sends, by code (IANA DNS EDNS0 Option Codes): given as an
/// option too, they would stand twice in a query.
const OF_KEYS: [(u16, &str); 4] = [
    (8, "load.client_subnets"),
    (10, "load.cookies"),
    (11, "load.keepalive"),
    (12, "load.padding"),
];

impl Check<'_> {
    /// Flags and EDNS of the queries, as they may be sent over the transport. What lives in the OPT
    /// record (RFC 6891) asks for one.
    pub(super) fn query_options(
        &mut self,
        settings: &Settings,
        transport: Transport,
    ) -> QueryOptions {
        let padding = settings.port("load.padding").filter(|block| *block > 0);
        let edns = Edns {
            dnssec_ok: settings.is_true("load.dnssec_ok"),
            options: self.edns_options(settings),
            padding,
            keepalive: settings.is_true("load.keepalive"),
            ..Edns::default()
        };
        let edns = edns.for_transport(transport);
        let payload_size = settings.port("load.edns_payload");
        let is_wanted = payload_size.is_some()
            || edns != Edns::default()
            || settings.is_true("load.cookies")
            || settings.place("load.client_subnets").is_some();
        let payload_size = payload_size.unwrap_or(edns.payload_size);
        QueryOptions {
            recursion_desired: match settings.place("load.recursion_desired") {
                Some(_) => settings.is_true("load.recursion_desired"),
                // Who asks a forwarder wants to know, and not only what it happens to know.
                None => settings.text("upstream.kind").is_some(),
            },
            edns: is_wanted.then_some(Edns { payload_size, ..edns }),
        }
    }

    /// Options that are sent as they are.
    fn edns_options(&mut self, settings: &Settings) -> Vec<EdnsOption> {
        let options = settings.edns_options("load.edns_options");
        for option in &options {
            let twice = OF_KEYS.iter().find(|(code, path)| {
                let is_on = settings.is_true(path) || settings.count(path).is_some_and(|it| it > 0);
                let is_written = settings.place(path).is_some();
                *code == option.code && is_written && (is_on || *path == "load.client_subnets")
            });
            if let (Some((code, path)), Some(place)) = (twice, settings.place("load.edns_options"))
            {
                let message = format!("queries would carry EDNS option {code} twice");
                let problem = Problem::new(message, place.mark("once here"));
                let problem = match settings.place(path) {
                    Some(place) => problem.with(place.mark("and once for this")),
                    None => problem,
                };
                self.problems.push(problem.help(format!("remove the option, or `{path}`")));
            }
        }
        options
    }

    /// The client subnets: written here, or in a file.
    pub(super) fn subnets(&mut self, settings: &Settings) -> Option<Subnets> {
        settings.place("load.client_subnets")?;
        let text = settings.text("load.client_subnets")?;
        // A path may have a `/` too; what stands before the first is an address in a subnet only.
        let before = text.split(['/', ',', ' ']).next().unwrap_or_default();
        if before.parse::<IpAddr>().is_ok() {
            return self.parsed(settings, "load.client_subnets").map(Subnets::Written);
        }
        self.file(settings, "load.client_subnets", "file of client subnets").map(Subnets::File)
    }

    /// The key that queries are signed with.
    pub(super) fn tsig(&mut self, settings: &mut Settings) -> Option<Tsig> {
        if let Exclusive::Both(key, file) = settings.exclusive("load.tsig", "load.tsig_file") {
            let message = "`load.tsig` and `load.tsig_file` exclude each other";
            self.problems.push(
                Problem::new(message, file.mark("a file with a key"))
                    .with(key.mark("a key"))
                    .help("keep one of them"),
            );
        }
        if settings.text("load.tsig").is_some_and(|text| text.ends_with(SECRET_NOT_KEPT)) {
            let message = "the secret of the TSIG key is not here: results do not hold it";
            let mark = settings.place("load.tsig").map(|place| place.mark("without its secret"));
            let problem = Problem {
                message: message.to_owned(),
                marks: mark.into_iter().collect(),
                help: None,
            };
            self.problems.push(problem.help(
                "begin anew with the key in a file, `load.tsig_file`: such an experiment can be \
                 resumed",
            ));
            return None;
        }
        if let Some(file) = self.file(settings, "load.tsig_file", "file with a TSIG key") {
            return Some(Tsig::File(file));
        }
        self.parsed(settings, "load.tsig").map(Tsig::Written)
    }

    /// A key that the server cannot have.
    pub(super) fn signatures(
        &mut self,
        settings: &Settings,
        load: &LoadSettings,
        server: &ServerSettings,
    ) {
        let key = settings.place("load.tsig").or(settings.place("load.tsig_file"));
        if let (Some(_), Some(place)) = (&load.tsig, key)
            && server.kind() == Some(dnslab_lab::ServerKind::Embedded)
        {
            let message = "the embedded server has no TSIG keys: it signs no answer";
            self.problems.push(Problem::new(message, place.mark("signed queries")).help(
                "take another `server.kind`; give an installed server the key with `server.extra`",
            ));
        }
    }
}

/// What stands in the place of a secret in the experiment as run. `<` is not in base64, so that no
/// secret ends with it.
pub(crate) const SECRET_NOT_KEPT: &str = ":<secret not kept>";
