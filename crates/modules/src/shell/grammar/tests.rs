//! The reader against bash: `bash --pretty-print` parses a script, and writes it from its own tree without running it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::fmt::Write as _;
use std::fs;
use std::process::Command as Program;

use super::*;

#[path = "../../../tests/shell/numbers.rs"]
mod numbers;

use self::numbers::Numbers;

/// Pieces whose meaning depends on their place.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "'", "\"", "\\", "\\\n", "`", "$(", ")", "$((", "((", "))", "(", "[[ ", " ]]", "{ ", "; }", "}", ";", ";;", ";&",
    "\n", "#", " #", "<<E\n", "\nE\n", "<<-'E'\n", "<<<", "&", "&&", "||", "&>", ">&", "|&", "<(", ">", "<>", "2>",
    "{fd}>", " ", "x=", "x=(", "a[", "]=", "${", "$'", "$$", "case a in ", "a) ", "esac", "if ", "then ", "fi",
    "for x in ", "do ", "done", "! ", "time ", "function f ", "f() ", "@(a|b)",
];

/// The commands of the test data, and `count` mutations of them.
fn texts(count: usize) -> Vec<String> {
    let cases: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../../../tests/shell/commands.json")).unwrap();
    let cases = cases.iter().map(|case| case["command"].as_str().unwrap().to_owned());
    let lines =
        [include_str!("../../../tests/shell/harmless.txt"), include_str!("../../../tests/shell/destructive.txt")];
    let lines = lines.into_iter().flat_map(str::lines).map(|line| line.replace('⏎', "\n"));
    let mut texts: Vec<String> = cases.chain(lines).collect();
    let (seeds, mut numbers) = (texts.len(), Numbers(0x2545_f491_4f6c_dd1d));
    for _ in 0..count {
        let mut text: Vec<char> = texts[numbers.below(seeds)].chars().collect();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(text.len() + 1);
            match numbers.below(5) {
                0 => text.truncate(at),
                1 => text.splice(at..at, texts[numbers.below(seeds)].chars()).for_each(drop),
                _ => text.splice(at..at, PIECES[numbers.below(PIECES.len())].chars()).for_each(drop),
            }
        }
        texts.push(text.into_iter().collect());
    }
    // Plain words and quotes are read in many other tests.
    texts.retain(|text| text.contains(['(', '{', '[', '<', '`', '\n', ';', '#']));
    texts
}

/// Returns what bash writes for each of the scripts; `None` for those that it refuses.
fn printed_by_bash(scripts: &[&String]) -> Vec<Option<String>> {
    let folder = tempfile::tempdir().unwrap();
    for (number, script) in scripts.iter().enumerate() {
        fs::write(folder.path().join(number.to_string()), script).unwrap();
    }
    let script = "for script in *; do
        bash --pretty-print -O extglob $script > $script.out 2> /dev/null || rm $script.out
    done";
    Program::new("bash").args(["-c", script]).current_dir(folder.path()).status().unwrap();
    let read = |number: usize| fs::read(folder.path().join(format!("{number}.out"))).ok();
    (0..scripts.len()).map(|number| Some(String::from_utf8_lossy(&read(number)?).into_owned())).collect()
}

/// A text of the tree, without what bash changes: blanks and separators in substitutions, the order of redirections.
fn outline(list: &List<'_>) -> String {
    let mut text = String::new();
    for and_or in list {
        for pipeline in &and_or.pipelines {
            text += if pipeline.is_alternative { "or " } else { "and " };
            text += if pipeline.is_timed { "time " } else { "" };
            for command in &pipeline.commands {
                match command {
                    Command::Simple(simple) => write!(text, "{}", simple_outline(simple)).unwrap(),
                    Command::Compound(compound, redirections) => {
                        write!(text, "{}{}", compound_outline(compound), redirection_outline(redirections)).unwrap();
                    }
                    Command::Function(Function { name, body, redirections }) => {
                        let redirections = redirection_outline(redirections);
                        write!(text, "function {name} {}{redirections}", compound_outline(body)).unwrap();
                    }
                }
                text += " | ";
            }
        }
        text += if and_or.is_async { "&\n" } else { ";\n" };
    }
    text
}

