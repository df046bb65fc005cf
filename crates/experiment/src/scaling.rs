//! Which variants differ only in the number of the server's threads.

use dnslab_analysis::statistics::LEAST_COUNTS;
use dnslab_record::ThreadSweep;
use dnslab_settings::{Compare, Experiment, Load, ServerChoice, Variant};

use crate::sweeps::{alike, common_name};

/// The variants under a closed load that differ only in the threads of a server that dnslab starts, and in what goes
/// with them: its CPUs, and the number of clients.
pub(crate) fn thread_sweeps(experiment: &Experiment) -> Vec<ThreadSweep> {
    let members = thread_members(experiment);
    let is_alone = members.len() == 1;
    let sweep = |members: &Vec<&Variant>| ThreadSweep {
        name: match is_alone {
            true => ServerChoice::name_of(members[0].server.kind.started()).to_owned(),
            false => common_name(members),
        },
        variants: members.iter().map(|variant| variant.name.clone()).collect(),
    };
    members.iter().map(sweep).collect()
}

/// Why a variant of a sweep over the threads says nothing of them on this machine: they have not a CPU each. Nothing is
/// said where `server.cpus` names them.
pub(crate) fn lacks_cpus(
    experiment: &Experiment,
    variant: &Variant,
    cpus: usize,
) -> Option<String> {
    let threads = variant.server.threads.filter(|threads| *threads as usize > cpus)?;
    let is_swept = || {
        let mut all = thread_members(experiment).into_iter().flatten();
        all.any(|member| member.name == variant.name)
    };
    (variant.server.cpus.is_empty() && is_swept()).then(|| {
        let cpus = if cpus == 1 { "1 CPU".to_owned() } else { format!("{cpus} CPUs") };
        format!(
            "{threads} threads, and the server has {cpus} here: `server.cpus` and `load.cpus` divide them otherwise"
        )
    })
}

fn thread_members(experiment: &Experiment) -> Vec<Vec<&Variant>> {
    let is_swept = |variant: &&Variant| {
        variant.load.mode.is_closed() && variant.server.kind.started().is_some()
    };
    let mut all = alike(experiment.variants.iter().filter(is_swept), without_threads);
    // A law of fewer is none.
    all.retain(|members| counts(members) >= LEAST_COUNTS);
    all
}

/// The variant without its name and without what goes with the number of threads.
fn without_threads(variant: &Variant) -> Variant {
    let mut rest = variant.clone();
    rest.name.clear();
    rest.compare = Compare::default();
    rest.server.threads = None;
    rest.server.cpus.clear();
    rest.load.clients = Load::default().clients;
    rest
}

/// How many numbers of threads there are; one that is not set is that of the CPUs.
fn counts(members: &[&Variant]) -> usize {
    let count = |variant: &&Variant| {
        let server = &variant.server;
        server.threads.map_or(server.cpus.len(), |threads| threads as usize)
    };
    let mut counts: Vec<usize> = members.iter().map(count).collect();
    counts.sort_unstable();
    counts.dedup();
    counts.len()
}

#[cfg(test)]
mod tests {
    use dnslab_settings::check_text;

    use super::*;

    fn experiment(variants: &[(&str, &str)]) -> Experiment {
        let mut text = "name = \"x\"\n[load]\nclients = 100\n".to_owned();
        for (name, lines) in variants {
            text += &format!("[[variant]]\nname = \"{name}\"\n{lines}\n");
        }
        check_text(&text, &[]).unwrap()
    }

    /// Sweeps as text, of an experiment with these variants.
    fn found(variants: &[(&str, &str)]) -> Vec<String> {
        let sweeps = thread_sweeps(&experiment(variants));
        sweeps.iter().map(|sweep| format!("{}: {}", sweep.name, sweep.variants.join(" "))).collect()
    }

    const ONE: &str = "server.threads = 1";
    const TWO: &str = "server.threads = 2\nload.clients = 200";
    const FOUR: &str = "server.threads = 4\nserver.cpus = [0, 1]";

    #[test]
    fn variants_that_differ_in_their_threads_are_a_sweep() {
        assert_eq!(found(&[("a", ONE), ("b", TWO), ("c", FOUR)]), ["embedded: a b c"]);
        let cpus = [("a", "server.cpus = [0]"), ("b", "server.cpus = [0, 1]"), ("c", FOUR)];
        assert_eq!(found(&cpus), ["embedded: a b c"]);
        let bind = |lines: &str| format!("server.kind = \"bind\"\n{lines}");
        let (one, two, four) = (bind(ONE), bind(TWO), bind(FOUR));
        let both = [
            ("embedded-1", ONE),
            ("bind-1", one.as_str()),
            ("embedded-2", TWO),
            ("bind-2", &two),
            ("embedded-4", FOUR),
            ("bind-4", &four),
        ];
        let lines = ["embedded: embedded-1 embedded-2 embedded-4", "bind: bind-1 bind-2 bind-4"];
        assert_eq!(found(&both), lines);
    }

    #[test]
    fn two_counts_and_what_differs_in_more_are_no_sweep() {
        assert_eq!(found(&[("a", ONE), ("b", TWO)]), [""; 0]);
        assert_eq!(found(&[("a", ONE), ("b", TWO), ("c", ONE)]), [""; 0]);
        let other = "server.threads = 4\nload.transport = \"tcp\"";
        assert_eq!(found(&[("a", ONE), ("b", TWO), ("c", other)]), [""; 0]);
        // A rate that is asked says nothing of what more threads could answer.
        let open = "load.rate = 100\n";
        let [one, two, four] = [ONE, TWO, FOUR].map(|lines| format!("{open}{lines}"));
        assert_eq!(found(&[("a", &one), ("b", &two), ("c", &four)]), [""; 0]);
    }

    #[test]
    fn threads_of_a_sweep_have_a_cpu_each() {
        let swept = experiment(&[("a", ONE), ("b", TWO), ("c", FOUR), ("d", "server.threads = 8")]);
        let lacks = |name: &str, cpus| lacks_cpus(&swept, swept.variant(name).unwrap(), cpus);
        assert_eq!((lacks("a", 1), lacks("b", 2)), (None, None));
        assert!(lacks("b", 1).unwrap().starts_with("2 threads, and the server has 1 CPU here: "));
        assert_eq!(lacks("c", 2), None, "its CPUs are named");
        assert!(lacks("d", 2).is_some());
        let few = experiment(&[("a", ONE), ("b", TWO)]);
        assert_eq!(lacks_cpus(&few, few.variant("b").unwrap(), 1), None);
    }
}
