//! Programs that only read the files that they are given, and the options with which they do.

use super::command::Command;
use super::options::Syntax;
use super::{syntax, writes};

/// Options that most programs have, and that write nothing.
const COMMON: &str = "-h -q -v --color --colors --help --no-color --quiet --verbose --version";

/// Formats that `kubectl -o` prints. For `kubectl kustomize`, the value is a file.
const FORMATS: &[&str] = &["json", "yaml", "wide", "name", "jsonpath", "go-template", "custom-columns"];

/// Programs, and the options with which they only read. With another option, a program may write.
const READERS: &[(&str, &str)] = &[
    ("actionlint", "-config-file -format -ignore -no-color -oneline -verbose"),
    ("bat", "-A -H -l -n -p -r -s --language --line-range --number --paging --plain --style --theme --wrap"),
    ("checkov", "-c -d -f --check --compact --directory --file --framework --quiet --skip-check"),
    ("cloc", "--by-file --csv --exclude-dir --exclude-ext --git --hide-rate --include-lang --json --match-f --vcs"),
    ("diff", "-B -N -a -b -l -r -u -w -y --brief --recursive --side-by-side --unified --exclude"),
    (
        "eslint",
        "-c -f --cache --config --env --ext --format --ignore-path --ignore-pattern --max-warnings --no-eslintrc \
         --no-error-on-unmatched-pattern --no-warn-ignored --parser --report-unused-disable-directives --rule --stdin",
    ),
    ("file", "-b -i -k -L -z --brief --dereference --mime --mime-type"),
    (
        "flake8",
        "-j --config --count --exclude --exit-zero --extend-exclude --extend-ignore --filename --format --ignore --jobs \
         --max-complexity --max-line-length --per-file-ignores --select --show-source --statistics",
    ),
    ("hadolint", "-c -f -t --config --failure-threshold --format --ignore --no-fail --trusted-registry"),
    ("jsonlint", "-c -q --compact --quiet"),
    ("kubeconform", "-ignore-missing-schemas -kubernetes-version -n -output -schema-location -skip -strict -summary"),
    (
        "kubectl",
        "-A -R -c -f -k -l -n -o -p -w --all --all-containers --all-namespaces --container --context --dry-run --field-selector \
         --filename --follow --force-conflicts --ignore-not-found --kustomize --namespace --no-headers --output --previous \
         --recursive --replicas --selector --server-side --show-labels --since --sort-by --tail --timeout --type --wait --watch",
    ),
    ("less", "-F -I -M -N -R -S -X -i -n -r -s --RAW-CONTROL-CHARS --chop-long-lines --quit-if-one-screen"),
    ("more", "-d -f -l -p -s -u"),
    (
        "mypy",
        "-m -p --config-file --disallow-untyped-defs --exclude --explicit-package-bases --follow-imports --ignore-missing-imports \
         --module --namespace-packages --no-error-summary --no-incremental --package --pretty --python-version \
         --show-error-codes --strict --warn-unused-ignores",
    ),
    (
        "prettier",
        "-c -l --check --config --ignore-path --ignore-unknown --list-different --log-level --no-config --parser --stdin-filepath",
    ),
    (
        "psql",
        "-1 -A -E -H -S -U -X -a -b -c -d -f -h -l -n -p -t -w -x --command --csv --dbname --expanded --file --host --list \
         --no-align --no-password --no-psqlrc --port --set --single-transaction --tuples-only --username",
    ),
    (
        "pylint",
        "-E -d -e -j -r -s --disable --enable --errors-only --exit-zero --fail-under --ignore --ignore-patterns --jobs \
         --max-line-length --rcfile --recursive --score",
    ),
    ("pyright", "-p --level --outputjson --project --pythonpath --pythonversion --skipunannotated --stats --warnings"),
    (
        "pytest",
        "-k -l -m -n -r -rA -ra -rf -rs -s -vv -vvv -x --co --collect-only --cov --cov-branch --cov-config --cov-fail-under \
         --deselect --disable-warnings --doctest-modules --dist --durations --exitfirst --failed-first --ff --ignore \
         --ignore-glob --last-failed --lf --log-cli-level --log-level --maxfail --new-first --nf --no-cov --no-header \
         --no-summary --numprocesses --randomly-seed --reruns --rootdir --runslow --setup-show --showlocals --stepwise --strict-markers --sw --tb --timeout",
    ),
    (
        "ruff",
        "--check --config --diff --exclude --exit-zero --extend-ignore --extend-select --force-exclude --ignore --isolated --line-length \
         --no-cache --no-fix --output-format --preview --respect-gitignore --select --show-files --show-settings --statistics \
         --target-version",
    ),
    ("scc", "-M -f -i -s -w --by-file --exclude-dir --format --include-ext --no-complexity --sort --wide"),
    ("shellcheck", "-C -P -S -W -a -e -f -i -o -s -x --exclude --format --include --severity --shell --source-path"),
    ("tflint", "-c -f --chdir --config --format --recursive"),
    ("tfsec", "-f --exclude --format --minimum-severity --no-colour --soft-fail"),
    ("tokei", "-C -c -e -f -s -t --exclude --files --hidden --sort --type"),
    (
        "trivy",
        "-f -s --exit-code --format --ignore-unfixed --scanners --security-checks --severity --skip-dirs --skip-files",
    ),
    ("xmllint", "--noout --nonet --recover --schema --valid --xinclude --xpath"),
    ("yamllint", "-c -d -f -s --config-data --config-file --format --no-warnings --strict"),
    ("zcat", "-f -l -r --force --list"),
];

