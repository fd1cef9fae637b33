"""Every message in every state of a connection and of a run. What may come is told below for each; the daemon must never answer
anything else, and a connection that was not ended must go on."""
import uuid

import attack
import ingest
from ingest import pb

CONNECTION, RUN, BATCH = pb.SCOPE_CONNECTION, pb.SCOPE_RUN, pb.SCOPE_BATCH


def errors(*codes, scope):
    return {(code, scope) for code in codes}


def messages(run_id):
    """Each message as it would be right for the first run of a connection, with one batch received."""
    return [
        pb.Hello(client_name="again", instance="again"),
        pb.Open(run_id=run_id, name="other", mode=pb.MODE_COUNTER, profile="lincam"),
        attack.batch(2, 3, 1),
        pb.Attributes(run=1, sequence=2, attributes=ingest.attributes({"k": "v"})),
        pb.Marker(run=1, sequence=2), pb.Gap(run=1, sequence=2), pb.Flush(run=1, id=3),
        pb.Close(run=1, last_sequence=1),
        pb.Ping(id=7, run=1), pb.Pong(id=7),
    ]


# ---- states: each takes a connection to it and gives the id of its run, if it has one ------------------------------


def before_hello(c, daemon):
    return uuid.uuid4().bytes


def welcomed(c, daemon):
    c.hello()
    return uuid.uuid4().bytes


def opening(c, daemon):
    """The answer to Open is not awaited: the run is opening or just open."""
    c.hello()
    run_id = uuid.uuid4().bytes
    c.send(pb.Open(run_id=run_id, name="state", mode=pb.MODE_COUNTER, profile="lincam"))
    return run_id


def _run(c):
    c.hello()
    run = c.open("state", mode=pb.MODE_COUNTER)
    c.send(attack.batch(1, 5, 2))
    c.wait_ack(run, received=1)
    return run


def running(c, daemon):
    return _run(c).run_id


def closing(c, daemon):
    run = _run(c)
    c.send(pb.Close(run=1, last_sequence=1))
    return run.run_id


def closed(c, daemon):
    run = _run(c)
    c.close(run, 1)
    return run.run_id


def taken_over(c, daemon):
    """Another connection of the same instance has the run; this one is being ended."""
    run = _run(c)
    with ingest.Connection(daemon.tcp) as other:
        other.hello(instance=c.instance)
        other.open("state", run_id=run.run_id)
    return run.run_id


# ---- what may come: Errors (code, scope), or kinds of messages -----------------------------------------------------

NO_RUN = errors(pb.ERROR_UNKNOWN_RUN, scope=CONNECTION)
AFTER_CLOSE = errors(pb.ERROR_RUN_CLOSED, scope=BATCH) | {pb.Closed, pb.Ack}
SECOND_HELLO = errors(pb.ERROR_PROTOCOL, scope=CONNECTION)
NOT_RECEIVED = errors(pb.ERROR_HOLE, scope=BATCH)
OVER = errors(pb.ERROR_SUPERSEDED, scope=CONNECTION)

EXPECTED = {
    before_hello: {"*": errors(pb.ERROR_PROTOCOL, scope=CONNECTION), "Hello": {pb.Welcome}},
    welcomed: {"*": NO_RUN, "Hello": SECOND_HELLO, "Open": {pb.Opened}, "Pong": set()},
    opening: {"*": NO_RUN | NOT_RECEIVED | {pb.Opened, pb.Flushed, pb.Pong}, "Hello": SECOND_HELLO | {pb.Opened}},
    running: {"*": {pb.Ack}, "Hello": SECOND_HELLO, "Open": {pb.Opened}, "Flush": {pb.Ack, pb.Flushed}, "Close": {pb.Ack, pb.Closed}, "Ping": {pb.Pong}, "Pong": set()},
    closing: {"*": AFTER_CLOSE, "Hello": SECOND_HELLO | AFTER_CLOSE, "Ping": {pb.Pong, pb.Closed, pb.Ack}},
    closed: {"*": set(), "Hello": SECOND_HELLO, "Open": {pb.Closed}, "Close": errors(pb.ERROR_RUN_CLOSED, scope=BATCH),
             "Ping": {pb.Pong}},
    taken_over: {"*": OVER},
}


def outcome(body):
    return (body.code, body.scope) if isinstance(body, pb.Error) else type(body)


def exchange(daemon, state, index):
    """Takes a connection to a state, sends one message, and a Ping behind it. Gives the message's name, what came, and whether
    the Ping was answered. What must come is waited for, since a file takes time to open and to close."""
    with ingest.Connection(daemon.tcp) as c:
        run_id = state(c, daemon)
        message = messages(run_id)[index]
        name = message.DESCRIPTOR.name
        try:
            c.send(message)
            c.send(pb.Ping(id=99))
        except OSError:  # ended before
            pass
        came, answered = [], False
        while not (answered and must(state, name) <= {outcome(body) for body in came}):
            body = c.receive()
            if body is None:
                break
            if isinstance(body, pb.Pong) and body.id == 99:
                answered = True
            else:
                came.append(body)
        return name, came, answered


def allowed(state, name):
    return EXPECTED[state].get(name, EXPECTED[state]["*"])


def must(state, name):
    """Where only one thing may come, it must."""
    return allowed(state, name) if len(allowed(state, name)) == 1 else set()


def check(state, name, came, goes_on):
    got = {outcome(body) for body in came}
    where = "%s in state %s: %s" % (name, state.__name__, came)
    assert got <= allowed(state, name), where
    assert must(state, name) <= got, where
    assert goes_on != any(isinstance(g, tuple) and g[1] == CONNECTION for g in got), where


def main():
    with attack.attacked() as daemon:
        n = 0
        for state in EXPECTED:
            for index in range(len(messages(b""))):
                check(state, *exchange(daemon, state, index))
                n += 1
    print("%d messages in states" % n)


if __name__ == "__main__":
    main()
