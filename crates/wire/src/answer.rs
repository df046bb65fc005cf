//! Checks that an answer holds what it must. The whole message is parsed, with the data of its records.

use domain::base::iana::{Class, Opcode, Rtype};
use domain::base::wire::ParseError;
use domain::base::{
    Message, Name, NameBuilder, ParsedName, ParsedRecord, Question, RecordSection, ToName,
};
use domain::rdata::{AllRecordData, Cname, Dname, Rrsig};

use crate::{Malformed, Response};

/// A section of records (RFC 1035, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// What answers the question.
    Answer,
    /// Who is responsible, or why there is no answer.
    Authority,
    /// What may help, and the OPT record (RFC 6891).
    Additional,
}

impl std::fmt::Display for Section {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Answer => "answer",
            Self::Authority => "authority",
            Self::Additional => "additional",
        })
    }
}

/// What is wrong with an answer whose header looks right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    /// Header or question cannot be read.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The opcode is not that of the query (RFC 1035, section 4.1.1).
    #[error("the opcode is {0}, and that of the query is {query}", query = Opcode::QUERY)]
    Opcode(Opcode),
    /// The header counts records that are not there.
    #[error("the {section} section has {found} whole records, and its header counts {counted}")]
    Missing {
        /// Where.
        section: Section,
        /// Records that are whole.
        found: u16,
        /// Records that the header counts.
        counted: u16,
    },
    /// The owner of a record is no name: a pointer leads nowhere or in a circle, a label is of an unknown
    /// kind, or the name has more than 255 octets (RFC 1035, section 4.1.4).
    #[error("record {number} of the {section} section has no readable name: {fault}")]
    Owner {
        /// Where.
        section: Section,
        /// Which record, from 1.
        number: u16,
        /// What is wrong with the name.
        fault: ParseError,
    },
    /// The data of a record does not have the form of its type.
    #[error("record {number} of the {section} section holds no data of its type {rtype}: {fault}")]
    Data {
        /// Where.
        section: Section,
        /// Which record, from 1.
        number: u16,
        /// The type that it says it has.
        rtype: Rtype,
        /// What is wrong with the data.
        fault: ParseError,
    },
    /// An OPT record is in another section than its own (RFC 6891, section 6.1.1).
    #[error(
        "record {number} of the {section} section is an OPT record, which belongs in the additional section"
    )]
    OptSection {
        /// Where.
        section: Section,
        /// Which record, from 1.
        number: u16,
    },
    /// An OPT record has a name (RFC 6891, section 6.1.2).
    #[error(
        "record {number} of the additional section is an OPT record whose owner is not the root"
    )]
    OptOwner {
        /// Which record, from 1.
        number: u16,
    },
    /// A message has one OPT record at most (RFC 6891, section 6.1.1).
    #[error("record {number} of the additional section is a second OPT record")]
    SecondOpt {
        /// Which record, from 1.
        number: u16,
    },
    /// A TSIG record signs all that is before it, so nothing may follow (RFC 8945, section 5.1).
    #[error(
        "record {number} of the {section} section is a TSIG record, which must be the last record of the \
         additional section"
    )]
    TsigNotLast {
        /// Where.
        section: Section,
        /// Which record, from 1.
        number: u16,
    },
    /// A CNAME record below a DNAME record does not follow from it: no other data may be at such a name (RFC
    /// 6672, sections 2.2, 2.4 and 3.1).
    #[error(
        "record {number} of the answer section is a CNAME record that does not follow from the DNAME record \
         above its name"
    )]
    NotFromDname {
        /// Which record, from 1.
        number: u16,
    },
    /// Octets follow the last record that the header counts.
    #[error("{0} octets follow the last record")]
    Trailing(usize),
    /// No record of the answer section has the name and type of the question, or of the target of an alias.
    #[error("no record of the answer section answers the question")]
    Unrelated,
}

/// What the answer section of an answer without fault holds of what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A record of the type asked for, at the name asked for or where aliases lead.
    Record,
    /// Aliases alone: their target is somewhere else, does not exist, or was left out.
    Aliases,
    /// Neither. An error or a truncated answer may hold records that have nothing to do with the question.
    Nothing,
}

/// An answer without fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerContent {
    /// Truncation may have taken a part of it.
    pub held: Held,
    /// The TC bit.
    pub truncated: bool,
}

/// Aliases that are followed. Each takes a walk over the answer section, so this bounds the time for one
/// answer. Servers give up long before; a longer chain is believed.
const MAX_CHAIN: usize = 64;

/// DNAME records that the CNAME records are checked against. It bounds the time as [`MAX_CHAIN`] does; if
/// there are more, the CNAME records are believed.
const MAX_DNAMES: usize = 16;

