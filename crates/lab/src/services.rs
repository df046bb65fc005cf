//! Services of a cluster that run already: where they answer, which pods are behind them, and what these publish.
//!
//! All of it is read through the API server, by the user's own `kubectl proxy` at a socket in a private folder: nothing in
//! the cluster is changed, and no pod is entered.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use dnslab_record::{
    CounterSample, CounterSeries, CpuLimit, EndpointChange, PodSample, PodSeries, ResourceSample,
    ResourceSeries, ServiceSeries,
};
use dnslab_settings::{Pod, ServicePlace};
use serde_json::Value;
use tempfile::TempDir;

use crate::guarded::{GuardProgram, GuardSpec};
use crate::kubectl::{kubectl, said};
use crate::launch::Environment;
use crate::process::RunningProcess;
use crate::rights::Rights;
use crate::server::{Published, published};
use crate::timeline::signed_ns;

/// Time in which kubectl must be there.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// Time for an answer of the API server.
const PATIENCE: Duration = Duration::from_secs(10);

/// Octets of an answer at most: the metrics of a kubelet with 250 pods have some 3 MB.
const MAX_ANSWER: usize = 64 << 20;

/// Between two readings.
const INTERVAL: Duration = Duration::from_secs(1);

/// Where CoreDNS publishes its metrics, unless a port of the Service is named `metrics`.
const METRICS_PORT: u64 = 9_153;

/// Pods that are read at once.
const AT_ONCE: usize = 16;

/// For a pod that does not say how many CPUs its server uses: so many that none is taken for full.
const UNKNOWN_CPUS: usize = 1_024;

/// Samples of a pod that are kept, at most.
const MAX_SAMPLES: usize = 600;

/// Pods that are watched, at most.
const MAX_PODS: usize = 256;

/// The way to the API server.
#[derive(Debug)]
struct Api {
    process: Option<RunningProcess>,
    folder: TempDir,
}

impl Api {
    fn open(pod: &Pod, guard: &GuardProgram) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("dnslab-kubectl-").tempdir()?;
        let socket = folder.path().join(SOCKET);
        let mut command = kubectl(pod);
        command.extend([
            "proxy".to_owned(),
            format!("--unix-socket={}", socket.display()),
            // It reads, and nothing else.
            "--reject-methods=^(POST|PUT|PATCH|DELETE)$".to_owned(),
        ]);
        let log = folder.path().join(LOG);
        let spec = GuardSpec {
            environment: Environment::Whole,
            ..GuardSpec::new(command, folder.path().to_owned(), log.clone())
        };
        let process = RunningProcess::start(guard, &spec).map_err(io::Error::other)?;
        let own = Self { process: Some(process), folder };
        let end = Instant::now() + BEGINS_WITHIN;
        while UnixStream::connect(own.socket()).is_err() {
            let has_ended = own.process.as_ref().is_some_and(|process| process.exited().is_some());
            if has_ended || Instant::now() > end {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(io::Error::other(format!("kubectl proxy: {}", said.trim())));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(own)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET)
    }

    /// The body at a path, or what the API server says instead.
    fn get(&self, path: &str) -> Result<String, String> {
        let text = self.exchange(path).map_err(|error| format!("{path}: {error}"))?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        if head.split(' ').nth(1) == Some("200") {
            return Ok(body.to_owned());
        }
        let status: Option<Value> = serde_json::from_str(body).ok();
        let message = status.as_ref().and_then(|status| status["message"].as_str());
        let message = message.or_else(|| body.lines().next().filter(|line| !line.is_empty()));
        Err(message.unwrap_or_else(|| head.lines().next().unwrap_or_default()).to_owned())
    }

    fn json(&self, path: &str) -> Result<Value, String> {
        serde_json::from_str(&self.get(path)?).map_err(|error| format!("{path}: {error}"))
    }

    /// HTTP/1.0 (RFC 1945): the connection ends with the answer.
    fn exchange(&self, path: &str) -> io::Result<String> {
        let mut socket = UnixStream::connect(self.socket())?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        write!(socket, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let end = Instant::now() + PATIENCE;
        let (mut octets, mut part) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            match socket.read(&mut part)? {
                0 => return Ok(String::from_utf8_lossy(&octets).into_owned()),
                length => octets.extend_from_slice(&part[..length]),
            }
            if octets.len() > MAX_ANSWER || Instant::now() > end {
                return Err(io::Error::other("the answer does not end"));
            }
        }
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop(Duration::from_millis(500));
        }
    }
}

