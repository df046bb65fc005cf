//! The table of keys as a JSON schema, for editors.

use serde_json::{Map, Value, json};

use super::{Form, KEYS, Key, Preset, VARIANT_NAME};

/// The JSON schema (draft 2020-12) of an experiment file, with a line break at the end.
///
/// It knows names, types, bounds and meanings; what only makes sense together is left to the
/// check, but for a rate and a window in one table.
#[must_use]
pub fn schema() -> String {
    let mut experiment = Node::default();
    let mut variant = Node::default();
    variant.insert(VARIANT_NAME.path, &VARIANT_NAME);
    for key in KEYS {
        experiment.insert(key.path, key);
        if key.is_overridable() {
            variant.insert(key.path, key);
        }
    }
    let mut whole = experiment.schema();
    whole["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    whole["title"] = json!("dnslab experiment");
    let mut variant = variant.schema();
    variant["description"] = json!("One case: overrides keys of the experiment");
    whole["properties"]["variant"] = json!({
        "description": "The cases that are compared",
        "type": "array",
        "minItems": 1,
        "items": variant,
    });
    if let Some(required) = whole["required"].as_array_mut() {
        required.push(json!("variant"));
    }
    let mut text = serde_json::to_string_pretty(&whole).expect("a schema has string keys only");
    text.push('\n');
    text
}

/// A table of the file: keys, and tables below it.
#[derive(Default)]
struct Node<'a> {
    /// Keys by their last part.
    keys: Vec<(&'a str, &'a Key)>,
    /// Tables by their name.
    tables: Vec<(&'a str, Node<'a>)>,
}

impl<'a> Node<'a> {
    /// Puts a key at the path below this table.
    fn insert(&mut self, path: &'a str, key: &'a Key) {
        let Some((table, rest)) = path.split_once('.') else {
            self.keys.push((path, key));
            return;
        };
        let at = self.tables.iter().position(|(name, _)| *name == table).unwrap_or_else(|| {
            self.tables.push((table, Self::default()));
            self.tables.len() - 1
        });
        self.tables[at].1.insert(rest, key);
    }

    /// The schema of this table.
    fn schema(&self) -> Value {
        let mut properties = Map::new();
        for (name, key) in &self.keys {
            properties.insert((*name).to_owned(), key_schema(key));
        }
        for (name, table) in &self.tables {
            properties.insert((*name).to_owned(), table.schema());
        }
        let mut schema = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": properties,
        });
        let is_required = |key: &Key| key.preset == Preset::Required;
        let required: Vec<&str> =
            self.keys.iter().filter(|(_, key)| is_required(key)).map(|(name, _)| *name).collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        let has = |path| self.keys.iter().any(|(_, key)| key.path == path);
        if has("load.rate") && has("load.outstanding") {
            schema["not"] = json!({ "required": ["rate", "outstanding"] });
        }
        schema
    }
}

/// The schema of one key.
fn key_schema(key: &Key) -> Value {
    let mut schema = form_schema(key.form);
    schema["description"] = json!(key.meaning);
    if let Preset::Value(text) = key.preset
        && let Ok(value) = text.parse::<toml::Value>()
    {
        schema["default"] = json!(value);
    }
    schema
}

/// A number as [`dnslab_wire::units::number::read`] takes it, from 0 on.
const NUMBER: &str = r"\+?([0-9_]+(\.[0-9_]*)?|\.[0-9_]+)([eE][+-]?[0-9_]+)?";

/// The schema of a form.
fn form_schema(form: Form) -> Value {
    match form {
        Form::Count { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Form::Duration { .. } => json!({
            "type": "string",
            "pattern": format!(r"^\s*{NUMBER}\s*(ns|us|ms|s|m|h)\s*$"),
        }),
        Form::Rate => json!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0, "maximum": Form::HIGHEST_RATE },
            { "type": "string", "pattern": format!(r"^\s*({NUMBER}|steps:.*/.*|ramp:.*\.\..*/.*)\s*$") },
        ]}),
        Form::Share => json!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": format!(r"^\s*{NUMBER}\s*%?\s*$") },
        ]}),
        Form::Text | Form::Path | Form::Address | Form::DomainName => {
            json!({ "type": "string", "minLength": 1 })
        }
        Form::FolderName => json!({
            "type": "string", "pattern": "^[a-z0-9-]+$", "maxLength": Form::MAX_FOLDER,
        }),
        Form::Choice(words) => json!({ "enum": words }),
        Form::Words(words) => json!({
            "type": "array",
            "minItems": 1,
            "uniqueItems": true,
            "items": { "enum": words },
        }),
        Form::Cpus => json!({
            "type": "array",
            "uniqueItems": true,
            "items": { "type": "integer", "minimum": 0, "maximum": Form::HIGHEST_CPU },
        }),
        Form::Boolean => json!({ "type": "boolean" }),
        Form::EdnsOptions => json!({
            "type": "array",
            "items": { "type": "string", "pattern": "^[0-9]+:([0-9a-fA-F]{2})*$" },
        }),
        Form::Padding => json!({ "anyOf": [
            { "type": "boolean" },
            { "type": "integer", "minimum": 1, "maximum": Form::MAX_PADDING },
        ]}),
        Form::HttpPath => json!({ "type": "string", "pattern": "^/[A-Za-z0-9._~/-]*$" }),
    }
}
