//! The options of known programs, GNU and BSD.

use super::options::Syntax;

/// Program, letters, names. Unknown options are read in every way, so a missing entry is safe.
const PROGRAMS: [(&str, &str, &str); 65] = [
    (
        "cp",
        "abcdfHilLnNpPrRsS:t:TuvxXZ",
        "archive attributes-only backup:: context:: copy-contents debug dereference force help interactive link no-clobber \
         no-dereference no-preserve: no-target-directory one-file-system parents preserve:: recursive reflink:: \
         remove-destination sparse: strip-trailing-slashes suffix: symbolic-link target-directory: update:: verbose version",
    ),
    (
        "mv",
        "bfhinS:t:TuvZ",
        "backup:: context debug exchange force help interactive no-clobber no-copy no-target-directory \
         strip-trailing-slashes suffix: target-directory: update:: verbose version",
    ),
    (
        "ln",
        "bdfFhiLnPrsS:t:Tv",
        "backup:: directory force help interactive logical no-dereference no-target-directory physical relative suffix: \
         symbolic target-directory: verbose version",
    ),
    (
        "install",
        "bcCdDg:m:o:pPsS:t:TvZ",
        "backup:: compare context:: debug directory group: help mode: no-target-directory owner: preserve-context \
         preserve-timestamps strip strip-program: suffix: target-directory: verbose version",
    ),
    ("scp", "346ABCc:D:F:i:J:l:o:P:pqrRS:TvX:", ""),
    (
        "rsync",
        "0468aAbB:cCdDe:Ef:FghHiIJkKlLmM:nNoOpPqrRsStT:uUvVWxXyz",
        "acls append archive backup backup-dir: block-size: bwlimit: checksum chmod: chown: compress compress-choice: \
         compress-level: contimeout: copy-dest: cvs-exclude debug: del delete delete-after delete-before delete-delay \
         delete-during delete-excluded dirs dry-run exclude: exclude-from: executability existing files-from: filter: force \
         from0 group groupmap: hard-links human-readable ignore-errors ignore-existing include: include-from: info: inplace \
         itemize-changes link-dest: links list-only log-file: log-file-format: max-delete: max-size: min-size: \
         modify-window: no-motd numeric-ids omit-dir-times one-file-system only-write-batch: out-format: owner partial \
         partial-dir: password-file: perms port: progress protocol: prune-empty-dirs quiet read-batch: recursive relative \
         remote-option: remove-source-files rsh: rsync-path: safe-links size-only skip-compress: sockopts: sparse stats \
         stop-after: suffix: temp-dir: timeout: times update usermap: verbose whole-file write-batch: xattrs",
    ),
    ("tee", "aip", "append help ignore-interrupts output-error:: version"),
    ("touch", "A:acd:fhmr:t:", "date: help no-create no-dereference reference: time: version"),
    ("mkdir", "m:pvZ", "context:: help mode: parents verbose version"),
    ("rmdir", "pv", "help ignore-fail-on-non-empty parents verbose version"),
    (
        "rm",
        "dfiIPrRvWx",
        "dir force help interactive:: no-preserve-root one-file-system preserve-root:: recursive verbose version",
    ),
    ("shred", "fn:s:uvxz", "exact force help iterations: random-source: remove:: size: verbose version zero"),
    ("truncate", "cor:s:", "help io-blocks no-create reference: size: version"),
    ("mkfifo", "m:Z", "context:: help mode: version"),
    ("sponge", "a", ""),
    ("gzip", GZIP, GZIP_LONG),
    ("gunzip", GZIP, GZIP_LONG),
    (
        "xz",
        "0123456789cC:defF:hHkKlM:qQS:tT:vVz",
        "block-size: check: compress decompress extreme files:: files0:: force format: help keep list memlimit: \
         no-sparse no-warn quiet robot stdout suffix: test threads: to-stdout uncompress verbose version",
    ),
    // A mode that removes permissions looks like options.
    (
        "chmod",
        "RcfhHLPvr::w::x::X::s::t::u::g::o::a::",
        "changes help no-preserve-root preserve-root quiet recursive reference: silent verbose version",
    ),
    ("chown", "RcfhHLPvnx", CHOWN),
    ("chgrp", "RcfhHLPvnx", CHOWN),
    (
        "sed",
        "aEe:f:Hi::l:nrsuz",
        "debug expression: file: follow-symlinks help in-place:: line-length: null-data posix quiet regexp-extended \
         sandbox separate silent unbuffered version zero-terminated",
    ),
    ("perl", "+0::acC::D::d::e:E:F::fhi::I:l::m::M::npsStTuUvV::wWXx::", ""),
    ("ruby", "+0::acC:dE:e:F::hi::I:lnpr:sSvwW::x::", ""),
    ("unzip", "aAbBcCd:DfjKlLMnopqtTuUvVW:x:XzZ", ""),
    (
        "uniq",
        "cdDf:is:uw:z",
        "all-repeated:: check-chars: count group:: help ignore-case repeated skip-chars: skip-fields: unique version \
         zero-terminated",
    ),
    (
        "sort",
        "bcCdfghik:mMno:rRsS:t:T:uVz",
        "batch-size: buffer-size: check:: compress-program: debug dictionary-order field-separator: files0-from: \
         general-numeric-sort help human-numeric-sort ignore-case ignore-leading-blanks ignore-nonprinting key: merge \
         month-sort numeric-sort output: parallel: random-sort random-source: reverse sort: stable temporary-directory: \
         unique version version-sort zero-terminated",
    ),
    (
        "tar",
        "AaBb:C:cdF:f:Gg:hH:iI:jJkK:lL:mMN:noOpPrRStT:uUvV:wWxX:zZ",
        "absolute-names acls add-file: after-date: append auto-compress blocking-factor: bzip2 catenate checkpoint:: \
         checkpoint-action: compare compress concatenate create delete dereference diff directory: exclude: \
         exclude-from: exclude-vcs extract file: files-from: force-local format: full-time get group: gunzip gzip help \
         ignore-failed-read index-file: info-script: keep-newer-files keep-old-files label: level: list \
         listed-incremental: lzip lzma mode: mtime: multi-volume newer: newer-mtime: no-same-owner \
         no-same-permissions null numeric-owner occurrence:: one-file-system one-top-level:: overwrite owner: posix \
         preserve-permissions recursion record-size: remove-files same-owner skip-old-files sort: sparse \
         starting-file: strip-components: suffix: tape-length: to-command: to-stdout totals:: touch transform: ungzip \
         unlink-first update use-compress-program: verbose verify version volno-file: wildcards xattrs xform: xz zstd",
    ),
    ("zip", "0123456789AcDeEfFgjJklLmn:O:oP:qrSt:TuUvwXyzZ:", "move out: recurse-paths"),
    ("unzip", "aAbBcCd:DfFjKlLMnopP:qtTuUvVWXz", ""),
    (
        "curl",
        "012346aA:b:Bc:C:d:D:e:E:fF:gGh::H:iIjJkK:lLm:MnNo:OpP:qQ:r:RsSt:T:u:U:vVw:x:X:y:Y:z:Z",
        "alt-svc: cacert: cert: compressed config: connect-timeout: connect-to: continue-at: cookie: cookie-jar: create-dirs \
         data: data-ascii: data-binary: data-raw: data-urlencode: dump-header: etag-compare: etag-save: fail fail-with-body form: \
         form-string: get globoff head header: hsts: http1.1 http2 include insecure interface: ipv4 ipv6 json: key: libcurl: \
         limit-rate: location max-redirs: max-time: netrc no-buffer no-progress-meter noproxy: output: output-dir: parallel \
         preproxy: progress-bar proxy: quote: range: referer: remote-header-name remote-name request: resolve: retry: \
         retry-all-errors retry-connrefused retry-delay: retry-max-time: show-error silent socks5: socks5-hostname: stderr: \
         trace: trace-ascii: unix-socket: upload-file: url: url-query: user: user-agent: verbose write-out:",
    ),
    (
        "wget",
        "46a:A:bB:cdD:e:EFhHi:I:kKl:Lmno:O:pP:qQ:rR:St:T:U:vVw:xX:",
        "append-output: body-data: body-file: continue directory-prefix: execute: header: input-file: method: \
         no-check-certificate no-clobber no-verbose output-document: output-file: password: post-data: post-file: quiet recursive \
         retry-connrefused save-cookies: server-response show-progress spider timeout: tries: user-agent: user: verbose \
         warc-file: waitretry:",
    ),
    // The whole text of `-f…` or `-W…` is one option.
    ("gcc", GCC, ""),
    ("cc", GCC, ""),
    ("time", "+af:o:pqvV", "append format: help output: portability quiet verbose version"),
    ("crontab", "eilnrsTu:V", ""),
    (
        "git",
        "+c:C:hpPv",
        "attr-source: bare config-env: exec-path:: git-dir: glob-pathspecs help html-path icase-pathspecs info-path \
         list-cmds: literal-pathspecs man-path namespace: no-advice no-lazy-fetch no-optional-locks no-pager \
         no-replace-objects noglob-pathspecs paginate super-prefix: version work-tree:",
    ),
    (
        "git clone",
        "46b:c:j:lno:qsu:v",
        "also-filter-submodules bare branch: bundle-uri: config: depth: dissociate filter: hardlinks ipv4 ipv6 jobs: local mirror \
         no-checkout no-hardlinks no-local no-reject-shallow no-remote-submodules no-shallow-submodules no-single-branch no-tags \
         origin: progress quiet recurse-submodules:: ref-format: reference: reference-if-able: reject-shallow \
         remote-submodules revision: separate-git-dir: server-option: shallow-exclude: shallow-since: shallow-submodules shared \
         single-branch sparse tags template: upload-pack: verbose",
    ),
    ("git clean", "de:finqxX", "dry-run exclude: force interactive quiet"),
    (
        "git push",
        "46dfno:quv",
        "all atomic branches delete dry-run exec: follow-tags force force-if-includes force-with-lease:: ipv4 ipv6 mirror \
         no-verify porcelain progress prune push-option: quiet receive-pack: recurse-submodules: repo: set-upstream \
         signed:: tags thin verbose verify",
    ),
    (
        "git tag",
        "adefF:ilm:n::su:v",
        "annotate cleanup: color:: column:: contains:: create-reflog delete edit file: force format: ignore-case list \
         local-user: merged:: message: no-contains:: no-merged:: points-at: sign sort: trailer: verify",
    ),
    ("git remote", "v", "verbose"),
    (
        "git checkout",
        "2b:B:dflmpqtU:",
        "conflict: detach force guess ignore-other-worktrees ignore-skip-worktree-bits inter-hunk-context: merge no-guess \
         no-overlay no-overwrite-ignore no-progress no-recurse-submodules no-track orphan: ours overlay overwrite-ignore \
         patch pathspec-file-nul pathspec-from-file: progress quiet recurse-submodules:: theirs track:: unified:",
    ),
    (
        "git switch",
        "c:C:dfmqt",
        "conflict: create: detach discard-changes force force-create: guess ignore-other-worktrees merge no-guess no-progress \
         no-recurse-submodules no-track orphan: progress quiet recurse-submodules:: track::",
    ),
    (
        "git restore",
        "2mpqs:SU:W",
        "conflict: ignore-skip-worktree-bits ignore-unmerged inter-hunk-context: merge no-overlay no-progress no-staged \
         no-worktree ours overlay patch pathspec-file-nul pathspec-from-file: progress quiet recurse-submodules:: source: \
         staged theirs unified: worktree",
    ),
    (
        "git branch",
        "acdDfhilmMCqru:vt",
        "abbrev:: all color:: column:: contains:: copy create-reflog delete edit-description force format: ignore-case list \
         merged:: move no-color no-column no-contains:: no-merged:: no-track points-at: quiet remotes set-upstream-to: \
         show-current sort: track:: unset-upstream verbose",
    ),
    ("git rm", "fnqr", "cached dry-run force ignore-unmatch pathspec-file-nul pathspec-from-file: quiet sparse"),
    ("docker", DOCKER, DOCKER_LONG),
    ("podman", DOCKER, DOCKER_LONG),
    ("docker-compose", DOCKER, DOCKER_LONG),
    ("cargo", "+C:hqvVZ:", "color: config: explain: frozen help list locked offline quiet verbose version"),
    ("npm", "C:w:", "loglevel: prefix: quiet registry: silent verbose workspace:"),
    (
        "yarn",
        "s",
        "cache-folder: cwd: flat force frozen-lockfile global-folder: ignore-scripts json modules-folder: mutex: \
         network-timeout: no-lockfile non-interactive offline prefer-offline production:: registry: silent verbose",
    ),
    ("pnpm", "C:F:rsw", "dir: filter: loglevel: recursive reporter: silent stream workspace-root"),
    ("bun", "bhi", "bun config:: cwd: silent verbose"),
    // The words after a module are its own arguments.
    ("python", PYTHON, ""),
    ("python3", PYTHON, ""),
    ("pip", PIP, PIP_LONG),
    ("pip3", PIP, PIP_LONG),
    ("uv", "hnqvV", "cache-dir: color: config-file: directory: help no-cache offline project: quiet verbose version"),
    ("poetry", "C:hnP:qvV", "ansi directory: help no-ansi no-cache no-interaction no-plugins project: quiet verbose"),
    ("go", "+C:", ""),
    ("gem", "hqvV", "backtrace config-file: debug help norc quiet silent verbose"),
    ("bundle", "rV", "no-color retry: verbose"),
    (
        "composer",
        "d:hnqvV",
        "ansi help no-ansi no-interaction no-plugins no-scripts profile quiet verbose working-dir:",
    ),
];

