//! The messages, and their version.

use std::error::Error;

use dnslab_client::Job;
use dnslab_record::{LiveInterval, Measured, Watched};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::job::{SentJob, UnusableJob};

/// The version of all messages. Both ends have the same.
pub const VERSION: u32 = 1;

/// One message.
#[derive(Clone, Debug)]
pub enum Message {
    /// A load that is to be applied.
    Job(Box<Job>),
    /// An interval of a load has ended.
    Progress(Box<LiveInterval>),
    /// What a load came to.
    Measured(Box<Measured>),
    /// What was seen of the servers meanwhile.
    Watched(Box<Watched>),
    /// What was asked for did not come about.
    Failed(Failure),
}

/// Why something did not come about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What a user reads, with the remedy.
    pub reason: String,
    /// What is behind it, from the nearest cause to the last.
    pub causes: Vec<String>,
}

impl From<&(dyn Error + 'static)> for Failure {
    fn from(error: &(dyn Error + 'static)) -> Self {
        let (mut causes, mut cause) = (Vec::new(), error.source());
        while let Some(error) = cause {
            causes.push(error.to_string());
            cause = error.source();
        }
        Self { reason: error.to_string(), causes }
    }
}

/// A text is no message that this version reads.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The other end has another version.
    #[error(
        "the other end speaks version {found} of the protocol, and this one {VERSION}: install the same dnslab"
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// It is not the JSON of a message.
    #[error("this is no message: {0}")]
    Text(#[from] serde_json::Error),
    /// A job that nobody can apply.
    #[error(transparent)]
    Job(#[from] UnusableJob),
}

/// A message as it is written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Sent {
    Job(Box<SentJob>),
    Progress(Box<LiveInterval>),
    Measured(Box<Measured>),
    Watched(Box<Watched>),
    Failed(Failure),
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    message: T,
}

impl Message {
    /// One line, without its end.
    ///
    /// # Errors
    /// When a type cannot be JSON, which none of these is.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        let message = match self.clone() {
            Self::Job(job) => Sent::Job(Box::new(SentJob::from(*job))),
            Self::Progress(interval) => Sent::Progress(interval),
            Self::Measured(measured) => Sent::Measured(measured),
            Self::Watched(watched) => Sent::Watched(watched),
            Self::Failed(failure) => Sent::Failed(failure),
        };
        serde_json::to_string(&Versioned { version: VERSION, message })
    }

    /// The message of a line.
    ///
    /// # Errors
    /// When it is none, has another version, or is a job that nobody can apply.
    pub fn of_line(line: &str) -> Result<Self, Unreadable> {
        // Of another version nothing else is known.
        let Versioned::<IgnoredAny> { version: found, .. } = serde_json::from_str(line)?;
        if found != VERSION {
            return Err(Unreadable::Version { found });
        }
        let Versioned::<Sent> { message, .. } = serde_json::from_str(line)?;
        Ok(match message {
            Sent::Job(job) => Self::Job(Box::new(Job::try_from(*job)?)),
            Sent::Progress(interval) => Self::Progress(interval),
            Sent::Measured(measured) => Self::Measured(measured),
            Sent::Watched(watched) => Self::Watched(watched),
            Sent::Failed(failure) => Self::Failed(failure),
        })
    }
}
