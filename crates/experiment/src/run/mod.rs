//! From the plan to the records: the session over all runs, and one run from server start to server stop.

mod calibrate;
mod captured;
mod case;
mod common_rate;
mod first_query;
mod internet;
mod leftovers;
mod population;
mod queries;
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

pub use calibrate::{Calibration, CalibrationCheck, CalibrationError, calibrate};
pub use captured::{CaptureProfile, Census, capture_options};
pub use first_query::{FirstQueryError, WrongAnswer};
pub(crate) use population::{described as population_described, read_population};
pub(crate) use session::rounds::{in_slices, rounds, tried};
pub use session::{
    CapacityError, CapacityObserver, CapacityPlan, CapacitySession, Difference, KeptTestbed,
    NamedPrograms, Observer, Session, SessionEnd, SessionError, SessionOptions, TakenAddress,
    results_path, skipped,
};
pub(crate) use testbed::has_hosts;
