//! Why a run that was measured does not count.

mod lateness;
mod silence;
mod transport;
mod unserved;

pub use lateness::{SendingLimits, not_sent_as_asked};
pub use silence::fell_silent;
pub use transport::lost_over_transport;
pub use unserved::unserved;
