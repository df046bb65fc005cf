//! Hosts that are pods: the Job that makes one, what must be allowed for it, and the way into it.
//!
//! All is done by the user's own `kubectl`, which knows the cluster, and whose words are made here: none reaches a
//! shell. A pod is made for one session and ends with it, whatever becomes of that: its process ends when no agent was in
//! the pod for half a minute, and then the cluster removes the Job with the pod.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_settings::{HostPlace, Pod};
use serde_json::{Value, json};

use crate::kubectl::{kubectl, said};
use crate::rights::Rights;

/// Where the program is in the container of a pod.
pub const PROGRAM: &str = "/dnslab/dnslab";

/// The variable of the environment with the address of a pod.
pub const ADDRESS: &str = "DNSLAB_POD_ADDRESS";

/// The folder of the program, in both containers.
const FOLDER: &str = "/dnslab";

/// The container of the agent.
const CONTAINER: &str = "host";

/// The label of all that is made.
pub(crate) const LABEL: &str = "app.kubernetes.io/managed-by";

/// Who belongs to nobody else on a node.
const USER: u32 = 65_532;

/// Time until a pod must run: its images may have to come from far.
const RUNS_WITHIN: Duration = Duration::from_secs(180);

/// Time until a pod must have a node. What the cluster says of it before may change: another pod ends just now.
const PLACED_WITHIN: Duration = Duration::from_secs(20);

/// Time until a pod must have a node that the cluster makes for it.
const NODE_MADE_WITHIN: Duration = Duration::from_secs(360);

/// By these events of a pod its cluster says that it makes a node: the cluster autoscaler, and Karpenter.
const MAKES_NODE: [&str; 2] = ["TriggeredScaleUp", "Nominated"];

/// The cluster ends a pod that does not run by then: whoever waits for it may have been killed.
const MAX_BEGINNING: Duration = Duration::from_secs(600);

/// Between two looks at a pod.
const LOOK: Duration = Duration::from_millis(300);

/// The Jobs that were made and not deleted yet, each where it is.
static MADE: Mutex<Vec<(Pod, Owner)>> = Mutex::new(Vec::new());

/// Deletes all hosts that are pods. It is for a process that ends at once, and drops nothing then: no other one can be made
/// any more.
pub fn remove_all() {
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.iter().for_each(|(pod, job)| remove(pod, job));
    // It stays locked.
    std::mem::forget(made);
}

/// At once: nothing in a pod is worth a farewell, and a node that is gone says none.
fn remove(pod: &Pod, job: &Owner) {
    let now = ["--wait=false", "--ignore-not-found"];
    let name = format!("job/{}", job.name);
    let selector = format!("batch.kubernetes.io/job-name={}", job.name);
    let of_pods = ["delete", "pods", "-l", &selector, "--grace-period=0", "--force"];
    for words in [&["delete", &name][..], &of_pods] {
        let is_done = || said(pod, &[words, &now[..]].concat(), None).is_ok();
        // Whoever does not get through leaves it to the cluster.
        let _ = is_done() || is_done();
    }
}

