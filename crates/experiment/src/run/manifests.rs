//! What is made in a cluster for a variant.

use std::path::Path;

use dnslab_agent::StackPlan;
use dnslab_settings::{ServicePlace, Variant, is_name};

use crate::file::MANIFESTS;

/// Octets of a manifest at most.
const MAX_SIZE: u64 = 1 << 20;

/// What has to be made before a variant can run; `None` if all runs already.
///
/// # Errors
/// When its manifest cannot be read.
pub(super) fn plan(variant: &Variant) -> Result<Option<StackPlan>, String> {
    let (Some(service), Some(path)) = (&variant.server.service, &variant.server.manifest) else {
        return Ok(None);
    };
    let manifest = text(path)?;
    let ServicePlace { context, namespace, .. } = service.clone();
    Ok(Some(StackPlan { context, namespace, manifest, image: variant.server.image.clone() }))
}

fn text(path: &Path) -> Result<String, String> {
    if is_name(path) {
        let known = MANIFESTS.iter().find(|(name, _)| Path::new(name) == path);
        return known.map(|(_, text)| (*text).to_owned()).ok_or_else(|| {
            let names: Vec<&str> = MANIFESTS.iter().map(|(name, _)| *name).collect();
            format!(
                "dnslab has no manifest `{}`: it has {}. Write a path with `/` for one of yours",
                path.display(),
                names.join(", ")
            )
        });
    }
    dnslab_lab::read_given_text(path, MAX_SIZE)
        .map_err(|error| format!("the manifest {}: {error}", path.display()))
}
