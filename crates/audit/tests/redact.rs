//! Text that is redacted, text that is not, and the laws for both.
//!
//! The secrets are made up, and put together from pieces, so that no scanner takes this file for a leak.

mod laws;
mod names;

use std::time::{Duration, Instant};

use amplifier_audit::Redaction;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

const KEY: [u8; 32] = [7; 32];

/// Letters and digits at random, for secrets of any length.
const RANDOM: &str = "Zk3vQ9mT7xLr2WnB8yHc5JpD4sGf6RaE1uKoViNqYt0XbCwMzSdPgHjFlU3e7A9Q2r5T8y1w4";

fn random(length: usize) -> &'static str {
    &RANDOM[..length]
}

fn upper(length: usize) -> String {
    random(length).to_uppercase()
}

/// Random text with the other characters of Base64, too.
fn base64(length: usize) -> String {
    format!("x+/{}", &RANDOM.repeat(2)[..length - 3])
}

fn marker(key: &[u8; 32], kind: &str, secret: &str) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(key).unwrap().chain_update(secret).finalize().into_bytes();
    let digits: String = mac[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[redacted kind={kind} len={} hmac={digits}]", secret.len())
}

/// JSON as the log has it: everything but printable ASCII is escaped.
fn ascii_json(value: &Value) -> Vec<u8> {
    let mut json = String::new();
    for character in value.to_string().chars() {
        if matches!(character, ' '..='~') {
            json.push(character);
        } else {
            character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| json.push_str(&format!("\\u{unit:04x}")));
        }
    }
    json.into_bytes()
}

/// Applies the rules, and checks the laws that every use has to obey.
fn apply(redaction: &Redaction, value: Value) -> Value {
    let mut redacted = value.clone();
    redaction.apply(&KEY, &mut redacted);
    assert!(redacted == value || redaction.could_match(&ascii_json(&value)), "the prefilter lets {value} pass");
    let mut again = redacted.clone();
    redaction.apply(&KEY, &mut again);
    assert_eq!(again, redacted, "the second run changes something in {value}");
    redacted
}

fn check(before: &str, kind: &str, secret: &str, after: &str) {
    let text = format!("{before}{secret}{after}");
    let expected = format!("{before}{}{after}", marker(&KEY, kind, secret));
    assert_eq!(apply(&Redaction::standard(), json!(text)), json!(expected), "{text}");
    // In the middle of lines, with neighbours of several bytes, and in a value that holds more.
    let text = format!("über\n{text}\n→ 終");
    let expected = format!("über\n{expected}\n→ 終");
    assert_eq!(apply(&Redaction::standard(), json!({"a": [1, text]})), json!({"a": [1, expected]}));
}

#[test]
fn tokens_become_markers() {
    let r = random;
    for (kind, secret) in [
        ("aws_access_key_id", format!("{}{}", concat!("AK", "IA"), upper(16))),
        ("aws_access_key_id", format!("{}{}", concat!("AS", "IA"), upper(16))),
        ("github_token", format!("{}{}", concat!("gh", "p_"), r(36))),
        ("github_token", format!("{}{}", concat!("gh", "o_"), r(36))),
        ("github_token", format!("{}{}", concat!("gh", "u_"), r(36))),
        ("github_token", format!("{}{}", concat!("gh", "s_"), r(36))),
        ("github_token", format!("{}{}", concat!("gh", "r_"), r(70))),
        ("github_token", format!("{}{}_{}", concat!("github", "_pat_"), r(22), r(59))),
        ("gitlab_token", format!("{}{}", concat!("gl", "pat-"), r(20))),
        ("gitlab_token", format!("{}{}-_x", concat!("gl", "pat-"), r(20))),
        ("slack_token", format!("{}-123456789012-{}", concat!("xo", "xb"), r(24))),
        ("slack_token", format!("{}-123456789012-{}", concat!("xo", "xp"), r(24))),
        ("slack_token", format!("{}-2-{}", concat!("xo", "xa"), r(24))),
        ("slack_token", format!("{}-1-A012-{}", concat!("xa", "pp"), r(24))),
        ("anthropic_api_key", format!("{}-api03-{}_-AA", concat!("sk", "-ant"), r(60))),
        ("anthropic_api_key", format!("{}-sid01-{}", concat!("sk", "-ant"), r(40))),
        ("openai_api_key", format!("{}-{}_{}", concat!("sk", "-proj"), r(30), r(20))),
        ("openai_api_key", format!("{}-{}", concat!("sk", "-svcacct"), r(40))),
        ("openai_api_key", format!("{}-{}", concat!("sk", "-admin"), r(40))),
        ("api_key", format!("{}{}", concat!("sk", "-"), r(48))),
        ("api_key", format!("{}{}", concat!("sk", "-"), r(20))),
        ("api_key", format!("{}{}", concat!("sk", "-or-v1-"), "0a1b2c3d".repeat(8))),
        ("google_api_key", format!("{}{}", concat!("AI", "za"), r(35))),
        ("google_api_key", format!("{}{}_-{}", concat!("AI", "za"), r(20), r(13))),
        ("stripe_key", format!("{}{}", concat!("sk", "_live_"), r(24))),
        ("stripe_key", format!("{}{}", concat!("rk", "_live_"), r(24))),
        ("stripe_key", format!("{}{}", concat!("sk", "_test_"), r(24))),
        ("npm_token", format!("{}{}", concat!("np", "m_"), r(36))),
        ("pypi_token", format!("{}AgEIcHlwaS5vcmc{}-_{}", concat!("py", "pi-"), r(60), r(10))),
        ("google_oauth_token", format!("{}{}_-{}", concat!("ya", "29."), r(40), r(60))),
        ("google_client_secret", format!("{}{}", concat!("GOC", "SPX-"), r(28))),
        ("digitalocean_token", format!("{}{}", concat!("dop", "_v1_"), "0a1b2c3d".repeat(8))),
        ("databricks_token", format!("{}{}", concat!("da", "pi"), "0a1b2c3d".repeat(4))),
        ("vault_token", format!("{}{}", concat!("hv", "s."), r(70))),
        ("sendgrid_token", format!("{}{}.{}", concat!("S", "G."), r(22), r(43))),
        ("alibaba_access_key_id", format!("{}{}", concat!("LT", "AI"), r(20))),
        ("azure_client_secret", format!("{}8{}{}", r(3), concat!("Q", "~"), r(34))),
        ("aws_session_token", format!("{}{}==", concat!("IQoJ", "b3JpZ2lu"), base64(60))),
        ("huggingface_token", format!("{}{}", concat!("h", "f_"), r(34))),
        ("aws_bedrock_key", format!("{}QmVkcm9ja0FQSUtleS{}=", concat!("AB", "SK"), random(70))),
        ("google_access_key_id", format!("{}{}", concat!("GOO", "G1E"), upper(55))),
        ("google_oauth_token", format!("{}{}-_{}", concat!("1/", "/0"), r(40), r(40))),
        ("azure_storage_key", format!("{}{}{}==", base64(76), concat!("+A", "St"), r(6))),
        ("azure_key", format!("{}{}{}==", base64(76), concat!("AC", "Db"), r(6))),
        ("azure_key", format!("{}{}{}", base64(42), concat!("+A", "CR"), r(6))),
        ("azure_key", format!("{}{}{}", r(52), concat!("JQQ", "J99"), r(26))),
        ("jwt", format!("{}hbGciOiJIUzI1NiJ9.{}zdWIiOiIxMjM0In0.{}-_", concat!("ey", "J"), concat!("ey", "J"), r(41))),
        ("jwt", format!("{}hbGciOiJub25lIn0.{}zdWIiOiIxMjM0In0.", concat!("ey", "J"), concat!("ey", "J"))),
    ] {
        check("", kind, &secret, "");
        check("see ", kind, &secret, " for more");
        check("(\"", kind, &secret, "\")");
        check("line\\n", kind, &secret, "\\\"");
        check("export X=", kind, &secret, "; ls");
        // A name makes no difference to the kind when the secret speaks for itself.
        check("token=", kind, &secret, "&x=1");
        check("https://me:", kind, &secret, "@example.org/a");
    }
}

