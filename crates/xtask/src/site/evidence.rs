//! The page before the evidence: what each page of it shows, and where and when that was measured, by the pages themselves.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// From the root of the repository.
pub(super) const FOLDER: &str = "evidence";

const HEAD: &str = "\
# Evidence

What dnslab was tested with. Each page says how it was made and how it is made again. Figures of different machines,
kernels or versions are not to be compared ([versions](../docs/VERSIONS.md#measurement-changes)).

| page | what it shows | days | machine | dnslab |
| --- | --- | --- | --- | --- |
";

/// The section of each page that says where and when it was measured, in a table with a row for each machine.
const SECTION: &str = "## Machines and days";

/// What a page of the evidence says of itself.
struct Page {
    title: String,
    /// The first sentence of its first paragraph.
    shows: String,
    machines: Vec<Machine>,
}

/// A row of [`SECTION`].
struct Machine {
    /// Such as 2026-11-23, or the first and the last one.
    days: String,
    cpu: String,
    kernel: String,
    dnslab: String,
}

/// The page, with the newest evidence first.
///
/// # Errors
/// When a page does not say what it shows, or where and when that was measured.
pub(super) fn page(folder: &Path) -> Result<String> {
    let (mut pages, mut data) = (Vec::new(), String::new());
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    let names: BTreeSet<_> = entries.collect::<Result<_>>()?;
    for name in names {
        let name = name.to_string_lossy();
        if name.ends_with(".md") {
            let text = fs::read_to_string(folder.join(&*name))?;
            let page = Page::read(&text).with_context(|| format!("{FOLDER}/{name}"))?;
            let newest = page.machines.iter().map(|machine| machine.days.clone()).max();
            pages.push((Reverse(newest), page.lines(&name)));
        } else {
            data += &format!("- [{name}]({name})\n");
        }
    }
    pages.sort();
    let lines: String = pages.into_iter().map(|(_, lines)| lines).collect();
    Ok(format!("{HEAD}{lines}\nThe figures behind a page:\n\n{data}"))
}

impl Page {
    fn read(text: &str) -> Result<Self> {
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        let title = title.context("it has no title")?.to_owned();
        let shows = first_sentence(text).context("its first paragraph has no sentence")?;
        let (_, section) =
            text.split_once(SECTION).with_context(|| format!("it has no `{SECTION}`"))?;
        let rows: Vec<Vec<&str>> = section
            .lines()
            .skip_while(|line| !line.starts_with('|'))
            .take_while(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let [heads, _, rows @ ..] = &rows[..] else { bail!("`{SECTION}` has no table") };
        let machines = rows.iter().map(|row| Machine::read(heads, row));
        let machines: Vec<Machine> = machines.collect::<Result<_>>()?;
        if machines.is_empty() {
            bail!("`{SECTION}` names no machine");
        }
        Ok(Self { title, shows, machines })
    }

    /// Those of the table: one for each machine.
    fn lines(&self, name: &str) -> String {
        let mut lines = String::new();
        let mut beginning = format!("| [{}]({name}) | {} |", self.title, self.shows);
        for Machine { days, cpu, kernel, dnslab } in &self.machines {
            lines += &format!("{beginning} <time>{days}</time> | {cpu}; {kernel} | {dnslab} |\n");
            beginning = "| | |".to_owned();
        }
        lines
    }
}

impl Machine {
    fn read(heads: &[&str], row: &[&str]) -> Result<Self> {
        Ok(Self {
            days: cell("days", heads, row)?,
            cpu: cell("CPU", heads, row)?,
            kernel: cell("kernel", heads, row)?,
            dnslab: cell("dnslab", heads, row)?,
        })
    }
}

fn cell(name: &str, heads: &[&str], row: &[&str]) -> Result<String> {
    let place = heads.iter().position(|head| *head == name);
    let found = place.and_then(|place| row.get(place)).filter(|found| !found.is_empty());
    Ok((*found.with_context(|| format!("`{SECTION}` lacks its {name}"))?).to_owned())
}

fn first_sentence(text: &str) -> Option<String> {
    let mut blocks = text.split("\n\n").map(str::trim);
    let paragraph = blocks.find(|block| !block.is_empty() && !block.starts_with(['#', '<']))?;
    let mut paragraph = paragraph.replace('\n', " ");
    // So that the last one ends as the others do.
    paragraph.push(' ');
    let end = [". ", "? "].iter().filter_map(|end| paragraph.find(end)).min()?;
    Some(paragraph[..=end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# T\n\n<!-- made. -->\n\nAre they\nequal? We see. No.\n\n## Machines and days\n\nMethod 8.\n\n\
        | CPU | kernel | dnslab | more | days |\n| --- | --- | --- | --- | --- |\n\
        | Z80 | Linux 6.1 | 0.1.0 | 7 | 2026-11-23 |\n| Z81 | Linux 6.2 | 0.1.0 | 7 | 2026-11-24 |\n\nAfter.\n";

    #[test]
    fn a_page_says_what_it_shows_and_where() {
        assert_eq!(
            Page::read(PAGE).unwrap().lines("T.md"),
            "| [T](T.md) | Are they equal? | <time>2026-11-23</time> | Z80; Linux 6.1 | 0.1.0 |\n\
             | | | <time>2026-11-24</time> | Z81; Linux 6.2 | 0.1.0 |\n"
        );
    }

    #[test]
    fn a_page_without_machine_or_day_is_refused() {
        let check = |from: &str, to: &str, complaint: &str| {
            let read = Page::read(&PAGE.replace(from, to));
            let error = read.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(complaint), "{error}");
        };
        check("## Machines and days", "## Machines", "it has no `## Machines and days`");
        check("2026-11-24 ", "", "lacks its days");
        check("kernel", "system", "lacks its kernel");
        check("# T\n", "", "no title");
        check("Are they\nequal? We see. No.", "Equal", "no sentence");
    }

    #[test]
    fn each_page_of_the_evidence_has_its_lines() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FOLDER);
        let page = page(&folder).unwrap();
        for name in ["ATTACKS", "BENCHMARKS", "MATRIX", "TRUTH"] {
            assert!(page.contains(&format!("]({name}.md) |")), "{page}");
        }
    }
}
