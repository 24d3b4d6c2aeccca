//! Commands to try: most of them nonsense, some of them read differently by two shells.

use serde_json::Value;

use super::numbers::Numbers;
use super::sandbox::Sandbox;

/// Programs that the analysis calls harmless, alone or with some options.
const PROGRAMS: &str = "cat head tail wc ls nl tac rev cut paste tr comm join fold expand unexpand od hexdump strings stat du df \
    basename dirname realpath readlink pwd echo true false id whoami groups uname uptime nproc arch free ps pgrep printenv md5sum \
    sha1sum sha256sum sha512sum b2sum cksum sum cmp grep egrep fgrep seq tty which type jq tsort numfmt factor expr cd test [ printf \
    sort rg fd tree file diff base64 column date hostname uniq sed awk gawk mawk read export declare local typeset readonly find \
    env timeout nice time command builtin stdbuf watch git bash sh dash xargs eval";

const GIT: &str = "status log diff show rev-parse ls-files ls-tree cat-file blame shortlog describe rev-list merge-base grep \
    name-rev for-each-ref count-objects branch tag remote stash worktree reflog config version";

/// What operands and values may be.
#[rustfmt::skip]
const OPERANDS: &[&str] = &[
    "a", "b", "d1", "P", "./P", "src", ".", "HEAD", "-", "--", "d?", "d*", "./d*", "*", "{a,P}", "{a,b}", "$'\\''{d1,P}",
    "\\${a,P}", "$x", "\"$x\"", "$o", "\"$o\"", "a$e", "\"a$e\"", "\"$@\"", "$@", "\"${@:2}\"", "$1", "\"$z\"", "$z", "{} +",
    "{} \\;", "-oP", "-o P", "--output=P", "--output P", "--outp=P", "-o", "1p", "w P", "p", "s/a/b/w P", "'1!d;w P'",
    "'{print > \"P\"}'", "'{print}'", "'BEGIN{system(\"touch P\")}'", "x=1", "y=$y", "'x[$y]=1'", "-c", "'touch P'", "list",
    "show", "get-url", "--get", "-l", "user.name", "\"expire$e\"", "\"add$e\"", "\"user.name$e\"", "'%n'", "PATH",
    "-exec touch P \\;", "| sort", "{x[y]}<a", "-v", "$y", "-R",
];

/// Pieces of which texts are put together that shells may take apart in different ways.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "'", "'", "\"", "\"", "\\", "\\\n", "\\\\", "$'", "$\"", "`", "`", "\\`", "$(", "$(", ")", ")", "$((", "((", "))", "(",
    "[[", "]]", "[", "]", "{", "}", "{ ", "; }", "{}", ",", "..", ";", ";", ";;", ";&", ";;&", "\n", "\n", "#", " #", "<<E\n",
    "<<'E'\n", "<<-E\n", "\nE\n", "<<\\E\n", "<<<", "&", "&&", "||", "&>", "&>>", ">&", "|", "|&", "<(", ">(", ">", ">", ">>",
    "<", "<>", ">|", "2>", "2>&1", ">&2", "10>", "{fd}>", "{PATH}<a", "{x[y]}<a", "P", " P", " ", " ", " ", "\t", "a", "b", "x", "$x", "${x", "${",
    "${x:-", "${x/", "${x%", "${#", "${!x", "${x@P}", "${x[", ":", "-", "=", "+=", "=(", "x=", "x=(", "a[", "]=", "y", "$y",
    "echo ", "echo ", "ls ", "cat ", "touch P", "touch P", "; touch P", "; touch P; #", "\ntouch P\n", "$(touch P)",
    "`touch P`", "> P", "-oP", "sort ", "uniq ", "case a in ", "a) ", "esac", "if ", "then ", "fi", "for x in ", "for x ",
    "do ", "done", "while ", "! ", "time ", "function f ", "f() ",
];

/// Whole constructs with a place for another command.
#[rustfmt::skip]
const FRAMES: &[&str] = &[
    "@ | cat", "@; ls", "ls; @", "( @ )", "{ @; }", "echo $(@)", "echo \"$(@)\"", "echo `@`", "cat <(@)", "if @; then ls; fi",
    "if true; then @; fi", "for i in a b; do @; done", "while read -r l; do @; done < a", "case a in a) @;; esac", "! @",
    "@ && ls", "ls || @", "bash -c '@'", "bash -c \"@\"", "sh -c '@'", "sh -c \"@\"", "eval '@'", "eval \"@\"", "echo '@'",
    "echo \"@\"", "echo $'@'", "echo $\"@\"", "[[ a == '@' ]]", "[[ @ ]]", "[ @ ]", "x=@", "x='@'; ls", "x=(@)",
    "cat <<E\n@\nE", "cat <<'E'\n@\nE", "cat <<-E\n\t@\n\tE", "cat <<<\"@\"", "bash <<'E'\n@\nE", "sh <<< '@'", "echo ${x:-@}",
    "echo \"${x:-@}\"", "echo ${x+'@'}", "echo \\@", "ls # @", "echo $((@))", "find . -exec @ \\;", "env @", "timeout 5 @",
    "@ 2>&1 >/dev/null", "printf '%s' '@'", "export x=@", "time @",
];