#[test]
fn what_stands_around_makes_a_secret() {
    let webhook = format!("T0123ABCD/B0123ABCD/{}", random(24));
    let aws = format!("{}/+{}", random(20), random(18));
    let azure = format!("{}==", base64(86));
    let (storage, sas) = (format!("{}+/{}==", random(60), random(24)), format!("{}%2B{}%3D", random(30), random(10)));
    for (before, kind, secret, after) in [
        (
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=",
            "azure_storage_key",
            storage.as_str(),
            ";EndpointSuffix=core.windows.net",
        ),
        ("https://a.blob.core.windows.net/x?sv=2024-01-01&sig=", "azure_sas_signature", sas.as_str(), "&se=2026"),
        (concat!("https://hooks.", "slack.com/services/"), "slack_webhook", webhook.as_str(), " is the hook"),
        ("postgres://app:", "url_password", "s3cr3t", "@db.example.org:5432/app"),
        ("redis://:", "url_password", "p@ss:word", "@localhost"),
        ("https://me:", "url_password", "pässwörd", "@example.org/path?x=1"),
        ("git clone https://oauth2:", "url_password", "abc", "@git.example.org/a/b.git"),
        ("curl -H 'Authorization: Bearer ", "authorization", "abc.DEF-1", "' https://example.org"),
        ("Authorization: Basic ", "authorization", "dXNlcjpwYXNz", "\r\nHost: example.org"),
        ("authorization:bearer ", "authorization", "x1y2", ""),
        ("{\"Authorization\": \"Bearer ", "authorization", "x1y2", "\"}"),
        ("{\\\"Authorization\\\": \\\"Bearer ", "authorization", "x1y2", "\\\"}"),
        ("headers['Authorization'] = 'token ", "authorization", "x1y2", "'"),
        ("Proxy-Authorization: Basic ", "authorization", "dXNlcjpwYXNz", ""),
        ("curl -H 'Cookie: ", "cookie", "sid=abc; theme=dark", "'"),
        ("Set-Cookie: ", "cookie", "sid=abc; HttpOnly", "\nServer: x"),
        ("aws_secret_access_key = ", "aws_secret_access_key", &aws, "\nregion = eu"),
        ("AWS_SECRET_ACCESS_KEY=", "aws_secret_access_key", &aws, " aws s3 ls"),
        ("\"SecretAccessKey\": \"", "aws_secret_access_key", &aws, "\""),
        ("aws configure set aws_secret_access_key ", "aws_secret_access_key", &aws, " --profile me"),
        ("AWS Secret Access Key [None]: ", "aws_secret_access_key", &aws, "\nDefault region name"),
        ("AWS Secret Access Key [****************WXYZ]: ", "aws_secret_access_key", &aws, ""),
        ("AZURE_STORAGE_KEY=", "azure_storage_key", &azure, ""),
        ("AZURE_STORAGE_ACCOUNT_KEY=\"", "azure_storage_key", &azure, "\""),
        ("accountKey: ", "azure_storage_key", &azure, "\n"),
        ("account_key='", "azure_storage_key", &azure, "')"),
        ("az storage blob list --account-key ", "azure_storage_key", &azure, " -c x"),
        ("\"primaryMasterKey\": \"", "azure_key", &azure, "\","),
        ("AZURE_SPEECH_KEY=", "azure_key", "0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d", ""),
        ("Ocp-Apim-Subscription-Key: ", "azure_key", "0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d", "\n"),
        ("curl -H 'x-functions-key: ", "azure_key", &azure, "'"),
        ("password=", "password", "hunter2", ""),
        ("password=", "password", "hunter2", " user=me"),
        ("password = '", "password", "two words", "'"),
        ("Password: ", "password", "swordfish", ""),
        ("passwd:", "password", "swordfish", "\nuid: 0"),
        ("POSTGRES_PASSWORD: ", "password", "MyPassword", "\n"),
        ("password: ", "password", "$horse99", "\n"),
        ("--password=", "password", "hunter2", " -h localhost"),
        ("mysql --password ", "password", "hunter2", " -h localhost"),
        ("PGPASSWORD=", "password", "hunter2", " psql"),
        ("DB_PASSWORD=\"", "password", "a \\\"b\\\" c", "\" ./run"),
        ("dbPassword: \"", "password", "hunter2", "\","),
        ("config[\"password\"] = \"", "password", "hunter2", "\""),
        ("{\"password\":\"", "password", "hunter2", "\",\"user\":\"me\"}"),
        ("{\\\"password\\\": \\\"", "password", "hunter2", "\\\"}"),
        ("Server=x;Password=", "password", "hunter2", ";Timeout=3"),
        ("PASSPHRASE := \"", "password", "correct horse", "\""),
        ("password => '", "password", "hunter2", "'"),
        ("if password == \"", "password", "hunter2", "\":"),
        ("connect(password='", "password", "it\\'s", "')"),
        ("(password=", "password", "hunter2", ")."),
        ("password\t=\t", "password", "hunter2", "\tuser\t=\tme"),
        ("run --token\t", "token", "abc1234", ""),
        ("secret=", "secret", "abc", ""),
        ("client_secret: \"", "secret", "abc", "\""),
        ("secret: ", "secret", "abc123def", "\n"),
        ("SECRET_KEY='", "secret", "django-insecure-x", "'"),
        ("api_key=", "api_key", "abc", ""),
        ("apikey: ", "api_key", "0123abcd", ""),
        ("X-Api-Key: ", "api_key", "0123abcd", "\nHost: x"),
        ("OPENAI-API-KEY=", "api_key", "abc", ""),
        ("access_key=", "api_key", "abc", ""),
        ("private-key = \"", "private_key", "abc", "\""),
        ("?token=", "token", "abc", "&page=2"),
        ("token = ", "token", "abc123", ""),
        ("accessToken: '", "token", "abc", "'"),
        ("vault login --token ", "token", "s.1234567", ""),
        ("export GITHUB_TOKEN=", "token", "abc", ""),
        ("refresh_token\":\"", "token", "abc", "\""),
        ("token: password: ", "password", "swordfish", ""),
        ("//registry.example.org/:_authToken=", "token", "abc", ""),
        ("4th card: ", "card_number", concat!("4111 1111", " 1111 1111"), " 12/27"),
        ("pay ", "card_number", concat!("41111111", "11111111"), ""),
        ("pay ", "card_number", concat!("5555-5555", "-5555-4444"), "."),
        ("pay ", "card_number", concat!("3782 822463", " 10005"), ","),
        ("pay ", "card_number", concat!("37828224", "6310005"), ";"),
        ("pay ", "card_number", concat!("601111111", "1111117"), ""),
        ("pay ", "card_number", concat!("305693", "09025904"), ""),
        ("pay ", "card_number", concat!("353011133", "3300000"), ""),
        ("pay ", "card_number", concat!("422222", "2222222"), ""),
        ("\"", "card_number", concat!("422222", "2222222"), "\""),
        ("pay ", "card_number", concat!("222300004", "8410010"), ""),
        ("pay ", "card_number", concat!("621094", "0000000000002"), ""),
        ("1 ", "card_number", concat!("4111 1111", " 1111 1111"), " 123"),
        ("card_", "card_number", concat!("41111111", "11111111"), ""),
    ] {
        check(before, kind, secret, after);
    }
}

