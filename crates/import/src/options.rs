//! What the command line of dnsperf asks for.

use std::collections::BTreeMap;

/// The options of dnsperf that a record holds. Those that were not given are as dnsperf's manual has them.
#[derive(Clone, Debug, PartialEq)]
pub struct DnsperfOptions {
    /// `-s`.
    pub server: String,
    /// `-p`; `None` for the port of the transport.
    pub port: Option<u16>,
    /// `-m`, in the words of dnslab: `udp`, `tcp`, `dot` or `doh2`.
    pub transport: String,
    /// `-c`.
    pub clients: u32,
    /// `-T`.
    pub threads: u32,
    /// `-q`, over all clients.
    pub window: u64,
    /// `-Q`, queries per second.
    pub max_qps: Option<f64>,
    /// `-t`, nanoseconds.
    pub timeout_ns: u64,
    /// `-l`, nanoseconds; `None` where the file ends the load.
    pub limit_ns: Option<u64>,
    /// `-S`, nanoseconds.
    pub interval_ns: Option<u64>,
    /// `-d`; empty for the standard input.
    pub queries: String,
    /// `-O doh-method`.
    pub http_method: String,
    /// The options that say what is added to queries and how, as they were given.
    pub further: Vec<String>,
    /// `-O num-queries-per-conn`.
    pub queries_per_connection: Option<u64>,
    /// `-O latency-histogram`.
    pub has_histogram: bool,
}

impl Default for DnsperfOptions {
    fn default() -> Self {
        Self {
            server: "127.0.0.1".to_owned(),
            port: None,
            transport: "udp".to_owned(),
            clients: 1,
            threads: 1,
            window: 100,
            max_qps: None,
            timeout_ns: 5_000_000_000,
            limit_ns: None,
            interval_ns: None,
            queries: String::new(),
            http_method: String::new(),
            further: Vec::new(),
            queries_per_connection: None,
            has_histogram: false,
        }
    }
}

/// Options that take a value, in the next word or in the rest of their own.
const WITH_VALUE: &str = "fmspaxdcTnlbtEyqQSO";

impl DnsperfOptions {
    /// Reads the words of a command line, the name of the program left out. What cannot be read is as if it
    /// had not been given: the load is over, and its figures are known.
    #[must_use]
    pub fn read(words: &[String]) -> Self {
        let mut own = Self::default();
        let mut long: BTreeMap<String, String> = BTreeMap::new();
        each_option(words, |option, value| match (option, value) {
            ('O', Some(value)) => {
                let (name, value) = value.split_once('=').unwrap_or((value, ""));
                long.insert(name.to_owned(), value.to_owned());
            }
            _ => own.take(option, value.unwrap_or_default()),
        });
        own.queries_per_connection =
            long.get("num-queries-per-conn").and_then(|number| number.parse().ok());
        let histogram = long.get("latency-histogram").map(String::as_str);
        own.has_histogram = matches!(histogram, Some("" | "yes" | "true"));
        if own.transport == "doh2" {
            // GET is dnsperf's default.
            let method = long.get("doh-method").map_or("GET", String::as_str);
            own.http_method = method.to_ascii_uppercase();
        }
        own.clients = own.clients.max(1);
        // dnsperf starts no more threads than clients.
        own.threads = own.threads.clamp(1, own.clients);
        own
    }

    fn take(&mut self, option: char, value: &str) {
        fn set<T: std::str::FromStr>(place: &mut T, value: &str) {
            if let Ok(value) = value.parse() {
                *place = value;
            }
        }
        match option {
            's' => self.server = value.to_owned(),
            'p' => self.port = value.parse().ok(),
            'm' => {
                self.transport = match value {
                    // dnsperf 2.3 to 2.5 called it so.
                    "tls" => "dot".to_owned(),
                    "doh" => "doh2".to_owned(),
                    other => other.to_owned(),
                }
            }
            'c' => set(&mut self.clients, value),
            'T' => set(&mut self.threads, value),
            'q' => set(&mut self.window, value),
            'Q' => self.max_qps = value.parse().ok().filter(|qps: &f64| *qps > 0.0),
            't' => self.timeout_ns = seconds_ns(value).unwrap_or(self.timeout_ns),
            'l' => self.limit_ns = seconds_ns(value),
            'S' => self.interval_ns = seconds_ns(value).filter(|ns| *ns > 0),
            'd' => self.queries = value.to_owned(),
            'e' | 'D' | 'u' | 'B' => self.further.push(format!("-{option}")),
            'E' | 'y' | 'a' | 'b' => self.further.push(format!("-{option} {value}")),
            _ => {}
        }
    }

    /// Address and port, where the output does not name them.
    #[must_use]
    pub fn target(&self) -> String {
        let port = self.port.unwrap_or(match self.transport.as_str() {
            "dot" | "doq" => 853,
            "doh2" => 443,
            _ => 53,
        });
        match self.server.contains(':') {
            true => format!("[{}]:{port}", self.server),
            false => format!("{}:{port}", self.server),
        }
    }
}

