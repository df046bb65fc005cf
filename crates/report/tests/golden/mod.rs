//! The reports of a sample of the results, byte for byte.

use std::fs;
use std::path::Path;

use dnslab_report::write_report;
use dnslab_results::ResultsDirectory;

use crate::{FILES, copy, read};

pub(crate) const SAMPLES: [&str; 1] = ["v1"];

/// The parts of the page that `npm run build` makes. A marker stands for each in the golden page, so that
/// a change of the bundle alone leaves it as it is.
const BUNDLE: [(&str, &str); 4] = [
    ("page.js", include_str!("../../page/dist/page.js")),
    ("page.js.sha256", include_str!("../../page/dist/page.js.sha256")),
    ("page.css", include_str!("../../page/dist/page.css")),
    ("page.css.sha256", include_str!("../../page/dist/page.css.sha256")),
];

#[test]
fn the_report_of_a_sample_is_as_ever() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut differences = String::new();
    for version in SAMPLES {
        let folder = tempfile::tempdir().unwrap();
        copy(&tests.join("samples").join(version), folder.path());
        write_report(&ResultsDirectory::open(folder.path()).unwrap()).unwrap();
        let [page, others @ ..] = read(folder.path());
        // Evidence and reasons as figures.
        let has = ["queries in flight, with a window of 10", "answers were not NXDOMAIN"];
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
