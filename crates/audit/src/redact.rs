//! Secrets become markers before a record is hashed.
//!
//! A marker has the kind of the secret, its length and a keyed hash: whoever reads the log sees that two secrets are
//! the same, and learns neither. Most records have none, which [`Redaction::could_match`] can tell in a fraction of the
//! time that [`Redaction::apply`] takes.
//!
//! From top to bottom: the public type, the standard rules, what makes a value a secret, the walk through a record,
//! names, card numbers, the prefilter, and the literals of patterns that users add.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::iter::Peekable;
use std::ops::Range;
use std::str::Chars;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind, packed};
use hmac::{Hmac, KeyInit, Mac};
use regex::Regex;
use serde_json::{Map, Value};
use sha2::Sha256;

/// Which secrets are replaced, and by what: a set of rules.
///
/// A rule is a pattern for text, or the name of a field whose value is secret whatever it looks like. A secret turns
/// into `[redacted kind=<kind> len=<bytes> hmac=<16 hexadecimal digits>]`. Where secrets overlap, one marker covers
/// them all; its kind is that of the leftmost, then of the longest, then of the rule that was added first.
///
/// ```
/// use amplifier_audit::Redaction;
/// use serde_json::json;
///
/// let redaction = Redaction::standard().with_field("pin", "pin").with_pattern("badge", r"badge-(?<secret>\d{6})")?;
/// let mut body = json!({"card_pin": 1234, "text": "he showed badge-301422"});
/// redaction.apply(&[7; 32], &mut body);
///
/// assert_eq!(body["card_pin"], "[redacted kind=pin len=4 hmac=155a2ecba5e05a53]");
/// assert_eq!(body["text"], "he showed badge-[redacted kind=badge len=6 hmac=6e47af302a7c9c15]");
/// # Ok::<(), amplifier_audit::InvalidRule>(())
/// ```
#[derive(Clone)]
pub struct Redaction(Arc<Rules>);

/// A pattern that cannot become a rule.
#[derive(Debug, thiserror::Error)]
#[error("the pattern of rule `{kind}` is not a regular expression: {source}")]
pub struct InvalidRule {
    kind: String,
    source: Box<regex::Error>,
}

impl Redaction {
    /// The built-in rules: keys and tokens of well-known services, private keys, passwords in URLs and assignments,
    /// card numbers, and fields with names such as `password`.
    #[must_use]
    pub fn standard() -> Self {
        static STANDARD: LazyLock<Redaction> = LazyLock::new(|| Redaction(Arc::new(Rules::standard())));
        STANDARD.clone()
    }

    /// No rules: nothing is replaced.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::default())
    }

    /// Adds a regular expression. If it has a group named `secret`, only that part is replaced, else the whole match.
    ///
    /// It never sees a marker: the text before and after one is searched as if it stood alone. Let every match contain
    /// some plain text, three characters or more, such as `badge-`: else [`could_match`](Self::could_match) always says
    /// yes.
    ///
    /// # Errors
    /// If the pattern is not a regular expression.
    pub fn with_pattern(self, kind: &str, pattern: &str) -> Result<Self, InvalidRule> {
        let kind = marker_kind(kind);
        let regex = match Regex::new(pattern) {
            Ok(regex) => regex,
            Err(source) => return Err(InvalidRule { kind, source: Box::new(source) }),
        };
        let group = regex.capture_names().position(|name| name == Some("secret")).unwrap_or(0);
        Ok(self.with(|rules| {
            match required_literal(pattern) {
                Some(literal) => rules.literals.push(Literal::new(literal, Check::AnyCase)),
                None => rules.anything = true,
            }
            rules.patterns.push(Pattern { kind, regex, groups: group..group + 1, judge: keep_all, overlap: 0 });
        }))
    }

    /// Adds a field name. Strings and numbers that stand under it are replaced whole, at any depth; `null`, booleans
    /// and empty strings stay.
    ///
    /// Names are compared without regard to the case of ASCII letters, `_` and `-`. The name may also be the end of a
    /// longer one, from the beginning of a word: `password` is found in `db_password` and `dbPassword`, `token` not in
    /// `tokens`. The longest name decides the kind. A name of nothing but `_` and `-` adds nothing.
    #[must_use]
    pub fn with_field(self, kind: &str, name: &str) -> Self {
        self.with(|rules| rules.add_field(marker_kind(kind), name))
    }

    /// Replaces the secrets in a value: in strings, in the keys of objects, and under the names of fields.
    ///
    /// Markers stay as they are, so doing it twice changes nothing more. The time grows with the length of the text,
    /// not with its square.
    pub fn apply(&self, key: &[u8; 32], value: &mut Value) {
        // HMAC pads a short key with zeros to the size of a block. Doing that here leaves nothing that could fail.
        let mut block = [0; 64];
        block[..32].copy_from_slice(key);
        Redactor { rules: &self.0, mac: Hmac::new(&block.into()) }.value(value, None);
    }

    /// Whether [`apply`](Self::apply) could change the value that was serialised to this JSON; a fast look.
    ///
    /// It is never wrong when it says no, and seldom when it says yes. That holds for JSON as the log writes it: all
    /// bytes are between 0x20 and 0x7E, printable ASCII other than `"` and `\` is never escaped, and the colon follows
    /// a key at once.
    #[must_use]
    pub fn could_match(&self, ascii_json: &[u8]) -> bool {
        self.0.could_match(ascii_json)
    }

    fn with(self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut rules = Arc::unwrap_or_clone(self.0);
        change(&mut rules);
        rules.index();
        Self(Arc::new(rules))
    }
}