#[test]
fn a_token_begins_after_a_colour_and_after_an_escape_of_a_url() {
    let secret = format!("{}{}", concat!("AI", "za"), random(35));
    for before in ["\x1b[31m", "\x1b[01;31m\x1b[K", "\\x1b[1m", "?q=%3D", "\x1b[m"] {
        check(before, "google_api_key", &secret, "\x1b[0m");
    }
    let text = format!("arr[x{secret}");
    assert_eq!(apply(&Redaction::standard(), json!(text)), json!(text));
}

#[test]
fn a_token_begins_after_an_underscore() {
    check("backup_", "aws_access_key_id", &format!("{}{}", concat!("AK", "IA"), upper(16)), ".csv");
}

#[test]
fn the_values_of_named_keys_are_redacted() {
    let key = format!("{}==", base64(86));
    for (before, after) in [
        ("[{\"creationTime\": \"2024-01-01\", \"keyName\": \"key1\", \"permissions\": \"FULL\", \"value\": \"", "\"}]"),
        ("{\"keyName\": \"key1\", \"value\": \"", "\"}"),
        ("{\n  \"keyName\": \"key2\",\n  \"permissions\": \"FULL\",\n  \"value\": \"", "\"\n}"),
        ("{\\\"keyName\\\": \\\"key1\\\", \\\"permissions\\\": \\\"FULL\\\", \\\"value\\\": \\\"", "\\\"}"),
        ("- keyName: key1\n  permissions: FULL\n  value: ", "\n"),
    ] {
        check(before, "azure_storage_key", &key, after);
    }
}

