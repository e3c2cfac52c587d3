//! What a transfer did, kept in bounded memory however many files it has.

use std::borrow::Cow;
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;
use tempfile::SpooledTempFile;

use super::names::printable;
use super::protocol::{Hash, Kept};
use crate::printer::counted;

/// Bytes of a list that stay in memory before it goes to an unnamed file.
const SPOOL: usize = 1 << 20;

/// Failures that are named to people, and the bytes of each: a peer decides how many there are, and
/// their paths.
const MAX_NAMED: usize = 20;
const MAX_LINE: usize = 1_024;

/// Bytes of the list of failures. A peer can cause failures at next to no cost to itself; further
/// ones are only counted.
const MAX_FAILURES: u64 = 16 << 20;

/// JSON values, one after the other, to become one array of the summary.
#[derive(Debug)]
struct List {
    spool: SpooledTempFile,
    empty: bool,
}

impl List {
    fn new() -> Self {
        Self {
            spool: SpooledTempFile::new(SPOOL),
            empty: true,
        }
    }

    fn push(&mut self, value: &impl Serialize) -> io::Result<()> {
        if !std::mem::replace(&mut self.empty, false) {
            self.spool.write_all(b",")?;
        }
        serde_json::to_writer(&mut self.spool, value)?;
        Ok(())
    }

    /// Bytes so far.
    fn len(&mut self) -> u64 {
        self.spool.stream_position().unwrap_or(u64::MAX)
    }

    fn copy_to(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.spool.rewind()?;
        out.write_all(b"[")?;
        io::copy(&mut self.spool, out)?;
        out.write_all(b"]")
    }
}

/// Whether the summary will list every file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listing {
    Files,
    CountsOnly,
}

/// Counts, and with [`Listing::Files`] the files themselves.
#[derive(Debug)]
pub(crate) struct Report {
    /// Files confirmed: stored under their names with the sender's hash.
    pub(crate) files: u64,
    pub(crate) directories: u64,
    /// Bytes of the confirmed files.
    pub(crate) bytes: u64,
    /// Files and links that need not be sent, because the same is there.
    pub(crate) unchanged: u64,
    /// Files that need not be sent, because what is there was to be left alone.
    pub(crate) left_alone: u64,
    /// Bytes of files that went over the wire.
    pub(crate) carried: u64,
    /// How often the connection was lost and made again.
    pub(crate) reconnects: u64,
    /// Nothing was to be changed.
    pub(crate) dry_run: bool,
    /// Of a dry run: files that would be sent, and their bytes.
    pub(crate) would: (u64, u64),
    /// Of a dry run: entries that would be removed.
    pub(crate) would_remove: u64,
    /// Entries that should have been transferred and were not.
    pub(crate) failed: u64,
    /// Those of `failed` that are in refused directories, which are named in their place.
    pub(crate) within_refused: u64,
    /// Symbolic links confirmed.
    pub(crate) links: u64,
    /// Further names of files (hard links) made.
    pub(crate) hard_links: u64,
    /// Entries removed because the sender does not have them.
    pub(crate) removed: u64,
    /// Source entries left out on purpose (symbolic links, devices).
    pub(crate) skipped: u64,
    /// Those of `skipped` that are symbolic links.
    pub(crate) skipped_links: u64,
    /// Source entries left out because of --exclude or an ignore file.
    pub(crate) excluded: u64,
    /// What the sender left out and says so: how much, and why.
    pub(crate) left_out: Vec<(u64, String)>,
    listing: Listing,
    entries: List,
    failures: List,
    /// The first failures, for people.
    named: Vec<String>,
    /// The list could not be kept: said once, at the end.
    lost: Option<io::Error>,
}

#[derive(Serialize)]
struct FileEntry<'a> {
    #[serde(flatten)]
    path: JsonPath<'a>,
    bytes: u64,
    blake3: &'a str,
    /// What a symbolic link points to.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<Cow<'a, str>>,
}

/// A path in JSON: as text, and where that is not all of it, raw as well.
#[derive(Serialize)]
struct JsonPath<'a> {
    path: Cow<'a, str>,
    /// The bytes in hexadecimal, when they are not UTF-8 and `path` cannot hold them.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
}

