//! Any text is read as an experiment file without panic; what is accepted can be written and read
//! again, but for the secret of a TSIG key, which is not written.
#![no_main]

use dnslab_settings::{Variant, check_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(experiment) = check_text(text, &[]) {
        // The secret of a key is not written out.
        let is_secret = |variant: &Variant| variant.load.tsig.is_some();
        if experiment.variants.iter().any(is_secret) {
            return;
        }
        let again = check_text(&experiment.to_toml(), &[]);
        assert_eq!(again.as_ref(), Ok(&experiment));
    }
});
