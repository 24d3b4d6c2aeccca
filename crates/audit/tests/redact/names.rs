//! Secrets that only a name tells, and code that names secrets.

use amplifier_audit::Redaction;
use serde_json::json;

use super::{KEY, apply, base64, check, marker, random};

const HEX: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";

#[test]
fn keys_without_a_form_are_found_by_their_names() {
    let (long, short) = (format!("{}==", base64(86)), random(40));
    for name in ["AZURE_OPENAI_KEY", "AZURE_KEY", "AZURE_SEARCH_KEY", "COSMOS_KEY", "azureOpenAiKey"] {
        for value in [HEX, short] {
            check(&format!("export {name}="), "azure_key", value, " && az login");
            check(&format!("{name}: \""), "azure_key", value, "\"");
            let field = json!({name: value});
            assert_eq!(apply(&Redaction::standard(), field), json!({name: marker(&KEY, "azure_key", value)}));
        }
    }
    check("AZURE_STORAGE_KEY=", "azure_key", HEX, "");
    check("COSMOS_KEY=", "azure_key", &long, "");
    for (before, value, after) in [
        ("primaryKey: '", HEX, "'"),
        ("\"secondaryKey\": \"", long.as_str(), "\","),
        ("\"key1\": \"", long.as_str(), "\","),
        ("\"key2\": \"", HEX, "\"}"),
        ("{\\\"key1\\\": \\\"", HEX, "\\\"}"),
        ("<PrimaryKey>", long.as_str(), "</PrimaryKey>"),
        ("|  PrimaryKey |  ", long.as_str(), "  |"),
        ("ENCRYPTION_KEY=", HEX, "\n"),
        ("line\\nSIGNING_KEY=", HEX, ""),
        ("signing-key = ", short, ".\n"),
        ("--encryption-key=", short, ""),
    ] {
        check(before, "key", value, after);
    }
    // In results of tools that are JSON.
    let keys = json!({"keys": [{"key1": HEX, "keyName": "key1"}]});
    let expected = json!({"keys": [{"key1": marker(&KEY, "key", HEX), "keyName": "key1"}]});
    assert_eq!(apply(&Redaction::standard(), keys), expected);
}

#[test]
fn values_of_pairs_are_found_by_the_name() {
    let aws = format!("{}/+{}", random(20), random(18));
    for (before, kind, value, after) in [
        ("- name: AWS_SECRET_ACCESS_KEY\n  value: ", "aws_secret_access_key", aws.as_str(), "\n- name: X"),
        ("- name: AWS_SECRET_ACCESS_KEY\r\n  value: \"", "aws_secret_access_key", &aws, "\"\n"),
        ("{\"name\":\"AWS_SECRET_ACCESS_KEY\",\"value\":\"", "aws_secret_access_key", &aws, "\"}"),
        ("{\\\"name\\\":\\\"DB_PASSWORD\\\",\\\"value\\\":\\\"", "password", "two words", "\\\"}"),
        ("{\n  \"name\": \"DB_PASSWORD\",\n  \"value\": \"", "password", "swordfish", "\"\n}"),
        ("{\\n\\t\\\"name\\\": \\\"TOKEN\\\",\\n\\t\\\"value\\\": \\\"", "token", "abc", "\\\"\\n}"),
        ("- name: DB_PASSWORD\n\tvalue: ", "password", "my_password", "\n"),
        ("{name: api-token, value: ", "token", "abc", "}"),
        ("set {\n  name  = \"db.password\"\n  value = \"", "password", "swordfish", "\"\n"),
        ("- name: ENCRYPTION_KEY\n  value: ", "key", HEX, "\n"),
        ("\"Name\": \"AZURE_OPENAI_KEY\", \"Value\": \"", "azure_key", HEX, "\""),
    ] {
        check(before, kind, value, after);
    }
    for text in [
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: database",
        "- name: DB_PASSWORD\n  value: $(DATABASE_PASSWORD)",
        "{\"type\": \"token\", \"value\": \"name\"}",
        "- name: TOKEN_URL\n  value: https://example.org",
        "- name: CACHE_KEY\n  value: 0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    ] {
        assert_eq!(apply(&Redaction::standard(), json!(text)), json!(text));
    }
}

#[test]
fn temporary_credentials_are_found_in_xml_and_tables() {
    let secret = format!("{}/+{}", random(20), random(18));
    for (before, after) in [
        ("<SecretAccessKey>", "</SecretAccessKey>"),
        ("|  SecretAccessKey |  ", "  |\n"),
        ("|| SecretAccessKey  | ", " ||"),
    ] {
        check(before, "aws_secret_access_key", &secret, after);
    }
    let token = format!("{}{}==", concat!("IQoJ", "b3JpZ2lu"), base64(60));
    check("<SessionToken>", "aws_session_token", &token, "</SessionToken>");
    check("|  SessionToken |  ", "aws_session_token", &token, "  |");
}

