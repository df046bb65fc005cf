//! Objects that are made in a cluster for a session, from a manifest: servers as their operators have them, which the
//! cluster places, restarts and limits, and the Services before them.
//!
//! They belong to the Job of a pod of the load, where there is one: whatever becomes of whoever measures, the cluster
//! removes them with that.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use dnslab_settings::Pod;
use serde_json::{Value, json};

use crate::kubectl::{input, said};
use crate::pods::{LABEL, Owner, PodState};
use crate::rights::Rights;

/// Kinds of objects that a manifest may have, as they are written.
const KINDS: [&str; 4] = ["ConfigMap", "Service", "Deployment", "DaemonSet"];

/// Those that have pods.
const ROLLED_OUT: [&str; 2] = ["Deployment", "DaemonSet"];

/// The label of their pods.
const PART: &str = "dnslab/stack";

/// Time until all pods must be ready.
const READY_WITHIN: Duration = Duration::from_secs(180);

/// Time in which an image may be missing: kubelets try again.
const NO_IMAGE_FOR: Duration = Duration::from_secs(5);

const LOOK: Duration = Duration::from_millis(300);

/// Objects of a manifest. They are deleted with this.
#[derive(Debug)]
pub struct Stack {
    pod: Pod,
    /// As kubectl names them: `deployment.apps/coredns`.
    made: Vec<String>,
    /// Whose end removes them.
    pub owner: Option<Owner>,
}

impl Stack {
    /// Makes the objects of a manifest in the namespace of `pod`, with this image in place of its own ones, and waits until
    /// all of their pods are ready.
    ///
    /// # Errors
    /// When the manifest has other objects than servers have, they are there already, they may not be made, or their pods do
    /// not come to run.
    pub fn make(
        pod: &Pod,
        (manifest, image): (&str, Option<&str>),
        owner: Option<Owner>,
    ) -> io::Result<Self> {
        Rights::Manifest.check(pod)?;
        let mut objects = objects_of(pod, manifest)?;
        for object in &mut objects {
            adapt(object, image, owner.as_ref())?;
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let words = ["create", "-f", "-", "-o", "name"];
        let output = input(pod, &words, &list.to_string())?;
        let names = String::from_utf8_lossy(&output.stdout);
        let made = names.lines().map(|line| line.trim().to_owned());
        let own = Self { pod: pod.clone(), made: made.collect(), owner };
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let hint = match complaint.contains("already exists") {
                true => {
                    "\n  hint:    take another namespace (`hosts.namespace`), or delete what is there"
                }
                false => "",
            };
            return Err(io::Error::other(format!("{complaint}{hint}")));
        }
        own.wait(&objects)?;
        Ok(own)
    }

    fn wait(&self, objects: &[Value]) -> io::Result<()> {
        let began = Instant::now();
        let names = objects.iter().filter_map(|object| {
            let kind = object["kind"].as_str().filter(|kind| ROLLED_OUT.contains(kind))?;
            Some(format!("{}/{}", kind.to_lowercase(), object["metadata"]["name"].as_str()?))
        });
        let mut left: Vec<String> = names.collect();
        loop {
            let mut waiting = Vec::new();
            for name in left {
                let words = ["rollout", "status", &name, "--watch=false"];
                if !said(&self.pod, &words, None)?.contains("successfully rolled out") {
                    waiting.push(name);
                }
            }
            left = waiting;
            if left.is_empty() {
                return Ok(());
            }
            let selector = format!("{PART}=1");
            let pods = said(&self.pod, &["get", "pods", "-l", &selector, "-o", "json"], None)?;
            let pods: Value = serde_json::from_str(&pods).map_err(io::Error::other)?;
            let pods = pods["items"].as_array().cloned().unwrap_or_default();
            for state in pods.iter().map(PodState::of) {
                let since = began.elapsed();
                let why = match state {
                    PodState::NoImage(why) if since > NO_IMAGE_FOR => Some(format!(
                        "{why}\n  hint:    name an image that the nodes can fetch: `server.image`"
                    )),
                    PodState::Never(why) => Some(why),
                    PodState::Unplaced(why) | PodState::Waits(why) if since > READY_WITHIN => {
                        Some(why)
                    }
                    _ => None,
                };
                if let Some(why) = why {
                    let message = format!("a pod of the manifest does not come to run: {why}");
                    return Err(io::Error::other(message));
                }
            }
            if began.elapsed() > READY_WITHIN {
                let message = format!("{} is not ready after {READY_WITHIN:?}", left.join(", "));
                return Err(io::Error::other(message));
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if !self.made.is_empty() {
            let names: Vec<&str> = self.made.iter().map(String::as_str).collect();
            let now = ["--wait=false", "--ignore-not-found"];
            said(&self.pod, &[&["delete"], &names[..], &now].concat(), None).ok();
        }
    }
}

/// The objects of a manifest in YAML or JSON, as kubectl reads it.
fn objects_of(pod: &Pod, manifest: &str) -> io::Result<Vec<Value>> {
    let words = ["create", "--dry-run=client", "-o", "json", "-f", "-"];
    let output = input(pod, &words, manifest)?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let read = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let mut objects = Vec::new();
    for object in read {
        let object = object.map_err(io::Error::other)?;
        match object["items"].as_array() {
            Some(items) => objects.extend(items.iter().cloned()),
            None => objects.push(object),
        }
    }
    Ok(objects)
}

/// Makes an object one of the session.
fn adapt(object: &mut Value, image: Option<&str>, owner: Option<&Owner>) -> io::Result<()> {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    if !KINDS.contains(&kind.as_str()) {
        let message = format!(
            "its manifest has an object of the kind `{kind}`: it may have {}",
            KINDS.join(", ")
        );
        return Err(io::Error::other(message));
    }
    let metadata = &mut object["metadata"];
    // All are made in the namespace of the session.
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("namespace");
    }
    metadata["labels"][LABEL] = "dnslab".into();
    if let Some(Owner { name, uid }) = owner {
        metadata["ownerReferences"] =
            json!([{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}]);
    }
    if ROLLED_OUT.contains(&kind.as_str()) {
        let template = &mut object["spec"]["template"];
        template["metadata"]["labels"][PART] = "1".into();
        let containers = template["spec"]["containers"].as_array_mut();
        for container in containers.into_iter().flatten() {
            if let Some(image) = image {
                container["image"] = image.into();
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_becomes_one_of_the_session() {
        let mut object = json!({"kind": "Deployment", "metadata": {"name": "dns", "namespace": "x"},
            "spec": {"template": {"spec": {"containers": [{"image": "a"}, {"image": "b"}]}}}});
        let owner = Owner { name: "dnslab-load-x".to_owned(), uid: "1-2".to_owned() };
        adapt(&mut object, Some("own:1"), Some(&owner)).unwrap();
        assert_eq!(object["metadata"]["namespace"], Value::Null);
        assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "1-2");
        let template = &object["spec"]["template"];
        assert_eq!(template["metadata"]["labels"][PART], "1");
        assert_eq!(template["spec"]["containers"][1]["image"], "own:1");
        let error = adapt(&mut json!({"kind": "ClusterRole"}), None, None).unwrap_err();
        assert!(error.to_string().contains("`ClusterRole`"), "{error}");
    }
}
