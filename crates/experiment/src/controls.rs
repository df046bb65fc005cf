//! Which variants do the same under the main load.

use dnslab_record::Compared;
use dnslab_settings::{Compare, Experiment, Quickack, Variant};

/// Those of the compared pairs whose settings differ, but only in what does not act in the main load. Such a pair is
/// a control: what differs there is the error of the method. Settings that are all alike are none, since who
/// writes one variant twice asks for the difference.
///
/// It is decided from the checked settings, so that no difference is overlooked.
pub(crate) fn controls(experiment: &Experiment, compared: &[Compared]) -> Vec<Compared> {
    let find = |name: &str| experiment.variants.iter().find(|variant| variant.name == name);
    let is_control = |own: &Variant, other: &Variant| {
        unnamed(own) != unnamed(other) && in_main_load(own) == in_main_load(other)
    };
    let controls = compared.iter().filter(|pair| {
        let both = find(&pair.variant).zip(find(&pair.against));
        both.is_some_and(|(own, reference)| is_control(own, reference))
    });
    controls.cloned().collect()
}

/// The variant without its name and without what it is compared with.
fn unnamed(variant: &Variant) -> Variant {
    let mut rest = variant.clone();
    rest.name.clear();
    rest.compare = Compare::default();
    rest
}

/// What acts in the main load. What acts at the common rate alone is as if it were not set.
fn in_main_load(variant: &Variant) -> Variant {
    let mut rest = unnamed(variant);
    let load = &mut rest.load;
    load.quickack = match load.quickack.applies(&load.mode) {
        true => Quickack::Always,
        false => Quickack::Never,
    };
    rest
}

#[cfg(test)]
mod tests {
    use dnslab_settings::check_text;

    use super::*;

    /// Whether `b` is a control of `a`, which have these lines beside what both have.
    fn is_control(both: &str, [a, b]: [&str; 2]) -> bool {
        let text = format!(
            "name = \"x\"\n[load]\nclients = 10\ntransport = \"tcp\"\n{both}\n[[variant]]\nname = \"a\"\n{a}\n\
             [[variant]]\nname = \"b\"\n{b}\n"
        );
        let pair = Compared { variant: "b".to_owned(), against: "a".to_owned() };
        let found = controls(&check_text(&text, &[]).unwrap(), std::slice::from_ref(&pair));
        assert!(found.is_empty() || found == [pair]);
        !found.is_empty()
    }

    #[test]
    fn what_acts_at_the_common_rate_alone_makes_a_control() {
        const AT_A_RATE: &str = "load.quickack = \"open-loop\"";
        const ALWAYS: &str = "load.quickack = \"always\"";
        assert!(is_control("", ["", AT_A_RATE]));
        assert!(is_control("", [AT_A_RATE, "load.quickack = \"never\""]));
        assert!(!is_control("", ["", ALWAYS]));
        assert!(!is_control("", [AT_A_RATE, ALWAYS]));
        // In an open loop it acts, and both of these do.
        assert!(!is_control("rate = 100", ["", AT_A_RATE]));
        assert!(is_control("rate = 100", [AT_A_RATE, ALWAYS]));
        // Two settings of one variant are no control, nor is what differs in more.
        assert!(!is_control("", ["", ""]));
        assert!(!is_control("", [AT_A_RATE, AT_A_RATE]));
        assert!(!is_control("", ["", &format!("{AT_A_RATE}\nload.timeout = \"1s\"")]));
    }

    #[test]
    fn dot_quickack_of_the_first_experiment_is_a_control_of_dot() {
        let (experiment, _) = crate::load("encryption", &[]).unwrap();
        let pair = |variant: &str, against: &str| Compared {
            variant: variant.to_owned(),
            against: against.to_owned(),
        };
        let compared = [pair("dot", "udp"), pair("dot-quickack", "dot"), pair("dot", "tcp")];
        assert_eq!(controls(&experiment, &compared), [pair("dot-quickack", "dot")]);
    }
}
