//! The standard rules as tables, and the set of all rules.

use std::cmp::Reverse;

use regex::Regex;

use super::cards::{CARD, cards, could_hold_card};
use super::judge::{
    Judge, PLACEHOLDER, keep_all, keep_assigned, keep_base64_key, keep_entry, keep_if_credible, keep_mixed_key,
    keep_password, keep_random_key, keep_unless_hash, keep_unless_placeholder,
};
use super::key_names::{KEY_VALUE, pattern_of_name, pattern_of_public_names};
use super::names::{Field, plain_name};
use super::pattern::{Pattern, Secret};
use super::prefilter::{Check, Prefilter};

/// The beginning of a word. Escaped text has `\n` for a line feed; a token after it begins a word, too. So does one
/// after a terminal's code for a colour, after an escape of URLs, and after an underscore. The prefilter has the same rule.
macro_rules! word_start {
    () => {
        r"(?-u:\b|_|\\[nrt]|(?:\[[0-9;]+|\x1b\[[0-9;]*)[A-Za-z]|%[0-9A-Fa-f]{2})"
    };
}

/// Secrets with a typical form: a word that begins with one of these literals.
const TOKENS: &[(&str, &str, &[&str])] = &[
    ("aws_access_key_id", r"(?:AKIA|ASIA)[A-Z0-9]{16}\b", &["AKIA", "ASIA"]),
    ("github_token", "gh[pousr]_[A-Za-z0-9]{20,}", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"]),
    ("github_token", "github_pat_[A-Za-z0-9_]{20,}", &["github_pat_"]),
    ("gitlab_token", "glpat-[A-Za-z0-9_-]{16,}", &["glpat-"]),
    ("slack_token", "(?:xox[a-z]|xapp)-[A-Za-z0-9-]{12,}", &["xox", "xapp-"]),
    ("anthropic_api_key", "sk-ant-[A-Za-z0-9_-]{16,}", &["sk-"]),
    ("openai_api_key", "sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{16,}", &["sk-"]),
    // No separators in the first part: `sk-learn-and-other-words` is not a key.
    ("api_key", "sk-(?:or-v1-|lf-)?[A-Za-z0-9]{20,}[A-Za-z0-9_-]*", &["sk-"]),
    ("google_api_key", "AIza[A-Za-z0-9_-]{35}", &["AIza"]),
    ("stripe_key", "[sr]k_(?:live|test)_[A-Za-z0-9]{12,}", &["sk_live_", "rk_live_", "sk_test_", "rk_test_"]),
    ("npm_token", "npm_[A-Za-z0-9]{30,}", &["npm_"]),
    ("pypi_token", "pypi-[A-Za-z0-9]{16}[A-Za-z0-9_-]{16,}", &["pypi-"]),
    ("google_oauth_token", r"ya29\.[A-Za-z0-9_-]{20,}", &["ya29."]),
    ("google_client_secret", "GOCSPX-[A-Za-z0-9_-]{20,}", &["GOCSPX-"]),
    ("digitalocean_token", "do[opr]_v1_[a-f0-9]{40,}", &["doo_v1_", "dop_v1_", "dor_v1_"]),
    ("databricks_token", r"dapi[a-f0-9]{32}(?:-\d)?\b", &["dapi"]),
    ("vault_token", r"hv[sb]\.[A-Za-z0-9_-]{24,}", &["hvs.", "hvb."]),
    ("sendgrid_token", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", &["SG."]),
    ("alibaba_access_key_id", r"LTAI[A-Za-z0-9]{16,}\b", &["LTAI"]),
    ("aws_bedrock_key", "ABSK[A-Za-z0-9]{12}[A-Za-z0-9+/]{60,}={0,2}", &["ABSK"]),
    ("google_access_key_id", r"GOOG1E[A-Z0-9]{18,}\b", &["GOOG1E"]),
    ("google_oauth_token", "1//0[A-Za-z0-9_-]{30,}", &["1//0"]),
    ("huggingface_token", "hf_[A-Za-z0-9]{30,}", &["hf_"]),
];

/// Between the name and the value of a pair, as Kubernetes and ECS print them: `"name": "TOKEN", "value": "…"`. The prefilter has the same rule.
macro_rules! pair_value {
    () => {
        r#"\\*["']?(?:[ \t\r\n,]|\\+[nrt])+\\*["']?(?i-u:value)\\*["']?[ \t]*[:=][ \t]*"#
    };
}

/// The least number of characters after a literal of [`TOKENS`].
pub(super) const TOKEN_LENGTH: usize = 12;

struct ContextRule {
    kind: &'static str,
    /// The group is the secret, or the whole match if there is none.
    pattern: &'static str,
    judge: Judge,
    literals: &'static [&'static str],
    check: Check,
}

const CONTEXTS: &[ContextRule] = &[
    ContextRule {
        kind: "jwt",
        pattern: concat!("(?-u:", word_start!(), r"(eyJ[\w-]{12,}\.eyJ[\w-]{8,}\.[\w-]*))"),
        judge: keep_all,
        literals: &[".eyJ"],
        check: Check::Exact,
    },
    ContextRule {
        kind: "private_key",
        // Without its last line, a key ends at the quote that closes its value, before the end of an expression or a line. Otherwise it goes to the
        // end of the text: a truncated key is still most of a key, and so are the pieces of one that a program joins.
        pattern: concat!(
            r"(?s)(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)",
            // More pieces follow, in quotes.
            r#"|(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*["'](?:\\+[nrt])*[A-Za-z0-9+/]{40}.*)"#,
            r#"|(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[^"'\r\n]{16,}[^"'\\\r\n])"#,
            r#"\\*["'][ \t]*(?:[,})\];]|\z|(?:[\r\n]|\\+[nr])(?:\s|\\+[nrt])*(?:[^\s+.,&|\\"']|\z))"#,
            r"|(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*)"
        ),
        judge: keep_all,
        literals: &["VATE KEY"],
        check: Check::Exact,
    },
    ContextRule {
        kind: "private_key",
        // The first line alone, as a search shows it: a version number distinguishes it from a certificate.
        pattern: concat!(
            word_start!(),
            r"((?:MII[A-Z][A-Za-z0-9][AQgw]IBA[AD]|MHcCAQEE|MIGHAgEAMBMG|MC4CAQAwBQYDK2Vw|b3BlbnNzaC1rZXkt)",
            r"[A-Za-z0-9+/]{20,}={0,2})"
        ),
        judge: keep_all,
        literals: &["IBAA", "IBAD", "MHcCAQEE", "MIGHAgEAMBMG", "MC4CAQAwBQYDK2Vw", "b3BlbnNzaC1rZXkt"],
        check: Check::Exact,
    },
    ContextRule {
        kind: "azure_client_secret",
        pattern: concat!("(?-u:", word_start!(), r"([A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}))"),
        judge: keep_all,
        literals: &["Q~"],
        check: Check::Exact,
    },
    ContextRule {
        kind: "azure_storage_key",
        pattern: r"AccountKey=([A-Za-z0-9+/]{40,}={0,2})",
        judge: keep_all,
        literals: &["AccountKey="],
        check: Check::Exact,
    },
    ContextRule {
        kind: "azure_sas_signature",
        pattern: r"[?&]sig=([A-Za-z0-9%+/]{40,}={0,2})",
        judge: keep_all,
        literals: &["sig="],
        check: Check::Exact,
    },
    ContextRule {
        kind: "azure_storage_key",
        // Without the mark and its place, the SHA-512 of a lock file would look the same.
        pattern: r"(?:^|\\[nrt]|[^A-Za-z0-9+/])([A-Za-z0-9+/]{76}\+ASt[A-Za-z0-9+/]{6}==)",
        judge: keep_all,
        literals: &["+ASt"],
        check: Check::Exact,
    },
    ContextRule {
        kind: "password",
        // An entry of a file. Its name is also one of the assignments, which have the literals.
        pattern: r#"(?:PASSWORD|PASSWD|PASSPHRASE):[ \t]+([^\s"'`;&<>,(){}\[\]\\:=][^\s"'`;&<>]*)"#,
        judge: keep_entry,
        literals: &[],
        check: Check::Exact,
    },
    ContextRule {
        kind: "azure_storage_key",
        // The list of `az storage account keys list`, which has other fields between the name and the value.
        pattern: concat!(
            r#"(?i-u:key_?name)\\*["']?[ \t]*:[^{}]{0,200}?(?i-u:value)\\*["']?[ \t]*:[ \t]*\\*["']?"#,
            "([A-Za-z0-9+/]{40,}={0,2})"
        ),
        judge: keep_base64_key,
        literals: &["keyname", "key_name"],
        check: Check::AnyCase,
    },
    ContextRule {
        kind: "azure_key",
        // Cosmos DB, the container registry, and AI services.
        pattern: concat!(
            r"(?:^|\\[nrt]|[^A-Za-z0-9+/])([A-Za-z0-9+/]{76}ACDb[A-Za-z0-9+/]{6}==",
            r"|[A-Za-z0-9+/]{42}\+ACR[A-Za-z0-9+/]{6}|[A-Za-z0-9+/]{76}\+ACR[A-Za-z0-9+/]{6}==",
            r"|[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26})(?:[^A-Za-z0-9+/=]|$)"
        ),
        judge: keep_all,
        literals: &["ACDb", "+ACR", "JQQJ99"],
        check: Check::Exact,
    },
    ContextRule {
        kind: "aws_secret_access_key",
        // Beside its id, as in a table.
        pattern: concat!(
            word_start!(),
            r#"(?:AKIA|ASIA)[A-Z0-9]{16}["']?[ \t]*[ \t,;:|]["' \t]*([A-Za-z0-9+/]{40})(?:[^A-Za-z0-9+/=]|$)"#
        ),
        judge: keep_unless_hash,
        literals: &["AKIA", "ASIA"],
        check: Check::Token,
    },
    ContextRule {
        kind: "aws_secret_access_key",
        // The command `aws configure set`, the dialog of `aws configure`, a row of a table, and XML.
        pattern: concat!(
            r#"(?i-u:secret[_ ]?access[_ ]?key)(?:[ \t]*\[[^\[\]\r\n]{0,40}\])?[ \t]*[ \t:|>]["' \t|]*"#,
            r"([A-Za-z0-9+/]{40})(?:[^A-Za-z0-9+/=]|$)"
        ),
        judge: keep_unless_hash,
        literals: &["secret_access_key", "secret access key", "secretaccesskey"],
        check: Check::AnyCase,
    },
    ContextRule {
        kind: "aws_session_token",
        // The beginnings of temporary credentials, which have no name of their own in XML and in tables.
        pattern: concat!(
            "(?-u:",
            word_start!(),
            "((?:IQoJb3JpZ2lu|FwoGZXIvYXdz|FQoGZXIvYXdz)[A-Za-z0-9+/]{40,}={0,2}))"
        ),
        judge: keep_all,
        literals: &["IQoJb3JpZ2lu", "FwoGZXIvYXdz", "FQoGZXIvYXdz"],
        check: Check::Exact,
    },
    ContextRule {
        kind: "slack_webhook",
        pattern: r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]+)",
        judge: keep_all,
        literals: &["slack.com/"],
        check: Check::Exact,
    },
    ContextRule {
        kind: "url_password",
        pattern: r#"://[^\s/?#@:"'<>\\]*:([^\s/?#"'<>\\]+)@"#,
        judge: keep_unless_placeholder,
        literals: &["://"],
        check: Check::Url,
    },
    ContextRule {
        kind: "authorization",
        pattern: concat!(
            r#"(?i-u:authorization\\*["']?\]?[ \t]*[:=][ \t]*\\*["']?(?:bearer|basic|token|apikey)[ \t]+)"#,
            r#"([^\s"'\\,;<>]+)"#
        ),
        judge: keep_unless_placeholder,
        literals: &["authorization"],
        check: Check::Assigned("authorization"),
    },
    ContextRule {
        kind: "cookie",
        pattern: r#"(?i-u:cookie\\*["']?[ \t]*:[ \t]*\\*["']?)([A-Za-z0-9_.-]+=[^\r\n"'\\]+)"#,
        judge: keep_all,
        literals: &["cookie"],
        check: Check::Assigned("cookie"),
    },
];

