//! Small tools that remember what they were given.

use std::sync::{Arc, Mutex};

use amplifier_agent::provider::ToolSpec;
use amplifier_agent::tool::{Tool, ToolError, ToolOutput};
use amplifier_core::Map;
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// The inputs of tools, in order. Cheap to clone; clones share the list.
#[derive(Clone, Default)]
pub(crate) struct Inputs(Arc<Mutex<Vec<(String, Value)>>>);

impl Inputs {
    /// Everything so far, with the name of the tool.
    pub(crate) fn all(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().clone()
    }

    fn add(&self, tool: &str, input: &Map) {
        self.0.lock().unwrap().push((tool.to_owned(), Value::Object(input.clone())));
    }
}

struct Small<F> {
    name: &'static str,
    inputs: Inputs,
    run: F,
}

impl<F, R> Tool for Small<F>
where
    F: Fn(Map) -> R + Send + Sync + 'static,
    R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: self.name.into(), description: "For a test".into(), input_schema: json!({ "type": "object" }) }
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.inputs.add(self.name, &input);
        Box::pin((self.run)(input))
    }
}

/// A tool that is a function.
pub(crate) fn tool<R>(
    name: &'static str,
    inputs: &Inputs,
    run: impl Fn(Map) -> R + Send + Sync + 'static,
) -> Arc<dyn Tool>
where
    R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    Arc::new(Small { name, inputs: inputs.clone(), run })
}

/// The tools that every world has.
pub(super) fn usual(inputs: &Inputs) -> Vec<Arc<dyn Tool>> {
    let text = |input: &Map| input.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
    vec![
        tool("Echo", inputs, move |input| async move { Ok(ToolOutput::text(text(&input))) }),
        tool("Shout", inputs, move |input| async move { Ok(ToolOutput::text(text(&input).to_uppercase())) }),
    ]
}
