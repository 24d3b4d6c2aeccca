"""Verifies an audit log as `docs/reference/audit-format.md` describes it, with nothing but the standard library.

    python3 verify.py FOLDER [CHECKPOINTS [KEY]]

CHECKPOINTS is a file of checkpoints that were kept elsewhere (or `-`), KEY is the log's public key in base64.
Prints `sound: ...`, `unsound: ...` or `unreadable: ...`, and exits with 0, 1 or 4.
"""
import base64, hashlib, json, pathlib, re, sys

class Unsound(Exception): """The log is not as it was written. What merely cannot be read is a ValueError."""

class Log:
    def __init__(self, folder, beside, elsewhere, known_key):
        self.folder, self.known_key, self.unreadable, self.known = folder, known_key, [], []
        self.id = self.key = self.first_segment = None
        self.first = self.size = self.run = self.gaps = 0
        self.head, self.tree, self.every, self.is_whole = "0" * 64, [], 4096, True
        self.is_trusted = self.is_proved = known_key is None  # the key in force, and that it signed something
        self.removed_before, self.counts = 1, {}
        for note, is_beside in [(note, True) for note in beside] + [(note, False) for note in elsewhere]:
            try: self.known.append((*read_checkpoint(note), note, is_beside))
            except ValueError as error: self.unreadable.append(f"a checkpoint: {error}")
        self.known.sort()

    def verify(self):
        files = [file for file in self.folder.glob("seg-*") if file.suffix != ".tmp"]
        segments = sorted((segment_number(file.name), file) for file in files if segment_number(file.name))
        demand(segments, "there is no log here", ValueError)
        if len(segments) < len(files): self.unreadable.append("a file is named like a segment and is none")
        self.first_segment = segments[0][0]
        for segment, file in segments:
            *lines, rest = file.read_bytes().split(b"\n")
            if rest or not lines: self.unreadable.append(f"{file.name} does not end with a whole line")
            for number, line in enumerate(lines, 1):
                try:
                    record = read_record(line)
                except ValueError as error:  # it stands in the place of one record
                    self.unreadable.append(f"{file.name}, line {number}: {error}")
                    self.compare()
                    if self.id: self.size, self.head, self.is_whole = self.size + 1, None, False
                    continue
                try: self.follow(record, segment, number == 1)
                except (ValueError, KeyError, TypeError) as error:
                    self.unreadable.append(f"{file.name}, line {number}, its body: {error!r}")
        self.compare()
        demand(not self.known, f"a checkpoint covers more than the {self.size} records that are there")
        demand(self.is_proved, "nothing is signed with the known key")
        demand(self.first_segment <= self.removed_before, "the first segments are missing, and no signed record says so")

    def follow(self, record, segment, is_first):
        log, seg, seq, prev, kind, body, h = (record[key] for key in "log seg seq prev kind body h".split())
        begins, signs = kind in ("genesis", "segment"), kind in ("checkpoint", "segment")
        if self.id is None: self.begin(log, seq, prev, kind, body)
        demand((log, seg) == (self.id, segment), f"record {seq} belongs elsewhere")
        demand(seq == self.size and prev == (self.head or prev), f"record {seq} does not follow the one before it")
        demand(begins == is_first and (kind == "genesis") == (seq == 0), f"record {seq} is out of place")
        self.compare()
        tree = list(self.tree)
        push(self.tree, unhex(h))
        self.size, self.head = seq + 1, h
        self.run = 1 if signs else self.every if begins else self.run + 1  # after the genesis record comes a checkpoint
        demand(self.run <= self.every, f"record {seq} comes where a checkpoint should be")
        if kind == "genesis":
            demand(body["format"] == "amplifier-audit/1", "another format", ValueError)
        if kind == "segment":
            fits = (body["frontier"], unbase64(body["public_key"], 32)) == ([node.hex() for _, node in tree], self.key)
            demand(fits or not self.is_whole, f"record {seq} does not continue the tree or the key before it")
        if signs:
            size, origin, top, head = read_checkpoint(body["note"], Unsound)
            fits = (size, origin, head) == (seq, log, prev) and (top == root(tree) or not self.is_whole)
            fits = fits and self.is_signed(body["note"])
            demand(fits, f"the checkpoint in record {seq} does not fit, or is not signed")
            self.is_proved = self.is_proved or self.is_trusted
        if kind == "key_rotation":
            text = f"amplifier-audit/{log}\nrotate\n{seq}\n{prev}\n{body['public_key']}\n"
            fits = self.is_signed(body["note"]) and read_note(body["note"])[0] == text
            demand(fits, f"the new key in record {seq} is not signed with the old one")
            self.key = unbase64(body["public_key"], 32)
            self.is_trusted |= self.key == self.known_key
        demand(kind != "breach", f"record {seq} says that someone was at the log")
        if kind == "policy_change" and list(body) == ["retention"]:
            before, note = body["retention"]["before"], body["retention"]["note"]
            text = f"amplifier-audit/{log}\nretention\n{seq}\n{prev}\n{before}\n"
            fits = self.is_signed(note) and read_note(note)[0] == text
            demand(fits, f"the removal of segments in record {seq} is not signed")
            self.removed_before = max(self.removed_before, before)
        self.gaps += kind == "gap"
        whose = record["session"], record["writer"]
        found = self.counts.get(whose, 0)
        self.counts[whose] = 0 if kind == "seal" else found + 1
        if kind == "seal":  # it also counts what a gap or retention took away
            missing = body["records"] - found
            demand(missing == 0 or missing > 0 and (self.gaps or self.first), f"the seal in record {seq} does not fit")
        if list(body) == ["blob", "bytes"]:
            blob = self.folder / "blobs" / body["blob"][7:9] / body["blob"][7:]
            fits = not blob.exists() or sha256(blob.read_bytes()).hex() == blob.name
            demand(fits, f"the blob of record {seq} was edited")

    def begin(self, log, seq, prev, kind, body):
        self.id = log
        demand(kind in ("genesis", "segment"), "the beginning of the log is missing")
        self.key, self.every = unbase64(body["public_key"], 32), body["every"]
        demand(2 <= self.every <= 4096, "the log has checkpoints too seldom, or nothing else")
        self.is_trusted |= self.key == self.known_key
        if kind == "segment":  # retention removed what was before, and the frontier stands for it
            sizes = [2**bit for bit in range(63, -1, -1) if seq >> bit & 1]
            demand(len(sizes) == len(body["frontier"]), "the frontier does not fit")
            self.first, self.size, self.head = seq, seq, prev
            self.tree = [*zip(sizes, map(unhex, body["frontier"]))]
            key = self.known_key  # it may vouch for the key in force by rotations whose records are gone
            for note in body["rotations"] if key else []:
                _, word, _, _, new, *_ = read_note(note)[0].split("\n")
                if word == "rotate" and is_signed(note, log, key): key = unbase64(new, 32)
            self.is_trusted |= key == self.key

    def compare(self):  # with the checkpoints that cover exactly the records so far
        while self.id and self.known and self.known[0][0] <= self.size:
            size, origin, top, head, note, is_beside = self.known.pop(0)
            demand(origin == self.id, "a checkpoint is of another log")
            if size < self.first: continue  # those records are gone
            fits = head == (self.head or head) and (top == root(self.tree) or not self.is_whole)
            demand(fits, f"the first {size} records are not those that a checkpoint covers")
            # One from elsewhere may have no signature of the log at all: then it agrees, and proves nothing.
            is_claimed = is_beside or any(name == "amplifier-audit/" + self.id for name, _ in read_note(note)[1])
            demand(self.is_signed(note) or not is_claimed, f"the checkpoint over {size} records is not signed with the key in force")

    def is_signed(self, note):
        return self.key is not None and is_signed(note, self.id, self.key)

