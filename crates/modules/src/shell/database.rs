//! Destructive statements to databases.

use super::command::{Command, Stdin};
use super::word::Word;

const REDIS: &[&str] = &["flushall", "flushdb", "del", "unlink", "shutdown", "eval", "config"];

const MONGO: &[&str] =
    &["dropdatabase(", ".drop(", "deletemany(", ".remove({})", "dropindexes(", "dropuser(", "deleteone({})"];

/// Returns the reason if a database command deletes.
pub(super) fn destroys(name: &str, command: &Command) -> Option<&'static str> {
    let found = match name {
        "redis-cli" => {
            let word = |text: &str| REDIS.contains(&text.to_ascii_lowercase().as_str());
            let is_read = command.texts().any(|text| text.eq_ignore_ascii_case("get"))
                && !command.texts().any(|text| text.eq_ignore_ascii_case("del"));
            command.texts().any(word) && !is_read
        }
        "mongo" | "mongosh" => statements(command).any(|text| {
            let text = text.to_ascii_lowercase();
            MONGO.iter().any(|call| text.contains(call))
        }),
        "psql" | "mysql" | "mariadb" | "sqlite3" | "sqlcmd" | "clickhouse-client" | "duckdb" | "cqlsh" | "bq"
        | "snowsql" | "pgcli" | "mycli" | "litecli" | "usql" | "cockroach" | "isql" | "influx" => {
            statements(command).any(deletes)
        }
        _ => return None,
    };
    found.then_some("deletes from a database")
}

fn statements(command: &Command) -> impl Iterator<Item = &str> {
    command.arguments().iter().map(|word: &Word| word.raw.as_str()).chain(match &command.stdin {
        Stdin::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

/// Returns `true` if a program contains an SQL statement that drops or empties a table.
pub(super) fn drops(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
    words.windows(2).any(|pair| {
        matches!(
            pair,
            ["drop", "table" | "database" | "schema" | "keyspace" | "collection"]
                | ["truncate", "table"]
                | ["delete", "from"]
        )
    })
}

/// Returns `true` if a text contains an SQL statement that deletes.
pub(super) fn deletes(text: &str) -> bool {
    text.split(';').any(|statement| {
        let words: Vec<String> = statement
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        // A condition that is always true limits nothing.
        let is_limit = |at: usize| {
            !matches!(words.get(at + 1).map(String::as_str), Some("true"))
                && (words.get(at + 1) != words.get(at + 2) || words.get(at + 1).is_none())
        };
        let is_limited = words.iter().enumerate().any(|(at, word)| word == "where" && is_limit(at));
        let first = words.first().map(String::as_str);
        words.windows(2).any(|pair| match (pair[0].as_str(), pair[1].as_str()) {
            (
                "drop",
                "table" | "database" | "schema" | "view" | "index" | "user" | "role" | "sequence" | "function"
                | "trigger" | "type" | "owned" | "keyspace" | "materialized" | "column" | "constraint" | "tablespace"
                | "bucket" | "measurement" | "series" | "extension",
            ) => true,
            ("delete", "from") => !is_limited,
            ("truncate", _) => true,
            _ => false,
        }) || first == Some("update") && words.iter().any(|word| word == "set") && !is_limited
    })
}