#[test]
fn the_value_of_a_pair_is_known_by_its_name() {
    let mark = |kind: &str, secret: &str| marker(&KEY, kind, secret);
    let key = format!("{}==", base64(86));
    for (name, kind, value) in [
        ("DB_PASSWORD", "password", "hunter2"),
        ("GITHUB_TOKEN", "token", "abc"),
        ("AZURE_SEARCH_KEY", "azure_key", key.as_str()),
    ] {
        for (name_key, value_key) in [("name", "value"), ("Name", "Value"), ("keyName", "value"), ("name", "VALUE")] {
            let pair = |value: &str| json!({ "env": [{ value_key: value, "more": 1, name_key: name }] });
            assert_eq!(apply(&Redaction::standard(), pair(value)), pair(&mark(kind, value)), "{name_key} {name}");
        }
    }
    let number = json!({ "name": "DB_PASSWORD", "value": 1234 });
    assert_eq!(apply(&Redaction::standard(), number)["value"], mark("password", "1234"));
    for harmless in [
        json!({ "name": "max_tokens", "value": "4096" }),
        json!({ "name": "DB_PASSWORD", "value": "" }),
        json!({ "name": "DB_PASSWORD", "value_from": "vault" }),
        json!({ "name": "password_file", "value": "/run/secrets/db" }),
        json!({ "title": "password", "value": "x" }),
    ] {
        assert_eq!(apply(&Redaction::standard(), harmless.clone()), harmless);
    }
}

#[test]
fn the_secret_beside_an_access_key_id_is_redacted() {
    let id = format!("{}{}", concat!("AK", "IA"), upper(16));
    let secret = format!("{}/+{}", random(20), random(18));
    let mark = |kind: &str, secret: &str| marker(&KEY, kind, secret);
    for between in [" ", ",", "\t", "\",\"", " | ", ":"] {
        let text = format!("{id}{between}{secret}\n");
        let expected =
            format!("{}{between}{}\n", mark("aws_access_key_id", &id), mark("aws_secret_access_key", &secret));
        assert_eq!(apply(&Redaction::standard(), json!(text)), json!(expected), "{text}");
    }
    let commit = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    let expected = format!("{} {commit}", mark("aws_access_key_id", &id));
    assert_eq!(apply(&Redaction::standard(), json!(format!("{id} {commit}"))), json!(expected));
}

#[test]
fn private_keys_are_replaced_as_a_block() {
    let body = format!("{}\n{}\n{}==", random(64), random(64), random(30));
    for label in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let begin = format!("{}{label}{}", concat!("-----BEG", "IN "), "PRIVATE KEY-----");
        let end = format!("{}{label}{}", concat!("-----E", "ND "), "PRIVATE KEY-----");
        check("cat key\n", "private_key", &format!("{begin}\n{body}\n{end}"), "\nls");
        check("KEY=\"", "private_key", &format!("{begin}\\n{}\\n{end}", random(64)), "\"");
        let line = format!("{begin}\\n{}", random(64));
        check("a.env:1:KEY=\"", "private_key", &line, "\"\nb.env:7:KEYS=2\n");
        check("{\"output\":\"a.env:1:KEY=\\\"", "private_key", &line, "\\\"\\nb.env:7:KEYS=2\"}");
        let joined = |line_end: &str, quote: &str| {
            let more = format!("\\n{quote} +{line_end}  {quote}{}", random(64));
            format!("{begin}{more}{more}")
        };
        check("{\"a\": \"", "private_key", &line, "\", \"b\": [\"2\"]}");
        check("f('", "private_key", &line, "');");
        let with = |joiner: &str| format!("{begin}\\n{}{joiner}{}\"", random(64), random(40));
        for cut in [
            format!("{begin}\n{body}"),
            joined("\n", "'"),
            joined("\\n", "\\\""),
            with("\" & \""),
            with("\" & vbLf & _\n  \""),
            with("\" + NL + \""),
            with("\", \""),
            with("\"\nkey += \"\\n"),
            format!("{line}\" & \"{}\"", random(20)),
        ] {
            let text = format!("cat key\n{cut}");
            let expected = format!("cat key\n{}", marker(&KEY, "private_key", &cut));
            assert_eq!(apply(&Redaction::standard(), json!(text)), json!(expected));
        }
    }
    let pgp = concat!("-----BEG", "IN PGP PRIVATE KEY BLOCK-----\n\nabc\n-----E", "ND PGP PRIVATE KEY BLOCK-----");
    check("", "private_key", pgp, "\n");
    check("a\n", "private_key", pgp, &format!("\nb\n{}", marker(&KEY, "private_key", pgp)));
}

#[test]
fn the_first_line_of_a_private_key_is_redacted_alone() {
    let first = |begin: &str| format!("{begin}{}", random(40));
    for line in [
        first(concat!("MII", "EvQIBAD")),
        first(concat!("MII", "EpAIBAA")),
        first(concat!("MII", "JKAIBAA")),
        first(concat!("MHc", "CAQEE")),
        first(concat!("MIG", "HAgEAMBMG")),
        first(concat!("b3Blbn", "NzaC1rZXkt")),
    ] {
        check("server.pem:2:", "private_key", &line, "\n");
    }
    let ed25519 = format!("{}{}=", concat!("MC4C", "AQAwBQYDK2Vw"), random(40));
    check("", "private_key", &ed25519, "");
    for public in ["MIIDxTCCAq2gAwIBAgIQ", "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A", "MIIBCgKCAQEA"] {
        let text = format!("server.pem:2:{public}{}", random(40));
        assert_eq!(apply(&Redaction::standard(), json!(text)), json!(text));
    }
}