#[rustfmt::skip]
const PAYLOADS: &[&str] = &[
    "touch P", "ls > P", "ls", "echo a > P", "[[ a > P ]]", "[ a > P ]", "((a > P))", "uniq a P", "sort -o P a", "cat a",
    "echo a", "x=1",
];

pub(crate) struct Generator {
    numbers: Numbers,
    seeds: Vec<String>,
    /// Programs and commands of `git`, each with its options.
    programs: Vec<(String, Vec<String>)>,
}

impl Generator {
    pub(crate) fn new(seed: u64, sandbox: &Sandbox) -> Self {
        let cases: Vec<Value> = serde_json::from_str(include_str!("../shell/commands.json")).unwrap();
        let seeds = cases.iter().map(|case| case["command"].as_str().unwrap().to_owned()).collect();
        let plain = PROGRAMS.split_whitespace().map(|name| vec![name]);
        let git = GIT.split_whitespace().map(|name| vec!["git", name]);
        let programs = plain.chain(git).map(|words| (words.join(" "), sandbox.options_of(&words))).collect();
        let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        numbers.below(1);
        Self { numbers, seeds, programs }
    }

    pub(crate) fn command(&mut self) -> String {
        match self.numbers.below(10) {
            0..=2 => self.program(),
            3..=4 => self.mutated(),
            5..=6 => self.pieces(),
            _ => self.framed(0),
        }
    }

    /// A program with options and operands that may not belong to it.
    fn program(&mut self) -> String {
        let (name, options) = self.programs[self.numbers.below(self.programs.len())].clone();
        let mut text = name;
        for _ in 0..=self.numbers.below(4) {
            text.push(' ');
            match self.numbers.below(6) {
                0..=1 if !options.is_empty() => {
                    text.push_str(&options[self.numbers.below(options.len())]);
                    text.push_str(pick(&mut self.numbers, &["", "", "", "P", "=P", " P", "=a", " a"]));
                }
                2 => {
                    let letter = self.numbers.below(52);
                    let letter = (if letter < 26 { b'a' } else { b'A' - 26 }) + u8::try_from(letter).unwrap();
                    text.push('-');
                    text.push(char::from(letter));
                    text.push_str(pick(&mut self.numbers, &["", "", "P", " P", "=P", "n", "o"]));
                }
                _ => text.push_str(pick(&mut self.numbers, OPERANDS)),
            }
        }
        text
    }

    /// One of the commands of the test data, or parts of two, with pieces in between.
    fn mutated(&mut self) -> String {
        let mut text: Vec<char> = self.seeds[self.numbers.below(self.seeds.len())].chars().collect();
        for _ in 0..=self.numbers.below(3) {
            let at = self.numbers.below(text.len() + 1);
            match self.numbers.below(5) {
                0 => text.truncate(at),
                1 if at < text.len() => drop(text.remove(at)),
                2 => {
                    let other: Vec<char> = self.seeds[self.numbers.below(self.seeds.len())].chars().collect();
                    let from = self.numbers.below(other.len());
                    text.splice(at..at, other.into_iter().skip(from)).for_each(drop);
                }
                _ => text.splice(at..at, pick(&mut self.numbers, PIECES).chars()).for_each(drop),
            }
        }
        text.into_iter().collect()
    }

    fn pieces(&mut self) -> String {
        let mut text = pick(&mut self.numbers, &["echo ", "echo ", "ls ", "cat a", "", "[[ ", "x="]).to_owned();
        for _ in 0..3 + self.numbers.below(8) {
            text.push_str(pick(&mut self.numbers, PIECES));
        }
        text
    }

    fn framed(&mut self, depth: usize) -> String {
        let inner = match self.numbers.below(6) {
            0..=2 if depth < 3 => self.framed(depth + 1),
            3 => self.program(),
            4 => self.pieces(),
            _ => pick(&mut self.numbers, PAYLOADS).to_owned(),
        };
        let mut text = pick(&mut self.numbers, FRAMES).replace('@', &inner);
        if self.numbers.below(3) == 0 {
            let at = text.char_indices().map(|(at, _)| at).nth(self.numbers.below(text.chars().count())).unwrap_or(0);
            text.insert_str(at, pick(&mut self.numbers, PIECES));
        }
        text
    }
}

fn pick<'a>(numbers: &mut Numbers, items: &[&'a str]) -> &'a str {
    items[numbers.below(items.len())]
}
