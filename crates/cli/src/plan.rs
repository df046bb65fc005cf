//! `dnslab plan`: an experiment explained, and nothing started.

use dnslab_experiment::{NamedPrograms, Plan, explain, located, skipped};
use dnslab_settings::Experiment;

use crate::exit::{Exit, Failure};
use crate::run::failure;

/// Explains an experiment.
pub(crate) fn plan(arguments: &crate::arguments::Plan) -> Result<Exit, Failure> {
    let (experiment, _) = dnslab_experiment::load(&arguments.experiment, &arguments.set)
        .map_err(|error| failure(error.into()))?;
    show(&experiment)
}

/// Says what would be done. What the experiment names is not run for that.
pub(crate) fn show(experiment: &Experiment) -> Result<Exit, Failure> {
    let skipped = skipped(experiment, NamedPrograms::LeftAlone).map_err(failure)?;
    let plan = Plan::new(experiment, &skipped);
    say!("{}", explain(experiment, &plan, &skipped, &located).trim_end());
    Ok(Exit::Fine)
}
