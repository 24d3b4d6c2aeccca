"""A client for the Amplifier server: sessions, events, approvals, rules, hooks and the audit log. Needs nothing but Python 3.10.

    client = Client.local()                       # the server of this machine, with the person's own token
    session = client.start(prompt="Tidy up", workspace="/home/ann/project")
    for message in client.stream(session=session["id"]):
        if message["type"] == "approval_requested":
            client.answer(message["approval"], "Allow once")

Everything that goes wrong is a ``ServerError`` with the server's own code and words. See docs/reference/api.md for what the messages hold.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:  # For type checkers only: nothing else needs the file.
    from amplifier_types import ApprovalRules, AuditStatus, DecidedApproval, DryRunReport, HookStats, Me, OpenApproval, Page, ReloadResults, RuleOffer, Session, StreamMessage, Timeline

__all__ = ["Client", "ServerError"]

Json = dict[str, Any]


class ServerError(Exception):
    """The server refused. ``code`` is a word for programs, ``status`` the HTTP status, ``by`` who was faster, if somebody was."""

    def __init__(self, status: int, code: str, message: str, by: Json | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.by = status, code, by


class Client:
    """Talks to one server with one token. Safe to use from several threads."""

    def __init__(self, url: str, token: str, *, timeout: float = 40.0, tls: ssl.SSLContext | None = None) -> None:
        self.url, self._token, self._timeout = url.rstrip("/"), token, timeout
        # No proxy: it would read the token.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls))

    @classmethod
    def local(cls, folder: str | os.PathLike[str] | None = None, *, tls: ssl.SSLContext | None = None) -> Client:
        """The server that this person runs on this machine, with its owner's token. ``folder`` is its folder, if it is not the usual one;
        ``tls`` says whom to trust, if its certificate is signed by nobody known."""
        home = os.environ.get("AMPLIFIER_HOME")
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
        place = Path(folder) if folder else (Path(home) if home else Path(data) / "amplifier") / "server"
        if not _runs(place / "lock"):
            raise ServerError(0, "no_server", "no server is running; start one with `amplifier serve`")
        address = json.loads((place / "address").read_text())
        token = (place / "token").read_text().strip()
        # A certificate holds for the name; without one, the way that never leaves this machine.
        return cls(address["url"] if "certificate" in address else f"http://{address['reach']}", token, tls=tls)

    def me(self) -> Me:
        return cast("Me", self._get("/api/me"))

    def sessions(self, **query: Any) -> list[Session]:
        """Those that are known, the newest first: ``state``, ``limit``."""
        return cast("list[Session]", self._get("/api/sessions", query)["sessions"])

    def session(self, session: str) -> Session:
        return cast("Session", self._get(f"/api/sessions/{_part(session)}"))

    def start(self, *, prompt: str | None = None, workspace: str | None = None) -> Session:
        """Starts a session inside the server."""
        return cast("Session", self._post("/api/sessions", {"prompt": prompt, "workspace": workspace}))

    def timeline(self, session: str, **query: Any) -> Timeline:
        return cast("Timeline", self._get(f"/api/sessions/{_part(session)}/timeline", query))

    def prompt(self, session: str, text: str) -> None:
        self._post(f"/api/sessions/{_part(session)}/prompt", {"text": text})

    def interrupt(self, session: str) -> None:
        """Stops the turn: the first time when the running tool has finished, the second time at once."""
        self._post(f"/api/sessions/{_part(session)}/interrupt", {})

    def end(self, session: str) -> None:
        self._post(f"/api/sessions/{_part(session)}/end", {})

    def records(self, **query: Any) -> Page:
        """Records after a cursor: ``after``, ``session``, ``event``, ``kind``, ``hook``, ``text``, ``limit``, ``wait`` (seconds)."""
        return cast("Page", self._get("/api/audit/records", query))

    def stream(self, **query: Any) -> Iterator[StreamMessage]:
        """Messages as they come, the first one ``hello``. Ends when the server does; go on from the last ``cursor`` with ``after``."""
        with self._open("GET", "/api/stream", query) as response:
            try:
                for line in response:
                    if line.strip():
                        yield json.loads(line)
            except (OSError, HTTPException, ValueError) as error:
                raise ServerError(0, "unreachable", f"the stream of {self.url} broke: {error}") from error

    def approvals(self) -> list[OpenApproval]:
        """The questions that are open."""
        return cast("list[OpenApproval]", self._get("/api/approvals")["approvals"])

    def answer(self, approval: OpenApproval, option: str, *, scope: str | None = None, rule: RuleOffer | None = None) -> DecidedApproval:
        """Answers with an option, or with a ``rule`` of the ``offers``. If somebody was faster, or it is too late, the ``ServerError`` has status 409."""
        chosen = rule and {"operations": rule["operations"], "scope": rule["scope"]}
        body = {"option": option, "nonce": approval.get("nonce", ""), "scope": scope, "rule": chosen}
        return cast("DecidedApproval", self._post(f"/api/approvals/{_part(approval['id'])}/answer", body))

    def history(self, **query: Any) -> list[DecidedApproval]:
        return cast("list[DecidedApproval]", self._get("/api/approvals/history", query)["decisions"])

    def rules(self) -> ApprovalRules:
        """The ``rules``, and the files that are ``unreadable``: what they allow is asked until they are mended."""
        return cast("ApprovalRules", self._get("/api/rules"))

    def add_rule(self, **rule: Any) -> Json:
        return self._post("/api/rules", rule)

    def revoke(self, rule: str) -> None:
        self._call("DELETE", f"/api/rules/{_part(rule)}")

    def hooks(self, **query: Any) -> list[HookStats]:
        return cast("list[HookStats]", self._get("/api/hooks", query)["hooks"])

    def reload(self) -> ReloadResults:
        """Has the connected sessions look at their bundles at once: ``results`` says what came of it in each."""
        return cast("ReloadResults", self._post("/api/hooks/reload", {}))

    def test(self, bundle: str | None = None) -> Json:
        return self._post("/api/hooks/test", {"bundle": bundle})

    def try_event(self, event: str, data: Json | None = None, **more: Any) -> DryRunReport:
        """What would come of an event, hook by hook: of the hooks of a session in ``workspace``, or of those of a ``bundle`` alone."""
        return cast("DryRunReport", self._post("/api/hooks/try", {"event": event, "data": data, **more}))

    def audit(self) -> AuditStatus:
        return cast("AuditStatus", self._get("/api/audit"))

    def verify(self) -> AuditStatus:
        return cast("AuditStatus", self._post("/api/audit/verify", {}))

    def proof(self, seq: int) -> Json:
        return self._get(f"/api/audit/proof/{seq}")

    def _get(self, path: str, query: Json | None = None) -> Json:
        return self._call("GET", path, query)

    def _post(self, path: str, body: Json) -> Json:
        return self._call("POST", path, None, {key: value for key, value in body.items() if value is not None})

    def _call(self, method: str, path: str, query: Json | None = None, body: Json | None = None) -> Json:
        try:
            with self._open(method, path, query, body) as response:
                text = response.read()
        except (OSError, HTTPException) as error:
            raise ServerError(0, "unreachable", f"the server {self.url} cannot be reached: {error}") from error
        return dict(json.loads(text) if text else {})

    def _open(self, method: str, path: str, query: Json | None = None, body: Json | None = None) -> HTTPResponse:
        asked = {key: value for key, value in (query or {}).items() if value is not None}
        url = self.url + path + ("?" + urllib.parse.urlencode(asked) if asked else "")
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            return self._opener.open(request, timeout=self._timeout)  # type: ignore[no-any-return]
        except urllib.error.HTTPError as error:
            raise _refusal(error.code, error.read()) from None
        except urllib.error.URLError as error:
            raise ServerError(0, "unreachable", f"the server {self.url} cannot be reached: {error.reason}") from error


def _runs(lock: Path) -> bool:
    """A server holds its lock while it runs: the address that a crash has left may be a stranger's by now."""
    with contextlib.suppress(FileNotFoundError), lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _refusal(status: int, text: bytes) -> ServerError:
    try:
        told = json.loads(text)["error"]
        return ServerError(status, told["code"], told["message"], told.get("by"))
    except (ValueError, KeyError, TypeError):
        return ServerError(status, "unknown", text.decode(errors="replace") or f"status {status}")


def _part(text: str) -> str:
    return urllib.parse.quote(text, safe="")