/// Calls `take` for each option with its value, as getopt(3) reads them.
fn each_option<'a>(words: &'a [String], mut take: impl FnMut(char, Option<&'a str>)) {
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let Some(mut rest) = word.strip_prefix('-') else { continue };
        while let Some(option) = rest.chars().next() {
            rest = &rest[option.len_utf8()..];
            if WITH_VALUE.contains(option) {
                take(option, if rest.is_empty() { words.next() } else { Some(rest) });
                break;
            }
            take(option, None);
        }
    }
}

/// A command line without the secrets of TSIG keys: in the value of `-y`, what follows the last colon, or all
/// if there is none, is masked.
pub(super) fn without_secrets(words: &[String]) -> Vec<String> {
    // Which option the next word is the value of, if any.
    let mut value_of = None;
    let shown = words.iter().map(|word| {
        match value_of.take() {
            Some('y') => return masked(word),
            Some(_) => return word.clone(),
            None => {}
        }
        // The first option of the word that takes a value has the rest of the word.
        let options = word.strip_prefix('-').unwrap_or_default();
        let Some((at, option)) =
            options.char_indices().find(|(_, letter)| WITH_VALUE.contains(*letter))
        else {
            return word.clone();
        };
        let (before, value) = options.split_at(at + 1);
        value_of = value.is_empty().then_some(option);
        if option == 'y' { format!("-{before}{}", masked(value)) } else { word.clone() }
    });
    shown.collect()
}

fn masked(value: &str) -> String {
    let (before, secret) =
        value.rsplit_once(':').map_or(("", value), |(key, secret)| (key, secret));
    let colon = if value.contains(':') { ":" } else { "" };
    format!("{before}{colon}{}", "*".repeat(secret.chars().count()))
}

/// A time in seconds with up to nine digits behind the point, as nanoseconds: exact. Up to 31 years.
pub(super) fn seconds_ns(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    let is_number = is_digits(whole) && is_digits(part) && !(whole.is_empty() && part.is_empty());
    if !is_number || part.len() > 9 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u64 = if part.is_empty() { 0 } else { format!("{part:0<9}").parse().ok()? };
    (whole <= 10_000_000_000).then(|| whole.checked_mul(1_000_000_000)?.checked_add(part))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        let options = |line: &str| DnsperfOptions::read(&words(line));
        assert_eq!(options(""), DnsperfOptions::default());
        let read = options("-s ::1 -p853 -m dot -c 4 -T9 -q40 -Q3000 -t0.5 -l 2 -S.5 -eD -d q.txt");
        assert_eq!((read.clients, read.threads, read.window), (4, 4, 40));
        assert_eq!((read.max_qps, read.timeout_ns), (Some(3_000.0), 500_000_000));
        assert_eq!((read.limit_ns, read.interval_ns), (Some(2_000_000_000), Some(500_000_000)));
        assert_eq!((read.target().as_str(), read.transport.as_str()), ("[::1]:853", "dot"));
        assert_eq!((read.queries.as_str(), read.further.join(" ").as_str()), ("q.txt", "-e -D"));
        let doh = options("-m doh -O num-queries-per-conn=7");
        assert_eq!((doh.transport.as_str(), doh.http_method.as_str()), ("doh2", "GET"));
        assert_eq!((doh.queries_per_connection, doh.target().as_str()), (Some(7), "127.0.0.1:443"));
        // What makes no sense is as if it had not been given.
        let wrong = options("-c x -q -Q 0 -p 70000 - -l");
        assert_eq!(wrong, DnsperfOptions::default());
    }

    #[test]
    fn no_secret_is_kept() {
        let check = |line: &str, expected: &str| {
            assert_eq!(without_secrets(&words(line)).join(" "), expected);
        };
        check("-y hmac-sha256:key:c2Vj -c 4", "-y hmac-sha256:key:**** -c 4");
        check("-ykey:c2Vj -e", "-ykey:**** -e");
        check("-ey key:c2Vj", "-ey key:****");
        check("-s y -d -y -y c2Vj", "-s y -d -y -y ****");
        check("-c 4 -d q.txt", "-c 4 -d q.txt");
    }

    #[test]
    fn seconds_are_exact() {
        for (text, ns) in [("0.000040", 40_000), ("2", 2_000_000_000), (".5", 500_000_000)] {
            assert_eq!(seconds_ns(text), Some(ns));
        }
        assert_eq!(seconds_ns("1795570587.008517"), Some(1_795_570_587_008_517_000));
        for text in ["", ".", "-1", "1e3", "nan", "1.0000000000", "99999999999", "1.-5"] {
            assert_eq!(seconds_ns(text), None, "{text}");
        }
    }
}
