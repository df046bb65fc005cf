//! `dnslab plan`: an experiment explained, and nothing started.

use dnslab_experiment::{Experiment, Plan, explain, installed, skipped};

use crate::exit::{Exit, Failure};
use crate::run::failure;

/// Explains an experiment.
pub(crate) fn plan(arguments: &crate::arguments::Plan) -> Result<Exit, Failure> {
    let (experiment, _) = dnslab_experiment::load(&arguments.experiment, &arguments.set)
        .map_err(|error| failure(error.into()))?;
    show(&experiment)
}

/// Says what would be done.
pub(crate) fn show(experiment: &Experiment) -> Result<Exit, Failure> {
    let skipped = skipped(experiment).map_err(failure)?;
    let plan = Plan::new(experiment, &skipped);
    say!("{}", explain(experiment, &plan, &skipped, &installed).trim_end());
    Ok(Exit::Fine)
}