#[test]
fn the_key_of_a_service_account_is_a_private_key() {
    let begin = concat!("-----BEG", "IN PRIVATE KEY-----");
    let end = concat!("-----E", "ND PRIVATE KEY-----");
    let key = format!("{begin}\\n{}\\n{end}\\n", random(64));
    check("sa.json:5:  \"private_key\": \"", "private_key", &key, "\",\n");
}

#[test]
fn harmless_text_stays() {
    let image = random(60).repeat(40);
    for text in [
        "",
        "a",
        "The token is invalid.",
        "an unexpected token: `}`",
        "token: expired",
        "Token: string;",
        "tokens: 4096",
        "max_tokens=4096",
        "input_tokens: 1200, output_tokens: 300",
        "tokenizer=cl100k_base",
        "token_type: bearer",
        "token_count = 17",
        "let token = next_token();",
        "self.token = token",
        "if token != other_token2 {",
        "Token::new(stream1)",
        "std::token::Kind12345",
        "the bearer of good news",
        "a basic understanding of authorization",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer ${TOKEN}",
        "Authorization: Bearer <token>",
        "authorization: required",
        "password: String,",
        "pub password: Option<String>,",
        "password: &str",
        "password: $db_pass2",
        "DB_PASSWORD: dbPassword,",
        "DB_PASSWORD: ${DB_PASSWORD}",
        "DB_PASSWORD: String",
        "DB_PASSWORD: config.password",
        "{\"keyName\": \"id\", \"value\": \"da39a3ee5e6b4b0d3255bfef95601890afd80709da39a3ee\"}",
        "password=$PASSWORD",
        "password=${DB_PASSWORD}",
        "password=$(pass show db)",
        "password=<your password>",
        "password=********",
        "password=xxxx",
        "password: null",
        "password=\"\"",
        "password=%DB_PASSWORD%",
        "password = getpass.getpass()",
        "Enter password:",
        "password_hash",
        "passwords are hashed with argon2",
        "the secret to success: patience",
        "secrets: inherit",
        "secretName: database",
        "kubectl get secret database",
        "api_keys",
        "use the --token flag",
        "pass --password to log in",
        "cookie: a small biscuit",
        "cookies=3",
        "key: value",
        "primary key = id",
        "keyboard=qwerty",
        "monkey=7",
        "sk-learn",
        "sk-learn-contrib-with-a-very-long-name",
        "task-0123456789abcdef0123456789abcdef",
        "risk-assessment-of-the-whole-project",
        "locale sk-SK",
        "npm_config_registry",
        "npm_lifecycle_event",
        "hf_hub_download",
        "pypi-publish",
        "pypi-publish-action-for-trusted-publishers",
        "ghp_short",
        "github_pat_",
        "glpat-",
        "xoxo",
        concat!("pk", "_live_51HqLyjWDarjtT1zdp7dc"),
        "AKIA",
        "Asia/Tokyo",
        "ASIAN MARKETS OPEN HIGHER",
        "eyJ is how encoded JSON begins",
        "postgres://localhost:5432/app",
        "postgres://app@localhost/app",
        "postgres://app:$PASSWORD@localhost/app",
        "postgres://app:****@localhost/app",
        "https://example.org:8080/a@b",
        "https://example.org/?q=a:b@c",
        "ssh://git@example.org:22/a.git",
        "git@example.org:a/b.git",
        "mail me@example.org: thanks",
        "https://slack.com/help",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "where is my private key?",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "commit 5105105105105100aabbccddeeff001122334455",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "\"integrity\": \"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==\",",
        "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "const STORAGE_KEY = \"theme-preference-of-the-current-user-v2\";",
        "storageKey: \"da39a3ee5e6b4b0d3255bfef95601890afd80709\"",
        "account_key: 550e8400-e29b-41d4-a716-446655440000",
        "masterKey=main",
        "subscription_key = subscription.key()",
        "aws configure set aws_secret_access_key $SECRET",
        "the aws_secret_access_key da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "https://example.org/1//0",
        "GOOG1E",
        "ABSKY",
        "550e8400-e29b-41d4-a716-446655440000",
        "12345678-1234-4234-8234-123456789012",
        "2026-04-14T12:00:07.123456Z",
        "20260414120007123456",
        "1776168007",
        "1776168007123",
        "1776168007123456",
        "1776168007123456789",
        concat!("41111111", "11111112"),
        "id 4929123456789012",
        concat!("0.41111111", "11111111"),
        concat!("x41111111", "11111111"),
        concat!("41111111", "11111111e5"),
        concat!("41111111", "111111110000000"),
        concat!("4 1 1 1 1 1 1 1", " 1 1 1 1 1 1 1 1"),
        concat!("4111 1111-", "1111 1111"),
        "4096 2026-04-14 12:00 Cargo.toml",
        "+1 415 555 2671",
        "/home/me/secret/token.txt",
        "C:\\Users\\me\\password.txt",
        "src/password.rs:12:5",
        "call_AbCdEfGhIjKlMnOpQrStUvWx",
        "toolu_01A09q90qw90lq917835lq9",
        "msg_0123456789abcdef",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "cargo test --workspace -- --nocapture",
        "fn main() { println!(\"hello\"); }",
        "{\"decision\":\"continue\",\"tokens\":12,\"reason\":null}",
        "Überraschung: 終わり → ✓",
        image.as_str(),
    ] {
        assert_eq!(apply(&Redaction::standard(), json!(text)), json!(text));
    }
}

