//! The answers of two variants, compared when both have run.
//!
//! Nothing of this takes time from a load. What differs is asked again of servers that were started for it, as
//! for a run: in rounds of whole runs the server of one variant is down when that of the other has its load, and
//! a server that stays up beside another's load would change what that measures.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_analysis::{Difference, Joined, join_answers};
use dnslab_figures::{AnswerRecord, HowEnded};
use dnslab_load::{AskError, Asker, Fed, Job};
use dnslab_record::{
    AnswerComparison, AnswerExample, AnswerRelation, COMPARISON_FORMAT, CaseId, ClassCount,
    Compared, DifferenceClass, RunRecord,
};
use dnslab_settings::{Experiment, Variant};
use dnslab_traffic::Truncated;
use dnslab_wire::{AnswerDigest, Query, Response, Transport, message_text};

use super::{Observer, Session, SessionError, seed_of};
use crate::run::case::{Case, Up, is_cut_short};
use crate::run::queries::Asked;
use crate::run::split::Cpus;

/// Differing questions that are asked again, the most frequent first.
const MAX_ASKED: usize = 1_000;

/// Times that each server is asked. What differs each time differs again.
const TIMES: usize = 2;

/// One server is asked for so long at most. What it was not asked by then is not asked of the other.
const ASKING: Duration = Duration::from_secs(30);

/// Questions with the answers in full: of each class, and in all.
const MAX_EXAMPLES_OF_CLASS: usize = 10;
const MAX_EXAMPLES: usize = 50;

/// Octets of an answer as text: while it is compared, and of an example.
const MAX_COMPARED_TEXT: usize = 100_000;
const MAX_TEXT: usize = 4_000;

/// Folder of the servers in the results directory.
const SCRATCH: &str = "asked-again";

/// How long to leave a source of queries alone that had nothing ready.
const POLL: Duration = Duration::from_micros(200);

/// Checks that workers share the clients of compared loads in the same way. Of a schedule each worker has its own
/// part. Captures and populations have clients whose queries do not depend on the workers.
///
/// # Errors
/// When two variants have different numbers of workers.
pub(super) fn check_workers(experiment: &Experiment) -> Result<(), SessionError> {
    for variant in experiment.variants.iter().filter(|variant| variant.compare.answers) {
        if variant.load.mode.is_played() {
            continue;
        }
        for other in experiment.compared_with(variant) {
            let (own, its) = (workers(variant)?, workers(other)?);
            if own != its {
                let reason = format!(
                    "its load has {own} workers, and that of `{}`, whose answers it is compared with, {its}\n  \
                     hint:    give both the same: `load.workers = {}`",
                    other.name,
                    own.min(its)
                );
                return Err(SessionError::Variant { variant: variant.name.clone(), reason });
            }
        }
    }
    Ok(())
}

fn workers(variant: &Variant) -> Result<u32, SessionError> {
    if let Some(workers) = variant.load.workers {
        return Ok(workers);
    }
    // Those of the same hosts are as many.
    if variant.load.hosts.is_some() {
        return Ok(0);
    }
    let cpus = Cpus::of(variant).map_err(|error| SessionError::Variant {
        variant: variant.name.clone(),
        reason: error.to_string(),
    })?;
    Ok(Job::default_workers(u32::try_from(cpus.load.len()).unwrap_or(1), &variant.load))
}

impl Session {
    /// The pairs of variants whose answers are compared.
    fn answer_pairs(&self) -> Vec<Compared> {
        let is_wanted = |pair: &Compared| {
            let variant = self.experiment.variant(&pair.variant);
            variant.is_some_and(|variant| variant.compare.answers)
        };
        self.facts.compared().into_iter().filter(is_wanted).collect()
    }

    /// Where what the queries of a run are told goes; `None` if nobody wants to know. A run that finds a rate
    /// has no repetition.
    pub(super) fn answers_file(&self, id: &CaseId) -> Result<Option<File>, SessionError> {
        let is_of_it = |pair: &Compared| [&pair.variant, &pair.against].contains(&&id.variant);
        if id.repetition == 0 || !self.answer_pairs().iter().any(is_of_it) {
            return Ok(None);
        }
        Ok(Some(self.results.create_answers(id)?))
    }

