//! What a server does to its answers, as text: delay, loss, stalls. `dnslab serve` does it, and the same
//! readers check an experiment that asks for it.

mod delay;
mod error;
mod loss;
mod stall;

pub use delay::Delay;
pub use error::ProgramError;
pub use loss::Loss;
pub use stall::Stall;