/// Names whose assigned values in text are secrets. An underscore also matches a dash, or nothing.
const ASSIGNMENTS: &[(&str, &[&str], Judge)] = &[
    ("aws_secret_access_key", &["secret_access_key", "aws_secret_key"], keep_assigned),
    ("password", &["password", "passwd", "passphrase"], keep_password),
    ("secret", &["secret", "secret_key"], keep_assigned),
    ("api_key", &["api_key", "access_key"], keep_assigned),
    ("private_key", &["private_key"], keep_assigned),
    // Programs also call the name of an entry a storage key, so these values need the form of a secret.
    ("azure_storage_key", &["storage_key", "account_key"], keep_base64_key),
    ("azure_key", &["master_key"], keep_base64_key),
    ("azure_key", &["speech_key", "subscription_key", "functions_key"], keep_if_credible),
    ("token", &["token"], keep_assigned),
];

/// Names of keys without a form of their own, in text and of fields; only values that look random are secrets. `*` matches letters, digits, `_` and
/// `-`; any text may precede the name. Names in capitals match only capitals.
const KEYS: &[(&str, &[&str], Judge)] = &[
    ("azure_key", &["azure*key", "cosmos*key"], keep_random_key),
    ("key", &["primary_key", "secondary_key", "key1", "key2", "*_KEY"], keep_random_key),
    // Programs call hexadecimal hashes keys, too, as in `cacheKey`.
    ("key", &["*key"], keep_mixed_key),
];