/// The Job that makes a host, with a name that the cluster makes different from all others.
#[must_use]
pub fn job(name: &str, pod: &Pod) -> Value {
    let resources = json!({"cpu": pod.cpus.to_string(), "memory": pod.memory});
    // Requests that are limits: whole CPUs, and the kubelet's policy `static` gives them to nobody else.
    let resources = json!({"requests": resources, "limits": resources});
    let mut security = json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    });
    let of_program = security.clone();
    if pod.server_image.is_some() {
        // The program of CoreDNS' image is marked with it (capabilities(7)), and cannot be executed where it is dropped.
        security["capabilities"]["add"] = json!(["NET_BIND_SERVICE"]);
    }
    let tolerations = ["not-ready", "unreachable"].map(|state| {
        let key = format!("node.kubernetes.io/{state}");
        json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30})
    });
    let program = json!([{"name": "program", "mountPath": FOLDER}]);
    let address = json!({"fieldRef": {"fieldPath": "status.podIP"}});
    let mut spec = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 2,
        "hostNetwork": pod.has_host_network,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        // The container of a server has its own image, into which the program comes by this.
        "initContainers": [{
            "name": "program",
            "image": pod.image,
            "args": ["agent", "--put", FOLDER],
            "resources": resources,
            "securityContext": of_program,
            "volumeMounts": program,
        }],
        "containers": [{
            "name": CONTAINER,
            "image": pod.server_image.as_ref().unwrap_or(&pod.image),
            "command": [PROGRAM, "agent", "--stay"],
            "env": [
                {"name": ADDRESS, "valueFrom": address},
                {"name": "TMPDIR", "value": "/tmp"},
                {"name": "HOME", "value": "/tmp"},
            ],
            "resources": resources,
            "securityContext": security,
            "volumeMounts": [
                {"name": "program", "mountPath": FOLDER, "readOnly": true},
                {"name": "scratch", "mountPath": "/tmp"},
            ],
        }],
        "volumes": [
            {"name": "program", "emptyDir": {}},
            {"name": "scratch", "emptyDir": {}},
        ],
        // A node that is gone keeps no pod: the run is void by then.
        "tolerations": tolerations,
        // Hosts are apart where there is room.
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {LABEL: "dnslab"}},
        }],
    });
    if !pod.nodes.is_empty() {
        spec["nodeSelector"] =
            pod.nodes.iter().cloned().map(|(key, value)| (key, Value::from(value))).collect();
    }
    if let Some(class) = &pod.runtime_class {
        spec["runtimeClassName"] = class.as_str().into();
    }
    let labels = json!({LABEL: "dnslab", "dnslab/host": name});
    // A proxy beside it would answer its queries, and would not end with it.
    let mut of_pod = labels.clone();
    of_pod["sidecar.istio.io/inject"] = "false".into();
    let alone = json!({"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled"});
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": format!("dnslab-{name}-"), "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": 0,
            // It is taken away once the pod runs, which ends by itself from then on.
            "activeDeadlineSeconds": MAX_BEGINNING.as_secs(),
            "template": {"metadata": {"labels": of_pod, "annotations": alone}, "spec": spec},
        },
    })
}

/// A Job of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub name: String,
    /// What tells it from all others, also of that name.
    pub uid: String,
}

/// A pod that was made to be a host. It is deleted with this.
#[derive(Debug)]
pub struct PodHost {
    pod: Pod,
    /// Whose end is that of all that belongs to it.
    job: Owner,
    /// The name of its pod, once that runs.
    name: String,
}

impl PodHost {
    /// Makes the pod of a host, and waits until it runs.
    ///
    /// # Errors
    /// When the cluster is not reached, what has to be done is not allowed there, or the pod does not come to run.
    pub fn make(host: &HostPlace) -> io::Result<Self> {
        let pod = *host.pod.clone().unwrap_or_default();
        Rights::Hosts.check(&pod)?;
        let mut all = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let made = said(&pod, &["create", "-f", "-", "-o", "json"], Some(&job(&host.name, &pod)))?;
        let made: Value = serde_json::from_str(&made).map_err(io::Error::other)?;
        let text = |key: &str| made["metadata"][key].as_str().unwrap_or_default().to_owned();
        let job = Owner { name: text("name"), uid: text("uid") };
        all.push((pod.clone(), job.clone()));
        drop(all);
        let mut made = Self { pod, job, name: String::new() };
        made.name = made.wait(&host.name)?;
        let job = format!("job/{}", made.job.name);
        let no_deadline = r#"[{"op": "remove", "path": "/spec/activeDeadlineSeconds"}]"#;
        said(&made.pod, &["patch", &job, "--type=json", "-p", no_deadline], None)?;
        Ok(made)
    }

    /// The command line that starts a program in the container.
    #[must_use]
    pub fn command_line(&self) -> Vec<String> {
        let words = ["exec", "-i", "-c", CONTAINER, &self.name, "--", PROGRAM, "agent"];
        kubectl(&self.pod).into_iter().chain(words.map(str::to_owned)).collect()
    }

    /// Its Job.
    #[must_use]
    pub fn job(&self) -> &Owner {
        &self.job
    }

