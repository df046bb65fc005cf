//! Which variants differ only in the size of their load.

use dnslab_record::LoadSweep;
use dnslab_settings::{Compare, Experiment, Factor, Load, Mode, ServerChoice, Variant};
use dnslab_traffic::Rate;

/// A single line over the load says something from so many loads on; of several, two will do.
const POINTS_OF_ONE: usize = 3;

/// The variants that differ only in the size of an open load (its rate, the clients of a population, the factor
/// of a capture), server by server, in the order of the file; none if there is nothing to draw over the load.
///
/// It is decided from the checked settings, so that no difference is overlooked.
pub(crate) fn sweeps(experiment: &Experiment) -> Vec<LoadSweep> {
    let open = experiment.variants.iter().filter(|variant| !variant.load.mode.is_closed());
    let mut all = alike(open, without_size);
    all.retain(|members| sizes(members) > 1);
    if all.len() == 1 && all.iter().all(|members| sizes(members) < POINTS_OF_ONE) {
        return Vec::new();
    }
    let names = |members: &[&Variant]| -> Vec<String> {
        members.iter().map(|variant| variant.name.clone()).collect()
    };
    let mut sweeps: Vec<LoadSweep> = Vec::new();
    for members in &all {
        let name = common_name(members);
        let is_taken = sweeps.iter().any(|sweep| sweep.name == name);
        let name = if is_taken { format!("{name} ({})", members[0].name) } else { name };
        sweeps.push(LoadSweep { name, variants: names(members) });
    }
    sweeps
}

/// The variants of which this rest is the same, in the order of the first of each.
pub(crate) fn alike<'a>(
    variants: impl Iterator<Item = &'a Variant>,
    rest: fn(&Variant) -> Variant,
) -> Vec<Vec<&'a Variant>> {
    let mut alike: Vec<(Variant, Vec<&Variant>)> = Vec::new();
    for variant in variants {
        let rest = rest(variant);
        match alike.iter_mut().find(|(known, _)| *known == rest) {
            Some((_, members)) => members.push(variant),
            None => alike.push((rest, vec![variant])),
        }
    }
    alike.into_iter().map(|(_, members)| members).collect()
}

/// The variant without its name and without what makes its load larger or smaller.
fn without_size(variant: &Variant) -> Variant {
    let mut rest = variant.clone();
    rest.name.clear();
    rest.compare = Compare::default();
    let load = &mut rest.load;
    if let Mode::Open { rate, .. } | Mode::Population { rate, .. } = &mut load.mode
        && rate.is_constant()
    {
        *rate = Rate::Constant(1.0);
    }
    load.factor = Factor(1.0);
    // More clients of a population ask more. At a given rate they do not.
    if load.mode.population().is_some() {
        load.clients = Load::default().clients;
    }
    rest
}

/// How many sizes of load there are.
fn sizes(members: &[&Variant]) -> usize {
    let size = |load: &Load| (load.mode.rate().cloned(), load.clients, load.factor);
    let is_new = |place: usize| {
        members[..place].iter().all(|other| size(&other.load) != size(&members[place].load))
    };
    (0..members.len()).filter(|place| is_new(*place)).count()
}

/// The parts of the names, divided by `-`, with which all of them begin, or end; the server where they have
/// none in common.
pub(crate) fn common_name(members: &[&Variant]) -> String {
    let mut names: Vec<Vec<&str>> =
        members.iter().map(|variant| variant.name.split('-').collect()).collect();
    let beginning = shared(&names);
    names.iter_mut().for_each(|parts| parts.reverse());
    let mut end = shared(&names);
    end.reverse();
    let server = &members[0].server;
    let common = if beginning.is_empty() { end } else { beginning };
    match (common.is_empty(), &server.root) {
        (false, _) => common.join("-"),
        (true, Some(root)) => {
            let name = root.file_name().unwrap_or(root.as_os_str());
            name.to_string_lossy().into_owned()
        }
        (true, None) => ServerChoice::name_of(server.kind.started()).to_owned(),
    }
}

