//! The reports of a sample of each format of the results, byte for byte.

use std::fs;
use std::path::Path;

use dnslab_measure::{ResultsDirectory, RunRecord};
use dnslab_report::write_report;
use serde_json::Value;

use crate::{FILES, copy, read};

pub(crate) const SAMPLES: [&str; 5] = ["v1", "v2", "v3", "v4", "v5"];

/// The parts of the page that `npm run build` makes. A marker stands for each in the golden page, so that
/// a change of the bundle alone leaves it as it is.
const BUNDLE: [(&str, &str); 4] = [
    ("page.js", include_str!("../../page/dist/page.js")),
    ("page.js.sha256", include_str!("../../page/dist/page.js.sha256")),
    ("page.css", include_str!("../../page/dist/page.css")),
    ("page.css.sha256", include_str!("../../page/dist/page.css.sha256")),
];

#[test]
fn samples_of_every_format_are_read() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut differences = String::new();
    for version in SAMPLES {
        let folder = tempfile::tempdir().unwrap();
        copy(&tests.join("samples").join(version), folder.path());
        write_report(&ResultsDirectory::open(folder.path()).unwrap()).unwrap();
        let [page, others @ ..] = read(folder.path());
        let has: &[&str] = match version {
            // A failed run with its log, and a server with its configuration.
            "v1" | "v2" | "v3" => &["could not listen on TCP socket", "listen-on port 5300"],
            // Rounds in slices, a common load, pairs.
            "v4" => &["turns of 50.0 ms", "tcp-clients"],
            // Evidence and reasons as figures.
            _ => &["queries in flight, with a window of 10", "answers were not NXDOMAIN"],
        };
        for text in has {
            assert!(page.contains(text), "{version}: {text}");
        }
        let made = std::iter::once(without_bundle(page)).chain(others);
        for (name, made) in FILES.iter().zip(made) {
            let golden = tests.join("golden").join(version).join(name);
            differences.extend(difference(&golden, &made));
        }
    }
    assert!(
        differences.is_empty(),
        "{differences}to write these files anew: `DNSLAB_BLESS=1 cargo test -p dnslab-report golden`"
    );
}

/// Keys of older records, and their names of today.
const RENAMED: [(&str, &str); 4] = [
    ("horizon_ns", "batch_delay_ns"),
    ("laboratory", "testbed"),
    ("limit", "bottleneck"),
    ("most_queries", "max_queries"),
];

/// A key whose name changed without an alias would be ignored, where it has a default.
#[test]
fn each_key_of_an_older_record_is_read() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    for version in SAMPLES {
        let runs = fs::read_dir(samples.join(version).join("runs")).unwrap();
        for run in runs.map(|run| run.unwrap().path()) {
            let text = fs::read_to_string(run.join("record.json")).unwrap();
            let record: RunRecord = serde_json::from_str(&text).unwrap();
            let written = serde_json::from_str(&text).unwrap();
            let missing = missing("", &written, &serde_json::to_value(&record).unwrap());
            assert!(missing.is_empty(), "{}: {missing:?}", run.display());
        }
    }
}

/// The paths of keys that `written` has and `read` has not. An empty value need not be written again.
fn missing(path: &str, written: &Value, read: &Value) -> Vec<String> {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            let of_key = |(key, value): (&String, &Value)| {
                let path = format!("{path}.{key}");
                let today = RENAMED.iter().find(|(old, _)| old == key).map(|(_, today)| *today);
                match today.and_then(|today| read.get(today)).or_else(|| read.get(key)) {
                    Some(found) => missing(&path, value, found),
                    None if is_empty(value) => Vec::new(),
                    None => vec![path],
                }
            };
            written.iter().flat_map(of_key).collect()
        }
        (Value::Array(written), Value::Array(read)) => {
            written.iter().zip(read).flat_map(|(old, new)| missing(path, old, new)).collect()
        }
        // Some texts became lists.
        (Value::Null, _)
        | (_, Value::String(_) | Value::Number(_) | Value::Bool(_))
        | (Value::String(_), Value::Array(_)) => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Where a text first differs from the committed file, `None` if nowhere. With `DNSLAB_BLESS` set,
/// the text is written to the file first.
fn difference(path: &Path, made: &str) -> Option<String> {
    if std::env::var_os("DNSLAB_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, made).unwrap();
    }
    let golden = fs::read_to_string(path).unwrap_or_default();
    if golden == made {
        return None;
    }
    let (mut golden, mut made) = (golden.split('\n'), made.split('\n'));
    for number in 1.. {
        let lines = [golden.next(), made.next()];
        if lines[0] != lines[1] {
            let [golden, made] = around(lines.map(|line| line.unwrap_or("(the end of the file)")));
            let path = path.display();
            return Some(format!("{path}:{number}:\n  golden: {golden}\n  made:   {made}\n"));
        }
    }
    unreachable!("different texts have a line that differs")
}

/// Two lines around the first character that differs: those of charts have thousands.
fn around(lines: [&str; 2]) -> [String; 2] {
    let same = lines[0].chars().zip(lines[1].chars()).take_while(|(one, two)| one == two).count();
    lines.map(|line| line.chars().skip(same.saturating_sub(60)).take(160).collect())
}

/// The page with a marker for each part of the bundle.
fn without_bundle(page: String) -> String {
    BUNDLE.iter().fold(page, |page, (name, part)| {
        let part = part.trim_end();
        assert_eq!(page.matches(part).count(), 1, "{name} is once in the page");
        page.replace(part, &format!("[{name}]"))
    })
}