// Patterns of users may hold what they look for: only kinds are shown.
impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns = self.0.patterns.iter().map(|pattern| pattern.kind.as_str());
        let fields = self.0.fields.iter().map(|field| field.kind.as_str());
        let mut kinds: Vec<_> = patterns.chain(fields).chain(self.0.cards.then_some(CARD)).collect();
        kinds.sort();
        kinds.dedup();
        f.debug_struct("Redaction").field("kinds", &kinds).finish_non_exhaustive()
    }
}

#[derive(Clone, Default)]
struct Rules {
    patterns: Vec<Pattern>,
    fields: Vec<Field>,
    cards: bool,
    literals: Vec<Literal>,
    /// There is a rule that no literal speaks for.
    anything: bool,
    prefilter: Prefilter,
}

#[derive(Clone)]
struct Pattern {
    kind: String,
    regex: Regex,
    /// The groups that can be the secret; the first one that takes part in a match is it.
    groups: Range<usize>,
    judge: Judge,
    /// How far before its end a secret may hold the beginning of the next match.
    overlap: usize,
}

/// How many bytes at the beginning of what a group has matched are the secret; none: it was a false alarm.
type Judge = fn(group: usize, found: &str) -> usize;

#[derive(Clone)]
struct Field {
    kind: String,
    /// In lower case, without separators.
    name: Vec<u8>,
}

