//! `dnslab agent`: what another host is told to do, by whoever reaches it.

use std::io::{self, IsTerminal as _};
use std::process;

use anyhow::Context as _;
use dnslab_agent::{AgentEnd, Permission};
use dnslab_protocol::Role;

use crate::arguments::Agent;
use crate::exit::{Exit, Failure};
use crate::session::guard;
use crate::terminal;

/// Serves the coordinator at the other end of the standard input and output until that says farewell.
pub(crate) fn agent(arguments: &Agent) -> Result<Exit, Failure> {
    if let Some(folder) = &arguments.put {
        dnslab_agent::put_program(folder)
            .with_context(|| format!("the program cannot be put into {}", folder.display()))?;
        return Ok(Exit::Fine);
    }
    if arguments.stay {
        dnslab_agent::stay();
        return Ok(Exit::Fine);
    }
    if io::stdin().is_terminal() {
        return Err(Failure::bad_input(anyhow::anyhow!(
            "nobody speaks with this agent: it is started over ssh, by `dnslab load SERVER --watch HOST` or `--hosts \
             HOST` on another host"
        )));
    }
    if arguments.copied {
        dnslab_agent::remove_copy();
    }
    let bounds_load = arguments.targets.is_some() || arguments.max_rate.is_some();
    let roles = match &arguments.allow[..] {
        // Whoever bounds loads allows nothing else.
        [] if bounds_load => vec![Role::Load],
        [] => Role::ALL.to_vec(),
        allowed => allowed.to_vec(),
    };
    // What it waits for may never come: its output is read by nobody.
    let silent = |end: AgentEnd| -> () {
        terminal::error(&end.into());
        process::exit(Exit::Impossible.code().into());
    };
    let Agent { targets, max_rate: max_rate_qps, .. } = arguments;
    let (targets, max_rate_qps) = (targets.clone(), *max_rate_qps);
    // A forced command is none of the user's own.
    let is_bounded =
        !arguments.allow.is_empty() || std::env::var_os("SSH_ORIGINAL_COMMAND").is_some();
    let permission = Permission { roles, is_bounded, targets, max_rate_qps, guard: guard() };
    dnslab_agent::serve_standard(&permission, silent)?;
    Ok(Exit::Fine)
}