const SOCKET: &str = "api";
const LOG: &str = "log";

/// A Service that runs in a cluster.
#[derive(Debug)]
pub struct Service {
    api: Api,
    namespace: String,
    name: String,
    /// Where it answers in its cluster.
    pub address: IpAddr,
    metrics_port: u64,
}

/// A pod that is ready behind a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Endpoint {
    node: String,
    address: String,
}

impl Service {
    /// Looks a Service up.
    ///
    /// # Errors
    /// When kubectl is not there, the cluster is not reached, it has no such Service, or what has to be read is not
    /// allowed.
    pub fn find(place: &ServicePlace, guard: &GuardProgram) -> io::Result<Self> {
        let ServicePlace { context, namespace, name } = place.clone();
        let pod = Pod { context, namespace, ..Pod::default() };
        let own = "jsonpath={.contexts[0].context.namespace}";
        let namespace = match &pod.namespace {
            Some(namespace) => namespace.clone(),
            None => said(&pod, &["config", "view", "--minify", "-o", own], None)?,
        };
        let namespace = if namespace.is_empty() { "default".to_owned() } else { namespace };
        Rights::Service.check(&Pod { namespace: Some(namespace.clone()), ..pod.clone() })?;
        let api = Api::open(&pod, guard)?;
        let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
        let found = api.json(&path).map_err(io::Error::other)?;
        let address = found["spec"]["clusterIP"].as_str().and_then(|text| text.parse().ok());
        let Some(address) = address else {
            let message = format!(
                "the Service {namespace}/{name} has no address of its own\n  hint:    name that of a pod: \
                 `server.address`"
            );
            return Err(io::Error::other(message));
        };
        let mut service = Self { api, namespace, name, address, metrics_port: METRICS_PORT };
        let slices = service.slices().map_err(io::Error::other)?;
        service.metrics_port = metrics_port(&slices).unwrap_or(METRICS_PORT);
        if ready(&slices).is_empty() {
            let message = format!("no pod is ready behind the Service {}", service.title());
            return Err(io::Error::other(message));
        }
        Ok(service)
    }

    /// Whether the way to it is still there.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.api.process.as_ref().is_some_and(|process| process.exited().is_none())
    }

    /// Its namespace and name.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The pods that are ready behind it, by name.
    fn endpoints(&self) -> Result<BTreeMap<String, Endpoint>, String> {
        Ok(ready(&self.slices()?))
    }

    fn slices(&self) -> Result<Value, String> {
        let Self { namespace, name, .. } = self;
        let path = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=\
             kubernetes.io%2Fservice-name%3D{name}"
        );
        self.api.json(&path)
    }

    /// What a pod publishes now.
    fn published(&self, pod: &str) -> Result<Published, String> {
        let Self { namespace, metrics_port, .. } = self;
        let path =
            format!("/api/v1/namespaces/{namespace}/pods/{pod}:{metrics_port}/proxy/metrics");
        published(&self.api.get(&path)?)
    }

    /// What pods publish now, each with the instant at which it was read. They are asked side by side: one that is not
    /// reached takes as long as nobody waits for the others.
    fn all_published<'a>(
        &self,
        pods: impl Iterator<Item = &'a String>,
    ) -> Vec<(String, Instant, Result<Published, String>)> {
        let one = |pod: &str| {
            let asked = Instant::now();
            let read = self.published(pod);
            (pod.to_owned(), asked + asked.elapsed() / 2, read)
        };
        let names: Vec<&String> = pods.collect();
        let mut all = Vec::new();
        for some in names.chunks(AT_ONCE) {
            thread::scope(|scope| {
                let reading = some.iter().filter_map(|&pod| {
                    thread::Builder::new().spawn_scoped(scope, move || one(pod)).ok()
                });
                let reading: Vec<_> = reading.collect();
                all.extend(reading.into_iter().filter_map(|reading| reading.join().ok()));
            });
        }
        all
    }

    /// The quotas that the kubelets of some nodes tell of, of the containers of pods.
    fn limits(&self, nodes: &BTreeSet<String>) -> Result<BTreeMap<String, Quota>, String> {
        let mut limits = BTreeMap::new();
        for node in nodes {
            let page = self.api.get(&format!("/api/v1/nodes/{node}/proxy/metrics/cadvisor"))?;
            limits.extend(quotas(&page, &self.namespace));
        }
        Ok(limits)
    }

    /// The CPUs that those containers of a pod may use that have a limit, which are those that kubelets count of.
    fn cpus(&self, pod: &str) -> Option<f64> {
        let path = format!("/api/v1/namespaces/{}/pods/{pod}", self.namespace);
        let pod = self.api.json(&path).ok()?;
        let containers = pod["spec"]["containers"].as_array()?;
        let each = containers
            .iter()
            .filter_map(|container| quantity(container["resources"]["limits"]["cpu"].as_str()?));
        each.reduce(|sum, one| sum + one)
    }

    /// Watches its pods from here on.
    #[must_use]
    pub fn watch(self: &Arc<Self>) -> ServiceWatch {
        let (stop, stopped) = mpsc::channel();
        let (began, has_begun) = mpsc::channel();
        let service = Arc::clone(self);
        let thread = thread::Builder::new().spawn(move || service.read(&began, &stopped));
        // An error means that the thread has ended already, or never was, which `finish` finds out.
        has_begun.recv().ok();
        ServiceWatch { stop, thread }
    }

    fn read(&self, began: &mpsc::Sender<()>, stopped: &mpsc::Receiver<()>) -> Readings {
        let mut readings = Readings { name: self.title(), ..Readings::default() };
        readings.take(self);
        let nodes: BTreeSet<String> = readings.pods.values().map(|pod| pod.node.clone()).collect();
        let before = self.limits(&nodes);
        began.send(()).ok();
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(INTERVAL) {
            readings.take(self);
        }
        readings.take(self);
        match before.and_then(|before| Ok((before, self.limits(&nodes)?))) {
            Ok((before, after)) => readings.limit(self, &before, &after),
            Err(why) => readings.unseen.push(format!("how often CPU limits held pods up: {why}")),
        }
        readings
    }
}

