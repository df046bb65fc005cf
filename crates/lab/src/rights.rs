//! What a user must be allowed in a namespace of a cluster: the Role that says so, and whether it is.

use std::io;
use std::process::{Output, Stdio};

use dnslab_settings::Pod;
use serde_json::json;

use crate::kubectl::begin;

/// Groups, resources, verbs.
type Right = (&'static str, &'static str, &'static [&'static str]);

/// For what rights are needed in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// To have hosts there that are pods.
    Hosts,
    /// To ask a Service, and to read what its pods publish.
    Service,
    /// To make servers from a manifest.
    Manifest,
}

impl Rights {
    fn all(self) -> &'static [Right] {
        match self {
            Self::Hosts => &[
                ("batch", "jobs", &["create", "delete", "get", "patch"]),
                ("", "pods", &["get", "list", "delete"]),
                ("", "pods/exec", &["get", "create"]),
                ("", "events", &["list"]),
            ],
            Self::Service => &[
                ("", "services", &["get"]),
                ("discovery.k8s.io", "endpointslices", &["list"]),
                ("", "pods", &["get"]),
                ("", "pods/proxy", &["get"]),
            ],
            Self::Manifest => &[
                ("", "configmaps", &["create", "delete"]),
                ("", "services", &["create", "delete"]),
                ("apps", "deployments", &["create", "delete", "get", "list", "watch", "patch"]),
                ("apps", "daemonsets", &["create", "delete", "get", "list", "watch", "patch"]),
                ("", "pods", &["list"]),
            ],
        }
    }

    /// Asks the cluster whether this user has them.
    ///
    /// # Errors
    /// When one is missing, kubectl is not there, or does not reach the cluster.
    pub(crate) fn check(self, pod: &Pod) -> io::Result<()> {
        let lacking = self.lacking(pod)?;
        if lacking.is_empty() {
            return Ok(());
        }
        let namespace = pod.namespace.as_deref().unwrap_or("that of the context");
        let message = format!(
            "you may not {} in the namespace {namespace}: somebody has to bind the Role to you that `dnslab plan` shows",
            lacking.join(", ")
        );
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    /// What this user may not do there and has to, as verbs and resources.
    fn lacking(self, pod: &Pod) -> io::Result<Vec<String>> {
        // All are asked at once: each question is a process.
        let mut asked = Vec::new();
        for (group, resource, verbs) in self.all() {
            // `pods/exec` would be a pod of the name `exec`.
            let (kind, part) = resource.split_once('/').unwrap_or((resource, ""));
            let kind = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
            let part = (!part.is_empty()).then(|| format!("--subresource={part}"));
            for verb in *verbs {
                let words: Vec<&str> =
                    ["auth", "can-i", verb, &kind].into_iter().chain(part.as_deref()).collect();
                asked.push((format!("{verb} {resource}"), begin(pod, &words, Stdio::null())?));
            }
        }
        let mut lacking = Vec::new();
        for (right, question) in asked {
            let Output { stdout, stderr, .. } = question.wait_with_output()?;
            // An authorizer may give its reason: `no - ...`.
            match String::from_utf8_lossy(&stdout).split_whitespace().next() {
                Some("yes") => {}
                Some("no") => lacking.push(right),
                _ => {
                    let why = String::from_utf8_lossy(&stderr).trim().to_owned();
                    return Err(io::Error::other(why));
                }
            }
        }
        Ok(lacking)
    }
}

/// The Role with these rights in a namespace, that of the context if none is named, as `kubectl apply -f -` reads it.
#[must_use]
pub fn role(namespace: Option<&str>, rights: &[Rights]) -> String {
    let metadata = match namespace {
        Some(namespace) => json!({"name": "dnslab", "namespace": namespace}),
        None => json!({"name": "dnslab"}),
    };
    let mut text = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {metadata}\nrules:\n"
    );
    for (group, resource, verbs) in rights.iter().flat_map(|rights| rights.all()) {
        let rule = json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        text.push_str(&format!("- {rule}\n"));
    }
    text
}