/// Secrets that look like secrets: they begin a word, with the literals given.
const TOKENS: &[(&str, &str, &[&str])] = &[
    ("aws_access_key_id", r"(?:AKIA|ASIA)[A-Z0-9]{16}\b", &["AKIA", "ASIA"]),
    ("github_token", "gh[pousr]_[A-Za-z0-9]{20,}", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"]),
    ("github_token", "github_pat_[A-Za-z0-9_]{20,}", &["github_pat_"]),
    ("gitlab_token", "glpat-[A-Za-z0-9_-]{16,}", &["glpat-"]),
    ("slack_token", "(?:xox[a-z]|xapp)-[A-Za-z0-9-]{12,}", &["xox", "xapp-"]),
    ("anthropic_api_key", "sk-ant-[A-Za-z0-9_-]{16,}", &["sk-"]),
    ("openai_api_key", "sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{16,}", &["sk-"]),
    // No separators in the first part: `sk-learn-and-other-words` is no key.
    ("api_key", "sk-(?:or-v1-|lf-)?[A-Za-z0-9]{20,}[A-Za-z0-9_-]*", &["sk-"]),
    ("google_api_key", "AIza[A-Za-z0-9_-]{35}", &["AIza"]),
    ("stripe_key", "[sr]k_(?:live|test)_[A-Za-z0-9]{12,}", &["sk_live_", "rk_live_", "sk_test_", "rk_test_"]),
    ("npm_token", "npm_[A-Za-z0-9]{30,}", &["npm_"]),
    ("pypi_token", "pypi-[A-Za-z0-9]{16}[A-Za-z0-9_-]{16,}", &["pypi-"]),
    ("huggingface_token", "hf_[A-Za-z0-9]{30,}", &["hf_"]),
];

/// So many characters follow each literal of [`TOKENS`] at least.
const TOKEN_LENGTH: usize = 12;

/// Secrets that are known by what stands around them, and what tells the prefilter that they may be there.
const CONTEXTS: &[(&str, &str, Judge, &str, Check)] = &[
    ("jwt", r"(?-u:(?:\b|\\[nrt])(eyJ[\w-]{12,}\.eyJ[\w-]{8,}\.[\w-]*))", keep_all, ".eyJ", Check::Exact),
    // To the end of the text if the block has no end: a cut key is still most of a key.
    (
        "private_key",
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
        keep_all,
        "VATE KEY",
        Check::Exact,
    ),
    (
        "slack_webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]+)",
        keep_all,
        "slack.com/",
        Check::Exact,
    ),
    ("url_password", r#"://[^\s/?#@:"'<>\\]*:([^\s/?#"'<>\\]+)@"#, keep_unless_placeholder, "://", Check::Url),
    (
        "authorization",
        r#"(?i-u:authorization\\*["']?\]?[ \t]*[:=][ \t]*\\*["']?(?:bearer|basic|token|apikey)[ \t]+)([^\s"'\\,;<>]+)"#,
        keep_unless_placeholder,
        "authorization",
        Check::Assigned(Cow::Borrowed(b"authorization")),
    ),
    (
        "cookie",
        r#"(?i-u:cookie\\*["']?[ \t]*:[ \t]*\\*["']?)([A-Za-z0-9_.-]+=[^\r\n"'\\]+)"#,
        keep_all,
        "cookie",
        Check::Assigned(Cow::Borrowed(b"cookie")),
    ),
];

/// Names that make a secret of what is assigned to them in text. An underscore may be a dash there, or nothing.
const ASSIGNMENTS: &[(&str, &[&str], Judge)] = &[
    ("aws_secret_access_key", &["secret_access_key", "aws_secret_key"], keep_assigned),
    ("password", &["password", "passwd", "passphrase"], keep_password),
    ("secret", &["secret", "secret_key"], keep_assigned),
    ("api_key", &["api_key", "access_key", "private_key"], keep_assigned),
    ("token", &["token"], keep_assigned),
];

const FIELDS: &[(&str, &[&str])] = &[
    ("password", &["password", "passwd", "pgpassword", "mysql_pwd"]),
    ("passphrase", &["passphrase"]),
    ("secret", &["secret", "secret_key"]),
    ("client_secret", &["client_secret"]),
    ("api_key", &["api_key"]),
    ("access_key", &["access_key"]),
    ("aws_secret_access_key", &["secret_access_key"]),
    ("private_key", &["private_key"]),
    ("access_token", &["access_token"]),
    ("refresh_token", &["refresh_token"]),
    ("id_token", &["id_token"]),
    ("auth_token", &["auth_token"]),
    ("token", &["token"]),
    ("authorization", &["authorization"]),
    ("cookie", &["cookie", "set_cookie", "session_cookie"]),
];

impl Rules {
    fn standard() -> Self {
        let mut rules = Self { cards: true, ..Self::default() };
        for &(kind, token, literals) in TOKENS {
            // Text that was escaped once more has `\n` for a line feed. A token after it begins a word all the same.
            rules.add_pattern(kind, &format!(r"(?-u:(?:\b|\\[nrt])({token}))"), keep_all, 0);
            rules.literals.extend(literals.iter().map(|literal| Literal::new(*literal, Check::Token)));
        }
        for (kind, pattern, judge, literal, check) in CONTEXTS {
            rules.add_pattern(kind, pattern, *judge, 0);
            rules.literals.push(Literal::new(*literal, check.clone()));
        }
        for &(kind, names, judge) in ASSIGNMENTS {
            rules.add_assignment(kind, names, judge);
        }
        for &(kind, names) in FIELDS {
            names.iter().for_each(|name| rules.add_field(kind.to_owned(), name));
        }
        rules.index();
        rules
    }

    /// For JSON, and just as well for the text of one string: nothing but quotes and control characters differs.
    fn could_match(&self, text: &[u8]) -> bool {
        self.anything || self.prefilter.finds(text) || (self.cards && could_hold_card(text))
    }

    fn index(&mut self) {
        match Prefilter::new(&self.literals) {
            Some(prefilter) => self.prefilter = prefilter,
            None => self.anything = true,
        }
    }

    fn add_pattern(&mut self, kind: &str, pattern: &str, judge: Judge, overlap: usize) {
        // The patterns are our own: the tests have a secret for every one of them, so none can get lost here.
        if let Ok(regex) = Regex::new(pattern) {
            let groups = if regex.captures_len() > 1 { 1..regex.captures_len() } else { 0..1 };
            self.patterns.push(Pattern { kind: kind.to_owned(), regex, groups, judge, overlap });
        }
    }

    fn add_assignment(&mut self, kind: &str, names: &[&str], judge: Judge) {
        let any = names.join("|").replace('_', "[_-]?");
        // The name and the value may have quotes, and those may be escaped, once or more.
        let name = format!(r#"(?i-u:{any})\\*["']?\]?"#);
        let sign = r"[ \t]*(?:={1,3}|:=|=>|:)[ \t]*";
        let quoted = r#"\\+"([^"\\\r\n]+)|\\+'([^'\\\r\n]+)|"((?:[^"\\\r\n]|\\.)+)|'((?:[^'\\\r\n]|\\.)+)"#;
        let plain = r#"([^\s"'`;&<>,(){}\[\]\\:=][^\s"'`;&<>]*)"#;
        // The groups: four with quotes, `TIGHT`, `LOOSE`.
        let assignment = format!("{name}(?:{sign}(?:{quoted})|={plain}|{sign}{plain})");
        let flag = format!(r"--[A-Za-z0-9_-]*(?i-u:{any})[ \t]+{plain}");
        // A value can end with the next name, as in `password=a,password="b"`.
        let overlap = PLACEHOLDER;
        self.add_pattern(kind, &assignment, judge, overlap);
        self.add_pattern(kind, &flag, keep_if_credible, overlap);
        for name in names {
            let last_word = name.rsplit('_').next().unwrap_or(name);
            self.literals.push(Literal::new(last_word, Check::Assigned(plain_name(name).into())));
        }
    }

    fn add_field(&mut self, kind: String, name: &str) {
        let name = plain_name(name);
        if name.is_empty() {
            return;
        }
        if !name.iter().all(|&byte| is_written_as_is(byte)) {
            self.anything = true;
        }
        // A key can have separators anywhere. Before its closing quote stand some letters from the end of the name, or
        // fewer and a separator. Two are enough to look for, but most records have a `reason` and a `decision`.
        let letters = name.len().min(if name.ends_with(b"on") { 6 } else { 2 });
        let mut add = |end: &[u8], count: usize| {
            let text = [end, &name[name.len() - count..], b"\":"].concat();
            self.literals.push(Literal::new(text, Check::Field(name.clone())));
        };
        add(b"", letters);
        for count in 0..letters {
            add(b"_", count);
            add(b"-", count);
        }
        self.fields.push(Field { kind, name });
    }

    fn field(&self, key: &str) -> Option<&str> {
        let fits =
            |field: &&Field| name_start(key.as_bytes(), &field.name).is_some_and(|at| begins_word(key.as_bytes(), at));
        self.fields.iter().filter(fits).max_by_key(|field| field.name.len()).map(|field| field.kind.as_str())
    }
}

fn keep_all(_group: usize, found: &str) -> usize {
    found.len()
}

fn keep_unless_placeholder(_group: usize, found: &str) -> usize {
    if is_placeholder(found) { 0 } else { found.len() }
}

fn keep_if_credible(_group: usize, found: &str) -> usize {
    let value = without_closers(found);
    if is_credible(value) { value.len() } else { 0 }
}

/// `token=abc` is a secret and `token: abc` is prose, unless it looks like a secret.
fn keep_assigned(group: usize, found: &str) -> usize {
    match group {
        LOOSE => keep_if_credible(group, found),
        TIGHT => keep_unless_placeholder(group, without_closers(found)),
        _ => keep_unless_placeholder(group, found),
    }
}

/// People choose words as passwords: `password: swordfish` is a secret too, but not `password: String`.
fn keep_password(group: usize, found: &str) -> usize {
    match group {
        LOOSE if found.len() <= PLACEHOLDER && found.contains('(') => 0,
        LOOSE => keep_unless_placeholder(group, without_closers(found)),
        _ => keep_assigned(group, found),
    }
}

// The groups of an assignment that have no quotes around the value: `name=value`, and with spaces or a colon.
const TIGHT: usize = 5;
const LOOSE: usize = 6;

/// Without what closes the sentence or the bracket that the value stands in.
fn without_closers(value: &str) -> &str {
    value.trim_end_matches([',', '.', ')', ']', '}', '\\'])
}

fn is_credible(value: &str) -> bool {
    let has_digit = || value.bytes().any(|byte| byte.is_ascii_digit());
    value.len() > PLACEHOLDER || (value.len() >= 6 && !is_placeholder(value) && !value.contains('(') && has_digit())
}

/// No placeholder is longer than this. It bounds the time for text that is full of false alarms.
const PLACEHOLDER: usize = 64;

/// Stands where a secret would, but names it, or its type, or hides it already.
fn is_placeholder(value: &str) -> bool {
    const WORDS: &str =
        "any bytes false hidden impl nil none null option optional redacted required str string true undefined";
    if value.len() > PLACEHOLDER {
        return false;
    }
    let is_variable = |name: &str| name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
    match value.as_bytes() {
        [b'$', b'{' | b'(', ..] | [b'{' | b'<', ..] | [b'/', b'/', ..] | [b'%', b's'] => true,
        [b'$', ..] => is_variable(&value[1..]),
        [b'%', .., b'%'] => is_variable(&value[1..value.len() - 1]),
        bytes => {
            bytes.iter().all(|byte| b"*.-_xX".contains(byte))
                || WORDS.split(' ').any(|word| value.eq_ignore_ascii_case(word))
        }
    }
}

const MARKER: &str = "[redacted kind=";

/// So often what is left between secrets is searched again, because it may be one when it stands alone.
const ROUNDS: usize = 8;

/// The rules at work, with the key.
struct Redactor<'a> {
    rules: &'a Rules,
    mac: Hmac<Sha256>,
}

struct Secret<'a> {
    range: Range<usize>,
    kind: &'a str,
}

impl Redactor<'_> {
    /// `named` is the kind of the field that the value stands in, if its name says that it is secret.
    fn value(&self, value: &mut Value, named: Option<&str>) {
        match value {
            Value::String(text) => {
                if let Some(redacted) = self.text(text, named) {
                    *text = redacted;
                }
            }
            Value::Number(number) => {
                if let Some(redacted) = named.and_then(|kind| self.text(&number.to_string(), Some(kind))) {
                    *value = Value::String(redacted);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, named)),
            Value::Object(fields) => self.object(fields, named),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn object(&self, fields: &mut Map<String, Value>, named: Option<&str>) {
        if !fields.keys().any(|key| self.text(key, None).is_some()) {
            fields.iter_mut().for_each(|(key, value)| self.value(value, self.rules.field(key).or(named)));
            return;
        }
        for (key, mut value) in std::mem::take(fields) {
            let mut redacted = self.text(&key, None).unwrap_or_else(|| key.clone());
            // The new key counts too: it is what a second run would go by.
            self.value(&mut value, self.rules.field(&key).or_else(|| self.rules.field(&redacted)).or(named));
            // A key may have been such a marker from the start. No value is lost for that.
            while fields.contains_key(&redacted) {
                self.mark("duplicate", "", &mut redacted);
            }
            fields.insert(redacted, value);
        }
    }

    /// The text with markers for the secrets, if it has any. In a named field all of it is secret.
    fn text(&self, text: &str, named: Option<&str>) -> Option<String> {
        if named.is_none() && !self.rules.could_match(text.as_bytes()) {
            return None;
        }
        let (mut redacted, mut changed) = (String::new(), false);
        let mut rest = text;
        while !rest.is_empty() {
            let marker = find_marker(rest);
            let before = &rest[..marker.start];
            changed |= match named {
                Some(kind) if !before.is_empty() => {
                    self.mark(kind, before, &mut redacted);
                    true
                }
                _ => self.between_markers(before, 0, &mut redacted),
            };
            redacted.push_str(&rest[marker.clone()]);
            rest = &rest[marker.end..];
        }
        changed.then_some(redacted)
    }

    fn between_markers(&self, text: &str, round: usize, redacted: &mut String) -> bool {
        let secrets = self.secrets(text);
        let Some(first) = secrets.first() else {
            redacted.push_str(text);
            return false;
        };
        if round == ROUNDS {
            self.mark(first.kind, text, redacted);
            return true;
        }
        let mut end = 0;
        for Secret { range, kind } in secrets {
            self.between_markers(&text[end..range.start], round + 1, redacted);
            self.mark(kind, &text[range.clone()], redacted);
            end = range.end;
        }
        self.between_markers(&text[end..], round + 1, redacted);
        true
    }

    /// The secrets of a text from left to right; those that overlap are one.
    fn secrets(&self, text: &str) -> Vec<Secret<'_>> {
        let mut secrets: Vec<_> = self.rules.patterns.iter().flat_map(|pattern| pattern.secrets(text)).collect();
        if self.rules.cards {
            secrets.extend(cards(text.as_bytes()).map(|range| Secret { range, kind: CARD }));
        }
        // The sort is stable, so what is equal stays in the order of the rules.
        secrets.sort_by_key(|secret| (secret.range.start, std::cmp::Reverse(secret.range.end)));
        secrets.dedup_by(|next, kept| {
            let overlap = next.range.start < kept.range.end;
            if overlap {
                kept.range.end = kept.range.end.max(next.range.end);
            }
            overlap
        });
        secrets
    }

    fn mark(&self, kind: &str, secret: &str, text: &mut String) {
        let hash: [u8; 32] = self.mac.clone().chain_update(secret).finalize().into_bytes().into();
        let [a, b, c, d, e, f, g, h, ..] = hash;
        let digits = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        // Writing to a string cannot fail.
        let _ = write!(text, "{MARKER}{kind} len={} hmac={digits:016x}]", secret.len());
    }
}

impl Pattern {
    fn secrets<'a>(&'a self, text: &str) -> impl Iterator<Item = Secret<'a>> {
        let mut from = 0;
        std::iter::from_fn(move || {
            while from <= text.len() {
                let captures = self.regex.captures_at(text, from)?;
                let group = self.groups.clone().find_map(|group| Some((group, captures.get(group)?)));
                let (found, kept) = match group {
                    Some((group, found)) => (found.range(), (self.judge)(group, found.as_str())),
                    None => (captures.get_match().range(), 0),
                };
                let end = found.start + kept;
                // A false alarm may have swallowed the name of a real secret: then go on inside.
                let next = found.start.max(end.saturating_sub(self.overlap)).max(from + 1);
                from = (next..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len() + 1);
                if kept > 0 {
                    return Some(Secret { range: found.start..end, kind: &self.kind });
                }
            }
            None
        })
    }
}