/// The pods that are ready in a list of EndpointSlices.
fn ready(slices: &Value) -> BTreeMap<String, Endpoint> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let endpoints = list(&slices["items"]).into_iter().flat_map(|slice| list(&slice["endpoints"]));
    let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false);
    let of_pods = ready.filter(|endpoint| endpoint["targetRef"]["kind"] == "Pod");
    let named = of_pods.map(|endpoint| {
        let (node, address) = (text(&endpoint["nodeName"]), text(&endpoint["addresses"][0]));
        (text(&endpoint["targetRef"]["name"]), Endpoint { node, address })
    });
    named.take(MAX_PODS).collect()
}

/// The port of the pods that their Service calls `metrics`: a number also where the Service has a name for it.
fn metrics_port(slices: &Value) -> Option<u64> {
    let ports = slices["items"].as_array()?.iter().filter_map(|slice| slice["ports"].as_array());
    ports.flatten().find(|port| port["name"] == "metrics")?["port"].as_u64()
}

/// CPUs, as Kubernetes writes them: `2`, `0.5` or `500m`.
fn quantity(text: &str) -> Option<f64> {
    match text.strip_suffix('m') {
        Some(thousandths) => Some(thousandths.parse::<f64>().ok()? / 1_000.0),
        None => text.parse().ok(),
    }
}

/// What a kubelet counts of the quota of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Quota {
    periods: f64,
    throttled: f64,
    throttled_seconds: f64,
}

/// The quotas of the pods of a namespace, by name, on a page of cAdvisor's metrics: sums over their containers, or of the
/// groups of the pods where the kubelet does not tell containers apart.
fn quotas(page: &str, namespace: &str) -> BTreeMap<String, Quota> {
    let (mut all, mut of_containers) = (BTreeMap::new(), BTreeMap::new());
    for line in page.lines() {
        let Some((metric, rest)) =
            line.strip_prefix("container_cpu_cfs_").and_then(|rest| rest.split_once('{'))
        else {
            continue;
        };
        let Some((labels, value)) = rest.rsplit_once("} ") else { continue };
        let label = |name: &str| {
            let from = labels.split_once(&format!("{name}=\""))?.1;
            Some(from.split_once('"')?.0)
        };
        if label("namespace") != Some(namespace) {
            continue;
        }
        let value: f64 = value.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0);
        let Some(pod) = label("pod") else { continue };
        let is_whole_pod = label("container").is_none_or(str::is_empty);
        let all = if is_whole_pod { &mut all } else { &mut of_containers };
        let quota: &mut Quota = all.entry(pod.to_owned()).or_default();
        match metric {
            "periods_total" => quota.periods += value,
            "throttled_periods_total" => quota.throttled += value,
            "throttled_seconds_total" => quota.throttled_seconds += value,
            _ => {}
        }
    }
    all.extend(of_containers);
    all
}

