//! Any text is read as an experiment file without panic; what is accepted can be written and read
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(experiment) = dnslab_experiment::check_text(text, &[]) {
        let again = dnslab_experiment::check_text(&experiment.to_toml(), &[]);
        assert_eq!(again.ok(), Some(experiment));
    }
});
