//! Results directories of strangers.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use dnslab_figures::AnswerRecords;
use rustix::fs::{CWD, FileType, Mode, mknodat};

/// A results directory of two runs with a file beside it that is none of its business.
struct Stranger {
    folder: tempfile::TempDir,
    results: ResultsDirectory,
}

impl Stranger {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret"), "mine").unwrap();
        let case = |repetition| CaseId { variant: "udp".to_owned(), repetition };
        let session = Session {
            variants: vec!["udp".to_owned()],
            plan: vec![case(1), case(2)],
            format: SESSION_FORMAT,
            ..Session::default()
        };
        let results = ResultsDirectory::create(&folder.path().join("x"), &session).unwrap();
        let run = results.begin_run(&case(1)).unwrap();
        fs::create_dir(run.join("server")).unwrap();
        Self { folder, results }
    }

    fn secret(&self) -> PathBuf {
        self.folder.path().join("secret")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.results.path().join(name)
    }

    fn first(&self) -> CaseId {
        CaseId { variant: "udp".to_owned(), repetition: 1 }
    }

    /// Puts each kind of thing in the place of a file or folder, and insists that it is refused by name
    /// or replaced, and that nothing outside was changed.
    #[track_caller]
    fn refuses(&self, name: &str, act: impl Fn() -> Result<String, ResultsError>) {
        let path = self.at(name);
        if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path).or(Ok(())) }
            .unwrap();
        let kinds: [(&str, &dyn Fn()); 5] = [
            ("a symbolic link", &|| symlink(self.secret(), &path).unwrap()),
            ("a symbolic link", &|| symlink(self.folder.path(), &path).unwrap()),
            ("a symbolic link", &|| symlink("absent", &path).unwrap()),
            ("a pipe", &|| {
                mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
            }),
            ("a socket", &|| drop(UnixListener::bind(&path).unwrap())),
        ];
        for (what, make) in kinds {
            make();
            let error = match act() {
                Ok(read) => panic!("{name} as {what} was read: {read}"),
                Err(error) => error.to_string(),
            };
            assert!(error.contains(&format!("{} is {what}", path.display())), "{name}: {error}");
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::read_to_string(self.secret()).unwrap(), "mine");
    }
}

fn shown<T: std::fmt::Debug>(read: Result<T, ResultsError>) -> Result<String, ResultsError> {
    read.map(|read| format!("{read:?}"))
}

#[test]
fn no_link_and_no_pipe_is_read() {
    let check = |name: &str, act: &dyn Fn(&ResultsDirectory) -> Result<String, ResultsError>| {
        let stranger = Stranger::new();
        stranger.refuses(name, || act(&stranger.results));
    };
    let case = Stranger::new().first();
    let case = &case;
    check("session.json", &|results| shown(results.session()));
    check("session.json", &|results| shown(ResultsDirectory::open(results.path())));
    check("experiment.toml", &|results| shown(results.open_experiment()));
    check("capacity.json", &|results| shown(results.capacity()));
    for name in ["runs", "runs/udp-1", "runs/udp-1/record.json"] {
        check(name, &|results| shown(results.runs()));
        check(name, &|results| shown(results.has_run(case)));
    }
    for name in ["runs", "runs/udp-1", "runs/udp-1/server"] {
        check(name, &|results| shown(results.files_of(case, "server")));
    }
    check("runs", &|results| shown(results.begin_run(case)));
    check("runs", &|results| shown(results.settle(case)));
    check("runs/udp-1.replaced", &|results| shown(results.settle(case)));
}

