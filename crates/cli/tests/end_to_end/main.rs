//! The `dnslab` command from end to end: real arguments, servers, signals and files.
//!
//! Every test with load has a [`room::Room`] with load, and at most two have one at once; a test of figures has the
//! machine to itself. Loads are short: most tests check that the figures are there and add up, never how large they are. Each failure
//! shows the command, its output and the folder, which then stays.

mod addresses;
mod answers;
mod attempts;
mod bad_input;
mod calibration;
mod capacity;
mod captures;
mod causes;
mod command;
mod compare;
mod cpu;
mod disk;
mod dnsperf_files;
mod dnstap;
mod documents;
mod embedded;
mod evidence;
mod external;
mod first_hour;
mod first_queries;
mod foreign;
mod given_files;
mod host;
mod hosts;
mod hosts_death;
mod hosts_interruption;
mod hosts_wrong;
mod import;
mod internet;
mod interruption;
mod kubernetes;
mod laboratory;
mod live;
mod lost_output;
mod manual;
mod metrics;
mod monitoring_stack;
mod plans;
mod planted;
mod population;
mod processes;
mod readers_host;
mod replay;
mod report;
mod resolvers;
mod room;
mod roots;
mod running_server;
mod serve;
mod server_failure;
mod servers;
mod serving;
mod silence;
mod studies;
mod transports;
mod trust;
mod watching;
mod zone_by_ipa;
mod zone_by_ldif;
mod zone_by_nsupdate;
mod zone_files;
mod zone_made;