#[test]
fn values_of_other_keys_stay() {
    let code = [
        "cacheKey: \"0a1b2c3d4e5f60718293a4b5c6d7e8f9\"",
        "CACHE_KEY=0a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "GPG_KEY=E3FF2839C048B25C084DEBE9B26995E310250568",
        "const STORAGE_KEY = \"TheThemeOfTheCurrentUserAndTheirTeamV2\";",
        "cache-key: sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6",
        "host_key: AAAAC3NzaC1lZDI1NTE5AAAAIFw4D5rMkJpH7cXv2Qb8yZt0LuEaS6nW3kR1oGfTq9dV",
        "PUBLIC_KEY=Zk3vQ9mT7xLr2WnB8yHc5JpD4sGf6RaE1uKoViNq",
        "my-public-key = \"Zk3vQ9mT7xLr2WnB8yHc5JpD4sGf6RaE1uKoViNq\"",
        "RECAPTCHA_SITE_KEY=Zk3vQ9mT7xLr2WnB8yHc5JpD4sGf6RaE1uKoViNq",
        "\"key1\": \"value1\"",
        "partition_key = 550e8400-e29b-41d4-a716-446655440000",
        "key: \"0a1b2c3d4e5f60718293a4b5c6d7e8f9\"",
        "objectKey: uploads/2026/the-report-of-the-second-quarter",
    ];
    let redacted = code.map(|text| apply(&Redaction::standard(), json!(text)));
    assert_eq!(redacted, code.map(|text| json!(text)));
}

#[test]
fn code_that_names_a_secret_stays() {
    let code = [
        "password = var.db_password",
        "connect(password=config.password)",
        "user, password=self.password,",
        "if password == user.password_hash:",
        "OAuth(client_id=client_id, client_secret=client_secret, scope=scope)",
        "      password: !Ref DatabasePassword",
        "  MasterUserPassword: !Sub '{{resolve:x}}'",
        "token: process.env.TOKEN",
        "password: process.env.DB_PASSWORD,",
        "password=password)",
        "password = db_password",
        "password: dbPassword,",
        "password => $password,",
        "$this->password = $password;",
        "'password' => $config->password,",
        "password=settings.DB_PASS",
        "password=os.environ['DB_PASSWORD']",
        "password=os.environ.get('X')",
        "token=get_token()",
        "secret=fetch_secret(name)",
        "api_key=settings.api_key,",
        "api_key = module.search.primary_key",
        "secret_key = data.vault_generic_secret.app.secret_key",
        "password = user?.password",
        "password: *password,",
        "password: @password",
        "password=$db_pass",
        "$password = $env:DB_PASS",
        "DB_PASSWORD=$db_password",
        "DB_PASSWORD=$AdminPassword",
        "DB_PASSWORD=config.password",
        "TOKEN=os.environ['TOKEN']",
        "token=data.oauth2_token",
        "if password == user.password2:",
        "secret=get_secret(name).value,",
        "token=tokens[0].get(user)[1])",
        "password: !vault |",
        "password: !reference [.db, password]",
        "password: HashedPassword,",
    ];
    let redacted = code.map(|text| apply(&Redaction::standard(), json!(text)));
    assert_eq!(redacted, code.map(|text| json!(text)));
}

#[test]
fn a_password_that_only_looks_like_code_is_redacted() {
    for (before, kind, secret, after) in [
        ("POSTGRES_PASSWORD=", "password", "mysecretpassword", "\n"),
        ("password: ", "password", "secret", "\n"),
        ("PASSWORD=", "password", "correct.horse", ""),
        ("PASSWORD=", "password", "Pa5(s", ""),
        ("PASSWORD=", "password", "!Hunter", ""),
        ("password=", "password", "config.password!1", ""),
        ("password=\"", "password", "config.password", "\""),
        ("token=", "token", "abc.def-1", ""),
        ("DB_PASSWORD=", "password", concat!("$Tr0ub", "4dor"), "\n"),
        ("password: ", "password", concat!("$uper", "Secret99"), "\n"),
        ("password=", "password", concat!("$tr0ub", "4dor"), "\n"),
        ("DB_PASSWORD=", "password", "correct(Horse99)battery", ""),
        ("password=", "password", "correct(Horse99)battery", ""),
        ("password: ", "password", "correct(Horse99)battery", ""),
        ("DB_PASSWORD=", "password", "Horse[9]staple", ""),
        ("password=", "password", "Horse[9]staple", ""),
        ("API_TOKEN=", "token", concat!("user.AbC123xyz", "Q9w8e7r6t5y4u3i2o1p"), ""),
        ("api_token=", "token", concat!("data.A9f83", "kd02lsPq7"), ""),
        ("DB_PASSWORD=", "password", "MyPassword", "\n"),
        ("export DB_PASSWORD=", "password", "SuperSecret", ""),
        ("Server=x;Password=", "password", "SuperSecret", ";Timeout=3"),
        ("DB_PASSWORD=", "password", "my_password", " ./run"),
        ("CLIENT_SECRET=", "secret", "client_secret", "\n"),
        ("password: ", "password", "!thisIsMyVeryLongPassword", "\n"),
    ] {
        check(before, kind, secret, after);
    }
}
