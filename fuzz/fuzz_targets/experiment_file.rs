//! Any text is read as an experiment file without panic; what is accepted can be written and read
//! again, but for the secret of a TSIG key, which is not written.
#![no_main]

use dnslab_experiment::{Tsig, Variant};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(experiment) = dnslab_experiment::check_text(text, &[]) {
        let is_secret = |it: &Variant| matches!(it.load.tsig, Some(Tsig::Written(_)));
        if experiment.variants.iter().any(is_secret) {
            return;
        }
        let again = dnslab_experiment::check_text(&experiment.to_toml(), &[]);
        assert_eq!(again.ok(), Some(experiment));
    }
});
