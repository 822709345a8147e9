"""Kills kith train at random moments, resumes it, and compares what is left
with a run that was never interrupted: every tensor, byte for byte, the place
in the data, and the evaluations in the run database.

usage: resume.py KITH DATA SCRATCH KILLS [SEED]
"""
import json, os, random, signal, sqlite3, struct, subprocess, sys, time

KITH, DATA, SCRATCH = sys.argv[1:4]
KILLS = int(sys.argv[4])
SEED = int(sys.argv[5]) if len(sys.argv) > 5 else random.randrange(10**6)
RANDOM = random.Random(SEED)
failures = []

TRAIN = {
    "sgd": "{optimiser: sgd, learning_rate: 0.05, momentum: 0.9, "
           "nesterov: true, schedule: cosine",
    "adamw": "{optimiser: adamw, learning_rate: 0.002, weight_decay: 0.1, "
             "schedule: linear",
    "lars": "{optimiser: lars, learning_rate: 1, momentum: 0.9, "
            "trust: 0.02, schedule: step, milestones: [0.5]",
    "muon": "{optimiser: muon, learning_rate: 0.01, momentum: 0.9, "
            "schedule: linear, warmup: 50",
}


def fail(text):
    failures.append(text)
    print(f"resume: {text} (seed {SEED})", file=sys.stderr)


def experiment(folder, optimiser, more=""):
    """A small cnn with dropout and augmentation, saved all the time."""
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/x.yaml"
    with open(path, "w") as file:
        file.write(f"""name: x
seed: 7
peers: 1
stop: {{steps: 1500}}
model: {{kind: cnn, image: [8, 8, 1], channels: [4, 8], classes: 10,
        dropout: 0.2}}
data: {{kind: idx, path: {DATA}}}
train: {TRAIN[optimiser]}, batch: 16, clip: 5, smoothing: 0.1,
        augment: {{crop: 1, flip: true}}}}
save: 1ms
evaluate: 250 steps
{more}
""")
    return path


