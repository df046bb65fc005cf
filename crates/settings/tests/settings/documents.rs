//! Generated documents are fresh.

use std::path::Path;

use dnslab_settings::{keys, reference, schema};

/// With `DNSLAB_BLESS` set, writes the document instead.
fn check(path: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("DNSLAB_BLESS").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "{} is stale: write it anew with `DNSLAB_BLESS=1 cargo test -p dnslab-settings`",
        path.display()
    );
}

#[test]
fn generated_documents_are_fresh() {
    check("docs/EXPERIMENT.md", &reference());
    check("docs/experiment.schema.json", &schema());
}

#[test]
fn every_key_is_in_the_documents() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    for key in keys() {
        assert!(reference().contains(&format!("| `{}` |", key.path)), "{}", key.path);
        let pointer = format!("/properties/{}", key.path.replace('.', "/properties/"));
        let found = schema.pointer(&pointer).unwrap_or_else(|| panic!("no {pointer}"));
        assert_eq!(found["description"], key.meaning());
        let within = format!("/properties/variant/items{pointer}");
        // Both have a key `name`, of different things.
        if key.path != "name" {
            assert_eq!(schema.pointer(&within).is_some(), key.is_overridable(), "{}", key.path);
        }
    }
}
