//! Every variant twice: with the server's program of the experiment, and with another one.

use crate::document::{Document, WrittenVariant, find, read};
use crate::entry::{Entry, Layer};
use crate::reading::Syntax;
use crate::{Origin, Place, Value};

/// Ends the name of a variant that has the other program.
const BASE: &str = "-base";

/// The option that names the program.
const OPTION: &str = "--against";

impl Document {
    /// Makes two of each variant: `udp-base`, whose server is the program at `binary`, and `udp` as it was, which
    /// is compared with `udp-base` and nothing else. All other settings are those of the variant, so this comes
    /// after the file and all of `--set`. What is wrong with the program becomes a problem.
    pub fn against(&mut self, binary: &str) {
        let written = std::mem::take(&mut self.variants);
        let names: Vec<String> =
            written.iter().filter_map(|variant| variant.name.clone()).collect();
        for mut own in written {
            let mut base = own.clone();
            let name = own.name.as_ref().map(|name| format!("{name}{BASE}"));
            if let Some(name) = &name {
                self.put(&mut own, "compare.with", name);
            }
            base.name = name;
            // A root folder has the program in it, and the other program is none of that folder's.
            base.entries.remove("server.root");
            self.put(&mut base, "server.binary", binary);
            self.put(&mut base, "compare.with", "-");
            self.variants.extend([base, own]);
        }
        // Without a baseline the first variant is it.
        let baseline = self.entries.get_mut("baseline").and_then(|entry| entry.value.as_mut());
        if let Some(Value::Text(name)) = baseline
            .filter(|baseline| matches!(baseline, Value::Text(name) if names.contains(name)))
        {
            name.push_str(BASE);
        }
    }

    fn put(&mut self, variant: &mut WrittenVariant, path: &str, text: &str) {
        let key = find(path).expect("it is a key");
        let option = format!("{OPTION}={text}");
        let place =
            Place { span: OPTION.len() + 1..option.len(), origin: Origin::Option(option.into()) };
        let value = read(key, text, Syntax::Option(OPTION));
        let entry = Entry::of(value, place, Layer::VariantCommandLine, &mut self.problems);
        variant.entries.insert(key.path, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyMachine, Experiment};

    fn against(text: &str, sets: &[&str]) -> Result<Experiment, crate::Problems> {
        let mut document = Document::of_file(text)?;
        sets.iter().for_each(|set| document.set(set));
        document.against("old/named");
        document.check(&AnyMachine)
    }

    const TEXT: &str = "name = \"x\"\nserver.kind = \"bind\"\n[[variant]]\nname = \"udp\"\n\
        [[variant]]\nname = \"dot\"\nload.transport = \"dot\"\ncompare.with = \"udp\"\n";

    fn line(experiment: &Experiment, variant: &crate::Variant) -> String {
        let binary = variant.server.binary.as_ref().map(|path| path.display().to_string());
        let with = experiment.compared_with(variant);
        let with: Vec<&str> = with.iter().map(|other| other.name.as_str()).collect();
        let (name, clients) = (&variant.name, variant.load.clients);
        format!("{name} {} {clients} {}", binary.unwrap_or_default(), with.join(","))
    }

    #[test]
    fn every_variant_is_there_with_both_programs() {
        let sets = ["server.binary=new/named", "variant.dot.load.clients=7"];
        let found = against(TEXT, &sets).unwrap();
        let lines: Vec<String> =
            found.variants.iter().map(|variant| line(&found, variant)).collect();
        assert_eq!(
            lines,
            [
                "udp-base old/named 100 ",
                "udp new/named 100 udp-base",
                "dot-base old/named 7 ",
                "dot new/named 7 dot-base",
            ]
        );
        assert_eq!(found.baseline, "udp-base");
        let again = crate::check_text(&found.to_toml(), &[]).unwrap();
        assert_eq!(again, found);
        let found = against(TEXT, &["baseline=dot"]).unwrap();
        assert_eq!(found.baseline, "dot-base");
    }

    #[test]
    fn what_has_no_program_is_refused() {
        let embedded = against("name = \"x\"\n[[variant]]\nname = \"udp\"\n", &[]).unwrap_err();
        let text = crate::render(embedded.as_slice(), "", "x.toml");
        assert!(text.contains("--against=old/named") && text.contains("embedded"), "{text}");
        let twice = format!("{TEXT}[[variant]]\nname = \"udp-base\"\n");
        let twice = against(&twice, &[]).unwrap_err();
        assert!(twice.to_string().contains("two variants are called `udp-base`"), "{twice}");
    }
}
