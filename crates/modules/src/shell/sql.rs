//! Requests to databases that only read: one statement without side effects, with options that are all known.

use super::fetch;
use super::options::Syntax;

/// Clients of databases: the options, and those whose value is a statement. Without such an option, the second operand is one.
struct DatabaseClient {
    programs: &'static [&'static str],
    syntax: Syntax,
    statement: &'static [&'static str],
}

const CLIENTS: [DatabaseClient; 4] = [
    DatabaseClient {
        programs: &["sqlite3"],
        syntax: Syntax {
            short: "",
            long: "ascii bail batch box column csv header html json line list markdown noheader nullvalue: quote readonly separator: table tabs",
        },
        statement: &[],
    },
    DatabaseClient {
        programs: &["duckdb"],
        syntax: Syntax {
            short: "c:s:",
            long: "ascii box column csv header json line list markdown noheader readonly table",
        },
        statement: &["-c", "-s"],
    },
    DatabaseClient {
        programs: &["psql"],
        syntax: Syntax {
            short: "1AEF:Stxqwd:h:p:U:c:",
            long: "command: csv dbname: expanded host: no-align no-password no-psqlrc port: quiet tuples-only username:",
        },
        statement: &["-c", "--command"],
    },
    DatabaseClient {
        programs: &["mysql", "mariadb"],
        syntax: Syntax {
            short: "BD:Nte:h:p::P:u:",
            long: "batch column-names database: execute: host: port: skip-column-names table user:",
        },
        statement: &["-e", "--execute"],
    },
];

/// Commands of `redis-cli` that read.
#[rustfmt::skip]
const REDIS: &[&str] = &[
    "dbsize", "exists", "get", "hexists", "hget", "hgetall", "hkeys", "hlen", "hmget", "hscan", "hvals", "info", "keys", "lindex", "llen", "lrange",
    "mget", "ping", "pttl", "scan", "scard", "sismember", "smembers", "sscan", "strlen", "ttl", "type", "xinfo", "xlen", "xrange", "zcard", "zcount",
    "zrange", "zrank", "zrevrange", "zscan", "zscore",
];

/// Functions without side effects.
#[rustfmt::skip]
const FUNCTIONS: &[&str] = &[
    "abs", "array_agg", "array_length", "avg", "bool_and", "bool_or", "cast", "ceil", "ceiling", "char_length", "coalesce", "concat", "concat_ws",
    "corr", "count", "cume_dist", "date", "date_diff", "date_part", "date_trunc", "datetime", "dense_rank", "exp", "extract", "first", "first_value",
    "floor", "format", "generate_series", "glob", "greatest", "group_concat", "hex", "if", "ifnull", "iif", "initcap", "instr", "isnull", "json",
    "json_agg", "json_array_length", "json_each", "json_extract", "jsonb_agg", "julianday", "lag", "last", "last_value", "lead", "least", "left",
    "length", "ln", "log", "lower", "lpad", "ltrim", "max", "median", "min", "mod", "mode", "month", "now", "ntile", "nullif", "octet_length",
    "parquet_metadata", "parquet_schema", "percent_rank", "percentile_cont", "pg_database_size", "pg_relation_size", "pg_size_pretty",
    "pg_table_size", "pg_total_relation_size", "position", "power", "quantile", "quantile_cont", "random", "range", "rank", "read_csv",
    "read_csv_auto", "read_json", "read_json_auto", "read_parquet", "replace", "reverse", "right", "round", "row_number", "rpad", "rtrim",
    "split_part", "sqlite_version", "sqrt", "stddev", "strftime", "string_agg", "strptime", "substr", "substring", "sum", "time", "to_char",
    "to_date", "to_timestamp", "total", "trim", "trunc", "typeof", "unixepoch", "unnest", "upper", "variance", "version", "year",
];

/// Words before a bracket that are no functions.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "all", "analyze", "and", "any", "as", "between", "bigint", "by", "case", "char", "decimal", "distinct", "else", "except", "exists", "explain",
    "filter", "from", "group", "having", "in", "int", "integer", "intersect", "interval", "join", "like", "limit", "materialized", "not", "numeric",
    "on", "or", "order", "over", "partition", "recursive", "select", "set", "some", "then", "union", "using", "values", "varchar", "when", "where",
    "with", "within",
];

/// Words of statements that change something.
#[rustfmt::skip]
const CHANGES: &[&str] = &[
    "alter", "attach", "call", "copy", "create", "delete", "detach", "do", "drop", "execute", "export", "grant", "import", "insert", "install",
    "into", "load", "lock", "merge", "prepare", "refresh", "reindex", "replace", "reset", "revoke", "set", "truncate", "update", "upsert", "vacuum",
];

