"""Goal: with --json kith keys and kith doctor print one object and nothing
else, with the keys that docs/json.md names and without any secret.

Method: a cluster of two whose second member is not running, and an allow-list;
every kind of key file is shown.

    test_cli_json.py KITH FOLDER
"""
import json
import os
import socket
import subprocess
import sys

kith, folder = sys.argv[1:]
HEX = set("0123456789abcdef")


def run(*words, status=0):
    done = subprocess.run([kith, *words, "--json"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == status, (words, done)
    return json.loads(done.stdout) if done.stdout else done.stderr


def is_hex(text):
    return len(text) == 64 and set(text) <= HEX


def keys():
    made = run("keys", "new", "ca", "--authority", "--suite", "aesgcm")
    assert made["files"] == ["ca/ca.key", "ca/ca.pub"]
    assert made["suite"] == "AESGCM"
    used = [one for one in made["suites"] if one["used"]]
    assert all(one["seal_gb_s"] > 0 and one["open_gb_s"] > 0 and
               one["provider"] for one in used), made
    assert run("keys", "new", "plain", "--authority")["suite"] is None
    made = run("keys", "new", "me", "--name", "peer-0")
    assert made == {"files": ["me/node.key", "me/node.request"]}
    made = run("keys", "certify", "ca", "me/node.request", "--rank", "0",
               "--roles", "train,seed")
    assert made == {"files": ["me/node.crt"]}
    os.link("ca/ca.pub", "me/ca.pub")
    assert run("keys", "allow", "list", "me/node.request") == {
        "files": ["list/allow"]}
    run("keys", "new", "other", "--name", "peer-1")
    run("keys", "certify", "ca", "other/node.request", "--rank", "1")
    assert run("keys", "revoke", "ca", "other/node.crt") == {
        "files": ["ca/crl"]}
    assert "kith keys" in run("keys", "new", "me", "--name", "again", status=7)


def show(path, kind):
    found = run("keys", "show", path)
    assert found.pop("file") == path and found.pop("kind") == kind, found
    with open(path, encoding="ascii") as text:
        for line in text:
            if line.startswith("secret:"):
                assert line.split()[1] not in json.dumps(found)
    return found


def shown():
    for path, kind in (("me/node.key", "kith-key-v1"),
                       ("me/node.request", "kith-request-v1")):
        found = show(path, kind)
        assert set(found) == {"name", "key", "fingerprint"}, found
        assert found["name"] == "peer-0" and is_hex(found["fingerprint"])
    assert set(show("ca/ca.key", "kith-authority-v1")) == {"key",
                                                           "fingerprint"}
    trust = show("ca/ca.pub", "kith-cluster-v1")
    assert set(trust) == {"cluster", "authorities", "suite"}, trust
    assert trust["suite"] == "AESGCM" and is_hex(trust["authorities"][0])
    assert show("plain/ca.pub", "kith-cluster-v1")["suite"] is None
    assert show("list/allow", "kith-cluster-v1")["allowed"] == 1
    one = show("me/node.crt", "kith-certificate-v1")
    assert set(one) == {"name", "rank", "serial", "cluster", "key",
                        "not_before", "not_after", "roles",
                        "fingerprint"}, one
    assert one["rank"] == 0 and one["roles"] == ["train", "seed"], one
    assert one["not_before"] < one["not_after"] and one["not_after"][-1] == "Z"
    gone = show("ca/crl", "kith-crl-v1")
    assert gone["sequence"] == 1 and gone["revoked"] == 1, gone
    assert gone["fingerprints"] == [show(
        "other/node.crt", "kith-certificate-v1")["fingerprint"]]


def doctor():
    held = socket.socket()  # Nobody listens there.
    held.bind(("127.0.0.1", 0))
    with open("experiment.yaml", "w", encoding="ascii") as out:
        out.write("name: json\npeers: 2\nstop: {time: 60s}\n"
                  "model: {kind: consensus, dim: 10}\n"
                  "gossip: {algorithm: adpsgd, every: 1}\n")
    with open("peer.yaml", "w", encoding="ascii") as out:
        out.write('identity: me\nexperiment: experiment.yaml\nsave: save\n'
                  'listen: "127.0.0.1:7117"\nrank: 0\n'
                  f'members: ["127.0.0.1:7117", '
                  f'"127.0.0.1:{held.getsockname()[1]}"]\n')
    found = run("doctor", "peer.yaml", status=6)
    assert set(found) == {"ok", "members"} and found["ok"] is False, found
    own, other = found["members"]
    assert own["self"] and own["ok"] and own["rank"] == 0, own
    assert [one["layer"] for one in own["checks"]] == ["certificate", "suite"]
    assert all(one["ok"] and one["advice"] is None for one in own["checks"])
    assert not other["self"] and not other["ok"] and other["rank"] == 1, other
    assert [(one["layer"], one["ok"]) for one in other["checks"]] == [
        ("name", True), ("tcp", False)], other
    assert "nothing listens" in other["checks"][1]["advice"], other


os.chdir(folder)
keys()
shown()
doctor()
