//! A link that the kernel emulates: a pair of devices with netem (tc-netem(8)) at both ends.

use std::process::Command;

use dnslab_wire::units::share;

use super::devices::veth;
use super::host::Host;
use super::ip::{ip, run_ip};
use super::link_settings::LinkSettings;
use crate::error::LabError;
use crate::network::Visit;

/// Packets that netem holds before it drops further ones. Packets on their way count, so its default of 1,000
/// would bound the rate at 1,000 per delay.
const LIMIT: u32 = 1_000_000;

pub(super) struct Draws {
    /// `None` where tc knows no seed, and netem has one of its own.
    pub(super) seed: Option<u64>,
}

/// Makes a pair of devices with netem at both ends; `None`, and nothing left, where the kernel has no netem.
pub(super) fn carries_netem(
    pair: [&Host; 2],
    devices: [&str; 2],
    settings: &LinkSettings,
    seed: u64,
) -> Result<Option<Draws>, LabError> {
    veth(pair, devices)?;
    let mut draws = Draws { seed: Some(seed) };
    for (way, (host, device)) in (0..).zip(pair.into_iter().zip(devices)) {
        // A packet of many segments would be delayed, lost and counted as one.
        let lines = [format!("link set {device} gso_max_segs 1")];
        ip(&host.network, &lines, None)?;
        // An older tc does not know the seed: its netem draws for itself.
        let added = [Some(seed ^ way), None]
            .into_iter()
            .find(|seed| add(host, device, &netem(settings, *seed)).is_ok());
        match added {
            Some(Some(_)) => {}
            Some(None) => draws.seed = None,
            None => {
                ip(&pair[0].network, &[format!("link delete {}", devices[0])], None)?;
                return Ok(None);
            }
        }
    }
    Ok(Some(draws))
}

/// Fails with what tc said.
fn add(host: &Host, device: &str, words: &[String]) -> Result<(), String> {
    let mut command = Command::new("tc");
    command.args(["qdisc", "add", "dev", device, "root", "netem"]).args(words);
    let _visit = Visit::to(&host.network).map_err(|error| error.to_string())?;
    run_ip(&mut command)
}

/// The words of tc-netem(8) for these settings.
fn netem(settings: &LinkSettings, seed: Option<u64>) -> Vec<String> {
    let LinkSettings { delay_ns, jitter_ns, loss, rate_bps } = settings;
    let mut words = vec!["limit".to_owned(), LIMIT.to_string()];
    words.extend(["delay".to_owned(), format!("{delay_ns}ns"), format!("{jitter_ns}ns")]);
    words.extend(["loss".to_owned(), share::write(*loss)]);
    if let Some(rate) = rate_bps {
        words.extend(["rate".to_owned(), format!("{rate}bit")]);
    }
    if let Some(seed) = seed {
        words.extend(["seed".to_owned(), seed.to_string()]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netem_is_told_the_settings_its_limit_and_where_it_can_the_seed() {
        let settings = LinkSettings {
            delay_ns: 10_000_000,
            jitter_ns: 500_000,
            loss: 0.25,
            rate_bps: Some(8_000_000),
        };
        let without = "limit 1000000 delay 10000000ns 500000ns loss 25% rate 8000000bit";
        assert_eq!(netem(&settings, None).join(" "), without);
        assert_eq!(netem(&settings, Some(7)).join(" "), format!("{without} seed 7"));
    }
}