/// Programs that load code of the project, or whose settings in the project name code.
pub(crate) const LOADERS: [&str; 13] = [
    "eslint",
    "flake8",
    "jest",
    "mocha",
    "mypy",
    "phpunit",
    "prettier",
    "pylint",
    "pytest",
    "rspec",
    "rubocop",
    "stylelint",
    "vitest",
];

/// Returns `true` if a program also runs code from the files that it is given or finds: tests, plugins, and the commands of `psql`.
pub(super) fn loads_code(name: &str, command: &Command) -> bool {
    let is_file = |text: &str| text.starts_with("-f") || text.starts_with("--file");
    LOADERS.contains(&name) || name == "psql" && command.texts().any(is_file)
}

/// Returns `true` if a program only reads the files that it is given, as its options say.
pub(super) fn only_reads_files(name: &str, command: &Command) -> bool {
    if matches!(name, "7z" | "7za" | "7zz" | "7zr") {
        return matches!(command.texts().next(), Some("l" | "t" | "i" | "b" | "h"));
    }
    let Some((_, options)) = READERS.iter().find(|(program, _)| *program == name) else { return false };
    let writes = match name {
        "kubectl" => {
            command.texts().any(|text| text == "cp" || text == "kustomize" && has_output(command)) || !prints(command)
        }
        "psql" => command.arguments().iter().any(|word| copies(word.plain())),
        _ => false,
    };
    let is_known = |option: &str| [COMMON, options].iter().any(|known| known.split(' ').any(|known| known == option));
    !writes && command.arguments().iter().all(|word| is_read(word.lead(), is_known))
}

/// Returns `true` for an operand, and for an option that is known: alone, in a group, or with its value.
fn is_read(word: &str, is_known: impl Fn(&str) -> bool) -> bool {
    let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty() && *rest != "-") else { return true };
    if is_known(word.split('=').next().unwrap_or(word)) {
        return true;
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let begin = letters.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_group = |text: &str| text.len() <= 8 && text.chars().all(|letter| is_known(&format!("-{letter}")));
    !word.starts_with("--") && (is_number(letters) || is_group(begin))
}

/// Returns `true` if a statement may write a file, as `\copy … to` and `\o` do.
fn copies(statement: &str) -> bool {
    statement.contains('\\') || statement.to_ascii_lowercase().contains("copy")
}

fn has_output(command: &Command) -> bool {
    command.texts().any(|text| text.starts_with("-o") || text.starts_with("--output"))
}

/// Returns `true` unless `-o` names something else than a format.
fn prints(command: &Command) -> bool {
    let words = command.arguments();
    let is_format = |text: &str| FORMATS.contains(&text.split('=').next().unwrap_or(text));
    words.iter().zip(words.iter().skip(1).map(Some).chain([None])).all(|(word, next)| match word.lead() {
        "-o" | "--output" => next.is_some_and(|value| is_format(value.lead())),
        text => text.strip_prefix("--output=").is_none_or(is_format),
    })
}

/// Returns `true` if all files that a program changes are recorded: it is in the tables of written files, with options that are known.
pub(super) fn records_all(name: &str, command: &Command) -> bool {
    if !writes::records_all(name) {
        return false;
    }
    let syntax = syntax::for_program(name);
    syntax.long.is_empty() || knows_all(syntax, command)
}

fn knows_all(syntax: Syntax, command: &Command) -> bool {
    let mut words = command.arguments().iter();
    while let Some(word) = words.next() {
        match word.lead() {
            "--" => return true,
            option if option.starts_with('-') && option.len() > 1 => match syntax.takes_next(option) {
                Some(true) => drop(words.next()),
                Some(false) => {}
                None => return false,
            },
            _ => {}
        }
    }
    true
}
