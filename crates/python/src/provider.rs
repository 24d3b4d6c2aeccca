//! Model providers: scripted, remote, and written in Python.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_agent::provider::{
    self, Chunk, Kind, ModelRequest, Provider, ProviderError, RemoteOptions, Script, StopReason, TokenUsage,
};
use amplifier_core::{HookError, Message, ToolCall};
use futures::stream::{self, BoxStream, StreamExt};
use pyo3::exceptions::{PyConnectionError, PyTimeoutError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::{Value, json};

use crate::bridge::{CallFuture, ask};
use crate::hook::failure;
use crate::ports::Port;
use crate::{encode, log};

/// The context limit of a model that does not specify one.
const CONTEXT_LIMIT: usize = 200_000;

/// A provider that plays a script.
#[pyclass(module = "amplifier_core.session", frozen)]
pub(crate) struct ScriptedProvider(pub(crate) Arc<provider::ScriptedProvider>);

#[pymethods]
impl ScriptedProvider {
    /// Creates a provider with answers, one per call: a text, or a dict with `text`, `tools`, `thinking`, `when`, `error` or `delay_ms`.
    /// `agents` has the answers of sub-agents, by name. With `record=True`, `asked` contains every request.
    #[new]
    #[pyo3(signature = (answers, *, agents=None, context_limit=200_000, record=false))]
    fn new(
        answers: &Bound<'_, PyAny>,
        agents: Option<&Bound<'_, PyDict>>,
        context_limit: usize,
        record: bool,
    ) -> PyResult<Self> {
        let mut script = json!({ "answers": read_answers(answers)?, "agents": {} });
        for (name, answers) in agents.into_iter().flatten() {
            script["agents"][name.extract::<String>()?] = read_answers(&answers)?;
        }
        let script: Script = serde_json::from_value(script)
            .map_err(|error| PyValueError::new_err(format!("invalid script: {error}")))?;
        let scripted = provider::ScriptedProvider::new(script).with_context_limit(context_limit);
        Ok(Self(Arc::new(if record { scripted.recording() } else { scripted })))
    }

    /// Loads the script from a file.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "what Python gives is converted")]
    pub(crate) fn load(file: PathBuf) -> PyResult<Self> {
        let script = Script::load(&file).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Arc::new(provider::ScriptedProvider::new(script))))
    }

    /// The requests so far, each with messages, tools and parameters; empty without `record=True`.
    #[getter]
    fn asked<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for request in self.0.requests() {
            list.append(encode::to_python(py, &as_json(&request))?)?;
        }
        Ok(list)
    }
}

fn read_answers(answers: &Bound<'_, PyAny>) -> PyResult<Value> {
    let unfit = |what: &str, found: &Bound<'_, PyAny>| {
        let found = crate::fields::type_name(found);
        PyTypeError::new_err(format!("{what}; found {found}"))
    };
    if answers.is_instance_of::<PyString>() || answers.is_instance_of::<PyDict>() {
        return Err(unfit("a script must be a list of answers", answers));
    }
    let answers = answers.try_iter()?.map(|answer| {
        let answer = answer?;
        match (answer.cast::<PyString>(), answer.cast::<PyDict>()) {
            (Ok(text), _) => Ok(json!({ "text": text.to_string_lossy() })),
            (_, Ok(fields)) => Ok(Value::Object(encode::to_map(fields)?)),
            _ => Err(unfit("an answer of a script must be a str or a dict", &answer)),
        }
    });
    answers.collect::<PyResult<Vec<_>>>().map(Value::from)
}

/// A remote model.
#[pyclass(module = "amplifier_core.session", frozen)]
pub(crate) struct RemoteProvider(pub(crate) Arc<provider::RemoteProvider>);

#[pymethods]
impl RemoteProvider {
    /// Creates a provider for `anthropic`, `openai` (or a compatible API at `base_url`) or `gemini`. Without `key`, the key is read from the
    /// environment.
    #[new]
    #[pyo3(signature = (kind, model, *, key=None, base_url=None, context_limit=None))]
    fn new(
        py: Python<'_>,
        kind: &str,
        model: &str,
        key: Option<String>,
        base_url: Option<String>,
        context_limit: Option<usize>,
    ) -> PyResult<Self> {
        remote(py, kind, model, key, base_url, context_limit).map(|remote| Self(Arc::new(remote)))
    }
}

