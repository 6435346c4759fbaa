"""Checkpoints that are damaged: an error of its own says so, which no program takes for the lack of a checkpoint."""

import json
import os
import shutil

import numpy
import pytest
from test_ranks import THERE, launched, run, simulated


import bh

# Each is given the folder of all checkpoints and the one of the last.
PROGRAM = """
import json, os, pathlib, shutil

def other_bytes(file, at, new=b"\\x55\\xaa"):
    data = bytearray(file.read_bytes())
    data[at : at + len(new)] = new if at >= 0 else new[: -at]
    file.write_bytes(data)

def edited(file, edit):
    kept = json.loads(file.read_text())
    edit(kept)
    file.write_text(json.dumps(kept))

DAMAGE = {
    "an array is not there": lambda run, last: (last / "0.npy").unlink(),
    "an array of NumPy is not there": lambda run, last: (last / "1.npy").unlink(),
    "an array ends early": lambda run, last: os.truncate(last / "0.npy", 4000),
    "an array ends in its header": lambda run, last: os.truncate(last / "0.npy", 20),
    "an array is empty": lambda run, last: os.truncate(last / "0.npy", 0),
    "an array has other elements": lambda run, last: other_bytes(last / "0.npy", 100_000),
    "an array has lost a page": lambda run, last: other_bytes(last / "0.npy", 8192, bytes(4096)),
    "an array of NumPy has other elements": lambda run, last: other_bytes(last / "1.npy", 130),
    "an array has another header": lambda run, last: other_bytes(last / "0.npy", 0),
    "an array has another type": lambda run, last: (last / "0.npy").write_bytes((last / "0.npy").read_bytes().replace(b"<f8", b"<i8", 1)),
    "an array is that of another name": lambda run, last: shutil.copy(last / "1.npy", last / "0.npy"),
    "an array is a folder": lambda run, last: ((last / "0.npy").unlink(), (last / "0.npy").mkdir()),
    "the manifest is not there": lambda run, last: (last / "names.json").unlink(),
    "the manifest is empty": lambda run, last: (last / "names.json").write_text(""),
    "the manifest ends early": lambda run, last: os.truncate(last / "names.json", 12),
    "the manifest is no object": lambda run, last: (last / "names.json").write_text("[1]"),
    "the manifest is no text": lambda run, last: (last / "names.json").write_bytes(b"\\xff\\xfe\\x00"),
    "the manifest has another number": lambda run, last: edited(last / "names.json", lambda kept: kept.update(step={"value": 0})),
    "the manifest lacks a name": lambda run, last: edited(last / "names.json", lambda kept: kept.pop("u")),
    "the folder is not there": lambda run, last: shutil.rmtree(last),
    "the folder is empty": lambda run, last: (shutil.rmtree(last), last.mkdir()),
    "the last one's name is empty": lambda run, last: (run / "latest").write_text(""),
    "the last one's name is none": lambda run, last: (run / "latest").write_text("x"),
    "the last one's name is no text": lambda run, last: (run / "latest").write_bytes(b"\\xff\\xfe"),
    "the last one's name is a folder": lambda run, last: ((run / "latest").unlink(), (run / "latest").mkdir()),
}
"""
exec(PROGRAM)


def written(path):
    """A checkpoint, and its folder."""
    bh.checkpoint(path, u=bh.arange(20_000.0), v=numpy.arange(5), step=900)
    (last,) = path.glob("checkpoint-*")
    return last


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_an_error_of_its_own(tmp_path, name):
    run = tmp_path / "run"
    DAMAGE[name](run, written(run))
    with pytest.raises(bh.CheckpointError, match="damaged: ") as raised:
        bh.restore(run)
    assert isinstance(raised.value, bh.Error) and not isinstance(raised.value, OSError)
    assert str(run) in str(raised.value)
    # The next checkpoint is whole.
    bh.checkpoint(run, step=901) if (run / "latest").is_file() else shutil.rmtree(run)
    if run.exists():
        assert bh.restore(run) == {"step": 901}


def test_without_a_checkpoint_there_is_none(tmp_path):
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(FileNotFoundError, match="no checkpoint"):
            bh.restore(path)
    # A program was killed while it wrote its first one.
    (tmp_path / "checkpoint-1").mkdir()
    (tmp_path / "checkpoint-1" / "0.npy").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        bh.restore(tmp_path)


def test_a_whole_checkpoint_that_is_not_named_is_found(tmp_path):
    """A program was killed between the manifest and the name, or the name was lost."""
    written(tmp_path)
    (tmp_path / "latest").unlink()
    assert bh.restore(tmp_path)["step"] == 900


def test_checkpoints_without_marks_are_read(tmp_path):
    last = written(tmp_path)
    kept = json.loads((last / "names.json").read_text())
    for entry in kept.values():
        entry.pop("is", None)
    (last / "names.json").write_text(json.dumps(kept))
    (last / "names.sum").unlink()
    found = bh.restore(tmp_path)
    assert found["step"] == 900 and float(found["u"][-1]) == 19_999 and list(found["v"]) == list(range(5))


@pytest.mark.parametrize("dtype", "? u1 i1 u2 i2 u4 i4 u8 i8 f4 f8 c8 c16".split())
def test_sums_of_all_types(tmp_path, dtype):
    whole = (bh.arange(600) % 7 - (0 if dtype[0] in "u?" else 3)).astype(dtype).reshape(20, 30)
    values = {"whole": whole, "part": whole[::2, 1::3], "turned": whole.T, "one": whole[3, 4], "empty": whole[:0]}
    bh.checkpoint(tmp_path, values)
    for name, value in bh.restore(tmp_path).items():
        assert (numpy.asarray(value) == numpy.asarray(values[name])).all() and value.shape == values[name].shape


ON_RANKS = f"""
import sys, bh
{PROGRAM}
run = pathlib.Path("run")
wrong = []
for name, damage in DAMAGE.items():
    bh.checkpoint(run, u=bh.arange(20_000.0), v=__import__("numpy").arange(5), step=900)
    (last,) = run.glob("checkpoint-*")
    damage(run, last)
    try:
        bh.restore(run)
        wrong.append(name)
    except bh.CheckpointError:
        pass
    except Exception as error:
        wrong.append((name, repr(error)))
    shutil.rmtree(run)
print(bh.ranks(), wrong)
"""


def test_damage_on_simulated_ranks(tmp_path):
    assert simulated(tmp_path, ON_RANKS).stdout.strip() == "4 []"


@pytest.mark.parametrize("name", THERE)
def test_damage_on_ranks(tmp_path, name):
    done = launched(name, tmp_path, ON_RANKS)
    assert done.stdout.strip() == "3 []", done.stderr


LOOP = """
import bh
try:
    state = bh.restore("run")
except FileNotFoundError:
    state = {"u": bh.ones((40, 50)), "step": 0}
print(state["step"])
"""


def test_the_loop_of_the_page_does_not_begin_again(tmp_path):
    last = written(tmp_path / "run")
    assert run([], tmp_path, LOOP).stdout.strip() == "900"
    os.remove(last / "0.npy")
    done = run([], tmp_path, LOOP)
    assert done.returncode != 0 and done.stdout == "" and "CheckpointError" in done.stderr and "0.npy" in done.stderr
