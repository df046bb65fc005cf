//! The experiments as files of `dnslab run`: the built-in one with other variants.

use dnslab_lab::ServerKind;

use super::plan::Kind;

const DEFAULT: &str = include_str!("../../../../experiments/encryption.toml");
/// Equal variants; the first one is the baseline.
const EQUAL: [&str; 3] = ["a", "b", "c"];
/// Difference of the two delays of [`Kind::Delay`].
pub(crate) const PLANTED_DELAY_NS: f64 = 100_000.0;
/// Share of lost answers of [`Kind::Loss`].
pub(crate) const PLANTED_LOSS: f64 = 0.005;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Experiment {
    /// Text of the experiment file.
    pub(crate) file: String,
    /// Keys that are set for this run alone, `KEY=VALUE`.
    pub(crate) settings: Vec<String>,
}

/// Variants of the default experiment, and comparisons of two variants.
pub(crate) fn default_size() -> (usize, usize) {
    let variants: Vec<&str> = DEFAULT.split("\n[[variant]]\n").skip(1).collect();
    let with = |variant: &&str| {
        let line = variant.lines().find(|line| line.starts_with("compare.with"));
        line.and_then(|line| line.split('#').next()).map_or(1, |line| line.split(',').count())
    };
    // The baseline comes first, and is compared with nothing.
    (variants.len(), variants.iter().skip(1).map(with).sum())
}

/// The lines of a variant without anything planted.
fn plain(server: ServerKind, transport: &str) -> String {
    let load = format!("load.transport = \"{transport}\"");
    match server {
        ServerKind::Embedded => load,
        _ => format!("{load}\nserver.kind = \"{server}\""),
    }
}

impl Experiment {
    /// The default experiment with these variants: name, and keys, one a line. The first is the baseline.
    fn new(variants: &[(&str, String)], settings: &[&str]) -> Self {
        let cases = DEFAULT.find("[[variant]]").unwrap_or(DEFAULT.len());
        let mut file = String::new();
        for line in DEFAULT[..cases].lines() {
            match (line.starts_with("baseline"), variants.first()) {
                (true, Some((name, _))) => file += &format!("baseline = \"{name}\"\n"),
                _ => file += &format!("{line}\n"),
            }
        }
        for (name, keys) in variants {
            file += &format!("\n[[variant]]\nname = \"{name}\"\n{keys}\n");
        }
        Self { file, settings: settings.iter().map(|setting| (*setting).to_owned()).collect() }
    }

    /// `busy` is the line that plants CPU time for each answer, if the kind has any.
    pub(crate) fn of(kind: Kind, transport: &str, busy: &str) -> Self {
        let plain = plain(kind.server(), transport);
        let with = |keys: &str| format!("{plain}\n{keys}");
        let short = ["repeat.runs=2", "common.duration=0s"];
        match kind {
            Kind::Same | Kind::SameBind | Kind::SameNsd => {
                Self::new(&EQUAL.map(|name| (name, plain.clone())), &[])
            }
            Kind::SameQuarter => Self::new(
                &EQUAL.map(|name| (name, plain.clone())),
                &["load.duration=150ms", "common.duration=100ms", "repeat.runs=7"],
            ),
            Kind::Cost3 | Kind::Cost5 | Kind::Cost10 | Kind::Cost5Bind | Kind::Cost5Nsd => {
                let busy = with(busy);
                Self::new(&[("plain", plain), ("busy", busy)], &[])
            }
            Kind::Delay => {
                let [sooner, later] =
                    ["100us", "200us"].map(|delay| with(&format!("server.delay = \"{delay}\"")));
                Self::new(&[("sooner", sooner), ("later", later)], &[])
            }
            Kind::Loss => {
                // A closed loop stands still for the time-out after each loss.
                let open = with("load.rate = 20_000");
                let lossy = format!("{open}\nserver.loss = \"0.5%\"");
                Self::new(&[("plain", open), ("lossy", lossy)], &["common.duration=0s"])
            }
            Kind::LimitServerCpu => Self::new(&[("a", with("server.busy = \"100us\""))], &short),
            Kind::LimitWindow => Self::new(&[("a", with("server.delay = \"20ms\""))], &short),
            Kind::LimitNetwork => {
                // The loopback interface loses nothing, so this needs hosts, which need root.
                let lossy = [&short[..], &["lab.hosts=auto", "link.server.loss=5%"]].concat();
                Self::new(&[("a", with("load.rate = 5_000"))], &lossy)
            }
            Kind::LimitRate => Self::new(&[("a", with("load.rate = 5_000"))], &short),
            Kind::LimitGenerator => {
                let keys = "load.rate = 20_000\nload.queries_per_connection = 1\n\
                            load.resumption = false";
                Self::new(&[("a", with(keys))], &short)
            }
            Kind::LimitSharedCpu => {
                Self::new(&[("a", with("server.cpus = [0]\nload.cpus = [0]"))], &short)
            }
            Kind::LimitServerThread => {
                // One source port: the kernel gives all datagrams to one socket, and so to one thread.
                let keys = "server.cpus = [0, 1]\nserver.threads = 2\nload.cpus = [1]\n\
                            load.clients = 1\nload.outstanding = 100\nserver.busy = \"20us\"";
                Self::new(&[("a", with(keys))], &short)
            }
        }
    }

    /// Measures what an answer costs without a planted cost.
    pub(crate) fn calibration(server: ServerKind, transport: &str) -> Self {
        Self::new(&[("plain", plain(server, transport))], &["repeat.runs=3", "common.duration=0s"])
    }

    /// Smoke size: it shows that the path works, and measures nothing.
    pub(crate) fn tiny(mut self) -> Self {
        let has_common = !self.settings.iter().any(|setting| setting == "common.duration=0s");
        let lengths = ["load.duration=", "common.duration=", "repeat.runs="];
        self.settings.retain(|setting| !lengths.iter().any(|length| setting.starts_with(length)));
        let common = if has_common { "common.duration=100ms" } else { "common.duration=0s" };
        let tiny = ["load.duration=100ms", "load.warm_up=50ms", "repeat.runs=3", common];
        self.settings.extend(tiny.map(str::to_owned));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_experiment_has_five_variants() {
        assert_eq!(default_size(), (5, 6));
    }

    #[test]
    fn only_the_variants_differ_from_the_default_experiment() {
        let same = Experiment::of(Kind::Same, "dot", "");
        let head = DEFAULT.split("[[variant]]").next().unwrap();
        for line in head.lines().filter(|line| !line.starts_with("baseline")) {
            assert!(same.file.contains(line), "`{line}` is not in {}", same.file);
        }
        assert!(same.file.contains("\nbaseline = \"a\"\n"), "{}", same.file);
        assert_eq!(same.file.matches("\n[[variant]]\n").count(), 3, "{}", same.file);
        assert_eq!(same.settings, Vec::<String>::new());
        let cost = Experiment::of(Kind::Cost5, "udp", "server.busy = \"230ns\"");
        assert!(cost.file.contains("server.busy = \"230ns\""), "{}", cost.file);
        assert_eq!(cost.file.matches("\n[[variant]]\n").count(), 2, "{}", cost.file);
    }
}