pub(crate) fn remote(
    py: Python<'_>,
    kind: &str,
    model: &str,
    key: Option<String>,
    base_url: Option<String>,
    context_limit: Option<usize>,
) -> PyResult<provider::RemoteProvider> {
    crate::threads::start(py)?;
    let kind: Kind = kind.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
    // An empty variable counts as unset.
    let key = key.or_else(|| std::env::var(kind.key_variable()).ok().filter(|key| !key.is_empty()));
    if key.is_none() && base_url.is_none() {
        let variable = kind.key_variable();
        return Err(PyValueError::new_err(format!("the provider `{kind}` needs a key: set {variable}, or give `key`")));
    }
    let options = RemoteOptions { key, base_url, context_limit, ..RemoteOptions::new(kind, model) };
    provider::RemoteProvider::new(options).map_err(|error| PyValueError::new_err(error.to_string()))
}

pub(crate) fn of(object: &Bound<'_, PyAny>, ports: &mut Vec<Arc<Port>>) -> PyResult<Arc<dyn Provider>> {
    if let Ok(scripted) = object.cast::<ScriptedProvider>() {
        return Ok(scripted.get().0.clone());
    }
    if let Ok(remote) = object.cast::<RemoteProvider>() {
        return Ok(remote.get().0.clone());
    }
    if !object.getattr_opt("complete")?.is_some_and(|complete| complete.is_callable()) {
        let found = crate::fields::type_name(object);
        let wanted = "a ScriptedProvider, a RemoteProvider, or an object with `complete(request)`";
        return Err(PyTypeError::new_err(format!("a provider is {wanted}; found {found}")));
    }
    let port = Port::new(object.clone().unbind(), true);
    ports.push(port.clone());
    let text = |name: &str, otherwise: &str| match object.getattr_opt(name) {
        Ok(Some(text)) => text.extract().or_else(|_| Ok(otherwise.to_owned())),
        Ok(None) => Ok(otherwise.to_owned()),
        Err(error) => Err(error),
    };
    let limit = object.getattr_opt("context_limit")?.and_then(|limit| limit.extract().ok()).unwrap_or(CONTEXT_LIMIT);
    Ok(Arc::new(PyProvider { port, name: text("name", "python")?, model: text("model", "python")?, limit }))
}

/// A model written in Python: `complete(request)` returns a text, or a dict with `text`, `thinking`, `tools`, `stop` and `usage`.
struct PyProvider {
    port: Arc<Port>,
    name: String,
    model: String,
    limit: usize,
}

impl Provider for PyProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn context_limit(&self) -> usize {
        self.limit
    }

    fn answer(&self, request: ModelRequest) -> BoxStream<'static, Result<Chunk, ProviderError>> {
        let port = self.port.clone();
        let answered = async move {
            let input_tokens = amplifier_agent::count_messages(&request.messages) as u64;
            let answer = ask(|py| {
                let request = encode::to_python(py, &as_json(&request))?;
                CallFuture::of(port.object(py)?.call_method1("complete", (request,))?)
            })
            .await;
            let chunks = Python::attach(|py| match answer {
                Ok(answer) => read(answer.bind(py), input_tokens).inspect_err(|error| {
                    log::part_failed(py, "provider", &HookError::Failed(error.to_string()), None);
                }),
                Err(error) => Err(fault(py, &error)),
            });
            stream::iter(match chunks {
                Ok(chunks) => chunks.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            })
        };
        stream::once(answered).flatten().boxed()
    }
}

fn as_json(ModelRequest { messages, tools, parameters, .. }: &ModelRequest) -> Value {
    json!({ "messages": messages, "tools": tools, "parameters": parameters })
}