    /// Compares the answers of all runs that are over and were not compared yet. An interrupt leaves the rest to
    /// a session that is resumed. An error is of the first comparison that failed; the others are made.
    ///
    /// `put_off` holds the comparisons that failed before. They are not tried again, and those that fail now
    /// are added.
    pub(super) fn compare_answers(
        &self,
        put_off: &mut Vec<(Compared, u32)>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let pairs = self.answer_pairs();
        if pairs.is_empty() {
            return Ok(());
        }
        let is_whole = |record: &RunRecord| record.measured.is_some() && !is_cut_short(record);
        let records = self.results.runs()?;
        let runs: HashSet<(&str, u32)> = records
            .iter()
            .filter(|record| is_whole(record))
            .map(|record| (record.variant.as_str(), record.repetition))
            .collect();
        let mut failed = None;
        for pair in &pairs {
            for repetition in 1..=self.planned_rounds() {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let case = |name: &str| CaseId { variant: name.to_owned(), repetition };
                let (case, other) = (case(&pair.variant), case(&pair.against));
                let is_over = |case: &CaseId| runs.contains(&(case.variant.as_str(), repetition));
                let this = (pair.clone(), repetition);
                if !is_over(&case)
                    || !is_over(&other)
                    || put_off.contains(&this)
                    || self.results.has_answer_comparison(&case, &pair.against)?
                {
                    continue;
                }
                let files = (self.results.open_answers(&case)?, self.results.open_answers(&other)?);
                let (Some(one), Some(other)) = files else { continue };
                observer.comparison_begins(pair);
                let joined = match join_answers(one, other) {
                    Ok(joined) => joined,
                    Err(source) => {
                        put_off.push(this);
                        let Compared { variant, against } = pair.clone();
                        failed =
                            failed.or(Some(SessionError::Answers { variant, against, source }));
                        continue;
                    }
                };
                if let Some(comparison) = self.compared(pair, repetition, joined, stop)? {
                    self.results.write_answer_comparison(&comparison)?;
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// What is to be told of two runs; `None` after an interrupt.
    fn compared(
        &self,
        pair: &Compared,
        repetition: u32,
        joined: Joined,
        stop: &AtomicBool,
    ) -> Result<Option<AnswerComparison>, SessionError> {
        let mut comparison = AnswerComparison {
            format: COMPARISON_FORMAT,
            variant: pair.variant.clone(),
            against: pair.against.clone(),
            repetition,
            compared: joined.compared,
            same: joined.same,
            neither: joined.neither,
            classes: classes(&joined),
            alone: joined.alone,
            not_kept: joined.not_kept.iter().map(|(_, count)| count).sum(),
            ..AnswerComparison::default()
        };
        if joined.differences.is_empty() {
            return Ok(Some(comparison));
        }
        match self.ask_again(pair, repetition, &joined.differences, stop)? {
            Ok(asked) => note(&mut comparison, &asked),
            Err(reason) => comparison.not_asked_because = Some(reason),
        }
        let is_interrupted = stop.load(Ordering::Relaxed);
        Ok((!is_interrupted).then_some(comparison))
    }

    /// Asks both servers the most frequent of the questions that differ. The inner error says why that could not
    /// be done.
    fn ask_again(
        &self,
        pair: &Compared,
        repetition: u32,
        differences: &[Difference],
        stop: &AtomicBool,
    ) -> Result<Result<Vec<AskedAgain>, String>, SessionError> {
        let variants = [&pair.variant, &pair.against].map(|name| self.experiment.variant(name));
        let [Some(variant), Some(against)] = variants else {
            return Ok(Err("the experiment has no such variants any more".to_owned()));
        };
        let seed = seed_of(self.experiment.repeat.seed, repetition);
        let asked = self.lists.borrow_mut().of(variant, seed)?;
        // One question may differ in several classes.
        let mut wanted = HashSet::new();
        let mut questions: Vec<u32> = differences
            .iter()
            .map(|difference| difference.question)
            .filter(|question| wanted.len() < MAX_ASKED && wanted.insert(*question))
            .collect();
        let found = match queries_of(&asked, &wanted, stop) {
            Ok(found) => found,
            Err(error) => return Ok(Err(format!("the queries cannot be read again: {error}"))),
        };
        questions.retain(|question| found.contains_key(question));
        let mut queries: Vec<&Query> = questions.iter().map(|question| &found[question]).collect();
        let mut sides = Vec::new();
        for variant in [variant, against] {
            match self.ask_server(variant, (repetition, seed), &queries, stop)? {
                Ok(said) => {
                    queries.truncate(said.len());
                    sides.push(said);
                }
                Err(reason) => return Ok(Err(format!("{}: {reason}", variant.name))),
            }
        }
        let (Some(other), Some(own)) = (sides.pop(), sides.pop()) else {
            return Ok(Err("nothing was asked".to_owned()));
        };
        let said = own.into_iter().zip(other);
        let asked = questions.into_iter().zip(queries).zip(said);
        let asked = asked.flat_map(|((question, query), (own, other))| {
            let relations = std::array::from_fn(|time| {
                AnswerRelation::of(&own.records[time], &other.records[time])
            });
            let of_it =
                differences.iter().filter(move |difference| difference.question == question);
            let classes: Vec<DifferenceClass> =
                of_it.clone().map(|difference| difference.class).collect();
            let asked_again = of_it.map(|difference| AskedAgain {
                difference: *difference,
                classes: classes.clone(),
                question: query.to_string(),
                relations,
                said: beside(&own.text, &other.text),
                against_said: beside(&other.text, &own.text),
            });
            asked_again.collect::<Vec<_>>()
        });
        Ok(Ok(asked.collect()))
    }

    /// Asks the server of a variant, [`TIMES`] times. Of the last queries there may be no answers: there was no
    /// time for them.
    fn ask_server(
        &self,
        variant: &Variant,
        (repetition, seed): (u32, u64),
        queries: &[&Query],
        stop: &AtomicBool,
    ) -> Result<Result<Vec<Said>, String>, SessionError> {
        let asked = self.lists.borrow_mut().of(variant, seed)?;
        let folder = self.results.begin_scratch(SCRATCH)?;
        let id = CaseId { variant: variant.name.clone(), repetition };
        let case = Case {
            variant,
            id: &id,
            position: 0,
            seed,
            queries: &asked,
            folder: &folder,
            guard: &self.guard,
            agents: &self.agents,
            told: None,
            max_stacks: None,
        };
        let said = (|| {
            let cpus = Cpus::of(variant).map_err(|error| error.to_string())?;
            let up = case.start(&cpus, stop).map_err(|error| error.to_string())?;
            let job = up.target.ways.job(variant, &asked).map_err(|error| error.to_string())?;
            let to_server = |query: &Query, transport: Transport| up.ask(&job, query, transport);
            let began = Instant::now();
            // Each time has its part of the whole.
            let is_over = |time: usize| {
                let until = began + ASKING * (time as u32 + 1) / TIMES as u32;
                Instant::now() >= until || stop.load(Ordering::Relaxed)
            };
            let said = say(variant, queries, &to_server, &is_over);
            // What a host that is lost was not told says nothing of the server.
            match up.hosts.lost() {
                Some(lost) => Err(lost.to_string()),
                None => Ok(said),
            }
        })();
        // What cannot be removed only takes disk space.
        self.results.remove_scratch(SCRATCH).ok();
        Ok(said)
    }
}

impl Up {
    /// Asks as the first client of a load.
    fn ask(&self, job: &Job, query: &Query, transport: Transport) -> Result<Vec<u8>, AskError> {
        let (asker, timeout) = (Asker { client: 0, transport, server: 0 }, job.settings.timeout);
        self.hosts.links()[0].ask(job, asker, query, timeout)
    }
}

/// What a server says to one question, whenever it is asked.
struct Said {
    records: [AnswerRecord; TIMES],
    /// What it said when it was asked last.
    text: String,
}

/// A question that was asked again, once for each class in which it differed during the load.
struct AskedAgain {
    difference: Difference,
    /// All of those classes.
    classes: Vec<DifferenceClass>,
    question: String,
    relations: [AnswerRelation; TIMES],
    said: String,
    against_said: String,
}

impl AskedAgain {
    /// The class when it was asked last, if it differed each time.
    ///
    /// A question may have lost a datagram in one query of the load, and differ in its code in all others. Then
    /// the code differs again, and the loss does not.
    fn class_again(&self) -> Option<DifferenceClass> {
        let classes = self.relations.map(|relation| match relation {
            AnswerRelation::Differs(class) => Some(class),
            AnswerRelation::Same | AnswerRelation::Neither => None,
        });
        let last = classes[TIMES - 1].filter(|_| classes.iter().all(Option::is_some))?;
        let is_own = last == self.difference.class || !self.classes.contains(&last);
        is_own.then_some(last)
    }
}

/// Asks a server one query over a transport.
type Ask<'a> = dyn Fn(&Query, Transport) -> Result<Vec<u8>, AskError> + 'a;

/// Asks each query [`TIMES`] times: all once, then all again. Those that had no time are left out. `is_over` says
/// whether the time of the n-th time is over.
fn say(
    variant: &Variant,
    queries: &[&Query],
    ask: &Ask<'_>,
    is_over: &dyn Fn(usize) -> bool,
) -> Vec<Said> {
    let mut times: Vec<Vec<(AnswerRecord, String)>> = Vec::new();
    for time in 0..TIMES {
        let most = times.last().map_or(queries.len(), Vec::len);
        let asked = queries[..most].iter().take_while(|_| !is_over(time));
        times.push(asked.map(|query| answer(variant, query, ask)).collect());
    }
    let whole = times.last().map_or(0, Vec::len);
    let said = |place: usize| Said {
        records: std::array::from_fn(|time| times[time][place].0),
        text: times[TIMES - 1][place].1.clone(),
    };
    (0..whole).map(said).collect()
}

/// Asks one query. A truncated answer is asked for over TCP if the clients of the load do so.
fn answer(variant: &Variant, query: &Query, ask: &Ask<'_>) -> (AnswerRecord, String) {
    let transport = variant.load.transport;
    let mut answer = ask(query, transport);
    let is_truncated =
        |octets: &Vec<u8>| Response::parse(octets).is_ok_and(|response| response.truncated);
    let asks_over_tcp = variant.load.truncated == Truncated::AskOverTcp;
    if transport == Transport::Udp && asks_over_tcp && answer.as_ref().is_ok_and(is_truncated) {
        answer = ask(query, Transport::Tcp);
    }
    let (ended, digest, text) = match answer {
        Ok(octets) => {
            let digest = AnswerDigest::of(&octets, &mut Vec::new());
            let ended = if digest.is_ok() { HowEnded::Answered } else { HowEnded::Malformed };
            (ended, digest.unwrap_or_default(), message_text(&octets))
        }
        Err(error) => {
            let ended = match &error {
                error if error.is_refusal() => HowEnded::Refused,
                _ => HowEnded::TimedOut,
            };
            (ended, AnswerDigest::default(), format!(";; no answer: {error}\n"))
        }
    };
    let question = query.digest();
    let record = AnswerRecord { client: 0, number: 0, question, ended, digest };
    (record, shortened(text, MAX_COMPARED_TEXT))
}

/// What one server said beside what another one said. Of a text that is too long to be shown the records that both
/// say are left out: in a random order (`rrset-order` of BIND) the one that differs would be among those cut off.
fn beside(own: &str, other: &str) -> String {
    if own.len() <= MAX_TEXT {
        return own.to_owned();
    }
    let others: HashSet<&str> = other.lines().collect();
    let is_shown = |line: &&str| line.is_empty() || line.starts_with(';') || !others.contains(line);
    let shown: Vec<&str> = own.lines().filter(is_shown).collect();
    let count = own.lines().count() - shown.len();
    let text = format!("{}\n;; {count} records that both say are left out\n", shown.join("\n"));
    shortened(text, MAX_TEXT)
}

fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n;; and more\n");
    }
    text
}

/// The queries with these digests, as far as the load has them.
fn queries_of(
    asked: &Asked,
    wanted: &HashSet<u32>,
    stop: &AtomicBool,
) -> std::io::Result<HashMap<u32, Query>> {
    let mut found = HashMap::new();
    let mut look = |query: &Query| {
        let digest = Some(query.digest()).filter(|digest| wanted.contains(digest));
        digest.map(|digest| found.entry(digest).or_insert_with(|| query.clone()));
        found.len() < wanted.len()
    };
    let Some(clients) = &asked.clients else {
        let _ = asked.list.iter().all(&mut look);
        return Ok(found);
    };
    // They are found where the load found them.
    let mut feeds = clients.begin(1, &[])?;
    let Some(feed) = feeds.first_mut() else { return Ok(found) };
    let mut ready = VecDeque::new();
    loop {
        let fed = feed.fill(&mut ready);
        let goes_on = ready.drain(..).all(|client_query| look(&client_query.query));
        match fed {
            Fed::End => break,
            Fed::Failed { reason } => return Err(std::io::Error::other(reason)),
            _ if !goes_on || stop.load(Ordering::Relaxed) => break,
            Fed::Nothing => thread::sleep(POLL),
            Fed::Some => {}
        }
    }
    Ok(found)
}

/// The counts by class, of which nothing was asked again yet.
fn classes(joined: &Joined) -> Vec<ClassCount> {
    let counts = DifferenceClass::ALL.into_iter().map(|class| {
        let kept = joined.differences.iter().filter(|difference| difference.class == class);
        let not_kept = joined.not_kept.iter().filter(|(its, _)| *its == class);
        let queries: u64 = kept.clone().map(|difference| difference.queries).sum();
        ClassCount {
            class,
            queries: queries + not_kept.map(|(_, count)| count).sum::<u64>(),
            questions: kept.count() as u64,
            again: 0,
            questions_again: 0,
            not_again: 0,
            questions_not_again: 0,
        }
    });
    counts.filter(|class| class.queries > 0).collect()
}

/// Adds what was asked again.
fn note(comparison: &mut AnswerComparison, asked: &[AskedAgain]) {
    let mut of_class: HashMap<DifferenceClass, usize> = HashMap::new();
    for again in asked {
        let Difference { class, queries, .. } = again.difference;
        let counted = comparison.classes.iter_mut().find(|counted| counted.class == class);
        let Some(counted) = counted else { continue };
        let Some(class_again) = again.class_again() else {
            counted.not_again += queries;
            counted.questions_not_again += 1;
            continue;
        };
        counted.again += queries;
        counted.questions_again += 1;
        let shown = of_class.entry(class).or_default();
        if *shown < MAX_EXAMPLES_OF_CLASS && comparison.examples.len() < MAX_EXAMPLES {
            *shown += 1;
            comparison.examples.push(AnswerExample {
                class,
                class_again,
                question: again.question.clone(),
                queries,
                said: again.said.clone(),
                against_said: again.against_said.clone(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use AnswerRelation::{Differs, Neither, Same};
    use DifferenceClass::{Answer, Code, Flags, NoAnswer};

    fn again(
        class: DifferenceClass,
        classes: &[DifferenceClass],
        relations: [AnswerRelation; TIMES],
    ) -> AskedAgain {
        AskedAgain {
            difference: Difference { class, question: 1, queries: 7 },
            classes: classes.to_vec(),
            question: "a.example. A".to_owned(),
            relations,
            said: "one".to_owned(),
            against_said: "other".to_owned(),
        }
    }

    #[test]
    fn what_differs_each_time_differs_again() {
        let check = |class, classes: &[_], relations, expected| {
            assert_eq!(again(class, classes, relations).class_again(), expected);
        };
        check(Answer, &[Answer], [Differs(Answer); 2], Some(Answer));
        check(Answer, &[Answer], [Differs(Answer), Same], None);
        check(Answer, &[Answer], [Same, Differs(Answer)], None);
        check(Answer, &[Answer], [Differs(Answer), Neither], None);
        // In another class than before, and in another one each time.
        check(Answer, &[Answer], [Differs(Flags), Differs(Code)], Some(Code));
        // A loss that is none any more has its place already.
        check(NoAnswer, &[NoAnswer, Code], [Differs(Code); 2], None);
        check(Code, &[NoAnswer, Code], [Differs(Code); 2], Some(Code));
        check(NoAnswer, &[NoAnswer], [Differs(Code); 2], Some(Code));
    }

    #[test]
    fn queries_are_counted_by_their_question() {
        let difference = |class, question, queries| Difference { class, question, queries };
        let joined = Joined {
            compared: 100,
            same: 100 - 7 - 7 - 9 - 3,
            differences: vec![
                difference(Answer, 3, 9),
                difference(Answer, 1, 7),
                difference(Answer, 2, 7),
            ],
            not_kept: vec![(Answer, 1), (Code, 2)],
            ..Joined::default()
        };
        let mut comparison = AnswerComparison { classes: classes(&joined), ..Default::default() };
        note(
            &mut comparison,
            &[
                again(Answer, &[Answer], [Differs(Answer); 2]),
                again(Answer, &[Answer], [Same, Same]),
            ],
        );
        let code = ClassCount {
            class: Code,
            queries: 2,
            questions: 0,
            again: 0,
            questions_again: 0,
            not_again: 0,
            questions_not_again: 0,
        };
        // In the order in which they are looked at.
        let answer = ClassCount {
            class: Answer,
            queries: 24,
            questions: 3,
            again: 7,
            questions_again: 1,
            not_again: 7,
            questions_not_again: 1,
        };
        assert_eq!(comparison.classes, [code, answer]);
        assert_eq!((comparison.differing(), comparison.not_asked()), (26, 12));
        assert_eq!(comparison.examples.len(), 1);
    }

    #[test]
    fn examples_are_of_every_class_and_not_too_many() {
        let one = |class| again(class, &[class], [Differs(class); 2]);
        let all: Vec<AskedAgain> = DifferenceClass::ALL
            .into_iter()
            .flat_map(|class| (0..3 * MAX_EXAMPLES_OF_CLASS).map(move |_| one(class)))
            .collect();
        let joined = Joined {
            differences: all.iter().map(|asked| asked.difference).collect(),
            ..Joined::default()
        };
        let mut comparison = AnswerComparison { classes: classes(&joined), ..Default::default() };
        note(&mut comparison, &all);
        assert_eq!(comparison.examples.len(), MAX_EXAMPLES);
        assert_eq!(comparison.classes.len(), DifferenceClass::ALL.len());
        let of_first =
            comparison.examples.iter().filter(|example| example.class == NoAnswer).count();
        assert_eq!(of_first, MAX_EXAMPLES_OF_CLASS);
    }

    #[test]
    fn long_answers_are_cut_between_characters() {
        let long = shortened("\u{20ac}".repeat(MAX_TEXT), MAX_TEXT);
        assert!(long.len() < MAX_TEXT + 20 && long.ends_with(";; and more\n"), "{}", long.len());
        assert_eq!(shortened("short".to_owned(), MAX_TEXT), "short");
    }

    #[test]
    fn a_long_answer_shows_what_is_not_in_the_other() {
        let record = |n: usize| format!("host.example. 60 IN A 192.0.2.{n}");
        let text = |all: &[String]| format!(";; ANSWER SECTION:\n{}\n", all.join("\n"));
        let mut own: Vec<String> = (0..200).map(record).collect();
        let mut other = own.clone();
        own.push(record(201));
        other.reverse();
        other.push(record(202));
        let (own, other) = (text(&own), text(&other));
        let left_out = ";; 200 records that both say are left out\n";
        let expected = format!(";; ANSWER SECTION:\n{}\n{left_out}", record(201));
        assert_eq!(beside(&own, &other), expected);
        let expected = format!(";; ANSWER SECTION:\n{}\n{left_out}", record(202));
        assert_eq!(beside(&other, &own), expected);
        // What is short is shown as it is.
        assert_eq!(beside("one\ntwo\n", "two\n"), "one\ntwo\n");
    }
}