def start(folder, *arguments):
    return subprocess.Popen(
        [KITH, "train", *arguments, "--out", folder],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def run(expected, folder, *arguments):
    process = start(folder, *arguments)
    words = process.communicate(timeout=120)[1]
    if process.returncode != expected:
        fail(f"kith train {' '.join(arguments)}: exit {process.returncode}, "
             f"not {expected}: {words}")
    return words


def checkpoint(path):
    """What a run is at its end; times, and what was measured, are its own."""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    texts = header["__metadata__"]
    for key in "blake2b", "elapsed", "peak":
        texts.pop(key, None)
    return texts, header, data[8 + length:]


def rows(database):
    return sqlite3.connect(database).execute(
        "SELECT peer, step, samples, loss, accuracy FROM series "
        "ORDER BY rowid").fetchall()


def same(what, folder, number, reference):
    stem = f"{folder}/x-train-{number}"
    if checkpoint(f"{stem}.save") != reference["checkpoint"]:
        fail(f"{what}: another checkpoint at the end")
    if checkpoint(f"{stem}.save.best")[2] != reference["best"]:
        fail(f"{what}: another best checkpoint")
    if rows(f"{stem}.db") != reference["rows"]:
        fail(f"{what}: other rows")


def reference_of(optimiser):
    folder = f"{SCRATCH}/{optimiser}-reference"
    file = experiment(folder, optimiser)
    began = time.monotonic()
    run(0, folder, file)
    stem = f"{folder}/x-train-1"
    return {"s": time.monotonic() - began,
            "checkpoint": checkpoint(f"{stem}.save"),
            "best": checkpoint(f"{stem}.save.best")[2],
            "rows": rows(f"{stem}.db")}


def newest(folder):
    numbers = [int(name.split("-")[2].split(".")[0])
               for name in os.listdir(folder) if name.endswith(".save")]
    return max(numbers, default=0)


def kill_in_the_middle(process, folder, until, in_write):
    """SIGKILL after a while; in_write: when a checkpoint is being written."""
    began = time.monotonic()
    while time.monotonic() - began < until:
        if process.poll() is not None:
            return False
        time.sleep(0.0005)
    while in_write and process.poll() is None:
        if any(name.endswith(".partial") for name in os.listdir(folder)):
            break
    if process.poll() is not None:
        return False
    process.kill()
    return process.wait() == -signal.SIGKILL


def killed_runs(optimiser, kills):
    """Runs, killed and resumed until they end, until there were enough."""
    reference = reference_of(optimiser)
    folder = f"{SCRATCH}/{optimiser}"
    file = experiment(folder, optimiser)
    done = writes = ends = 0
    while done < kills or ends == 0:
        number = newest(folder)
        fresh = number == 0 or os.path.exists(f"{folder}/ended-{number}")
        process = start(folder, file, *([] if fresh else ["--resume"]))
        until = RANDOM.uniform(0, reference["s"] * 0.7) if done < kills else 99
        if kill_in_the_middle(process, folder, until, RANDOM.random() < 0.5):
            done += 1
            writes += any(name.endswith(".partial")
                          for name in os.listdir(folder))
            process.stderr.close()
            continue
        words = process.communicate(timeout=120)[1]
        number = newest(folder)
        if process.returncode != 0:
            fail(f"{optimiser}: exit {process.returncode}: {words}")
            return
        same(f"{optimiser}, {done} kills", folder, number, reference)
        open(f"{folder}/ended-{number}", "w").close()
        ends += 1
    print(f"resume: {optimiser}: {done} kills, {writes} in a write, "
          f"{ends} runs to the end, all the same as uninterrupted")


def interrupted(folder, file, number=1):
    """A run that SIGTERM ended in order: its path."""
    process = start(folder, file)
    path = f"{folder}/x-train-{number}.save"
    while not os.path.exists(path + ".previous") and process.poll() is None:
        time.sleep(0.001)
    process.terminate()
    words = process.communicate(timeout=120)[1]
    if process.returncode != 130:
        fail(f"SIGTERM: exit {process.returncode}: {words}")
    if f"go on with: kith train --resume {path}" not in words:
        fail(f"SIGTERM: no advice: {words}")
    return path


def damage(path, how):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    if how == "truncated":
        del data[len(data) // 2:]
    elif how == "flipped":
        data[RANDOM.randrange(200, len(data))] ^= 1 << RANDOM.randrange(8)
    elif how == "empty":
        data.clear()
    with open(path, "wb") as file:
        file.write(data)


def refusals():
    reference = reference_of("sgd")
    other = f"{SCRATCH}/other"
    file = experiment(other, "sgd")
    text = open(file).read().replace("channels: [4, 8]", "channels: [5, 8]")
    open(file, "w").write(text)
    foreign = interrupted(other, file)
    for how, says in (("truncated", "truncated"), ("flipped", "checksum"),
                      ("empty", "truncated"),
                      ("foreign", "another experiment: its number of")):
        folder = f"{SCRATCH}/refused-{how}"
        file = experiment(folder, "sgd")
        path = interrupted(folder, file)
        if how == "foreign":
            os.replace(path, path + ".own")
            with open(foreign, "rb") as a, open(path, "wb") as b:
                b.write(a.read())
        else:
            damage(path, how)
        words = run(0, folder, file, "--resume")
        if says not in words or ".previous" not in words:
            fail(f"{how}: does not say so: {words}")
        if not os.path.exists(path + ".refused"):
            fail(f"{how}: the refused checkpoint is gone")
        same(f"{how}, from the previous one", folder, 1, reference)

        # Neither is good: refused, and nothing is touched.
        for name in path, path + ".previous":
            damage(name, "flipped")
        before = os.listdir(folder)
        words = run(3, folder, file, "--resume")
        if words.count("checksum") != 2 or os.listdir(folder) != before:
            fail(f"{how}, both damaged: {words}")

    folder = f"{SCRATCH}/refused-words"
    file = experiment(folder, "sgd")
    words = run(3, folder, file, "--resume")
    if "there is no x-train-N.save" not in words:
        fail(f"nothing to resume: {words}")
    path = interrupted(folder, file)
    words = run(5, folder, file, "--save", path)
    if "is there already" not in words:
        fail(f"--save of another run: {words}")
    words = run(5, folder, file, "--save", f"{folder}/no/x.save")
    if "cannot write in the folder" not in words:
        fail(f"--save below nothing: {words}")
    words = run(3, folder, file, "--resume", path, "--seed", "8")
    if "its seed is 7, this run's is 8" not in words:
        fail(f"another seed: {words}")
    run(0, folder, "--resume", path)
    same("resumed without the file", folder, 1, reference)
    print("resume: refused by name, the previous one used")


def full_disk():
    """A small file system that is full when the run ends."""
    small = f"{SCRATCH}/small"
    os.makedirs(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "x", small],
                      stderr=subprocess.DEVNULL).returncode != 0:
        print("resume: no tmpfs here, a full disk was not tried")
        return
    try:
        reference = reference_of("adamw")
        folder = f"{SCRATCH}/full"
        file = experiment(folder, "adamw")
        process = start(folder, file, "--save", f"{small}/x.save")
        while not os.path.exists(f"{small}/x.save"):
            time.sleep(0.001)
        with open(f"{small}/filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(1024))
            except OSError:
                pass
        words = process.communicate(timeout=120)[1]
        if process.returncode != 5 or "make room" not in words or \
                words.count("training goes on") != 1:
            fail(f"full disk: exit {process.returncode}: {words}")
        os.unlink(f"{small}/filler")
        run(0, folder, file, "--save", f"{small}/x.save", "--resume")
        if checkpoint(f"{small}/x.save") != reference["checkpoint"]:
            fail("full disk: another checkpoint at the end")
        with open(f"{small}/filler", "wb") as filler:
            filler.write(bytes(100 * 1024))
        words = run(5, folder, file, "--save", f"{small}/y.save", "--set",
                    "model.channels=[64, 64]")
        if "o space left" not in words:
            fail(f"no room from the start: {words}")
        print("resume: a full disk costs no checkpoint")
    finally:
        subprocess.run(["umount", "-l", small])


def best_and_early():
    folder = f"{SCRATCH}/early"
    file = experiment(folder, "sgd", "best: accuracy")
    run(0, folder, file, "--set", "evaluate=5 steps", "--set",
        "stop.patience=3")
    texts = checkpoint(f"{folder}/x-train-1.save")[0]
    best = checkpoint(f"{folder}/x-train-1.save.best")[0]
    series = [row for row in rows(f"{folder}/x-train-1.db") if row[0] is None]
    if not 15 < int(texts["step"]) < 1500 or texts["best.stale"] != "3":
        fail(f"early stop: {texts}")
    if int(texts["step"]) - int(best["step"]) != 15:
        fail("early stop: the best is not three evaluations back")
    if max(series, key=lambda row: row[4])[1] != int(best["step"]):
        fail("best: not the one with the best accuracy")
    # More patience is no other experiment: the run goes on.
    run(0, folder, file, "--resume", "--set", "stop.patience=0")
    if checkpoint(f"{folder}/x-train-1.save")[0]["step"] != "1500":
        fail("no patience: the run did not go on")
    print("resume: best kept, stopped early, gone on")


for number, optimiser in enumerate(TRAIN):
    killed_runs(optimiser, (KILLS + number) // len(TRAIN))
refusals()
full_disk()
best_and_early()
sys.exit(1 if failures else 0)
