//! `dnslab plan`: explains an experiment and starts nothing.

use dnslab_experiment::{NamedPrograms, Plan, explain, located, skipped};
use dnslab_settings::{ChainServer, Experiment};

use crate::exit::{Exit, Failure};
use crate::session::{failure, guard};

pub(crate) fn plan(arguments: &crate::arguments::Plan) -> Result<Exit, Failure> {
    let (experiment, _) = arguments.asked.experiment().map_err(|error| failure(error.into()))?;
    show(&experiment)
}

/// Nothing that the experiment names is run for this.
pub(crate) fn show(experiment: &Experiment) -> Result<Exit, Failure> {
    let guard = guard();
    let find = |server: &ChainServer<'_>| located(server, &guard);
    let skipped = skipped(experiment, NamedPrograms::LeftAlone, &guard).map_err(failure)?;
    let plan = Plan::new(experiment, &skipped);
    say!("{}", explain(experiment, &plan, &skipped, &find).trim_end());
    Ok(Exit::Fine)
}
