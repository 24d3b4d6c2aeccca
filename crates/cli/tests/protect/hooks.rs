//! Hooks run in the sandbox of commands, and not what commands have written.

use std::fs;

use serde_json::json;

use super::{bash, does, is_possible, place};

/// Tells what it can do as the reason of a denial.
const GUARD: &str = r#"
import os, sys

def tried(what):
    try:
        what()
        return "yes"
    except OSError:
        return "no"

home = os.environ["AMPLIFIER_HOME"]
key = tried(lambda: open(home + "/audit.key").read() or sys.exit(1))
own = tried(lambda: open(__file__, "a").close())
rules = tried(lambda: open(home + "/approvals.json", "a").close())
workspace = tried(lambda: open(os.environ["WORKSPACE"] + "/made", "w").close())
print(f"key {key}, own file {own}, rules {rules}, workspace {workspace}, planted {os.environ.get('PLANTED', 'no')}", file=sys.stderr)
sys.exit(2)
"#;

fn bundle(place: &crate::common::Place, more: &str) -> String {
    let workspace = place.at("workspace").display().to_string();
    format!(
        "hooks:\n  - command: [python3, guard.py]\n    name: guard\n    on: tool:pre\n    when: tool_name == 'Glob'\n    on_error: deny\n    \
         env: {{ WORKSPACE: '{workspace}', AMPLIFIER_HOME: '{}' }}\n{more}",
        place.at("home").display()
    )
}

#[test]
fn a_hook_has_the_rights_of_a_command_unless_the_users_own_bundle_says_otherwise() {
    if !is_possible(&[]) {
        return;
    }
    let place = place();
    let glob = [("Glob", json!({ "pattern": "*" }))];
    place.write("home/guard.py", GUARD);
    place.write("home/bundle.yaml", &bundle(&place, ""));
    let denied = |what: &str| vec![format!("Denied by hook guard: {what}, planted no")];
    assert_eq!(does(&place, &[], &glob).0, denied("key no, own file no, rules no, workspace yes"));
    place.write("home/bundle.yaml", &bundle(&place, "    confine: false\n"));
    assert_eq!(does(&place, &[], &glob).0, denied("key yes, own file yes, rules yes, workspace yes"));
    fs::remove_file(place.at("home/bundle.yaml")).unwrap();

    // A project cannot have more than that, whatever it says.
    fs::create_dir_all(place.at("workspace/.amplifier")).unwrap();
    place.write("workspace/.amplifier/guard.py", GUARD);
    place.write("workspace/.amplifier/bundle.yaml", &bundle(&place, "    confine: false\n"));
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    assert_eq!(does(&place, &[], &glob).0, denied("key no, own file no, rules no, workspace yes"));
}

/// Python runs every line of a `.pth` file that begins with `import`, before the script.
#[test]
fn a_python_hook_runs_nothing_that_a_command_wrote_into_the_users_site_packages() {
    let place = place();
    place.write("home/guard.py", GUARD);
    place.write("home/bundle.yaml", &bundle(&place, ""));
    let plant = "d=$(python3 -m site --user-site) && mkdir -p $d && echo 'import os; os.environ[\"PLANTED\"] = \"yes\"' > $d/x.pth && \
                 python3 -c 'import os; print(os.environ.get(\"PLANTED\"))'";
    let (said, _) = does(&place, &[], &[bash(plant), ("Glob", json!({ "pattern": "*" }))]);
    assert_eq!(said[0], "yes");
    assert!(said[1].ends_with("planted no"), "{said:?}");
    assert!(!is_possible(&[]) || said[1].contains("key no"), "{said:?}");
}

/// Python looks for modules beside the script first.
#[test]
fn a_python_hook_imports_from_its_own_folder_and_not_from_one_that_commands_can_change() {
    if !is_possible(&[]) {
        return;
    }
    let place = place();
    let script = "import sys\ntry:\n    import rules\nexcept ImportError:\n    sys.exit('no rules')\nprint(rules.SAID, file=sys.stderr)\nsys.exit(2)\n";
    let hook = "hooks:\n  - command: python3 guard.py\n    name: guard\n    on: tool:pre\n    when: tool_name == 'Glob'\n    on_error: deny\n";
    for folder in ["workspace/hooks", "workspace"] {
        fs::create_dir_all(place.at(folder)).unwrap();
        place.write(&format!("{folder}/guard.py"), script);
        place.write(&format!("{folder}/rules.py"), "SAID = 'as it was'\n");
        place.write(&format!("{folder}/bundle.yaml"), hook);
    }
    let run = |folder: &str| {
        let bundle = place.at(folder).join("bundle.yaml").display().to_string();
        let change = bash(&format!("echo \"SAID = 'changed'\" > {}/rules.py; true", place.at(folder).display()));
        does(&place, &["--bundle", &bundle], &[change, ("Glob", json!({ "pattern": "*" }))]).0[1].clone()
    };
    assert_eq!(run("workspace/hooks"), "Denied by hook guard: as it was");
    assert!(run("workspace").contains("no rules"));
}

#[test]
fn a_hook_can_write_to_the_files_that_its_line_names_for_that() {
    let place = place();
    place.write("log", "");
    let line = format!("echo ran >> {}", place.at("log").display());
    place.write("home/bundle.yaml", &format!("hooks:\n  - command: {line}\n    on: tool:pre\n    on_error: deny\n"));
    let (said, _) = does(&place, &[], &[bash("true"), bash(&format!("echo x >> {}; true", place.at("log").display()))]);
    assert_eq!(said.len(), 2);
    let log = place.read("log");
    assert_eq!(log, if is_possible(&[]) { "ran\nran\n" } else { "ran\nran\nx\n" });
}
