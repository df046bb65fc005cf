//! Servers under test: found, configured, started, watched, stopped, and nothing left behind.
//!
//! The principal type is [`RunningServer`]. [`RunningServer::start`] takes a [`ServerSpec`], writes the whole state of
//! the server into one folder, starts it under a guard process, and returns when that process owns the sockets and gave
//! a right answer.
//!
//! ```no_run
//! use std::time::{Duration, Instant};
//!
//! use dnslab_lab::{GuardProgram, LabError, RunningServer, Sampler, ServerSpec};
//!
//! # fn measure(spec: &ServerSpec) -> Result<(), LabError> {
//! let guard = GuardProgram::this_program(["guard"]);
//! let probe = |_transport, _address| Ok(()); // the caller asks the server and judges the answer
//! let server = RunningServer::start(spec, &guard, &probe, Duration::from_secs(10))?;
//! let sampler = Sampler::start(server.watched());
//! let origin = Instant::now(); // the load begins here
//! let series = sampler.finish(origin);
//! server.stop()?;
//! # let _ = series;
//! # Ok(())
//! # }
//! ```
//!
//! Modules, in the order of reading: `server` (an adapter for each server) and `running`; `guarded`, [`guard`],
//! `watch`, `launch`, `process`, `ending`, `privileges`, `file_system`, [`root`] (processes); `ready`; `sampler`, `readings`, `cgroup`, `cpu_group`, `threads`,
//! `interrupts`, `external` (the watch); `counting`, `asked` (what servers say themselves); [`perf`]; [`hosts`],
//! [`network`] (namespaces and links); [`remote`] (dnslab on another host), [`pods`] (hosts in a cluster), [`services`] and [`stacks`] (servers that run in one), [`rights`]; [`event`]; [`dnstap_socket`]; [`get`], [`cache`]; [`monitoring`]; [`doctor`], [`host`],
//! [`cpus`]; `given`, `regular` (files).
//!
//! - Invariant: no other crate of the product starts processes. No process outlives dnslab but those of [`monitoring`].
//! - Invariant: it sends no load and no probe. Its client sockets only ask servers about themselves.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod asked;
pub mod cache;
pub mod certificate;
mod cgroup;
mod counting;
mod cpu_group;
pub mod cpus;
mod descendants;
pub mod dnstap_socket;
pub mod doctor;
mod ending;
mod error;
pub mod event;
mod external;
mod file_system;
pub mod get;
mod given;
pub mod guard;
mod guarded;
pub mod host;
pub mod hosts;
mod interrupts;
mod kubectl;
mod launch;
pub mod monitoring;
pub mod network;
mod package;
pub mod perf;
pub mod pods;
pub mod ports;
mod privileges;
mod process;
mod readings;
mod ready;
mod regular;
pub mod remote;
pub mod rights;
pub mod root;
mod root_error;
mod running;
mod sampler;
mod server;
pub mod services;
pub mod sockets;
pub mod stacks;
mod stage_error;
pub mod sweep;
mod sys;
mod threads;
mod timeline;
mod timers;
mod tls_library;
pub mod users;
mod watch;
pub mod way;
mod written;
mod zone_signing;

pub use cgroup::{CpuSource, MemorySource, Sources};
pub use counting::CounterWatch;
pub use cpu_group::{GroupWaits, GroupWatch};
pub use dnslab_settings::Identity;
pub use dnslab_settings::{CertificateKind, LogSuffix, ServerKind, TimeForm};
pub use ending::{Ending, ExitReport};
pub use error::{AddressTaken, Exited, LabError, NotInstalled, NotReady};
pub use external::{ExternalServer, NotFound, version_at};
pub use file_system::FileSystem;
pub use given::{Given, GivenFault, open_given, read_given, read_given_text};
pub use guarded::{GuardProgram, GuardSpec};
pub use launch::Environment;
pub use privileges::RunAs;
pub use process::RunningProcess;
pub use ready::{Patience, Probe};
pub use regular::open_regular;
pub use root::{find_in_root, program_in_root};
pub use root_error::RootError;
pub use running::RunningServer;
pub use sampler::{Latest, Sampler, Watched};
pub use server::{
    DNSTAP_LOG, EmbeddedSettings, IANA_TRUST_ANCHORS, Installed, LogDestination, LogFile,
    LogPrefix, Logging, Needs, OWN_FILE, OwnConfiguration, OwnConfigurationError, OwnFile,
    POLICY_NAME, PolicyZone, Ports, QUERY_LOG, QUERY_LOG_FOLDER, QueryLog, ROOT_HINTS, Rendered,
    RenderedFile, RootHints, Rotation, SYSLOG_SOCKET, ServerSpec, Signatures, UPSTREAM_AUTHORITY,
    Upstream, UpstreamTls, Version, ZoneFile, check_connections, find, is_installed, named_program,
    render, title,
};
pub use timeline::signed_ns;
pub use zone_signing::sign_zone;
