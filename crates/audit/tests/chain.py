"""The heart of a verifier of audit logs in forty lines: every byte, every link, every root. verify.py checks signatures, too."""
import base64, hashlib, json, pathlib, sys

def sha256(*parts): return hashlib.sha256(b"".join(parts)).digest()

def root(tree):  # RFC 6962: what is left over is joined from the right
    nodes = [node for _, node in tree] or [sha256()]
    while len(nodes) > 1: nodes[-2:] = [sha256(b"\1", *nodes[-2:])]
    return nodes[0]

def verify(folder):
    size, head, run, every, tree, removed = 0, "0" * 64, 0, 4096, [], 1
    files = sorted(pathlib.Path(folder).glob("seg-*.jsonl"))
    for number, file in enumerate(files, first := int(files[0].name[4:-6])):
        *lines, rest = file.read_bytes().split(b"\n")
        assert file.name == f"seg-{number:06}.jsonl" and not rest, f"{file.name} is not whole, or one before it is missing"
        for line in lines:
            assert all(0x20 <= byte < 0x7F for byte in line), f"record {size} is not printable ASCII"
            hashed, h = line[:-72], line[-66:-2].decode()
            assert line == hashed + b',"h":"%s"}' % h.encode() and sha256(b"\0", hashed).hex() == h, f"record {size} was edited"
            _, log, seg, seq, prev, *_, kind, _, body, _ = json.loads(line).values()
            if kind == "segment" and not tree:  # retention removed what was before: the roots of its subtrees stand for it
                widths = [1 << bit for bit in reversed(range(64)) if seq >> bit & 1]
                size, head, tree = seq, prev, list(zip(widths, map(bytes.fromhex, body["frontier"])))
            assert (seg, seq, prev) == (number, size, head), f"record {size} is out of place"
            every = min(body["every"], 4096) if kind in ("genesis", "segment") else every
            removed = max(removed, body.get("retention", {}).get("before", 1)) if kind == "policy_change" else removed
            if kind in ("checkpoint", "segment"):
                expected = [f"amplifier-audit/{log}", str(size), base64.b64encode(root(tree)).decode(), f"head {head}"]
                assert body["note"].split("\n")[:4] == expected, f"the checkpoint in record {size} is of other records"
            run = 1 if kind in ("checkpoint", "segment") else every if kind == "genesis" else run + 1
            assert run <= every and kind != "breach", f"record {size} comes without a checkpoint, or tells of a breach"
            size, head, tree = size + 1, h, [*tree, (1, bytes.fromhex(h))]
            while len(tree) > 1 and tree[-1][0] == tree[-2][0]:
                (width, right), (_, left) = tree.pop(), tree.pop()
                tree.append((2 * width, sha256(b"\1", left, right)))
    assert first <= removed, "the first segments are missing, and no record says that they were removed"
    return f"{size} records, root {root(tree).hex()}"

print("sound:", verify(sys.argv[1]))
