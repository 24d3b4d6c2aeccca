//! Compares mirrors with receipts.

use std::fmt;
use std::path::Path;

use amplifier_audit::{Note, Report, Verifier};

use crate::records::mirror::read_receipt_file;
use crate::records::mirror_set::{list_mirrors, mirror_folder};
use crate::records::receipt::{CollectorKey, Receipt, read_receipt};
use crate::records::{RecordsError, mirror_set};
use crate::{Connection, FleetName};

/// The verification of one mirror.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MirrorReport {
    /// The machine.
    pub machine: FleetName,
    /// The log.
    pub log: FleetName,
    /// The verification of the mirror, also against the receipts that it reaches.
    pub report: Report,
    /// The receipts that agree with the mirror.
    pub receipts: Vec<Receipt>,
    /// The receipts of other collectors for more records than the mirror has.
    pub ahead: Vec<Receipt>,
    /// Receipts that no known collector has signed.
    pub problems: Vec<String>,
}

impl MirrorReport {
    /// Returns `true` if the mirror has no problem.
    pub fn is_sound(&self) -> bool {
        self.report.is_sound() && self.problems.is_empty()
    }
}

impl fmt::Display for MirrorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}/{}", self.machine, self.log)?;
        for line in self.report.to_string().lines() {
            writeln!(f, "  {line}")?;
        }
        for receipt in &self.receipts {
            let (collector, size) = (&receipt.collector, receipt.checkpoint.size);
            writeln!(f, "  collector `{collector}` has signed the first {size} records")?;
        }
        for receipt in &self.ahead {
            let (collector, size) = (&receipt.collector, receipt.checkpoint.size);
            writeln!(f, "  behind: collector `{collector}` has {size} records")?;
        }
        self.problems.iter().try_for_each(|problem| writeln!(f, "  ! {problem}"))
    }
}

/// Reads the last receipts of all collectors for the mirrors in a folder from the centre.
///
/// # Errors
/// If the folder cannot be read, the centre does not reply, or a receipt is not signed by its collector.
pub async fn read_receipts(
    connection: &Connection,
    folder: &Path,
    collectors: &[CollectorKey],
) -> Result<Vec<Receipt>, RecordsError> {
    let mut receipts = Vec::new();
    for (machine, log) in list_mirrors(folder)? {
        for collector in collectors {
            receipts.extend(read_receipt(connection, &machine, &log, collector).await?);
        }
    }
    Ok(receipts)
}

/// Verifies all mirrors in a folder, and compares them with the receipts of all collectors: the own ones beside the mirrors, and others, which
/// [`read_receipts`] reads from the centre.
///
/// # Errors
/// If a mirror or a receipt file cannot be read.
pub fn verify_mirrors(
    folder: &Path,
    collectors: &[CollectorKey],
    others: &[Receipt],
) -> Result<Vec<MirrorReport>, RecordsError> {
    list_mirrors(folder)?.into_iter().map(|name| verify_mirror(folder, name, collectors, others)).collect()
}

fn verify_mirror(
    folder: &Path,
    (machine, log): mirror_set::LogName,
    collectors: &[CollectorKey],
    others: &[Receipt],
) -> Result<MirrorReport, RecordsError> {
    let mirror = mirror_folder(folder, &machine, &log);
    let size = Verifier::new().folder(&mirror)?.size;
    let mut problems = Vec::new();
    let mut own = Vec::new();
    if let Some(receipt) = read_receipt_file(&mirror)? {
        match collectors.iter().find_map(|collector| Receipt::read(receipt.note.clone(), &log, collector).ok()) {
            Some(receipt) => own.push(receipt),
            None => problems.push("the receipt beside the mirror is not signed by a known collector".to_owned()),
        }
    }
    let others = others.iter().filter(|receipt| receipt.checkpoint.log == *log).cloned();
    let (ahead, reached): (Vec<Receipt>, Vec<Receipt>) = others.partition(|receipt| receipt.checkpoint.size > size);
    let receipts = [own, reached].concat();
    let mut verifier = Verifier::new();
    for receipt in &receipts {
        let text = Note::to_string(&receipt.note);
        verifier = verifier
            .checkpoints(text.as_bytes())
            .map_err(|error| RecordsError::ReceiptFile { path: mirror.clone(), error })?;
    }
    let report = verifier.folder(&mirror)?;
    Ok(MirrorReport { machine, log, report, receipts, ahead, problems })
}