fn simple_outline(simple: &SimpleCommand<'_>) -> String {
    let (mut text, mut redirections) = (String::new(), String::new());
    for part in &simple.parts {
        match part {
            CommandPart::Assignment(Assignment { name, subscript, appends, value }) => {
                let value = match value {
                    AssignmentValue::Scalar(value) => word(value),
                    AssignmentValue::Array(elements) => {
                        elements.iter().map(|(at, value)| format!("{:?}{}", at.map(word), word(value))).collect()
                    }
                };
                let subscript = subscript.map(word);
                write!(text, "{name}[{subscript:?}]{appends}={value} ").unwrap();
            }
            CommandPart::Redirection(redirection) => {
                redirections += &redirection_outline(std::slice::from_ref(redirection));
            }
            CommandPart::Argument(_) => {}
        }
    }
    let arguments = simple.parts.iter().filter_map(|part| match part {
        CommandPart::Argument(argument) => Some(argument_outline(argument)),
        _ => None,
    });
    let words: Vec<String> = simple.name.map(word).into_iter().chain(arguments).collect();
    format!("{text}<{}> {redirections}", words.join(" "))
}

fn argument_outline(argument: &Argument<'_>) -> String {
    match argument {
        Argument::Word(text) => word(text),
        Argument::ProcessSubstitution(list) => format!("({})", outline(list)),
    }
}

/// Returns a word up to its first substitution, whose commands bash writes in its own way.
fn word(word: &str) -> String {
    let ends = ["$(", "<(", ">(", "=("].iter().filter_map(|open| word.find(open));
    word.get(..ends.min().unwrap_or(word.len())).unwrap().replace("\\\n", "")
}

fn redirection_outline(redirections: &[Redirection<'_>]) -> String {
    redirections
        .iter()
        .map(|Redirection { descriptor, kind, target }| {
            let is_input =
                matches!(kind, RedirectionKind::Read | RedirectionKind::ReadWrite | RedirectionKind::DuplicateInput);
            let descriptor = match descriptor {
                Descriptor::Implied => u32::from(!is_input).to_string(),
                Descriptor::Number(number) => number.to_string(),
                Descriptor::Variable(name) => (*name).to_owned(),
            };
            let target = match target {
                RedirectionTarget::File(argument) => argument_outline(argument),
                RedirectionTarget::HereString(text) => format!("text {}", word(text)),
                RedirectionTarget::HereDocument(document) => {
                    let body = document.body.get().replace("\\\n", "");
                    let lines = body.lines();
                    let lines: Vec<&str> = lines
                        .map(|line| if document.strips_tabs { line.trim_start_matches('\t') } else { line })
                        .collect();
                    format!("{} {:?}", document.expands, lines)
                }
            };
            format!("{descriptor}{}{target} ", *kind as u8)
        })
        .collect()
}

fn compound_outline(compound: &CompoundCommand<'_>) -> String {
    let joined = |words: &[&str]| words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" ");
    let plain = |text: &str| text.replace("\\\n", "").replace([' ', '\t', '\n'], "");
    match compound {
        CompoundCommand::Group(list) => format!("group {{{}}}", outline(list)),
        CompoundCommand::Subshell(list) => format!("subshell {{{}}}", outline(list)),
        CompoundCommand::If(lists) => format!("if {}", lists.iter().map(outline).collect::<String>()),
        CompoundCommand::Loop { condition, body } => format!("loop {{{}}} {{{}}}", outline(condition), outline(body)),
        CompoundCommand::For { variable, words, body } => {
            format!("for {variable} {} {{{}}}", joined(words), outline(body))
        }
        CompoundCommand::ArithmeticFor { expressions, body } => {
            format!("for {} {{{}}}", plain(&expressions.concat()), outline(body))
        }
        CompoundCommand::Case { word: text, branches } => {
            let branches =
                branches.iter().map(|(patterns, list)| format!("{}) {{{}}}", joined(patterns), outline(list)));
            format!("case {} {}", word(text), branches.collect::<String>())
        }
        CompoundCommand::Arithmetic(expression) => format!("sum {}", plain(expression)),
        CompoundCommand::Test(operations) => {
            let operation = |test: &TestOperation<'_>| {
                let operator = if test.operator.is_empty() { "-n" } else { test.operator };
                format!("{operator} {} ", joined(&test.operands))
            };
            format!("test {}", operations.iter().map(operation).collect::<String>())
        }
    }
}