/// The first marker, or the empty range at the end.
fn find_marker(text: &str) -> Range<usize> {
    let mut candidates = text.match_indices(MARKER);
    let found = candidates.find_map(|(at, _)| Some(at..text.len() - after_marker(&text[at..])?.len()));
    found.unwrap_or(text.len()..text.len())
}

/// What follows the marker that the text begins with.
fn after_marker(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(MARKER)?;
    let rest = rest.trim_start_matches(is_kind).strip_prefix(" len=")?;
    let rest = rest.trim_start_matches(|character: char| character.is_ascii_digit()).strip_prefix(" hmac=")?;
    let (digits, rest) = rest.split_at_checked(16)?;
    let hexadecimal = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if hexadecimal { rest.strip_prefix(']') } else { None }
}

fn is_kind(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.')
}

/// A kind that a marker can hold and still be found.
fn marker_kind(kind: &str) -> String {
    kind.chars().map(|character| if is_kind(character) { character } else { '_' }).collect()
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b'_' | b'-')
}

fn plain_name(name: &str) -> Vec<u8> {
    name.bytes().filter(|&byte| !is_separator(byte)).map(|byte| byte.to_ascii_lowercase()).collect()
}

/// Where the name begins that the text ends with, whatever its case and separators.
fn name_start(text: &[u8], name: &[u8]) -> Option<usize> {
    name.iter().rev().try_fold(text.len(), |end, letter| {
        let at = text[..end].iter().rposition(|&byte| !is_separator(byte))?;
        text[at].eq_ignore_ascii_case(letter).then_some(at)
    })
}