#[test]
fn fields_are_known_by_their_names() {
    for (name, kind) in [
        ("password", "password"),
        ("Password", "password"),
        ("PASS_WORD", "password"),
        ("p-a-s-s-w-o-r-d", "password"),
        ("password_", "password"),
        ("_password", "password"),
        ("db_password", "password"),
        ("DB-PASSWORD", "password"),
        ("dbPassword", "password"),
        ("DBPassword", "password"),
        ("spring.datasource.password", "password"),
        ("user password", "password"),
        ("mot-de-passé-password", "password"),
        ("passwd", "password"),
        ("PGPASSWORD", "password"),
        ("MYSQL_PWD", "password"),
        ("passphrase", "passphrase"),
        ("secret", "secret"),
        ("SECRET_KEY", "secret"),
        ("client_secret", "client_secret"),
        ("clientSecret", "client_secret"),
        ("api_key", "api_key"),
        ("apikey", "api_key"),
        ("X-API-Key", "api_key"),
        ("openaiApiKey", "api_key"),
        ("access_key", "access_key"),
        ("SecretAccessKey", "aws_secret_access_key"),
        ("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key"),
        ("privateKey", "private_key"),
        ("access_token", "access_token"),
        ("refreshToken", "refresh_token"),
        ("id_token", "id_token"),
        ("x-auth-token", "auth_token"),
        ("token", "token"),
        ("github_token", "token"),
        ("Authorization", "authorization"),
        ("proxy-authorization", "authorization"),
        ("authorizati_on", "authorization"),
        ("cookie", "cookie"),
        ("Set-Cookie", "cookie"),
        ("session_cookie", "cookie"),
    ] {
        let expected = json!({name: marker(&KEY, kind, "a b")});
        assert_eq!(apply(&Redaction::standard(), json!({name: "a b"})), expected);
    }
    for name in [
        "tokens",
        "max_tokens",
        "input_tokens",
        "token_count",
        "tokenizer",
        "mytoken",
        "MYTOKEN",
        "data",
        "decision",
        "password_hash",
        "password_file",
        "passwords",
        "secrets",
        "secret_name",
        "secretary",
        "key",
        "keys",
        "api_keys",
        "cache_key",
        "public_key",
        "access_key_id",
        "author",
        "authorizations",
        "cookies",
        "cookie_count",
        "reason",
        "",
        "_",
        "-",
        "session_id",
        "nopassword",
    ] {
        assert_eq!(apply(&Redaction::standard(), json!({name: "a b"})), json!({name: "a b"}));
    }
}

#[test]
fn a_field_is_replaced_whole() {
    let value = json!({
        "password": {"current": "a", "old": ["b", 7, -1.5, null, true, "", {"hint": "c"}], "token": "d"},
        "token": 12345,
        "secret": null, "api_key": false, "cookie": "", "passwd": [], "passphrase": {},
        "authorization": "Bearer abc",
        "tokens": 12345,
    });
    let mark = |kind: &str, secret: &str| marker(&KEY, kind, secret);
    let old = json!([mark("password", "b"), mark("password", "7"), mark("password", "-1.5"), null, true, "", {
        "hint": mark("password", "c")
    }]);
    let expected = json!({
        "password": {"current": mark("password", "a"), "old": old, "token": mark("token", "d")},
        "token": mark("token", "12345"),
        "secret": null, "api_key": false, "cookie": "", "passwd": [], "passphrase": {},
        "authorization": mark("authorization", "Bearer abc"),
        "tokens": 12345,
    });
    assert_eq!(apply(&Redaction::standard(), value), expected);
}

#[test]
fn keys_are_text_too() {
    let token = format!("{}{}", concat!("gh", "p_"), random(36));
    let mark = marker(&KEY, "github_token", &token);
    let key = |text: &str| format!("of {text}");
    assert_eq!(apply(&Redaction::standard(), json!({key(&token): 1, "b": 2})), json!({key(&mark): 1, "b": 2}));
    // A key that looks like the marker already does not cost the other value.
    let both = apply(&Redaction::standard(), json!({key(&token): 1, key(&mark): 2}));
    let duplicate = format!("{}{}", key(&mark), marker(&KEY, "duplicate", ""));
    let values: Vec<_> = [&both[key(&mark)], &both[duplicate]].into_iter().filter_map(Value::as_u64).collect();
    assert_eq!(values.iter().sum::<u64>(), 3);
    // The marker makes `token` a word of its own.
    let redaction = Redaction::standard().with_pattern("animal", "cat").unwrap();
    let key = format!("{}token", marker(&KEY, "animal", "cat"));
    assert_eq!(apply(&redaction, json!({"cattoken": "x"})), json!({key: marker(&KEY, "token", "x")}));
}

#[test]
fn several_secrets_in_one_text() {
    let mark = |kind: &str, secret: &str| marker(&KEY, kind, secret);
    let text = "a=1 password=one secret=two password=one token='three four' end";
    let expected = format!(
        "a=1 password={} secret={} password={} token='{}' end",
        mark("password", "one"),
        mark("secret", "two"),
        mark("password", "one"),
        mark("token", "three four"),
    );
    assert_eq!(apply(&Redaction::standard(), json!(text)), json!(expected));
}