# Reading. Whatever has another form than the documented one is a ValueError; one value has one text.

def demand(holds, why, error=Unsound):
    if not holds: raise error(why)

def sha256(*parts): return hashlib.sha256(b"".join(parts)).digest()

def unhex(text, size=32):
    demand(len(text) == 2 * size and text == bytes.fromhex(text).hex(), f"{text!r} is malformed", ValueError)
    return bytes.fromhex(text)

def unbase64(text, size=None):
    value = base64.b64decode(text)
    is_exact = base64.b64encode(value) == text.encode() and size in (None, len(value))
    demand(is_exact, f"{text!r} is malformed", ValueError)
    return value

def segment_number(name):
    digits = name[4:-6]
    return int(digits) if digits.isdigit() and name == f"seg-{int(digits):06}.jsonl" else None

def read_record(line):
    demand(all(0x20 <= byte < 0x7F for byte in line), "bytes that are not printable ASCII", ValueError)
    demand(line[-72:-66] + line[-2:] == b',"h":""}', "a line that does not end with its hash", ValueError)
    demand(sha256(b"\0", line[:-72]) == unhex(line[-66:-2].decode()), "a record does not have the hash that it carries")
    record = json.loads(line)
    keys = "v log seg seq prev time writer session turn event kind digest body h".split()
    is_record = list(record) == keys and record["v"] == 1 and isinstance(record["body"], dict)
    is_record = is_record and type(record["seg"]) is type(record["seq"]) is int
    demand(is_record, "a line that is no record", ValueError)
    unhex(record["log"], 16)
    return record