fn begins_word(text: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| text[before]) else { return true };
    let next_is_lower = text.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    // The `P` of `dbPassword` and of `DBPassword`, but not of `DBPASSWORD`.
    let hump = text[at].is_ascii_uppercase() && (!before.is_ascii_uppercase() || next_is_lower);
    hump || !before.is_ascii_alphanumeric()
}

const CARD: &str = "card_number";

/// The card numbers in a text.
fn cards(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(start) = text[from..].iter().position(u8::is_ascii_digit).map(|digit| from + digit) {
            // The digits of `0.4111…` and of `a4111…` are no card.
            let inside = match text[..start] {
                [.., number, b'.'] => number.is_ascii_digit(),
                [.., before] => before.is_ascii_alphanumeric(),
                [] => false,
            };
            if let Some(end) = card_end(text, start).filter(|_| !inside) {
                from = end;
                return Some(start..end);
            }
            from =
                text[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(text.len(), |group| start + group);
        }
        None
    })
}

/// The end of the longest card number that begins here: 13 to 19 digits in one group, or in groups of four or more (the
/// last may have fewer), with the same separator between all of them.
fn card_end(text: &[u8], start: usize) -> Option<usize> {
    let (mut digits, mut count) = ([0; 19], 0);
    let (mut end, mut at, mut separator) = (None, start, None);
    loop {
        let group = text[at..].iter().take(20).take_while(|byte| byte.is_ascii_digit()).count();
        let Some(room) = digits.get_mut(count..count + group) else { return end };
        room.copy_from_slice(&text[at..at + group]);
        count += group;
        at += group;
        let goes_on = match text[at..] {
            [b'.', next, ..] => next.is_ascii_digit(),
            [next, ..] => next.is_ascii_alphanumeric(),
            [] => false,
        };
        if !goes_on && is_card(&digits[..count]) {
            end = Some(at);
        }
        match text[at..] {
            [next @ (b' ' | b'-'), b'0'..=b'9', ..] if group >= 4 && *separator.get_or_insert(next) == next => at += 1,
            _ => return end,
        }
    }
}