#[test]
fn one_marker_covers_what_overlaps() {
    let animals = |rules: &[(&str, &str)]| {
        rules.iter().fold(Redaction::none(), |all, (kind, pattern)| all.with_pattern(kind, pattern).unwrap())
    };
    for (rules, text, expected) in [
        (vec![("short", "cat"), ("long", "catfish")], "a catfish!", ("a ", "long", "catfish", "!")),
        (vec![("left", "cat"), ("right", "atfish")], "a catfish!", ("a ", "left", "catfish", "!")),
        (vec![("first", "cat"), ("second", "c.t")], "a cat!", ("a ", "first", "cat", "!")),
        (vec![("inner", "at"), ("outer", "cats")], "a cats!", ("a ", "outer", "cats", "!")),
    ] {
        let (before, kind, secret, after) = expected;
        let expected = format!("{before}{}{after}", marker(&KEY, kind, secret));
        assert_eq!(apply(&animals(&rules), json!(text)), json!(expected));
    }
}

#[test]
fn what_is_left_of_a_secret_is_no_secret() {
    // What remains after `^a` begins with an `a` again. After some rounds, the rest is taken as a whole.
    let redaction = Redaction::none().with_pattern("mine", "^a").unwrap();
    let expected = format!("{}{}", marker(&KEY, "mine", "a").repeat(8), marker(&KEY, "mine", "aaab"));
    assert_eq!(apply(&redaction, json!("aaaaaaaaaaab")), json!(expected));
}

#[test]
fn markers_stay_as_they_are() {
    let mark = marker(&KEY, "password", "hunter2");
    let mixed = format!("Bearer {mark} and {mark}{mark}");
    let around = |text: &str| marker(&KEY, "token", text);
    let expected = format!("{}{mark}{}{mark}{mark}", around("Bearer "), around(" and "));
    for (value, expected) in [
        (json!({"token": mark}), json!({"token": mark})),
        (json!({"token": mixed}), json!({"token": expected})),
        (json!(format!("password={mark} x")), json!(format!("password={mark} x"))),
        (json!(format!("password='{mark}'")), json!(format!("password='{mark}'"))),
        (json!({mark.clone(): mark}), json!({mark.clone(): mark})),
        // Almost a marker is none.
        (json!({"token": "[redacted kind=token len=3]"}), json!({"token": around("[redacted kind=token len=3]")})),
    ] {
        assert_eq!(apply(&Redaction::standard(), value), expected);
    }
    let greedy = Redaction::standard().with_pattern("all", ".+").unwrap();
    assert_eq!(apply(&greedy, json!(mark)), json!(mark));
}

#[test]
fn rules_of_users() {
    let mark = |kind: &str, secret: &str| marker(&KEY, kind, secret);
    for (pattern, text, before, secret, after) in [
        (r"acme-\d+", "an acme-123!", "an ", "acme-123", "!"),
        (r"badge (?<secret>\d+)", "badge 123!", "badge ", "123", "!"),
        (r"badge (?P<secret>\d+) (x)", "badge 123 x", "badge ", "123", " x"),
        (r"(\d+)-x", "12-x", "", "12-x", ""),
        ("naïve", "a naïve key", "a ", "naïve", " key"),
        ("x*", "axxb", "a", "xx", "b"),
        ("(?i)kiss", "a \u{212a}i\u{17f}s", "a ", "\u{212a}i\u{17f}s", ""),
        ("(?i)plural", "PLURAL", "", "PLURAL", ""),
        ("(?s)^.*$", "a\nb", "", "a\nb", ""),
    ] {
        let redaction = Redaction::none().with_pattern("mine", pattern).unwrap();
        let expected = format!("{before}{}{after}", mark("mine", secret));
        assert_eq!(apply(&redaction, json!(text)), json!(expected), "{pattern}");
    }
    let redaction = Redaction::none().with_field("pin code", "PIN").with_field("ключ", "ключ");
    let redaction = redaction.with_field("x", "_-");
    assert_eq!(
        apply(&redaction, json!({"card_pin": 1, "spin": 2, "pins": 3, "мой_ключ": 4, "x": 5})),
        json!({"card_pin": mark("pin_code", "1"), "spin": 2, "pins": 3, "мой_ключ": mark("____", "4"), "x": 5}),
    );
    // The rule that was added last decides the kind of a name.
    let redaction = Redaction::standard().with_field("mine", "token");
    assert_eq!(apply(&redaction, json!({"my_token": "a"})), json!({"my_token": mark("mine", "a")}));
    assert_eq!(apply(&Redaction::none(), json!({"password": "a"})), json!({"password": "a"}));
}

#[test]
fn a_wrong_pattern_is_refused() {
    let error = Redaction::standard().with_pattern("mine", "(").unwrap_err();
    assert!(error.to_string().starts_with("the pattern of rule `mine` is not a regular expression: "), "{error}");
}

