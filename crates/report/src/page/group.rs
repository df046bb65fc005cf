//! Which variants are drawn together, and in which colours.

use dnslab_analysis::Summary;
use dnslab_record::RunRecord;
use serde::Serialize;

use crate::number;
use crate::variants::grouped;

/// Colours of the palette in the style sheet, and so the most lines that one chart can tell apart.
pub(crate) const COLOURS: usize = 7;
/// Most variants of a chart of a group that had to be divided.
const MAX_IN_PART: usize = 6;

/// The variants in groups, each drawn in a chart of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grouping {
    /// At least one, in the order of the variants; every variant is in one of them.
    pub(crate) groups: Vec<Group>,
    /// The place of the baseline where it is drawn in every group: it has no colour of theirs.
    pub(crate) reference: Option<usize>,
    slots: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Group {
    /// What they have in common: the load, the server, or how their names begin; empty where there is one group.
    pub(crate) name: String,
    pub(crate) members: Vec<usize>,
    /// Their names without what they have in common.
    pub(crate) labels: Vec<String>,
}

impl Grouping {
    /// Variants are grouped by their loads where several servers are under loads of several sizes. Else up to
    /// [`COLOURS`] variants are one group, and more are grouped by the beginnings of their names, as far as the first
    /// `-`, or by their servers where most names have nothing in common.
    pub(crate) fn of(summary: &Summary, records: &[RunRecord]) -> Self {
        if (2..=COLOURS).contains(&summary.sweep.len()) {
            return Self::by_load(summary);
        }
        let named: Vec<(&str, Option<&str>)> = summary
            .variants
            .iter()
            .map(|variant| {
                let record = records.iter().find(|record| record.variant == variant.name);
                (variant.name.as_str(), record.map(|record| record.server.kind.as_str()))
            })
            .collect();
        let baseline = summary.variants.iter().position(|variant| variant.name == summary.baseline);
        Self::of_names(&named, baseline)
    }

    /// A group for each load, with the servers under it, each in the same colour in all groups.
    fn by_load(summary: &Summary) -> Self {
        let names: Vec<&str> =
            summary.variants.iter().map(|variant| variant.name.as_str()).collect();
        // Who is no server of them has a colour of none of them.
        let mut slots: Vec<usize> = (summary.sweep.len()..).take(names.len()).collect();
        let mut loads: Vec<(f64, Group)> = Vec::new();
        for (slot, line) in summary.sweep.iter().enumerate() {
            for point in &line.points {
                let Some(place) = names.iter().position(|name| *name == point.variant) else {
                    continue;
                };
                slots[place] = slot;
                let known = loads.iter().position(|(load_qps, _)| *load_qps == point.load_qps);
                let known = known.unwrap_or_else(|| {
                    let name = number::queries_per_second(point.load_qps);
                    loads.push((point.load_qps, Group { name, members: vec![], labels: vec![] }));
                    loads.len() - 1
                });
                let (_, group) = &mut loads[known];
                group.members.push(place);
                group.labels.push(line.name.clone());
            }
        }
        loads.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let mut groups: Vec<Group> = loads.into_iter().map(|(_, group)| group).collect();
        let is_grouped = |place: &usize| groups.iter().any(|group| group.members.contains(place));
        let rest: Vec<usize> = (0..names.len()).filter(|place| !is_grouped(place)).collect();
        if !rest.is_empty() {
            groups.extend(divided("others", &rest, &names));
        }
        Self { groups, slots, reference: None }
    }

