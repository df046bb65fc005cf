//! The configurations and logs of the servers, as the page shows them.

use std::collections::HashMap;

use dnslab_record::{CaseId, RunRecord};
use dnslab_results::{ResultsDirectory, ResultsError};

use crate::page::collapsed_text;

/// Octets of HTML for the files of all runs: 13 kB for each of 5,000 runs. With more than that no browser
/// opens the page, and it would take as much memory as a stranger likes to put on a disk.
pub(crate) const MAX_SHOWN: usize = 64 << 20;

/// The configurations and logs of all runs as HTML, as far as there is space for them.
#[derive(Debug, Default)]
pub(crate) struct ServerFiles {
    /// Collapsed blocks, one after another.
    blocks: HashMap<CaseId, String>,
    /// The first run with a file that is not shown because there was no space for it.
    full_at: Option<CaseId>,
}

impl ServerFiles {
    /// Reads the files of these runs until there is one that does not fit into `most` octets of HTML: then
    /// neither that one nor a later one is shown, and no further folder is read.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub(crate) fn read(
        results: &ResultsDirectory,
        records: &[RunRecord],
        most: usize,
    ) -> Result<Self, ResultsError> {
        let (mut own, mut left) = (Self::default(), most);
        for record in records {
            let case = CaseId { variant: record.variant.clone(), repetition: record.repetition };
            let behind =
                record.watched.chain.iter().map(|part| (part.folder(), format!("{}: ", part.role)));
            for (folder, role) in [("server", String::new())].into_iter().chain(behind) {
                for (name, text) in results.files_of(&case, folder)? {
                    let block = collapsed_text(&format!("{role}{name}"), &text);
                    let Some(rest) = left.checked_sub(block.len()) else {
                        own.full_at = Some(case);
                        return Ok(own);
                    };
                    left = rest;
                    own.blocks.entry(case.clone()).or_default().push_str(&block);
                }
            }
        }
        Ok(own)
    }

    /// The blocks of one run; empty if it has none.
    pub(crate) fn blocks(&self, case: &CaseId) -> &str {
        self.blocks.get(case).map_or("", String::as_str)
    }

    /// What is not shown for want of space, as sentences; `None` if everything is.
    pub(crate) fn left_out(&self) -> Option<String> {
        let first = self.full_at.as_ref()?.folder();
        Some(format!(
            "Not all files are shown, because the page would be too large. From run {first} on, in the order \
             of execution, files are missing here. Each run has its own in its folder below runs/."
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use dnslab_record::Session;

    /// Three runs with two files of a kilobyte each; how many blocks of each are shown of `most` octets, and
    /// from where on files are missing.
    #[track_caller]
    fn check(most: usize, expected: [usize; 3], full_at: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let template = include_str!("../tests/samples/v1/runs/udp-1/record.json");
        let template: RunRecord = serde_json::from_str(template).unwrap();
        let records = [1, 2, 3].map(|repetition| RunRecord { repetition, ..template.clone() });
        let results =
            ResultsDirectory::create(&folder.path().join("x"), &Session::default()).unwrap();
        for record in &records {
            results.write_run(record).unwrap();
            let server = results.run_path(&case(record)).join("server");
            fs::create_dir(&server).unwrap();
            for name in ["a.conf", "b.log"] {
                // Each octet is six on the page.
                fs::write(server.join(name), "\u{1b}".repeat(1_000)).unwrap();
            }
        }
        let files = ServerFiles::read(&results, &records, most).unwrap();
        let shown =
            records.each_ref().map(|record| files.blocks(&case(record)).matches("<pre").count());
        assert_eq!(shown, expected, "{most}");
        assert!(files.blocks.values().map(String::len).sum::<usize>() <= most);
        assert_eq!(files.full_at.as_ref().map(CaseId::folder).as_deref(), full_at, "{most}");
        assert_eq!(files.left_out().is_some(), full_at.is_some());
    }

    fn case(record: &RunRecord) -> CaseId {
        CaseId { variant: record.variant.clone(), repetition: record.repetition }
    }

    #[test]
    fn the_files_of_all_runs_share_the_space() {
        check(MAX_SHOWN, [2, 2, 2], None);
        check(20_000, [2, 1, 0], Some("udp-2"));
        check(13_000, [2, 0, 0], Some("udp-2"));
        check(6_000, [0, 0, 0], Some("udp-1"));
    }
}
