//! Reads a log that may be written to at the same time.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use amplifier_audit::{Folder, Record, Storage};
use anyhow::{Context, bail};

/// How long a writer may take for the second half of a line.
const WRITING: Duration = Duration::from_millis(20);

/// Reads the records of a log, in order, each once.
pub(crate) struct Reader {
    folder: Folder,
    place: Place,
    /// The one segment that is meant, if not all are.
    only: Option<u64>,
}

/// How far a log was read.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    segment: u64,
    /// Where the last whole line of the segment ends, and how many lines that are.
    offset: u64,
    lines: u64,
}

impl Reader {
    /// A reader of the log in that folder.
    pub(crate) fn open(folder: PathBuf) -> anyhow::Result<Self> {
        // As it was given.
        let shown = folder.display().to_string();
        let reader = Self { folder: Folder::new(folder), place: Place::default(), only: None };
        if reader.segments()?.is_empty() {
            bail!("there is no audit log in `{shown}`: no file `seg-….jsonl`");
        }
        Ok(reader)
    }

    /// A reader of the log in that folder, or of one segment of it.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Self> {
        if path.is_dir() || !path.exists() {
            return Self::open(path.to_owned());
        }
        let number = path.file_name().and_then(|name| segment_number(name.to_str()?));
        let number = number.with_context(|| format!("`{}` is no segment of a log: `seg-….jsonl`", path.display()))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { only: Some(number), ..Self::open(folder.to_owned())? })
    }

    /// Where the log is kept.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// How many bytes there are to be read.
    pub(crate) fn bytes(&self) -> anyhow::Result<u64> {
        let sizes = self.segments()?.into_iter().map(|segment| self.folder.size(&segment_file(segment)));
        Ok(sizes.map(|size| Ok(size?.unwrap_or(0))).sum::<io::Result<u64>>()?)
    }

    /// Shows every record to `visit`. Nothing is skipped: half a record at the end is an error, too.
    pub(crate) fn read(mut self, mut visit: impl FnMut(&Record<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        if self.advance(&mut visit)?.is_none() {
            return Ok(());
        }
        std::thread::sleep(WRITING);
        match self.advance(&mut visit)? {
            None => Ok(()),
            Some(file) => {
                bail!("`{file}` ends in half a record; `amplifier audit verify` says what that means")
            }
        }
    }

    /// Shows every whole record to `visit` that was added since the last call. Gives the file that ends in half a line, if one does.
    pub(crate) fn advance(
        &mut self,
        mut visit: impl FnMut(&Record<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<String>> {
        let mut torn = None;
        // Listed before anything is read: if there is a later segment by now, nothing is added to the earlier ones.
        for segment in self.segments()? {
            if segment < self.place.segment {
                continue;
            }
            if segment > self.place.segment {
                self.place = Place { segment, ..Place::default() };
            }
            let mut place = self.place;
            if !self.read_segment(&mut place, &mut visit)? && torn.is_none() {
                torn = Some(segment_file(segment));
            }
            self.place = place;
        }
        Ok(torn)
    }

    /// Goes to the end, and gives the last so many values that `take` makes of records, in order. Reads no more segments than needed.
    pub(crate) fn last<T>(
        &mut self,
        count: usize,
        mut take: impl FnMut(&Record<'_>) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Vec<T>> {
        let mut kept = Vec::new();
        for (index, segment) in self.segments()?.into_iter().rev().enumerate() {
            let mut place = Place { segment, ..Place::default() };
            let mut taken = Vec::new();
            self.read_segment(&mut place, &mut |record| {
                taken.extend(take(record)?);
                Ok(())
            })?;
            if index == 0 {
                self.place = place;
            }
            taken.append(&mut kept);
            kept = taken.split_off(taken.len().saturating_sub(count));
            if kept.len() == count {
                break;
            }
        }
        Ok(kept)
    }

    /// Reads the whole lines of a segment from that place on; says whether nothing is left after them.
    fn read_segment(
        &self,
        place: &mut Place,
        visit: &mut dyn FnMut(&Record<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let file = segment_file(place.segment);
        let text = match self.folder.read(&file, place.offset) {
            Ok(text) => text,
            // Retention has removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error).with_context(|| format!("`{file}` cannot be read")),
        };
        let mut rest = text.as_slice();
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let record = Record::parse(&rest[..end]).with_context(|| {
                format!("line {} of `{file}`; `amplifier audit verify` says what that means", place.lines + 1)
            })?;
            visit(&record)?;
            place.offset += end as u64 + 1;
            place.lines += 1;
            rest = &rest[end + 1..];
        }
        Ok(rest.is_empty())
    }

    /// The numbers of the segments, in order.
    fn segments(&self) -> anyhow::Result<Vec<u64>> {
        let path = self.folder.path();
        let files = self.folder.list("").with_context(|| format!("`{}` cannot be read", path.display()))?;
        let mut segments: Vec<u64> = files.iter().filter_map(|file| segment_number(file)).collect();
        segments.retain(|segment| self.only.is_none_or(|only| only == *segment));
        segments.sort_unstable();
        Ok(segments)
    }
}

fn segment_file(number: u64) -> String {
    format!("seg-{number:06}.jsonl")
}

fn segment_number(file: &str) -> Option<u64> {
    let number = file.strip_prefix("seg-")?.strip_suffix(".jsonl")?.parse().ok()?;
    (segment_file(number) == file).then_some(number)
}
