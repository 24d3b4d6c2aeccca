//! Receivers of notifications in the configuration file.

use serde_json::json;

use crate::common::Place;

const SECRET: &str = "secret-topic";

#[test]
fn a_receiver_that_cannot_work_stops_the_server_and_its_secret_is_not_shown() {
    for (receiver, problem) in [
        (
            "service = \"ntfy\"\nurl = \"https://ntfy.example/${NO_SUCH_TOPIC}\"",
            "`url` of the notification `ntfy` needs the environment variable `NO_SUCH_TOPIC`, which is not set or not text",
        ),
        (
            "service = \"ntfy\"\nurl = \"https://ntfy.example/secret-topic\"\nname = \"ada\"\nheaders = { X-Key = \"${\" }",
            "`X-Key` of the notification `ntfy` of `ada` has a `${` without a name or without the closing `}`; write `${NAME}`",
        ),
        ("service = \"pigeon\"\nurl = \"https://ntfy.example/secret-topic\"", "`service` of the notification `pigeon`"),
        (
            "service = \"ntfy\"\nurl = \"http://ntfy.example/secret-topic\"\nname = \"ada\"",
            "invalid webhook `ntfy` of `ada`: the message contains a link that answers, so the URL must begin with `https:`",
        ),
        ("service = \"ntfy\"", "missing field `url`"),
        ("service = \"ntfy\"\nurl = \"https://ntfy.example/secret-topic\"\nadress = 1", "unknown field `adress`"),
    ] {
        let place = Place::with(json!([]));
        place.write("home/config.toml", &format!("[[notify]]\n{receiver}\n"));
        let ended = place.amplifier(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(ended.code != 0 && ended.error.contains(problem), "{problem}: {}", ended.error);
        let is_parsed = !problem.contains("field");
        assert!(!(is_parsed && ended.error.contains(SECRET)), "{}", ended.error);
    }
}

#[test]
fn a_push_service_that_is_no_origin_stops_the_server() {
    let place = Place::with(json!([]));
    place.write("home/config.toml", "push_services = [\"push.example\"]\n");
    let ended = place.amplifier(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(ended.code != 0 && ended.error.contains("invalid push service `push.example`"), "{}", ended.error);
}
