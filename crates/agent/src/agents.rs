//! The links of a session: one for each host, opened when it is first needed, and again when it was lost.

use std::collections::HashMap;
use std::io;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use dnslab_lab::GuardProgram;
use dnslab_lab::services::Service;
use dnslab_lab::stacks::Stack;
use dnslab_record::Fact;
use dnslab_settings::{HostPlace, Pod, ServicePlace};

use crate::clock::Clock;
use crate::handed::Handed;
use crate::host::serve_own;
use crate::link::{Link, LinkError};
use crate::threads;

/// What a figure depends on, and what does not change by itself.
const FACTS: [&str; 3] = ["CPU", "CPUs", "kernel"];

/// Hosts that are reached at once. sshd refuses some of more than ten that log in by one bastion (MaxStartups).
const AT_ONCE: usize = 8;

/// What is not as it was on a host that is reached again.
fn changed(before: &Link, now: &Link) -> Option<&'static str> {
    let value = |link: &Link, name: &str| {
        link.facts().iter().find(|fact| fact.name == name).map(|fact| fact.value.clone())
    };
    FACTS.into_iter().find(|name| value(before, name) != value(now, name))
}

/// What is asked in clusters.
#[derive(Debug, Default)]
struct Clusters {
    /// Each Service with its way to its cluster.
    services: HashMap<ServicePlace, Arc<Service>>,
    /// What was made for the session.
    stacks: HashMap<StackPlan, Stack>,
}

/// What is made in a cluster for a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StackPlan {
    /// The context of kubectl(1); `None` for the current one.
    pub context: Option<String>,
    /// Its namespace; `None` for that of the context.
    pub namespace: Option<String>,
    /// The objects, in YAML or JSON.
    pub manifest: String,
    /// The image of their servers; `None` for their own ones.
    pub image: Option<String>,
}

/// The links to the hosts of a session.
#[derive(Debug)]
pub struct Agents {
    own: Arc<Link>,
    // It goes before the pods of the load, to whose Jobs it belongs.
    clusters: Mutex<Clusters>,
    links: Mutex<HashMap<HostPlace, Arc<Link>>>,
    guard: GuardProgram,
}

impl Agents {
    /// Without a link to another host yet. What this host does is done by a thread of this process, which has its rights and
    /// is there as long as it is.
    ///
    /// # Errors
    /// When this process can have no further pipe or thread.
    pub fn new(guard: GuardProgram) -> Result<Self, LinkError> {
        let pipe = || io::pipe().map_err(LinkError::no_agent_here);
        let ((from_link, to_agent), (from_agent, to_link)) = (pipe()?, pipe()?);
        let handed = Arc::new(Handed::default());
        let (clock, of_agent) = (Clock::start(), Arc::clone(&handed));
        let of_agent_thread = guard.clone();
        let act = move || serve_own(of_agent_thread, (from_link, to_link), (of_agent, clock)).ok();
        threads::start(act).map_err(LinkError::no_agent_here)?;
        let own = Link::own((to_agent, from_agent), handed, clock)?;
        let (links, clusters) = (Mutex::default(), Mutex::default());
        Ok(Self { own: Arc::new(own), clusters, links, guard })
    }

    /// The link to the agent of this process, which does what is done on this host.
    #[must_use]
    pub fn own(&self) -> &Arc<Link> {
        &self.own
    }

    /// What the hosts are that have been reached, each fact with the name by which its host is reached.
    #[must_use]
    pub fn facts(&self) -> Vec<Fact> {
        let links = self.links();
        let mut hosts: Vec<_> = links.iter().map(|(host, link)| (&host.name, link)).collect();
        hosts.sort_unstable_by_key(|(host, _)| *host);
        let facts = hosts.into_iter().flat_map(|(host, link)| {
            let named = |Fact { name, value }: &Fact| Fact {
                name: format!("{host}: {name}"),
                value: value.clone(),
            };
            link.facts().iter().map(named).collect::<Vec<_>>()
        });
        facts.collect()
    }

