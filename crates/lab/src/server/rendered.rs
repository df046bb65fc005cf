//! The configuration of a server as text.

/// A server's configuration as text. All paths are relative to the server's folder, in which the command
/// runs. So the folder can be moved and read elsewhere, and its name never needs quoting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The files to write, in the server's folder.
    pub files: Vec<RenderedFile>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What differs from the server's defaults and why, one sentence each.
    pub notes: Vec<String>,
}

impl Rendered {
    /// The configuration in one file.
    pub(super) fn one(
        name: &'static str,
        content: String,
        command: &[&str],
        notes: Vec<String>,
    ) -> Self {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        Self { files: vec![RenderedFile { name, content }], command, notes }
    }

    /// With a further file, if there is one.
    pub(super) fn and(mut self, file: Option<RenderedFile>) -> Self {
        self.files.extend(file);
        self
    }
}

/// One file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedFile {
    /// Name in the server's folder.
    pub name: &'static str,
    /// Its content.
    pub content: String,
}
