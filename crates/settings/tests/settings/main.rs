//! Experiments as files and command lines have them, and what is said of them.

mod chains;
mod documents;
mod experiments;
mod problems;
mod properties;
