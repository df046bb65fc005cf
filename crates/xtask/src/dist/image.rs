//! The image of containers (OCI image format 1.0), made without a daemon: the binary, and authorities of certificates.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::tree::copy;
use super::{Release, done, said};

/// Where programs look for authorities; of the machine that makes the release.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// An archive that `skopeo copy oci-archive:FILE docker://REGISTRY/NAME` brings to a registry.
pub(super) fn image(release: &Release, binary: &Path) -> Result<PathBuf> {
    let (layout, root) = (release.scratch.path().join("oci"), release.scratch.path().join("image"));
    copy(binary, &root.join("usr/bin/dnslab"), 0o755)?;
    let authorities = Path::new("/").join(AUTHORITIES);
    copy(&authorities, &root.join(AUTHORITIES), 0o644)
        .context("this machine has no authorities: apt-get install ca-certificates")?;
    let layer = release.scratch.path().join("layer.tar");
    release.tar(&root, &layer)?;
    let time =
        said(release.command("date").arg("-ud").arg(format!("@{}", release.epoch)).arg("+%FT%TZ"))?;
    let (time, name) = (time.trim(), format!("{}:{}", layout.display(), release.version));
    let umoci = |words: &[&str]| done(release.command("umoci").args(words));
    let layout_path = layout.display().to_string();
    umoci(&["init", "--layout", &layout_path])?;
    umoci(&["new", "--image", &name])?;
    let mut add = release.command("umoci");
    add.args(["raw", "add-layer", "--image", &name, "--history.created", time]);
    done(add.args(["--history.created_by", "cargo xtask dist"]).arg(&layer))?;
    umoci(&[
        "config",
        "--image",
        &name,
        "--created",
        time,
        "--no-history",
        "--os",
        "linux",
        "--architecture",
        "amd64",
        "--config.user",
        "65532:65532",
        "--config.entrypoint",
        "/usr/bin/dnslab",
        "--config.workingdir",
        "/results",
    ])?;
    umoci(&["gc", "--layout", &layout_path])?;
    let path = release.file("-oci.tar");
    release.tar(&layout, &path)?;
    Ok(path)
}