    fn wait(&self, host: &str) -> io::Result<String> {
        let began = Instant::now();
        let selector = format!("batch.kubernetes.io/job-name={}", self.job.name);
        let mut runs_within = RUNS_WITHIN;
        loop {
            let found = said(&self.pod, &["get", "pods", "-l", &selector, "-o", "json"], None)?;
            let found: Value = serde_json::from_str(&found).map_err(io::Error::other)?;
            let found = &found["items"][0];
            let state = PodState::of(found);
            let since = began.elapsed();
            let why = match state {
                PodState::Runs => {
                    return Ok(found["metadata"]["name"].as_str().unwrap_or_default().to_owned());
                }
                PodState::NoImage(why) => Some(format!(
                    "{why}\n  hint:    name an image that the nodes can fetch: `hosts.image`, or \
                     `host.{host}.server_image`"
                )),
                PodState::Never(why) => Some(why),
                PodState::NoPod if since > PLACED_WITHIN => Some(self.refusal()),
                PodState::Unplaced(_)
                    if since > PLACED_WITHIN
                        && runs_within == RUNS_WITHIN
                        && self.gets_a_node(&found["metadata"]) =>
                {
                    runs_within += NODE_MADE_WITHIN;
                    None
                }
                PodState::Unplaced(why)
                    if since > NODE_MADE_WITHIN
                        || since > PLACED_WITHIN && runs_within == RUNS_WITHIN =>
                {
                    Some(format!(
                        "{why}\n  hint:    `host.{host}.cpus`, `.memory` and `.nodes` say what it wants"
                    ))
                }
                PodState::Waits(why) if since > runs_within => Some(why),
                _ => None,
            };
            if let Some(why) = why {
                let message = format!("its pod does not come to run: {why}");
                return Err(io::Error::other(message));
            }
            thread::sleep(LOOK);
        }
    }

    /// Why the Job has no pod: what the cluster says of that, as of a quota, or of the pod that its node refused.
    fn refusal(&self) -> String {
        let events = self.events(&self.job.name);
        let causes = events.iter().filter(|event| event["reason"] != "BackoffLimitExceeded");
        let cause = causes.rev().find(|event| event["type"] == "Warning").or(events.last());
        let message = cause.and_then(|event| event["message"].as_str());
        message.unwrap_or("the cluster makes none, and does not say why").to_owned()
    }

    /// Whether the cluster makes a node for a pod that no other node takes.
    fn gets_a_node(&self, metadata: &Value) -> bool {
        let events = self.events(metadata["name"].as_str().unwrap_or_default());
        let mut reasons = events.iter().filter_map(|event| event["reason"].as_str());
        reasons.any(|reason| MAKES_NODE.contains(&reason))
    }

    /// What the cluster says of a Job and of its pods, or of one of these, the latest last; nothing where nobody may know.
    fn events(&self, object: &str) -> Vec<Value> {
        let events = said(&self.pod, &["get", "events", "-o", "json"], None).ok();
        let events: Option<Value> = events.and_then(|events| serde_json::from_str(&events).ok());
        let events = events.and_then(|events| events["items"].as_array().cloned());
        let is_of_it = |event: &Value| {
            event["involvedObject"]["name"].as_str().is_some_and(|name| name.starts_with(object))
        };
        let mut events: Vec<Value> = events.into_iter().flatten().filter(is_of_it).collect();
        events.sort_by_key(|event| event["metadata"]["creationTimestamp"].to_string());
        events
    }
}

impl Drop for PodHost {
    fn drop(&mut self) {
        remove(&self.pod, &self.job);
        MADE.lock().unwrap_or_else(PoisonError::into_inner).retain(|(_, job)| *job != self.job);
    }
}

/// What has become of a pod.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    NoPod,
    /// No node takes it, and why.
    Unplaced(String),
    /// It may run soon, and what it waits for.
    Waits(String),
    /// There is no such image, or its node cannot fetch it.
    NoImage(String),
    /// It will not run, and why.
    Never(String),
    Runs,
}