    /// The link to a host.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn link(&self, host: &HostPlace) -> Result<Arc<Link>, LinkError> {
        let before = self.links().get(host).cloned();
        if let Some(link) = before.as_ref().filter(|link| link.ended().is_none()) {
            return Ok(Arc::clone(link));
        }
        let link = Arc::new(Link::open(host)?);
        if let Some(changed) = before.and_then(|before| changed(&before, &link)) {
            return Err(LinkError::Refused {
                host: host.name.clone(),
                reason: format!("it is another machine than before: its {changed} differs"),
            });
        }
        self.links().insert(host.clone(), Arc::clone(&link));
        Ok(link)
    }

    /// The links to hosts, in their order. Those that are not open yet are opened some at a time.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn all(&self, hosts: &[HostPlace]) -> Result<Vec<Arc<Link>>, LinkError> {
        let mut links = Vec::new();
        for some in hosts.chunks(AT_ONCE) {
            thread::scope(|scope| {
                let opening = some.iter().map(|host| {
                    let opened = thread::Builder::new().spawn_scoped(scope, || self.link(host));
                    opened.map_err(|error| LinkError::no_agent_here(threads::none_left(error)))
                });
                for opened in opening.collect::<Vec<_>>() {
                    let link = opened?.join();
                    links.push(link.unwrap_or_else(|panic| resume_unwind(panic))?);
                }
                Ok(())
            })?;
        }
        Ok(links)
    }

    /// A Service that runs in a cluster.
    ///
    /// # Errors
    /// When it is not found, or not reached.
    pub fn service(&self, place: &ServicePlace) -> io::Result<Arc<Service>> {
        let mut clusters = self.clusters();
        let known = clusters.services.get(place);
        if let Some(service) = known.filter(|service| service.is_reached()) {
            return Ok(Arc::clone(service));
        }
        let service = Arc::new(Service::find(place, &self.guard)?);
        clusters.services.insert(place.clone(), Arc::clone(&service));
        Ok(service)
    }

    /// Makes what has to be in a cluster, if it is not there or belongs to a pod of the load that is lost. It goes with the
    /// pod of this host of the load.
    ///
    /// # Errors
    /// When that is no pod of the same namespace, it cannot be made, or its pods do not come to run.
    pub fn make(&self, plan: &StackPlan, load: Option<&HostPlace>) -> io::Result<()> {
        let StackPlan { context, namespace, manifest, image } = plan;
        let load = load.filter(|host| {
            let pod = host.pod.as_deref();
            pod.is_some_and(|pod| (&pod.context, &pod.namespace) == (context, namespace))
        });
        let Some(load) = load else {
            let message = "what a manifest makes is gone with a pod of the load, so that needs one in the same \
                           namespace\n  hint:    let the first of `load.hosts` be at = \"kubernetes\" there";
            return Err(io::Error::other(message));
        };
        let owner = self.link(load).map_err(io::Error::other)?.job();
        let mut clusters = self.clusters();
        if clusters.stacks.get(plan).is_some_and(|stack| stack.owner == owner) {
            return Ok(());
        }
        let is_beside = |other: &StackPlan| {
            other != plan && (&other.context, &other.namespace) == (context, namespace)
        };
        if clusters.stacks.keys().any(is_beside) {
            let message = "another variant has another `server.manifest` or `server.image` in this namespace\n  hint:    \
                           make one experiment of each, or one manifest with a Service for each";
            return Err(io::Error::other(message));
        }
        clusters.stacks.remove(plan);
        clusters.services.clear();
        let pod = Pod { context: context.clone(), namespace: namespace.clone(), ..Pod::default() };
        let stack = Stack::make(&pod, (manifest, image.as_deref()), owner)?;
        clusters.stacks.insert(plan.clone(), stack);
        Ok(())
    }

    fn clusters(&self) -> MutexGuard<'_, Clusters> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn links(&self) -> MutexGuard<'_, HashMap<HostPlace, Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