/// Whether an issuer gives out such numbers, and the check digit is right (Luhn).
///
/// The issuer matters: one number of ten has a right check digit, and times since 1970 begin with a 1 that no card has.
fn is_card(digits: &[u8]) -> bool {
    let value = |digit: &u8| u32::from(digit - b'0');
    let issuer = digits.iter().take(4).fold(0, |number, digit| number * 10 + value(digit));
    let lengths = match issuer {
        4000..=4999 => &[13, 16, 19][..],
        2221..=2720 | 5100..=5599 => &[16],
        3400..=3499 | 3700..=3799 => &[15],
        3528..=3589 => &[16, 17, 18, 19],
        3000..=3059 | 3095 | 3600..=3699 | 3800..=3999 => &[14, 15, 16, 17, 18, 19],
        5000..=5099 | 5600..=5899 | 6000..=6999 => &[13, 14, 15, 16, 17, 18, 19],
        _ => &[],
    };
    let doubled = |(place, digit)| if place % 2 == 0 { value(digit) } else { value(digit) * 2 };
    let sum = || digits.iter().rev().enumerate().map(doubled).map(|number| number / 10 + number % 10).sum::<u32>();
    lengths.contains(&digits.len()) && sum().is_multiple_of(10)
}

/// Whether [`cards`] could find something in a string of this JSON.
fn could_hold_card(json: &[u8]) -> bool {
    let in_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b' ' | b'-');
    let mut at = 0;
    // A card number has thirteen bytes or more, so it is enough to look at four bytes of every ten.
    while let Some(bytes) = json.get(at..).and_then(<[u8]>::first_chunk) {
        // All that can be in it is in 0x20..=0x3F, unlike letters. Looking at four bytes at once saves time.
        if u32::from_ne_bytes(*bytes) & 0xE0E0_E0E0 != 0x2020_2020 || !bytes.iter().all(in_number) {
            at += 10;
            continue;
        }
        let start = json[..at].iter().rposition(|byte| !in_number(byte)).map_or(0, |before| before + 1);
        let end = json[at..].iter().position(|byte| !in_number(byte)).map_or(json.len(), |after| at + after);
        // The first digits may belong to an escape such as `\u00e9`, so that a number can begin among them.
        let begins = |&place: &usize| place <= start + 4 || !json[place - 1].is_ascii_digit();
        let is_card = |place: usize| json[place].is_ascii_digit() && card_end(json, place).is_some();
        if end - start >= 13 && (start..end).filter(begins).any(is_card) {
            return true;
        }
        at = end.max(at + 10);
    }
    false
}

/// Text that stands in the JSON whenever a rule finds something.
#[derive(Clone)]
struct Literal {
    text: Vec<u8>,
    check: Check,
}

/// What else must hold where the literal was found.
#[derive(Clone)]
enum Check {
    AnyCase,
    Exact,
    /// A word begins here, it is written just so, and [`TOKEN_LENGTH`] more characters follow.
    Token,
    /// An `@` follows that belongs to the authority of the URL, with a password before it.
    Url,
    /// The literal is the end of this name, and a value is assigned to it.
    Assigned(Cow<'static, [u8]>),
    /// The literal is the end of a key, and the key ends with this name.
    Field(Vec<u8>),
}

impl Literal {
    fn new(text: impl Into<Vec<u8>>, check: Check) -> Self {
        Self { text: text.into(), check }
    }