const GZIP: &str = "123456789ab:cdfhklLnNqrS:tvV";
const GZIP_LONG: &str = "ascii best decompress fast force help keep license list name no-name quiet recursive rsyncable stdout \
                         suffix: synchronous test to-stdout uncompress verbose version";
const CHOWN: &str = "changes dereference from: help no-dereference no-preserve-root preserve-root quiet recursive reference: \
                     silent verbose version";
const GCC: &str = "B:cD:d::e:Ef::g::h:I:i::l:L:m::M::n::o:O::p::Qr::Ss::t::T:u:U:vwW::x:X:";
const DOCKER: &str = "c:Df:H:l:p:";
const DOCKER_LONG: &str = "ansi: config: context: debug env-file: file: host: log-level: parallel: profile: progress: \
                           project-directory: project-name: remove-orphans tls tlscacert: tlscert: tlskey: tlsverify volumes";
const PYTHON: &str = "+bBc:dEhiIm:OPqsSuvVW:xX:";
const PIP: &str = "hqvV";
const PIP_LONG: &str = "cache-dir: cert: client-cert: debug disable-pip-version-check exists-action: help isolated \
                        keyring-provider: log: no-cache-dir no-color no-input proxy: python: quiet require-virtualenv \
                        retries: timeout: trusted-host: use-deprecated: use-feature: verbose version";

/// Returns the options of a program, or of a command such as `git clean`; empty for an unknown one.
pub(super) fn for_program(name: &str) -> Syntax {
    let known = PROGRAMS.iter().find(|(program, ..)| *program == name);
    known.map_or_else(Syntax::default, |(_, short, long)| Syntax { short, long })
}
