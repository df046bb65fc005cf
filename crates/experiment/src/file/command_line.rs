//! Overrides from the command line: `--set key=value`.

use toml::de::{DeTable, DeValue};

use crate::error::{Origin, Place, Problem, shown};
use crate::file::{Entry, Layer, Written, WrittenVariant, not_overridable, unknown_key, value};
use crate::keys::{Form, Key, closest_word, find};

/// Puts one `--set` into the experiment as written; what is wrong with it becomes a problem.
///
/// The value is TOML; what is not TOML is taken as text, so that nobody has to quote quotes for
/// the shell. `variant.NAME.key=value` reaches into one variant.
pub(crate) fn apply(written: &mut Written, set: &str) {
    if let Err(problem) = try_apply(written, set) {
        written.problems.push(problem);
    }
}

/// [`apply`], with the problem that kept the whole from being understood.
fn try_apply(written: &mut Written, set: &str) -> Result<(), Problem> {
    let place = |from: usize, to: usize| Place {
        origin: Origin::CommandLine(set.to_owned()),
        span: from..to,
    };
    let Some((path, text)) = set.split_once('=') else {
        let message = format!("`{}` has no `=`", shown(set));
        return Err(Problem::new(message, place(0, set.len()).mark("no value"))
            .help("write `--set key=value`, for example `--set load.duration=10s`"));
    };
    let (key_place, value_place) = (place(0, path.len()), place(path.len() + 1, set.len()));
    let full_path = path.trim();
    let within = full_path.strip_prefix("variant.").and_then(|rest| rest.split_once('.'));
    let (layer, variant, path) = match within {
        Some((name, path)) => {
            let variant = find_variant(&mut written.variants, name, &key_place)?;
            (Layer::VariantCommandLine, Some(variant), path)
        }
        None => (Layer::CommandLine, None, full_path),
    };
    let key = find(path).ok_or_else(|| unknown_key(path, key_place.clone()))?;
    if variant.is_some() && !key.is_overridable() {
        let help = format!("write `--set {}=...`", key.path);
        return Err(not_overridable(key, key_place).help(help));
    }
    let (value, fault) = match read(key, text, full_path) {
        Ok(value) => (Some(value), None),
        Err(fault) => (None, Some(fault)),
    };
    if let Some(fault) = fault {
        let problem = Problem::new(fault.message, value_place.mark(fault.label));
        written.problems.push(problem.help(fault.help));
    }
    let entries = variant.map_or(&mut written.entries, |variant| &mut variant.entries);
    entries.insert(key.path, Entry { value, place: value_place, layer });
    Ok(())
}

/// The variant called `name`.
fn find_variant<'a>(
    variants: &'a mut [WrittenVariant],
    name: &str,
    place: &Place,
) -> Result<&'a mut WrittenVariant, Problem> {
    let called = |variant: &WrittenVariant| variant.name.as_ref().map(|(name, _)| name.clone());
    let names: Vec<String> = variants.iter().filter_map(called).collect();
    let found = variants.iter_mut().find(|variant| called(variant).as_deref() == Some(name));
    found.ok_or_else(|| {
        let message = format!("there is no variant `{}`", shown(name));
        let known = names.iter().map(String::as_str);
        let help = match closest_word(name, known) {
            Some(near) => format!("did you mean `variant.{near}`?"),
            None => format!("the variants are {}", names.join(", ")),
        };
        Problem::new(message, place.mark("no such variant")).help(help)
    })
}

/// Reads `text` as TOML if it is one value, and else, or where the key takes text, as text. `path`
/// is what stands before the `=`.
fn read(key: &Key, text: &str, path: &str) -> Result<value::Value, value::Fault> {
    let syntax = value::Syntax::CommandLine(path);
    let text = text.trim();
    let bare = DeValue::String(text.into());
    let bracketed = format!("value = [{text}]");
    let document = format!("value = {text}");
    // `--set server.cpus=0,1` needs no brackets.
    let document = match key.form {
        Form::Cpus if !text.starts_with('[') => &bracketed,
        _ => &document,
    };
    let takes_text = matches!(
        key.form,
        Form::Text
            | Form::FolderName
            | Form::DomainName
            | Form::Choice(_)
            | Form::Path
            | Form::HttpPath
            | Form::Address
    );
    let parsed = DeTable::parse(document).ok();
    // A line break in the text could smuggle in a second key.
    let single = parsed.as_ref().filter(|table| table.get_ref().len() == 1);
    let written = single.and_then(|table| table.get_ref().values().next()).map(|it| it.get_ref());
    match written {
        Some(value) if value.is_str() || !takes_text => value::read(key, value, syntax),
        _ => value::read(key, &bare, syntax),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dnslab_traffic::Rate;
    use dnslab_wire::EdnsOption;

    use super::*;
    use crate::file::{Host, Value};

    #[test]
    fn bare_words_are_text() {
        let check = |path: &str, text: &str, expected: Value| {
            let key = find(path).unwrap();
            assert_eq!(read(key, text, path), Ok(expected), "for `{path}={text}`");
        };
        check("server.kind", "bind", Value::Text("bind".into()));
        check("server.kind", "\"bind\"", Value::Text("bind".into()));
        check("load.duration", "120s", Value::Duration(Duration::from_secs(120)));
        check("load.clients", "1_000", Value::Count(1_000));
        check("load.rate", "50000", Value::Rate(Rate::Constant(50_000.0)));
        let steps = Rate::Steps { rates: vec![1.0, 2.5], every: Duration::from_secs(5) };
        check("load.rate", "steps:1,2.5/5s", Value::Rate(steps));
        let option = |code, data: &[u8]| EdnsOption { code, data: data.to_vec() };
        let two = Value::EdnsOptions(vec![option(65_001, &[0xc0, 0xff, 0xee]), option(3, &[])]);
        check("load.edns_options", "65001:c0FFee,3:", two.clone());
        check("load.edns_options", "[\"65001:c0ffee\", \"3:\"]", two);
        check("load.padding", "true", Value::Count(128));
        check("load.padding", "468", Value::Count(468));
        check("load.tls_versions", "1.2", Value::Text("1.2".into()));
        check("load.http_path", "/dns-query", Value::Text("/dns-query".into()));
        check("server.cpus", "0,1", Value::Cpus(vec![0, 1]));
        check("server.cpus", "[0, 1]", Value::Cpus(vec![0, 1]));
        check("server.cpus", "3", Value::Cpus(vec![3]));
        check("server.address", "::1", Value::Address(Host::Address("::1".parse().unwrap()), None));
        let name = Host::Name("ns1.example".to_owned());
        check("server.address", "ns1.example:5300", Value::Address(name, Some(5300)));
        check("name", "2024", Value::Text("2024".into()));
        check("repeat.margin", "5%", Value::Number(0.05));
        check("server.extra", "a = 1\nb = 2", Value::Text("a = 1\nb = 2".into()));
        check("load.dnssec_ok", "true", Value::Boolean(true));
    }

    #[test]
    fn wrong_values_are_refused() {
        let check =
            |path: &str, text: &str| assert!(read(find(path).unwrap(), text, path).is_err());
        check("load.clients", "0");
        check("load.clients", "many");
        check("load.clients", "4\nx = 5");
        check("load.clients", "");
        check("load.duration", "10");
        check("server.cpus", "0,0");
        check("load.dnssec_ok", "yes");
        check("load.rate", "ramp:1/5s");
        check("load.edns_options", "65536:00");
        check("load.edns_options", "1:0");
        check("load.padding", "0");
        check("load.http_path", "dns");
    }
}