/// Returns `true` if a client of a database only reads.
pub(super) fn is_query(name: &str, arguments: &[&str]) -> bool {
    if name == "redis-cli" {
        return reads_redis(arguments);
    }
    let Some(client) = CLIENTS.iter().find(|client| client.programs.contains(&name)) else { return false };
    let (mut statements, mut operands, mut words) = (Vec::new(), Vec::new(), arguments.iter());
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            operands.push(*word);
            continue;
        }
        // The options of `sqlite3` and `duckdb` have one hyphen.
        let long = format!("--{}", word.trim_start_matches('-'));
        let takes_next = client.syntax.takes_next(word).or_else(|| client.syntax.takes_next(&long));
        let value = match takes_next {
            None => return false,
            Some(true) => words.next().copied(),
            Some(false) => word.split_once('=').map(|(_, value)| value),
        };
        let option = word.split('=').next().unwrap_or(word);
        match value {
            Some(statement) if client.statement.contains(&option) => statements.push(statement),
            Some(host) if matches!(option, "-h" | "--host") && !fetch::is_loopback(host) => return false,
            Some(database) if matches!(option, "-d" | "--dbname" | "-D" | "--database") => operands.push(database),
            _ => {}
        }
        // A statement in a group of options, as in `-Atc`, or a host behind its letter.
        if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-') && rest.len() > 1)
            && client.syntax.takes_next(word).is_some()
        {
            match (letters.chars().last(), value) {
                (Some('c' | 'e'), Some(statement)) if takes_next == Some(true) => statements.push(statement),
                _ if letters.contains(['h', 'c', 'e']) => return false,
                _ => {}
            }
        }
    }
    let is_database = |operand: &str| match operand.split_once("://") {
        Some((_, rest)) => fetch::host(rest).is_some_and(|host| fetch::is_loopback(&host)),
        None => !operand.contains("host="),
    };
    if client.statement.is_empty() {
        statements.extend(operands.get(1..).unwrap_or_default());
        operands.truncate(1);
    }
    !statements.is_empty()
        && operands.iter().all(|operand| is_database(operand))
        && statements.iter().all(|text| only_reads(name, text))
}

fn reads_redis(arguments: &[&str]) -> bool {
    let syntax = Syntax { short: "h:p:n:", long: "raw no-raw csv json" };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match syntax.takes_next(word) {
            _ if !word.starts_with('-') => return REDIS.contains(&word.to_ascii_lowercase().as_str()),
            Some(true) => {
                let Some(value) = words.next() else { return false };
                if *word == "-h" && !fetch::is_loopback(value) {
                    return false;
                }
            }
            Some(false) if word.starts_with("--") => {}
            _ => return false,
        }
    }
    false
}

/// Returns `true` if a statement, or a command of the client, only reads.
fn only_reads(client: &str, text: &str) -> bool {
    let text = text.trim();
    let is_plain = |text: &str, others: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c));
    match client {
        "sqlite3" if text.starts_with('.') => {
            const COMMANDS: [&str; 8] =
                [".tables", ".schema", ".indexes", ".indices", ".databases", ".dbinfo", ".mode", ".headers"];
            let name = text.split(' ').next().unwrap_or_default();
            return COMMANDS.contains(&name) && is_plain(text, "._% ");
        }
        "psql" if text.starts_with('\\') => {
            let rest = text.get(1..).unwrap_or_default();
            return (rest.starts_with('d') || matches!(rest, "l" | "l+" | "x" | "conninfo")) && is_plain(rest, "_.*+ ");
        }
        _ => {}
    }
    let Some(bare) = without_strings(text) else { return false };
    let statement = bare.trim().trim_end_matches(';').trim_end().to_ascii_lowercase();
    let words: Vec<&str> =
        statement.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let reads = match words.first() {
        Some(&("select" | "with" | "explain" | "show" | "values" | "from" | "summarize" | "describe" | "desc")) => true,
        Some(&"pragma") => {
            const PRAGMAS: [&str; 6] =
                ["table_info", "table_xinfo", "index_list", "foreign_key_list", "database_list", "integrity_check"];
            return words.get(1).is_some_and(|name| PRAGMAS.contains(name)) && is_plain(&statement, "_() ");
        }
        _ => false,
    };
    // `replace` is a function, too.
    let changes = |word: &&str| CHANGES.contains(word) && *word != "replace";
    reads && !statement.contains(';') && !words.iter().any(changes) && calls_only_known(&statement)
}

/// Returns `true` if only known functions are called.
fn calls_only_known(statement: &str) -> bool {
    statement.match_indices('(').all(|(at, _)| {
        let before = statement.get(..at).unwrap_or_default().trim_end();
        let begin = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        let name = before.get(begin..).unwrap_or_default();
        // A qualified function, or one in quotes, may be any.
        let is_bare = !before.get(..begin).is_some_and(|rest| rest.ends_with(['.', '"', '`']));
        let is_quoted = before.ends_with(['"', '`', ']']);
        !is_quoted && (name.is_empty() || is_bare && (FUNCTIONS.contains(&name) || KEYWORDS.contains(&name)))
    })
}

/// Returns a statement without the text in single quotes; `None` if it has comments or escapes, or an odd name in double quotes.
fn without_strings(text: &str) -> Option<String> {
    if text.contains(['\\', '`']) || ["--", "/*", "$$", "://", "#"].iter().any(|mark| text.contains(mark)) {
        return None;
    }
    let (mut bare, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['\'', '"']) {
        let (before, quoted) = rest.split_at(at);
        let quote = quoted.get(..1)?;
        let (inner, after) = quoted.get(1..)?.split_once(quote)?;
        let is_name = inner.chars().all(|c| c.is_alphanumeric() || "_ -".contains(c));
        if quote == "\"" && !is_name {
            return None;
        }
        bare.push_str(before);
        bare.push_str(if quote == "'" { "''" } else { "\"\"" });
        rest = after;
    }
    bare.push_str(rest);
    Some(bare)
}
