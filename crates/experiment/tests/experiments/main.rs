//! Experiments before they run: the built-in ones, those in files, and what is told of them.

mod files;
mod plans;
