//! The search for a server's capacity: the answer that follows from its steps.

mod answer;
mod judge;
mod threshold;
mod window;

pub use answer::{Answer, Outlook, answer, trials};
pub use judge::judge;
pub use threshold::{Run, Trial, of_server, threshold};
pub use window::{BestWindow, WindowFigures};
