//! Hostile commands: texts that repeat or nest one thing up to a size.

/// Beginnings, what is repeated, ends.
#[rustfmt::skip]
const SHAPES: &[(&str, &str, &str)] = &[
    ("echo ", "a", ""), ("echo ", "a ", ""), ("echo ", "$x ", ""), ("echo ", "$x", ""), ("echo ", "\"$x\"", ""), ("echo ", "'a' ", ""),
    ("git ", "$x ", ""), ("git ", "-x ", ""), ("git ", "--x ", ""), ("git ", "-x$y ", ""), ("git ", "x ", ""), ("git -", "x", ""),
    ("git log ", "-x ", ""), ("git log ", "$x ", ""), ("cp ", "-x ", ""), ("cp ", "-$x ", ""), ("cp -", "x", ""), ("rsync ", "--x ", ""),
    ("tar ", "$x ", ""), ("tar ", "f", ""), ("sort ", "-o a ", ""), ("sed -e ", "p -e ", ""), ("rm ", "a ", ""), ("mv ", "a ", ""), ("rm -", "r", ""),
    ("dd ", "of=a ", ""), ("zip ", "-x ", ""), ("ssh ", "-x ", ""), ("ssh a ", "ls; ", ""), ("curl ", "http://x ", ""), ("kubectl ", "-n x ", ""),
    ("psql -c '", "delete from ", "where'"), ("awk '", "{print}", "'"), ("sed '", "p;", "'"), ("printf '", "%s", "'"), ("python -c '", "import os\n", "'"),
    ("", "env ", ""), ("", "env a=1 ", ""), ("", "sudo ", ""), ("", "nice -n 1 ", ""), ("", "timeout 1 ", ""), ("", "xargs ", ""), ("xargs ", "-Ia ", "ls"),
    ("", "time ", ""), ("", "! ", ""), ("", "eval ", ""), ("", "coproc ", ""), ("find . ", "-exec ls \\; ", ""), ("find . -exec ", "find . -exec ", ""),
    ("find . ", "-exec ", ""), ("bash -c '", "ls;", "'"), ("eval '", "ls;", "'"), ("sh -c '", "ls ", "'"), ("watch '", "ls;", "'"), ("", "bash -c ", ""),
    ("echo ", "$(", ""), ("echo ", "$(ls) ", ""), ("echo ", "`ls` ", ""), ("echo ", "\"$(ls)\" ", ""), ("echo ", "<(ls) ", ""), ("echo ", "$((1)) ", ""),
    ("((", "(", ""), ("echo ", "$((x+", ""), ("x=", "${x:-", ""), ("echo ", "${x}", ""), ("echo ${x", "/a", ""), ("echo \"", "${x}", "\""), ("echo \"", "`ls`", "\""),
    ("echo ", "{a,b}", ""), ("echo ", "{a,b} ", ""), ("echo ", "{a,", ""), ("echo ", "@(a)", ""), ("echo ", "*", ""), ("echo ", "* ", ""), ("echo ", "[a] ", ""), ("echo ", "[", ""),
    ("", "a=1;", ""), ("", "a=1 ", ""), ("", "x=$x$x;", ""), ("x=", "$x", ""), ("x=(", "a ", ")"), ("x=(", "$x ", ")"), ("", "x[1]=2 ", ""), ("", "a=(b) ", ""),
    ("export ", "a=1 ", ""), ("declare ", "a=$x ", ""), ("", "ls;", ""), ("", "ls|", ""), ("", "ls&", ""), ("", "ls\n", ""), ("", "ls && ", ""), ("", "\n", ""), ("", "#\n", ""),
    ("ls ", ">a ", ""), ("ls ", "<a ", ""), ("ls ", "2>&1 ", ""), ("ls ", "> ", ""), ("", ">", ""), ("", "<", ""), ("", ">>>> ", ""), ("", ">>> ", ""), ("cat ", "<<A ", ""),
    ("", "cat <<A\nA\n", ""), ("cat <<A\n", "x\n", "A"), ("cat <<A\n", "$(ls)\n", "A"), ("cat <<A\n", "$x\n", "A"), ("cat <<A\n", ">>> ", "\nA"), ("cat <<A\n", "\\", "\nA"),
    ("echo $(", "cat <<A\nA\n", ")"), ("echo $(", "'a' ", ")"), ("echo `", "ls ", "`"), ("echo ", "\\", ""), ("ls", " \\\n", ""), ("'", "a", ""), ("\"", "a", ""), ("`", "a", ""),
    ("", "(", ""), ("", "( ls; ", ""), ("", "{ ", ""), ("", "if ls; then ", ""), ("", "case a in ", ""), ("case a in ", "a) ls;; ", "esac"), ("", "f() { ls; };", ""),
    ("", "function f { ", ""), ("for i in ", "a ", "; do ls; done"), ("", "for i in a; do ", ""), ("[[ ", "a && ", "a ]]"), ("[[ ", "! ", "a ]]"), ("[[ ", "( ", "a ]]"),
    ("git checkout ", "a ", ""), ("git checkout ", "-- ", ""), ("tool ", "rm ", ""), ("tool ", "delete ", ""), ("docker ", "rm ", ""), ("kubectl ", "get ", ""),
    ("tool ", "/dev/x ", ""), ("chattr -R ", "+i ", ""), ("", "cd a;", ""), ("", "cd a && ", ""), ("cd ", "../", ""), ("", "f() { cd a; };", ""), ("", "f() { cd a; }; f;", ""),
    ("", "echo ls > a; sh a;", ""), ("", "curl -o a x; sh a;", ""), ("python3 ", "<(curl x) ", ""), ("python3 ", "-c 'x' ", ""), ("bash ", "-c 'ls' ", ""), ("perl ", "-e x ", ""),
    ("awk '", "|", "'"), ("awk '", "> \"a\" ", "'"), ("awk '", "system(\"ls\");", "'"), ("awk '", "\"ls\" | getline;", "'"), ("awk '", "\"", "getline|'"),
    ("python -c '", "system", "'"), ("python -c '", "rm ", "'"), ("perl -e '", "|>", "'"), ("sed -i '", "d;", "' a"), ("sed -i '", "1,$d\n", "' a"), ("sed -i '", "{", "' a"),
    ("sed -i '", "s/.*//;", "' a"), ("sed -i '", "s", "' a"), ("sed -i ", "-e d ", "a"), ("sed '", "e ls\n", "'"), ("x='", "[", "'; ((x))"), ("x='", "[a]", "'; ((x))"), ("x='", "$(", "'; ((x))"),
    ("x='a[", "$((", "'; ((x))"), ("x='a[", "$((1+", "'; ((x))"), ("x=\"[", "$(ls)", "\"; ((x))"), ("x=\"[", "`ls`", "\"; ((x))"), ("x=\"[", "${a[1]}", "\"; ((x))"),
    ("", "x=[$y;", ""), ("x=1;", "echo $x;", ""), ("x=1;", "rm $x;", ""), ("rm ", "\"$x\" ", ""), ("x=1; rm ", "$x/a ", ""),
    ("python -c '", "Delete", "'"), ("python -c '", ".deleteA", "'"), ("python -c '", "write_text(", "'"), ("python -c '", "x.delete(", "'"), ("python -c '", "truncate(", "'"),
    ("python -c '", "drop table ", "execute'"), ("perl -pi -e '", "$_=\"\"", "' a"), ("perl -pi -e '", "s/.*//", "' a"), ("vim -c '", "%d|", "' a"), ("gawk -i inplace '", "1", "' a"),
    ("cat ", "a ", "> a"), ("cat ", ">a a ", ""), ("", "cat a | ", "tee a"), ("cat a | tee ", "a ", ""), ("find . ", "-fprint a ", ""), ("curl ", "-o a ", ""), ("git push a ", "+b ", ""),
    ("psql -c '", "delete from where 1=1 ", "'"), ("tool ", "--delete-a ", ""), ("tool 'drop ", "drop table ", "'"), ("make ", "a=rm ", ""), ("cmake ", "-E ", ""),
    ("", "]", ""), ("", "}", ""), ("", "$", ""), ("", "=", ""), ("", "-", ""), ("", ";", ""), ("", "&", ""), ("", "|", ""), ("echo ", "é", ""), ("echo ", "$'a' ", ""),
];