    /// From names with the kinds of their servers, and from the place of the baseline.
    fn of_names(named: &[(&str, Option<&str>)], baseline: Option<usize>) -> Self {
        let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
        if names.len() <= COLOURS {
            let members: Vec<usize> = (0..names.len()).collect();
            let labels = names.iter().map(|name| (*name).to_owned()).collect();
            let group = Group { name: String::new(), labels, members };
            let slots = (0..names.len()).collect();
            return Self { slots, groups: vec![group], reference: None };
        }
        // What a server is called in the names says more than its kind: one program may stand in front
        // of another. Where most names begin in a way of their own the kinds are left.
        let beginning = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
        let is_shared = |name: &&&str| {
            names.iter().filter(|other| beginning(other) == beginning(name)).count() > 1
        };
        let by_name = 2 * names.iter().filter(is_shared).count() > names.len();
        let keys = named.iter().map(|&(name, kind)| match kind {
            Some(kind) if !by_name => kind.to_owned(),
            _ => beginning(name),
        });
        let keyed = grouped(keys.zip(0..));
        let (several, single): (Vec<_>, Vec<_>) =
            keyed.into_iter().partition(|(_, members)| members.len() > 1);
        let mut groups: Vec<Group> =
            several.iter().flat_map(|(name, members)| divided(name, members, &names)).collect();
        let rest: Vec<usize> = single.iter().flat_map(|(_, members)| members).copied().collect();
        match single.as_slice() {
            [] => {}
            [(name, members)] => groups.extend(divided(name, members, &names)),
            _ => groups.extend(divided("others", &rest, &names)),
        }
        let reference = baseline.filter(|_| groups.len() > 1);
        Self { slots: slots(&groups, names.len()), groups, reference }
    }

    pub(crate) fn is_grouped(&self) -> bool {
        self.groups.len() > 1
    }

    /// The number of a variant's colour, by its place in the summary; `None` for the reference, which is grey.
    pub(crate) fn slot(&self, place: usize) -> Option<usize> {
        let slot = self.slots.get(place).copied().unwrap_or(place);
        (self.reference != Some(place)).then_some(slot)
    }

    /// The number of the colour of a server under loads of several sizes, which are the variants of these names: that
    /// of the variants, or one that no variant has.
    pub(crate) fn slot_of_line(&self, summary: &Summary, nth: usize) -> usize {
        let points = summary.sweep[nth].points.iter();
        let place = |name: &str| summary.variants.iter().position(|variant| variant.name == name);
        let mut slots = points.map(|point| place(&point.variant).and_then(|at| self.slot(at)));
        let first = slots.next().flatten();
        first.filter(|_| slots.all(|slot| slot == first)).unwrap_or(self.slots.len() + nth)
    }

    /// The classes that give a variant its colour, and set it apart from an earlier one of the same
    /// colour.
    pub(crate) fn class(&self, place: usize) -> String {
        let Some(slot) = self.slot(place) else { return "reference".to_owned() };
        let again = if slot >= COLOURS { " again" } else { "" };
        format!("v{}{again}", slot % COLOURS)
    }

    /// The variants in the order of their groups, each with whether it is the first of one.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (usize, bool)> {
        self.groups.iter().flat_map(|group| {
            group.members.iter().enumerate().map(|(nth, &place)| (place, nth == 0))
        })
    }
}

/// One group, or several of about the same size if it is too large for one chart.
fn divided(name: &str, members: &[usize], names: &[&str]) -> Vec<Group> {
    let parts = if members.len() <= COLOURS { 1 } else { members.len().div_ceil(MAX_IN_PART) };
    let size = members.len().div_ceil(parts);
    let own: Vec<&str> = members.iter().map(|&place| names[place]).collect();
    let common = common_segments(&own);
    let label = |&place: &usize| names[place].split('-').skip(common).collect::<Vec<_>>().join("-");
    members
        .chunks(size)
        .enumerate()
        .map(|(nth, members)| Group {
            name: match parts {
                1 => name.to_owned(),
                parts => format!("{name} ({} of {parts})", nth + 1),
            },
            members: members.to_vec(),
            labels: members.iter().map(label).collect(),
        })
        .collect()
}

/// With how many segments, divided by `-`, all names begin alike; each keeps one at least.
fn common_segments(names: &[&str]) -> usize {
    let segments: Vec<Vec<&str>> = names.iter().map(|name| name.split('-').collect()).collect();
    let [first, others @ ..] = segments.as_slice() else { return 0 };
    if others.is_empty() {
        return 0;
    }
    let most = segments.iter().map(Vec::len).min().unwrap_or(1) - 1;
    (0..most).take_while(|&at| others.iter().all(|other| other[at] == first[at])).count()
}