impl PodState {
    pub(crate) fn of(pod: &Value) -> Self {
        if pod.is_null() {
            return Self::NoPod;
        }
        let status = &pod["status"];
        let each = |list: &str| status[list].as_array().cloned().unwrap_or_default();
        let containers = [each("initContainerStatuses"), each("containerStatuses")].concat();
        let waiting = containers.iter().find_map(|container| {
            let waiting = &container["state"]["waiting"];
            let reason = waiting["reason"].as_str()?;
            let message = waiting["message"].as_str().unwrap_or_default();
            Some((
                reason,
                format!(
                    "{reason} ({})",
                    [message, container["image"].as_str().unwrap_or_default()].join(" ").trim()
                ),
            ))
        });
        let ended = containers.iter().find_map(|container| {
            let ended = &container["state"]["terminated"];
            let code = ended["exitCode"].as_i64().filter(|code| *code != 0)?;
            let what = ["reason", "message"].map(|key| ended[key].as_str().unwrap_or_default());
            Some(format!("its container ended with code {code} ({})", what.join(" ").trim()))
        });
        let unplaced = each("conditions").into_iter().find(|condition| {
            condition["type"] == "PodScheduled" && condition["status"] == "False"
        });
        let own = each("containerStatuses");
        // A mesh may have put others beside it.
        let ready =
            !own.is_empty() && own.iter().all(|container| !container["state"]["running"].is_null());
        match (ready, ended, waiting, unplaced) {
            (true, ..) => Self::Runs,
            (_, Some(ended), ..) => Self::Never(ended),
            (_, _, Some((reason, why)), _) if NO_IMAGE.contains(&reason) => Self::NoImage(why),
            (_, _, Some((reason, why)), _) if NEVER.contains(&reason) => Self::Never(why),
            (.., Some(condition)) => Self::Unplaced(
                condition["message"].as_str().unwrap_or("no node takes it").to_owned(),
            ),
            (_, _, Some((_, why)), _) => Self::Waits(why),
            (..) => Self::Waits(status["phase"].as_str().unwrap_or("it is not there").to_owned()),
        }
    }
}

/// Why a container waits for its image in vain.
const NO_IMAGE: [&str; 4] =
    ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"];

/// Why a container waits in vain for something else.
const NEVER: [&str; 4] =
    ["CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_restricted_and_has_whole_cpus() {
        let pod =
            Pod { cpus: 2, nodes: vec![("pool".to_owned(), "dns".to_owned())], ..Pod::default() };
        let job = job("load-1", &pod);
        let spec = &job["spec"]["template"]["spec"];
        for container in [&spec["initContainers"][0], &spec["containers"][0]] {
            assert_eq!(container["resources"]["requests"], container["resources"]["limits"]);
            assert_eq!(container["resources"]["limits"]["cpu"], "2");
            assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
        }
        assert_eq!(spec["nodeSelector"]["pool"], "dns");
        assert_eq!(job["spec"]["ttlSecondsAfterFinished"], 0);
        // A server's program may be marked with one capability, which "restricted" allows.
        let added = |job: &Value| {
            let spec = &job["spec"]["template"]["spec"];
            let lists = ["initContainers", "containers"];
            lists.map(|list| spec[list][0]["securityContext"]["capabilities"]["add"].clone())
        };
        assert_eq!(added(&job), [Value::Null, Value::Null]);
        let server = Pod { server_image: Some("coredns:1".to_owned()), ..Pod::default() };
        let job = super::job("server", &server);
        assert_eq!(added(&job), [Value::Null, json!(["NET_BIND_SERVICE"])]);
    }

    #[test]
    fn states_are_told_apart() {
        let check = |status: Value, expected: &PodState| {
            assert_eq!(PodState::of(&json!({"status": status})), *expected);
        };
        assert_eq!(PodState::of(&Value::Null), PodState::NoPod);
        check(json!({"containerStatuses": [{"state": {"running": {}}}]}), &PodState::Runs);
        let beside =
            json!([{"state": {"running": {}}}, {"state": {"waiting": {"reason": "ErrImagePull"}}}]);
        check(
            json!({"containerStatuses": beside}),
            &PodState::NoImage("ErrImagePull ()".to_owned()),
        );
        let waiting = |reason: &str| json!({"containerStatuses": [{"image": "x:1", "state": {"waiting": {"reason": reason, "message": "no"}}}]});
        check(
            waiting("ContainerCreating"),
            &PodState::Waits("ContainerCreating (no x:1)".to_owned()),
        );
        check(waiting("ErrImagePull"), &PodState::NoImage("ErrImagePull (no x:1)".to_owned()));
        let full = json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}]});
        check(full, &PodState::Unplaced("0/3 nodes".to_owned()));
        let ended = json!({"initContainerStatuses": [{"state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]});
        check(ended, &PodState::Never("its container ended with code 1 (Error)".to_owned()));
    }
}
