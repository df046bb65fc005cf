//! Files that released versions wrote, of each form and format. They are read for ever, and nothing writes them again:
//! what is read and written is the same, octet by octet, so that no key is lost and none is made up.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dnslab_figures::{AnswerRecords, AnswersError};
use dnslab_record::{
    CAPACITY_FORMAT, COMPARISON_FORMAT, CaseId, PROFILE_FORMAT, RECORD_FORMAT, SESSION_FORMAT,
};
use dnslab_results::{ResultsDirectory, ResultsError};
use serde_json::Value;

/// One folder for each format that a released version wrote.
const FORMATS: [&str; 1] = ["1"];

fn sample(format: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frozen").join(format)
}

/// The files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = PathBuf::from(entry.file_name().unwrap());
        if entry.is_dir() {
            found.extend(files(&entry).into_iter().map(|(path, octets)| (name.join(path), octets)));
        } else {
            found.insert(name, fs::read(&entry).unwrap());
        }
    }
    found
}

/// Reads all of a results directory, and writes it into another one.
fn written_again(from: &ResultsDirectory, to: &Path) -> Result<(), ResultsError> {
    let to = ResultsDirectory::create(to, &from.session()?)?;
    for record in from.runs()? {
        to.write_run(&record)?;
        let case = CaseId { variant: record.variant.clone(), repetition: record.repetition };
        let answers = from.open_answers(&case)?.expect("each run of the sample has answers");
        let mut records = AnswerRecords::open(answers).unwrap();
        let mut file = to.create_answers(&case)?;
        while let Some(record) = records.next_record().unwrap() {
            std::io::Write::write_all(&mut file, &record.octets()).unwrap();
        }
    }
    for comparison in from.answer_comparisons()? {
        to.write_answer_comparison(&comparison)?;
    }
    to.write_capacity(&from.capacity()?.expect("the sample has a search"))?;
    to.write_cpu_profiles(&from.cpu_profiles()?.expect("the sample has samples of the CPU"))
}

#[test]
fn what_released_versions_wrote_is_read_and_written_as_it_was() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        let sample = sample(format);
        written_again(&ResultsDirectory::open(&sample).unwrap(), &copy).unwrap();
        let (expected, made) = (files(&sample), files(&copy));
        let names = made.keys().collect::<Vec<_>>();
        assert_eq!(expected.keys().collect::<Vec<_>>(), names, "{format}");
        for (path, octets) in expected {
            assert!(made[&path] == octets, "format {format}: {} is another one", path.display());
        }
    }
}

/// A format of this version is in the samples, and a later one is refused by its number.
#[test]
fn each_format_has_a_sample_and_a_later_one_is_refused() {
    let latest = FORMATS.last().unwrap();
    for (name, format) in [
        ("session.json", SESSION_FORMAT),
        ("runs/target-1/record.json", RECORD_FORMAT),
        ("runs/target-1/answers-other.json", COMPARISON_FORMAT),
        ("capacity.json", CAPACITY_FORMAT),
        ("cpu-profile.json", PROFILE_FORMAT),
    ] {
        let text = fs::read_to_string(sample(latest).join(name)).unwrap();
        let mut later: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(later["format"], format, "no sample of {name} has this format: add a folder");
        later["format"] = (format + 1).into();
        let folder = tempfile::tempdir().unwrap();
        copy(&sample(latest), folder.path());
        fs::write(folder.path().join(name), later.to_string()).unwrap();
        let error = all_read(folder.path()).unwrap_err().to_string();
        assert!(error.contains(&(format + 1).to_string()), "{name}: {error}");
    }
    let mut answers = fs::read(sample(latest).join("runs/target-1/answers.bin")).unwrap();
    answers[8] += 1;
    let error = AnswerRecords::open(&answers[..]).unwrap_err();
    assert!(matches!(error, AnswersError::Newer { .. }), "{error}");
}

fn all_read(folder: &Path) -> Result<(), ResultsError> {
    let results = ResultsDirectory::open(folder)?;
    results.session()?;
    results.runs()?;
    results.answer_comparisons()?;
    results.capacity()?;
    results.cpu_profiles().map(drop)
}

fn copy(from: &Path, to: &Path) {
    for (path, octets) in files(from) {
        let path = to.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, octets).unwrap();
    }
}
