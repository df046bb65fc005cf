//! Why a process could not become a server.

use std::io;
use std::path::PathBuf;

use crate::users::User;

/// A step between the guard and the server failed. Its text goes to the server's log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageError {
    /// The system refused it.
    #[error("cannot {action}: {source}")]
    Refused { action: String, source: io::Error },
    /// A folder above that of the server is closed to its user, and nothing could be mounted over it.
    #[error(
        "cannot cover {} for {user}, who may not enter it: {source} (hint: results in a folder that everybody \
         may enter need no cover)",
        closed.display()
    )]
    Cover { closed: PathBuf, user: User, source: io::Error },
    /// The process that started it has ended.
    #[error("the guard is gone")]
    GuardGone,
}

/// Adds to the system's error what was tried.
pub(crate) fn refused<E: Into<io::Error>>(
    action: impl Into<String>,
) -> impl FnOnce(E) -> StageError {
    let action = action.into();
    move |error| StageError::Refused { action, source: error.into() }
}