/// Checks that an answer to a QUERY is whole: the sections hold as many records as the header counts, each
/// with a name and with data of its type, and nothing follows them.
///
/// If the response code is NOERROR and the answer section is not empty, the section must answer the question:
/// with a record of its name and type, with one that the CNAME and DNAME records from its name lead to (RFC
/// 1034, section 3.6.2; RFC 6672), or with such an alias alone, whose target is somewhere else. A chain of 64
/// aliases, which no server would follow, is believed.
///
/// There is at most one OPT record, and it is where it must be (RFC 6891, section 6.1.1). So is a TSIG record
/// (RFC 8945, section 5.1), whose signature is not checked. A CNAME record in the answer section whose owner
/// is below that of a DNAME record follows from it (RFC 6672, section 2.2).
///
/// An empty answer section is whole: the caller knows whether to expect a record. A truncated message may end
/// within its records (RFC 1035, section 4.1.1) and need not answer.
///
/// # Errors
/// The first fault.
pub fn check_answer(message: &[u8]) -> Result<(), AnswerFault> {
    read_answer(message).map(|_| ())
}

/// Checks an answer as [`check_answer`] does, and says what it holds of what was asked.
///
/// # Errors
/// The first fault.
pub fn read_answer(message: &[u8]) -> Result<AnswerContent, AnswerFault> {
    let response = Response::parse(message)?;
    let truncated = response.truncated;
    // `Response::parse` has checked the length.
    let parsed = Message::from_slice(message).map_err(|_| Malformed::Short(message.len()))?;
    // Every query has this opcode, and a response has that of its query.
    let opcode = parsed.header().opcode();
    if opcode != Opcode::QUERY {
        return Err(AnswerFault::Opcode(opcode));
    }
    match check_sections(parsed) {
        Err(AnswerFault::Missing { .. }) if truncated => {}
        result => result?,
    }
    let answers = parsed.answer().map_err(|_| Malformed::Question)?;
    if let Some(number) = not_from_dname(answers) {
        return Err(AnswerFault::NotFromDname { number });
    }
    let question = parsed.first_question().filter(|_| response.answers > 0);
    let Some(question) = question else {
        return Ok(AnswerContent { held: Held::Nothing, truncated });
    };
    match held(&question, answers) {
        Held::Nothing if response.rcode == 0 && !truncated => Err(AnswerFault::Unrelated),
        held => Ok(AnswerContent { held, truncated }),
    }
}

fn check_sections(message: &Message<[u8]>) -> Result<(), AnswerFault> {
    let counts = message.header_counts();
    let sections = [
        (Section::Answer, counts.ancount()),
        (Section::Authority, counts.nscount()),
        (Section::Additional, counts.arcount()),
    ];
    let mut records = message.answer().map_err(|_| Malformed::Question)?;
    for (section, counted) in sections {
        check_section(section, counted, &mut records)?;
        match records.next_section() {
            Ok(Some(next)) => records = next,
            // After the additional section there is none.
            _ => break,
        }
    }
    match message.as_slice().len() - records.pos() {
        0 => Ok(()),
        octets => Err(AnswerFault::Trailing(octets)),
    }
}

fn check_section(
    section: Section,
    counted: u16,
    records: &mut RecordSection<'_, [u8]>,
) -> Result<(), AnswerFault> {
    let mut has_opt = false;
    for number in 1..=counted {
        let record = match records.next() {
            Some(Ok(record)) => record,
            None | Some(Err(ParseError::ShortInput)) => {
                return Err(AnswerFault::Missing { section, found: number - 1, counted });
            }
            Some(Err(fault)) => return Err(AnswerFault::Owner { section, number, fault }),
        };
        let data = record.to_any_record::<AllRecordData<_, ParsedName<_>>>();
        if let Err(fault) = data {
            let rtype = record.rtype();
            return Err(AnswerFault::Data { section, number, rtype, fault });
        }
        match record.rtype() {
            Rtype::OPT if section != Section::Additional => {
                return Err(AnswerFault::OptSection { section, number });
            }
            Rtype::OPT if !record.owner().is_root() => {
                return Err(AnswerFault::OptOwner { number });
            }
            Rtype::OPT if has_opt => return Err(AnswerFault::SecondOpt { number }),
            Rtype::OPT => has_opt = true,
            Rtype::TSIG if section != Section::Additional || number != counted => {
                return Err(AnswerFault::TsigNotLast { section, number });
            }
            _ => {}
        }
    }
    Ok(())
}