#[test]
fn rules_are_not_shown() {
    let redaction = Redaction::none().with_pattern("mine", "hunter2").unwrap().with_field("pin", "pin_of_me");
    assert_eq!(format!("{redaction:?}"), r#"Redaction { kinds: ["mine", "pin"], .. }"#);
}

#[test]
fn the_prefilter_lets_ordinary_records_pass() {
    let redaction =
        Redaction::standard().with_field("pin", "pin").with_pattern("badge", r"badge-(?<secret>\d+)").unwrap();
    for body in [
        json!({"data": {"tool_name": "bash", "tool_input": {"command": "cargo test"}, "tool_call_id": "call_01",
            "session_id": "550e8400-e29b-41d4-a716-446655440000", "timestamp": "2026-04-14T12:00:07.123456Z"},
            "decision": "continue", "hooks": [{"hook": "guard", "answer": "continue", "took_ns": 1_234_567}]}),
        json!({"hook": "git_status", "answer": "inject_context", "took_ns": 81234, "role": "system", "fate": "kept",
            "text": "On branch main, 3 files changed.", "tokens": 12, "bytes": 40, "placement": "append",
            "suppressed_output": false, "error": null, "reason": "the working tree is dirty"}),
        json!({"prompt": "May the agent run `ls`?", "options": ["Allow once", "Allow always", "Deny"], "timeout": 300.0,
            "model": "claude-opus-4-5", "usage": {"input_tokens": 1200, "output_tokens": 300, "max_tokens": 4096}}),
        json!({"blob": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "bytes": 123_456}),
        json!({"url": "https://example.org:8080/a", "path": "/home/me/secret/token.txt"}),
        json!({"time_ns": 1_776_168_007_123_456_789_u64, "time_us": 1_776_168_007_123_456_u64}),
        json!({"text": "The token is in prose, with a password and a secret; see task-42 and Asia."}),
    ] {
        assert!(!redaction.could_match(&ascii_json(&body)), "{body}");
    }
}

#[test]
fn the_prefilter_knows_what_a_pattern_requires() {
    for (pattern, text, other) in [
        ("acme-[a-z]+", "acme-x", "acme_x"),
        ("(?<secret>acme-[a-z]+)", "acme-x", "acme_x"),
        (r"acme\.key=(\w+)", "acme.key=1", "acme-key=1"),
        ("(?:one|two)-three", "one-three", "one-thre"),
        ("a?bcde+", "bcde", "bcd"),
        ("abc{2}def", "abccdef", "abccde"),
        ("[^]abc]wxyz", "-wxyz", ""),
        ("abc|defg", "abc", ""),
        ("(abc)?defg", "defg", "abc"),
        ("(?i)plural", "PlUrAl", "plura"),
        (r"\x61bcd", "abcd", ""),
        (r"[[:alpha:]]{3}1234", "abc1234", ""),
        ("ab**cdef", "acdef", ""),
        ("x\"yzw", "x\"yzw", "x\"yz"),
        ("(?x) a b c d", "abcd", ""),
        (r"\babcd\b", "abcd", "abc"),
        (r"\b{start}abcd", "abcd", "abc"),
        ("abcabcd", "abcabcabcd", "abcabca"),
        (r"a\nbcde", "a\nbcde", "abcd"),
    ] {
        let redaction = Redaction::none().with_pattern("mine", pattern).unwrap();
        assert_ne!(apply(&redaction, json!(text)), json!(text), "{pattern}");
        assert!(other.is_empty() || !redaction.could_match(&ascii_json(&json!(other))), "{pattern}");
    }
    // More rules than the fast searcher takes, and literals that begin alike.
    let many = (0..100).fold(Redaction::standard(), |all, n| {
        all.with_pattern("mine", &format!("mine{n}x+")).unwrap().with_field("mine", &format!("f{n}on"))
    });
    // One literal begins with another, whose check fails.
    let learn =
        Redaction::standard().with_pattern("mine", "sk-learn").unwrap().with_pattern("mine", "auth on").unwrap();
    for text in ["sk-learn", "auth on"] {
        assert_ne!(apply(&learn, json!(text)), json!(text));
    }
    for value in [json!("mine7x"), json!("mine77xx"), json!({"f12-on": "a"}), json!("password=a")] {
        assert_ne!(apply(&many, value.clone()), value);
    }
    assert!(!many.could_match(br#"{"text":"mine","f200on":1}"#));
}

#[test]
fn a_secret_is_found_anywhere_in_a_long_record() {
    for length in (480..560).chain(980..1040) {
        let filler = ".".repeat(length);
        for secret in [json!({"x": filler, "passwo_rd": "a"}), json!([filler, "Authorization: Basic abc"])] {
            assert_ne!(apply(&Redaction::standard(), secret.clone()), secret);
        }
    }
}

#[test]
fn equal_secrets_have_equal_markers() {
    let redact = |key: [u8; 32], text: &str| {
        let mut value = json!(format!("password={text}"));
        Redaction::standard().apply(&key, &mut value);
        value
    };
    assert_eq!(redact([1; 32], "one"), redact([1; 32], "one"));
    assert_ne!(redact([1; 32], "one"), redact([1; 32], "two"));
    assert_ne!(redact([1; 32], "one"), redact([2; 32], "one"));
}

#[test]
fn long_text_takes_no_longer_than_its_length() {
    let size = 60_000;
    for part in [
        random(64),
        "a",
        "7",
        "-",
        "_",
        " ",
        "ask-",
        "sk-",
        "token:",
        "token:.",
        "token=",
        "password:(",
        "password: ",
        "--token ",
        "://",
        "://a:",
        "ey",
        "eyJ",
        "[redacted kind=",
        "4111 ",
        "4111-1111-1111-1112 ",
        "authorization: bearer ",
        "\\",
        "\\\"",
        concat!("-----BEG", "IN PRIVATE KEY-----"),
        "password='",
        "é",
        "cookie:a=",
        "secret=x ",
    ] {
        let begin = Instant::now();
        let text = part.repeat(size / part.len());
        apply(&Redaction::standard(), json!({"a": text, "b_token": text}));
        assert!(begin.elapsed() < Duration::from_secs(5), "{part} took {:?}", begin.elapsed());
    }
}