/// Classifies an exception; its type determines whether a retry is useful.
fn fault(py: Python<'_>, error: &PyErr) -> ProviderError {
    let failed = failure(py, error);
    let text = failed.to_string();
    // Before 3.11, `asyncio` has its own timeout class.
    let timeout = py.import("asyncio").and_then(|asyncio| asyncio.getattr("TimeoutError"));
    let is_timeout =
        error.is_instance_of::<PyTimeoutError>(py) || timeout.is_ok_and(|class| error.is_instance(py, &class));
    if is_timeout || error.is_instance_of::<PyConnectionError>(py) {
        ProviderError::Connection(text)
    } else {
        log::part_failed(py, "provider", &failed, Some(error));
        ProviderError::Failed(text)
    }
}

fn read(answer: &Bound<'_, PyAny>, input_tokens: u64) -> Result<Vec<Chunk>, ProviderError> {
    // A retry would give the same result.
    let malformed = |problem: String| ProviderError::Failed(format!("the answer cannot be read: {problem}"));
    let fields = match (answer.cast::<PyString>(), answer.cast::<PyDict>()) {
        (Ok(text), _) => json!({ "text": text.to_string_lossy() }),
        (_, Ok(fields)) => Value::Object(encode::to_map(fields).map_err(|error| malformed(error.to_string()))?),
        _ => {
            let found = crate::fields::type_name(answer);
            return Err(malformed(format!("`complete` must return a str or a dict; found {found}")));
        }
    };
    let known = ["text", "thinking", "tools", "stop", "usage"];
    if let Some(key) =
        fields.as_object().into_iter().flatten().map(|(key, _)| key).find(|key| !known.contains(&key.as_str()))
    {
        return Err(malformed(format!("unknown key `{key}` in an answer; expected one of `{}`", known.join("`, `"))));
    }
    let is_wrong =
        |key: &str, is_right: fn(&Value) -> bool| fields.get(key).is_some_and(|it| !it.is_null() && !is_right(it));
    if let Some(key) = ["text", "thinking", "stop"].into_iter().find(|key| is_wrong(key, Value::is_string)) {
        return Err(malformed(format!("`{key}` of an answer must be a str")));
    }
    if is_wrong("tools", Value::is_array) {
        return Err(malformed("`tools` of an answer must be a list of calls".to_owned()));
    }
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut chunks = Vec::new();
    let (thinking, said) = (text("thinking"), text("text"));
    let output_tokens = amplifier_agent::count_messages(&[Message::assistant(said.as_str())]) as u64;
    chunks.extend(Some(thinking).filter(|text| !text.is_empty()).map(Chunk::Thinking));
    chunks.extend(Some(said).filter(|text| !text.is_empty()).map(Chunk::Text));
    let mut calls = 0;
    for call in fields.get("tools").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = call.get("name").and_then(Value::as_str) else {
            return Err(malformed(
                "invalid tool call: expected a `name`, and optionally an `input` and an `id`".to_owned(),
            ));
        };
        calls += 1;
        // Ids must be unique in the whole conversation.
        let id = call.get("id").and_then(Value::as_str).map_or_else(new_id, str::to_owned);
        let input = call.get("input").cloned().unwrap_or_else(|| json!({}));
        chunks.push(Chunk::ToolCall(ToolCall { id, name: name.to_owned(), input }));
    }
    let stop = match fields.get("stop").and_then(Value::as_str) {
        None if calls > 0 => StopReason::ToolUse,
        None => StopReason::EndTurn,
        Some(word) => serde_json::from_value(word.into()).map_err(|error| malformed(format!("`stop`: {error}")))?,
    };
    let usage = match fields.get("usage").filter(|usage| !usage.is_null()) {
        Some(usage) => serde_json::from_value(usage.clone()).map_err(|error| malformed(format!("`usage`: {error}")))?,
        None => TokenUsage { input_tokens, output_tokens },
    };
    chunks.push(Chunk::End { stop, usage });
    Ok(chunks)
}

fn new_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static CALLS: AtomicU64 = AtomicU64::new(0);
    format!("call-{}-{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed) + 1)
}