/// A watch that runs.
#[derive(Debug)]
pub struct ServiceWatch {
    stop: mpsc::Sender<()>,
    thread: io::Result<JoinHandle<Readings>>,
}

/// What was seen of a Service.
#[derive(Debug, Default)]
pub struct SeenService {
    /// What its pods used together.
    pub resources: ResourceSeries,
    /// What they counted together.
    pub counters: CounterSeries,
    /// Each of them.
    pub series: ServiceSeries,
}

impl ServiceWatch {
    /// Takes a last reading, and puts all on the timeline of a load that began at `origin`.
    #[must_use]
    pub fn finish(self, origin: Instant) -> SeenService {
        self.stop.send(()).ok();
        let readings = match self.thread {
            Ok(thread) => thread.join().unwrap_or_default(),
            Err(error) => Readings { unseen: vec![error.to_string()], ..Readings::default() },
        };
        readings.seen(origin)
    }
}

/// What a pod published at an instant.
type Reading = (Instant, Published);

/// What was read of a pod.
#[derive(Debug, Default)]
struct PodReadings {
    node: String,
    address: String,
    readings: Vec<Reading>,
    /// What it has used and counted since its first reading, or since it began, if that was later.
    sum: Published,
    cpu_limit: Option<CpuLimit>,
}

impl PodReadings {
    /// Takes a reading. A process that began after the watch, which did at `begun` (seconds since 1970), had nothing
    /// before.
    fn take(&mut self, reading: Reading, begun: u64) {
        let (_, now) = &reading;
        let before = match self.readings.last() {
            Some((_, last)) if now.started == last.started && now.cpu_ns >= last.cpu_ns => {
                Some(last.clone())
            }
            Some(_) => None,
            None if now.started > begun => None,
            None => Some(now.clone()),
        };
        let before = before.unwrap_or_default();
        if self.readings.is_empty() && now.started > begun {
            self.readings
                .push((reading.0, Published { started: now.started, ..Published::default() }));
        }
        self.sum.cpu_ns += now.cpu_ns.saturating_sub(before.cpu_ns);
        for (name, count) in &now.counts {
            let before = before.counts.get(name).copied().unwrap_or(0);
            *self.sum.counts.entry(name.clone()).or_default() += count.saturating_sub(before);
        }
        self.readings.push(reading);
    }
}