/// What text is put into, several times over.
const NESTS: [(&str, &str); 8] = [
    ("$(", ")"),
    ("`", "`"),
    ("( ", " )"),
    ("((", "))"),
    ("\"$(", ")\""),
    ("${x:-", "}"),
    ("<(", ")"),
    ("if ls; then ", "; fi"),
];

/// All of them, about `size` bytes long each.
pub(crate) fn of_size(size: usize) -> Vec<String> {
    let mut texts = Vec::new();
    for (begin, repeated, end) in SHAPES {
        let count = (size - begin.len() - end.len()) / repeated.len();
        texts.push(format!("{begin}{}{end}", repeated.repeat(count)));
    }
    for (open, close) in NESTS {
        for (depth, filling) in [(5, "'a' "), (20, "a"), (60, "a"), (60, "$x "), (60, "ls;")] {
            let count = (size - 60 * 20) / filling.len();
            texts.push(format!("echo {}{}{}", open.repeat(depth), filling.repeat(count), close.repeat(depth)));
        }
    }
    let files: String = (0..size / 8).map(|number| format!(" f{number:05}")).collect();
    for program in ["rm", "rm -rf", "git checkout", "git restore", "tool delete", "sed -i d"] {
        texts.push(format!("{program}{files}"));
    }
    texts.push(format!("curl{}", files.replace(" f", " x/")));
    let each = |write: fn(usize) -> String| (0..size / 24).map(write).collect::<String>();
    texts.push(each(|number| format!("v{number:05}=a;")) + &each(|number| format!("rm $v{number:05};")));
    texts.push(each(|number| format!("cd d{number:05};")));
    texts.push(each(|number| format!("ls>f{number:05};")) + &each(|number| format!("sh f{number:05};")));
    texts.push(each(|number| format!("f{number:05}()(ls);")) + &each(|number| format!("f{number:05};")));
    texts
}