#[test]
fn bash_reads_the_same_commands() {
    let texts = texts(2_400);
    let read: Vec<&String> = texts.iter().filter(|text| read(text).is_ok()).collect();
    let printed = printed_by_bash(&read);
    assert!(read.len() > 800, "{} texts", read.len());
    let mut differences = Vec::new();
    for (text, printed) in read.iter().zip(&printed) {
        let ours = super::read(text).map(|list| outline(&list));
        let again = printed.as_deref().map(|printed| super::read(printed).map(|list| outline(&list)));
        // Bash replaces these quotes by others.
        if again.is_none() || again != Some(ours.clone()) && !text.contains("$'") && !text.contains("$\"") {
            differences.push(format!("{text:?}\n  ours {ours:?}\n  bash {again:?}\n  {printed:?}"));
        }
    }
    assert!(differences.is_empty(), "{} of {} differ:\n{}", differences.len(), read.len(), differences.join("\n"));
}

#[test]
fn what_has_no_single_reading_is_refused() {
    #[rustfmt::skip]
    let refused = [
        "cat <<'E\"'\nE\"\nrm x\nE\n", "cat <<\"E'\"\nE'\nrm x\nE\n", "ls >& -1", "ls 2>&-1", "ls > 2>&1", "ls 1>{x}>a", "ls {x[y]}<a", "ls >(", "ls <<<", "ls > (a)", "ls <((ls))", "<a x=(1)", "! (ls", "!(ls)",
        "[[ 2<3 ]]", "[[ !(a) ]]", "[[ -f ]]", "[[ a", "[[ a b ]]", "@(ls) a", "(ls); }", "{ ls }", "{ (ls) }", "((ls); ls)",
        "(ls", "ls)", "ls;;", "; ls", "ls; ; ls", "ls && ", "ls |", "| ls", "ls &&& ls", "ls | ! ls", "if ls; fi", "fi", "do ls",
        "if; then ls; fi", "while ls; done", "for 1 in a; do ls; done", "for x in a do ls; done", "for ((a; b)); do ls; done",
        "case a in a) ls", "case a in a b) ls;; esac", "case in a) ls;; esac", "f( ) ls", "f() ls", "f(a) { ls; }", "if() { ls; }",
        "'f'() { ls; }", "a=(1", "a=(1)b", "a[1]=(1)", "a[1", "echo a=(1)", "x=([a b]c)", "l\\\ns", "ls >\\\n> a", "echo $\\\n(ls)",
        "2\\\n>a", "cat <<E\na", "cat <<E", "cat <<E 'a\nE\n'", "cat <<$x\n$x", "cat <<E\na\\\nE\nE", "$(cat <<E)\na\nE",
        "echo ${x:-'}'}", "echo ${x:-$'a'}", "echo ${x:-<(ls)}", "echo $((x['a']))", "echo 'a", "echo \"a", "echo `a", "echo $(ls",
        "echo a\\", "coproc ls", "select x in a; do ls; done", "function", "time time", "time -- ls", "time -p -v ls", "ls\r", "ls \0",
    ];
    let read = refused.into_iter().filter(|text| read(text).is_ok());
    assert_eq!(read.collect::<Vec<_>>(), Vec::<&str>::new());
}
