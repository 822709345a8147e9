#!/usr/bin/env python3
"""Makes bundled.json: Noise XX vectors by an implementation that is not ours.

    python3 -m venv VENV && VENV/bin/pip install noiseprotocol
    VENV/bin/python make_vectors.py > bundled.json

noiseprotocol (github.com/plizonczyk/noiseprotocol, MIT) does its mathematics
with the `cryptography` package. Keys, prologues and payloads come from SHA-256
of a label, so that the file is the same on every run. The format is
cacophony's, and one addition: "rekey": "1" says that both ends call Rekey() on
the sender's cipher before that transport message.
"""
import hashlib
import json

from noise.connection import Keypair, NoiseConnection

SUITES = [
    f"Noise_XX_25519_{cipher}_{digest}"
    for cipher in ("AESGCM", "ChaChaPoly")
    for digest in ("BLAKE2b", "SHA512")
]
TRANSPORT_MESSAGES = 6
REKEY_AT = 4  # index of the first transport message under fresh keys


def derive(*labels):
    return hashlib.sha256("/".join(map(str, labels)).encode()).digest()


def payload_of(label, index, size):
    return (derive(label, "payload", index) * (size // 32 + 1))[:size]


def side(name, label, role, prologue):
    connection = NoiseConnection.from_name(name.encode())
    connection.set_prologue(prologue)
    keys = {k: derive(label, role, k) for k in ("static", "ephemeral")}
    connection.set_keypair_from_private_bytes(Keypair.STATIC, keys["static"])
    connection.set_keypair_from_private_bytes(
        Keypair.EPHEMERAL, keys["ephemeral"])
    if role == "init":
        connection.set_as_initiator()
    else:
        connection.set_as_responder()
    connection.start_handshake()
    return connection, keys


def make(name, label, sizes):
    prologue = derive(label, "prologue")[: 8 if sizes[0] else 0]
    init, init_keys = side(name, label, "init", prologue)
    resp, resp_keys = side(name, label, "resp", prologue)
    messages = []
    for index in range(3 + TRANSPORT_MESSAGES):
        sender, receiver = (init, resp) if index % 2 == 0 else (resp, init)
        payload = payload_of(label, index, sizes[index % len(sizes)])
        message = {"payload": payload.hex()}
        if index < 3:
            sealed = bytes(sender.write_message(payload))
            assert bytes(receiver.read_message(sealed)) == payload
        else:
            if index in (REKEY_AT, REKEY_AT + 1):
                sender.noise_protocol.cipher_state_encrypt.rekey()
                receiver.noise_protocol.cipher_state_decrypt.rekey()
                message["rekey"] = "1"
            sealed = bytes(sender.encrypt(payload))
            assert bytes(receiver.decrypt(sealed)) == payload
        message["ciphertext"] = sealed.hex()
        messages.append(message)
    return {
        "protocol_name": name,
        "init_prologue": prologue.hex(),
        "init_static": init_keys["static"].hex(),
        "init_ephemeral": init_keys["ephemeral"].hex(),
        "resp_prologue": prologue.hex(),
        "resp_static": resp_keys["static"].hex(),
        "resp_ephemeral": resp_keys["ephemeral"].hex(),
        "handshake_hash": bytes(init.get_handshake_hash()).hex(),
        "messages": messages,
    }


def main():
    vectors = [
        make(name, f"kith/{name}/{index}", sizes)
        for name in SUITES
        for index, sizes in enumerate([(0, 258, 258), (11, 1, 64, 200)])
    ]
    print(json.dumps({"vectors": vectors}, indent=1))


if __name__ == "__main__":
    main()