/// The parts with which all begin. Each keeps one of its own.
fn shared<'a>(names: &[Vec<&'a str>]) -> Vec<&'a str> {
    let most = names.iter().map(Vec::len).min().unwrap_or(1) - 1;
    let is_shared = |at: &usize| names.iter().all(|parts| parts[*at] == names[0][*at]);
    (0..most).take_while(is_shared).map(|at| names[0][at]).collect()
}

#[cfg(test)]
mod tests {
    use dnslab_settings::check_text;

    use super::*;

    /// Sweeps as text, of an experiment with these variants.
    fn found(variants: &[(&str, &str)]) -> Vec<String> {
        let mut text = "name = \"x\"\n[load]\nrate = 100\nclients = 10\n".to_owned();
        for (name, lines) in variants {
            text += &format!("[[variant]]\nname = \"{name}\"\n{lines}\n");
        }
        let sweeps = sweeps(&check_text(&text, &[]).unwrap());
        sweeps.iter().map(|sweep| format!("{}: {}", sweep.name, sweep.variants.join(" "))).collect()
    }

    const TWO: &str = "load.rate = 200";
    const THREE: &str = "load.rate = 300";

    #[test]
    fn variants_that_differ_in_the_size_of_the_load_are_a_line() {
        let old = "server.root = \"bind-9.16\"\nserver.kind = \"bind\"";
        let new = "server.kind = \"bind\"";
        let with = |server: &str, load: &str| format!("{server}\n{load}");
        let (old_two, new_two) = (with(old, TWO), with(new, TWO));
        let servers = [
            ("bind-9-16-x1", old),
            ("bind-9-20-x1", new),
            ("bind-9-16-x2", &old_two),
            ("bind-9-20-x2", &new_two),
        ];
        let lines =
            ["bind-9-16: bind-9-16-x1 bind-9-16-x2", "bind-9-20: bind-9-20-x1 bind-9-20-x2"];
        assert_eq!(found(&servers), lines);
        let renamed = [("small", old), ("few", new), ("large", &old_two), ("many", &new_two)];
        assert_eq!(found(&renamed), ["bind-9.16: small large", "bind: few many"]);
        // Two loads of one server are no line.
        assert_eq!(found(&servers[..3]), [""; 0]);
        assert_eq!(
            found(&[("x1-udp", ""), ("x2-udp", TWO), ("x3-udp", THREE)]),
            ["udp: x1-udp x2-udp x3-udp"]
        );
    }

    #[test]
    fn what_differs_in_more_is_no_line() {
        let other = "load.rate = 200\nload.timeout = \"1s\"";
        assert_eq!(found(&[("a", ""), ("b", other), ("c", THREE)]), [""; 0]);
        // The same load again, and a closed loop, which has no size.
        assert_eq!(found(&[("a", ""), ("b", ""), ("c", TWO)]), [""; 0]);
        // At a given rate, more clients are another load, not a larger one.
        let more_clients = "load.rate = 300\nload.clients = 30";
        assert_eq!(found(&[("a", ""), ("b", TWO), ("c", more_clients)]), [""; 0]);
        let changing = "load.rate = \"ramp:1..100/5s\"";
        assert_eq!(found(&[("a", ""), ("b", changing), ("c", TWO)]), [""; 0]);
    }

    #[test]
    fn lines_of_one_name_are_told_apart() {
        let other = "server.zone.records = 7";
        let (one, two) = (format!("{other}\n{TWO}"), format!("{other}\n{THREE}"));
        let variants = [("a-1", TWO), ("a-2", THREE), ("a-3", &one), ("a-4", &two)];
        assert_eq!(found(&variants), ["a: a-1 a-2", "a (a-3): a-3 a-4"]);
    }
}