impl<'a> JsonPath<'a> {
    fn new(path: &'a Path) -> Self {
        let text = path.to_string_lossy();
        let path_hex = matches!(text, Cow::Owned(_)).then(|| {
            let bytes = path.as_os_str().as_bytes().iter();
            bytes.map(|byte| format!("{byte:02x}")).collect()
        });
        Self {
            path: text,
            path_hex,
        }
    }
}

#[derive(Serialize)]
struct FailureEntry<'a> {
    #[serde(flatten)]
    path: JsonPath<'a>,
    error: &'a str,
}

impl Report {
    pub(crate) fn new(listing: Listing) -> Self {
        Self {
            files: 0,
            directories: 0,
            bytes: 0,
            unchanged: 0,
            left_alone: 0,
            carried: 0,
            reconnects: 0,
            dry_run: false,
            would: (0, 0),
            would_remove: 0,
            failed: 0,
            within_refused: 0,
            links: 0,
            hard_links: 0,
            removed: 0,
            skipped: 0,
            skipped_links: 0,
            excluded: 0,
            left_out: Vec::new(),
            listing,
            entries: List::new(),
            failures: List::new(),
            named: Vec::new(),
            lost: None,
        }
    }

    /// A file is confirmed.
    pub(crate) fn file(&mut self, path: &Path, bytes: u64, hash: &Hash) {
        self.files += 1;
        self.bytes += bytes;
        self.list(path, bytes, hash, None);
    }

    /// A symbolic link is confirmed.
    pub(crate) fn link(&mut self, path: &Path, target: &[u8], hash: &Hash) {
        self.links += 1;
        let target = String::from_utf8_lossy(target);
        self.list(path, 0, hash, Some(target));
    }

    fn list(&mut self, path: &Path, bytes: u64, hash: &Hash, link: Option<Cow<'_, str>>) {
        if self.listing == Listing::Files {
            let blake3 = blake3::Hash::from_bytes(*hash).to_hex();
            let entry = FileEntry {
                path: JsonPath::new(path),
                bytes,
                blake3: &blake3,
                link,
            };
            let kept = self.entries.push(&entry);
            self.keep(kept);
        }
    }

    /// An entry is not transferred.
    pub(crate) fn failure(&mut self, path: &Path, error: &str) {
        self.failed += 1;
        if self.named.len() < MAX_NAMED {
            let mut line = printable(&format!("{}: {error}", path.display()));
            line.truncate(line.floor_char_boundary(MAX_LINE));
            self.named.push(line);
        }
        if self.listing == Listing::Files && self.failures.len() < MAX_FAILURES {
            let kept = self.failures.push(&FailureEntry {
                path: JsonPath::new(path),
                error,
            });
            self.keep(kept);
        }
    }

    /// Everything is asked for again over a new connection: what failed may go well now.
    pub(crate) fn begin_again(&mut self, was_lost: bool) {
        self.reconnects += u64::from(was_lost);
        self.directories = 0;
        self.failed = 0;
        self.within_refused = 0;
        self.skipped = 0;
        self.skipped_links = 0;
        self.excluded = 0;
        self.failures = List::new();
        self.named.clear();
    }

    /// A file need not be sent.
    pub(crate) fn kept(&mut self, kept: Kept) {
        match kept {
            Kept::Unchanged => self.unchanged += 1,
            Kept::Skipped | Kept::Newer => self.left_alone += 1,
            Kept::Linked => self.hard_links += 1,
        }
    }

    /// A file would be sent, if it were not a dry run.
    pub(crate) fn would_store(&mut self, size: u64) {
        self.would.0 += 1;
        self.would.1 = self.would.1.saturating_add(size);
    }

    /// An entry is not transferred because a directory around it was refused.
    pub(crate) fn within_refused(&mut self) {
        self.failed += 1;
        self.within_refused += 1;
    }

    /// Files and links that are there now as they should be.
    pub(crate) fn there(&self) -> u64 {
        self.files + self.links + self.hard_links + self.unchanged + self.left_alone
    }

    /// What need not be sent, for people: `, 5 unchanged`; nothing where there is nothing.
    pub(crate) fn spared_text(&self) -> String {
        let mut text = String::new();
        if self.hard_links > 0 {
            text += &format!(", {}", counted(self.hard_links, "further name"));
        }
        for (count, what) in [
            (self.unchanged, "unchanged"),
            (self.left_alone, "left as they were"),
            (self.removed, "removed"),
            (self.would_remove, "to be removed"),
        ] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        text
    }

