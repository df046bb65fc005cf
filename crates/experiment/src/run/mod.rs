//! From the plan to the records: the session over all runs, and one run from server start to server stop.

mod calibrate;
mod captured;
mod case;
mod error;
mod external_upstream;
mod first_query;
mod internet;
mod leftovers;
mod manifests;
mod open_load;
mod place;
pub(crate) mod population;
mod queries;
mod ready;
mod remedies;
mod room;
mod round;
mod seeds;
pub(crate) mod session;
mod split;
mod stoppable;
mod target;
mod testbed;
pub(crate) mod timeline;
mod validity;
mod watching;
mod ways;
pub(crate) mod zone;

pub use calibrate::{Calibration, CalibrationCheck, CalibrationError, calibrate};
pub use captured::{CaptureProfile, Census, capture_options};
pub use error::{FirstQueryError, WrongAnswer};
pub use session::capacity::{CapacityError, CapacityObserver, CapacityPlan, CapacitySession};
pub use session::conditions::Difference;
pub use session::kept::KeptTestbed;
pub use session::{
    NamedPrograms, Observer, Session, SessionEnd, SessionError, SessionOptions, TakenAddress, rest,
    results_path, skipped,
};
pub(crate) use testbed::{has_hosts, no_hosts};