/// Every so manieth of the samples, with those at both ends of each change of the process.
fn thinned(samples: Vec<PodSample>) -> Vec<PodSample> {
    let every = samples.len().div_ceil(MAX_SAMPLES).max(1);
    let last = samples.len().saturating_sub(1);
    let mut kept = Vec::new();
    for (place, sample) in samples.iter().enumerate() {
        let falls = |next: Option<&PodSample>| next.is_some_and(|next| next.cpu_ns < sample.cpu_ns);
        let before = place.checked_sub(1).map(|before| &samples[before]);
        let is_new = before.is_some_and(|before| sample.cpu_ns < before.cpu_ns);
        if place.is_multiple_of(every) || place == last || is_new || falls(samples.get(place + 1)) {
            kept.push(sample.clone());
        }
    }
    kept
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// What was read of a Service.
#[derive(Debug, Default)]
struct Readings {
    name: String,
    pods: BTreeMap<String, PodReadings>,
    /// Those that were ready at the last reading; `None` before the first.
    ready: Option<BTreeSet<String>>,
    changes: Vec<(Instant, Vec<String>, Vec<String>)>,
    unseen: Vec<String>,
    /// Sums over all pods: when, CPU time and memory, counts.
    sums: Vec<(Instant, Published)>,
    /// CPUs that the servers of the first reading run code on at one time.
    cpus: usize,
    /// When the first reading began, seconds since 1970 in UTC.
    begun: Option<u64>,
}

impl Readings {
    /// Reads all pods once.
    fn take(&mut self, service: &Service) {
        let endpoints = match service.endpoints() {
            Ok(endpoints) => endpoints,
            Err(why) => return self.miss(format!("the pods behind it: {why}")),
        };
        let now: BTreeSet<String> = endpoints.keys().cloned().collect();
        if let Some(before) = self.ready.replace(now.clone()).filter(|before| *before != now) {
            let less = |one: &BTreeSet<String>, other| one.difference(other).cloned().collect();
            self.changes.push((Instant::now(), less(&now, &before), less(&before, &now)));
        }
        let is_first = self.sums.is_empty();
        let begun = *self.begun.get_or_insert_with(unix_seconds);
        // One that has left is read as long as it is there: it answers what came to it before.
        for (name, endpoint) in endpoints {
            let pod = self.pods.entry(name).or_default();
            (pod.node, pod.address) = (endpoint.node, endpoint.address);
        }
        let mut failed = Vec::new();
        for (name, at, read) in service.all_published(self.pods.keys()) {
            let Some(pod) = self.pods.get_mut(&name) else { continue };
            match read {
                Ok(published) => {
                    if is_first {
                        self.cpus +=
                            published.threads.map_or(UNKNOWN_CPUS, |threads| threads as usize);
                    }
                    pod.take((at, published), begun);
                }
                Err(why) if now.contains(&name) => {
                    failed.push(format!("what {name} publishes: {why}"))
                }
                Err(_) => {}
            }
        }
        failed.into_iter().for_each(|why| self.miss(why));
        self.sums.push((Instant::now(), self.sum()));
    }

    fn miss(&mut self, why: String) {
        if !self.unseen.contains(&why) && self.unseen.len() < MAX_PODS {
            self.unseen.push(why);
        }
    }

    /// What all pods have used and counted since the first reading.
    fn sum(&self) -> Published {
        let mut sum = Published::default();
        for (name, pod) in &self.pods {
            sum.cpu_ns += pod.sum.cpu_ns;
            for (name, count) in &pod.sum.counts {
                *sum.counts.entry(name.clone()).or_default() += count;
            }
            if self.ready.as_ref().is_some_and(|ready| ready.contains(name)) {
                sum.memory_octets += pod.readings.last().map_or(0, |(_, last)| last.memory_octets);
            }
        }
        sum
    }

    /// Adds what the kubelets counted of quotas meanwhile.
    fn limit(
        &mut self,
        service: &Service,
        before: &BTreeMap<String, Quota>,
        after: &BTreeMap<String, Quota>,
    ) {
        for (name, pod) in &mut self.pods {
            let (Some(after), Some(cpus)) = (after.get(name), service.cpus(name)) else { continue };
            let before = before.get(name).copied().unwrap_or_default();
            let grown = |figure: fn(&Quota) -> f64| (figure(after) - figure(&before)).max(0.0);
            pod.cpu_limit = Some(CpuLimit {
                cpus,
                group: format!("the containers of {name}"),
                periods: grown(|quota| quota.periods) as u64,
                throttled: grown(|quota| quota.throttled) as u64,
                throttled_ns: (grown(|quota| quota.throttled_seconds) * 1e9) as u64,
            });
        }
    }

    fn seen(self, origin: Instant) -> SeenService {
        let Self { name, pods, changes, unseen, sums, cpus, .. } = self;
        let at = |instant: Instant| signed_ns(instant, origin);
        let limits = pods.values().filter_map(|pod| pod.cpu_limit.clone());
        let cpu_limit = limits.reduce(|sum, one| CpuLimit {
            cpus: sum.cpus + one.cpus,
            group: format!("the containers behind {name}"),
            periods: sum.periods + one.periods,
            throttled: sum.throttled + one.throttled,
            throttled_ns: sum.throttled_ns + one.throttled_ns,
        });
        let is_published = sums.iter().any(|(_, sum)| sum.cpu_ns > 0);
        let samples = sums.iter().map(|(instant, sum)| ResourceSample {
            at_ns: at(*instant),
            cpu_ns: sum.cpu_ns,
            memory_octets: sum.memory_octets,
            ..ResourceSample::default()
        });
        let resources = match is_published {
            true => ResourceSeries {
                cpu_source: "process_cpu_seconds_total of the pods".to_owned(),
                memory_source: "process_resident_memory_bytes of the pods".to_owned(),
                cpus: cpus.max(1),
                samples: samples.collect(),
                cpu_limit,
                ..ResourceSeries::default()
            },
            false => ResourceSeries::default(),
        };
        let counted = sums
            .into_iter()
            .map(|(instant, sum)| CounterSample { at_ns: at(instant), counts: sum.counts });
        let counters = CounterSeries {
            source: "the metrics of the pods".to_owned(),
            samples: counted.collect(),
            failure: unseen.last().cloned(),
        };
        let pods = pods.into_iter().map(|(name, pod)| {
            let samples = pod.readings.into_iter().map(|(instant, published)| PodSample {
                at_ns: at(instant),
                cpu_ns: published.cpu_ns,
                memory_octets: published.memory_octets,
                counts: published.counts,
            });
            let samples = thinned(samples.collect());
            let (node, address, cpu_limit) = (pod.node, pod.address, pod.cpu_limit);
            PodSeries { name, node, address, samples, cpu_limit }
        });
        let changes = changes.into_iter().map(|(instant, came, left)| EndpointChange {
            at_ns: at(instant),
            came,
            left,
        });
        let series =
            ServiceSeries { name, pods: pods.collect(), changes: changes.collect(), unseen };
        SeenService { resources, counters, series }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_that_are_ready_are_behind_it() {
        let endpoint = |name: &str, ready: bool| {
            json!({"addresses": ["10.0.0.1"], "nodeName": "n", "conditions": {"ready": ready},
                   "targetRef": {"kind": "Pod", "name": name}})
        };
        let slices = json!({"items": [{"endpoints": [endpoint("a", true), endpoint("b", false)]},
                                      {"endpoints": [{"addresses": ["192.0.2.1"]}]}, {}]});
        let found = ready(&slices);
        let expected = Endpoint { node: "n".to_owned(), address: "10.0.0.1".to_owned() };
        assert_eq!(found, BTreeMap::from([("a".to_owned(), expected)]));
        assert_eq!(metrics_port(&slices), None);
        let ports = json!([{"name": "dns", "port": 53}, {"name": "metrics", "port": 9_253}]);
        assert_eq!(metrics_port(&json!({"items": [{}, {"ports": ports}]})), Some(9_253));
    }

    #[test]
    fn quotas_are_those_of_containers_or_else_of_the_pod() {
        let line = |metric: &str, container: &str, pod: &str, value: &str| {
            format!(
                "container_cpu_cfs_{metric}{{container=\"{container}\",namespace=\"dns\",pod=\"{pod}\"}} {value} 17\n"
            )
        };
        let page = [
            line("periods_total", "", "a", "100"),
            line("periods_total", "one", "a", "40"),
            line("periods_total", "two", "a", "50"),
            line("throttled_periods_total", "one", "a", "4"),
            line("periods_total", "", "b", "7"),
            line("throttled_seconds_total", "", "b", "0.5"),
            line("periods_total", "", "c", "9").replace("dns", "other"),
        ];
        let found = quotas(&page.concat(), "dns");
        let quota =
            |periods, throttled, throttled_seconds| Quota { periods, throttled, throttled_seconds };
        assert_eq!(found["a"], quota(90.0, 4.0, 0.0));
        assert_eq!(found["b"], quota(7.0, 0.0, 0.5));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn quantities_of_cpus() {
        let read = ["2", "0.5", "500m", "x"].map(quantity);
        assert_eq!(read, [Some(2.0), Some(0.5), Some(0.5), None]);
    }

    fn reading(started: u64, cpu_ns: u64, queries: u64) -> Reading {
        let counts = [("queries".to_owned(), queries)].into();
        (Instant::now(), Published { started, cpu_ns, counts, memory_octets: 5, threads: None })
    }

    #[test]
    fn what_a_pod_had_before_the_watch_is_none_of_it() {
        let sum = |readings: &[Reading]| {
            let mut pod = PodReadings::default();
            readings.iter().for_each(|reading| pod.take(reading.clone(), 1_000));
            (pod.sum.cpu_ns, pod.sum.counts["queries"])
        };
        // It ran before, and starts anew in the middle.
        assert_eq!(sum(&[reading(5, 10, 100), reading(5, 12, 104)]), (2, 4));
        assert_eq!(sum(&[reading(5, 10, 100), reading(1_010, 4, 7), reading(1_010, 6, 9)]), (6, 9));
        // It was not ready at first.
        assert_eq!(sum(&[reading(5, 900, 9_000), reading(5, 901, 9_001)]), (1, 1));
        // It began after the watch.
        assert_eq!(sum(&[reading(1_005, 3, 2), reading(1_005, 4, 5)]), (4, 5));
    }

    #[test]
    fn memory_is_that_of_pods_that_are_ready() {
        let mut readings = Readings::default();
        for name in ["a", "b"] {
            let pod = readings.pods.entry(name.to_owned()).or_default();
            pod.take(reading(1, 1, 1), 1_000);
        }
        readings.ready = Some(["b".to_owned()].into());
        assert_eq!((readings.sum().cpu_ns, readings.sum().memory_octets), (0, 5));
    }
}
