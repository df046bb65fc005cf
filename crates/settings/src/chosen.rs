//! Some of the variants of an experiment, chosen on the command line.

use crate::document::Document;
use crate::problem::shown;
use crate::suggestion::{listed, near};
use crate::{Origin, Place, Problem, Value};

/// Of the command line: which variants are made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chosen<'a> {
    /// These and no others; all if it is empty.
    pub only: &'a [String],
    /// These are left out.
    pub without: &'a [String],
    /// Each is compared with something else anyway, so that those who are left out are missed by nobody.
    pub compares_otherwise: bool,
}

impl Document {
    /// Leaves out the variants that were not chosen. This comes after the file and all of `--set`. What is wrong with
    /// the choice becomes a problem.
    ///
    /// A variant that is alone is its own baseline. Of several, the one that the others are compared with must be
    /// among them; of several that one is compared with, any.
    pub fn choose(&mut self, chosen: &Chosen<'_>) {
        let all: Vec<String> = self.names().map(str::to_owned).collect();
        let options = [("--only", chosen.only), ("--without", chosen.without)];
        let known = self.problems.len();
        for (option, names) in options {
            for name in names.iter().filter(|name| !all.contains(name)) {
                let place = place(option, name);
                let help = match near(name, &all, self.problems.len()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the variants are {}", listed(&all)),
                };
                let message = format!("there is no variant `{}`", shown(name));
                self.problems.push(Problem::new(message, place.mark("no such variant")).help(help));
            }
        }
        let is_chosen = |name: &String| {
            (chosen.only.is_empty() || chosen.only.contains(name)) && !chosen.without.contains(name)
        };
        if self.problems.len() > known || all.iter().all(is_chosen) {
            return;
        }
        let left: Vec<&String> = all.iter().filter(|name| is_chosen(name)).collect();
        let (option, written) = match options {
            [only, _] if !chosen.only.is_empty() => only,
            [_, without] => without,
        };
        let place = place(option, &written.join(","));
        let Some(first) = left.first() else {
            let help = format!("the variants are {}", listed(&all));
            let mark = place.mark("all of them");
            self.problems.push(Problem::new("no variant is left", mark).help(help));
            return;
        };
        let missing = match chosen.compares_otherwise {
            true => Vec::new(),
            false => self.missing(&all, &left),
        };
        if let [(variant, against), ..] = missing.as_slice() {
            let message = match variant {
                None => format!("the baseline `{}` is left out", shown(against)),
                Some(variant) => {
                    format!(
                        "`{}` is compared with `{}`, which is left out",
                        shown(variant),
                        shown(against)
                    )
                }
            };
            let help = match variant {
                None => format!("take it too, or compare with another: `--set baseline={first}`"),
                Some(variant) => {
                    format!(
                        "take it too, or compare with nothing: `--set variant.{variant}.compare.with=-`"
                    )
                }
            };
            self.problems.push(Problem::new(message, place.mark("")).help(help));
            return;
        }
        self.variants.retain(|variant| variant.name.as_ref().is_none_or(is_chosen));
        let baseline = self.entries.get("baseline").and_then(|entry| text(entry.value.as_ref()));
        if baseline.is_some_and(|name| !left.contains(&&name)) {
            // Nobody is compared with it, so the first one has its name.
            self.entries.remove("baseline");
        }
        if let [_] = self.variants.as_slice() {
            self.variants[0].entries.remove("compare.with");
        }
        let of_variants = self.variants.iter_mut().map(|variant| &mut variant.entries);
        for entries in of_variants.chain([&mut self.entries]) {
            let entry = entries.get_mut("compare.with").and_then(|entry| entry.value.as_mut());
            if let Some(Value::Text(names)) = entry {
                let kept = |name: &&str| {
                    !all.iter().any(|other| other == name)
                        || left.iter().any(|other| *other == name)
                };
                let kept: Vec<&str> = names.split(',').map(str::trim).filter(kept).collect();
                *names = if kept.is_empty() { "-".to_owned() } else { kept.join(", ") };
            }
        }
    }

