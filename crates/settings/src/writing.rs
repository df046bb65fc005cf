//! An experiment as a file that reads back as the same experiment.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::experiment::{Experiment, Variant};
use crate::hosts::HostPlace;
use crate::key::Key;
use crate::keys::{Common, Compare, Expect, HostDefaults, Lab, Load, Repeat, Top};
use crate::kind::Value;
use crate::published::Published;
use crate::{HostsChoice, Queries, UpstreamChoice, ZoneSigning};

const ZONE_NAME: &str = "server.zone.name";
const ZONE_FILE: &str = "server.zone.file";

impl Experiment {
    /// The experiment as a file, with overrides folded in and defaults written out. Reading it gives the same
    /// experiment.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text =
            String::from("# The experiment as it ran, with every setting written out.\n");
        let top = Top {
            name: self.name.clone(),
            question: self.question.clone(),
            baseline: Some(self.baseline.clone()),
            answered_by: self.answered_by,
        };
        push_lines(&mut text, &lines(Top::KEYS, top.values()));
        let variants: Vec<Lines> = self.variants.iter().map(Variant::lines).collect();
        let is_shared = |(key, value): &&(&Key, String)| {
            let has = |(other, its): &(&Key, String)| other.path == key.path && its == value;
            variants.iter().all(|lines| lines.iter().any(has))
        };
        // A zone file of a variant would displace the name of a zone that stands above it.
        let is_own_file = |line: &&(&Key, String)| line.0.path == ZONE_FILE && !is_shared(line);
        let have_files = variants.iter().flatten().any(|line| is_own_file(&line));
        let is_shared =
            |line: &&(&Key, String)| is_shared(line) && !(have_files && line.0.path == ZONE_NAME);
        let shared: Lines = variants.iter().take(1).flatten().filter(is_shared).cloned().collect();
        text.push('\n');
        push_lines(&mut text, &shared);
        text.push('\n');
        push_lines(&mut text, &lines(Common::KEYS, self.common.values()));
        push_lines(&mut text, &lines(Repeat::KEYS, self.repeat.values()));
        push_lines(&mut text, &lines(HostDefaults::KEYS, self.host_defaults.values()));
        for (variant, lines) in self.variants.iter().zip(&variants) {
            let name = toml::Value::String(variant.name.clone());
            text.push_str(&format!("\n[[variant]]\nname = {name}\n"));
            push_lines(&mut text, lines.iter().filter(|line| !is_shared(line)));
        }
        text.extend(self.published.iter().map(Published::to_toml));
        text.extend(self.hosts().into_iter().filter_map(HostPlace::to_toml));
        text
    }
}

impl Variant {
    /// An experiment file of this variant alone, without what other hosts have to do with it: whoever reads it starts its
    /// server.
    #[must_use]
    pub fn as_served(&self) -> String {
        let mut own = self.clone();
        (own.server.host, own.upstream.host) = (None, None);
        own.compare = Compare::default();
        // Files are sent apart from it.
        own.server.policy_zone = None;
        (own.upstream.hierarchy, own.upstream.authority) = (None, None);
        // Its hosts are made, and those of a private Internet must be.
        let is_internet = self.upstream.kind == Some(UpstreamChoice::Internet);
        let hosts = if is_internet { HostsChoice::Namespaces } else { HostsChoice::Loopback };
        own.lab = Lab { hosts, ..Lab::default() };
        (own.client_link, own.upstream_link) = Default::default();
        // What is asked, and when, is nothing to a server.
        let Load { transport, mix, http_path, http_method, early_data, .. } = self.load.clone();
        // That there are some is asked of a server whose names nobody here makes. They are not read.
        let is_of_zone = matches!(self.asked(), Queries::Zone(_) | Queries::ZoneFile { .. });
        let has_own_names = self.own_configuration().is_some() || !is_of_zone;
        let queries = has_own_names.then(|| PathBuf::from("queries"));
        let load = Load { transport, mix, http_path, http_method, early_data, ..Load::default() };
        own.load = Load { queries, ..load };
        (own.zone.file, own.zone.signed) = (None, ZoneSigning::No);
        own.expect = Expect::default();
        let mut text = "name = \"served\"\n".to_owned();
        push_lines(&mut text, &own.lines());
        text.push_str("[[variant]]\nname = \"served\"\n");
        text
    }

    /// The keys that mean something to it, with their values.
    fn lines(&self) -> Lines {
        let groups = Self::KEYS.into_iter().zip(self.values());
        let lines = groups.flat_map(|(keys, values)| lines(keys, values));
        lines.filter(|(key, _)| key.is_used(self) && !key.is_short_form).collect()
    }
}

/// Keys with their values as TOML, in the order of the file.
pub(crate) type Lines = Vec<(&'static Key, String)>;

pub(crate) fn lines(keys: &'static [Key], values: Vec<Option<Value>>) -> Lines {
    let line = |(key, value): (&'static Key, Option<Value>)| Some((key, key.kind.write(&value?)));
    keys.iter().zip(values).filter_map(line).collect()
}

pub(crate) fn push_lines<'a>(
    text: &mut String,
    lines: impl IntoIterator<Item = &'a (&'static Key, String)>,
) {
    for (key, value) in lines {
        writeln!(text, "{} = {value}", key.path).expect("writing to a string does not fail");
    }
}