/// Names of keys that are not secret.
const PUBLIC_KEYS: &[&str] = &["public_key", "publishable_key", "site_key", "cache_key"];

/// Returns the names whose values are secret, for documentation: a kind, the values that count, and the names. Without a kind, a value is no secret.
pub(super) fn secret_names() -> impl Iterator<Item = (&'static str, &'static str, &'static [&'static str])> {
    let assigned = ASSIGNMENTS.iter().map(|&(kind, names, _)| (kind, "assigned in text", names));
    let keys = KEYS.iter().map(|&(kind, names, _)| (kind, "random values in text and fields", names));
    let public = std::iter::once(("", "no secret", PUBLIC_KEYS));
    let fields = FIELDS.iter().map(|&(kind, names)| (kind, "a whole field", names));
    assigned.chain(fields).chain(keys).chain(public)
}

const FIELDS: &[(&str, &[&str])] = &[
    ("password", &["password", "passwd", "pgpassword", "mysql_pwd"]),
    ("passphrase", &["passphrase"]),
    ("secret", &["secret", "secret_key"]),
    ("client_secret", &["client_secret"]),
    ("api_key", &["api_key"]),
    ("access_key", &["access_key"]),
    ("aws_secret_access_key", &["secret_access_key"]),
    ("private_key", &["private_key"]),
    ("azure_storage_key", &["azure_storage_key", "storage_account_key"]),
    ("azure_key", &["primary_master_key", "secondary_master_key", "apim_subscription_key", "x_functions_key"]),
    ("access_token", &["access_token"]),
    ("refresh_token", &["refresh_token"]),
    ("id_token", &["id_token"]),
    ("auth_token", &["auth_token"]),
    ("token", &["token"]),
    ("authorization", &["authorization"]),
    ("cookie", &["cookie", "set_cookie", "session_cookie"]),
];