    /// What the variants that are left would be compared with and is not left: the baseline of those that name no
    /// others, and what a variant names.
    fn missing(&self, all: &[String], left: &[&String]) -> Vec<(Option<String>, String)> {
        let is_missing = |name: &str| {
            all.iter().any(|other| other == name) && !left.iter().any(|other| *other == name)
        };
        if left.len() == 1 {
            return Vec::new();
        }
        let of_all = self.entries.get("compare.with").and_then(|entry| text(entry.value.as_ref()));
        let baseline = self.entries.get("baseline").and_then(|entry| text(entry.value.as_ref()));
        let baseline = baseline.or_else(|| all.first().cloned()).unwrap_or_default();
        let mut missing = Vec::new();
        for variant in &self.variants {
            let Some(name) = variant.name.as_ref().filter(|name| left.contains(name)) else {
                continue;
            };
            let own =
                variant.entries.get("compare.with").and_then(|entry| text(entry.value.as_ref()));
            match own.or_else(|| of_all.clone()) {
                None if is_missing(&baseline) => missing.insert(0, (None, baseline.clone())),
                None => {}
                Some(names) => {
                    let mut names = names.split(',').map(str::trim);
                    if names.clone().all(is_missing) {
                        let first = names.next().unwrap_or_default().to_owned();
                        missing.push((Some(name.clone()), first));
                    }
                }
            }
        }
        missing
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    match value {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

fn place(option: &str, written: &str) -> Place {
    let text = format!("{option}={written}");
    Place { span: option.len() + 1..text.len(), origin: Origin::Option(text.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyMachine, Experiment};

    const TEXT: &str = "name = \"x\"\nserver.kind = \"bind\"\n[[variant]]\nname = \"udp\"\n\
        [[variant]]\nname = \"tcp\"\nload.transport = \"tcp\"\n\
        [[variant]]\nname = \"dot\"\nload.transport = \"dot\"\ncompare.with = \"tcp\"\n";

    fn chosen(only: &str, without: &str, sets: &[&str]) -> Result<Experiment, String> {
        let words = |text: &str| -> Vec<String> {
            text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let mut document = Document::of_file(TEXT).unwrap();
        sets.iter().for_each(|set| document.set(set));
        let (only, without) = (words(only), words(without));
        document.choose(&Chosen { only: &only, without: &without, compares_otherwise: false });
        document
            .check(&AnyMachine)
            .map_err(|problems| crate::render(problems.as_slice(), TEXT, "x.toml"))
    }

    #[track_caller]
    fn check(only: &str, without: &str, sets: &[&str], expected: &str) {
        let found = chosen(only, without, sets).unwrap_or_else(|problems| panic!("{problems}"));
        let names: Vec<&str> = found.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(format!("{} against {}", names.join(","), found.baseline), expected);
        // The results hold what was chosen.
        assert_eq!(crate::check_text(&found.to_toml(), &[]).unwrap(), found);
    }

    #[track_caller]
    fn refuse(only: &str, without: &str, parts: &[&str]) {
        let text = chosen(only, without, &[]).unwrap_err();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }

    #[test]
    fn variants_are_chosen_in_the_order_of_the_file() {
        check("", "", &[], "udp,tcp,dot against udp");
        check("tcp,udp", "", &[], "udp,tcp against udp");
        check("", "dot", &[], "udp,tcp against udp");
        check("udp,tcp,dot", "dot", &[], "udp,tcp against udp");
        // One alone is compared with nothing.
        check("dot", "", &[], "dot against dot");
        check("", "udp,dot", &[], "tcp against tcp");
    }

    #[test]
    fn who_is_compared_with_what_is_left_out_is_told_a_remedy_that_works() {
        refuse("", "udp", &["the baseline `udp` is left out", "--set baseline=tcp"]);
        check("", "udp", &["baseline=tcp"], "tcp,dot against tcp");
        let remedy = "variant.dot.compare.with=-";
        refuse("udp,dot", "", &["`dot` is compared with `tcp`, which is left out", remedy]);
        check("udp,dot", "", &[remedy], "udp,dot against udp");
        // Of two that it is compared with, one is enough.
        let both = "variant.dot.compare.with=tcp, udp";
        check("udp,dot", "", &[both], "udp,dot against udp");
    }

    #[test]
    fn names_that_are_not_there_are_suggested() {
        refuse("dott", "", &["there is no variant `dott`", "--only=dott", "did you mean `dot`?"]);
        refuse("", "quic", &["there is no variant `quic`", "--without=quic"]);
        refuse("tcp", "tcp", &["no variant is left"]);
    }
}
