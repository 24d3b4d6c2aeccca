//! Options of tools that choose, show or repeat, beside those that many tools have.

/// Tools, and options that do something else there than in most tools: they load code, or write over a file.
const MISLEADING: &[(&str, &str)] = &[("bun", "-r"), ("gunicorn", "-p"), ("mocha", "-n")];

/// Returns `true` if an option does not do what it does in most tools.
pub(super) fn misleads(name: &str, word: &str) -> bool {
    MISLEADING.iter().any(|(tool, option)| *tool == name && word.starts_with(option))
}

/// Tools, and options that leave them what they are.
const TOOLS: &[(&[&str], &str)] = &[
    (
        &["vitest", "jest", "mocha"],
        "-i -t -u -g --bail --ci --changed --coverage.enabled --coverage.include --coverage.reporter --dir --expand --exit --findRelatedTests \
         --forceExit --grep --hideSkippedTests --json --maxWorkers --no-coverage --no-watch --onlyChanged --passWithNoTests --pool --project \
         --related --reporter --retry --runTestsByPath --selectProjects --shard --testNamePattern --testPathPattern --testTimeout --timeout \
         --typecheck --update --updateSnapshot --verbose --watch --watchAll",
    ),
    (
        &["tsc", "vue-tsc"],
        "-b -p --build --declaration --dry --emitDeclarationOnly --force --incremental --listFiles --pretty --project --skipLibCheck --strict --traceResolution --verbose",
    ),
    (
        &["eslint"],
        "--fix-dry-run --ignore-pattern --no-error-on-unmatched-pattern --no-warn-ignored --report-unused-disable-directives --stats",
    ),
    (
        &["prettier"],
        "-c -l -u --ignore-unknown --list-different --log-level --loglevel --no-error-on-unmatched-pattern",
    ),
    (
        &["stylelint", "oxlint", "knip", "depcheck", "svelte-check", "biome", "cspell", "markdownlint-cli2"],
        "--apply --dot --error-on-warnings --formatter --no-progress --production --quiet --reporter --threshold --unsafe --workspace",
    ),
    (
        &["playwright"],
        "-g -j -u --browser --debug --forbid-only --grep --grep-invert --headed --last-failed --list --max-failures --no-deps --only-changed \
         --pass-with-no-tests --project --repeat-each --reporter --retries --shard --timeout --trace --ui --update-snapshots --workers",
    ),
    (
        &["vite", "next", "nuxt", "astro", "storybook", "react-scripts", "webpack", "rspack"],
        "-p --ci --debug --fix --force --logLevel --minify --mode --no-lint --port --sourcemap --strictPort --turbo --turbopack",
    ),
    (
        &["turbo", "nx", "lerna"],
        "-F -c -p -t --affected --all --base --concurrency --configuration --continue --daemon --dry --dry-run --exclude --filter --force --graph --head \
         --log-order --no-cache --no-daemon --only --output-logs --output-style --parallel --projects --scope --skip-nx-cache --stream --summarize --target --targets --ui",
    ),
    (&["prisma", "drizzle-kit"], "--generator --no-engine --no-hints --schema --watch"),
    (&["pre-commit"], "-a --all-files --files --from-ref --hook-stage --show-diff-on-failure --to-ref"),
    (
        &["coverage"],
        "-a -i -m -p --append --branch --fail-under --include --omit --parallel-mode --precision --show-missing --skip-covered --skip-empty --sort --source",
    ),
    (&["tox", "nox"], "-e -l -p -s --list --parallel"),
    (
        &["deno"],
        "-A --allow-all --allow-env --allow-net --allow-read --allow-run --allow-write --check --fail-fast --filter --ignore --no-check --parallel --watch",
    ),
    (
        &["ruff"],
        "-n --add-noqa --extend-select --force-exclude --no-cache --output-format --preview --show-fixes --target-version --unsafe-fixes",
    ),
    (
        &["black", "isort"],
        "-C -S -c -t --check-only --include --exclude --extend-exclude --preview --profile --target-version",
    ),
    (
        &["mypy", "pyright"],
        "-p --exclude --explicit-package-bases --follow-imports --namespace-packages --no-error-summary --no-incremental --outputjson --pretty --project --python-version --pythonversion --strict --warnings",
    ),
    (
        &["pytest"],
        "--co --collect-only --cov --cov-branch --cov-fail-under --cov-report= --cov-report=term --cov-report=term-missing --cov-report=term-missing:skip-covered --deselect --disable-warnings --dist \
         --doctest-modules --durations --exitfirst --failed-first --ignore --ignore-glob --log-cli-level --log-level --new-first --nf --no-summary --numprocesses \
         --randomly-seed --reruns --runslow --setup-show --showlocals --stepwise --strict-markers --sw --timeout -rf -rs -vvv",
    ),
    (
        &["flake8", "pylint", "bandit", "vulture"],
        "-E -c -d -e -r --count --disable --enable --errors-only --extend-ignore --fail-under --jobs --max-complexity --max-line-length --min-confidence --recursive --score --severity-level --show-source",
    ),
    (
        &["golangci-lint"],
        "-D -E -j --allow-parallel-runners --build-tags --concurrency --disable --disable-all --enable --enable-all --fast --max-issues-per-linter --max-same-issues --new --new-from-rev --show-stats --sort-results --tests --timeout",
    ),
    (&["gofmt", "goimports", "gofumpt"], "-d -e -local"),
    (&["staticcheck", "govulncheck"], "-checks -f -show -tags -tests"),
    (
        &["shellcheck", "shfmt", "hadolint", "yamllint", "actionlint"],
        "-S -a -ci -e -f -i --exclude --indent --no-warnings --severity --shell",
    ),
    (
        &["uvicorn", "gunicorn", "flask", "streamlit", "hypercorn", "fastapi"],
        "-p --app --debug --factory --log-level --port --reload --reload-dir --timeout --workers",
    ),
    (
        &["rubocop", "rspec"],
        "-A -P -a -b -e -fd -fp --autocorrect --autocorrect-all --backtrace --example --except --fail-fast --next-failure --only --only-failures --order --parallel --seed --tag",
    ),
    (
        &["npm", "pnpm", "yarn", "bun"],
        "-F -L -O -P -r -s -u -w --depth --dev --filter --if-present --include --include-workspace-root --json --long --no-bail --no-frozen-lockfile --no-save \
         --offline --omit --parallel --prefer-frozen-lockfile --prefer-offline --prod --production --recursive --reporter --save-optional \
         --save-peer --save-prod --sort --stream --workspace --workspace-root --loglevel --no-progress --ignore-workspace-root-check --lockfile-only",
    ),
    (
        &["uv", "poetry", "pdm"],
        "-G -U -p --all-groups --all-packages --depth --no-default-groups --no-dev --no-group --no-install-project --no-sync --only --only-dev --only-group --outdated \
         --package --python --refresh --reinstall --resolution --sync --top-level --upgrade --upgrade-package --without-hashes",
    ),
    (&["pip"], "--outdated --format --upgrade-strategy --disable-pip-version-check --no-input --progress-bar"),
    (
        &["go"],
        "-benchmem -compat -cpu -deps -e -f -failfast -fuzztime -list -m -mod=mod -mod=readonly -mod=vendor -n -p -parallel -s -shuffle -trimpath -v -versions -vet=off -cover -covermode -coverpkg",
    ),
    (
        &["git"],
        "-C -F -N -S -X -s -x --all-match --author --autostash --count --date --depth --ff --file --fixup --format --full-history --ignore-space-change --index \
         --intent-to-add --keep-index --merged --no-commit --no-ff --no-merged --no-rebase --no-tags --onto --rebase --remotes -r --soft --mixed --sort --staged --stat \
         --strategy-option --unshallow --update --verbose -vv -w",
    ),
    (&["docker"], "-f --file --load --platform --quiet --rm"),
    (
        &["docker compose"],
        "-d -q -t --build --build-arg --detach --force-recreate --no-attach --no-build --no-cache --no-color --no-deps --no-recreate --no-start --parallel --progress --pull \
         --quiet-pull --timeout --wait --wait-timeout --with-dependencies",
    ),
];

/// Returns `true` for an option that leaves a tool what it is.
pub(super) fn is_ordinary(tool: &str, option: &str) -> bool {
    let tool = tool.trim_end_matches('3');
    TOOLS
        .iter()
        .filter(|(tools, _)| tools.contains(&tool))
        .any(|(_, options)| options.split_whitespace().any(|known| known == option))
}