#[derive(Clone, Default)]
pub(super) struct RuleSet {
    pub(super) patterns: Vec<Pattern>,
    pub(super) fields: Vec<Field>,
    pub(super) cards: bool,
    prefilter: Prefilter,
}

impl RuleSet {
    pub(super) fn standard() -> Self {
        let mut rules = Self { cards: true, ..Self::default() };
        for &(kind, token, literals) in TOKENS {
            rules.add_pattern(kind, &["(?-u:", word_start!(), "(", token, "))"].concat(), keep_all, 0);
            literals.iter().for_each(|literal| rules.prefilter.add(*literal, Check::Token));
        }
        for context in CONTEXTS {
            rules.add_pattern(context.kind, context.pattern, context.judge, 0);
            context.literals.iter().for_each(|literal| rules.prefilter.add(*literal, context.check.clone()));
        }
        for &(kind, names, judge) in ASSIGNMENTS {
            rules.add_assignment(kind, names, judge);
        }
        for &(kind, names, judge) in KEYS {
            rules.add_key(kind, names, judge);
        }
        // The value of a pair, in which the name may be anywhere.
        rules.prefilter.add("\"value\":", Check::AnyCase);
        for &(kind, names) in FIELDS {
            names.iter().for_each(|name| rules.add_field(kind.to_owned(), name));
        }
        rules.index();
        rules
    }

    pub(super) fn add_regex(&mut self, kind: String, regex: Regex) {
        let group = regex.capture_names().position(|name| name == Some("secret")).unwrap_or(0);
        self.prefilter.add_pattern(regex.as_str());
        self.patterns.push(Pattern { kind, regex, groups: group..group + 1, judge: keep_all, overlap: 0 });
    }

    pub(super) fn add_field(&mut self, kind: String, name: &str) {
        let name = plain_name(name);
        if !name.is_empty() {
            self.prefilter.add_field(&name);
            self.fields.push(Field { kind, name });
        }
    }

    /// Removes the rules of a kind. The prefilter stays: it may find more than the rules.
    pub(super) fn remove(&mut self, kind: &str) {
        self.patterns.retain(|pattern| pattern.kind != kind);
        self.fields.retain(|field| field.kind != kind);
        self.cards &= kind != CARD;
    }

    pub(super) fn index(&mut self) {
        self.prefilter.index();
    }

    /// Works for JSON and for plain text, which differ only in quotes and control characters.
    pub(super) fn could_match(&self, text: &[u8]) -> bool {
        self.prefilter.finds(text) || (self.cards && could_hold_card(text))
    }

    pub(super) fn field(&self, key: &str) -> Option<&str> {
        let fields = self.fields.iter().filter(|field| field.matches(key));
        fields.max_by_key(|field| field.name.len()).map(|field| field.kind.as_str())
    }