/// Colours: the same for the same label in every group, as long as the palette has two rounds for them;
/// else by the place in the group.
fn slots(groups: &[Group], variants: usize) -> Vec<usize> {
    let mut labels: Vec<&str> = Vec::new();
    for label in groups.iter().flat_map(|group| &group.labels) {
        if !labels.contains(&label.as_str()) {
            labels.push(label);
        }
    }
    let by_label = labels.len() <= 2 * COLOURS;
    let mut slots = vec![0; variants];
    for group in groups {
        for (nth, (&place, label)) in group.members.iter().zip(&group.labels).enumerate() {
            let known = labels.iter().position(|known| known == label).filter(|_| by_label);
            slots[place] = known.unwrap_or(nth);
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(grouping: &Grouping) -> Vec<(&str, Vec<&str>)> {
        grouping
            .groups
            .iter()
            .map(|group| {
                (group.name.as_str(), group.labels.iter().map(String::as_str).collect::<Vec<_>>())
            })
            .collect()
    }

    #[test]
    fn few_variants_are_one_group() {
        let named: Vec<(&str, Option<&str>)> =
            vec![("udp", Some("bind")), ("tcp", Some("bind")), ("dot", None)];
        let grouping = Grouping::of_names(&named, Some(0));
        assert_eq!(told(&grouping), [("", vec!["udp", "tcp", "dot"])]);
        assert!(!grouping.is_grouped());
        assert_eq!(grouping.class(2), "v2");
    }

    #[test]
    fn many_are_grouped_by_product_and_share_colours() {
        let names = [
            ("bind-9-16-udp", "bind"),
            ("bind-9-20-udp", "bind"),
            ("knot-udp", "knot"),
            ("knot-dot", "knot"),
            ("kresd-udp", "knot-resolver"),
            ("kresd-dot", "knot-resolver"),
            ("nsd-udp", "nsd"),
            ("stubby", "stubby"),
        ];
        let named: Vec<_> = names.iter().map(|(name, kind)| (*name, Some(*kind))).collect();
        let grouping = Grouping::of_names(&named, Some(1));
        // It is in every group, so its colour is none of theirs, in its own group too.
        assert_eq!((grouping.class(1), grouping.slot(1)), ("reference".to_owned(), None));
        assert_eq!(
            told(&grouping),
            [
                ("bind", vec!["16-udp", "20-udp"]),
                ("knot", vec!["udp", "dot"]),
                ("kresd", vec!["udp", "dot"]),
                ("others", vec!["nsd-udp", "stubby"]),
            ]
        );
        assert_eq!(grouping.class(2), grouping.class(4), "both are UDP");
        assert_ne!(grouping.class(2), grouping.class(3));
        let order: Vec<(usize, bool)> = grouping.in_order().collect();
        assert_eq!(order.len(), names.len(), "each once");
        assert_eq!(order[2], (2, true));
    }

    #[test]
    fn names_without_anything_in_common_are_grouped_by_server() {
        let names = ["plain", "logged", "signed", "old", "new", "small", "large", "none"];
        let kind = |at: usize| if at < 5 { Some("bind") } else { Some("nsd") };
        let named: Vec<_> = names.iter().enumerate().map(|(at, name)| (*name, kind(at))).collect();
        let grouping = Grouping::of_names(&named, None);
        let groups: Vec<(&str, usize)> =
            told(&grouping).into_iter().map(|(name, labels)| (name, labels.len())).collect();
        assert_eq!(groups, [("bind", 5), ("nsd", 3)]);
    }

    #[test]
    fn names_of_one_server_are_grouped_by_their_beginnings() {
        let names = ["none", "file", "file-bare", "file-full", "syslog", "cpus-2", "cpus-2-file"];
        let mut named: Vec<_> = names.iter().map(|name| (*name, Some("bind"))).collect();
        named.push(("both", None));
        let grouping = Grouping::of_names(&named, None);
        assert_eq!(
            told(&grouping),
            [
                ("file", vec!["file", "file-bare", "file-full"]),
                ("cpus", vec!["2", "2-file"]),
                ("others", vec!["none", "syslog", "both"]),
            ]
        );
    }

    #[test]
    fn no_chart_has_more_lines_than_colours() {
        let names: Vec<String> = (0..20).map(|at| format!("load-{at}")).collect();
        let named: Vec<_> = names.iter().map(|name| (name.as_str(), Some("bind"))).collect();
        let grouping = Grouping::of_names(&named, None);
        assert_eq!(grouping.groups.len(), 4);
        assert!(grouping.groups.iter().all(|group| group.members.len() <= COLOURS));
        assert_eq!(grouping.groups[3].name, "load (4 of 4)");
        assert_eq!(grouping.slot(5), Some(0), "by the place in its chart");
    }
}
