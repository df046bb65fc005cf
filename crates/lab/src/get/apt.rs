//! Which Debian mirror, and through which proxy, this machine's own packages come from.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The mirror where apt names none of Debian's.
const DEFAULT_MIRROR: &str = "http://deb.debian.org/debian";

/// Code names of releases in Debian's main archive. Words such as `stable` are left out: other archives use
/// them too.
const RELEASES: [&str; 8] =
    ["buster", "bullseye", "bookworm", "trixie", "forky", "duke", "sid", "unstable"];

/// The mirror of Debian's main archive that apt uses here, or Debian's own.
pub(super) fn mirror() -> String {
    let folder = Path::new("/etc/apt");
    let mut files: Vec<_> = fs::read_dir(folder.join("sources.list.d"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files.insert(0, folder.join("sources.list"));
    let mirrors = files.iter().filter_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        match path.extension()?.to_str()? {
            "list" => mirror_in_list(&text),
            "sources" => mirror_in_paragraphs(&text),
            _ => None,
        }
    });
    mirrors.into_iter().next().unwrap_or_else(|| DEFAULT_MIRROR.to_owned())
}

pub(super) fn proxy() -> Option<String> {
    let output = Command::new("apt-config")
        .args(["dump", "Acquire::http::Proxy"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    proxy_in(&String::from_utf8_lossy(&output.stdout))
}

/// The proxy in the output of `apt-config dump Acquire::http::Proxy`.
fn proxy_in(dump: &str) -> Option<String> {
    let line = dump.lines().find_map(|line| line.strip_prefix("Acquire::http::Proxy \""))?;
    let proxy = line.trim_end().strip_suffix("\";")?;
    // apt's word for none.
    (!proxy.is_empty() && proxy != "DIRECT").then(|| proxy.to_owned())
}

/// The mirror in a file of lines `deb [option=value ...] URI suite component...` (sources.list(5),
/// "One-Line-Style Format").
fn mirror_in_list(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("deb")?;
        let rest = rest.starts_with([' ', '\t', '[']).then(|| rest.trim_start())?;
        let rest = match rest.strip_prefix('[') {
            Some(options) => options.split_once(']')?.1,
            None => rest,
        };
        let mut words = rest.split_whitespace();
        let (uri, suite) = (words.next()?, words.next()?);
        let components: Vec<&str> = words.take_while(|word| !word.starts_with('#')).collect();
        debian_mirror(&[uri], &[suite], &components)
    })
}

/// The mirror in a file of paragraphs of fields (sources.list(5), "DEB822-Style Format").
fn mirror_in_paragraphs(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.split(|line| line.trim().is_empty()).find_map(|paragraph| {
        let words = |field: &str| field_words(paragraph, field);
        let enabled = !words("Enabled").contains(&"no");
        let is_binary = words("Types").contains(&"deb");
        let found = debian_mirror(&words("URIs"), &words("Suites"), &words("Components"));
        found.filter(|_| enabled && is_binary)
    })
}

/// Lines that begin with white space continue the line before.
fn field_words<'a>(paragraph: &[&'a str], field: &str) -> Vec<&'a str> {
    let of_line = |line: &'a str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case(field).then_some(value)
    };
    let Some(first) = paragraph.iter().position(|line| of_line(line).is_some()) else {
        return Vec::new();
    };
    let continued = paragraph[first + 1..].iter().take_while(|line| line.starts_with([' ', '\t']));
    let values = of_line(paragraph[first]).into_iter().chain(continued.copied());
    values.flat_map(str::split_whitespace).collect()
}

/// The first URI that debootstrap can read, if this is a source of Debian's main archive.
fn debian_mirror(uris: &[&str], suites: &[&str], components: &[&str]) -> Option<String> {
    let is_debian = suites.iter().any(|suite| RELEASES.contains(suite));
    let readable = |uri: &&&str| {
        ["http://", "https://", "file:/"].iter().any(|scheme| uri.starts_with(scheme))
    };
    let uri = uris.iter().find(readable).filter(|_| is_debian && components.contains(&"main"))?;
    Some(uri.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_found_in_a_list() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(mirror_in_list(text).as_deref(), expected, "{text}");
        };
        let own = "http://deb.example/debian/ bookworm main";
        check(&format!("# deb {own}\n"), None);
        check(&format!("deb {own}\n"), Some("http://deb.example/debian"));
        check(&format!("deb-src {own}\n"), None);
        let options = "deb [arch=amd64 signed-by=/a b.gpg] https://a/debian trixie main # mine";
        check(options, Some("https://a/debian"));
        check("deb http://a/debian-security bookworm-security main", None);
        check("deb https://packages.example/apt cloud-bookworm main", None);
        check("deb https://download.example/linux bookworm stable", None);
        check("deb cdrom:[Debian]/ bookworm main", None);
        check("deb\ndeb http://a\n", None);
    }

    #[test]
    fn the_mirror_is_found_in_paragraphs() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(mirror_in_paragraphs(text).as_deref(), expected, "{text}");
        };
        let other =
            "Types: deb\nURIs: https://node.example/x\nSuites: nodistro\nComponents: main\n";
        let own = "types: deb deb-src\n# snapshot\nURIs:\n mirror+file:/a\n http://b/debian\nSuites: \
                   bookworm bookworm-updates\nComponents: main non-free\n";
        check(other, None);
        check(&format!("{other}\n{own}"), Some("http://b/debian"));
        check(&format!("Enabled: no\n{own}"), None);
        check(&own.replace("deb deb-src", "deb-src"), None);
        check("Types: deb\n", None);
    }

    #[test]
    fn the_proxy_is_read() {
        let dump = "Acquire::http::Proxy \"http://proxy.example:3128\";\n";
        assert_eq!(proxy_in(dump).as_deref(), Some("http://proxy.example:3128"));
        assert_eq!(proxy_in("Acquire::http::Proxy \"\";\nAcquire::http::Proxy::a \"b\";"), None);
        assert_eq!(proxy_in("Acquire::http::Proxy \"DIRECT\";"), None);
        assert_eq!(proxy_in(""), None);
    }
}
