//! Whoever can write to the terminal, run a command or serve tools tries to answer an approval request in place of the person: with the real
//! program in a real tmux. Nobody succeeds. The way through a browser is tried in `crates/server/tests/console/profile.test.mjs`.

#![cfg(target_os = "linux")]

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{LIMIT, Place, Running};

/// What stands below a question that waits.
const WAITS: &str = "press 1–3, d · / denies";
const TOO_QUICK: &str = "keys arrived too quickly; press 1–";
const ATTACK: &str = include_str!("self_approval/attack.py");

/// What makes a terminal send something: colours, settings, capabilities, what it is, where the cursor is, how large it is, its title, and ENQ.
const QUERIES: [&str; 15] = [
    "\x1b]11;rgb:11/11/11\x1b\\\x1b]11;?\x1b\\",
    "\x1b]10;rgb:11/11/11\x1b\\\x1b]10;?\x07",
    "\x1b]4;1;rgb:11/11/11\x1b\\\x1b]4;1;?\x1b\\",
    "\x1bP$q q\x1b\\",
    "\x1bP$qm\x1b\\",
    "\x1bP+q544e\x1b\\",
    "\x1b[c",
    "\x1b[>c",
    "\x1b[=c",
    "\x1b[>q",
    "\x1b[5n",
    "\x1b[6n",
    "\x1b[18t",
    "\x1b]2;1\x07\x1b[21t",
    "\x05",
];

/// Waits until something is there, and gives it.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "this never happens: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A tmux of its own with one window.
struct Tmux<'a> {
    place: &'a Place,
}

impl<'a> Tmux<'a> {
    /// Runs a script in the workspace.
    fn start(place: &'a Place, script: &str) -> Self {
        place.write("start.sh", script);
        let tmux = Self { place };
        // The window stays when the program has ended.
        let shell = "sh ../start.sh; echo \"code: $?\"; exec sleep 600";
        tmux.run(&["-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "45", shell]);
        tmux
    }

    /// Runs the program. It begins when there is a file `known.json`, and leaves its process id and its terminal in the place.
    /// Another script runs before that.
    fn amplifier(place: &'a Place, before: &str, arguments: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_amplifier");
        let script = format!(
            "tty > ../tty; echo $$ > ../pid; until test -e known.json; do sleep 0.02; done
             export AMPLIFIER_HOME='{}' AMPLIFIER_SCRIPT='{}' TERM=xterm NO_COLOR=1
             {before}
             exec '{program}' {arguments}",
            place.at("home").display(),
            place.at("script.json").display(),
        );
        Self::start(place, &script)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.place.at("tmux")).args(arguments).current_dir(self.place.at("workspace"));
        tmux.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("LC_ALL", "C.UTF-8");
        let ran = tmux.output().unwrap_or_else(|error| panic!("tmux is needed for this test: {error}"));
        assert!(ran.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    /// Everything that is and was on the screen.
    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p", "-J", "-S", "-3000"])
    }

    fn until(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(begun.elapsed() < LIMIT, "`{text}` did not appear:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn press(&self, keys: &str) {
        self.run(&["send-keys", "-l", "--", keys]);
    }

    /// Writes to the terminal as another process of the same person can.
    fn write(&self, text: &str) {
        let tty = self.run(&["display-message", "-p", "#{pane_tty}"]);
        OpenOptions::new().write(true).open(tty.trim()).unwrap().write_all(text.as_bytes()).unwrap();
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let mut tmux = Command::new("tmux");
        let _ = tmux.arg("-S").arg(self.place.at("tmux")).arg("kill-server").stderr(Stdio::null()).status();
    }
}

fn touch() -> Place {
    Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "when": "Denied by hook", "text": "Then not." },
        { "text": "Done." },
    ]))
}