    /// Reasons that entries of the source were left out for, and how many each.
    pub(crate) fn left_out_here(&self) -> Vec<(u64, String)> {
        let links = match self.skipped_links {
            1 => "symbolic link (--skip-links)",
            _ => "symbolic links (--skip-links)",
        };
        let reasons = [
            (self.skipped_links, links),
            (
                self.skipped - self.skipped_links,
                "neither files nor folders nor links",
            ),
            (self.excluded, "named by --exclude or ignore files"),
        ];
        let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
        reasons
            .map(|(count, why)| (count, why.to_owned()))
            .collect()
    }

    /// The sender left something out. It has three reasons, so that further ones are not kept.
    pub(crate) fn sender_left_out(&mut self, count: u64, why: &str) {
        const REASONS: usize = 8;
        if self.left_out.len() < REASONS {
            self.skipped = self.skipped.saturating_add(count);
            self.left_out.push((count, printable(why)));
        }
    }

    /// The first entries that failed, for people, each with its reason.
    pub(crate) fn named_failures(&self) -> &[String] {
        &self.named
    }

    /// What failed, for people: `3, 2 of them in refused directories`.
    pub(crate) fn failed_text(&self) -> String {
        match self.within_refused {
            0 => self.failed.to_string(),
            within => format!("{}, {within} of them in refused directories,", self.failed),
        }
    }

    fn keep(&mut self, kept: io::Result<()>) {
        if let Err(error) = kept {
            self.lost.get_or_insert(error);
        }
    }

    /// Writes one JSON object: the fields of `summary` (an object) and the two lists.
    pub(crate) fn write_json(
        &mut self,
        summary: &impl Serialize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if let Some(error) = self.lost.take() {
            return Err(io::Error::new(
                error.kind(),
                format!("the list of files could not be kept: {error}"),
            ));
        }
        let mut object = serde_json::to_string(summary)?;
        debug_assert!(object.len() > 2 && object.ends_with('}'));
        object.pop();
        out.write_all(object.as_bytes())?;
        out.write_all(b",\"entries\":")?;
        self.entries.copy_to(out)?;
        out.write_all(b",\"failures\":")?;
        self.failures.copy_to(out)?;
        out.write_all(b"}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_failures_is_bounded() {
        let mut report = Report::new(Listing::Files);
        let path = "d".repeat(4096);
        for _ in 0..10_000 {
            report.failure(Path::new(&path), "refused");
        }
        assert_eq!(report.failed, 10_000);
        assert!(report.failures.len() < MAX_FAILURES + 8192);
        let named = report.named_failures();
        assert_eq!(named.len(), MAX_NAMED);
        assert!(named.iter().all(|line| line.len() <= MAX_LINE));
    }

    #[test]
    fn names_that_are_no_text_have_a_raw_form() {
        let mut report = Report::new(Listing::Files);
        let raw = std::ffi::OsStr::from_bytes(b"caf\xe9");
        report.file(Path::new(raw), 1, &[0; 32]);
        report.failure(Path::new(raw), "gone");
        report.link(Path::new("plain"), b"target", &[0; 32]);
        let mut out = Vec::new();
        report
            .write_json(&serde_json::json!({"files": report.files}), &mut out)
            .unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["entries"][0]["path"], "caf\u{fffd}");
        assert_eq!(value["entries"][0]["path_hex"], "636166e9");
        assert_eq!(value["failures"][0]["path_hex"], "636166e9");
        assert_eq!(value["entries"][1]["path_hex"], serde_json::Value::Null);
        assert_eq!(value["entries"][1]["link"], "target");
    }

    #[test]
    fn the_summary_is_one_json_object() {
        let mut report = Report::new(Listing::Files);
        report.file(Path::new("a \"quoted\" name"), 3, &[0xab; 32]);
        report.file(Path::new("b"), 4, &[1; 32]);
        report.failure(Path::new("c"), "gone");
        let mut out = Vec::new();
        report
            .write_json(&serde_json::json!({"files": report.files}), &mut out)
            .unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["files"], 2);
        assert_eq!(value["entries"][0]["path"], "a \"quoted\" name");
        assert_eq!(value["entries"][0]["blake3"], "ab".repeat(32));
        assert_eq!(value["entries"][1]["bytes"], 4);
        assert_eq!(value["failures"][0]["error"], "gone");
    }
}
