//! The keys as a JSON schema, for editors.

use serde_json::{Map, Value, json};

use crate::experiment::keys;
use crate::keys::VARIANT_NAME;
use crate::{DefaultValue, HOST_KEYS, Key, PUBLISHED_KEYS};

/// The JSON schema (draft 2020-12) of an experiment file, with a line break at the end.
///
/// It knows names, types, bounds and meanings. The check alone knows what fits together, except that the
/// schema forbids a rate and a window in one table.
#[must_use]
pub fn schema() -> String {
    let mut experiment = Node::default();
    let mut variant = Node::default();
    variant.insert(VARIANT_NAME.path, &VARIANT_NAME);
    for key in keys() {
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
    let mut published = Node::default();
    PUBLISHED_KEYS.iter().for_each(|key| published.insert(key.path, key));
    let mut published = published.schema();
    published["description"] = json!("A figure that was published of such an experiment");
    whole["properties"]["published"] = json!({
        "description": "What others published of such an experiment",
        "type": "array",
        "items": published,
    });
    let mut host = Node::default();
    HOST_KEYS.iter().for_each(|key| host.insert(key.path, key));
    whole["properties"]["host"] = json!({
        "description": "Hosts, each below its name",
        "type": "object",
        "additionalProperties": host.schema(),
    });
    if let Some(required) = whole["required"].as_array_mut() {
        required.push(json!("variant"));
    }
    let mut text = serde_json::to_string_pretty(&whole).expect("a schema has string keys only");
    text.push('\n');
    text
}

#[derive(Default)]
struct Node<'a> {
    /// By their last part.
    keys: Vec<(&'a str, &'a Key)>,
    tables: Vec<(&'a str, Node<'a>)>,
}

impl<'a> Node<'a> {
    /// `path` is relative to this table.
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
        let is_required = |key: &Key| matches!(key.default, DefaultValue::Required);
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

fn key_schema(key: &Key) -> Value {
    let mut schema = key.kind.schema();
    schema["description"] = json!(key.meaning());
    let default = key.default_value().map(|value| key.kind.write(&value));
    if let Some(default) = default.and_then(|text| text.parse::<toml::Value>().ok()) {
        schema["default"] = json!(default);
    }
    schema
}