/// Writes every query to a terminal with an open question, and checks that none is answered.
fn check_queries(tmux: &Tmux, waits: &str) {
    tmux.until(waits);
    for (number, query) in QUERIES.iter().enumerate() {
        // What stands at the top says that tmux has come that far, so that its reply is on its way.
        let marker = format!("query {number} is read");
        tmux.write(&format!("{query}\x1b7\x1b[1;1H{marker}\x1b8"));
        tmux.until(&marker);
        // Two keys at once come after the reply, and never count; that they were ignored is told when all of it was taken.
        tmux.press("xx");
        let screen = tmux.until(TOO_QUICK);
        assert!(!screen.contains('✓'), "{query:?}:\n{screen}");
        // A key that means nothing counts, and takes the remark away.
        tmux.press("x");
        let (begun, mut screen) = (Instant::now(), tmux.screen());
        while screen.contains(TOO_QUICK) || !screen.contains(waits) {
            assert!(begun.elapsed() < LIMIT, "{query:?}:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
            screen = tmux.screen();
        }
    }
}

#[test]
fn tmux_really_replies_to_what_is_asked() {
    let place = touch();
    let tmux = Tmux::start(&place, "stty raw -echo; echo begun; exec cat > replies");
    tmux.until("begun");
    for query in QUERIES {
        tmux.write(query);
    }
    let replies = || String::from_utf8_lossy(&fs::read(place.at("workspace/replies")).unwrap()).into_owned();
    // The size of the window is the last one that it knows.
    until("the last reply", || replies().contains("\x1b[8;").then_some(()));
    for reply in ["\x1b]11;rgb:1111/1111/1111", "\x1b]10;rgb:1111/1111/1111", "\x1b]4;", "\x1b[?1;", "\x1b[>"] {
        assert!(replies().contains(reply), "{reply:?} in {:?}", replies());
    }
}

#[test]
fn no_reply_of_a_real_terminal_answers_an_approval_request() {
    let place = touch();
    place.write("workspace/known.json", "{}");
    let tmux = Tmux::amplifier(&place, "", "run 'Make it'");
    check_queries(&tmux, WAITS);
    assert!(!place.at("workspace/made").exists());
    tmux.press("1");
    tmux.until("✓ allowed once");
    tmux.until("code: 0");
    assert!(place.at("workspace/made").exists());
}

#[test]
fn no_reply_of_a_real_terminal_answers_a_request_of_another_process() {
    let place = touch();
    place.write("workspace/known.json", "{}");
    let tmux = Tmux::amplifier(&place, "", "approvals watch");
    tmux.until("this command runs the server");
    let session = Running::start(place.scripted(&["run", "--serve", "Make it"]));
    check_queries(&tmux, WAITS);
    assert!(!place.at("workspace/made").exists());
    tmux.press("1");
    tmux.until("✓ allowed once");
    assert_eq!(session.end().code, 0);
    assert!(place.at("workspace/made").exists());
}

#[test]
fn no_reply_of_a_real_terminal_trusts_a_project() {
    let place = Place::with(json!([{ "text": "Done." }]));
    fs::create_dir(place.at("workspace/.amplifier")).unwrap();
    place.write("workspace/.amplifier/bundle.yaml", "hooks:\n  - command: 'cat >/dev/null'\n    on: prompt:submit\n");
    place.write("workspace/known.json", "{}");
    let tmux = Tmux::amplifier(&place, "", "run 'Make it'");
    check_queries(&tmux, "press 1–2, n · Esc: not now");
    tmux.press("1");
    tmux.until("✓ Trust");
    tmux.until("code: 0");
}

/// A server of the place, which is ended with it.
struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    fn start(place: &Place) -> Self {
        let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let address = until("the server", || {
            let told = fs::read_to_string(place.at("home/server/address")).ok()?;
            let told: Value = serde_json::from_str(&told).ok()?;
            Some(told["url"].as_str()?.strip_prefix("http://")?.to_owned())
        });
        let token = place.read("home/server/token").trim().to_owned();
        Self { child, address, token }
    }

    /// The open question.
    fn asked(&self) -> Value {
        until("the question", || {
            let mut stream = TcpStream::connect(&self.address).unwrap();
            let (address, token) = (&self.address, &self.token);
            write!(stream, "GET /api/approvals HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n").unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            let body = &reply[reply.find('{')?..=reply.rfind('}')?];
            serde_json::from_str::<Value>(body).ok()?["approvals"].get(0).cloned()
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells the attacker what it may know; it never reads half of it.
fn tell(place: &Place, known: &Value) {
    place.write("workspace/known.new", &known.to_string());
    fs::rename(place.at("workspace/known.new"), place.at("workspace/known.json")).unwrap();
}

fn rounds(place: &Place) -> u32 {
    fs::read_to_string(place.at("workspace/rounds")).map_or(0, |text| text.parse().unwrap())
}

/// `true` if the attacker has ended, or was ended.
fn is_over(lock: &Path) -> bool {
    File::open(lock).is_ok_and(|lock| lock.try_lock().is_ok())
}

/// Lets the attacker try everything while a question is open: nothing is allowed, and then the person denies it. Says how many attempts were made.
fn check_attacker(place: &Place, before: &str) -> usize {
    place.write("workspace/attack.py", ATTACK);
    let server = Server::start(place);
    let tmux = Tmux::amplifier(place, before, "run --serve 'Make it'");
    let told = |name: &str| until(name, || fs::read_to_string(place.at(name)).ok().filter(|text| text.ends_with('\n')));
    let (agent, tty): (u32, String) = (told("pid").trim().parse().unwrap(), told("tty").trim().to_owned());
    let url = format!("http://{}", server.address);
    let mut known = json!({ "agent": agent, "tty": tty, "home": place.at("home"), "url": url, "question": "none", "nonce": "none" });
    tell(place, &known);
    tmux.until("approval needed");
    let question = server.asked();
    (known["question"], known["nonce"]) = (question["id"].clone(), question["nonce"].clone());
    tell(place, &known);

    // The lock is held from then on.
    until("the attacker", || place.at("workspace/begun").exists().then_some(()));
    let (begun, lock) = (rounds(place), place.at("workspace/lock"));
    until("the attacks", || (rounds(place) >= begun + 2 || is_over(&lock)).then_some(()));
    place.write("workspace/stop", "");
    until("the end of the attacks", || is_over(&lock).then_some(()));
    let screen = tmux.until(WAITS);
    assert!(!screen.contains('✓'), "{screen}");
    assert!(!place.at("workspace/pwned").exists());
    tmux.press("3");
    tmux.until("✗ denied");
    tmux.until("code: 3");
    assert!(!place.at("workspace/pwned").exists());
    let decisions = place.amplifier(&["audit", "export", "--kind", "approval_decision"]).fine();
    let by_people: Vec<Value> = decisions
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["body"].clone())
        .filter(|body| body["by"].is_object())
        .collect();
    assert!(by_people.iter().all(|body| body["granted"] == false), "{decisions}");
    let attempts = place.read("workspace/attempts.log");
    assert!(!attempts.contains("browser: 2") && !attempts.contains("token that was found: 2"), "{attempts}");
    attempts.lines().count()
}

fn victim() -> Place {
    Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch pwned" } }] },
        { "when": "Denied by hook", "text": "Then not." },
        { "text": "Done." },
    ]))
}

#[test]
fn no_allowed_command_answers_for_the_person() {
    let place = victim();
    place.rules(json!({ "confirm:Run `python3 attack.py`?": "allow" }));
    let call = json!({ "name": "Bash", "input": { "command": "python3 attack.py", "timeout": 600 } });
    place.write("attack.json", &json!({ "answers": [{ "tools": [call] }, { "text": "Done." }] }).to_string());
    // A session at the same terminal, whose command goes on while the other one asks.
    let before = format!(
        "env -u AMPLIFIER_SCRIPT '{}' run --script ../attack.json Attack </dev/null >../attack.out 2>&1 &",
        env!("CARGO_BIN_EXE_amplifier")
    );
    let attempts = check_attacker(&place, &before);
    eprintln!("a command: {attempts} attempts, 0 approvals");
    assert!(attempts > 100);
}

#[test]
fn no_mcp_server_answers_for_the_person() {
    let place = victim();
    place.write("home/config.toml", "[mcp.attack]\ncommand = \"python3\"\nargs = [\"attack.py\", \"mcp\"]\n");
    let attempts = check_attacker(&place, "");
    eprintln!("an MCP server: {attempts} attempts, 0 approvals");
    assert!(attempts > 100);
}
