//! Runs the shared conformance cases: see `conformance/README.md`.

mod case;
mod check;
mod hook;
mod world;

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use amplifier_core::{EventData, EventName, HookResult};

use self::case::{Case, Expect, File, Step};
use self::check::{Before, Came, differences};
use self::world::World;

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let file: File = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.cases
    };
    files.iter().flat_map(read).collect()
}

#[test]
fn there_are_enough_cases_and_each_has_its_own_name() {
    let cases = cases();
    let names: HashSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len());
    assert!(cases.len() >= 150, "{}", cases.len());
}

/// The numbers of the headings of `docs/specification.md`: `1`, `5.1`.
fn sections() -> HashSet<String> {
    let text = include_str!("../../../docs/specification.md");
    let headings = text.lines().filter(|line| line.starts_with("## ") || line.starts_with("### "));
    let number = |line: &str| Some(line.split(' ').nth(1)?.trim_end_matches('.').to_owned());
    headings.filter_map(number).collect()
}

#[test]
fn every_case_cites_a_section_of_the_specification() {
    let sections = sections();
    let unknown = |case: &Case| format!("{} cites section {}", case.name, case.section);
    let wrong: Vec<_> = cases().iter().filter(|case| !sections.contains(&case.section)).map(unknown).collect();
    assert!(wrong.is_empty(), "not in docs/specification.md: {wrong:#?}");
}

#[test]
fn every_section_about_the_kernel_is_cited() {
    let cited: HashSet<_> = cases().into_iter().map(|case| case.section).collect();
    // Other tests check agents and machines.
    let kernel = sections().into_iter().filter(|section| !matches!(section.as_str(), "9" | "10"));
    let missing: Vec<_> = kernel.filter(|section| !cited.contains(section)).collect();
    assert!(missing.is_empty(), "no case cites {missing:?}");
}

#[test]
fn every_case_holds() {
    // Cases that panic on purpose should not litter the output.
    std::panic::set_hook(Box::new(|_| {}));
    let cases = cases();
    let mut failed = Vec::new();
    for case in &cases {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let different = runtime.block_on(run(case));
        if !different.is_empty() {
            let Case { name, section, rule, .. } = case;
            failed.push(format!("{name} (section {section}: {rule})\n    {}", different.join("\n    ")));
        }
    }
    let _ = std::panic::take_hook();
    assert!(failed.is_empty(), "{} of {} cases failed:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

async fn run(case: &Case) -> Vec<String> {
    let world = World::new(case);
    let mut found = Vec::new();
    for (number, step) in case.steps.iter().enumerate() {
        let before = Before::new(&world);
        let Some((came, expect)) = take(step, &world).await else { continue };
        let different = differences(expect, &came, &world, &before);
        found.extend(different.into_iter().map(|text| format!("step {}: {text}", number + 1)));
    }
    found
}

async fn take<'a>(step: &'a Step, world: &World) -> Option<(Came, &'a Expect)> {
    let registry = &world.hooks.registry;
    let invalid = || Came { error: Some("invalid_event_name"), ..Came::default() };
    Some(match step {
        Step::Emit(step) => {
            let data = EventData::from(step.data.clone());
            let came = match &world.session {
                None => registry.emit(step.emit.as_str(), data).await.map(|outcome| (None, outcome)),
                Some(session) => {
                    let emitted = session.emit_with_outcome(step.emit.as_str(), data).await;
                    emitted.map(|(verdict, outcome)| (Some(verdict), outcome))
                }
            };
            let came = came.map(|(verdict, outcome)| Came { outcome: Some(outcome), verdict, ..Came::default() });
            (came.unwrap_or_else(|_| invalid()), &step.expect)
        }
        Step::Collect(step) => {
            let (event, data) = (step.collect.as_str(), EventData::from(step.data.clone()));
            let collected = registry.emit_and_collect(event, data, Duration::from_secs_f64(step.timeout)).await;
            let came = collected.map(|answers| Came {
                responses: Some(answers.into_iter().map(|answer| answer.value.into()).collect()),
                ..Came::default()
            });
            (came.unwrap_or_else(|_| invalid()), &step.expect)
        }
        Step::Process(step) => {
            let session = world.session.as_ref().unwrap();
            let event: EventName = step.event.parse().unwrap();
            let result = HookResult::from_json(step.process.clone()).unwrap();
            let came = match session.process_hook_result(&event, &step.hook, result, EventData::new()).await {
                Ok(verdict) => Came { verdict: Some(verdict), ..Came::default() },
                Err(_) => Came { error: Some("injection_too_large"), ..Came::default() },
            };
            (came, &step.expect)
        }
        Step::Register(step) => {
            let registered = world.hooks.register(&step.register);
            (registered.map_or_else(|_| invalid(), |()| Came::default()), &step.expect)
        }
        Step::List(step) => {
            let infos = match step.list.as_deref() {
                Some(event) => registry.list_handlers_of(event).unwrap(),
                None => registry.list_handlers(),
            };
            let names = infos.iter().map(|info| info.name.to_string()).collect();
            (Came { names: Some(names), ..Came::default() }, &step.expect)
        }
        Step::Unregister(step) => {
            world.hooks.unregister(&step.unregister);
            return None;
        }
        Step::Defaults(step) => {
            registry.set_default_fields(step.defaults.clone());
            return None;
        }
        Step::BeginTurn(step) => {
            assert!(step.begin_turn);
            world.session.as_ref().unwrap().begin_turn();
            return None;
        }
        Step::Wait(step) => {
            tokio::time::sleep(Duration::from_secs_f64(step.wait)).await;
            return None;
        }
    })
}

/// The runner must be able to fail: a case with a wrong expectation is noticed.
#[tokio::test(start_paused = true)]
async fn a_wrong_expectation_is_noticed() {
    let case = r#"{
        "name": "wrong", "section": "4", "rule": "none",
        "hooks": [{ "name": "a", "answer": { "action": "deny", "reason": "no" } }],
        "steps": [{ "emit": "tool:pre", "data": {}, "expect": { "decision": "continue", "ran": [], "by": "b" } }]
    }"#;
    let found = run(&serde_json::from_str(case).unwrap()).await;
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(serde_json::from_str::<Expect>(r#"{ "decison": "continue" }"#).is_err());
}