    /// Returns the kind of a field whose name makes this value a secret, as an assignment in text would.
    pub(super) fn assigned_field(&self, key: &str, value: &str) -> Option<&str> {
        // Only the values of the rules for keys need more than the name.
        if keep_random_key(1, value) == 0 {
            return None;
        }
        let text = format!("{key}={value}");
        let whole = key.len() + 1..text.len();
        self.secrets(&text).into_iter().find(|secret| secret.range == whole).map(|secret| secret.kind)
    }

    /// Finds the secrets of a text from left to right; overlapping ones are merged.
    pub(super) fn secrets(&self, text: &str) -> Vec<Secret<'_>> {
        let mut secrets: Vec<_> = self.patterns.iter().flat_map(|pattern| pattern.secrets(text)).collect();
        if self.cards {
            secrets.extend(cards(text.as_bytes()).map(|range| Secret { range, kind: CARD }));
        }
        // The sort is stable, so equal ranges stay in the order of the rules.
        secrets.sort_by_key(|secret| (secret.range.start, Reverse(secret.range.end)));
        secrets.dedup_by(|next, kept| {
            let overlap = next.range.start < kept.range.end;
            if overlap {
                kept.range.end = kept.range.end.max(next.range.end);
            }
            overlap
        });
        secrets
    }

    fn add_pattern(&mut self, kind: &str, pattern: &str, judge: Judge, overlap: usize) {
        // The tests have a secret for every built-in pattern, so that an invalid one is noticed.
        if let Ok(regex) = Regex::new(pattern) {
            let groups = if regex.captures_len() > 1 { 1..regex.captures_len() } else { 0..1 };
            self.patterns.push(Pattern { kind: kind.to_owned(), regex, groups, judge, overlap });
        }
    }

    fn add_key(&mut self, kind: &str, names: &[&str], judge: Judge) {
        let names: Vec<String> = names.iter().map(|name| pattern_of_name(name)).collect();
        // The name and the value of an assignment, of a row of a table, and of an element of XML.
        let sign = concat!(r#"(?:\\*["']?\]?[ \t]*(?:={1,3}|:=|=>|:|\||>)[ \t]*|"#, pair_value!(), r#")\\*["']?"#);
        let (public, names) = (pattern_of_public_names(PUBLIC_KEYS), names.join("|"));
        // The empty group makes the search continue behind a name that is not secret.
        let pattern = [word_start!(), "(?:", &public, sign, "()|(?:", &names, ")", sign, KEY_VALUE, ")"].concat();
        self.add_pattern(kind, &pattern, judge, 0);
        self.prefilter.add("key", Check::Key);
    }

    fn add_assignment(&mut self, kind: &str, names: &[&'static str], judge: Judge) {
        let any = names.join("|").replace('_', "[_-]?");
        // The name and the value may have quotes, and those may be escaped, once or more.
        let name = format!(r#"(?i-u:{any})\\*["']?\]?"#);
        let sign = r"[ \t]*(?:={1,3}|:=|=>|:)[ \t]*";
        let quoted = r#"\\+"([^"\\\r\n]+)|\\+'([^'\\\r\n]+)|"((?:[^"\\\r\n]|\\.)+)|'((?:[^'\\\r\n]|\\.)+)"#;
        let plain = r#"([^\s"'`;&<>,(){}\[\]\\:=][^\s"'`;&<>]*)"#;
        let capitals = any.to_ascii_uppercase();
        // The groups: `ENVIRONMENT`, four with quotes, `TIGHT`, `LOOSE`.
        let assignment = format!("(?:{capitals})={plain}|{name}(?:{sign}(?:{quoted})|={plain}|{sign}{plain})");
        let flag = format!(r"--[A-Za-z0-9_-]*(?i-u:{any})[ \t]+{plain}");
        // The groups: `ENVIRONMENT`, four with quotes.
        let (key, value) = (r#"(?i-u:name)\\*["']?[ \t]*[:=][ \t]*\\*["']?[A-Za-z0-9_.-]*"#, pair_value!());
        let pair = format!("{key}(?i-u:{any}){value}(?:{plain}|{quoted})");
        // A value can end with the next name, as in `password=a,password="b"`.
        let overlap = PLACEHOLDER;
        self.add_pattern(kind, &assignment, judge, overlap);
        self.add_pattern(kind, &pair, judge, overlap);
        self.add_pattern(kind, &flag, keep_if_credible, overlap);
        names.iter().for_each(|name| self.prefilter.add_assignment(name));
    }
}