def read_note(note):  # its text, and the name and the bytes of each signature
    text, signatures = note.split("\n\n")
    lines = [line.split(" ") for line in signatures.removesuffix("\n").split("\n")]
    is_note = note.endswith("\n") and note.replace("\n", "").isprintable()
    is_note = is_note and all(dash == "\u2014" and "+" not in name for dash, name, _ in lines)
    demand(is_note, "a note that is malformed", ValueError)
    return text + "\n", [(name, unbase64(data)) for _, name, data in lines]

def read_checkpoint(note, error=ValueError):  # its size, log, root and head
    try:
        origin, size, top, head, time, end = read_note(note)[0].split("\n")
        words = origin[:16] + head[:5] + time[:5] + end == "amplifier-audit/head time " and size == str(int(size))
        demand(words and time.isascii() and len(time.split(" ")) == 2, "a note that is no checkpoint", ValueError)
        return int(size), unhex(origin[16:], 16).hex(), unbase64(top, 32), unhex(head[5:]).hex()
    except ValueError as malformed: raise error(malformed)

def is_signed(note, log, key):
    name = "amplifier-audit/" + log
    hint = sha256(name.encode(), b"\n\1", key)[:4]
    try:
        text, signatures = read_note(note)
        claims = [data[4:] for whose, data in signatures if (whose, data[:4]) == (name, hint)]
        return claims != [] and all(verify_signature(key, text.encode(), claim) for claim in claims)
    except ValueError:
        return False

def split_notes(file):  # one after another, each ended by an empty line
    parts = file.decode(errors="replace").split("\n\n")
    notes = [f"{text}\n\n{signatures}\n" for text, signatures in zip(parts[::2], parts[1::2])]
    return notes if parts[2 * len(notes):] == [""] else [*notes, "half a note"]

def push(tree, leaf):  # RFC 6962: two complete trees of one size become one
    tree.append((1, leaf))
    while len(tree) > 1 and tree[-1][0] == tree[-2][0]:
        (size, right), (_, left) = tree.pop(), tree.pop()
        tree.append((2 * size, sha256(b"\1", left, right)))

def root(tree):
    nodes = [node for _, node in tree] or [sha256()]
    while len(nodes) > 1: nodes[-2:] = [sha256(b"\1", *nodes[-2:])]
    return nodes[0]

# Ed25519 after RFC 8032: slow, and short enough to read.

P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P

def point(data):
    y, sign = int.from_bytes(data, "little") % 2**255, data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square: x = x * pow(2, (P - 1) // 4, P) % P
    demand(y < P and x * x % P == square and (x, sign) != (0, 1), "no point of the curve", ValueError)
    if x % 2 != sign: x = P - x
    return x, y, 1, x * y % P

def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * D, 2 * p[2] * q[2]
    e, f, g, h = (b - a) % P, (d - c) % P, (d + c) % P, (b + a) % P
    return e * f % P, g * h % P, f * g % P, e * h % P

def times(n, p):
    total = (0, 1, 1, 0)
    while n > 0:
        if n & 1: total = add(total, p)
        p, n = add(p, p), n >> 1
    return total

BASE = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))

def verify_signature(key, text, signature):
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or s >= ORDER: return False
    k = int.from_bytes(hashlib.sha512(r + key + text).digest(), "little") % ORDER
    (x, y, z, _), (u, v, w, _) = times(s, BASE), add(point(r), times(k, point(key)))
    return (x * w - u * z) % P == (y * w - v * z) % P == 0

def main(folder, checkpoints="-", key=""):
    beside = pathlib.Path(folder) / "checkpoints"
    try:
        notes = split_notes(beside.read_bytes()) if beside.exists() else []
        kept = pathlib.Path(checkpoints).read_bytes() if checkpoints != "-" else b""
        # Whoever kept them may have added empty lines, or left out the last.
        kept = re.sub(rb"\n{3,}|(?<!\n)\n\Z", b"\n\n", kept.lstrip(b"\n"))
        elsewhere = split_notes(kept)
        demand(elsewhere or checkpoints == "-", f"there is no checkpoint in {checkpoints!r}", ValueError)
        log = Log(pathlib.Path(folder), notes, elsewhere, unbase64(key, 32) if key else None)
        log.verify()
        demand(not log.unreadable, "; ".join(log.unreadable[:5]), ValueError)
    except Unsound as error: return 1, f"unsound: {error}"
    except (ValueError, OSError) as error: return 4, f"unreadable: {error}"
    return 0, f"sound: {log.size - log.first} records"

if __name__ == "__main__":
    code, text = main(*sys.argv[1:]) if 2 <= len(sys.argv) <= 4 else (2, __doc__)
    print(text)
    sys.exit(code)
