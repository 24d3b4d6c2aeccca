//! The tamper-evident audit log, for Python.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use amplifier_audit::{
    AuditError, BodyReader, Durability, Folder, Log, NoteError, PublicKey, Verifier, binding_file, read_records,
};
use amplifier_core::text::counted;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Value, json};

use crate::encode;
use crate::fields::read_word;

/// An audit log, open for writing.
#[pyclass(module = "amplifier_core.audit", frozen, weakref)]
pub(crate) struct AuditLog {
    // A std lock: nothing calls Python while it is held.
    log: Mutex<Option<Log>>,
    #[pyo3(get)]
    folder: PathBuf,
    key_file: PathBuf,
    durability: Durability,
}

fn failed(error: AuditError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

impl AuditLog {
    pub(crate) fn log(&self) -> PyResult<Log> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        log.ok_or_else(|| PyRuntimeError::new_err("the audit log is closed"))
    }

    /// Raises if the durability of the log is lower than a bundle requires.
    pub(crate) fn check_durability(&self, wanted: Durability) -> PyResult<()> {
        let (wanted, kept) = (wanted.max(self.durability), self.durability);
        if wanted == kept {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "the bundle wants the audit log kept `{wanted}`, and it is kept `{kept}`: open it with `durability=\"{wanted}\"`"
        )))
    }

    /// Returns the paths that must be protected from changes, and the key file, which only the log may read.
    pub(crate) fn paths(&self) -> ([PathBuf; 2], PathBuf) {
        ([self.folder.clone(), binding_file(&self.key_file)], self.key_file.clone())
    }

    fn do_with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(Log) -> Result<T, AuditError> + Send) -> PyResult<T> {
        let log = self.log()?;
        // Waits for the disk.
        py.detach(|| work(log)).map_err(failed)
    }
}

#[pymethods]
impl AuditLog {
    /// Opens a log in a folder, signed with the key in a file. Creates both if missing. Relative paths are resolved against the current
    /// folder at this moment.
    #[new]
    #[pyo3(signature = (folder, key_file, *, durability="group"))]
    fn new(py: Python<'_>, folder: PathBuf, key_file: PathBuf, durability: &str) -> PyResult<Self> {
        crate::trace::to_logging();
        // Absolute paths: protection reads them later, when the current folder may be different.
        let folder = std::path::absolute(folder)?;
        let key_file = std::path::absolute(key_file)?;
        let durability: Durability = read_word("durability", durability)?;
        let options = Log::at(&folder, &key_file).durability(durability);
        let log = py.detach(|| options.open()).map_err(failed)?;
        Ok(Self { log: Mutex::new(Some(log)), folder, key_file, durability })
    }

    /// The file with the signing key.
    #[getter]
    fn key_file(&self) -> PathBuf {
        self.key_file.clone()
    }

    /// Records a change of the policy, described by the caller.
    fn policy_change(&self, change: &Bound<'_, PyDict>) -> PyResult<()> {
        let change = Value::Object(encode::to_map(change)?);
        self.log()?.policy_change(&change).map(drop).map_err(failed)
    }

    /// Seals a session: records the counts of its records and the reason for its end. Returns when the seal is signed and stored.
    #[pyo3(signature = (session_id, reason="complete"))]
    fn seal(&self, py: Python<'_>, session_id: &str, reason: &str) -> PyResult<()> {
        self.do_with(py, |log| log.seal_blocking(session_id, reason))
    }

    /// Signs and stores a checkpoint of all records so far.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        self.do_with(py, |log| log.checkpoint())
    }

    /// The state of the log: its id, its size, its public key, and the reason if it cannot be written.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let status = self.log()?.status();
        let key = status.public_key.map(|key| key.to_string());
        let status = json!({ "log": status.log, "size": status.size, "failure": status.failure, "public_key": key });
        encode::to_python(py, &status)
    }

    /// `True` if the log is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Writes pending records, signs a checkpoint and closes the log. Closing again has no effect.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner).take();
        log.map_or(Ok(()), |log| py.detach(|| log.close()).map_err(failed))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<AuditLog in {}>", self.folder.display())
    }
}

/// The result of a verification.
#[pyclass(module = "amplifier_core.audit", frozen)]
pub(crate) struct AuditReport(amplifier_audit::Report);

#[pymethods]
impl AuditReport {
    /// `True` if no problem was found.
    #[getter]
    fn is_sound(&self) -> bool {
        self.0.is_sound()
    }

    /// The verdict: `sound`, `unsound` or `unreadable`.
    #[getter]
    fn verdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        encode::to_python(py, &serde_json::to_value(self.0.integrity()).unwrap_or_default())
    }

    /// The number of verified records.
    #[getter]
    fn records(&self) -> u64 {
        self.0.records
    }

    /// The problems found, as text.
    #[getter]
    fn findings(&self) -> Vec<String> {
        self.0.findings.iter().map(|finding| finding.text.clone()).collect()
    }

    /// Returns the report as JSON.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        encode::to_python(py, &self.0.to_json())
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<AuditReport: {:?}, {}>", self.0.integrity(), counted(self.0.records, "record"))
    }
}

/// Verifies the log in a folder: every byte, link and signature. `key` is the public key that must have signed the log; `checkpoints` are
/// checkpoints stored elsewhere.
#[pyfunction]
#[pyo3(signature = (folder, *, key=None, checkpoints=None))]
pub(crate) fn verify(
    py: Python<'_>,
    folder: PathBuf,
    key: Option<&str>,
    checkpoints: Option<Vec<u8>>,
) -> PyResult<AuditReport> {
    let key = key.map(str::parse::<PublicKey>).transpose();
    let key = key.map_err(|error| PyValueError::new_err(format!("`key`: {error}")))?;
    let report = py.detach(|| {
        let mut verifier = Verifier::new();
        if let Some(key) = key {
            verifier = verifier.key(key);
        }
        if let Some(text) = checkpoints {
            verifier = verifier.checkpoints(&text)?;
        }
        Ok(verifier.folder(&folder))
    });
    let report = report.map_err(|error: NoteError| PyValueError::new_err(format!("`checkpoints`: {error}")))?;
    report.map(AuditReport).map_err(failed)
}

/// Returns the records of a log, in order, as dicts. A body that is stored separately is included as `content`; `None` if it was erased.
/// Hashes are checked, but not the chain: see `verify`.
#[pyfunction]
pub(crate) fn records<'py>(py: Python<'py>, folder: PathBuf) -> PyResult<Bound<'py, PyList>> {
    let lines = py.detach(|| {
        let mut lines: Vec<String> = Vec::new();
        let (folder, mut bodies, mut problem) = (Folder::new(&folder), BodyReader::new(), None);
        read_records(&folder, |record| match bodies.line(record, &folder) {
            Ok(line) => {
                lines.push(line);
                ControlFlow::Continue(())
            }
            Err(error) => {
                problem = Some(error);
                ControlFlow::Break(())
            }
        })?;
        problem.map_or(Ok(lines), Err)
    });
    let lines = lines.map_err(failed)?;
    // Every log has a first record.
    if lines.is_empty() {
        return Err(failed(AuditError::Missing));
    }
    // Python supports deeper nesting than other readers and raises an error beyond its limit.
    let loads = py.import("json")?.getattr("loads")?;
    let list = PyList::empty(py);
    for line in lines {
        list.append(loads.call1((line,))?)?;
    }
    Ok(list)
}