    fn holds(&self, json: &[u8], at: usize) -> bool {
        let end = at + self.text.len();
        let Some(found) = json.get(at..end).filter(|found| found.eq_ignore_ascii_case(&self.text)) else {
            return false;
        };
        let (before, after) = (&json[..at], &json[end..]);
        match &self.check {
            Check::AnyCase => true,
            Check::Exact => found == self.text,
            Check::Token => {
                let long = after.iter().take(TOKEN_LENGTH).filter(|&&byte| is_word(byte) || byte == b'-').count();
                // What looks like a letter before the word may be the end of an escape.
                let escape = matches!(before, [.., b'\\', _] | [.., b'\\', b'u', _, _, _, _]);
                let begins = escape || !before.last().is_some_and(|&byte| is_word(byte));
                found == self.text && begins && long == TOKEN_LENGTH
            }
            Check::Url => {
                let is_stop = |byte: &&u8| matches!(byte, b'@' | b':' | b'/' | b'?' | b'#' | b'<' | b'>' | b'"' | b' ');
                let mut stops = after.iter().filter(is_stop);
                stops.next() == Some(&b':') && stops.find(|&&byte| byte != b':') == Some(&b'@')
            }
            Check::Assigned(name) => {
                // Spaces, tabs, quotes and escapes of them may stand before the sign.
                let is_filler = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\\' | b't' | b'"' | b'\'' | b']');
                let signs = match after.iter().position(|byte| !is_filler(byte)) {
                    Some(sign) if matches!(after[sign], b'=' | b':') => true,
                    Some(0) => false,
                    _ => in_flag(before),
                };
                signs && name_start(&json[..end], name).is_some()
            }
            Check::Field(name) => name_start(&json[..end - 2], name).is_some(),
        }
    }
}

/// Whether the text ends within a flag of a command, such as `--auth-`.
fn in_flag(text: &[u8]) -> bool {
    let mut words = text.rsplit(|&byte| !is_word(byte) && byte != b'-');
    words.next().is_some_and(|word| word.windows(2).any(|pair| pair == b"--"))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a byte stands in the JSON for itself.
fn is_written_as_is(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')
}

/// Finds literals whatever their case, and checks them.
#[derive(Clone, Default)]
struct Prefilter(Vec<Searcher>);

#[derive(Clone)]
struct Searcher {
    engine: Engine,
    /// For each text that is searched for, the literals that begin with it.
    literals: Vec<Vec<Literal>>,
}

#[derive(Clone)]
enum Engine {
    Packed(packed::Searcher),
    /// For processors and numbers of literals that the packed one is not made for.
    Automaton(AhoCorasick),
}

/// The JSON is folded in pieces of this size, on the stack.
const PIECE: usize = 512;
/// Zeros follow the piece, because the packed searcher is slow with short remainders.
const PADDING: usize = 20;
/// Pieces overlap by so much that no text is cut in two.
const TEXT: usize = 8;

/// Makes upper and lower case the same; some other characters too, but the checks tell them apart.
///
/// The packed searcher knows no cases, and this costs less than to search for all of them.
fn fold(byte: &u8) -> u8 {
    byte | 0x20
}

impl Prefilter {
    /// `None` if there are literals that cannot be searched for.
    fn new(literals: &[Literal]) -> Option<Self> {
        // Two searchers with half of the texts have fewer false alarms than one with all. What begins with a letter and
        // belongs to a name is found in prose; tokens and separators are rare.
        let (names, tokens): (Vec<_>, Vec<_>) = literals.iter().partition(|literal| {
            matches!(literal.check, Check::Assigned(_) | Check::Field(_)) && literal.text[0].is_ascii_alphabetic()
        });
        [tokens, names].into_iter().filter(|part| !part.is_empty()).map(Searcher::new).collect::<Option<_>>().map(Self)
    }

    fn finds(&self, json: &[u8]) -> bool {
        let mut folded = [0; PIECE + PADDING];
        let mut start = 0;
        loop {
            let piece = &json[start..json.len().min(start + PIECE)];
            folded.iter_mut().zip(piece).for_each(|(to, from)| *to = fold(from));
            let folded = &mut folded[..piece.len() + PADDING];
            folded[piece.len()..].fill(0);
            if self.0.iter().any(|searcher| searcher.finds(folded, json, start)) {
                return true;
            }
            if start + piece.len() == json.len() {
                return false;
            }
            start += PIECE - TEXT;
        }
    }
}

impl Searcher {
    fn new(literals: Vec<&Literal>) -> Option<Self> {
        // The beginning of a literal is enough. The ends of keys have to be complete, for their letters are frequent.
        let length = |literal: &Literal| if matches!(literal.check, Check::Field(_)) { TEXT } else { 4 };
        let text = |literal: &Literal| literal.text.iter().take(length(literal)).map(fold).collect::<Vec<u8>>();
        let mut literals: Vec<_> = literals.into_iter().map(|literal| (text(literal), literal)).collect();
        // A searcher reports one text for each place. If one begins with another, the shorter speaks for both.
        literals.sort_by_key(|(text, _)| text.len());
        let mut groups: BTreeMap<Vec<u8>, Vec<Literal>> = BTreeMap::new();
        for (mut text, literal) in literals {
            if let Some(shorter) = (1..text.len()).find(|&length| groups.contains_key(&text[..length])) {
                text.truncate(shorter);
            }
            groups.entry(text).or_default().push(literal.clone());
        }
        // The packed searcher deals its texts out to 8 or 16 buckets, and has the fewest false alarms if those in one
        // bucket are alike. So the sorted texts are cut into as many parts, and dealt one from each part in turn.
        let buckets = if groups.len() > 32 { 16 } else { 8 };
        let (size, larger) = (groups.len() / buckets, groups.len() % buckets);
        let sorted: Vec<_> = groups.into_iter().collect();
        let part = |bucket| bucket * size + larger.min(bucket);
        let turns = (0..=size)
            .flat_map(|turn| (0..if turn < size { buckets } else { larger }).map(move |bucket| part(bucket) + turn));
        let (texts, literals): (Vec<_>, Vec<_>) = turns.map(|place| sorted[place].clone()).unzip();
        let engine = match packed::Searcher::new(&texts) {
            Some(packed) => Engine::Packed(packed),
            None => Engine::Automaton(
                AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostFirst)
                    .kind(Some(AhoCorasickKind::DFA))
                    .build(&texts)
                    .ok()?,
            ),
        };
        Some(Self { engine, literals })
    }

    fn finds(&self, folded: &[u8], json: &[u8], start: usize) -> bool {
        let mut from = 0;
        while let Some(found) = match &self.engine {
            Engine::Packed(packed) => packed.find_in(folded, (from..folded.len()).into()),
            Engine::Automaton(automaton) => automaton.find(Input::new(folded).range(from..)),
        } {
            let mut literals = self.literals[found.pattern().as_usize()].iter();
            if literals.any(|literal| literal.holds(json, start + found.start())) {
                return true;
            }
            from = found.start() + 1;
        }
        false
    }
}

/// Text that each match of a regular expression contains, the longest that can be told easily.
///
/// It reads a pattern that is known to be valid, and gives up on what it does not know.
fn required_literal(pattern: &str) -> Option<String> {
    let (pattern, any_case) = pattern.strip_prefix("(?i)").map_or((pattern, false), |rest| (rest, true));
    let literal = required_in_sequence(&mut pattern.chars().peekable(), any_case)?;
    (literal.len() >= 3).then_some(literal)
}

/// Reads to the end of the pattern or of the group. Empty: nothing is required.
fn required_in_sequence(chars: &mut Peekable<Chars<'_>>, any_case: bool) -> Option<String> {
    let (mut best, mut run) = (String::new(), String::new());
    let mut alternatives = false;
    let longer = |best: &mut String, run: &mut String| {
        let run = std::mem::take(run);
        if run.len() > best.len() {
            *best = run;
        }
    };
    while let Some(character) = chars.next() {
        let (mut literal, mut group) = (None, String::new());
        match character {
            ')' => break,
            '|' => alternatives = true,
            '.' | '^' | '$' => {}
            '(' => {
                if chars.next_if_eq(&'?').is_some() && chars.next_if_eq(&':').is_none() {
                    chars.next_if_eq(&'P');
                    chars.next_if_eq(&'<')?;
                    chars.find(|&end| end == '>')?;
                }
                group = required_in_sequence(chars, any_case)?;
            }
            '[' => skip_class(chars)?,
            '\\' => match chars.next()? {
                'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'b' | 'B' | 'A' | 'z' | 'n' | 'r' | 't' => {}
                escaped if !escaped.is_ascii_alphanumeric() && !matches!(escaped, '<' | '>') => literal = Some(escaped),
                _ => return None,
            },
            '*' | '+' | '?' | '{' => return None,
            plain => literal = Some(plain),
        }
        // Without regard to case, `k` and `s` also stand for characters beyond ASCII.
        let literal = literal.filter(|&plain| u8::try_from(plain).is_ok_and(is_written_as_is));
        let literal = literal.filter(|plain| !any_case || !matches!(plain, 'k' | 'K' | 's' | 'S'));
        let repeat = chars.next_if(|next| matches!(next, '*' | '+' | '?' | '{'));
        if repeat == Some('{') {
            chars.find(|&end| end == '}')?;
        }
        if repeat.is_some() {
            chars.next_if_eq(&'?');
        }
        let required = matches!(repeat, None | Some('+'));
        run.extend(literal.filter(|_| required));
        if literal.is_none() || repeat.is_some() {
            longer(&mut best, &mut run);
        }
        if required {
            longer(&mut best, &mut group);
        }
    }
    longer(&mut best, &mut run);
    Some(if alternatives { String::new() } else { best })
}

fn skip_class(chars: &mut Peekable<Chars<'_>>) -> Option<()> {
    chars.next_if_eq(&'^');
    // A bracket that comes first is a member of the class, and classes can be nested. Neither is worth the effort.
    let mut first = true;
    loop {
        match chars.next()? {
            '[' => return None,
            ']' if first => return None,
            ']' => return Some(()),
            '\\' => drop(chars.next()?),
            _ => {}
        }
        first = false;
    }
}