#[test]
fn what_is_behind_a_server_s_link_is_not_shown() {
    let stranger = Stranger::new();
    let server = stranger.at("runs/udp-1/server");
    symlink(stranger.secret(), server.join("server.log")).unwrap();
    symlink("../../../../secret", server.join("named.conf")).unwrap();
    mknodat(CWD, server.join("a.log"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    fs::write(server.join("b.log"), "its own").unwrap();
    let files = stranger.results.files_of(&stranger.first(), "server").unwrap();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(
        files,
        [
            ("a.log", "not shown: it is a pipe"),
            ("b.log", "its own"),
            ("named.conf", "not shown: it is a symbolic link"),
            ("server.log", "not shown: it is a symbolic link"),
        ]
    );
}

#[test]
fn a_name_leads_nowhere_else() {
    let stranger = Stranger::new();
    let case = &stranger.first();
    fs::create_dir(stranger.folder.path().join("other")).unwrap();
    fs::write(stranger.folder.path().join("other/a.conf"), "mine").unwrap();
    for name in ["../../../other", "..", ".", "", "/etc", "server/..", "a\0b"] {
        let error = stranger.results.files_of(case, name).unwrap_err().to_string();
        assert!(error.contains("is no name of something in"), "{name}: {error}");
    }
    for variant in ["..", "../x", "/etc/x", "", "a\u{1b}b", "a\u{202e}b", &"a".repeat(201)] {
        let path = stranger.at("session.json");
        let session = Session {
            format: SESSION_FORMAT,
            variants: vec![variant.to_owned()],
            ..Session::default()
        };
        fs::write(&path, json(&session)).unwrap();
        let error = stranger.results.session().unwrap_err().to_string();
        assert!(error.contains("cannot be the name of a variant"), "{variant}: {error}");
        assert!(!error.contains(['\u{1b}', '\u{202e}']), "{error:?}");
    }
}

#[test]
fn nothing_is_written_through_a_link() {
    let stranger = Stranger::new();
    let (results, secret) = (&stranger.results, stranger.secret());
    let pid = std::process::id();
    for link in ["runs.csv", "runs.csv.part", &format!("runs.csv.{pid}.part")] {
        symlink(&secret, stranger.at(link)).unwrap();
        results.write("runs.csv", b"new").unwrap();
        assert_eq!(fs::read_to_string(&secret).unwrap(), "mine", "{link}");
        let facts = fs::symlink_metadata(stranger.at("runs.csv")).unwrap();
        assert!(facts.is_file(), "{link}");
        assert_eq!(fs::read_to_string(stranger.at("runs.csv")).unwrap(), "new");
        fs::remove_file(stranger.at(link)).ok();
    }
    // A second name of a file keeps its content.
    fs::remove_file(stranger.at("runs.csv")).ok();
    fs::hard_link(&secret, stranger.at("runs.csv")).unwrap();
    results.write("runs.csv", b"new").unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "mine");
    // No folder outside is emptied or filled.
    let other = stranger.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a"), "mine").unwrap();
    for (name, act) in [
        ("trial", &(|| results.begin_scratch("trial").map(drop)) as &dyn Fn() -> _),
        ("runs/udp-2", &|| {
            let case = CaseId { variant: "udp".to_owned(), repetition: 2 };
            // A link in the place of a folder is refused where a record is looked for.
            let refused = results.begin_run(&case).unwrap_err().to_string();
            assert!(refused.contains("udp-2 is a symbolic link"), "{refused}");
            Ok(())
        }),
    ] {
        symlink(&other, stranger.at(name)).unwrap();
        act().unwrap();
        assert_eq!(fs::read_dir(&other).unwrap().count(), 1, "{name}");
    }
    assert!(fs::symlink_metadata(stranger.at("trial")).unwrap().is_dir());
    // Nor one that a folder to be removed leads to.
    symlink(&other, stranger.at("trial/link")).unwrap();
    results.remove_scratch("trial").unwrap();
    assert!(other.join("a").exists() && !stranger.at("trial").exists());
}

#[test]
fn the_user_s_own_link_is_followed() {
    let stranger = Stranger::new();
    let link = stranger.folder.path().join("latest");
    symlink(stranger.results.path(), &link).unwrap();
    let results = ResultsDirectory::open(&link).unwrap();
    assert_eq!((results.path(), results.session().unwrap().plan.len()), (link.as_path(), 2));
}

#[test]
fn what_is_larger_than_ours_is_refused_with_its_size() {
    let stranger = Stranger::new();
    for (name, most) in
        [("runs/udp-1/record.json", bounds::RECORDS.file), ("session.json", bounds::SESSION.file)]
    {
        // Nothing of it is on the disk, nor in memory.
        let file = fs::File::create(stranger.at(name)).unwrap();
        file.set_len(most + 1).unwrap();
        let path = stranger.at(name).display().to_string();
        let error = stranger.results.session().and_then(|_| stranger.results.runs());
        let error = error.unwrap_err().to_string();
        let expected =
            format!("{path} has {} octets, of which dnslab reads up to {most} here", most + 1);
        assert!(error.starts_with(&expected), "{error}");
        fs::write(stranger.at(name), "").unwrap();
    }
}

#[test]
fn lists_of_small_values_are_refused_before_they_are_read() {
    let stranger = Stranger::new();
    // Nothing of it could be read: what a record is has not been asked yet. A list that is put aside
    // until the kind of its enum is known took 33 octets of memory for two of the file.
    let (before, most) = (r#"{"format":4,"status":{"x":["#, bounds::RECORDS.values);
    let record = format!("{before}{}", "0,".repeat(most - 3));
    let (before, of_session) = (r#"{"command":["","#, bounds::SESSION.values);
    let session = format!("{before}{}", r#""","#.repeat(of_session - 2));
    for (name, text, most) in
        [("runs/udp-1/record.json", record, most), ("session.json", session, of_session)]
    {
        fs::write(stranger.at(name), text).unwrap();
        let error = stranger.results.session().and_then(|_| stranger.results.runs()).unwrap_err();
        let expected = format!("{name} has {} values; dnslab reads up to {most}", most + 1);
        assert!(error.to_string().ends_with(&expected), "{error}");
        fs::remove_file(stranger.at(name)).unwrap();
    }
}

#[test]
fn files_of_one_kind_share_what_may_be_read() {
    let stranger = Stranger::new();
    let read = |left: &mut Budget| {
        read_versioned::<Session>(&stranger.results.root, SESSION, left, SESSION_FORMAT)
            .map(|session| session.is_some())
            .map_err(|error| error.to_string())
    };
    let text = fs::read(stranger.at("session.json")).unwrap();
    let octets = text.len() as u64;
    let whole = Budget { file: octets, octets: 2 * octets, values: 1_000 };
    let mut left = whole;
    assert_eq!((read(&mut left), read(&mut left)), (Ok(true), Ok(true)));
    let used = (whole.values - left.values) / 2;
    assert!(read(&mut left).unwrap_err().ends_with("dnslab reads up to 0 here"));
    let mut left = Budget { octets: 2 * octets - 1, ..whole };
    assert_eq!(read(&mut left), Ok(true));
    assert!(read(&mut left).unwrap_err().contains(&format!("reads up to {} here", octets - 1)));
    let mut left = Budget { file: octets - 1, ..whole };
    assert!(read(&mut left).unwrap_err().contains(&format!("reads up to {} here", octets - 1)));
    let mut left = Budget { values: 2 * used - 1, ..whole };
    assert_eq!(read(&mut left), Ok(true));
    let expected = format!("has {used} values; dnslab reads up to {}", used - 1);
    assert!(read(&mut left).unwrap_err().ends_with(&expected));
}

#[track_caller]
fn check_session(change: impl FnOnce(&mut Session), expected: &str) {
    let stranger = Stranger::new();
    let mut session = stranger.results.session().unwrap();
    change(&mut session);
    fs::write(stranger.at("session.json"), json(&session)).unwrap();
    let error = stranger.results.session().unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn lists_of_a_session_are_bounded_and_agree() {
    let case = |repetition| CaseId { variant: "udp".to_owned(), repetition };
    let names = |count: usize| (0..count).map(|number| format!("v{number}")).collect::<Vec<_>>();
    check_session(
        |session| session.variants = names(5_000),
        "session.json has 5000 variants; dnslab reads up to 1000",
    );
    check_session(
        |session| session.plan = (0..5_001).map(case).collect(),
        "session.json has 5001 runs; dnslab reads up to 5000",
    );
    let pair = Compared { variant: "udp".to_owned(), against: "udp".to_owned() };
    check_session(
        |session| session.compared = vec![pair.clone(); 2_001],
        "has 2001 pairs of variants to compare; dnslab reads up to 2000",
    );
    check_session(
        |session| session.controls = vec![pair.clone(); 2_001],
        "has 2001 controls; dnslab reads up to 2000",
    );
    check_session(|session| session.plan.push(case(1)), "run udp-1 is planned twice");
    check_session(
        |session| session.variants.push("udp".to_owned()),
        "variant `udp` is there twice",
    );
    check_session(
        |session| session.variants[0] = "tcp".to_owned(),
        "the plan has a run of variant `udp`, which the list of variants lacks",
    );
}

/// The octets of text in a record.
fn text_of(record: &RunRecord) -> usize {
    let mut left = 100_000;
    bounds::check_record(record, &mut left, Path::new("record.json")).unwrap();
    100_000 - left
}

/// Checks that ten thousand octets count where `change` puts them.
#[track_caller]
fn check_text(record: &RunRecord, change: impl FnOnce(&mut RunRecord, String)) {
    let mut changed = record.clone();
    change(&mut changed, "&".repeat(10_000));
    let more = text_of(&changed) - text_of(record);
    assert!((10_000..11_000).contains(&more), "{more}");
    let mut left = 10_000;
    let error = bounds::check_record(&changed, &mut left, Path::new("record.json")).unwrap_err();
    let error = error.to_string();
    assert!(error.ends_with(" octets of text; dnslab reads up to 10000"), "{error}");
}

#[test]
fn what_records_say_in_words_is_bounded_together() {
    let load = serde_json::json!({
        "transport": "udp", "target": "", "clients": 1, "mode": {"mode": "closed", "outstanding": 1},
        "duration_ns": 1, "warm_up_ns": 0, "timeout_ns": 1, "workers": 1, "cpus": [], "queries": "",
        "seed": 1, "send_path": "", "batch_delay_ns": 0,
    });
    let record = serde_json::json!({
        "format": RECORD_FORMAT, "variant": "udp", "repetition": 1, "position": 0, "started": "",
        "status": {"status": "valid"}, "load": load, "server": dnslab_record::ServerFacts::default(),
        "measured": dnslab_record::Measured::default(), "caveats": [],
        "bottleneck": {"kind": "server-cpu", "evidence": []},
    });
    let record: RunRecord = serde_json::from_value(record).unwrap();
    check_text(&record, |record, text| record.load.queries = text);
    check_text(&record, |record, text| record.server.notes.push(text));
    check_text(&record, |record, text| {
        record.bottleneck.evidence = vec![dnslab_record::Evidence::ServerThread {
            role: text,
            thread: dnslab_record::ThreadShare { name: String::new(), share: 0.9 },
            next: None,
        }]
    });
    check_text(&record, |record, text| {
        let reason = dnslab_record::InvalidReason::Malformed {
            malformed: 1,
            checked: 1,
            limit: 0.0,
            example: text,
        };
        record.status = dnslab_record::RunStatus::Invalid { reason };
    });
    check_text(&record, |record, cpu_source| {
        record.watched.resources.cpu_source = cpu_source;
    });
    check_text(&record, |record, role| {
        record.watched.chain.push(dnslab_record::ChainPart {
            role,
            host: String::new(),
            transport: String::new(),
            server: dnslab_record::ServerFacts::default(),
            resources: dnslab_record::ResourceSeries::default(),
            counters: None,
        });
    });
}

#[test]
fn a_record_cut_short_names_the_folder_to_remove() {
    let stranger = Stranger::new();
    fs::write(stranger.at("runs/udp-1/record.json"), "{\n \"format\": 4,\n \"vari").unwrap();
    let error = stranger.results.runs().unwrap_err().to_string();
    let (run, own) = (stranger.at("runs/udp-1"), stranger.results.path());
    let remedy = format!("rm -r '{}' && dnslab run --resume '{}'", run.display(), own.display());
    assert!(error.contains("record.json is not a whole record: EOF"), "{error}");
    assert!(error.ends_with(&remedy), "{error}");
}

#[test]
fn a_folder_of_many_logs_is_bounded() {
    let stranger = Stranger::new();
    let server = stranger.at("runs/udp-1/server");
    for number in 0..100 {
        fs::write(server.join(format!("{number:03}.log")), "x").unwrap();
    }
    fs::write(server.join("000.conf"), vec![b'x'; 64 * 1024 + 1]).unwrap();
    let files = stranger.results.files_of(&stranger.first(), "server").unwrap();
    let expected = "not shown: it has 65537 octets, and the page shows files of up to 65536";
    assert_eq!(files["000.conf"], expected);
    assert_eq!(files["further files"], "not shown: 69 of this folder");
    assert_eq!(files.len(), bounds::MAX_SERVER_FILES + 1);
}

#[test]
fn a_folder_of_too_many_files_is_said_and_takes_nothing_away() {
    let stranger = Stranger::new();
    let server = stranger.at("runs/udp-1/server");
    for number in 0..=MAX_ENTRIES {
        fs::write(server.join(format!("{number}.tmp")), "").unwrap();
    }
    let files = stranger.results.files_of(&stranger.first(), "server").unwrap();
    let expected =
        "not shown: this folder holds more than 10000 files, of which some were looked at";
    assert_eq!(files["further files"], expected);
}

/// A comparison of format 1, which must be readable for ever.
const COMPARISON_1: &str = r#"{
  "format": 1, "variant": "new", "against": "old", "repetition": 1,
  "compared": 10, "same": 6, "neither": 1,
  "classes": [{
    "class": "no-answer", "queries": 1, "questions": 1,
    "again": 0, "questions_again": 0, "not_again": 1, "questions_not_again": 1
  }, {
    "class": "answer", "queries": 2, "questions": 1,
    "again": 2, "questions_again": 1, "not_again": 0, "questions_not_again": 0
  }],
  "alone": [0, 3], "not_kept": 0,
  "examples": [{
    "class": "answer", "class_again": "authority", "question": "a.example. A",
    "queries": 2, "said": "one", "against_said": "two"
  }]
}"#;

#[test]
fn compared_answers_are_read_back_and_checked() {
    let case = |variant: &str| CaseId { variant: variant.to_owned(), repetition: 1 };
    let session = Session {
        variants: vec!["old".to_owned(), "new".to_owned()],
        baseline: "old".to_owned(),
        plan: vec![case("new"), case("old")],
        format: SESSION_FORMAT,
        ..Session::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsDirectory::create(&folder.path().join("x"), &session).unwrap();
    assert_eq!(results.answer_comparisons().unwrap(), []);
    results.begin_run(&case("new")).unwrap();
    let file = results.path().join("runs/new-1/answers-old.json");
    fs::write(&file, COMPARISON_1).unwrap();
    let [one] = &results.answer_comparisons().unwrap()[..] else { panic!("one was written") };
    assert_eq!((one.differing(), one.again(), one.not_again(), one.not_asked()), (3, 2, 1, 0));
    assert_eq!((one.alone, one.examples[0].queries), ([0, 3], 2));
    assert!(results.has_answer_comparison(&case("new"), "old").unwrap());
    assert!(!results.has_answer_comparison(&case("old"), "new").unwrap());
    let again = one.clone();
    results.write_answer_comparison(&again).unwrap();
    assert_eq!(results.answer_comparisons().unwrap(), [again]);

    let error = |text: &str| {
        fs::write(&file, text).unwrap();
        results.answer_comparisons().unwrap_err().to_string()
    };
    let changed = |from: &str, to: &str| error(&COMPARISON_1.replace(from, to));
    assert!(changed("\"same\": 6", "\"same\": 7").contains("do not add up"));
    let most = u64::MAX.to_string();
    assert!(changed("\"same\": 6", &format!("\"same\": {most}")).contains("do not add up"));
    assert!(changed("\"new\"", "\"old\"").contains("the comparison of other runs"));
    assert!(changed("\"format\": 1", "\"format\": 2").contains("use a newer one"));
    assert!(error("{").contains("is not a dnslab file of this kind"));
    fs::remove_file(&file).unwrap();
    symlink("record.json", &file).unwrap();
    let error = results.answer_comparisons().unwrap_err().to_string();
    assert!(error.contains("is a symbolic link"), "{error}");
}

#[test]
fn a_file_of_answers_is_new_in_each_run() {
    let case = Stranger::new().first();
    let stranger = Stranger::new();
    let results = &stranger.results;
    assert!(results.open_answers(&case).unwrap().is_none());
    let path = results.run_path(&case).join("answers.bin");
    // What somebody put there is replaced, and not written through.
    symlink(stranger.secret(), &path).unwrap();
    results.create_answers(&case).unwrap();
    assert_eq!(fs::read_to_string(stranger.secret()).unwrap(), "mine");
    let mut records = AnswerRecords::open(results.open_answers(&case).unwrap().unwrap()).unwrap();
    assert_eq!(records.next_record().unwrap(), None);
    stranger.refuses("runs/udp-1/answers.bin", || shown(results.open_answers(&case)));
}

#[test]
fn profiles_are_read_within_bounds_and_must_add_up() {
    use dnslab_record::{
        CostPart, CpuProfile, CpuProfiles, LibrarySamples, PartSamples, StackSamples,
    };
    let stranger = Stranger::new();
    assert_eq!(stranger.results.cpu_profiles().unwrap(), None);
    let part = CostPart::Tls;
    let profile = CpuProfile {
        variant: "udp".to_owned(),
        samples: 1,
        parts: vec![PartSamples { part, samples: 1 }],
        libraries: vec![LibrarySamples { part, library: "libssl.so.3".to_owned(), samples: 1 }],
        names: vec!["libssl.so.3".to_owned()],
        stacks: vec![StackSamples { part, frames: vec![0], samples: 1 }],
        ..CpuProfile::default()
    };
    let profiles =
        CpuProfiles { format: PROFILE_FORMAT, profiles: vec![profile], failed: Vec::new() };
    stranger.results.write_cpu_profiles(&profiles).unwrap();
    assert_eq!(stranger.results.cpu_profiles().unwrap(), Some(profiles.clone()));
    let mut wrong = profiles.clone();
    wrong.profiles[0].samples = 2;
    stranger.results.write_cpu_profiles(&wrong).unwrap();
    let error = stranger.results.cpu_profiles().unwrap_err().to_string();
    assert!(error.contains("the profile of `udp`: its parts do not add up"), "{error}");
    stranger
        .results
        .write_cpu_profiles(&CpuProfiles { format: PROFILE_FORMAT + 1, ..profiles })
        .unwrap();
    let error = stranger.results.cpu_profiles().unwrap_err();
    assert!(matches!(error, ResultsError::Newer { .. }), "{error}");
}
