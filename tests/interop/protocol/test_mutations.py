"""A conversation with random damage, many times: bits, bytes, lengths and whole messages are changed, lost, repeated and moved.
The daemon must answer each with messages of the protocol and end it; it must not notice otherwise, nor must anybody beside it.
The seeds are fixed: `test_mutations.py FIRST COUNT` runs others, and one alone to look at."""
import random
import sys
import uuid

import attack
import ingest
import stored
from ingest import pb

COUNT = 1200


# ---- damage: each takes (generator, list of messages as bytearrays) and changes the list ---------------------------


def _one(rng, messages):
    return messages[rng.randrange(len(messages))]


def flip_a_bit(rng, messages):
    m = _one(rng, messages)
    if m:
        m[rng.randrange(len(m))] ^= 1 << rng.randrange(8)


def change_a_byte(rng, messages):
    m = _one(rng, messages)
    if m:
        m[rng.randrange(len(m))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])


def lose_bytes(rng, messages):
    m = _one(rng, messages)
    at = rng.randrange(len(m) + 1)
    del m[at:at + rng.choice([1, 1, 2, 8, 100])]


def insert_bytes(rng, messages):
    m = _one(rng, messages)
    at = rng.randrange(len(m) + 1)
    m[at:at] = rng.randbytes(rng.choice([1, 1, 2, 8, 100]))


def lie_about_the_length(rng, messages):
    i = rng.randrange(len(messages))
    length, at = ingest.get_varint(messages[i])
    if length is not None:
        lie = max(0, rng.choice([0, 1, length - 1, length + 1, 127, 128, 16384, 1 << 24, (1 << 24) + 1, 1 << 32, (1 << 64) - 1]))
        messages[i] = bytearray(ingest.varint(lie)) + messages[i][at:]


def shorten_a_message(rng, messages):
    """Its end is lost, its length is right."""
    i = rng.randrange(len(messages))
    length, at = ingest.get_varint(messages[i])
    if length:
        body = messages[i][at:at + rng.randrange(length)]
        messages[i] = bytearray(ingest.varint(len(body))) + body


def repeat_a_message(rng, messages):
    messages.insert(rng.randrange(len(messages) + 1), bytearray(_one(rng, messages)))


def lose_a_message(rng, messages):
    del messages[rng.randrange(len(messages))]
    messages.append(bytearray())


def move_a_message(rng, messages):
    m = messages.pop(rng.randrange(len(messages)))
    messages.insert(rng.randrange(len(messages) + 1), m)


def change_a_number(rng, messages):
    """A field of a message that stays well-formed: a number becomes another."""
    i = rng.randrange(len(messages))
    length, at = ingest.get_varint(messages[i])
    try:
        message = pb.ClientMessage.FromString(bytes(messages[i][at:]))
    except Exception:  # spoilt already
        return
    kind = message.WhichOneof("body")
    if not kind:
        return
    body = getattr(message, kind)
    field = rng.choice(body.DESCRIPTOR.fields)
    value = rng.choice([0, 1, 2, 255, (1 << 31) - 1, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1])
    try:
        if isinstance(getattr(body, field.name), (int, float)):
            setattr(body, field.name, value)
        elif field.name == "counts":
            body.counts[rng.randrange(len(body.counts))] = value
        elif field.name == "columns":
            body.columns[rng.randrange(len(body.columns))] = rng.randbytes(rng.randrange(40))
    except (ValueError, OverflowError, TypeError, IndexError):  # no such number of this type, or a list without items
        return
    messages[i] = bytearray(ingest.delimited(message))


def random_message(rng, messages):
    kind = rng.choice(pb.ClientMessage.DESCRIPTOR.fields)
    inside = rng.randbytes(rng.randrange(30))
    body = ingest.varint(kind.number << 3 | 2) + ingest.varint(len(inside)) + inside
    messages.insert(rng.randrange(len(messages) + 1), bytearray(ingest.varint(len(body)) + body))


DAMAGE = [flip_a_bit, change_a_byte, lose_bytes, insert_bytes, lie_about_the_length, shorten_a_message, repeat_a_message,
          lose_a_message, move_a_message, change_a_number, change_a_number, random_message]


# ---- one conversation ----------------------------------------------------------------------------------------------


def spoilt(seed):
    """(name, messages): the conversation of this seed. A third has its Hello and Open whole."""
    rng = random.Random(seed)
    name = "spoilt-%d" % seed
    run_id = uuid.UUID(int=rng.getrandbits(128)).bytes
    whole = list(map(bytearray, attack.beginning(name, name, run_id)))
    data = [bytearray(message) for message, *_ in attack.data_messages()]
    keep = rng.randrange(3) == 0
    messages = data if keep else whole + data
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        rng.choice(DAMAGE)(rng, messages)
    return name, whole + messages if keep else messages


def check_answers(seed, answers):
    """An Error that ends the connection is the last that comes; it has a code and a sentence."""
    for i, answer in enumerate(answers):
        if isinstance(answer, pb.Error):
            assert answer.code != pb.ERROR_NONE and answer.code != pb.ERROR_INTERNAL and answer.text, (seed, answer)
            assert answer.scope != pb.SCOPE_CONNECTION or i == len(answers) - 1, (seed, answers)


def converse(daemon, seed):
    """Sends it all, but the data only when the run is open, if it gets that far. Gives what the server said."""
    name, messages = spoilt(seed)
    with ingest.Connection(daemon.tcp if seed % 2 else daemon.unix) as c:
        answers = []
        try:
            c.send_raw(b"".join(messages[:2]))
            while not any(isinstance(a, (pb.Opened, pb.Error, type(None))) for a in answers[-1:]):
                answers.append(c.receive(0.3))
        except TimeoutError:  # it waits for the rest of something
            pass
        try:
            c.send_raw(b"".join(messages[2:]))
            c.finish_sending()
        except OSError:  # it has ended the connection
            pass
        while answers[-1:] != [None]:
            answers.append(c.receive())
    check_answers(seed, answers[:-1])
    return name, answers[:-1]


def check_file(daemon, seed, name):
    file = stored.File(daemon.path(name + ".photons"))
    assert file.state == "closed", seed
    for group in (("/photons/x", "/photons/y", "/photons/dt"),):
        assert len({len(file.columns[d]) for d in group if d in file.columns}) <= 1, seed


def main():
    first, count = (int(a) for a in (sys.argv[1:] + [0, COUNT][len(sys.argv) - 1:]))
    opened, errors = [], set()
    with attack.attacked() as daemon:
        for seed in range(first, first + count):
            name, answers = converse(daemon, seed)
            opened += [(seed, a.name) for a in answers if isinstance(a, pb.Opened)]
            errors |= {(a.code, a.scope) for a in answers if isinstance(a, pb.Error)}
            if seed % 50 == 0:
                attack.wait_closed(daemon)
        attack.wait_closed(daemon)
        for seed, name in set(opened):
            check_file(daemon, seed, name)
    assert count < COUNT or len(errors) > 9, errors
    print("%d conversations spoilt, %d runs opened all the same, %d kinds of refusal" % (
        count, len(opened), len(errors)))


if __name__ == "__main__":
    main()
