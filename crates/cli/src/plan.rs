//! `dnslab plan`: explains an experiment and starts nothing.

use dnslab_experiment::{NamedPrograms, Plan, explain, located, skipped};
use dnslab_settings::{ChainServer, Experiment};
use dnslab_wire::units::duration;

use crate::arguments::{Asked, publish};
use crate::exit::{Exit, Failure};
use crate::session::{failure, guard};

pub(crate) fn plan(arguments: &crate::arguments::Plan) -> Result<Exit, Failure> {
    let (experiment, _) = arguments.asked.experiment().map_err(|error| failure(error.into()))?;
    show(&experiment, &arguments.asked)
}

/// Nothing that the experiment names is run for this.
pub(crate) fn show(experiment: &Experiment, asked: &Asked) -> Result<Exit, Failure> {
    let guard = guard();
    let find = |server: &ChainServer<'_>| located(server, &guard);
    let skipped = skipped(experiment, NamedPrograms::LeftAlone, &guard).map_err(failure)?;
    let plan = Plan::new(experiment, &skipped);
    say!("{}", explain(experiment, &plan, &skipped, &find).trim_end());
    let beside = asked.sessions_beside(experiment);
    if !beside.is_empty() {
        say!("beside them one session each with {}", beside.join(", "));
    }
    if asked.wants_pilot(experiment) {
        let first = duration::spoken(publish::pilots(experiment)[0]);
        say!(
            "before them a pilot load of {first} for each variant, or a longer one if it has not settled then"
        );
    }
    Ok(Exit::Fine)
}