fn held<'a>(question: &Question<ParsedName<&'a [u8]>>, answers: RecordSection<'a, [u8]>) -> Held {
    let (asked, class) = (question.qtype(), question.qclass());
    // From 251 on, a type asks for several types, or for a whole zone (RFC 1035, section 3.2.3).
    let is_asked = |rtype: Rtype| rtype == asked || (251..=255).contains(&asked.to_int());
    let of_class = |record: &ParsedRecord<'a, [u8]>| class == Class::ANY || record.class() == class;
    let records = || answers.into_iter().flatten().filter(of_class);
    let mut name: Name<Vec<u8>> = question.qname().to_name();
    let mut is_alias = false;
    let mut passed = Vec::new();
    let is_believed = loop {
        if passed.len() == MAX_CHAIN {
            break true;
        }
        let (mut alias, mut moved) = (None, None);
        for record in records() {
            let owner = record.owner();
            if owner == name {
                if is_asked(record.rtype()) {
                    return Held::Record;
                }
                if let Ok(Some(found)) = record.into_record::<Cname<ParsedName<&'a [u8]>>>() {
                    alias = Some(found.data().cname().to_name());
                }
            } else if name.ends_with(&owner)
                && let Ok(Some(found)) = record.into_record::<Dname<ParsedName<&'a [u8]>>>()
            {
                is_alias = true;
                moved = moved_name(&name, owner.label_count(), found.data().dname());
            }
        }
        // A DNAME record comes with the CNAME record that follows from it (RFC 6672, section 3.1), but some
        // servers leave that out.
        let Some(target) = alias.or(moved) else { break false };
        is_alias = true;
        passed.push(std::mem::replace(&mut name, target));
        // A circle is not a long chain: it leads nowhere.
        if passed.contains(&name) {
            break false;
        }
    };
    let is_other =
        |record: ParsedRecord<'a, [u8]>| is_asked(record.rtype()) && !is_of_alias(&record);
    match (is_alias, records().any(is_other)) {
        // The target of an alias may be in a zone of another server. Then no other record has the type.
        (true, false) => Held::Aliases,
        (true, true) if is_believed => Held::Record,
        _ => Held::Nothing,
    }
}

/// True for an alias and for the signature of one. The signature of a DNAME record comes with it (RFC 6672,
/// section 5.3.1), and has the type asked for if that is RRSIG.
fn is_of_alias<'a>(record: &ParsedRecord<'a, [u8]>) -> bool {
    let is_alias = |rtype: Rtype| matches!(rtype, Rtype::CNAME | Rtype::DNAME);
    match record.to_record::<Rrsig<&'a [u8], ParsedName<&'a [u8]>>>() {
        Ok(Some(signature)) => is_alias(signature.data().type_covered()),
        _ => is_alias(record.rtype()),
    }
}

/// The number, from 1, of the first CNAME record that does not follow from the DNAME record above it. If
/// several are above it, which no zone may have, it must follow from one of them.
fn not_from_dname(answers: RecordSection<'_, [u8]>) -> Option<u16> {
    let dnames = answers.limit_to::<Dname<ParsedName<&[u8]>>>().flatten();
    let dnames: Vec<_> = dnames.take(MAX_DNAMES + 1).collect();
    if dnames.is_empty() || dnames.len() > MAX_DNAMES {
        return None;
    }
    for (number, record) in (1..=u16::MAX).zip(answers.flatten()) {
        let Ok(Some(alias)) = record.into_record::<Cname<ParsedName<&[u8]>>>() else { continue };
        let owner = alias.owner();
        let mut above = dnames
            .iter()
            .filter(|dname| dname.class() == alias.class())
            .filter(|dname| dname.owner() != owner && owner.ends_with(dname.owner()))
            .map(|dname| moved_name(owner, dname.owner().label_count(), dname.data().dname()))
            .peekable();
        let is_below = above.peek().is_some();
        if is_below && !above.flatten().any(|made| made == *alias.data().cname()) {
            return Some(number);
        }
    }
    None
}

/// What a name below the owner of a DNAME record becomes (RFC 6672, section 2.2); `None` if that is too long.
/// The owner has `of_owner` labels, with that of the root.
fn moved_name(
    name: &impl ToName,
    of_owner: usize,
    target: &ParsedName<&[u8]>,
) -> Option<Name<Vec<u8>>> {
    let mut moved = NameBuilder::new_vec();
    let labels = name.iter_labels();
    for label in labels.clone().take(labels.count().checked_sub(of_owner)?) {
        moved.append_label(label.as_slice()).ok()?;
    }
    moved.append_origin(target).ok()
}

#[cfg(test)]
mod tests;
